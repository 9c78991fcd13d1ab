/* SPDX-License-Identifier: Apache-2.0 */
/* What all walkers stand on: reads within a budget, and exported symbols of a mapped library. */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtimes/image.h"
#include "runtimes/trampoline.h"
#include "tests/unit/test.h"

static unsigned int n_read;
static uint64_t nobodys = UINT64_MAX;

/* Our own memory, of which the first page is nobody's, and all from an address on. */
static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	n_read++;
	if (address < 4096 || address + n > nobodys)
		return false;
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static struct memory own(uint32_t reads, uint64_t bytes)
{
	return (struct memory){read_own, NULL, reads, bytes};
}

static void test_budget(void)
{
	const uint64_t word = UINT64_C(0x1122334455667788);
	uint64_t at = (uint64_t)(uintptr_t)&word, v;
	uint8_t much[93];
	struct memory m = own(2, 100);

	CHECK_INT(memory_u64(&m, at), ==, word);
	CHECK_INT(m.reads_left, ==, 1);
	CHECK_INT(m.bytes_left, ==, 92);
	CHECK(!memory_read(&m, at, much, sizeof(much)));
	CHECK_INT(m.reads_left, ==, 1);
	v = 1;
	CHECK(!memory_read(&m, 8, &v, sizeof(v)));
	CHECK_INT(v, ==, 0);
	CHECK_INT(memory_u64(&m, at), ==, 0);
	m = own(1, 100);
	CHECK(!memory_read(&m, UINT64_MAX - 3, &v, sizeof(v)));
}

static void test_text(void)
{
	/* Read in whole lines of 64 bytes, which no page's end is in. */
	char text[256] __attribute__((aligned(64))), got[256];
	struct memory m = own(100, 10000);

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t at = 0; at < 130; at++) {
		CHECK(memory_text(&m, (uint64_t)(uintptr_t)(text + at), got, sizeof(got)));
		CHECK_STR(got, text + at);
		m.reads_left = 100;
		m.bytes_left = 10000;
	}
	CHECK(memory_text(&m, (uint64_t)(uintptr_t)text, got, 10));
	CHECK_STR(got, "aaaaaaaaa");
	CHECK(!memory_text(&m, 10, got, 10));
}

static void test_pages(void)
{
	static uint8_t bytes[75 * 4096] __attribute__((aligned(4096)));
	struct memory m = own(1000, UINT64_MAX);
	struct memory_pages *p = memory_pages_new(&m);
	uint8_t got[5000];
	unsigned int before;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	for (size_t at = 0; at + sizeof(got) < sizeof(bytes); at += 4093) {
		CHECK(memory_read(memory_of_pages(p), (uint64_t)(uintptr_t)(bytes + at), got,
				  sizeof(got)));
		CHECK(memcmp(got, bytes + at, sizeof(got)) == 0);
	}
	before = n_read;
	CHECK(memory_read(memory_of_pages(p), (uint64_t)(uintptr_t)bytes + 200000, got, 8));
	CHECK(memory_read(memory_of_pages(p), (uint64_t)(uintptr_t)bytes + 200008, got, 8));
	CHECK_INT(n_read, <=, before + 1);
	CHECK(!memory_read(memory_of_pages(p), 100, got, 8));
	free(p);
}

struct library {
	const char *name;
	uint64_t base;
};

static int find_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct library *l = ctx;

	if (!strstr(info->dlpi_name, l->name))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_offset == 0)
			l->base = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	}
	return 1;
}

