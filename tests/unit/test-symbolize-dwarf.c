/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and inlined callers: programs are built here by gcc and clang in several forms of DWARF,
 * and each answer is held against llvm-symbolizer's: the chain of functions, the base name of the
 * file and the line of each. Then the same files with damage, and bombs. Without the tools it is
 * skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "symbolize/symbolize.h"
#include "tests/unit/compile.h"
#include "tests/unit/lookup.h"
#include "tests/unit/test.h"
#include "tests/unit/workshop.h"

#define N_ADDRESSES 1000 /* `make check-names` asks for 10,000 */
#define N_FUNCTIONS 25	 /* of the C program, beside the ones that are written out */
#define LINE_BYTES  (UINT64_C(16) << 20)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

static struct symbol_file *open_lines(const char *name, symbol_open_debug_fn debug, void *ctx)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	_cleanup_close_ int fd = open_file(name);
	struct symbol_file *f = NULL;

	limits.max_line_bytes = LINE_BYTES;
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, debug, ctx), ==, 0);
	return f;
}

/* ---- Programs ---- */

static const char c_source[] =
	"#include <stdint.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include \"shared.h\"\n"
	"static inline uint64_t mix(uint64_t a) { a ^= a >> 31; a *= 0x9e3779b97f4a7c15u;\n"
	"	return a ^ (a >> 29); }\n"
	"static inline uint64_t twice(uint64_t a)\n{\n	return mix(a) +\n		mix(a + "
	"1);\n}\n"
	"static inline uint64_t four(uint64_t a)\n{\n	return twice(a) ^ twice(a * 3);\n}\n"
	"static int compare(const void *a, const void *b)\n{\n"
	"	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;\n"
	"	return (x > y) - (x < y);\n}\n"
	"__attribute__((noinline)) uint64_t hot(uint64_t *v, unsigned n)\n{\n"
	"	uint64_t sum = 0;\n"
	"	for (unsigned i = 0; i < n; i++) {\n"
	"		v[i] = four(v[i]);\n"
	"		if (__builtin_expect(v[i] == 42, 0)) {\n"
	"			fprintf(stderr, \"rare %u\\n\", i);\n			"
	"abort();\n		}\n"
	"		sum += shared(v[i]);\n	}\n"
	"	qsort(v, n, sizeof(*v), compare);\n	return sum;\n}\n"
	"FUNCTIONS\n"
	"int main(int argc, char **argv)\n{\n	uint64_t v[64] = {(uint64_t)argc};\n"
	"	uint64_t r = hot(v, 64) + other(v, 64);\n"
	"	for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++)\n"
	"		r += table[i](r);\n"
	"	printf(\"%llu\\n\", (unsigned long long)r);\n	return 0;\n}\n";

static const char c_other[] =
	"#include <stdint.h>\n#include \"shared.h\"\n"
	"uint64_t other(uint64_t *v, unsigned n)\n{\n	uint64_t s = 0;\n"
	"	while (n--)\n		s += shared(v[n] + 7) * shared(s);\n	return s;\n}\n";

static const char c_shared[] =
	"#include <stdint.h>\n"
	"uint64_t other(uint64_t *v, unsigned n);\n"
	"static inline uint64_t deep3(uint64_t a) { return a * a + 5; }\n"
	"static inline uint64_t deep2(uint64_t a)\n{\n	return deep3(a) / 3 + deep3(a + 9);\n}\n"
	"static inline uint64_t deep1(uint64_t a) { return deep2(a) ^ 11; }\n"
	"static inline uint64_t shared(uint64_t a)\n{\n	if (a & 1)\n		return deep1(a);\n"
	"	return deep1(a >> 1) + deep2(a);\n}\n";

