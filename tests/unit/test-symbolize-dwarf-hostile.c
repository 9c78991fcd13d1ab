/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debugging information that means harm. Bombs are assembled here and read with little memory: each
 * must cost less than the time after which a file is set aside, and the function must keep its
 * name. Then good files with some bytes of their debugging sections changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "symbolize/symbolize.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"
#include "tests/unit/workshop.h"

#define MAX_CPU_MS   2000
#define MAX_MEMORY   (UINT64_C(512) << 20)
#define N_DAMAGED    150
#define MAX_SECTIONS 16

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

static int64_t cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- Bombs ---- */

/* A unit with a function "bomb", and between its abbreviations and its end what makes the bomb. */
#define TEXT                                                                                       \
	".text\n.globl bomb\n.type bomb,@function\nbomb: .skip 65536, 0x90\n.size bomb, .-bomb\n"  \
	".section .note.GNU-stack,\"\",@progbits\n"
#define ABBREVS                                                                                    \
	".section .debug_abbrev,\"\",@progbits\nabbrevs:\n"                                        \
	".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11,1, 0x12,6, 0x10,0x17, 0,0\n"                     \
	".uleb128 2, 0x2e\n.byte 1\n.uleb128 3,8, 0x11,1, 0x12,6, 0,0\n"                           \
	".uleb128 3, 0x0b\n.byte 1\n.uleb128 0x11,1, 0x12,6, 0,0\n"                                \
	".uleb128 4, 0x1d\n.byte 0\n.uleb128 0x55,0x17, 0,0\n"                                     \
	".uleb128 5, 0x1d\n.byte 1\n.uleb128 0x31,0x13, 0x11,1, 0x12,6, 0,0\n"                     \
	".byte 0\n"
#define UNIT_BEGIN                                                                                 \
	".section .debug_info,\"\",@progbits\n.long 9f - 1f\n1: .2byte 4\n.long abbrevs\n.byte "   \
	"8\n"                                                                                      \
	".uleb128 1\n.quad bomb\n.long 65536\n.long 0\n"                                           \
	"function: .uleb128 2\n.asciz \"bomb\"\n.quad bomb\n.long 65536\n"
#define UNIT_END "9:\n"
#define LINES                                                                                      \
	".section .debug_line,\"\",@progbits\n.long 9f - 1f\n1: .2byte 4\n.long 3f - 2f\n"         \
	"2: .byte 1, 1, 1, 0, 1, 10, 0,1,1,1,1,0,0,0,1, 0\n.asciz \"bomb.c\"\n.byte 0,0,0, "       \
	"0\n3:\n"                                                                                  \
	".byte 0, 9, 2\n.quad bomb\n"

/* Units whose only entry is 1, of no use, 4, of a list of ranges, or 3, which is not in their table
 * of abbreviations, before whose end so many others are. */
#define ROOTS(n)                                                                                   \
	".section .debug_abbrev\nroots:\n.rept " n "\n.uleb128 2, 0x34\n.byte 0\n"                 \
	".uleb128 3,8, 0x3a,11, 0x3b,11, 0x49,0x13, 2,0x18, 0,0\n.endr\n"                          \
	".uleb128 1, 0x3c\n.byte 0,0,0\n"                                                          \
	".uleb128 4, 0x11\n.byte 0\n.uleb128 0x55,0x17, 0,0\n.byte 0\n"
#define UNITS(n, entry)                                                                            \
	".section .debug_info\n.rept " n "\n.long 2f - 1f\n1: .2byte 4\n.long roots\n"             \
	".byte 8, " entry "\n2:\n.endr\n"

