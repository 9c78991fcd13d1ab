/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The windows of the local store that have samples of a trace, a span or a service. */
#include <stdint.h>

struct command;

/* Texts NULL: any. last_ns 0: all of the store. store NULL: that of the daemon's config. */
struct windows_wanted {
	const char *trace, *span, *service, *store;
	uint64_t last_ns;
};

/* Prints a row for each. Returns the exit code. */
int windows_list(const struct command *command, const struct windows_wanted *wanted);
