/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting and splitting, against a model that keeps every page by itself. */
#include "tests/unit/test.h"

#include <stdbool.h>

#include "src/host/internal.h"
#include "util/cleanup.h"

#define N_PAGES 256
#define PAGE	0x1000u

/* What each page should show. */
struct page {
	bool mapped;
	uint8_t kind;
	struct host_file *file;
	uint64_t offset;
};

static const struct host_limits limits = {.max_mappings = 0};
static const struct host_source source = {.ctx = NULL};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void check_against(const struct mapset *set, const struct page *pages)
{
	for (uint32_t i = 1; i < set->maps.n; i++)
		CHECK(set->maps.items[i - 1].end <= set->maps.items[i].start);
	for (uint32_t i = 0; i < N_PAGES; i++) {
		uint64_t pc = (uint64_t)i * PAGE + 0x123;
		uint32_t at = mapset_find(set, pc);
		const struct host_mapping *m = &set->maps.items[at];

		CHECK_INT(at != UINT32_MAX, ==, pages[i].mapped);
		if (at == UINT32_MAX)
			continue;
		CHECK_INT(m->kind, ==, pages[i].kind);
		CHECK(m->file == pages[i].file);
		if (m->kind == HOST_MAPPING_FILE)
			CHECK_INT(m->file_offset + (pc - m->start), ==, pages[i].offset + 0x123);
	}
}

/* References of a file are the mappings that point at it. */
static void check_references(const struct mapset *a, const struct mapset *b,
			     struct host_file *const *files, size_t n)
{
	for (size_t f = 0; f < n; f++) {
		uint32_t count = 1; /* the test's own */

		for (uint32_t i = 0; i < a->maps.n; i++)
			count += a->maps.items[i].file == files[f];
		for (uint32_t i = 0; b && i < b->maps.n; i++)
			count += b->maps.items[i].file == files[f];
		CHECK_INT(files[f]->n_refs, ==, count);
	}
}

static void insert(struct host *h, struct mapset *set, struct page *pages, uint32_t first,
		   uint32_t n, struct host_file *file, uint64_t offset)
{
	struct host_mapping m = {
		.start = (uint64_t)first * PAGE,
		.end = (uint64_t)(first + n) * PAGE,
		.file_offset = offset,
		.file = file,
		.kind = file ? HOST_MAPPING_FILE : HOST_MAPPING_ANON,
	};

	if (file)
		file->n_refs++;
	CHECK(mapset_insert(h, set, &m));
	for (uint32_t i = 0; i < n; i++)
		pages[first + i] = (struct page){true, m.kind, file, offset + (uint64_t)i * PAGE};
}

static struct host *new_host(struct host_file **files, size_t n)
{
	struct host *h = NULL;

	CHECK_INT(host_new(&h, &source, &limits), ==, 0);
	for (size_t i = 0; i < n; i++) {
		struct host_file_key key = {1, 1, 1 + i, 1};

		files[i] = file_get(h, &key, "/file");
		CHECK(files[i]);
	}
	return h;
}

static void test_random_sequences(void)
{
	struct host_file *files[4];
	struct host *h = new_host(files, 4);
	uint64_t state = 88172645463325252;

	for (int round = 0; round < 200; round++) {
		struct mapset *set = mapset_new(100000), *shared = NULL;
		struct page pages[N_PAGES] = {0}, pages_then[N_PAGES] = {0};

		for (int i = 0; i < 100; i++) {
			uint32_t n = 1 + (uint32_t)(random_next(&state) % (i % 10 ? 12 : 120));
			uint32_t first = (uint32_t)(random_next(&state) % (N_PAGES - n));
			uint64_t k = random_next(&state) % 6;

			insert(h, set, pages, first, n, k < 4 ? files[k] : NULL,
			       (random_next(&state) % 64) * PAGE);
			check_against(set, pages);
			if (i == 50) {
				/* A fork: the other side must not change any more. */
				shared = mapset_ref(set);
				memcpy(pages_then, pages, sizeof(pages));
				set = mapset_own(h, set);
				CHECK(set && set != shared);
			}
		}
		check_against(shared, pages_then);
		check_references(set, shared, files, 4);
		mapset_unref(h, shared);
		check_references(set, NULL, files, 4);
		mapset_unref(h, set);
		for (int i = 0; i < 4; i++)
			CHECK_INT(files[i]->n_refs, ==, 1);
	}
	host_free(h);
}

/* A program's file mapping, then the bss over its end. */
static void test_bss_cuts_file(void)
{
	struct host_file *file;
	struct host *h = new_host(&file, 1);
	struct mapset *set = mapset_new(10);
	struct page pages[N_PAGES] = {0};

	insert(h, set, pages, 0, 10, file, 0);
	insert(h, set, pages, 8, 4, NULL, 0);
	CHECK_INT(set->maps.n, ==, 2);
	CHECK_INT(set->maps.items[0].end, ==, 8 * PAGE);
	/* A hole in the middle; two mappings of one file side by side stay two. */
	insert(h, set, pages, 2, 2, file, 0x100000);
	CHECK_INT(set->maps.n, ==, 4);
	CHECK_INT(set->maps.items[2].file_offset, ==, 4 * PAGE);
	check_against(set, pages);
	/* All covered. */
	insert(h, set, pages, 0, 20, NULL, 0);
	CHECK_INT(set->maps.n, ==, 1);
	CHECK_INT(file->n_refs, ==, 1);
	mapset_unref(h, set);
	host_free(h);
}

/* Code that grows piece by piece is one mapping. */
static void test_anonymous_neighbours(void)
{
	struct host *h = new_host(NULL, 0);
	struct mapset *set = mapset_new(10);
	struct page pages[N_PAGES] = {0};

	for (uint32_t i = 100; i < 200; i++)
		insert(h, set, pages, i, 1, NULL, 0);
	for (uint32_t i = 99; i > 50; i--)
		insert(h, set, pages, i, 1, NULL, 0);
	CHECK_INT(set->maps.n, ==, 1);
	check_against(set, pages);
	mapset_unref(h, set);
	host_free(h);
}

static void test_limit(void)
{
	struct host_file *file;
	struct host *h = new_host(&file, 1);
	struct mapset *set = mapset_new(3);
	struct page pages[N_PAGES] = {0};
	struct host_mapping m = {.start = 50 * PAGE, .end = 51 * PAGE, .file = file};

	insert(h, set, pages, 0, 10, file, 0);
	insert(h, set, pages, 20, 10, file, 0);
	insert(h, set, pages, 30, 10, file, 0);
	file->n_refs++;
	CHECK(!mapset_insert(h, set, &m));
	CHECK_INT(host_stats(h)->refused_mappings, ==, 1);
	/* Refused or not, what was there before is gone. */
	m.start = 4 * PAGE;
	m.end = 5 * PAGE;
	file->n_refs++;
	CHECK(!mapset_insert(h, set, &m));
	CHECK_INT(mapset_find(set, 4 * PAGE), ==, UINT32_MAX);
	check_references(set, NULL, &file, 1);
	mapset_unref(h, set);
	host_free(h);
}

int main(void)
{
	RUN(test_random_sequences);
	RUN(test_bss_cuts_file);
	RUN(test_anonymous_neighbours);
	RUN(test_limit);
	return 0;
}
