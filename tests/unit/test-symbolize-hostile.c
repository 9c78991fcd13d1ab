/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files made to hurt: cut short, with flipped bits, with sizes of gigabytes, with names that
 * are not there. All are made here from one small file with everything in it (two symbol tables,
 * stubs, relocations, notes, a debug link), in memory of exactly its size, so that a
 * sanitizer sees a read one byte too far.
 */
#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "symbolize/symbolize.h"
#include "tests/unit/lookup.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define CODE	  0x10000 /* address of .text */
#define N_CODE	  0x1000
#define N_MUTANTS 10000

static const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;

enum {
	S_NULL,
	S_TEXT,
	S_PLT,
	S_SYMTAB,
	S_STRTAB,
	S_DYNSYM,
	S_DYNSTR,
	S_RELA,
	S_NOTE,
	S_LINK,
	S_NAMES,
	S_VERSIONS,
	N_S
};

struct elf {
	uint8_t *bytes;
	size_t n;
	Elf64_Shdr sections[N_S];
};

static uint64_t put(struct elf *e, const void *data, size_t n)
{
	uint64_t at = (e->n + 7) & ~UINT64_C(7);

	e->bytes = realloc(e->bytes, at + n + 1);
	CHECK(e->bytes != NULL);
	memset(e->bytes + e->n, 0, at - e->n);
	if (n)
		memcpy(e->bytes + at, data, n);
	e->n = at + n;
	return at;
}

static void section(struct elf *e, int i, uint32_t type, uint64_t flags, uint64_t addr,
		    const void *data, size_t n, uint32_t link)
{
	static const uint32_t names[N_S] = {0, 1, 7, 12, 20, 28, 36, 44, 54, 66, 81, 91};

	e->sections[i] = (Elf64_Shdr){.sh_name = names[i],
				      .sh_type = type,
				      .sh_flags = flags,
				      .sh_addr = addr,
				      .sh_offset = put(e, data, n),
				      .sh_size = n,
				      .sh_link = link};
}

static void finish(struct elf *e)
{
	Elf64_Ehdr h = {.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = 1,
			.e_phoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = N_S,
			.e_shstrndx = S_NAMES};
	Elf64_Phdr p[2] = {{.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_offset = e->sections[S_TEXT].sh_offset,
			    .p_vaddr = CODE,
			    .p_filesz = N_CODE,
			    .p_memsz = N_CODE + 0x100},
			   {.p_type = PT_NOTE,
			    .p_offset = e->sections[S_NOTE].sh_offset,
			    .p_filesz = e->sections[S_NOTE].sh_size,
			    .p_align = 4}};

	memcpy(h.e_ident, ELFMAG "\2\1\1", 7);
	h.e_shoff = put(e, e->sections, sizeof(e->sections));
	memcpy(e->bytes, &h, sizeof(h));
	memcpy(e->bytes + sizeof(h), p, sizeof(p));
}

#define FUNCTION(name, at, size)                                                                   \
	{                                                                                          \
		name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, S_TEXT, CODE + (at), (size)          \
	}

