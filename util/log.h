/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines on standard error: "perfwalk[role]: text", prefixed with <N> priorities when systemd
 * reads them (JOURNAL_STREAM is set). Control characters in the text are replaced, so that no
 * string from a profiled process can forge a line.
 *
 * Layers below src/ log only at debug; src/ logs each failure once, with object and cause.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* role: for example "profiler", NULL: none. Borrowed for the life of the process. */
void log_open(const char *role);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_get_level() >= LOG_LEVEL_DEBUG)                                            \
			log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                   \
	} while (0)

/*
 * Limits a log line to one in each interval: `if (log_ratelimit(&state, 60))`. When it returns
 * true, state->reported is the number of calls suppressed since the last time.
 */
struct log_ratelimit {
	uint64_t last_ns;
	uint32_t held; /* calls suppressed since then */
	uint32_t reported;
};
bool log_ratelimit(struct log_ratelimit *state, unsigned int interval_seconds);
