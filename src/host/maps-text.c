/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of /proc/PID/maps:
 *
 *	55d22df66000-55d22df7c000 r-xp 00004000 fe:00 247493      /usr/bin/ls
 *
 * All numbers but the inode are hexadecimal. The path is the rest of the line, blanks included; a
 * newline in it is written \012, a backslash is not escaped, so "\012" in a name is read as a
 * newline.
 */
#include <string.h>

#include "src/host/internal.h"

/* Reads digits of base 10 or 16; false: none, or more than 64 bits. */
static bool take_number(const char **p, const char *end, unsigned int base, uint64_t *ret)
{
	const char *begin = *p;
	uint64_t v = 0;

	for (; *p < end; (*p)++) {
		char c = **p;
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned int)(c - 'a') + 10;
		else
			break;
		if (digit >= base)
			break;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	*ret = v;
	return *p > begin;
}

static bool take_char(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	(*p)++;
	return true;
}

/* Works in place: the result is never longer. */
static size_t unescape_newlines(char *s, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (n - i >= 4 && memcmp(s + i, "\\012", 4) == 0) {
			s[to++] = '\n';
			i += 3;
		} else {
			s[to++] = s[i];
		}
	}
	return to;
}

static bool cut_suffix(const char *s, size_t *n, const char *suffix)
{
	size_t n_suffix = strlen(suffix);

	if (*n <= n_suffix || memcmp(s + *n - n_suffix, suffix, n_suffix) != 0)
		return false;
	*n -= n_suffix;
	return true;
}

bool host_parse_maps_line(char *line, size_t n, struct host_maps_line *ret)
{
	const char *p = line, *end = line + n;
	struct host_maps_line m = {.path = ""};
	uint64_t major, minor;
	size_t n_path;

	if (!take_number(&p, end, 16, &m.start) || !take_char(&p, end, '-') ||
	    !take_number(&p, end, 16, &m.end) || !take_char(&p, end, ' ') || end - p < 5 ||
	    p[4] != ' ' || m.end <= m.start)
		return false;
	m.writable = p[1] == 'w';
	m.executable = p[2] == 'x';
	p += 5;
	if (!take_number(&p, end, 16, &m.file_offset) || !take_char(&p, end, ' ') ||
	    !take_number(&p, end, 16, &major) || !take_char(&p, end, ':') ||
	    !take_number(&p, end, 16, &minor) || !take_char(&p, end, ' ') ||
	    !take_number(&p, end, 10, &m.inode) || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	m.major = (uint32_t)major;
	m.minor = (uint32_t)minor;
	if (p < end && *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	if (p < end) {
		/* There is room for the 0, since a blank came before the path. */
		char *path = line + (p - line);

		n_path = strnlen(path, (size_t)(end - p));
		if (path[0] == '/')
			m.deleted = cut_suffix(path, &n_path, " (deleted)");
		n_path = unescape_newlines(path, n_path);
		memmove(path - 1, path, n_path);
		path--;
		path[n_path] = '\0';
		m.path = path;
	}
	*ret = m;
	return true;
}
