/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed debugging information, made by binutils and xz: each way of compressing must give what
 * the same file gives without; MiniDebugInfo the names that stripping took; bombs nothing.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "tests/unit/compile.h"
#include "tests/unit/lookup.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/symbolize-compressed-XXXXXX";

static const char source[] =
	"#include <stdlib.h>\n"
	"static inline int square(int x)\n{\n	return x * x + 1;\n}\n"
	"__attribute__((noinline)) static int worker(int x)\n{\n	int s = 0;\n"
	"	for (int i = 0; i < x; i++)\n		s += square(i) ^ rand();\n	return "
	"s;\n}\n"
	"int exported(int x)\n{\n	return worker(x) + worker(x + 1);\n}\n"
	"int main(int argc, char **argv)\n{\n	return exported(argc);\n}\n";

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
	char command[2048];
	va_list ap;
	size_t n;
	int status;

	n = (size_t)snprintf(command, sizeof(command), "cd %s && ", dir);
	va_start(ap, format);
	(void)vsnprintf(command + n, sizeof(command) - n, format, ap);
	va_end(ap);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The debug files asked for, by what they are asked for. */
struct debug_files {
	const char *name; /* of the file to give; NULL: none */
	char link[512];
	size_t n_build_id;
};

static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *link, uint32_t crc)
{
	struct debug_files *d = ctx;
	char path[512];

	if (!d || !link)
		return -1;
	(void)snprintf(d->link, sizeof(d->link), "%s", link);
	d->n_build_id = n;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, d->name);
	return d->name ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static struct symbol_file *open_file_debug(const char *name, uint64_t max_inflate_bytes,
					   struct debug_files *debug)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol_file *f = NULL;
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	limits.max_line_bytes = UINT64_C(1) << 20;
	if (max_inflate_bytes)
		limits.max_inflate_bytes = limits.max_inflate_dwarf_bytes = max_inflate_bytes;
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, open_debug, debug), ==, 0);
	(void)close(fd);
	return f;
}

static struct symbol_file *open_file(const char *name, uint64_t max_inflate_bytes)
{
	return open_file_debug(name, max_inflate_bytes, NULL);
}

/* Address and size as nm has them. */
static uint64_t address_of(const char *file, const char *function, uint64_t *ret_size)
{
	uint64_t address = 0;
	char command[512];
	FILE *f;

	(void)snprintf(command, sizeof(command), "nm -S %s/%s | grep ' %s$'", dir, file, function);
	f = popen(command, "r");
	CHECK(f != NULL);
	CHECK_INT(fscanf(f, "%" SCNx64 " %" SCNx64, &address, ret_size), ==, 2);
	CHECK_INT(pclose(f), ==, 0);
	return address;
}

static size_t lines_at(struct symbol_file *f, uint64_t address, struct symbol *chain)
{
	size_t n = 0;

	CHECK_INT(symbol_file_lines(f, address, chain, SYMBOL_MAX_CHAIN, &n), ==, 0);
	return n;
}

static void check_same_lines(const char *name)
{
	struct symbol_file *plain = open_file("plain", 0), *other = open_file(name, 0);
	size_t n_inlined = 0;
	uint64_t size, start = address_of("plain", "worker", &size);

	for (uint64_t a = start; a < start + size; a++) {
		struct symbol x[SYMBOL_MAX_CHAIN], y[SYMBOL_MAX_CHAIN];
		size_t n_x = lines_at(plain, a, x), n_y = lines_at(other, a, y);

		CHECK_INT(n_x, ==, n_y);
		n_inlined += n_x > 1;
		for (size_t i = 0; i < n_x; i++) {
			CHECK_STR(y[i].name, x[i].name);
			CHECK_STR(y[i].file, x[i].file);
			CHECK_INT(y[i].line, ==, x[i].line);
		}
	}
	CHECK_INT(n_inlined, >, 0);
	CHECK_INT(symbol_file_refused(other), ==, 0);
	symbol_file_free(plain);
	symbol_file_free(other);
}

static void test_sections(void)
{
	static const char *const kinds[] = {
		"zlib-gabi",
		"zlib-gnu",
#ifdef HAVE_ZSTD
		"zstd",
#endif
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!run("objcopy --compress-debug-sections=%s plain %s 2>/dev/null", kinds[i],
			 kinds[i])) {
			fprintf(stderr, "objcopy does not know %s here\n", kinds[i]);
			continue;
		}
		fprintf(stderr, "%s\n", kinds[i]);
		check_same_lines(kinds[i]);
	}
}

