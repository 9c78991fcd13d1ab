/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <elf.h>
#include <string.h>

#include "util/cursor.h"
#include "util/notes.h"

/* Moves to a multiple of align; the last note's padding may be missing. */
static void skip_padding(struct cursor *c, size_t align)
{
	size_t pad = -(size_t)(c->cur - c->start) & (align - 1);

	(void)cursor_take(c, pad < cursor_left(c) ? pad : cursor_left(c));
}

bool notes_next(struct cursor *c, uint64_t align, struct note *ret)
{
	size_t to = align == 8 ? 8 : 4;
	uint32_t n_name = cursor_u32(c), n_desc = cursor_u32(c), type = cursor_u32(c);
	const char *name = cursor_take(c, n_name);
	const uint8_t *desc;

	skip_padding(c, to);
	desc = cursor_take(c, n_desc);
	if (!name || !desc)
		return false;
	skip_padding(c, to);
	*ret = (struct note){type, name, strnlen(name, n_name), desc, n_desc};
	return true;
}

bool note_is(const struct note *note, uint32_t type, const char *name)
{
	return note->type == type && note->n_name == strlen(name) &&
	       memcmp(note->name, name, note->n_name) == 0;
}

size_t notes_find_build_id(const void *bytes, size_t n, uint64_t align, size_t max,
			   const uint8_t **ret)
{
	struct cursor c = cursor_make(bytes, n);
	struct note note;

	while (notes_next(&c, align, &note)) {
		if (note_is(&note, NT_GNU_BUILD_ID, "GNU") && note.n_desc > 0 &&
		    note.n_desc <= max) {
			*ret = note.desc;
			return note.n_desc;
		}
	}
	return 0;
}