static const struct bomb {
	const char *name, *source, *objcopy;
	bool has_line, has_chain; /* what must be left of it */
} bombs[] = {
	{"nothing wrong",
	 TEXT ABBREVS UNIT_BEGIN ".uleb128 5\n.long function - 1b + 4\n.quad bomb\n.long 65536\n"
				 ".byte 0,0,0\n" UNIT_END LINES
				 ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, true},
	{"200,000 nested scopes",
	 TEXT ABBREVS UNIT_BEGIN
	 ".rept 200000\n.uleb128 3\n.quad bomb\n.long 65536\n.endr\n.skip 200002\n" UNIT_END LINES
	 ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"200,000 nested inlined calls",
	 TEXT ABBREVS UNIT_BEGIN ".rept 200000\n.uleb128 5\n.long function - 1b + 4\n.quad bomb\n"
				 ".long 65536\n.endr\n.skip 200002\n" UNIT_END LINES
				 ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"16 Mi rows",
	 TEXT ABBREVS UNIT_BEGIN ".byte 0,0\n" UNIT_END LINES
				 ".skip 16777216, 20\n.byte 0,1,1\n9:\n",
	 "", false, false},
	{"rows without end at one address",
	 TEXT ABBREVS UNIT_BEGIN ".byte 0,0\n" UNIT_END LINES
				 ".skip 67108864, 1\n.byte 0,1,1\n9:\n",
	 "", false, false},
	{"a list of ranges read 100,000 times",
	 TEXT ABBREVS UNIT_BEGIN ".rept 100000\n.uleb128 4\n.long 0\n.endr\n.byte 0,0\n" UNIT_END
				 ".section .debug_ranges,\"\",@progbits\n.rept 200000\n"
				 ".quad 0x7000000, 0x7000010\n.endr\n.quad 0, 0\n" LINES
				 ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"60,000 units, each described at the end of a table",
	 TEXT ABBREVS ROOTS("100") UNITS("60000", "1") UNIT_BEGIN
	 ".byte 0,0\n" UNIT_END LINES ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"300,000 units that are described nowhere",
	 TEXT ABBREVS ROOTS("4000") UNIT_BEGIN ".byte 0,0\n" UNIT_END UNITS("300000", "3") LINES
	 ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"more ranges of units than fit",
	 TEXT ABBREVS ROOTS("0") UNIT_BEGIN ".byte 0,0\n" UNIT_END UNITS(
		 "12", "4, 0,0,0,0") ".section .debug_ranges,\"\",@progbits\n.rept 100000\n.quad "
				     "0x401000, 0x401010\n.endr\n"
				     ".quad 0, 0\n" LINES
				     ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"400 units with a list of a million ranges",
	 TEXT ABBREVS ROOTS("0") UNIT_BEGIN ".byte 0,0\n" UNIT_END UNITS(
		 "400", "4, 0,0,0,0") ".section .debug_ranges,\"\",@progbits\n.fill 2000000, 8, "
				      "0x401000\n.quad 0, 0\n" LINES
				      ".byte 1, 2\n.uleb128 65536\n.byte 0,1,1\n9:\n",
	 "", true, false},
	{"sections that inflate beyond the limit",
	 TEXT ".section .debug_abbrev,\"\",@progbits\n.skip 100000000\n"
	      ".section .debug_info,\"\",@progbits\n.long 199999996\n.2byte 4\n.skip 199999994\n",
	 "objcopy --compress-debug-sections=zlib", false, false},
};

static void explode(const struct bomb *b)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol chain[SYMBOL_MAX_CHAIN];
	struct symbol_file *f = NULL;
	int64_t begin = cpu_ms();
	size_t n = 0;
	int fd = open_file("bomb");
	struct rlimit memory = {MAX_MEMORY, MAX_MEMORY};

	if (!SANITIZED) /* which reserves terabytes */
		CHECK_INT(setrlimit(RLIMIT_AS, &memory), ==, 0);
	limits.max_line_bytes = UINT64_C(16) << 20;
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, NULL, NULL), ==, 0);
	for (int i = 0; i < 1000; i++)
		CHECK_INT(symbol_file_lines(f, 0x401000 + 60 * (uint64_t)i, chain, SYMBOL_MAX_CHAIN,
					    &n),
			  ==, 0);
	CHECK_STR(chain[n - 1].name, "bomb");
	CHECK_INT(n, ==, b->has_chain ? 2 : 1);
	CHECK(b->has_line == (chain[0].file != NULL));
	if (b->has_line) {
		CHECK_INT(chain[0].line, ==, 1);
		CHECK(strstr(chain[0].file, "bomb.c"));
	}
	fprintf(stderr, "	%s: %" PRId64 " ms\n", b->name, cpu_ms() - begin);
	if (!SANITIZED)
		CHECK_INT(cpu_ms() - begin, <, MAX_CPU_MS);
	symbol_file_free(f);
	(void)close_fd(fd);
}

