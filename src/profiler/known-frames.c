/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/known-frames.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/hash.h"
#include "util/strtab.h"

#define NUMBER_BIT (UINT64_C(1) << 62)

struct known_frame {
	strid function, file;
	uint32_t line, start_line;
	enum profile_runtime runtime;
};

struct known_frames {
	ARRAY(struct known_frame) frames;
	struct hash_index index;
	struct strtab texts;
	uint64_t first; /* number of the first one that is not forgotten */
};

int known_frames_new(struct known_frames **ret, uint32_t max_frames, uint32_t max_bytes)
{
	struct known_frames *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->frames.max = max_frames;
	strtab_init(&k->texts, max_bytes);
	*ret = k;
	return 0;
}

struct known_frames *known_frames_free(struct known_frames *k)
{
	if (k) {
		array_deinit(&k->frames);
		hash_index_deinit(&k->index);
		strtab_deinit(&k->texts);
		free(k);
	}
	return NULL;
}

static bool frames_equal(const struct known_frame *a, const struct known_frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->start_line == b->start_line && a->runtime == b->runtime;
}

static uint64_t frame_hash(const struct known_frame *f)
{
	uint64_t h = hash_combine(f->function, f->file);

	return hash_combine(hash_combine(h, f->line), f->start_line << 4 ^ f->runtime);
}

static void forget_all(struct known_frames *k)
{
	k->first += k->frames.n;
	array_clear(&k->frames);
	hash_index_clear(&k->index);
	strtab_clear(&k->texts);
}

static struct known_frame intern(struct known_frames *k, const struct runtime_frame *f)
{
	return (struct known_frame){.function =
					    strtab_put(&k->texts, f->function ? f->function : ""),
				    .file = strtab_put(&k->texts, f->file ? f->file : ""),
				    .line = f->line,
				    .start_line = f->start_line,
				    .runtime = f->runtime};
}

/* UINT32_MAX: it is not there. */
static uint32_t find_frame(const struct known_frames *k, const struct known_frame *f, uint64_t hash)
{
	uint32_t slot = hash_index_first(&k->index, hash), row;

	while ((row = hash_index_row(&k->index, slot)) != HASH_INDEX_NONE) {
		if (hash_index_match(&k->index, slot, hash) &&
		    frames_equal(&k->frames.items[row], f))
			return row;
		slot = hash_index_next(&k->index, slot);
	}
	return UINT32_MAX;
}

static bool is_full(const struct known_frames *k, uint64_t n_refused)
{
	return k->frames.n == k->frames.max || k->texts.n_refused > n_refused;
}

uint64_t known_frames_put(struct known_frames *k, const struct runtime_frame *f)
{
	uint64_t n_refused = k->texts.n_refused, hash;
	struct known_frame frame = intern(k, f), *place;
	uint32_t row;

	if (is_full(k, n_refused)) {
		forget_all(k);
		frame = intern(k, f);
	}
	hash = frame_hash(&frame);
	row = find_frame(k, &frame, hash);
	if (row != UINT32_MAX)
		return NUMBER_BIT | (k->first + row);
	place = array_push(&k->frames);
	if (!place)
		return 0;
	*place = frame;
	if (hash_index_add(&k->index, hash, k->frames.n - 1) < 0) {
		k->frames.n--;
		return 0;
	}
	return NUMBER_BIT | (k->first + k->frames.n - 1);
}

bool known_frames_get(const struct known_frames *k, uint64_t number, struct runtime_frame *ret)
{
	uint64_t row = (number & ~NUMBER_BIT) - k->first;
	const struct known_frame *f;

	if (row >= k->frames.n) /* also one from before: the difference is huge */
		return false;
	f = &k->frames.items[row];
	*ret = (struct runtime_frame){.runtime = f->runtime,
				      .function = strtab_get(&k->texts, f->function),
				      .file = strtab_get(&k->texts, f->file),
				      .line = f->line,
				      .start_line = f->start_line};
	return true;
}