/* With other symbol and string tables than the usual ones where those are given. */
static struct elf build(const Elf64_Sym *symbols, size_t n_symbols, const char *strings,
			size_t n_strings)
{
	static const char names[] = "\0.text\0.plt\0.symtab\0.strtab\0.dynsym\0.dynstr\0.rela.plt\0"
				    ".note.gnu.b\0.gnu_debuglink\0.shstrtab\0.gnu.version_d";
	static const char usual_strings[] = "\0first\0second@@V1\0third\0_first\0\0puts";
	static const Elf64_Sym usual[] = {
		{0},
		FUNCTION(1, 0, 0x40),
		FUNCTION(24, 0, 0x40),
		FUNCTION(7, 0x40, 0),
		FUNCTION(18, 0x100, 0x200),
		{18, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), 0, S_TEXT, CODE + 0x180, 0x20},
	};
	static const Elf64_Sym dynamic[] = {
		{0},
		{32, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_UNDEF, 0, 0},
		FUNCTION(1, 0, 0x40),
	};
	static const uint8_t plt[] = {0xff, 0x35, 0, 0, 0, 0,	 0xff, 0x25, 0,	   0, 0,
				      0,    0,	  0, 0, 0, 0xff, 0x25, 0xea, 0x0f, 0, 0,
				      0x68, 0,	  0, 0, 0, 0xe9, 0,    0,    0,	   0};
	static const Elf64_Rela rela[] = {
		{CODE + N_CODE + 0x1000, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0}};
	static const uint8_t note[] = {4, 0, 0,	  0,   4,   0, 0, 0, 3, 0,
				       0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4};
	static const char link[12] = "debug";
	uint8_t code[N_CODE] = {0};
	struct elf e = {0};

	memset(code, 0x90, sizeof(code));
	(void)put(&e, code, sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr)); /* filled in later */
	section(&e, S_TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof(code), 0);
	section(&e, S_PLT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE + N_CODE, plt, sizeof(plt),
		0);
	section(&e, S_SYMTAB, SHT_SYMTAB, 0, 0, symbols ? symbols : usual,
		symbols ? n_symbols * sizeof(*symbols) : sizeof(usual), S_STRTAB);
	section(&e, S_STRTAB, SHT_STRTAB, 0, 0, strings ? strings : usual_strings,
		strings ? n_strings : sizeof(usual_strings), 0);
	section(&e, S_DYNSYM, SHT_DYNSYM, SHF_ALLOC, 0, dynamic, sizeof(dynamic), S_DYNSTR);
	section(&e, S_DYNSTR, SHT_STRTAB, SHF_ALLOC, 0, usual_strings, sizeof(usual_strings), 0);
	section(&e, S_RELA, SHT_RELA, SHF_ALLOC, 0, rela, sizeof(rela), S_DYNSYM);
	section(&e, S_NOTE, SHT_NOTE, SHF_ALLOC, 0, note, sizeof(note), 0);
	section(&e, S_LINK, SHT_PROGBITS, 0, 0, link, sizeof(link), 0);
	section(&e, S_NAMES, SHT_STRTAB, 0, 0, names, sizeof(names), 0);
	section(&e, S_VERSIONS, SHT_GNU_verdef, SHF_ALLOC, 0, note, sizeof(note), S_DYNSTR);
	finish(&e);
	return e;
}

/* The sections' headers again, after a test has changed them. */
static void rewrite_sections(struct elf *e)
{
	Elf64_Ehdr h;

	memcpy(&h, e->bytes, sizeof(h));
	memcpy(e->bytes + h.e_shoff, e->sections, sizeof(e->sections));
}

static struct symbol_file *open_memory(const struct elf *e, const struct symbol_limits *l)
{
	struct symbol_file *f = NULL;

	CHECK_INT(symbol_file_new_memory(&f, e->bytes, e->n, l), ==, 0);
	return f;
}

static void check_name(struct symbol_file *f, uint64_t address, const char *want)
{
	struct symbol s;

	if (symbol_file_lookup(f, address, &s))
		s.name = "(none)";
	CHECK_STR(s.name, want);
}

static void test_usual(void)
{
	struct elf e = build(NULL, 0, NULL, 0);
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_memory(&e, &limits);

	check_name(f, CODE, "first");
	check_name(f, CODE + 0x3f, "first");
	check_name(f, CODE + 0x40, "second");
	check_name(f, CODE + 0xff, "second");
	check_name(f, CODE + 0x100, "third");
	check_name(f, CODE + 0x300, "(none)");
	check_name(f, CODE - 1, "(none)");
	check_name(f, CODE + N_CODE, ".plt");
	check_name(f, CODE + N_CODE + 0x10, "puts@plt");
	check_name(f, CODE + N_CODE + 0x20, "(none)");
	CHECK_INT(symbol_file_refused(f), ==, 0);
	f = symbol_file_free(f);
	free(e.bytes);
}

