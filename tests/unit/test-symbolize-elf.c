/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in real ELF files: programs are built here with the system's compiler, and what we say is
 * held against nm, objdump and llvm-symbolizer. Without a compiler the test is skipped.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "symbolize/arch.h"
#include "symbolize/symbolize.h"
#include "tests/unit/lookup.h"
#include "tests/unit/test.h"
#include "tests/unit/workshop.h"

#define N_ADDRESSES 2500

static const struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;

static struct symbol_file *open_symbols(const char *name, symbol_open_debug_fn debug, void *ctx)
{
	_cleanup_close_ int fd = open_file(name);
	struct symbol_file *f = NULL;

	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, debug, ctx), ==, 0);
	return f;
}

/* ---- Truth by nm ---- */

struct truth {
	struct nm_symbol {
		uint64_t start, size;
		char name[256];
	} * items;
	size_t n;
};

static void truth_read(struct truth *t, const char *command, const char *file)
{
	FILE *f = run_read("%s %s", command, file);
	char line[1024], type, name[256];
	uint64_t start, size;

	*t = (struct truth){0};
	while (fgets(line, sizeof(line), f)) {
		size = 0;
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %255s", &start, &size, &type, name) !=
		    4) {
			size = 0;
			if (sscanf(line, "%" SCNx64 " %c %255s", &start, &type, name) != 3)
				continue;
		}
		if (!strchr("TtWwi", type))
			continue;
		name[strcspn(name, "@")] = 0;
		t->items = realloc(t->items, (t->n + 1) * sizeof(*t->items));
		CHECK(t->items != NULL);
		t->items[t->n].start = start;
		t->items[t->n].size = size;
		memcpy(t->items[t->n++].name, name, sizeof(name));
	}
	(void)pclose(f);
}

static bool truth_has(const struct truth *t, uint64_t start, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].start == start && strcmp(t->items[i].name, name) == 0)
			return true;
	return false;
}

/* The innermost symbol with a size that covers the address; NULL: none. */
static const struct nm_symbol *truth_covering(const struct truth *t, uint64_t address)
{
	const struct nm_symbol *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct nm_symbol *s = &t->items[i];

		if (s->size && address - s->start < s->size && (!best || s->start >= best->start))
			best = s;
	}
	return best;
}

static bool section_range(const char *file, const char *section, uint64_t *ret_start,
			  uint64_t *ret_size)
{
	FILE *f = run_read("readelf -SW %s | sed 's/\\[ */[/'", file);
	char line[1024], name[256];
	bool found = false;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " [%*d] %255s %*s %" SCNx64 " %*x %" SCNx64, name, ret_start,
			   ret_size) == 3 &&
		    strcmp(name, section) == 0) {
			found = true;
			break;
		}
	while (fgets(line, sizeof(line), f))
		;
	(void)pclose(f);
	return found;
}

/* Random addresses of .text: each covered one must get a name of the innermost symbol there. */
static size_t compare_with_nm(struct symbol_file *f, const struct truth *t, const char *file)
{
	uint64_t start, size;
	size_t n_named = 0;

	CHECK(section_range(file, ".text", &start, &size));
	srand(42);
	for (int i = 0; i < N_ADDRESSES; i++) {
		uint64_t address = start + ((uint64_t)rand() * RAND_MAX + (uint64_t)rand()) % size;
		const struct nm_symbol *want = truth_covering(t, address);
		struct symbol s;
		int r = symbol_file_lookup(f, address, &s);

		if (want) {
			CHECK_INT(r, ==, 0);
			CHECK_INT(s.start, ==, want->start);
			CHECK(truth_has(t, want->start, s.name));
			n_named++;
		} else if (r == 0) {
			/* Reached by a symbol without a size: the nearest one before. */
			CHECK(truth_has(t, s.start, s.name));
			for (size_t k = 0; k < t->n; k++)
				CHECK(t->items[k].start <= s.start || t->items[k].start > address);
		}
	}
	return n_named;
}

