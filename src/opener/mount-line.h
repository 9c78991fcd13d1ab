/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A line of /proc/PID/mountinfo, see proc(5). */
#include <stdbool.h>
#include <stddef.h>

struct mount_line {
	long id; /* of the mount, on the whole host */
	unsigned int major, minor;
	/* Both borrow the line. */
	const char *point; /* n_point bytes, still escaped */
	size_t n_point;
	const char *type; /* not terminated */
};

/* Parses a line without its newline. false: not such a line. */
bool mount_line_parse(const char *line, struct mount_line *ret);
/* Replaces escapes, such as \\040 for a space, in place. */
void mount_line_unescape(char *text);
