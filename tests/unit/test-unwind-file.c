/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: what is read of a file, where CFI may be, and files that are damaged or change. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/unit/test.h"
#include "tests/unit/unwind-elf.h"
#include "unwind/internal.h"

static struct unwinder *new_unwinder(const struct unwind_limits *limits)
{
	struct unwinder *u = NULL;

	CHECK_INT(unwinder_new(&u, limits), ==, 0);
	return u;
}

static int memory_file(const void *data, size_t n)
{
	int fd = memfd_create("module", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, data, n), ==, n);
	return fd;
}

static struct unwind_module *module_of(struct unwinder *u, const struct bytes *image)
{
	struct unwind_module *m = NULL;
	_cleanup_close_ int fd = memory_file(image->data, image->n);

	CHECK_INT(unwind_module_new_fd(&m, u, fd, "test"), ==, 0);
	return m;
}

/* A file of these segments and a note, nothing else. */
static size_t make_headers(uint8_t *buf, const Elf64_Phdr *ph, unsigned int n)
{
	Elf64_Ehdr eh = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)n,
	};

	memcpy(buf, &eh, sizeof(eh));
	memcpy(buf + sizeof(eh), ph, n * sizeof(*ph));
	return sizeof(eh) + n * sizeof(*ph);
}

static void test_bias(void)
{
	/* As lld and mold lay out: p_vaddr - p_offset grows, segments share file pages, 2 MiB
	 * aligned. */
	const Elf64_Phdr ph[] = {
		{PT_LOAD, PF_R, 0, 0, 0, 0x1700, 0x1700, 0x200000},
		{PT_LOAD, PF_R | PF_X, 0x1700, 0x202700, 0, 0x5000, 0x5000, 0x200000},
		{PT_LOAD, PF_R | PF_W, 0x6700, 0x408700, 0, 0x100, 0x9000, 0x200000},
	};
	struct unwinder *u = new_unwinder(NULL);
	struct unwind_module *m = NULL;
	uint64_t bias, start, limit, offset;
	uint8_t buf[4096];
	size_t n_id, n = make_headers(buf, ph, 3);

	CHECK_INT(unwind_module_new_memory(&m, u, buf, n, "bias"), ==, 0);
	/* The code is mapped from the page that holds offset 0x1700: it begins at 0x202000. */
	CHECK(unwind_module_bias(m, 0x7f0000202000, 0x1000, &bias));
	CHECK_INT(bias, ==, 0x7f0000000000);
	/* A later part of it, split off by mprotect. */
	CHECK(unwind_module_bias(m, 0x7f0000204000, 0x3000, &bias));
	CHECK_INT(bias, ==, 0x7f0000000000);
	/* The page that code and data share: the code is meant. */
	CHECK(unwind_module_bias(m, 0x7f0000207000, 0x6000, &bias));
	CHECK_INT(bias, ==, 0x7f0000000000);
	CHECK(!unwind_module_bias(m, 0x7f0000207000, 0x7000, &bias));
	unwind_module_text(m, &start, &limit, &offset);
	CHECK_INT(start, ==, 0x202700);
	CHECK_INT(limit, ==, 0x207700);
	CHECK_INT(offset, ==, 0x1700);
	(void)unwind_module_build_id(m, &n_id);
	CHECK_INT(n_id, ==, 0);
	unwind_module_free(m);
	unwinder_free(u);
}

/* Numbers near those of an honest file, or far from them; always the same. */
static uint64_t odd_number(uint64_t *seed)
{
	static const uint64_t odd[] = {0,	   1,	      0xfff,	  0x1000,    0x202700,
				       0xffffffff, INT64_MAX, UINT64_MAX, 1ULL << 63};

	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return odd[*seed >> 33 & 7] + (*seed >> 40 & 1 ? 0 : *seed >> 41 & 0x3fff);
}

/* The model: where is it, by the headers? */
static bool in_code(const Elf64_Phdr *ph, uint64_t address)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (int i = 0; i < 3; i++) {
		if (!(ph[i].p_flags & PF_X) || ph[i].p_memsz == 0)
			continue;
		low = ph[i].p_vaddr < low ? ph[i].p_vaddr : low;
		high = ph[i].p_vaddr + ph[i].p_memsz > high ? ph[i].p_vaddr + ph[i].p_memsz : high;
	}
	return high == 0 || (address >= low && address < high);
}

