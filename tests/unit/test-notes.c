/* SPDX-License-Identifier: Apache-2.0 */
/* Notes as libelf reads them: generated areas, whole, cut and damaged. */
#include "config.h"

#include <elf.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>

#include "tests/unit/test.h"
#include "util/cursor.h"
#include "util/notes.h"

#define MAX_AREA 512

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void put(uint8_t *area, size_t *n, const void *bytes, size_t n_bytes, size_t align)
{
	memcpy(area + *n, bytes, n_bytes);
	*n += n_bytes;
	while (*n % align)
		area[(*n)++] = 0;
}

/* Up to four notes, some of them build ids. */
static size_t make_area(uint8_t *area, size_t align, uint64_t *state)
{
	static const char *const names[] = {"GNU", "Go", "stapsdt", "", "CORE"};
	size_t n = 0;

	for (uint32_t left = next_random(state) % 5; left > 0; left--) {
		const char *name = names[next_random(state) % 5];
		Elf64_Nhdr h = {.n_namesz = *name ? (uint32_t)strlen(name) + 1 : 0,
				.n_descsz = next_random(state) % 40,
				.n_type = next_random(state) % 5};
		uint8_t desc[40];

		for (size_t i = 0; i < sizeof(desc); i++)
			desc[i] = (uint8_t)next_random(state);
		memcpy(area + n, &h, sizeof(h));
		n += sizeof(h);
		put(area, &n, name, h.n_namesz, align);
		put(area, &n, desc, h.n_descsz, align);
	}
	return n;
}

/* Compares each note; how many there were. */
static unsigned int compare(uint8_t *area, size_t n, size_t align)
{
	Elf_Data data = {.d_buf = area,
			 .d_type = align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR,
			 .d_version = EV_CURRENT,
			 .d_size = n};
	struct cursor c = cursor_make(area, n);
	struct note note;
	GElf_Nhdr h;
	size_t at = 0, name, desc;
	unsigned int n_notes = 0;

	while ((at = gelf_getnote(&data, at, &h, &name, &desc)) > 0) {
		CHECK(notes_next(&c, align, &note));
		CHECK_INT(note.type, ==, h.n_type);
		CHECK_INT(note.n_desc, ==, h.n_descsz);
		CHECK_INT(note.desc - area, ==, desc);
		CHECK_INT(note.name - (char *)area, ==, name);
		CHECK_INT(note.n_name, ==, strnlen((char *)area + name, h.n_namesz));
		n_notes++;
	}
	CHECK(!notes_next(&c, align, &note));
	return n_notes;
}

static void test_as_libelf(void)
{
	uint64_t state = 1;
	unsigned int n_notes = 0;

	for (int i = 0; i < 20000; i++) {
		uint8_t area[MAX_AREA];
		size_t align = i & 1 ? 8 : 4, n = make_area(area, align, &state);

		n_notes += compare(area, n, align);
		/* libelf wants the padding of the last note, too. */
		if (n > 0)
			n_notes += compare(area, next_random(&state) % n & ~(align - 1), align);
		for (int k = 0; k < 3 && n > 0; k++) {
			area[next_random(&state) % n] = (uint8_t)next_random(&state);
			n_notes += compare(area, n, align);
		}
	}
	CHECK_INT(n_notes, >, 100000);
}

static void test_build_id(void)
{
	uint8_t area[MAX_AREA] = {0};
	Elf64_Nhdr h = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	const uint8_t *id = NULL;
	size_t n = 0;

	CHECK_INT(notes_find_build_id(area, 0, 4, 20, &id), ==, 0);
	memcpy(area, &h, sizeof(h));
	n = sizeof(h);
	put(area, &n, "GNU", 4, 4);
	put(area, &n, "abcdefghijklmnopqrst", 20, 4);
	CHECK_INT(notes_find_build_id(area, n, 4, 20, &id), ==, 20);
	CHECK(id == area + 16);
	CHECK_INT(notes_find_build_id(area, n, 4, 19, &id), ==, 0);
	CHECK_INT(notes_find_build_id(area, n - 1, 4, 20, &id), ==, 0);
	area[12] = 'g';
	CHECK_INT(notes_find_build_id(area, n, 4, 20, &id), ==, 0);
}

int main(void)
{
	RUN(test_as_libelf);
	RUN(test_build_id);
	return 0;
}