static const char cxx_source[] =
	"#include <algorithm>\n#include <map>\n#include <memory>\n#include <numeric>\n"
	"#include <string>\n#include <vector>\n#include <cstdio>\n"
	"namespace shop {\n"
	"struct item { std::string name; int price; };\n"
	"template <typename T> struct basket {\n"
	"	std::vector<T> items;\n"
	"	void add(const T &t) { items.push_back(t); }\n"
	"	int sum() const { return std::accumulate(items.begin(), items.end(), 0,\n"
	"		[](int a, const T &t) { return a + t.price; }); }\n"
	"	void order() { std::sort(items.begin(), items.end(), [](const T &a, const T &b) {\n"
	"		return a.price < b.price || (a.price == b.price && a.name < b.name); }); "
	"}\n"
	"};\n"
	"namespace { struct secret { virtual ~secret() {} virtual int code(int x) { return x * 7; "
	"} };\n"
	"struct deeper : secret { int code(int x) override { struct local { static int f(int y)\n"
	"	{ return y / 3; } }; return local::f(x) + secret::code(x); } }; }\n"
	"}\n"
	"int main(int argc, char **argv)\n{\n"
	"	shop::basket<shop::item> b;\n"
	"	std::map<std::string, int> count;\n"
	"	for (int i = 0; i < 100 * argc; i++) {\n"
	"		b.add(shop::item{std::string(\"item\") + std::to_string(i * 7 % 13), i % "
	"5});\n"
	"		count[b.items.back().name]++;\n	}\n"
	"	b.order();\n"
	"	std::unique_ptr<shop::secret> s(new shop::deeper);\n"
	"	try { if (argc > 5) throw std::string(\"many\"); }\n"
	"	catch (const std::string &e) { std::puts(e.c_str()); }\n"
	"	std::printf(\"%d %zu\\n\", b.sum() + s->code(argc), count.size());\n"
	"	return 0;\n}\n";

/* Some hundred functions more, so that there is something to look up. */
static void write_c_source(void)
{
	const char *mark = strstr(c_source, "FUNCTIONS");
	FILE *f = create_file("prog.c");

	(void)fwrite(c_source, 1, (size_t)(mark - c_source), f);
	for (int i = 0; i < N_FUNCTIONS; i++)
		(void)fprintf(f,
			      "static uint64_t func%d(uint64_t a)\n{\n	uint64_t s = four(a + "
			      "%d);\n"
			      "	for (unsigned i = 0; i < a %% %d; i++)\n"
			      "		s += i & 1 ? twice(s) :\n			"
			      "shared(i);\n"
			      "	return s;\n}\n",
			      i, i, i + 3);
	(void)fputs("static uint64_t (*const table[])(uint64_t) = {", f);
	for (int i = 0; i < N_FUNCTIONS; i++)
		(void)fprintf(f, "func%d, ", i);
	(void)fprintf(f, "};\n%s", mark + strlen("FUNCTIONS"));
	CHECK_INT(fclose(f), ==, 0);
}

static void prepare(void)
{
	if (system("for p in gcc g++ readelf objcopy \"" LLVM_SYMBOLIZER "\"; do "
		   "command -v \"$p\" >/dev/null || exit 1; done") != 0)
		SKIP("gcc, g++, llvm-symbolizer or binutils are not installed");
	test_make_directory(dir);
	write_c_source();
	write_file("other.c", c_other);
	write_file("shared.h", c_shared);
	write_file("prog.cc", cxx_source);
}

/* ---- Truth by llvm-symbolizer ---- */

struct text_range {
	uint64_t start, size;
};

static struct text_range text_section(const char *file)
{
	FILE *f = run_read("readelf -SW %s | sed 's/\\[ */[/'", file);
	char line[1024], name[256];
	struct text_range r = {0};

	while (fgets(line, sizeof(line), f)) {
		struct text_range have;

		if (sscanf(line, " [%*d] %255s %*s %" SCNx64 " %*x %" SCNx64, name, &have.start,
			   &have.size) == 3 &&
		    strcmp(name, ".text") == 0)
			r = have;
	}
	(void)pclose(f);
	CHECK_INT(r.size, >, 0);
	return r;
}

struct frame {
	char name[4096], file[256];
	uint32_t line;
};

struct chain {
	struct frame frames[SYMBOL_MAX_CHAIN];
	size_t n;
};

static void base_name(char *ret, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');

	(void)snprintf(ret, size, "%.*s", (int)size - 1, slash ? slash + 1 : path);
}