/* A mapping is divided where its code begins and ends, in all of its addresses. */
static void check_division(const struct unwind_module *m, const Elf64_Phdr *ph, uint64_t *seed)
{
	const uint64_t first = 0x7f0000000000, last = first + 0x8000;
	uint64_t bias = first - odd_number(seed), at = first, start, end;

	while (at < last) {
		bool inside;

		start = first;
		end = last;
		inside = unwind_module_has_text(m, bias, at, &start, &end);
		CHECK_INT(start, ==, at);
		CHECK_INT(end, >, at);
		CHECK_INT(end, <=, last);
		for (uint64_t pc = at; pc < end; pc++)
			CHECK(in_code(ph, pc - bias) == inside);
		CHECK(end == last || in_code(ph, end - bias) != inside);
		at = end;
	}
}

/* Headers that lie about where their code is. */
static void test_damaged_headers(void)
{
	struct unwinder *u = new_unwinder(NULL);
	uint64_t seed = 1, n_read = 0, n_divided = 0;
	uint8_t buf[4096];

	for (int i = 0; i < 3000; i++) {
		struct unwind_module *m = NULL;
		Elf64_Phdr ph[3];
		uint64_t start = 0, end = 0x8000;
		size_t n;

		for (int k = 0; k < 3; k++) {
			uint64_t size = odd_number(&seed);

			ph[k] = (Elf64_Phdr){.p_type = PT_LOAD,
					     .p_flags = odd_number(&seed) & 2 ? PF_X : PF_R,
					     .p_offset = odd_number(&seed),
					     .p_vaddr = odd_number(&seed),
					     .p_memsz = size};
			ph[k].p_filesz = size & 1 ? size : size / 2;
		}
		n = make_headers(buf, ph, 3);
		if (unwind_module_new_memory(&m, u, buf, n, "damaged") < 0)
			continue;
		check_division(m, ph, &seed);
		n_divided += !unwind_module_has_text(m, 0, 0, &start, &end) || end < 0x8000;
		n_read++;
		unwind_module_free(m);
	}
	CHECK_INT(n_read, >, 300);
	CHECK_INT(n_divided, >, 100);
	unwinder_free(u);
}

static void test_build_id(void)
{
	static const uint8_t notes[] = {4,   0,	  0, 0, 4, 0, 0,   0,	1,   0, 0, 0, 'G',
					'N', 'U', 0, 9, 9, 9, 9,   4,	0,   0, 0, 3, 0,
					0,   0,	  3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3};
	Elf64_Phdr ph[] = {
		{PT_LOAD, PF_R | PF_X, 0, 0, 0, 0x1000, 0x1000, 0x1000},
		{PT_NOTE, PF_R, 0x200, 0x200, 0, sizeof(notes), sizeof(notes), 4},
	};
	struct unwinder *u = new_unwinder(NULL);
	struct unwind_module *m = NULL;
	uint8_t buf[4096] = {0};
	const uint8_t *id;
	size_t n;

	(void)make_headers(buf, ph, 2);
	memcpy(buf + 0x200, notes, sizeof(notes));
	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "id"), ==, 0);
	id = unwind_module_build_id(m, &n);
	CHECK_INT(n, ==, 3);
	CHECK(memcmp(id, "\1\2\3", 3) == 0);
	m = unwind_module_free(m);

	/* A length that reaches beyond the notes. */
	buf[0x200 + 20 + 4] = 0xff;
	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "id"), ==, 0);
	(void)unwind_module_build_id(m, &n);
	CHECK_INT(n, ==, 0);
	unwind_module_free(m);
	unwinder_free(u);
}

static void test_not_elf(void)
{
	Elf64_Phdr ph[] = {{PT_LOAD, PF_R | PF_X, 0, 0, 0, 0x1000, 0x1000, 0x1000}};
	struct unwinder *u = new_unwinder(NULL);
	struct unwind_module *m = NULL;
	uint8_t buf[4096] = {0};
	int fds[2];

	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "zeros"), ==, -ENOEXEC);
	CHECK_INT(unwind_module_new_memory(&m, u, buf, 0, "empty"), ==, -ENOEXEC);
	for (size_t n = 0; n < make_headers(buf, ph, 1); n += 7)
		CHECK_INT(unwind_module_new_memory(&m, u, buf, n, "cut"), ==, -ENOEXEC);
	buf[EI_CLASS] = ELFCLASS32;
	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "32 bit"), ==, -ENOEXEC);
	ph[0].p_vaddr = UINT64_MAX - 0x800;
	(void)make_headers(buf, ph, 1);
	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "wraps"), ==, -ENOEXEC);
	ph[0].p_vaddr = 0;
	ph[0].p_memsz = UINT64_C(1) << 40;
	(void)make_headers(buf, ph, 1);
	CHECK_INT(unwind_module_new_memory(&m, u, buf, sizeof(buf), "huge"), ==, -ENOEXEC);
	CHECK_INT(pipe(fds), ==, 0);
	CHECK_INT(unwind_module_new_fd(&m, u, fds[0], "a pipe"), ==, -ENOEXEC);
	CHECK(m == NULL);
	unwinder_free(u);
}