/* The limit holds: no lines, but names. */
static void test_sections_limit(void)
{
	struct symbol_file *f;
	struct symbol chain[SYMBOL_MAX_CHAIN];
	uint64_t size, start = address_of("plain", "worker", &size);

	CHECK(run("objcopy --compress-debug-sections=zlib-gabi plain limited"));
	f = open_file("limited", 64);
	CHECK_INT(lines_at(f, start, chain), ==, 1);
	CHECK_STR(chain[0].name, "worker");
	CHECK_INT(chain[0].line, ==, 0);
	CHECK_INT(symbol_file_refused(f), >, 0);
	symbol_file_free(f);
}

#ifdef HAVE_LZMA
/* As the find-debuginfo of RPM makes it: functions that .dynsym does not have, stripped of the
 * rest. */
static void make_mini(void)
{
	CHECK(run("nm -D plain --format=posix --defined-only | cut -d' ' -f1 | sort > dynamic"));
	CHECK(run("nm plain --format=posix --defined-only | grep ' [Tt] ' | cut -d' ' -f1 | sort > "
		  "all"));
	CHECK(run("comm -13 dynamic all > keep && grep -q worker keep"));
	CHECK(run("objcopy --only-keep-debug plain debug && "
		  "objcopy -S --remove-section .comment --keep-symbols=keep debug table "
		  "2>/dev/null"));
	CHECK(run("xz -kf table && strip --strip-all -o mini plain && "
		  "objcopy --add-section .gnu_debugdata=table.xz mini"));
}

static void test_mini(void)
{
	struct symbol_file *f;
	struct symbol s;
	uint64_t size, worker = address_of("plain", "worker", &size), other;

	make_mini();
	f = open_file("mini", 0);
	CHECK_INT(symbol_file_lookup(f, worker + 1, &s), ==, 0);
	CHECK_STR(s.name, "worker");
	CHECK_INT(s.start, ==, worker);
	CHECK_INT(s.size, ==, size);
	other = address_of("plain", "exported", &size); /* from .dynsym */
	CHECK_INT(symbol_file_lookup(f, other, &s), ==, 0);
	CHECK_STR(s.name, "exported");
	CHECK_INT(symbol_file_refused(f), ==, 0);
	symbol_file_free(f);

	CHECK(run("strip --strip-all -o none plain"));
	f = open_file("none", 0);
	CHECK_INT(symbol_file_lookup(f, worker + 1, &s), ==, 1);
	symbol_file_free(f);
}

/* The file inside counts as inflated: the limit is for all of a file. */
static void test_mini_limit(void)
{
	uint64_t size, worker = address_of("plain", "worker", &size);
	char path[512];
	struct stat table;

	(void)snprintf(path, sizeof(path), "%s/table", dir);
	CHECK_INT(stat(path, &table), ==, 0);
	for (int more = -1; more <= 1; more += 2) {
		struct symbol_file *f = open_file("mini", (uint64_t)(table.st_size + more));
		struct symbol s;

		CHECK_INT(symbol_file_lookup(f, worker, &s), ==, more < 0);
		CHECK_INT(symbol_file_refused(f), ==, more < 0);
		symbol_file_free(f);
	}
}

/* 1 GiB of zeros, a cut stream, bytes that are no ELF file: the names of .dynsym are left. */
static void test_mini_damaged(void)
{
	static const char *const bombs[] = {
		"head -c 1G /dev/zero | xz -0 > bytes",
		"head -c 200 table.xz > bytes",
		"echo no ELF | xz > bytes",
		"head -c 3000 /dev/urandom > bytes",
	};
	uint64_t size, exported = address_of("plain", "exported", &size);

	for (size_t i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
		struct symbol_file *f;
		struct symbol s;

		CHECK_INT(test_compile(dir, "bytes", "%s", bombs[i]), ==, 0);
		CHECK(run("strip --strip-all -o bomb plain && "
			  "objcopy --add-section .gnu_debugdata=bytes bomb"));
		f = open_file("bomb", UINT64_C(16) << 20);
		CHECK_INT(symbol_file_lookup(f, exported, &s), ==, 0);
		CHECK_STR(s.name, "exported");
		CHECK_INT(symbol_file_refused(f), >, 0);
		CHECK_INT(symbol_file_bytes(f), <, 1 << 20);
		symbol_file_free(f);
	}
}
#endif