static bool chain_read(FILE *f, struct chain *ret)
{
	static char line[65536];

	ret->n = 0;
	while (fgets(line, sizeof(line), f)) {
		struct frame *frame = &ret->frames[ret->n];
		char *colon;

		line[strcspn(line, "\n")] = 0;
		if (!*line)
			return true;
		CHECK_INT(ret->n, <, SYMBOL_MAX_CHAIN);
		(void)snprintf(frame->name, sizeof(frame->name), "%.*s",
			       (int)sizeof(frame->name) - 1, line);
		if (!fgets(line, sizeof(line), f))
			return false;
		line[strcspn(line, "\n")] = 0;
		colon = strrchr(line, ':'); /* the column */
		CHECK(colon != NULL);
		*colon = 0;
		colon = strrchr(line, ':');
		CHECK(colon != NULL);
		*colon = 0;
		frame->line = (uint32_t)strtoul(colon + 1, NULL, 10);
		base_name(frame->file, sizeof(frame->file), line);
		ret->n++;
	}
	return false;
}

static void chain_of(struct symbol_file *f, uint64_t address, struct chain *ret)
{
	struct symbol s[SYMBOL_MAX_CHAIN];

	if (symbol_file_lines(f, address, s, SYMBOL_MAX_CHAIN, &ret->n) != 0) {
		ret->n = 1;
		s[0] = (struct symbol){.name = "??"};
	}
	for (size_t i = 0; i < ret->n; i++) {
		(void)snprintf(ret->frames[i].name, sizeof(ret->frames[i].name), "%s", s[i].name);
		base_name(ret->frames[i].file, sizeof(ret->frames[i].file),
			  s[i].file ? s[i].file : "??");
		ret->frames[i].line = s[i].line;
		CHECK(s[i].inlined == (i + 1 < ret->n));
	}
}

/* Whether two names are those of one address: which alias is said is the symbol table's rule. */
static bool are_aliases(const char *file, const char *a, const char *b)
{
	FILE *f = run_read("nm %s", file);
	uint64_t at_a = 0, at_b = 1, at;
	static char line[65536], name[65536];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %65535s", &at, name) != 2)
			continue;
		at_a = strcmp(name, a) == 0 ? at : at_a;
		at_b = strcmp(name, b) == 0 ? at : at_b;
	}
	(void)pclose(f);
	return at_a == at_b;
}

static bool chains_equal(const char *file, const struct chain *a, const struct chain *b)
{
	/* The padding between two functions has a line there, but is nobody's code. */
	if (a->n == 1 && b->n == 1 && strcmp(a->frames[0].name, "??") == 0 &&
	    strcmp(b->frames[0].name, "??") == 0)
		return true;
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct frame *x = &a->frames[i], *y = &b->frames[i];

		if (x->line != y->line || (x->line && strcmp(x->file, y->file) != 0))
			return false;
		if (strcmp(x->name, y->name) != 0 &&
		    (i + 1 < a->n || !are_aliases(file, x->name, y->name)))
			return false;
	}
	return true;
}

