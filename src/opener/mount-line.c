/* SPDX-License-Identifier: Apache-2.0 */
#include "src/opener/mount-line.h"

#include <stdio.h>
#include <string.h>

bool mount_line_parse(const char *line, struct mount_line *ret)
{
	const char *type = strstr(line, " - ");
	int point = 0, end = 0;

	if (!type ||
	    sscanf(line, "%ld %*d %u:%u %*s %n%*s%n", &ret->id, &ret->major, &ret->minor, &point,
		   &end) != 3 ||
	    end <= point)
		return false;
	ret->point = line + point;
	ret->n_point = (size_t)(end - point);
	ret->type = type + 3;
	return true;
}

/* The byte in three octal digits at that place; -1: none. */
static int octal(const char *at)
{
	int v = 0;

	for (int i = 0; i < 3; i++) {
		if (at[i] < '0' || at[i] > '7')
			return -1;
		v = v * 8 + at[i] - '0';
	}
	return v <= 0xff ? v : -1;
}

void mount_line_unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		int code = *at == '\\' ? octal(at + 1) : -1;

		*to = code >= 0 ? (char)code : *at;
		at += code >= 0 ? 4 : 1;
	}
	*to = '\0';
}
