/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "util/json-read.h"

/* A character after \u: ASCII as itself; no caller needs any others. */
static char read_code(struct json_reader *j)
{
	unsigned int code = 0;

	for (int i = 0; i < 4 && j->at < j->end; i++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, *j->at | 0x20);

		if (!d || !*d)
			return '?';
		code = code << 4 | (unsigned int)(d - digits);
		j->at++;
	}
	return code >= ' ' && code < 0x7f ? (char)code : '?';
}

static char read_escape(struct json_reader *j)
{
	char c = *j->at++;

	if (c == 'u')
		return read_code(j);
	if (strchr("bfnrt", c))
		return ' ';
	return strchr("/\"\\", c) ? c : '?';
}

/* Reads a string after its first quote. */
static bool read_string(struct json_reader *j, char ret[JSON_MAX_TEXT])
{
	size_t n = 0;

	while (j->at < j->end && *j->at != '"') {
		char c = *j->at++;

		if (c == '\\') {
			if (j->at == j->end)
				return false;
			c = read_escape(j);
		}
		if (n < JSON_MAX_TEXT - 1)
			ret[n++] = c;
	}
	ret[n] = '\0';
	return j->at++ < j->end;
}

/* Reads a number or a word that begins with c. */
static void read_word(struct json_reader *j, char c)
{
	size_t n = 0;

	j->value[n++] = c;
	while (j->at < j->end && !strchr(" \t\r\n,:]}[{\"", *j->at)) {
		c = *j->at++;
		if (n < JSON_MAX_TEXT - 1)
			j->value[n++] = c;
	}
	j->value[n] = '\0';
}

static bool enter(struct json_reader *j, bool is_object)
{
	if (j->depth == JSON_MAX_DEPTH)
		return false;
	j->depth++;
	j->is_object[j->depth] = j->wants_key = is_object;
	if (j->depth <= JSON_MAX_KEYS)
		j->keys[j->depth][0] = '\0';
	return true;
}

/* Reads one token. *ret_value: it was a value. false: no token, or an unreadable one. */
static bool read_token(struct json_reader *j, bool *ret_value)
{
	char c = *j->at++;

	*ret_value = false;
	switch (c) {
	case '{':
	case '[':
		return enter(j, c == '{');
	case '}':
	case ']':
		if (j->depth <= 1)
			return false;
		j->depth--;
		return true;
	case ':':
		j->wants_key = false;
		return true;
	case ',':
		j->wants_key = j->is_object[j->depth];
		return true;
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		return true;
	case '"':
		if (!read_string(j, j->value))
			return false;
		j->is_string = true;
		*ret_value = !j->wants_key;
		if (j->wants_key && j->depth <= JSON_MAX_KEYS)
			memcpy(j->keys[j->depth], j->value, JSON_MAX_TEXT);
		return true;
	default:
		read_word(j, c);
		j->is_string = false;
		*ret_value = true;
		return true;
	}
}

bool json_reader_next(struct json_reader *j)
{
	bool is_value = false;

	while (j->at < j->end && !is_value) {
		if (!read_token(j, &is_value))
			j->at = j->end;
	}
	return is_value;
}
