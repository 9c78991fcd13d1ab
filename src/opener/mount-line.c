/* SPDX-License-Identifier: Apache-2.0 */
#include "src/opener/mount-line.h"

#include <stdio.h>
#include <string.h>

bool mount_line_parse(const char *line, struct mount_line *ret)
{
	const char *type = strstr(line, " - ");
	int point = 0, end = 0;

	if (!type ||
	    sscanf(line, "%*d %*d %u:%u %*s %n%*s%n", &ret->major, &ret->minor, &point, &end) !=
		    2 ||
	    end <= point)
		return false;
	ret->point = line + point;
	ret->n_point = (size_t)(end - point);
	ret->type = type + 3;
	return true;
}

void mount_line_unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		unsigned int code;

		if (*at == '\\' && sscanf(at + 1, "%3o", &code) == 1) {
			*to = (char)code;
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}