static void test_bombs(void)
{
	for (size_t i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
		int status;
		pid_t pid;

		write_file("bomb.s", bombs[i].source);
		CHECK_INT(test_compile(dir, "bomb",
				       "gcc -nostdlib -static -Wl,-Ttext=0x401000 -Wl,-e,bomb "
				       "-o bomb bomb.s%s%s%s",
				       *bombs[i].objcopy ? " && " : "", bombs[i].objcopy,
				       *bombs[i].objcopy ? " bomb" : ""),
			  ==, 0);
		pid = fork();
		CHECK_INT(pid, >=, 0);
		if (pid == 0) {
			explode(&bombs[i]);
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), ==, pid);
		if (status != 0)
			fprintf(stderr, "	%s\n", bombs[i].name);
		CHECK_INT(status, ==, 0);
	}
}

/* ---- Damage ---- */

static const char source[] =
	"#include <algorithm>\n#include <string>\n#include <vector>\n#include <cstdio>\n"
	"static bool less(const std::string &a, const std::string &b)\n"
	"{ return a.size() < b.size() || (a.size() == b.size() && a < b); }\n"
	"int main(int argc, char **argv)\n{\n	std::vector<std::string> v(argv, argv + argc);\n"
	"	for (int i = 0; i < 100; i++)\n		v.push_back(std::to_string(i * 77 % "
	"101));\n"
	"	std::sort(v.begin(), v.end(), less);\n	return (int)v.back().size();\n}\n";

struct image {
	uint8_t *bytes;
	size_t n;
	struct {
		uint64_t offset, size;
	} sections[MAX_SECTIONS]; /* of debugging information */
	size_t n_sections;
	uint64_t text, text_size;
};

static void image_read(struct image *im, const char *name)
{
	int fd = open_file(name);
	struct stat st;
	Elf64_Ehdr e;
	Elf64_Shdr names, s;

	CHECK_INT(fstat(fd, &st), ==, 0);
	*im = (struct image){.n = (size_t)st.st_size, .bytes = malloc((size_t)st.st_size)};
	CHECK(im->bytes != NULL);
	CHECK_INT(pread(fd, im->bytes, im->n, 0), ==, (ssize_t)im->n);
	memcpy(&e, im->bytes, sizeof(e));
	memcpy(&names, im->bytes + e.e_shoff + e.e_shstrndx * sizeof(names), sizeof(names));
	for (unsigned int i = 0; i < e.e_shnum; i++) {
		const char *text;

		memcpy(&s, im->bytes + e.e_shoff + i * sizeof(s), sizeof(s));
		text = (const char *)im->bytes + names.sh_offset + s.sh_name;
		if (strcmp(text, ".text") == 0) {
			im->text = s.sh_addr;
			im->text_size = s.sh_size;
		}
		if (strncmp(text, ".debug_", 7) == 0 && im->n_sections < MAX_SECTIONS) {
			im->sections[im->n_sections].offset = s.sh_offset;
			im->sections[im->n_sections++].size = s.sh_size;
		}
	}
	CHECK_INT(im->n_sections, >, 4);
	(void)close_fd(fd);
}

static uint64_t random_next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state >> 33;
}

static void image_damage(const struct image *im, uint8_t *bytes, uint64_t *state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};

	for (uint64_t n = 1 + random_next(state) % 20; n > 0; n--) {
		uint64_t which = random_next(state) % im->n_sections;
		uint64_t at = random_next(state);

		/* Half of them at the start of a section, where the headers are. */
		at %= at & 1 && im->sections[which].size > 64 ? 64 : im->sections[which].size;
		bytes[im->sections[which].offset + at] =
			n & 1 ? values[random_next(state) % sizeof(values)]
			      : (uint8_t)random_next(state);
	}
}

