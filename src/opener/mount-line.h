/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A line of /proc/PID/mountinfo, see proc(5). */
#include <stdbool.h>
#include <stddef.h>

struct mount_line {
	unsigned int major, minor;
	const char *point; /* n_point bytes in the line, as they are written there */
	size_t n_point;
	const char *type; /* in the line, which goes on behind it */
};

/* A line without its end. false: not such a line. */
bool mount_line_parse(const char *line, struct mount_line *ret);
/* In place: the mount table writes a space as \\040. */
void mount_line_unescape(char *text);