/* ---- Programs ---- */

static const char lib_c[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"#define F(n) __attribute__((noinline)) int f##n(int x) { return x * n + "
	"(int)strlen(getenv(\"A\")); }\n"
	"F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13)\n"
	"static __attribute__((noinline)) int hidden(int x) { puts(\"x\"); return x + rand(); }\n"
	"int caller(int x) { return hidden(x) + f1(x) + f13(x); }\n"
	"int __plain(int x) { return x * 77 + rand(); }\n"
	"int plain(int x) __attribute__((weak, alias(\"__plain\")));\n"
	"static int __local(int) __attribute__((alias(\"__plain\")));\n"
	"int use_local(int x) { return __local(x); }\n"
	"int _IO_thing(int x) { return x * 78 + rand(); }\n"
	"int thing(int x) __attribute__((weak, alias(\"_IO_thing\")));\n"
	"int longer_name(int x) { return x * 79 + rand(); }\n"
	"int short_one(int x) __attribute__((alias(\"longer_name\")));\n"
	"int cold_path(int x) { return x * 7 + rand(); }\n"
	"int cold_part(int x) __asm__(\"cold_path.cold\");\n"
	"int cold_part(int x) { return x * 9 + rand(); }\n"
	"int old_impl(int x) { return x * 80 + rand(); }\n"
	"int new_impl(int x) { return x * 81 + rand(); }\n"
	"__asm__(\".symver old_impl, versioned@V1\\n.symver new_impl, versioned@@V2\\n\");\n"
	"int data_object = 4;\n"
	"__thread int tls_object = 4;\n"
	"void *volatile address;\n"
	"int take(void) { address = (void *)puts; return (int)(long)realloc; }\n"
	"static int resolved(int x) { return x; }\n"
	"static void *resolver(void) { return (void *)resolved; }\n"
	"int indirect(int x) __attribute__((ifunc(\"resolver\")));\n"
	"int call_indirect(int x) { return indirect(x); }\n";

/* The last section ends where none of four bytes' alignment begins: on aarch64 .fini is behind
 * it. */
static const char asm_s[] = ".text\n"
			    ".globl nosize\nnosize:\n.fill 40, 1, 0x90\n"
			    "after_nosize:\n.fill 24, 1, 0x90\n"
			    ".globl outer\n.type outer,@function\nouter:\n.fill 16, 1, 0x90\n"
			    "label_inside:\n.fill 16, 1, 0x90\n"
			    ".globl inner\n.type inner,@function\ninner:\n.fill 16, 1, 0x90\n"
			    ".size inner,.-inner\n.fill 16, 1, 0x90\n.size outer,.-outer\n"
			    ".fill 32, 1, 0x90\n"
			    ".section .other,\"ax\",@progbits\n"
			    ".globl last_nosize\nlast_nosize:\n.fill 16, 1, 0x90\n"
			    ".section .later,\"ax\",@progbits\n"
			    ".fill 61, 1, 0x90\n.globl later_end\nlater_end:\n"
			    ".section .note.GNU-stack,\"\",@progbits\n";

static const char map_text[] = "V1 { };\nV2 { } V1;\n";

static void build_programs(void)
{
	write_file("lib.c", lib_c);
	write_file("a.S", asm_s);
	write_file("v.map", map_text);
	write_file("main.c", "int caller(int);int take(void);int call_indirect(int);\n"
			     "int main(int c, char **v) { return caller(c) + take() + "
			     "call_indirect(c); }\n");
	CHECK_INT(run("gcc -g -O2 -fPIC -shared -w -Wl,--version-script=v.map -Wl,--build-id -o "
		      "lib.so lib.c a.S"),
		  ==, 0);
	CHECK_INT(run("sed '/symver/d' lib.c > nover.c"), ==, 0);
}

static uint64_t address_of(const struct truth *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->items[i].name, name) == 0)
			return t->items[i].start;
	fprintf(stderr, "nm has no %s\n", name);
	exit(1);
}