static int no_debug(void *ctx, const uint8_t *build_id, size_t n, const char *link, uint32_t crc)
{
	(void)ctx, (void)build_id, (void)n, (void)crc;
	if (link)
		CHECK_INT(strlen(link), <, 256);
	return -1;
}

/* Whatever the bytes: an outcome, names that end, nothing else. 1: it opened. */
static int survive(const uint8_t *bytes, size_t n)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct symbol s;

	if (symbol_file_new_memory(&f, bytes, n, &limits) < 0)
		return 0;
	for (uint64_t at = 0; at < N_CODE + 0x100; at += 0x34)
		if (symbol_file_lookup(f, CODE + at, &s) == 0)
			CHECK_INT(strlen(s.name), <, n);
	(void)symbol_file_lookup(f, 0, &s);
	(void)symbol_file_lookup(f, UINT64_MAX, &s);
	CHECK_INT(symbol_file_bytes(f), <, 1 << 20);
	return 1;
}

/* The same through a file, with the debug file's callback and the identity. */
static int survive_file(const uint8_t *bytes, size_t n)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct symbol_file_id id;
	struct symbol s;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, bytes, n), ==, n);
	CHECK_INT(symbol_file_identify(fd, &id), ==, 0);
	CHECK_INT(strlen(id.htlhash), ==, 32);
	if (symbol_file_new_fd(&f, fd, &limits, no_debug, NULL) < 0)
		return 0;
	for (uint64_t at = 0; at < N_CODE + 0x100; at += 0x34)
		(void)symbol_file_lookup(f, CODE + at, &s);
	return 1;
}

static void test_truncated(void)
{
	struct elf e = build(NULL, 0, NULL, 0);
	int n_opened = 0;

	for (size_t n = 0; n < e.n; n += 64) {
		uint8_t *cut = malloc(n ? n : 1);

		CHECK(cut != NULL);
		memcpy(cut, e.bytes, n);
		n_opened += survive(cut, n);
		CHECK_INT(survive_file(cut, n), >=, 0);
		free(cut);
	}
	/* Header and segments are at the start; without the section headers there are no names. */
	CHECK_INT(n_opened, >, 10);
	free(e.bytes);
}

static void test_mutants(void)
{
	struct elf e = build(NULL, 0, NULL, 0);
	uint8_t *copy = malloc(e.n);
	uint64_t seed = 1;
	int n_opened = 0;

	CHECK(copy != NULL);
	for (int i = 0; i < N_MUTANTS; i++) {
		memcpy(copy, e.bytes, e.n);
		for (int k = 0; k <= i % 8; k++) {
			size_t at;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			at = (seed >> 33) % e.n;
			/* Nine in ten outside of the code, which nobody reads. */
			if (at - e.sections[S_TEXT].sh_offset < N_CODE && i % 10)
				at = (at + N_CODE) % e.n;
			copy[at] ^= (uint8_t)(1u << (seed >> 29 & 7));
			if (i % 3 == 0)
				copy[at] = seed >> 20 & 1 ? 0xff : 0;
		}
		n_opened += survive(copy, e.n);
		if (i % 20 == 0)
			(void)survive_file(copy, e.n);
	}
	fprintf(stderr, "  %d of %d opened\n", n_opened, N_MUTANTS);
	CHECK_INT(n_opened, >, N_MUTANTS / 10);
	CHECK_INT(n_opened, <, N_MUTANTS);
	free(copy);
	free(e.bytes);
}

