/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/json.h"
#include "util/text.h"

/* Text is cleaned in pieces of this size, so that its length has no limit. */
#define PIECE 4096

static void put_escaped(FILE *out, const char *clean)
{
	for (const unsigned char *c = (const unsigned char *)clean; *c; c++) {
		/* U+2028 and U+2029 end a line for older JavaScript. */
		bool separator = c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9);

		if (*c == '"' || *c == '\\' || *c == '<' || *c == '>' || *c == '&' || *c == '\'' ||
		    *c < 0x20)
			(void)fprintf(out, "\\u%04x", *c);
		else if (separator)
			(void)fprintf(out, "\\u20%02x", c[2] == 0xa8 ? 0x28 : 0x29);
		else
			(void)fputc(*c, out);
		c += separator ? 2 : 0;
	}
}

/* Length of the first piece of n bytes that does not end within a character. */
static size_t piece_length(const char *text, size_t n)
{
	size_t m = PIECE - 1;

	if (n <= m)
		return n;
	while (m > PIECE - 4 && ((unsigned char)text[m] & 0xc0) == 0x80)
		m--;
	return m;
}

void json_put_bytes(FILE *out, const char *text, size_t n)
{
	char clean[PIECE];

	(void)fputc('"', out);
	while (n > 0) {
		size_t m = piece_length(text, n);

		(void)text_clean(clean, sizeof(clean), text, m);
		put_escaped(out, clean);
		text += m;
		n -= m;
	}
	(void)fputc('"', out);
}

void json_put_string(FILE *out, const char *text)
{
	json_put_bytes(out, text, strlen(text));
}