/* The test program itself with and without section headers: the same rows everywhere. */
static void test_no_section_headers(void)
{
	struct unwinder *u = new_unwinder(NULL);
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_module *with = NULL, *without = NULL;
	uint64_t start, limit, offset, covered = 0;
	Elf64_Ehdr eh;
	struct stat st;
	uint8_t *copy;
	int fd;

	CHECK_INT(fstat(exe, &st), ==, 0);
	copy = malloc((size_t)st.st_size);
	CHECK_INT(pread(exe, copy, (size_t)st.st_size, 0), ==, st.st_size);
	memcpy(&eh, copy, sizeof(eh));
	eh.e_shoff = 0;
	eh.e_shnum = eh.e_shstrndx = 0;
	memcpy(copy, &eh, sizeof(eh));
	fd = memory_file(copy, (size_t)st.st_size);
	CHECK_INT(unwind_module_new_fd(&with, u, exe, "with"), ==, 0);
	CHECK_INT(unwind_module_new_fd(&without, u, fd, "without"), ==, 0);
	unwind_module_text(with, &start, &limit, &offset);
	for (uint64_t pc = start; pc < limit; pc += 13) {
		struct row a, b;

		cfi_compile_row(with, pc, &a);
		cfi_compile_row(without, pc, &b);
		/* .init and .plt are known by their section headers only. */
		if (a.rule.kind == RULE_SP && b.rule.kind == RULE_GUESS_FP)
			continue;
		CHECK_INT(a.rule.kind, ==, b.rule.kind);
		CHECK_INT(a.rule.cfa_offset, ==, b.rule.cfa_offset);
		CHECK_INT(a.rule.fp_words, ==, b.rule.fp_words);
		covered += b.rule.kind == RULE_SP || b.rule.kind == RULE_FP;
	}
	CHECK_INT(covered, >, 100);
	unwind_module_free(with);
	unwind_module_free(without);
	close(fd);
	free(copy);
	unwinder_free(u);
}

/* .debug_frame */

static const uint8_t body_code[] = {0x44, 0x0e, 32, 0x86, 3}; /* at +4: CFA rsp+32, rbp at CFA-24 */

static void make_debug_frame(struct bytes *b)
{
	size_t cie;

	b->n = 0;
	cie = elf_cie(b, 1, 0);
	/* Out of order, as .debug_frame may be. */
	elf_fde(b, 1, cie, ELF_TEXT + 0x200, 0x80, body_code, sizeof(body_code));
	elf_fde(b, 1, cie, ELF_TEXT + 0x100, 0x80, body_code, sizeof(body_code));
}

static void check_debug_rows(struct unwind_module *m, bool there)
{
	struct row row;

	cfi_compile_row(m, ELF_TEXT + 0x110, &row);
	CHECK_INT(row.rule.kind, ==, there ? RULE_SP : RULE_GUESS_FP);
	if (!there)
		return;
	CHECK_INT(row.rule.cfa_offset, ==, 32);
	CHECK_INT(row.rule.fp_words, ==, -3);
	CHECK_INT(row.start, ==, 0x104);
	CHECK_INT(row.end, ==, 0x180);
	cfi_compile_row(m, ELF_TEXT + 0x202, &row);
	CHECK_INT(row.rule.cfa_offset, ==, 8);
	CHECK_INT(row.start, ==, 0x200);
	CHECK_INT(row.end, ==, 0x204);
	cfi_compile_row(m, ELF_TEXT + 0x190, &row);
	CHECK_INT(row.rule.kind, ==, RULE_GUESS_FP);
	CHECK_INT(row.start, ==, 0x180);
	CHECK_INT(row.end, ==, 0x200);
}

static void check_debug_frame(const struct bytes *section, uint64_t flags, const char *name,
			      const struct unwind_limits *limits, bool there)
{
	static struct bytes image;
	struct unwinder *u = new_unwinder(limits);
	struct unwind_module *m;

	elf_make(&image, &(struct elf_spec){
				 .debug_frame = section, .debug_flags = flags, .debug_name = name});
	m = module_of(u, &image);
	check_debug_rows(m, there);
	unwind_module_free(m);
	CHECK_INT(unwinder_stats(u)->row_bytes, ==, 0);
	unwinder_free(u);
}

