/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "src/render/places.h"
#include "util/hash.h"
#include "util/text.h"

#define MAX_STRING_BYTES (UINT64_C(1) << 30)

static int find_function(struct places *pl, struct hash_index *index,
			 const struct place_function *key, uint32_t *ret)
{
	uint64_t hash =
		hash_combine((uint64_t)key->name << 32 | key->file, (uint64_t)key->module << 32);
	uint32_t slot = hash_index_first(index, hash), row;
	struct place_function *f;

	while ((row = hash_index_row(index, slot)) != HASH_INDEX_NONE) {
		f = &pl->functions.items[row];
		if (f->name == key->name && f->file == key->file && f->module == key->module) {
			*ret = row;
			return 0;
		}
		slot = hash_index_next(index, slot);
	}
	f = array_push(&pl->functions);
	if (!f || hash_index_add(index, hash, pl->functions.n - 1) < 0)
		return -ENOMEM;
	*f = *key;
	*ret = pl->functions.n - 1;
	return 0;
}

/* line: NULL for a frame without a name. */
static int add_place(struct places *pl, struct hash_index *index, const struct profile *p,
		     uint32_t frame, const struct profile_line *line, uint32_t inline_depth)
{
	struct place_function key = {.module = p->frames.items[frame].module,
				     .function = line ? line->function : PROFILE_NONE,
				     .kind = frame_kind(p, frame)};
	struct place *place = array_push(&pl->places);
	char text[FRAME_MAX_NAME];

	if (line)
		(void)frame_function_name(p, line->function, text, sizeof(text));
	else
		(void)frame_fallback_name(p, frame, text, sizeof(text));
	key.name = strtab_put(&pl->strings, text);
	if (line) {
		(void)text_clean(text, sizeof(text),
				 profile_text(p, p->functions.items[line->function].file),
				 SIZE_MAX);
		key.file = strtab_put(&pl->strings, text);
	}
	if (!place || (key.name == STRID_EMPTY) || (line && *text && key.file == STRID_EMPTY))
		return -ENOMEM;
	*place = (struct place){.frame = frame,
				.line = line ? line->line : 0,
				.column = line ? line->column : 0,
				.inline_depth = inline_depth};
	return find_function(pl, index, &key, &place->function);
}

int places_build(struct places *pl, const struct profile *p)
{
	struct hash_index index = HASH_INDEX_INIT;
	int r = 0;

	*pl = (struct places){.functions = ARRAY_INIT(UINT32_MAX - 1),
			      .places = ARRAY_INIT(UINT32_MAX - 1)};
	strtab_init(&pl->strings, MAX_STRING_BYTES);
	pl->first = calloc((size_t)p->frames.n + 1, sizeof(*pl->first));
	if (!pl->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->frames.n && r == 0; i++) {
		const struct profile_frame *f = &p->frames.items[i];

		pl->first[i] = pl->places.n;
		if (!f->n_lines)
			r = add_place(pl, &index, p, i, NULL, 0);
		for (uint32_t k = f->n_lines; k-- > 0 && r == 0;)
			r = add_place(pl, &index, p, i, &p->lines.items[f->first_line + k],
				      f->n_lines - 1 - k);
	}
	pl->first[p->frames.n] = pl->places.n;
	hash_index_deinit(&index);
	return r;
}

void places_deinit(struct places *pl)
{
	strtab_deinit(&pl->strings);
	array_deinit(&pl->functions);
	array_deinit(&pl->places);
	free(pl->first);
	pl->first = NULL;
}