/* The loader is the oracle. */
static void test_symbols(void)
{
	static const char *const names[] = {"environ", "optarg", "getenv", "qsort", "strtol"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct library l = {"libc.so", 0};
	struct memory m = own(100000, UINT64_MAX);
	struct image i, by_hash;

	(void)dl_iterate_phdr(find_library, &l);
	if (!l.base || !libc) /* linked in another way */
		return;
	CHECK(image_open(&i, &m, l.base));
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		CHECK_INT(image_symbol(&i, names[k]), ==,
			  (uint64_t)(uintptr_t)dlsym(libc, names[k]));
	CHECK_INT(image_symbol(&i, "no_such_symbol"), ==, 0);
	CHECK_INT(image_symbol(&i, ""), ==, 0);
	/* Both kinds of table, where there are both. */
	by_hash = i;
	by_hash.gnu_hash = 0;
	if (i.hash)
		CHECK_INT(image_symbol(&by_hash, "getenv"), ==, image_symbol(&i, "getenv"));
	CHECK(!image_open(&i, &m, l.base + 8));
	CHECK(!image_open(&i, &m, 64));
	(void)dlclose(libc);
}

#ifdef __x86_64__
enum { NO_PLACE = -1, SAVES_FP = 16 };

/*
 * One of CPython's trampolines begins a page, and others follow, to the end of the memory. words:
 * of each byte of it, the words on the stack up to the return address.
 */
static void check_trampoline(const uint8_t *code, const int *words, size_t n)
{
	uint64_t stack[2] = {0x1111, 0x2222};
	const struct runtime_stack copy = {(const uint8_t *)stack, 0x7000, sizeof(stack), NULL};
	uint8_t *page = aligned_alloc(4096, 4096);
	struct memory m = own(20000, 1 << 20);

	CHECK(page != NULL);
	memset(page, 0x90, 4096);
	for (size_t i = 0; i < 4096; i += 16)
		memcpy(page + i, code, i != 64 ? n : 0);
	nobodys = (uint64_t)(uintptr_t)page + 4096;
	for (size_t i = 0; i < 4096; i++) {
		size_t at = i % 16;
		int place = i / 16 != 4 && at < n ? words[at] : NO_PLACE, up = place % SAVES_FP;
		struct runtime_regs regs = {.pc = (uint64_t)(uintptr_t)page + i,
					    .sp = 0x7000,
					    .fp = 0x3333,
					    .innermost = true};

		if (place == NO_PLACE) {
			CHECK_INT(trampoline_step(&m, &copy, &regs), ==, RUNTIME_NOT_MINE);
			continue;
		}
		CHECK_INT(trampoline_step(&m, &copy, &regs), ==, RUNTIME_STEP);
		CHECK_INT(regs.pc, ==, stack[up]);
		CHECK_INT(regs.sp, ==, 0x7000 + 8 * (up + 1));
		CHECK_INT(regs.fp, ==, place >= SAVES_FP ? stack[0] : 0x3333);
		/* Nothing returns to where there is no frame. */
		regs = (struct runtime_regs){.pc = (uint64_t)(uintptr_t)page + i, .sp = 0x7000};
		CHECK_INT(trampoline_step(&m, &copy, &regs), ==,
			  place == 0 ? RUNTIME_NOT_MINE : RUNTIME_STEP);
	}
	nobodys = UINT64_MAX;
	free(page);
}

static void test_trampolines(void)
{
	/* sub rsp, 8; call rcx; add rsp, 8; ret */
	static const uint8_t before_3_14[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
					      0x48, 0x83, 0xc4, 0x08, 0xc3};
	static const int words[] = {0, -1, -1, -1, 1, -1, 1, -1, -1, -1, 0};
	/* endbr64; push rbp; mov rbp, rsp; call rcx; pop rbp; ret */
	static const uint8_t since_3_14[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48,
					     0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
	static const int words_3_14[] = {0,  -1,	   -1, -1,	     0, SAVES_FP + 1, -1,
					 -1, SAVES_FP + 1, -1, SAVES_FP + 1, 0};

	check_trampoline(before_3_14, words, sizeof(before_3_14));
	check_trampoline(since_3_14, words_3_14, sizeof(since_3_14));
}
#endif

int main(void)
{
	RUN(test_budget);
	RUN(test_text);
	RUN(test_pages);
	RUN(test_symbols);
#ifdef __x86_64__
	RUN(test_trampolines);
#endif
	return 0;
}