static void compress_into(struct bytes *to, const struct bytes *from)
{
	uLongf n = sizeof(to->data) - to->n;

	CHECK_INT(compress(to->data + to->n, &n, from->data, from->n), ==, Z_OK);
	to->n += n;
}

static void test_debug_frame(void)
{
	static struct bytes plain, packed;
	struct unwind_limits small = UNWIND_LIMITS_DEFAULT;
	Elf64_Chdr ch = {.ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 1};

	make_debug_frame(&plain);
	check_debug_frame(&plain, 0, NULL, NULL, true);

	ch.ch_size = plain.n;
	bytes_put(&packed, &ch, sizeof(ch));
	compress_into(&packed, &plain);
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, NULL, true);
	/* The limit is obeyed; so is what the header promises. */
	small.max_inflate_bytes = plain.n - 1;
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, &small, false);
	small.max_inflate_bytes = plain.n;
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, &small, true);
	small.max_row_bytes = 64;
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, &small, false);
	ch.ch_size = UINT64_C(2) << 30;
	memcpy(packed.data, &ch, sizeof(ch));
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, NULL, false);
	ch.ch_size = plain.n + 100;
	memcpy(packed.data, &ch, sizeof(ch));
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, NULL, false);
	ch.ch_size = plain.n;
	memcpy(packed.data, &ch, sizeof(ch));
	packed.n -= 10;
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, NULL, false);
	ch.ch_type = 2; /* zstd */
	memcpy(packed.data, &ch, sizeof(ch));
	check_debug_frame(&packed, SHF_COMPRESSED, NULL, NULL, false);

	packed.n = 0;
	bytes_put(&packed, "ZLIB\0\0\0\0\0\0", 10);
	bytes_u8(&packed, (unsigned int)(plain.n >> 8));
	bytes_u8(&packed, (unsigned int)(plain.n & 0xff));
	compress_into(&packed, &plain);
	check_debug_frame(&packed, 0, ".zdebug_frame", NULL, true);
}

/* .eh_frame without .eh_frame_hdr is searched through an index; .eh_frame goes before .debug_frame.
 */
static void test_index(void)
{
	static struct bytes eh, debug, image;
	struct unwinder *u = new_unwinder(NULL);
	struct unwind_module *m;
	struct row row;
	size_t cie;

	eh.n = 0;
	cie = elf_cie(&eh, 0, 0);
	for (int i = 99; i >= 0; i--)
		elf_fde(&eh, 0, cie, ELF_TEXT + 0x1000 + (uint64_t)i * 64, 60, NULL, 0);
	make_debug_frame(&debug);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh, .debug_frame = &debug});
	m = module_of(u, &image);
	for (uint32_t i = 0; i < 100; i++) {
		cfi_compile_row(m, ELF_TEXT + 0x1000 + i * 64 + 59, &row);
		CHECK_INT(row.rule.kind, ==, RULE_SP);
		CHECK_INT(row.start, ==, 0x1000 + i * 64);
		CHECK_INT(row.end, ==, 0x1000 + i * 64 + 60);
		cfi_compile_row(m, ELF_TEXT + 0x1000 + i * 64 + 60, &row);
		CHECK_INT(row.rule.kind, ==, RULE_GUESS_FP);
	}
	check_debug_rows(m, true);
	unwind_module_free(m);
	unwinder_free(u);
}

/* A file that is cut while it is mapped is an outcome, and only for that file. */
struct one_module {
	struct unwind_module *m;
};

static bool find_one(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	const struct one_module *one = ctx;

	*ret = (struct unwind_mapping){ELF_TEXT, ELF_TEXT + ELF_TEXT_SIZE, 0, one->m, 7, false};
	return pc >= ret->start && pc < ret->end;
}

static enum unwind_outcome walk_at(struct unwinder *u, struct unwind_module *m, uint64_t pc,
				   const uint64_t *stack, size_t n_words, size_t *ret_n)
{
	static struct unwind_frame frames[64];
	struct one_module one = {m};
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};

	regs.r[ARCH_REG_PC] = pc;
	regs.r[ARCH_REG_SP] = 0x7ffd00000000;
	return unwind_walk(u, &regs, (const uint8_t *)stack, n_words * 8, find_one, &one, frames,
			   64, ret_n);
}

