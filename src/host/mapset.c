/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of one address space: an array sorted by start without overlaps, so that
 * a look-up is a binary search. A new mapping replaces what it covers, as mmap(2) with MAP_FIXED
 * does, and as the bss of a program does with the file mapping below it.
 *
 * Forks share a set by reference count, so a process of a fork bomb costs a pointer.
 */
#include <string.h>

#include "src/host/internal.h"
#include "util/bisect.h"

struct mapset *mapset_new(uint32_t max)
{
	struct mapset *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->n_refs = 1;
	set->maps.max = max;
	return set;
}

struct mapset *mapset_ref(struct mapset *set)
{
	if (set)
		set->n_refs++;
	return set;
}

struct mapset *mapset_unref(struct host *h, struct mapset *set)
{
	if (!set || --set->n_refs)
		return NULL;
	for (uint32_t i = 0; i < set->maps.n; i++)
		file_unref(h, set->maps.items[i].file);
	array_deinit(&set->maps);
	free(set);
	return NULL;
}

struct mapset *mapset_own(struct host *h, struct mapset *set)
{
	struct mapset *copy;
	uint32_t n = set->maps.n;

	if (set->n_refs == 1)
		return set;
	copy = mapset_new(set->maps.max);
	if (copy && n) {
		copy->maps.items = malloc(n * sizeof(*copy->maps.items));
		if (!copy->maps.items) {
			free(copy);
			copy = NULL;
		} else {
			memcpy(copy->maps.items, set->maps.items, n * sizeof(*copy->maps.items));
			copy->maps.n = copy->maps.cap = n;
			for (uint32_t i = 0; i < n; i++) {
				if (copy->maps.items[i].file)
					copy->maps.items[i].file->n_refs++;
			}
		}
	}
	mapset_unref(h, set);
	return copy;
}

/* The first mapping that ends after address. */
static uint32_t lower_bound(const struct mapset *set, uint64_t address)
{
	return bisect(set->maps.n, i, set->maps.items[i].end <= address);
}

uint32_t mapset_find(const struct mapset *set, uint64_t pc)
{
	uint32_t i = set ? lower_bound(set, pc) : 0;

	return set && i < set->maps.n && set->maps.items[i].start <= pc ? i : UINT32_MAX;
}

static void cut_front(struct host_mapping *m, uint64_t start)
{
	m->file_offset += start - m->start;
	m->start = start;
}

static void remove_range(struct host *h, struct mapset *set, uint32_t from, uint32_t to)
{
	struct host_mapping *items = set->maps.items;

	if (from == to)
		return;
	for (uint32_t i = from; i < to; i++)
		file_unref(h, items[i].file);
	memmove(&items[from], &items[to], (set->maps.n - to) * sizeof(*items));
	set->maps.n -= to - from;
}

static bool insert_at(struct mapset *set, uint32_t at, const struct host_mapping *m)
{
	struct host_mapping *items;

	if (!array_push(&set->maps))
		return false;
	items = set->maps.items;
	memmove(&items[at + 1], &items[at], (set->maps.n - 1 - at) * sizeof(*items));
	items[at] = *m;
	return true;
}

/* Empties [start, end); returns where a mapping of that range belongs. */
static uint32_t cut_range(struct host *h, struct mapset *set, uint64_t start, uint64_t end)
{
	uint32_t first = lower_bound(set, start), last;
	struct host_mapping *items = set->maps.items;

	if (first < set->maps.n && items[first].start < start) {
		struct host_mapping right = items[first];

		items[first].end = start;
		first++;
		if (right.end > end) {
			/* A hole in the middle: the right part becomes a mapping of its own. */
			cut_front(&right, end);
			if (!insert_at(set, first, &right))
				h->stats.refused_mappings++;
			else if (right.file)
				right.file->n_refs++;
			return first;
		}
	}
	for (last = first; last < set->maps.n && items[last].end <= end; last++)
		;
	if (last < set->maps.n && items[last].start < end)
		cut_front(&items[last], end);
	remove_range(h, set, first, last);
	return first;
}

/*
 * JIT memory is mapped and protected piece by piece; without a file the pieces become one mapping.
 */
static bool grow_neighbour(struct mapset *set, uint32_t at, const struct host_mapping *m)
{
	struct host_mapping *items = set->maps.items;

	if (m->kind != HOST_MAPPING_ANON)
		return false;
	if (at > 0 && items[at - 1].kind == HOST_MAPPING_ANON && items[at - 1].end == m->start) {
		items[at - 1].end = m->end;
		return true;
	}
	if (at < set->maps.n && items[at].kind == HOST_MAPPING_ANON && items[at].start == m->end) {
		items[at].start = m->start;
		return true;
	}
	return false;
}

bool mapset_insert(struct host *h, struct mapset *set, const struct host_mapping *m)
{
	uint32_t at = cut_range(h, set, m->start, m->end);

	if (grow_neighbour(set, at, m))
		return true;
	if (insert_at(set, at, m))
		return true;
	file_unref(h, m->file);
	h->stats.refused_mappings++;
	return false;
}