static void check_name(struct symbol_file *f, uint64_t address, const char *want)
{
	struct symbol s;

	if (symbol_file_lookup(f, address, &s))
		s.name = "(none)";
	CHECK_STR(s.name, want);
}

static void test_symtab(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols("lib.so", NULL, NULL);
	struct truth t;
	struct symbol s;
	uint64_t a;

	truth_read(&t, "nm -S --defined-only", "lib.so");
	CHECK_INT(t.n, >, 30);
	CHECK_INT(compare_with_nm(f, &t, "lib.so"), >, 1000);
	check_name(f, address_of(&t, "hidden"), "hidden");
	check_name(f, address_of(&t, "caller") + 1, "caller");

	/* Aliases */
	check_name(f, address_of(&t, "__plain"), "plain");
	check_name(f, address_of(&t, "_IO_thing"), "thing");
	check_name(f, address_of(&t, "longer_name"), "short_one");
	/* Versions: default and old name are cut at the @. */
	a = address_of(&t, "versioned");
	CHECK_INT(symbol_file_lookup(f, a, &s), ==, 0);
	CHECK(!strchr(s.name, '@'));
	/* Cold parts are other code. */
	check_name(f, address_of(&t, "cold_path.cold"), "cold_path.cold");
	check_name(f, address_of(&t, "indirect"), "indirect");
	free(t.items);
}

static void test_assembler(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols("lib.so", NULL, NULL);
	struct truth t;
	struct symbol s;
	uint64_t a;

	truth_read(&t, "nm -S --defined-only", "lib.so");
	a = address_of(&t, "nosize");
	check_name(f, a + 39, "nosize");
	CHECK_INT(symbol_file_lookup(f, a, &s), ==, 0);
	CHECK_INT(s.size, ==, 40);
	check_name(f, a + 40, "after_nosize");
	check_name(f, a + 63, "after_nosize");
	a = address_of(&t, "outer");
	check_name(f, a, "outer");
	check_name(f, a + 16, "outer"); /* a label */
	check_name(f, a + 31, "outer");
	check_name(f, a + 32, "inner");
	check_name(f, a + 47, "inner");
	check_name(f, a + 48, "outer"); /* goes on */
	CHECK_INT(symbol_file_lookup(f, a + 63, &s), ==, 0);
	CHECK_STR(s.name, "outer");
	CHECK_INT(s.start, ==, a);
	CHECK_INT(s.size, ==, 64);
	CHECK_INT(symbol_file_lookup(f, a + 64, &s), ==, 1);
	/* Not beyond its section, and a label at a section's end names nothing. */
	a = address_of(&t, "last_nosize");
	check_name(f, a + 15, "last_nosize");
	CHECK_INT(symbol_file_lookup(f, a + 16, &s), ==, 1);
	CHECK_INT(symbol_file_lookup(f, address_of(&t, "later_end"), &s), ==, 1);
	CHECK_INT(symbol_file_lookup(f, 0, &s), ==, 1);
	CHECK_INT(symbol_file_lookup(f, UINT64_MAX, &s), ==, 1);
	free(t.items);
}

static void test_no_objects(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols("lib.so", NULL, NULL);
	FILE *p = run_read("nm --defined-only lib.so");
	char line[256], name[128], type;
	uint64_t address;
	struct symbol s;
	int n = 0;

	while (fgets(line, sizeof(line), p))
		if (sscanf(line, "%" SCNx64 " %c %127s", &address, &type, name) == 3 &&
		    strchr("DdBbRr", type)) {
			CHECK_INT(symbol_file_lookup(f, address, &s), ==, 1);
			n++;
		}
	(void)pclose(p);
	CHECK_INT(n, >, 3);
}

