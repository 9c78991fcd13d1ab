/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of messages by their numbers, and the tables of the dictionary. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire-read.h"
#include "src/import/otlp-internal.h"
#include "util/cursor.h"

uint64_t otlp_number(const struct span *s, uint32_t number)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == number && f.type != WIRE_BYTES)
			return f.value;
	return 0;
}

struct span otlp_bytes(const struct span *s, uint32_t number)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;

	while (wire_read_field(&c, &f))
		if (f.number == number && f.type == WIRE_BYTES)
			return (struct span){f.bytes, f.n};
	return (struct span){NULL, 0};
}

const struct span *otlp_row(const struct otlp_file *o, unsigned int table, uint64_t index)
{
	return index < o->tables[table].n ? &o->tables[table].items[index] : NULL;
}

const char *otlp_keep_text(struct otlp_file *o, enum text_place place, const struct span *s)
{
	free(o->texts[place]);
	o->texts[place] = s && s->n ? strndup((const char *)s->bytes, s->n) : NULL;
	return o->texts[place];
}

const char *otlp_text(struct otlp_file *o, enum text_place place, uint64_t index)
{
	return otlp_keep_text(o, place, index ? otlp_row(o, T_STRING, index) : NULL);
}

const char *otlp_attribute(struct otlp_file *o, uint64_t index, const char **ret_text,
			   uint64_t *ret_number)
{
	const struct span *a = otlp_row(o, T_ATTRIBUTE, index);
	struct span value = a ? otlp_bytes(a, 2) : (struct span){NULL, 0},
		    text = otlp_bytes(&value, 1);

	*ret_text = NULL;
	*ret_number = 0;
	if (!a || index == 0)
		return NULL;
	if (text.bytes)
		*ret_text = otlp_keep_text(o, TEXT_VALUE, &text);
	else if (otlp_number(&value, 8))
		*ret_text = otlp_text(o, TEXT_VALUE, otlp_number(&value, 8));
	else
		*ret_number = otlp_number(&value, 3);
	return otlp_text(o, TEXT_KEY, otlp_number(a, 1));
}

int otlp_each_number(struct otlp_file *o, const struct span *s, uint32_t number,
		     int (*fn)(struct otlp_file *o, void *ctx, uint64_t value), void *ctx)
{
	struct cursor c = cursor_make(s->bytes, s->n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f)) {
		struct cursor list = cursor_make(f.bytes, f.n);

		if (f.number != number)
			continue;
		if (f.type != WIRE_BYTES)
			r = fn(o, ctx, f.value);
		while (f.type == WIRE_BYTES && r == 0 && cursor_left(&list) > 0) {
			uint64_t value = wire_read_varint(&list);

			r = cursor_ok(&list)
				    ? fn(o, ctx, value)
				    : import_damaged(o->im, "a list of numbers is damaged");
		}
	}
	return r;
}

strid otlp_keep(struct otlp_file *o, const char *text)
{
	return strtab_put(&o->im->p->strings, text ? text : "");
}

void otlp_take_fact(char **field, const char *text)
{
	if (!*field && text)
		*field = strdup(text);
}