/* ---- dwz ---- */

static const char shapes[] =
	"#include <map>\n#include <string>\n#include <vector>\n#include <algorithm>\n"
	"struct shape { std::string name; std::vector<int> sides;\n"
	"	int area() const { int a = 0; for (int s : sides) a += s * s; return a; } };\n"
	"static inline int total(const std::map<std::string, shape> &m) {\n"
	"	int n = 0; for (auto &x : m) n += x.second.area(); return n; }\n"
	"int main(int argc, char **argv) {\n"
	"	std::map<std::string, shape> m;\n"
	"	for (int i = 0; i < argc * 5; i++) m[std::to_string(i)] = {argv[0], {i, i + WHICH, "
	"argc}};\n"
	"	std::vector<int> v; for (auto &x : m) v.push_back(x.second.area());\n"
	"	std::sort(v.begin(), v.end());\n"
	"	return total(m) + v[0]; }\n";

/* Chains as they were before dwz put into a file of its own what two programs have in common. */
static size_t compare_dwz(const char *before, const char *after, struct debug_files *debug,
			  size_t *ret_n)
{
	struct symbol_file *x = open_file(before, 0), *y = open_file_debug(after, 0, debug);
	uint64_t size, start = address_of(before, "main", &size);
	size_t n_same = 0;

	for (uint64_t a = start; a < start + size; a++) {
		struct symbol p[SYMBOL_MAX_CHAIN], q[SYMBOL_MAX_CHAIN];
		size_t n_p = lines_at(x, a, p), n_q = lines_at(y, a, q);
		bool same = n_p == n_q;

		for (size_t i = 0; i < n_p && same; i++)
			same = strcmp(p[i].name, q[i].name) == 0 && p[i].line == q[i].line &&
			       p[i].start_line == q[i].start_line;
		n_same += same;
	}
	*ret_n = size;
	symbol_file_free(x);
	symbol_file_free(y);
	return n_same;
}

static void test_dwz(void)
{
	struct debug_files right = {.name = "common"}, none = {0}, wrong = {.name = "plain"};
	char path[512];
	size_t n;
	FILE *f;

	if (!run("command -v dwz >/dev/null")) {
		fprintf(stderr, "dwz is not installed: not tested\n");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/shapes.cc", dir);
	f = fopen(path, "w");
	CHECK(f && fputs(shapes, f) >= 0 && fclose(f) == 0);
	CHECK_INT(test_compile(dir, "one two",
			       "g++ -O2 -g -DWHICH=1 -o one shapes.cc && "
			       "g++ -O2 -g -DWHICH=2 -o two shapes.cc"),
		  ==, 0);
	CHECK(run("cp one one.before && dwz -m common -M /usr/lib/debug/.dwz/common one two"));
	CHECK(run("readelf -S one | grep -q gnu_debugaltlink"));

	CHECK_INT(compare_dwz("one.before", "one", &right, &n), ==, n);
	CHECK_STR(right.link, "/usr/lib/debug/.dwz/common");
	CHECK_INT(right.n_build_id, ==, 20);
	/* Without it, or with another file in its place, inlined functions have no names. */
	CHECK_INT(compare_dwz("one.before", "one", &none, &n), <, n);
	CHECK_INT(compare_dwz("one.before", "one", &wrong, &n), <, n);
}

int main(void)
{
	char path[512];
	FILE *f;

	test_make_directory(dir);
	(void)snprintf(path, sizeof(path), "%s/plain.c", dir);
	f = fopen(path, "w");
	CHECK(f && fputs(source, f) >= 0 && fclose(f) == 0);
	CHECK(run("gcc -O2 -g -rdynamic -o plain plain.c"));
	RUN(test_sections);
	RUN(test_sections_limit);
#ifdef HAVE_LZMA
	RUN(test_mini);
	RUN(test_mini_limit);
	RUN(test_mini_damaged);
#endif
	RUN(test_dwz);
	return 0;
}