static void test_dynsym(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct truth t;
	struct symbol s;

	CHECK_INT(run("strip -o stripped.so lib.so"), ==, 0);
	f = open_symbols("stripped.so", NULL, NULL);
	truth_read(&t, "nm -D -S --defined-only", "stripped.so");
	CHECK_INT(compare_with_nm(f, &t, "stripped.so"), >, 500);
	check_name(f, address_of(&t, "caller"), "caller");
	free(t.items);
	truth_read(&t, "nm -S --defined-only", "lib.so");
	/* A static function has no name now, and its neighbour does not lend one. */
	CHECK_INT(symbol_file_lookup(f, address_of(&t, "hidden"), &s), ==, 1);
	free(t.items);
}

/* As sstrip leaves a file: the names of .dynsym are there for the loader still. */
static void test_no_section_headers(void)
{
	static const char *const styles[] = {"gnu", "sysv"};

	for (size_t i = 0; i < ARRAY_SIZE(styles); i++) {
		_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
		char path[256];
		Elf64_Ehdr h;
		struct truth t;
		int fd;

		CHECK_INT(
			run("gcc -O2 -w -shared -fPIC -Wl,--hash-style=%s -o hashed.so nover.c && "
			    "cp hashed.so bare.so",
			    styles[i]),
			==, 0);
		truth_read(&t, "nm -D -S --defined-only", "hashed.so");
		(void)snprintf(path, sizeof(path), "%s/bare.so", dir);
		fd = open(path, O_RDWR | O_CLOEXEC);
		CHECK_INT(pread(fd, &h, sizeof(h), 0), ==, sizeof(h));
		h.e_shoff = 0;
		h.e_shnum = h.e_shstrndx = 0;
		CHECK_INT(pwrite(fd, &h, sizeof(h), 0), ==, sizeof(h));
		(void)close(fd);
		f = open_symbols("bare.so", NULL, NULL);
		CHECK_INT(compare_with_nm(f, &t, "hashed.so"), >, 500);
		check_name(f, address_of(&t, "caller"), "caller");
		free(t.items);
	}
}

/* ---- Stubs ---- */

/* objdump writes "0000000000001030 <puts@plt>:" before each stub. */
static int compare_stubs(const char *file)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols(file, NULL, NULL);
	FILE *p = run_read("objdump -d %s", file);
	char line[512], name[256];
	uint64_t address;
	int n = 0;

	while (fgets(line, sizeof(line), p)) {
		if (sscanf(line, "%" SCNx64 " <%255[^>]>:", &address, name) != 2 ||
		    !strstr(name, "@plt") || name[0] == '*' || strstr(name, "@plt-"))
			continue;
		if (strchr(name, '@') != strstr(name, "@plt")) /* a version */
			memcpy(strchr(name, '@'), "@plt", 5);
		check_name(f, address, name);
		check_name(f, address + 5, name);
		n++;
	}
	(void)pclose(p);
	return n;
}