static void test_names_out_of_range(void)
{
	static const Elf64_Sym symbols[] = {{0},
					    FUNCTION(0xffffffff, 0x400, 16),
					    FUNCTION(6, 0x410, 16),
					    FUNCTION(1, 0x420, 16),
					    FUNCTION(0, 0x430, 16)};
	/* The last string does not end. */
	struct elf e = build(symbols, ARRAY_SIZE(symbols), "\0good\0endless", 13);
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_memory(&e, &limits);

	check_name(f, CODE + 0x400, "(none)");
	check_name(f, CODE + 0x410, "(none)");
	check_name(f, CODE + 0x420, "good");
	check_name(f, CODE + 0x430, "(none)");
	check_name(f, CODE, "first"); /* .dynsym had more to say */
	f = symbol_file_free(f);
	free(e.bytes);

	e = build(symbols, ARRAY_SIZE(symbols), "xxxxx", 5);
	f = open_memory(&e, &limits);
	check_name(f, CODE + 0x420, "(none)");
	check_name(f, CODE, "first");
	f = symbol_file_free(f);
	free(e.bytes);
}

static void test_sizes(void)
{
	static const uint64_t sizes[] = {
		UINT64_C(1) << 31, UINT64_C(1) << 40, UINT64_MAX, UINT64_MAX - 0xfff, 1, 23};
	static const int which[] = {S_SYMTAB, S_STRTAB, S_DYNSYM, S_DYNSTR, S_RELA,
				    S_PLT,    S_NOTE,	S_LINK,	  S_NAMES};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(which); k++) {
			struct elf e = build(NULL, 0, NULL, 0);

			e.sections[which[k]].sh_size = sizes[i];
			rewrite_sections(&e);
			CHECK_INT(survive(e.bytes, e.n), ==, 1);
			e.sections[which[k]].sh_offset = sizes[i];
			rewrite_sections(&e);
			CHECK_INT(survive(e.bytes, e.n), ==, 1);
			e.sections[which[k]].sh_link = (uint32_t)sizes[i];
			e.sections[which[k]].sh_addr = sizes[i];
			rewrite_sections(&e);
			CHECK_INT(survive(e.bytes, e.n), ==, 1);
			CHECK_INT(survive_file(e.bytes, e.n), ==, 1);
			free(e.bytes);
		}
}

/* e_shnum 0: the number is in section 0. Right, absurd, and with e_shstrndx there too. */
static void test_section_count(void)
{
	static const uint64_t counts[] = {0, N_S, N_S + 1, 65536, 1 << 20, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct elf e = build(NULL, 0, NULL, 0);
		_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
		Elf64_Ehdr h;

		memcpy(&h, e.bytes, sizeof(h));
		h.e_shnum = 0;
		h.e_shstrndx = SHN_XINDEX;
		memcpy(e.bytes, &h, sizeof(h));
		e.sections[0].sh_size = counts[i];
		e.sections[0].sh_link = S_NAMES;
		rewrite_sections(&e);
		f = open_memory(&e, &limits);
		check_name(f, CODE, counts[i] == N_S ? "first" : "(none)");
		check_name(f, CODE + N_CODE + 0x10, counts[i] == N_S ? "puts@plt" : "(none)");
		f = symbol_file_free(f);
		free(e.bytes);
	}
}

static int64_t cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* As many sections as there may be, all with the same name of 4 MiB, which has no end. */
static void test_section_names(void)
{
	size_t n = 65535, n_name = (size_t)4 << 20;
	struct elf e = build(NULL, 0, NULL, 0);
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	Elf64_Shdr *headers = calloc(n, sizeof(*headers));
	char *name = malloc(n_name);
	int64_t begin = cpu_ms();
	Elf64_Ehdr h;

	CHECK(headers && name);
	memset(name, '.', n_name);
	memcpy(headers, e.sections, sizeof(e.sections));
	headers[S_NAMES].sh_offset = put(&e, name, n_name);
	headers[S_NAMES].sh_size = n_name;
	memcpy(&h, e.bytes, sizeof(h));
	h.e_shnum = (uint16_t)n;
	h.e_shoff = put(&e, headers, n * sizeof(*headers));
	memcpy(e.bytes, &h, sizeof(h));
	f = open_memory(&e, &limits);
	check_name(f, CODE, "first");
	CHECK_INT(cpu_ms() - begin, <, 2000);
	f = symbol_file_free(f);
	free(headers);
	free(name);
	free(e.bytes);
}

