/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "util/strtab.h"

void strtab_init(struct strtab *t, size_t max_bytes)
{
	*t = (struct strtab){.max_bytes = max_bytes < UINT32_MAX ? max_bytes : UINT32_MAX};
}

void strtab_deinit(struct strtab *t)
{
	free(t->bytes);
	free(t->offsets);
	hash_index_deinit(&t->index);
	strtab_init(t, t->max_bytes);
}

void strtab_clear(struct strtab *t)
{
	t->n_bytes = 0;
	t->n = 0;
	hash_index_clear(&t->index);
}

/* Makes room for one more string of n bytes. Ids start at 1, offsets[0] is the empty string. */
static int reserve(struct strtab *t, size_t n)
{
	if (t->n_bytes + n + 1 > t->cap_bytes) {
		size_t cap = t->cap_bytes ? t->cap_bytes * 2 : 1024;
		char *bytes;

		while (cap < t->n_bytes + n + 1)
			cap *= 2;
		bytes = realloc(t->bytes, cap);
		if (!bytes)
			return -1;
		t->bytes = bytes;
		t->cap_bytes = cap;
	}
	if (t->n + 2 > t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 64;
		uint32_t *offsets = realloc(t->offsets, cap * sizeof(*offsets));

		if (!offsets)
			return -1;
		t->offsets = offsets;
		t->cap = cap;
	}
	return 0;
}

strid strtab_put_n(struct strtab *t, const char *text, size_t n)
{
	uint64_t hash;
	uint32_t slot, row;

	n = strnlen(text, n);
	if (n == 0)
		return STRID_EMPTY;

	hash = hash_bytes(text, n, 0);
	slot = hash_index_first(&t->index, hash);
	while ((row = hash_index_row(&t->index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&t->index, slot, hash)) {
			const char *have = t->bytes + t->offsets[row];

			if (strncmp(have, text, n) == 0 && have[n] == '\0')
				return row;
		}
		slot = hash_index_next(&t->index, slot);
	}

	if (t->n_bytes + n + 1 > t->max_bytes || reserve(t, n) < 0 ||
	    hash_index_add(&t->index, hash, t->n + 1) < 0) {
		t->n_refused++;
		return STRID_EMPTY;
	}
	t->n++;
	t->offsets[t->n] = (uint32_t)t->n_bytes;
	memcpy(t->bytes + t->n_bytes, text, n);
	t->bytes[t->n_bytes + n] = '\0';
	t->n_bytes += n + 1;
	return t->n;
}

strid strtab_put(struct strtab *t, const char *text)
{
	return strtab_put_n(t, text, strlen(text));
}

const char *strtab_get(const struct strtab *t, strid id)
{
	return id == STRID_EMPTY || id > t->n ? "" : t->bytes + t->offsets[id];
}

size_t strtab_bytes(const struct strtab *t)
{
	return t->cap_bytes + t->cap * sizeof(*t->offsets) + hash_index_bytes(&t->index);
}