/* As GNU ld 2.40 makes them; GOT slots as objdump -d says. */
static void test_stubs_of_aarch64(void)
{
	static const struct {
		uint64_t vaddr;
		uint32_t words[8];
		size_t n, size;
		uint64_t slot; /* 0: none */
	} rows[] = {
		/* The shared part, without and with BTI. */
		{0x640, {0xa9bf7bf0, 0xf00000f0, 0xf947fe11, 0x913fe210, 0xd61f0220}, 32, 32, 0},
		{0x6e0, {0xd503245f, 0xa9bf7bf0, 0xf00000f0, 0xf947fe11, 0x913fe210}, 32, 32, 0},
		/* A stub in a row of others, and the last one. */
		{0x670,
		 {0x90000110, 0xf9400611, 0x91002210, 0xd61f0220, 0x90000110},
		 32,
		 16,
		 0x20008},
		{0x670, {0x90000110, 0xf9400611, 0x91002210, 0xd61f0220}, 16, 16, 0x20008},
		/* With PAC, with BTI (in a program at a fixed address), behind its GOT. */
		{0x678,
		 {0x90000110, 0xf9400611, 0x91002210, 0xd503219f, 0xd61f0220, 0xd503201f},
		 24,
		 24,
		 0x20008},
		{0x400700,
		 {0xd503245f, 0x90000110, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f},
		 24,
		 24,
		 0x420010},
		{0x400700, {0xf0ffffd0, 0xf947fe11, 0x913fe210, 0xd61f0220}, 16, 16, 0x3fbff8},
		/* Not a stub; and one that the section ends in. */
		{0x670, {0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f}, 16, 16, 0},
		{0x670, {0x90000110, 0xf9400611}, 7, 16, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct arch_stub stub;

		arch_find(EM_AARCH64)
			->stub((const uint8_t *)rows[i].words, rows[i].n, rows[i].vaddr, &stub);
		CHECK_INT(stub.size, ==, rows[i].size);
		CHECK_INT(stub.kind, ==, rows[i].slot ? ARCH_STUB_SLOT : ARCH_STUB_OTHER);
		CHECK_INT(stub.target, ==, rows[i].slot);
	}
}

static void test_plt(void)
{
	static const char *const kinds[] = {
		"-fcf-protection=none -Wl,-z,lazy",
		"-fcf-protection=none -Wl,-z,now",
		"-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
		"-fcf-protection=full -Wl,-z,now",
		"-fcf-protection=none -no-pie -fno-pie -Wl,-z,lazy",
	};
	int n;

#ifndef __x86_64__
	fprintf(stderr, "SKIP: stubs are read on x86_64 only\n");
	return;
#endif
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CHECK_INT(run("gcc -O2 -w %s -o plt main.c nover.c a.S", kinds[i]), ==, 0);
		n = compare_stubs("plt");
		fprintf(stderr, "  %s: %d stubs\n", kinds[i], n);
		CHECK_INT(n, >=, 3);
		CHECK_INT(run("strip plt"), ==, 0);
		CHECK_INT(compare_stubs("plt"), >=, 3);
	}
	CHECK_INT(compare_stubs("lib.so"), >=, 3);
	/* An ifunc's stub is called after the ifunc. */
	CHECK_INT(run("gcc -O2 -w -static-pie -o ifunc main.c nover.c a.S 2>/dev/null || gcc -O2 "
		      "-w -o ifunc main.c nover.c a.S"),
		  ==, 0);
	n = compare_stubs("ifunc");
	fprintf(stderr, "  with ifuncs: %d stubs\n", n);
}

/* ---- Separate debug files ---- */

struct debug {
	const char *file; /* NULL: there is none */
	int n_calls;
	size_t n_build_id;
	char link[64];
};

static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *link, uint32_t crc)
{
	struct debug *d = ctx;

	d->n_calls++;
	d->n_build_id = n;
	CHECK_INT(build_id != NULL, ==, n > 0);
	(void)snprintf(d->link, sizeof(d->link), "%s", link ? link : "");
	return d->file ? open_file(d->file) : -1;
}

static void check_debug(const char *file, struct debug *d, bool found)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols(file, open_debug, d);
	struct truth t;
	struct symbol s = {0};

	truth_read(&t, "nm -S --defined-only", "dbg.full");
	CHECK_INT(d->n_calls, ==, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(symbol_file_lookup(f, address_of(&t, "hidden"), &s), ==, found ? 0 : 1);
	if (found) {
		CHECK_STR(s.name, "hidden");
		CHECK_INT(compare_with_nm(f, &t, "dbg.full"), >, 500);
		CHECK_INT(symbol_file_refused(f), ==, 0);
	}
	CHECK_INT(d->n_calls, ==, 1);
	free(t.items);
}

static void build_debug(const char *options)
{
	CHECK_INT(run("gcc -g -O2 -fPIC -shared -w %s -o dbg.full nover.c a.S", options), ==, 0);
	CHECK_INT(
		run("objcopy --only-keep-debug dbg.full dbg.debug && strip -o dbg.bin dbg.full && "
		    "objcopy --add-gnu-debuglink=dbg.debug dbg.bin && strip -o dbg.nolink "
		    "dbg.full"),
		==, 0);
}

