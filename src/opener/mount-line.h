/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A line of /proc/PID/mountinfo, see proc(5). */
#include <stdbool.h>
#include <stddef.h>

struct mount_line {
	unsigned int major, minor;
	const char *point; /* n_point bytes in the line, still escaped */
	size_t n_point;
	const char *type; /* in the line, not terminated */
};

/* Parses a line without its newline. false: not such a line. */
bool mount_line_parse(const char *line, struct mount_line *ret);
/* Works in place: the mount table has \\040 for a space. */
void mount_line_unescape(char *text);