/* Descriptors of a split file and a package; -1: none. */
struct split_files {
	int unit, package;
};

static int open_split(void *ctx, const char *path)
{
	const struct split_files *files = ctx;
	int fd = path ? files->unit : files->package;

	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void read_all(int fd, const struct image *im, struct split_files *split, uint64_t *n_lines)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol chain[SYMBOL_MAX_CHAIN];
	struct symbol_file *f = NULL;
	size_t n;

	limits.max_line_bytes = UINT64_C(64) << 10; /* so that units come and go */
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, NULL, NULL), ==, 0);
	if (split)
		symbol_file_set_open_split(f, open_split, split);
	for (uint64_t at = 0; at < im->text_size; at += 1 + im->text_size / 64) {
		if (symbol_file_lines(f, im->text + at, chain, SYMBOL_MAX_CHAIN, &n) != 0)
			continue;
		CHECK(n >= 1 && n <= SYMBOL_MAX_CHAIN);
		for (size_t i = 0; i < n; i++) {
			CHECK(chain[i].name != NULL);
			*n_lines += chain[i].file && strlen(chain[i].file) && chain[i].line;
		}
		*n_lines += split ? n > 1 : 0;
		if (at % 5 == 0)
			symbol_file_trim(f);
		if (at % 7 == 0)
			symbol_file_forget_lines(f);
	}
	symbol_file_free(f);
}

static void damage(const char *compiler, const char *flags)
{
	uint64_t state = 20, n_good = 0, n_lines = 0;
	struct image im;
	uint8_t *bytes;
	int fd;

	if (run("command -v %s >/dev/null", compiler) != 0) {
		fprintf(stderr, "	%s is not installed\n", compiler);
		return;
	}
	CHECK_INT(test_compile(dir, "prog", "%s -O2 %s -o prog prog.cc", compiler, flags), ==, 0);
	image_read(&im, "prog");
	bytes = malloc(im.n);
	CHECK(bytes != NULL);
	for (int i = 0; i <= N_DAMAGED; i++) {
		memcpy(bytes, im.bytes, im.n);
		if (i > 0)
			image_damage(&im, bytes, &state);
		fd = memfd_create("damaged", MFD_CLOEXEC);
		CHECK_INT(fd, >=, 0);
		CHECK_INT(write(fd, bytes, im.n), ==, (ssize_t)im.n);
		read_all(fd, &im, NULL, i > 0 ? &n_lines : &n_good);
		(void)close_fd(fd);
	}
	CHECK_INT(n_good, >, 100);
	CHECK_INT(n_lines, >, 0); /* the damage is not so bad that nothing is read */
	fprintf(stderr,
		"	%s %s: %" PRIu64 " lines of the good one, %" PRIu64 " of %d damaged ones\n",
		compiler, flags, n_good, n_lines, N_DAMAGED);
	free(bytes);
	free(im.bytes);
}

static void test_damage(void)
{
	damage("g++", "-gdwarf-4");
	damage("g++", "-gdwarf-5");
	damage("clang++", "-gdwarf-5");
}

/* ---- Split files ---- */

static int memory_file(const void *bytes, size_t n)
{
	int fd = memfd_create("split", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, bytes, n), ==, (ssize_t)n);
	return fd;
}

/* How many addresses of the program are in inlined functions, as far as the split file tells. */
static uint64_t count_inlined(const struct image *program, int fd, int unit, int package)
{
	struct split_files split = {unit, package};
	uint64_t n = 0;

	read_all(fd, program, &split, &n);
	return n;
}