static void test_debug_build_id(void)
{
	struct debug d = {"dbg.debug", 0, 0, ""};

	build_debug("-Wl,--build-id=sha1");
	check_debug("dbg.bin", &d, true);
	CHECK_INT(d.n_build_id, ==, 20);
	CHECK_STR(d.link, "dbg.debug");
	d = (struct debug){"dbg.debug", 0, 0, ""};
	check_debug("dbg.nolink", &d, true);
	CHECK_STR(d.link, "");
	d = (struct debug){NULL, 0, 0, ""};
	check_debug("dbg.bin", &d, false);
	/* Another build of the same program is not taken. */
	CHECK_INT(run("gcc -O1 -fPIC -shared -w -Wl,--build-id=sha1 -o other.debug nover.c a.S"),
		  ==, 0);
	d = (struct debug){"other.debug", 0, 0, ""};
	check_debug("dbg.bin", &d, false);
	d = (struct debug){"main.c", 0, 0, ""};
	check_debug("dbg.bin", &d, false);
}

static void test_debug_crc(void)
{
	struct debug d = {"dbg.debug", 0, 0, ""};

	build_debug("-Wl,--build-id=none");
	check_debug("dbg.bin", &d, true);
	CHECK_INT(d.n_build_id, ==, 0);
	CHECK_INT(run("cp dbg.debug bad.debug && printf x >> bad.debug"), ==, 0);
	d = (struct debug){"bad.debug", 0, 0, ""};
	check_debug("dbg.bin", &d, false);
}

/* With .symtab there is nothing to ask for. */
static void test_debug_not_asked(void)
{
	struct debug d = {"dbg.debug", 0, 0, ""};
	_cleanup_(symbol_file_freep) struct symbol_file *f =
		open_symbols("dbg.full", open_debug, &d);
	struct symbol s;

	(void)symbol_file_lookup(f, 0x1000, &s);
	CHECK_INT(d.n_calls, ==, 0);
}

/* ---- Other judges ---- */

static void compare_with_llvm(const char *file)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = open_symbols(file, NULL, NULL);
	const char *nm = strstr(file, "libc") ? "nm -D -S --defined-only" : "nm -S --defined-only";
	uint64_t start, size, addresses[N_ADDRESSES];
	int n_same = 0, n_named = 0;
	char line[4096];
	struct truth t;
	FILE *p;

	CHECK(section_range(file, ".text", &start, &size));
	truth_read(&t, nm, file);
	p = create_file("addresses");
	srand(43);
	for (int i = 0; i < N_ADDRESSES; i++) {
		addresses[i] = start + ((uint64_t)rand() * RAND_MAX + (uint64_t)rand()) % size;
		fprintf(p, "0x%" PRIx64 "\n", addresses[i]);
	}
	(void)fclose(p);
	p = run_read(LLVM_SYMBOLIZER " --functions=linkage --no-inlines --no-demangle -e %s "
				     "< addresses | awk 'BEGIN{RS=\"\"} {print $1}'",
		     file);
	for (int i = 0; i < N_ADDRESSES; i++) {
		struct symbol s;
		int r = symbol_file_lookup(f, addresses[i], &s);

		CHECK(fgets(line, sizeof(line), p) != NULL);
		line[strcspn(line, "@\n")] = 0;
		if (strcmp(line, "??") == 0 || r) {
			n_same += r && strcmp(line, "??") == 0;
			continue;
		}
		n_named++;
		/* It may prefer another alias: then that must be a symbol at our start. */
		n_same += strcmp(line, s.name) == 0 || truth_has(&t, s.start, line);
	}
	(void)pclose(p);
	free(t.items);
	fprintf(stderr, "  %s: %d of %d as llvm-symbolizer, %d named\n", file, n_same, N_ADDRESSES,
		n_named);
	CHECK_INT(n_same, >=, N_ADDRESSES * 99 / 100);
	CHECK_INT(n_named, >, N_ADDRESSES / 10);
}