/* All symbols at one address, all names parts of one string: bounded work, some answer. */
static void test_alias_bomb(void)
{
	size_t n = 200000, n_strings = (size_t)8 << 20;
	Elf64_Sym *symbols = calloc(n, sizeof(*symbols));
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	char *strings = malloc(n_strings);
	uint64_t start;
	struct elf e;
	struct symbol s;

	CHECK(symbols != NULL && strings != NULL);
	memset(strings, '_', n_strings);
	strings[n_strings - 1] = 0;
	for (size_t i = 1; i < n; i++)
		symbols[i] = (Elf64_Sym)FUNCTION((uint32_t)i, 0, 16);
	e = build(symbols, n, strings, n_strings);
	f = open_memory(&e, &limits);
	start = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 1000; i++)
		CHECK_INT(symbol_file_lookup(f, CODE, &s), ==, 0);
	CHECK_INT(strlen(s.name), <, n_strings);
	CHECK_INT(clock_get_ns(CLOCK_PROCESS_CPUTIME_ID) - start, <, 5 * NSEC_PER_SEC);
	f = symbol_file_free(f);
	free(symbols);
	free(strings);
	free(e.bytes);
}

/* Its owner writes into the file after it was checked. */
static void test_names_change(void)
{
	static const char strings[] = "\0first\0second\0the last";
	static const Elf64_Sym symbols[] = {
		{0}, FUNCTION(1, 0, 16), FUNCTION(7, 16, 16), FUNCTION(14, 32, 16)};
	struct elf e = build(symbols, ARRAY_SIZE(symbols), strings, sizeof(strings));
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_memory(&e, &limits);
	uint8_t *names = e.bytes + e.sections[S_STRTAB].sh_offset;
	struct symbol first, second, last;

	CHECK_INT(symbol_file_find(f, CODE + 16, &second), ==, 0);
	CHECK(!second.name);
	CHECK_INT(symbol_file_lookup(f, CODE, &first), ==, 0);
	CHECK_STR(first.name, "first");
	memset(names, 'x', sizeof(strings));
	/* What was given out stays, and no name goes on behind the table. */
	CHECK_STR(first.name, "first");
	CHECK_INT(symbol_file_lookup(f, CODE + 32, &last), ==, 0);
	CHECK_INT(strlen(last.name), <=, sizeof(strings) - 14);
	memset(names, 'y', sizeof(strings));
	CHECK_STR(last.name + strlen(last.name) - 1, "x");
	CHECK_INT(strspn(symbol_name(&second), "y"), ==, strlen(symbol_name(&second)));
	CHECK_INT(strlen(symbol_name(&second)), <=, sizeof(strings) - 7);
	f = symbol_file_free(f);
	free(e.bytes);
}

/* Nor does it where all that follows is overwritten, to the end of the memory; also where names of
 * one address are compared. */
static void test_names_without_end(void)
{
	static const char strings[] = "\0first\0second";
	static const Elf64_Sym symbols[] = {{0}, FUNCTION(1, 0, 16), FUNCTION(7, 0, 16)};
	struct elf e = build(symbols, ARRAY_SIZE(symbols), strings, sizeof(strings));
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (e.n + page - 1) / page * page;
	uint8_t *pages =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct elf at_end = {.bytes = pages + room - e.n, .n = e.n};
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	uint64_t names = e.sections[S_STRTAB].sh_offset;
	struct symbol s;

	CHECK(pages != MAP_FAILED);
	CHECK_INT(mprotect(pages + room, page, PROT_NONE), ==, 0);
	memcpy(at_end.bytes, e.bytes, e.n);
	f = open_memory(&at_end, &limits);
	CHECK_INT(symbol_file_find(f, CODE, &s), ==, 0);
	memset(at_end.bytes + names, 'x', e.n - names);
	CHECK_INT(strlen(symbol_name(&s)), ==, sizeof(strings) - 7);
	f = symbol_file_free(f);
	(void)munmap(pages, room + page);
	free(e.bytes);
}