static void chain_print(const char *who, const struct chain *c)
{
	fprintf(stderr, "	%s:", who);
	for (size_t i = 0; i < c->n; i++)
		fprintf(stderr, " %s %s:%u", c->frames[i].name, c->frames[i].file,
			c->frames[i].line);
	fputc('\n', stderr);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Asks both about addresses all over the text; truth: the file that llvm-symbolizer reads. */
static void compare(const char *what, const char *file, const char *truth,
		    symbol_open_debug_fn debug, void *ctx, uint32_t n_addresses)
{
	struct text_range text = text_section(file);
	struct symbol_file *f = open_lines(file, debug, ctx);
	uint64_t step = text.size / n_addresses, n = 0, equal = 0, inlined = 0, deepest = 0;
	static struct chain ours, theirs;
	FILE *in = create_file("addresses"), *out;
	double begin, first = 0, all = 0;

	step = step ? step : 1;
	for (uint64_t at = 0; at < text.size; at += step)
		(void)fprintf(in, "0x%" PRIx64 "\n", text.start + at);
	CHECK_INT(fclose(in), ==, 0);
	out = run_read(LLVM_SYMBOLIZER " -e %s --inlines --no-demangle <addresses", truth);
	for (uint64_t at = 0; at < text.size; at += step) {
		begin = now_us();
		chain_of(f, text.start + at, &ours);
		all += now_us() - begin;
		first = n ? first : all;
		CHECK(chain_read(out, &theirs));
		n++;
		inlined += theirs.n > 1;
		deepest = theirs.n > deepest ? theirs.n : deepest;
		if (chains_equal(truth, &ours, &theirs)) {
			equal++;
		} else if (n - equal <= 5) {
			fprintf(stderr, "	0x%" PRIx64 "\n", text.start + at);
			chain_print("llvm", &theirs);
			chain_print("ours", &ours);
		}
	}
	(void)pclose(out);
	fprintf(stderr,
		"	%s: %" PRIu64 " of %" PRIu64 " equal, %" PRIu64 " inlined, up to %" PRIu64
		" deep; first %.0f us, then %.2f us; %zu KiB\n",
		what, equal, n, inlined, deepest, first, (all - first) / (double)n,
		symbol_file_line_bytes(f) >> 10);
	symbol_file_free(f);
	CHECK_INT(equal * 1000, >=, n * 999);
}

/* ---- Forms ---- */

static bool have(const char *program)
{
	return run("command -v %s >/dev/null", program) == 0;
}

static void compare_form(const char *compiler, const char *flags)
{
	char what[256];
	bool cxx = strstr(compiler, "++");

	if (!have(compiler)) {
		fprintf(stderr, "	%s is not installed\n", compiler);
		return;
	}
	(void)snprintf(what, sizeof(what), "%s %s", compiler, flags);
	CHECK_INT(test_compile(dir, "prog", "%s %s -o prog %s", compiler, flags,
			       cxx ? "prog.cc" : "prog.c other.c"),
		  ==, 0);
	compare(what, "prog", "prog", NULL, NULL, N_ADDRESSES);
}

static void test_gcc(void)
{
	compare_form("gcc", "-gdwarf-2 -gstrict-dwarf -O2");
	compare_form("gcc", "-gdwarf-2 -O2");
	compare_form("gcc", "-gdwarf-3 -O2");
	compare_form("gcc", "-gdwarf-4 -O2");
	compare_form("gcc", "-gdwarf-5 -O2");
	compare_form("gcc", "-gdwarf-5 -O0");
	compare_form("gcc", "-gdwarf-5 -O3 -flto");
	compare_form("gcc", "-gdwarf-4 -O2 -gz=zlib");
	compare_form("gcc", "-gdwarf-5 -O2 -ffunction-sections -Wl,--gc-sections");
	compare_form("g++", "-gdwarf-4 -O2");
	compare_form("g++", "-gdwarf-5 -O2");
}

static void test_clang(void)
{
	compare_form("clang", "-gdwarf-2 -O2");
	compare_form("clang", "-gdwarf-4 -O2");
	compare_form("clang", "-gdwarf-5 -O2");
	compare_form("clang++", "-gdwarf-4 -O2");
	compare_form("clang++", "-gdwarf-5 -O2");
}

static int open_debug(void *ctx, const uint8_t *id, size_t n, const char *link, uint32_t crc)
{
	int *count = ctx;

	++*count;
	return open_file("prog.debug");
}

static void test_debug_file(void)
{
	int asked = 0;

	CHECK_INT(test_compile(dir, "full", "g++ -g -O2 -Wl,--build-id=sha1 -o full prog.cc"), ==,
		  0);
	CHECK_INT(run("objcopy --only-keep-debug --compress-debug-sections=zlib full prog.debug && "
		      "objcopy --strip-debug full prog"),
		  ==, 0);
	compare("debug file", "prog", "full", open_debug, &asked, N_ADDRESSES);
	CHECK_INT(asked, ==, 1);
}

/* Names only, from which no lines were asked for, or none are there. */
static void test_without_lines(void)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol s[4], plain;
	char *name;
	struct text_range text;
	struct symbol_file *f;
	size_t n = 0;
	int fd;

	CHECK_INT(run("gcc -g -O2 -o prog prog.c other.c && objcopy --strip-debug prog bare"), ==,
		  0);
	text = text_section("prog");
	for (int i = 0; i < 2; i++) {
		fd = open_file(i ? "bare" : "prog");
		limits.max_line_bytes = i ? LINE_BYTES : 0;
		CHECK_INT(symbol_file_new_fd(&f, fd, &limits, NULL, NULL), ==, 0);
		CHECK_INT(symbol_file_lookup(f, text.start, &plain), ==, 0);
		name = strdup(plain.name);
		CHECK_INT(symbol_file_lines(f, text.start, s, 4, &n), ==, 0);
		CHECK_INT(n, ==, 1);
		CHECK_STR(s[0].name, name);
		free(name);
		CHECK(!s[0].file && !s[0].line && !s[0].inlined);
		CHECK_INT(symbol_file_line_bytes(f), ==, 0);
		CHECK_INT(symbol_file_lines(f, 8, s, 4, &n), ==, 1);
		symbol_file_free(f);
		(void)close_fd(fd);
	}
}

