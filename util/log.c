/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/* The log is process-wide state: passing it through every call would gain nothing. */
static const char *log_role;
static enum log_level log_max = LOG_LEVEL_INFO;
static bool log_to_journal;

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
};

void log_open(const char *role)
{
	log_role = role;
	log_to_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_set_level(enum log_level level)
{
	log_max = level;
}

enum log_level log_get_level(void)
{
	return log_max;
}

void log_write(enum log_level level, const char *format, ...)
{
	static const char priorities[][4] = {"<3>", "<4>", "<6>", "<7>"};
	char text[2048], line[sizeof(text) + 1];
	const int size = sizeof(text);
	int saved = errno, n = 0, m;
	va_list ap;

	if (level > log_max)
		return;

	if (log_to_journal)
		n = snprintf(text, sizeof(text), "%s", priorities[level]);
	n += snprintf(text + n, (size_t)(size - n), "perfwalk%s%s%s: %s%s", log_role ? "[" : "",
		      log_role ? log_role : "", log_role ? "]" : "",
		      level <= LOG_LEVEL_WARNING ? level_names[level] : "",
		      level <= LOG_LEVEL_WARNING ? ": " : "");
	va_start(ap, format);
	m = vsnprintf(text + n, (size_t)(size - n), format, ap);
	va_end(ap);
	if (m < 0)
		text[n] = '\0';
	/* The names in it are untrusted, and it may go to a terminal. */
	n = (int)text_clean(line, sizeof(text), text, sizeof(text) - 1);
	line[n++] = '\n';

	/* One write: lines of several processes on one pipe do not interleave. */
	for (int off = 0; off < n;) {
		ssize_t w = write(STDERR_FILENO, line + off, (size_t)(n - off));

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			break;
		off += (int)w;
	}
	errno = saved;
}

bool log_ratelimit(struct log_ratelimit *state, unsigned int interval_seconds)
{
	uint64_t now = clock_monotonic_ns();

	if (state->last_ns && now - state->last_ns < interval_seconds * NSEC_PER_SEC) {
		state->held++;
		return false;
	}
	state->last_ns = now;
	state->reported = state->held;
	state->held = 0;
	return true;
}