/* A name that needs more room than others, and one that is no name. */
static void test_long_names(void)
{
	enum { LONG = 40000, TOO_LONG = 70000, N = LONG + TOO_LONG + 16 };
	const Elf64_Sym symbols[] = {{0},
				     FUNCTION(1, 0, 16),
				     FUNCTION(3, 16, 16),
				     FUNCTION(3 + LONG, 32, 16),
				     FUNCTION(N - 5, 48, 16)};
	char *strings = calloc(1, N);
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct symbol s;
	struct elf e;

	CHECK(strings != NULL);
	strings[1] = 'a';
	memset(strings + 3, 'l', LONG - 1);
	memset(strings + 3 + LONG, 't', TOO_LONG);
	(void)strcpy(strings + N - 5, "end");
	e = build(symbols, ARRAY_SIZE(symbols), strings, N);
	f = open_memory(&e, &limits);
	check_name(f, CODE, "a");
	CHECK_INT(symbol_file_lookup(f, CODE + 16, &s), ==, 0);
	CHECK_INT(strspn(s.name, "l"), ==, LONG - 1);
	CHECK_INT(strlen(s.name), ==, LONG - 1);
	CHECK_INT(symbol_file_lookup(f, CODE + 32, &s), ==, 0);
	CHECK_INT(strlen(s.name), ==, 65535);
	check_name(f, CODE + 48, "end");
	check_name(f, CODE, "a");
	CHECK_INT(symbol_file_bytes(f), >, 65535);
	f = symbol_file_free(f);
	free(strings);
	free(e.bytes);
}

enum { N_LONG = 256, LONG_NAME = 100, N_ROUNDS = 300 }; /* names of several pages */

static void long_name(int i, char ret[LONG_NAME])
{
	memset(ret, 'n', LONG_NAME);
	(void)snprintf(ret, 12, "f%09d_", i);
	ret[11] = 'n';
	ret[LONG_NAME - 1] = '\0';
}

static struct elf build_pages(void)
{
	static char strings[1 + N_LONG * LONG_NAME];
	static Elf64_Sym symbols[1 + N_LONG];

	for (int i = 0; i < N_LONG; i++) {
		symbols[i + 1] =
			(Elf64_Sym)FUNCTION((uint32_t)(1 + i * LONG_NAME), (uint64_t)i * 16, 16);
		long_name(i, strings + 1 + i * LONG_NAME);
	}
	return build(symbols, ARRAY_SIZE(symbols), strings, sizeof(strings));
}

static int cut_fd;
static size_t cut_to;

static void write_again(const struct elf *e)
{
	CHECK_INT(pwrite(cut_fd, e->bytes, e->n, 0), ==, (ssize_t)e->n);
}

static void cut(int sig)
{
	(void)!ftruncate(cut_fd, (off_t)cut_to);
}

/* Each function has its name or none: how many have it. */
static int look_at_all(struct symbol_file *f)
{
	char name[LONG_NAME];
	struct symbol s;
	int n = 0;

	for (int i = 0; i < N_LONG; i++) {
		if (symbol_file_lookup(f, CODE + (uint64_t)i * 16, &s) != 0)
			continue;
		long_name(i, name);
		CHECK_STR(s.name, name);
		n++;
	}
	return n;
}

static struct symbol_file *open_cut(void)
{
	struct symbol_file *f;

	CHECK_INT(symbol_file_new_fd(&f, cut_fd, &limits, NULL, NULL), ==, 0);
	return f;
}