/* The same functions, and not the lines of those that have some. */
static void test_only_inlined(void)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol with[SYMBOL_MAX_CHAIN], without[SYMBOL_MAX_CHAIN];
	struct symbol_file *full, *f;
	struct text_range text;
	size_t n_inlined = 0;
	int fd;

	CHECK_INT(run("gcc -g -O2 -o prog prog.c other.c"), ==, 0);
	text = text_section("prog");
	full = open_lines("prog", NULL, NULL);
	fd = open_file("prog");
	limits.max_line_bytes = LINE_BYTES;
	limits.only_inlined = true;
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, NULL, NULL), ==, 0);
	(void)close_fd(fd);
	for (uint64_t at = text.start; at < text.start + text.size; at += 3) {
		size_t n = 0, m = 0;
		int r = symbol_file_lines(full, at, with, SYMBOL_MAX_CHAIN, &n);

		CHECK_INT(symbol_file_lines(f, at, without, SYMBOL_MAX_CHAIN, &m), ==, r);
		CHECK_INT(m, ==, n);
		n_inlined += n > 1;
		for (size_t i = 0; i < m; i++) {
			CHECK_STR(without[i].name, with[i].name);
			CHECK(!without[i].file && !without[i].line && !without[i].column);
		}
	}
	CHECK_INT(n_inlined, >, 10);
	CHECK_INT(symbol_file_line_bytes(f), <, symbol_file_line_bytes(full));
	symbol_file_free(full);
	symbol_file_free(f);
}

/* With room for a few units alone they come and go; the answers stay, and so does the limit. */
static void test_budget(void)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	static struct chain small_chain, chain;
	struct symbol_file *f, *small = NULL;
	struct text_range text;
	size_t most = 0, largest = 0;
	int fd;

	CHECK_INT(test_compile(dir, "many",
			       "for i in 0 1 2 3 4 5 6 7 8 9; do sed \"s/func/f$i&/g; s/hot/h$i/g; "
			       "s/main/m$i/g\" prog.c >many$i.c && gcc -g -O2 -fPIC -c many$i.c; "
			       "done && gcc -g -O2 -shared -o many -fPIC many?.o"),
		  ==, 0);
	f = open_lines("many", NULL, NULL);
	fd = open_file("many");
	limits.max_line_bytes = UINT64_C(100) << 10; /* a unit takes 56 KiB */
	CHECK_INT(symbol_file_new_fd(&small, fd, &limits, NULL, NULL), ==, 0);
	(void)close_fd(fd);
	text = text_section("many");
	for (uint64_t i = 0; i < N_ADDRESSES; i++) {
		uint64_t at = text.start + i * 7919 * 16 % text.size;

		chain_of(f, at, &chain);
		chain_of(small, at, &small_chain);
		CHECK_INT(chain.n, ==, small_chain.n);
		for (size_t j = 0; j < chain.n; j++) {
			CHECK_STR(chain.frames[j].name, small_chain.frames[j].name);
			CHECK_STR(chain.frames[j].file, small_chain.frames[j].file);
			CHECK_INT(chain.frames[j].line, ==, small_chain.frames[j].line);
		}
		if (symbol_file_line_bytes(small) > most)
			most = symbol_file_line_bytes(small);
	}
	largest = symbol_file_line_bytes(f);
	fprintf(stderr, "	%zu KiB where %zu are wanted\n", most >> 10, largest >> 10);
	CHECK_INT(largest, >, 2 * limits.max_line_bytes);
	CHECK_INT(most, <, 2 * limits.max_line_bytes); /* one unit, names and paths beyond it */
	symbol_file_free(f);
	symbol_file_free(small);
}