/* A file with changed bytes, in the place of the split file or the package. */
static void damage_split(const struct image *program, int fd, const char *name, bool package)
{
	uint64_t state = 30, good, n = 0;
	struct image im;
	uint8_t *bytes;
	int file;

	image_read(&im, name);
	bytes = malloc(im.n);
	CHECK(bytes != NULL);
	file = memory_file(im.bytes, im.n);
	good = count_inlined(program, fd, package ? -1 : file, package ? file : -1);
	(void)close_fd(file);
	for (int i = 0; i < N_DAMAGED; i++) {
		memcpy(bytes, im.bytes, im.n);
		image_damage(&im, bytes, &state);
		file = memory_file(bytes, im.n);
		n += count_inlined(program, fd, package ? -1 : file, package ? file : -1);
		(void)close_fd(file);
	}
	for (size_t cut = 0; cut < im.n; cut += im.n / 50) {
		file = memory_file(im.bytes, cut);
		n += count_inlined(program, fd, package ? -1 : file, package ? file : -1);
		(void)close_fd(file);
	}
	CHECK_INT(good, >, count_inlined(program, fd, -1, -1));
	CHECK_INT(n, >, 0);
	free(bytes);
	free(im.bytes);
}

/* Every slot of the index is another unit's: a search that trusts it does not end; nor does one in
 * a table that says it has 2^31 slots. */
static void index_lies(const struct image *program, int fd, const char *name)
{
	struct image im;
	uint64_t none = count_inlined(program, fd, -1, -1);

	image_read(&im, name);
	for (size_t i = 0; i < im.n_sections; i++) {
		uint8_t *index = im.bytes + im.sections[i].offset;
		const uint32_t many = 1u << 31, two = 2;
		uint32_t n_slots;
		int file;

		memcpy(&n_slots, index + 12, sizeof(n_slots));
		if (memcmp(index, &two, sizeof(two)) != 0 || n_slots > 64)
			continue;
		memset(index + 16, 0x55, 12 * (size_t)n_slots);
		file = memory_file(im.bytes, im.n);
		CHECK_INT(count_inlined(program, fd, -1, file), ==, none);
		(void)close_fd(file);
		memcpy(index + 12, &many, sizeof(many));
		file = memory_file(im.bytes, im.n);
		CHECK_INT(count_inlined(program, fd, -1, file), ==, none);
		(void)close_fd(file);
	}
	free(im.bytes);
}

/* A unit beyond the limit of what is inflated. */
static void split_inflates(const struct image *program, int fd)
{
	CHECK_INT(test_compile(dir, "huge.dwo",
			       "head -c 400000000 /dev/zero >zeros && objcopy --update-section "
			       ".debug_info.dwo=zeros prog.dwo huge.dwo && objcopy "
			       "--compress-debug-sections=zlib huge.dwo && rm zeros"),
		  ==, 0);
	CHECK_INT(count_inlined(program, fd, open_file("huge.dwo"), -1), ==,
		  count_inlined(program, fd, -1, -1));
}

static void test_split(void)
{
	struct image program;
	int64_t begin = cpu_ms();
	int fd;

	for (int version = 4; version <= 5; version++) {
		CHECK_INT(test_compile(dir, "prog.dwo split",
				       "g++ -O2 -gsplit-dwarf -gdwarf-%d -c prog.cc && "
				       "g++ -o split prog.o",
				       version),
			  ==, 0);
		image_read(&program, "split");
		fd = open_file("split");
		damage_split(&program, fd, "prog.dwo", false);
		/* The program itself. */
		CHECK_INT(count_inlined(&program, fd, fd, fd), ==,
			  count_inlined(&program, fd, -1, -1));
		if (version == 4 && run("dwp -o prog.dwp prog.dwo") == 0) {
			damage_split(&program, fd, "prog.dwp", true);
			index_lies(&program, fd, "prog.dwp");
		}
		if (version == 5)
			split_inflates(&program, fd);
		(void)close_fd(fd);
		free(program.bytes);
	}
	fprintf(stderr, "	%" PRId64 " ms\n", cpu_ms() - begin);
}

int main(void)
{
	if (system("command -v gcc g++ objcopy >/dev/null") != 0)
		SKIP("gcc, g++ or binutils are not installed");
	test_make_directory(dir);
	write_file("prog.cc", source);
	RUN(test_bombs);
	RUN(test_damage);
	RUN(test_split);
	return 0;
}