/* Its owner cuts a file short that is mapped: before its tables are read, and when they have been.
 * A file whose first pages are left is whole again for who opens it next. */
static void test_cut_short(void)
{
	struct elf e = build_pages();
	struct symbol_file *f;
	struct symbol s;

	cut_fd = memfd_create("cut", MFD_CLOEXEC);
	for (cut_to = 0; cut_to < e.n; cut_to += 4096) {
		write_again(&e);
		f = open_cut();
		cut(0);
		(void)look_at_all(f);
		f = symbol_file_free(f);

		write_again(&e);
		f = open_cut();
		CHECK_INT(symbol_file_lookup(f, CODE, &s), ==, 0);
		cut(0);
		(void)look_at_all(f);
		f = symbol_file_free(f);
	}
	write_again(&e);
	f = open_cut();
	CHECK_INT(look_at_all(f), ==, N_LONG);
	symbol_file_free(f);
	free(e.bytes);
	(void)close(cut_fd);
}

/* The same at moments of chance. */
static void test_cut_at_any_moment(void)
{
	struct elf e = build_pages();
	int n_partly = 0;

	cut_fd = memfd_create("cut", MFD_CLOEXEC);
	CHECK(signal(SIGALRM, cut) != SIG_ERR);
	for (int i = 0; i < N_ROUNDS; i++) {
		struct itimerval when = {.it_value.tv_usec = 1 + i * 7 % 400};
		struct symbol_file *f;
		int n;

		write_again(&e);
		cut_to = (size_t)(rand() % (int)(e.n / 4096)) * 4096;
		CHECK_INT(setitimer(ITIMER_REAL, &when, NULL), ==, 0);
		if (symbol_file_new_fd(&f, cut_fd, &limits, NULL, NULL) == 0) {
			n = look_at_all(f);
			n_partly += n > 0 && n < N_LONG;
			symbol_file_free(f);
		}
		when.it_value.tv_usec = 0;
		(void)setitimer(ITIMER_REAL, &when, NULL);
	}
	(void)signal(SIGALRM, SIG_DFL);
	printf("cut between two look-ups in %d of %d rounds\n", n_partly, N_ROUNDS);
	free(e.bytes);
	(void)close(cut_fd);
}

/* Deeply nested and overlapping symbols. */
static void test_nesting(void)
{
	enum { N = 1000 };
	Elf64_Sym symbols[N] = {{0}};
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct symbol s;
	struct elf e;

	for (int i = 1; i < N; i++)
		symbols[i] = (Elf64_Sym)FUNCTION(1, i, N_CODE - 2 * i);
	e = build(symbols, N, NULL, 0);
	f = open_memory(&e, &limits);
	for (uint64_t at = 1; at < N_CODE; at++)
		if (symbol_file_lookup(f, CODE + at, &s) == 0) {
			CHECK(CODE + at - s.start < s.size);
			CHECK_STR(s.name, "first");
		}
	CHECK_INT(symbol_file_lookup(f, CODE + 5, &s), ==, 0);
	CHECK_INT(s.start, ==, CODE + 5);
	CHECK_INT(symbol_file_lookup(f, CODE + N_CODE - 6, &s), ==, 0);
	CHECK_INT(s.start, ==, CODE + 5);
	CHECK_INT(symbol_file_refused(f), >, 0);
	f = symbol_file_free(f);
	free(e.bytes);
}

/* Replaces a section's bytes by compressed ones that say to become promised bytes. */
static void compress_section(struct elf *e, int i, uint32_t type, uint64_t promised)
{
	Elf64_Chdr c = {.ch_type = type, .ch_size = promised, .ch_addralign = 1};
	uint8_t out[8192];
	uLongf n = sizeof(out) - sizeof(c);

	memcpy(out, &c, sizeof(c));
	CHECK_INT(compress(out + sizeof(c), &n, e->bytes + e->sections[i].sh_offset,
			   e->sections[i].sh_size),
		  ==, Z_OK);
	e->sections[i].sh_offset = put(e, out, sizeof(c) + n);
	e->sections[i].sh_size = sizeof(c) + n;
	e->sections[i].sh_flags |= SHF_COMPRESSED;
	rewrite_sections(e);
}