static void test_llvm(void)
{
	if (run("test -x \"" LLVM_SYMBOLIZER "\"")) {
		fprintf(stderr, "SKIP: no llvm-symbolizer to compare with\n");
		return;
	}
	/* Without the assembler's labels and nesting, where we differ on purpose. */
	CHECK_INT(run("gcc -O2 -fPIC -shared -w -o nodebug.so nover.c"), ==, 0);
	compare_with_llvm("nodebug.so");
	/* The C library, without what leads to an installed debug file. */
	if (run("objcopy -R .note.gnu.build-id -R .gnu_debuglink $(gcc -print-file-name=libc.so.6) "
		"libc.so") == 0)
		compare_with_llvm("libc.so");
}

static void test_32bit(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct truth t;

	write_file("m32.c", "int a(int x) { return x * 3; } int b(int x) { return a(x) + 1; }\n"
			    "static int c(int x) { return x * 99; } int (*d)(int) = c;\n");
	if (run("gcc -m32 -nostdlib -O1 -shared -fPIC -o m32.so m32.c 2>/dev/null")) {
		fprintf(stderr, "SKIP: gcc -m32 does not work here\n");
		return;
	}
	f = open_symbols("m32.so", NULL, NULL);
	truth_read(&t, "nm -S --defined-only", "m32.so");
	CHECK_INT(compare_with_nm(f, &t, "m32.so"), >, 100);
	check_name(f, address_of(&t, "c"), "c");
	free(t.items);
}

static void test_memory_image(void)
{
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	_cleanup_close_ int fd = open_file("lib.so");
	struct truth t;
	struct stat st;
	char *image;

	CHECK_INT(fstat(fd, &st), ==, 0);
	image = malloc((size_t)st.st_size);
	CHECK(image != NULL);
	CHECK_INT(read(fd, image, (size_t)st.st_size), ==, st.st_size);
	CHECK_INT(symbol_file_new_memory(&f, image, (size_t)st.st_size, &limits), ==, 0);
	truth_read(&t, "nm -S --defined-only", "lib.so");
	CHECK_INT(compare_with_nm(f, &t, "lib.so"), >, 1000);
	CHECK_INT(symbol_file_bytes(f), >, 100);
	CHECK_INT(symbol_file_bytes(f), <, 200000);
	symbol_file_trim(f);
	check_name(f, address_of(&t, "caller"), "caller");
	free(t.items);
	f = symbol_file_free(f);
	free(image);
}

static void test_limits(void)
{
	_cleanup_close_ int fd = open_file("lib.so");
	struct symbol_limits small = {
		.max_file_bytes = 64, .max_inflate_bytes = 64, .max_table_bytes = 64};
	_cleanup_(symbol_file_freep) struct symbol_file *f = NULL;
	struct symbol s;
	struct truth t;

	truth_read(&t, "nm -S --defined-only", "lib.so");
	CHECK_INT(symbol_file_new_fd(&f, fd, &small, NULL, NULL), ==, 0);
	CHECK_INT(symbol_file_lookup(f, address_of(&t, "caller"), &s), ==, 1);
	CHECK_INT(symbol_file_refused(f), >, 0);
	free(t.items);
	CHECK_INT(symbol_file_new_fd(&f, STDIN_FILENO + 1000, &small, NULL, NULL), ==, -EBADF);
}

int main(void)
{
	if (system("gcc --version >/dev/null 2>&1 && nm --version >/dev/null 2>&1"))
		SKIP("no gcc and binutils to build programs with");
	test_make_directory(dir);
	build_programs();
	RUN(test_symtab);
	RUN(test_assembler);
	RUN(test_no_objects);
	RUN(test_dynsym);
	RUN(test_no_section_headers);
	RUN(test_plt);
	RUN(test_stubs_of_aarch64);
	RUN(test_debug_build_id);
	RUN(test_debug_crc);
	RUN(test_debug_not_asked);
	RUN(test_llvm);
	RUN(test_32bit);
	RUN(test_memory_image);
	RUN(test_limits);
	return 0;
}