static void test_truncated_file(void)
{
	static struct bytes eh, image;
	struct unwinder *u = new_unwinder(NULL);
	struct unwind_module *m = NULL;
	const uint64_t stack[] = {ELF_TEXT + 0x105, 0};
	size_t cie, n;
	int fd;

	eh.n = 0;
	cie = elf_cie(&eh, 0, 0);
	elf_fde(&eh, 0, cie, ELF_TEXT + 0x100, 0x80, NULL, 0);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh});
	fd = memory_file(image.data, image.n);
	CHECK_INT(unwind_module_new_fd(&m, u, fd, "shrinks"), ==, 0);
	CHECK_INT(ftruncate(fd, 0), ==, 0);
	CHECK_INT(walk_at(u, m, ELF_TEXT + 0x110, stack, 2, &n), ==, UNWIND_NO_FILE);
	CHECK_INT(n, ==, 1);
	CHECK_INT(walk_at(u, m, ELF_TEXT + 0x110, stack, 2, &n), ==, UNWIND_NO_FILE);
	unwind_module_free(m);

	/* A whole one works beside it. */
	m = module_of(u, &image);
	CHECK_INT(walk_at(u, m, ELF_TEXT + 0x110, stack, 2, &n), ==, UNWIND_COMPLETE);
	CHECK_INT(n, ==, 2);
	unwind_module_free(m);
	close(fd);
	unwinder_free(u);
}

static bool find_anywhere(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	struct unwind_module *m = ctx;

	*ret = (struct unwind_mapping){m->base, m->base + m->span, 0, m, 0, false};
	return pc >= ret->start && pc < ret->end;
}

/* Rows stay in their budget, and what was thrown out is made again: the same walks in 2 KiB and 8
 * MiB. */
static void test_eviction(void)
{
	struct unwind_limits limits = {.cache_entries = 256, .max_row_bytes = 2048};
	struct unwinder *u[2] = {new_unwinder(NULL), new_unwinder(&limits)};
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_module *m[2][3];
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	struct unwind_frame frames[8];
	uint64_t start, limit, offset, complete = 0;
	uint64_t stack[32] = {0};
	size_t n[2];

	for (int i = 0; i < 6; i++)
		CHECK_INT(unwind_module_new_fd(&m[i / 3][i % 3], u[i / 3], exe, "exe"), ==, 0);
	unwind_module_text(m[0][0], &start, &limit, &offset);
	regs.r[ARCH_REG_SP] = 0x7ffd00000000;
	regs.r[ARCH_REG_FP] = regs.r[ARCH_REG_SP] + 64;
	for (unsigned int i = 0; i < 6000; i++) {
		enum unwind_outcome outcome[2];

		regs.r[ARCH_REG_PC] = start + (i * UINT64_C(7919)) % (limit - start);
		for (int k = 0; k < 2; k++)
			outcome[k] = unwind_walk(u[k], &regs, (const uint8_t *)stack, sizeof(stack),
						 find_anywhere, m[k][i % 3], frames, 8, &n[k]);
		CHECK_INT(outcome[0], ==, outcome[1]);
		CHECK_INT(n[0], ==, n[1]);
		CHECK_INT(unwinder_stats(u[1])->row_bytes, <=, limits.max_row_bytes);
		complete += outcome[0] == UNWIND_COMPLETE;
	}
	CHECK_INT(complete, >, 1000);
	CHECK_INT(unwinder_stats(u[0])->rows_evicted, ==, 0);
	CHECK_INT(unwinder_stats(u[1])->rows_evicted, >, 0);
	for (int i = 0; i < 6; i++)
		unwind_module_free(m[i / 3][i % 3]);
	for (int k = 0; k < 2; k++) {
		CHECK_INT(unwinder_stats(u[k])->row_bytes, ==, 0);
		unwinder_free(u[k]);
	}
}

/* A module that is walked through all the time keeps its rows, also when the per-pc cache answers
 * for it and the rows are never asked. */