static void check_compressed(uint32_t type, int64_t surplus, const struct symbol_limits *l,
			     const char *want)
{
	struct elf e = build(NULL, 0, NULL, 0);
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;

	compress_section(&e, S_SYMTAB, type, e.sections[S_SYMTAB].sh_size + (uint64_t)surplus);
	compress_section(&e, S_STRTAB, ELFCOMPRESS_ZLIB, e.sections[S_STRTAB].sh_size);
	f = open_memory(&e, l);
	check_name(f, CODE + 0x40, want);
	f = symbol_file_free(f);
	free(e.bytes);
}

static void test_compressed(void)
{
	struct symbol_limits small = limits;

	check_compressed(ELFCOMPRESS_ZLIB, 0, &limits, "second");
	check_compressed(ELFCOMPRESS_ZLIB, 1, &limits, "(none)");
	check_compressed(ELFCOMPRESS_ZLIB, -1, &limits, "(none)");
	check_compressed(ELFCOMPRESS_ZLIB, (int64_t)1 << 33, &limits, "(none)");
	check_compressed(ELFCOMPRESS_ZLIB, (int64_t)1 << 27, &limits, "(none)");
	check_compressed(77, 0, &limits, "(none)");
	small.max_inflate_bytes = 100;
	check_compressed(ELFCOMPRESS_ZLIB, 0, &small, "(none)");
}

/* Symbols and names share one budget: each alone would fit. */
static void test_compressed_together(void)
{
	struct elf e = build(NULL, 0, NULL, 0);
	uint64_t both = e.sections[S_SYMTAB].sh_size + e.sections[S_STRTAB].sh_size;
	struct symbol_limits exact = limits;

	exact.max_inflate_bytes = both;
	check_compressed(ELFCOMPRESS_ZLIB, 0, &exact, "second");
	exact.max_inflate_bytes = both - 1;
	check_compressed(ELFCOMPRESS_ZLIB, 0, &exact, "(none)");
	free(e.bytes);
}

static void test_not_elf(void)
{
	static const char text[] = "#!/bin/sh\n";
	struct elf e = build(NULL, 0, NULL, 0);
	struct symbol_file *f = NULL;

	CHECK_INT(symbol_file_new_memory(&f, text, sizeof(text), &limits), ==, -ENOEXEC);
	CHECK_INT(symbol_file_new_memory(&f, text, 0, &limits), ==, -ENOEXEC);
	e.bytes[EI_DATA] = ELFDATA2MSB;
	CHECK_INT(symbol_file_new_memory(&f, e.bytes, e.n, &limits), ==, -ENOEXEC);
	e.bytes[EI_DATA] = ELFDATA2LSB;
	e.bytes[EI_CLASS] = 3;
	CHECK_INT(symbol_file_new_memory(&f, e.bytes, e.n, &limits), ==, -ENOEXEC);
	CHECK(f == NULL);
	free(e.bytes);
}

int main(void)
{
	RUN(test_usual);
	RUN(test_not_elf);
	RUN(test_truncated);
	RUN(test_mutants);
	RUN(test_names_out_of_range);
	RUN(test_sizes);
	RUN(test_section_count);
	RUN(test_section_names);
	RUN(test_alias_bomb);
	RUN(test_names_change);
	RUN(test_names_without_end);
	RUN(test_long_names);
	RUN(test_cut_short);
	RUN(test_cut_at_any_moment);
	RUN(test_nesting);
	RUN(test_compressed);
	RUN(test_compressed_together);
	return 0;
}