/* A unit and a function for each of some codes of languages. */
static void test_languages(void)
{
	static const struct {
		unsigned int code;
		const char *name;
	} languages[] = {
		{0x02, "c"},   {0x21, "c++"}, {0x1c, "rust"}, {0x16, "go"},	 {0x1e, "swift"},
		{0x27, "zig"}, {0x2b, "c++"}, {0x3e, "c"},    {0x2d, "fortran"}, {0x05, NULL},
	};
	FILE *s = create_file("languages.s");
	struct symbol chain[4];
	struct text_range text;
	struct symbol_file *f;
	size_t n;

	fputs(".section .debug_abbrev,\"\",@progbits\n.uleb128 1, 0x11\n.byte 1\n"
	      ".uleb128 0x11,1, 0x12,6, 0x13,0xb, 0,0\n.uleb128 2, 0x2e\n.byte 0\n"
	      ".uleb128 0x11,1, 0x12,6, 0,0\n.byte 0\n",
	      s);
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		fprintf(s,
			".text\n.globl f%zu\n.type f%zu,@function\nf%zu: .skip 16, 0x90\n"
			".size f%zu, 16\n.section .debug_info,\"\",@progbits\n.long 2f - 1f\n"
			"1: .value 4\n.long .debug_abbrev\n.byte 8, 1\n.quad f%zu\n.long 16\n"
			".byte %u, 2\n.quad f%zu\n.long 16\n.byte 0\n2:\n",
			i, i, i, i, i, languages[i].code, i);
	CHECK_INT(fclose(s), ==, 0);
	CHECK_INT(run("gcc -nostdlib -static -Wl,-e,f0 -o languages languages.s"), ==, 0);
	text = text_section("languages");
	f = open_lines("languages", NULL, NULL);
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
		CHECK_INT(symbol_file_lines(f, text.start + 16 * i, chain, 4, &n), ==, 0);
		CHECK_STR(chain[0].language ? chain[0].language : "-",
			  languages[i].name ? languages[i].name : "-");
	}
	symbol_file_free(f);
}

/* What there was no memory for comes back after a trim. */
static void test_no_memory(void)
{
	struct rlimit memory, none;
	struct text_range text;
	struct symbol_file *f;
	struct symbol s[4];
	size_t n = 0;

	if (SANITIZED) /* which wants memory itself */
		return;
	CHECK_INT(run("gcc -g -O2 -gz -o prog prog.c other.c"), ==, 0);
	text = text_section("prog");
	f = open_lines("prog", NULL, NULL);
	CHECK_INT(symbol_file_lookup(f, text.start, s), ==, 0);
	CHECK_INT(getrlimit(RLIMIT_AS, &memory), ==, 0);
	none = (struct rlimit){1, memory.rlim_max};
	for (int i = 0; i < 3; i++) {
		CHECK_INT(setrlimit(RLIMIT_AS, i == 0 ? &none : &memory), ==, 0);
		CHECK_INT(symbol_file_lines(f, text.start + text.size / 2, s, 4, &n), ==, 0);
		CHECK(i == 2 ? s[0].file && s[0].line : !s[0].file && !s[0].line);
		if (i == 1)
			symbol_file_trim(f);
	}
	CHECK_INT(symbol_file_refused(f), >, 0);
	symbol_file_free(f);
}

int main(void)
{
	prepare();
	RUN(test_gcc);
	RUN(test_clang);
	RUN(test_debug_file);
	RUN(test_without_lines);
	RUN(test_only_inlined);
	RUN(test_budget);
	RUN(test_languages);
	RUN(test_no_memory);
	return 0;
}