static void test_eviction_keeps_hot(void)
{
	struct unwind_limits limits = {.cache_entries = 65536, .max_row_bytes = 4096};
	struct unwinder *u = new_unwinder(&limits);
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	struct unwind_frame frames[8];
	uint64_t start, limit, offset, stack[32] = {0};
	struct unwind_module *m[3];
	size_t n;

	for (int i = 0; i < 3; i++)
		CHECK_INT(unwind_module_new_fd(&m[i], u, exe, "exe"), ==, 0);
	unwind_module_text(m[0], &start, &limit, &offset);
	regs.r[ARCH_REG_SP] = 0x7ffd00000000;
	for (unsigned int i = 0; i < 3000; i++) {
		/* m[0] hot in one place; the others all over. */
		regs.r[ARCH_REG_PC] = start + (limit - start) / 2;
		(void)unwind_walk(u, &regs, (const uint8_t *)stack, sizeof(stack), find_anywhere,
				  m[0], frames, 8, &n);
		regs.r[ARCH_REG_PC] = start + (i * UINT64_C(7919)) % (limit - start);
		(void)unwind_walk(u, &regs, (const uint8_t *)stack, sizeof(stack), find_anywhere,
				  m[1 + i % 2], frames, 8, &n);
		CHECK(m[0]->rows != NULL);
	}
	CHECK_INT(unwinder_stats(u)->rows_evicted, >, 0);
	for (int i = 0; i < 3; i++)
		unwind_module_free(m[i]);
	unwinder_free(u);
}

/* An index that was evicted is not made again at once: the walk says so, and forgets that it did.
 */
static void test_remake(void)
{
	static struct bytes eh, image;
	struct unwinder *u = new_unwinder(NULL);
	const uint64_t stack[] = {ELF_TEXT + 0x105, 0};
	struct unwind_module *m;
	unsigned int walks = 1;
	size_t n;

	eh.n = 0;
	elf_fde(&eh, 0, elf_cie(&eh, 0, 0), ELF_TEXT + 0x100, 0x800, NULL, 0);
	elf_make(&image, &(struct elf_spec){.eh_frame = &eh});
	m = module_of(u, &image);
	CHECK_INT(walk_at(u, m, ELF_TEXT + 0x110, stack, 2, &n), ==, UNWIND_COMPLETE);
	rows_drop(m);
	while (walk_at(u, m, ELF_TEXT + 0x210, stack, 2, &n) == UNWIND_BAD_CFI)
		CHECK_INT(++walks, <=, REMAKE_WALKS);
	CHECK_INT(walks, >=, REMAKE_WALKS - 1);
	CHECK_INT(walk_at(u, m, ELF_TEXT + 0x210, stack, 2, &n), ==, UNWIND_COMPLETE);
	unwind_module_free(m);
	unwinder_free(u);
}

struct watched {
	const void *owner;
	unsigned int n;
	bool reading;
};

static void on_reading(void *ctx, const void *owner, bool begins)
{
	struct watched *w = ctx;

	CHECK(begins != w->reading);
	CHECK(owner == w->owner);
	w->reading = begins;
	w->n += begins;
}

/* Whoever watches is told at the first walk through some code, and not at the next ones. */
static void test_reading_is_told(void)
{
	struct unwinder *u = new_unwinder(NULL);
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	struct watched w = {.owner = &w};
	struct unwind_frame frames[8];
	struct unwind_module *m;
	uint64_t start, limit, offset, stack[32] = {0};
	unsigned int cold = 0;
	size_t n;

	CHECK_INT(unwind_module_new_fd(&m, u, exe, "exe"), ==, 0);
	unwinder_watch(u, on_reading, &w);
	unwind_module_set_owner(m, &w);
	unwind_module_text(m, &start, &limit, &offset);
	regs.r[ARCH_REG_SP] = 0x7ffd00000000;
	regs.r[ARCH_REG_FP] = regs.r[ARCH_REG_SP] + 64;
	for (unsigned int i = 0; i < 200; i++) {
		regs.r[ARCH_REG_PC] = start + (i / 2 * UINT64_C(7919)) % (limit - start);
		w.n = 0;
		(void)unwind_walk(u, &regs, (const uint8_t *)stack, sizeof(stack), find_anywhere, m,
				  frames, 8, &n);
		CHECK(!w.reading);
		if (i % 2)
			CHECK_INT(w.n, ==, 0);
		cold += w.n > 0;
	}
	CHECK_INT(cold, >, 50);
	unwind_module_free(m);
	unwinder_free(u);
}

int main(void)
{
	NEED_X86_64();
	RUN(test_bias);
	RUN(test_damaged_headers);
	RUN(test_build_id);
	RUN(test_not_elf);
	RUN(test_no_section_headers);
	RUN(test_debug_frame);
	RUN(test_index);
	RUN(test_truncated_file);
	RUN(test_eviction);
	RUN(test_eviction_keeps_hot);
	RUN(test_remake);
	RUN(test_reading_is_told);
	return 0;
}
