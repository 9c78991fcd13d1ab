/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/alloc-place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/arch.h"
#include "symbolize/elf-image.h"
#include "symbolize/go-table.h"
#include "symbolize/probe-place.h"
#include "util/go-module.h"

#define MAX_GO_BYTES	   (UINT64_C(64) << 20)
#define MAX_INFO_BYTES	   (UINT64_C(1) << 20)
#define INFO_VERSION	   32 /* offset of the version's length, from 1.18 on */
#define THREAD_FIRST_MINOR 23
#define FIRST_RATE	   (UINT64_C(512) << 10) /* what runtime.MemProfileRate is at the start */
#define MAX_CODE_BYTES	   1024

/* ---- Go ---- */

/* 1.N; what does not say so is of a later day. */
static unsigned int go_minor(const struct elf_image *im)
{
	static const char prefix[] = "go1.";
	const struct elf_section *s = elf_image_find(im, GO_MODULE_MARK);
	size_t n_prefix = sizeof(prefix) - 1;
	struct elf_bytes b = {0};
	unsigned int minor = UINT32_MAX;
	char text[16] = "";

	if (!s || elf_image_bytes(im, s, MAX_INFO_BYTES, &b) < 0)
		return minor;
	if (b.n > INFO_VERSION + sizeof(text))
		memcpy(text, b.data + INFO_VERSION + 1, sizeof(text) - 1);
	if (strncmp(text, prefix, n_prefix) == 0)
		minor = (unsigned int)strtoul(text + n_prefix, NULL, 10);
	elf_bytes_release(&b);
	return minor;
}

static void take_code(struct go_table *t, const struct elf_image *im, struct alloc_places *ret)
{
	static const char *const runtime[] = {"runtime.", "internal/runtime/", NULL};
	struct go_code code[ALLOC_PLACES_CODE];
	uint32_t n = go_table_code(t, runtime, code, ARRAY_SIZE(code));

	for (uint32_t i = 0; i < n; i++) {
		struct alloc_code *c = &ret->code[ret->n_code];

		if (!elf_image_offset(im, code[i].start, PF_X, &c->start))
			continue;
		c->end = c->start + (code[i].end - code[i].start);
		ret->n_code++;
	}
}

static bool is_first_rate(const struct elf_image *im, uint64_t address)
{
	uint64_t offset, value;

	return elf_image_offset(im, address, PF_W, &offset) &&
	       elf_image_read(im, offset, &value, sizeof(value)) == 0 && value == FIRST_RATE;
}

/* The variable has no name in a stripped program: profilealloc() reads it, and another one that
 * begins as nothing. */
static uint64_t find_rate(struct go_table *t, const struct elf_image *im)
{
	static const char *const reader[] = {"runtime.profilealloc", NULL};
	const struct arch *arch = arch_find(im->machine);
	uint8_t bytes[MAX_CODE_BYTES];
	struct go_code code;
	uint64_t offset, n;

	if (!arch || !arch->load || go_table_code(t, reader, &code, 1) != 1 ||
	    !elf_image_offset(im, code.start, PF_X, &offset))
		return 0;
	n = code.end - code.start < sizeof(bytes) ? code.end - code.start : sizeof(bytes);
	if (elf_image_read(im, offset, bytes, n) < 0)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t address = arch->load(bytes + i, n - i, code.start + i);

		if (address && is_first_rate(im, address))
			return address - code.start + offset;
	}
	return 0;
}

static bool place_in_go(struct go_table *t, const struct elf_image *im, struct alloc_places *ret)
{
	uint64_t picked, ended;

	if (!go_table_address(t, "runtime.mProf_Malloc", &picked) ||
	    !go_table_address(t, "runtime.freeSpecial", &ended) ||
	    !elf_image_offset(im, picked, PF_X, &ret->picked[0]) ||
	    !elf_image_offset(im, ended, PF_X, &ret->ended))
		return false;
	ret->n_picked = 1;
	ret->rate = find_rate(t, im);
	take_code(t, im, ret);
	return true;
}

static int find_in_go(int fd, struct alloc_places *ret)
{
	struct elf_image im = ELF_IMAGE_INIT;
	struct go_table *t = NULL;
	int r = elf_image_open_fd(&im, fd);

	if (r < 0)
		return r == -ENOEXEC ? -ENOENT : r;
	if (elf_image_find(&im, GO_MODULE_MARK))
		r = go_table_new(&t, &im, MAX_GO_BYTES);
	if (r == 0)
		r = t && place_in_go(t, &im, ret) ? 0 : -ENOENT;
	ret->thread_first = r == 0 && go_minor(&im) >= THREAD_FIRST_MINOR;
	go_table_free(t);
	elf_image_close(&im);
	return r > 0 ? -ENOENT : r;
}

/* ---- HotSpot ---- */

static bool find_one(int fd, const char *const *names, uint64_t *ret)
{
	struct probe_place places[PROBE_PLACES_MAX];

	for (; *names; names++) {
		if (probe_find_places(fd, *names, false, NULL, NULL, places, NULL, 0) == 1) {
			*ret = places[0].offset;
			return true;
		}
	}
	return false;
}

static int find_in_hotspot(int fd, struct alloc_places *ret)
{
	/* Since 17, 15 and 11. */
	static const char *const in_buffer[] = {
		"_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP10"
		"JavaThread",
		"_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP6Thread",
		"_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassP8HeapWordmmP6Thread", NULL};
	static const char *const outside[] = {
		"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP10"
		"JavaThread",
		"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP6Thread",
		"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassP8HeapWordmP6Thread", NULL};

	if (!find_one(fd, in_buffer, &ret->picked[0]) || !find_one(fd, outside, &ret->picked[1]))
		return -ENOENT;
	ret->n_picked = 2;
	ret->code[0].end = UINT64_MAX;
	ret->n_code = 1;
	return 0;
}

int alloc_places_find(int fd, const char *path, struct alloc_places *ret)
{
	const char *slash = strrchr(path, '/');
	bool hotspot = strcmp(slash ? slash + 1 : path, "libjvm.so") == 0;
	struct alloc_places found = {.runtime = hotspot ? ALLOC_RUNTIME_HOTSPOT : ALLOC_RUNTIME_GO};
	int r = hotspot ? find_in_hotspot(fd, &found) : find_in_go(fd, &found);

	if (r == 0)
		*ret = found;
	return r;
}

bool alloc_places_have(const struct alloc_places *p, uint64_t offset)
{
	for (uint32_t i = 0; i < p->n_code; i++) {
		if (offset >= p->code[i].start && offset < p->code[i].end)
			return true;
	}
	return false;
}
