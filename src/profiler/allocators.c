/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/allocators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/module-rows.h"
#include "symbolize/alloc-place.h"

#define MAX_BYTES (UINT64_C(1) << 48) /* of a block: a caller may say anything */
#define MIN_MEAN  (UINT64_C(1) << 12)
#define MAX_MEAN  (UINT64_C(1) << 30)
#define GO_MEAN	  (UINT64_C(512) << 10) /* runtime.MemProfileRate, unless a program sets it */

/* ---- Files ---- */

bool allocator_is_likely(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return *path == '/' && (strcmp(name, "libjvm.so") == 0 || !strstr(name, ".so"));
}

static const struct alloc_places *find_places(struct attribution *a, struct host_mapping *m)
{
	struct file_state *s = attribution_open_file(a, m);
	struct alloc_places found;
	int r;

	if (!s || s->allocator_tried || !s->tried || m->file->fd < 0)
		return s ? s->allocator : NULL;
	s->allocator_tried = true;
	if (!allocator_is_likely(m->file->path))
		return NULL;
	unwinder_tell_reading(a->unwinder, s, true);
	r = alloc_places_find(m->file->fd, m->file->path, &found);
	unwinder_tell_reading(a->unwinder, s, false);
	if (r == 0 && (s->allocator = malloc(sizeof(found))))
		*s->allocator = found;
	return s->allocator;
}

const struct alloc_places *allocator_look(struct attribution *a, struct host_mapping *m)
{
	const struct file_state *s = attribution_open_file(a, m);
	const struct alloc_places *found;

	if (!s || s->allocator_tried)
		return s ? s->allocator : NULL;
	if (!attribution_begin_look(a))
		return NULL;
	found = find_places(a, m);
	attribution_end_look(a);
	return found;
}

/* ---- Where a sample is from ---- */

static void find_origin(struct attribution *a, const struct record *r, struct picked_block *ret)
{
	struct host_mapping *m =
		a->process ? host_mapping_find(a->host, a->process, r->sample.ip, r->time_ns)
			   : NULL;

	*ret = (struct picked_block){.places = NULL};
	if (!m || m->kind != HOST_MAPPING_FILE || !m->file)
		return;
	ret->places = find_places(a, m);
	ret->start = m->start;
	ret->end = m->end;
	ret->moved = m->start - m->file_offset;
}

bool allocator_has(const struct picked_block *b, uint64_t address)
{
	return b->places && address >= b->start && address < b->end &&
	       alloc_places_have(b->places, address - b->moved);
}

bool allocator_is_stub(const char *name)
{
	/* Up to 24, and since. */
	static const char *const prefixes[] = {"_new_", "_multianewarray", "C1 Runtime ",
					       "C2 Runtime "};
	static const char suffix[] = " Runtime1 stub";
	size_t n = strlen(name), n_suffix = sizeof(suffix) - 1;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

/* ---- Blocks ---- */

static bool is_size(uint64_t bytes)
{
	return bytes > 0 && bytes <= MAX_BYTES;
}

/* One that is as likely picked as its size says; with a mean of 1 each is. */
static bool weigh(uint64_t bytes, uint64_t mean, struct picked_block *ret)
{
	if (!is_size(bytes))
		return false;
	ret->objects = mean > 1 ? 1 / -expm1(-(double)bytes / (double)mean) : 1;
	ret->bytes = (double)bytes * ret->objects;
	return true;
}

static bool read_go(const struct record *r, const uint64_t *args, const struct alloc_places *p,
		    struct picked_block *ret)
{
	uint64_t rate = GO_MEAN;

	(void)sample_fetched(r, &rate);
	ret->address = args[p->thread_first];
	ret->ends = true;
	/* The function begins anew when it has got a larger stack. */
	ret->maybe_again = true;
	return rate <= MAX_BYTES && weigh(args[p->thread_first + 1], rate, ret);
}

/* The first of a buffer stands for all that fits it. */
static bool read_hotspot(const uint64_t *args, bool in_buffer, struct picked_block *ret)
{
	uint64_t bytes = args[in_buffer ? 3 : 2], all = args[2];

	ret->address = args[1];
	if (!is_size(bytes) || all < bytes || all > MAX_BYTES)
		return false;
	ret->bytes = (double)all;
	ret->objects = (double)all / (double)bytes;
	return true;
}

bool allocator_read_picked(struct attribution *a, const struct record *r, struct picked_block *ret)
{
	const struct sample_options *o = &a->setup->events[r->index].options;
	uint64_t args[SAMPLE_N_ARGUMENTS];
	bool go;

	find_origin(a, r, ret);
	go = ret->places && ret->places->runtime == ALLOC_RUNTIME_GO;
	if (!sample_arguments(o, r, go, args))
		return false;
	if (go)
		return read_go(r, args, ret->places, ret);
	if (ret->places)
		return read_hotspot(args, r->sample.ip - ret->moved == ret->places->picked[0], ret);
	ret->address = args[0];
	ret->table = args[3];
	ret->ends = args[3] != 0;
	return args[2] >= MIN_MEAN && args[2] <= MAX_MEAN && weigh(args[1], args[2], ret);
}

bool allocator_read_ended(struct attribution *a, const struct record *r, uint64_t *ret_address,
			  bool *ret_undone)
{
	const struct sample_options *o = &a->setup->events[r->index].options;
	uint64_t args[SAMPLE_N_ARGUMENTS];
	struct picked_block b;
	bool go;

	find_origin(a, r, &b);
	go = b.places != NULL;
	if (!sample_arguments(o, r, go, args))
		return false;
	*ret_address = args[go];
	*ret_undone = !go && args[1];
	return true;
}
