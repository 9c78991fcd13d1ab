/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Go programs without symbol tables and DWARF. The judge is the program itself: it asks
 * its own runtime for the innermost function, file and line of addresses all over its code. Whole
 * chains of inlined calls are compared with what the DWARF of the same build says. Skipped where
 * there is no Go.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "tests/unit/lookup.h"
#include "tests/unit/test.h"

#define LINE_BYTES (UINT64_C(64) << 20)

static const char source[] =
	"package main\n"
	"import (\"bufio\"; \"debug/elf\"; \"fmt\"; \"os\"; \"runtime\"; \"strings\")\n"
	"type shape[T any] struct { v T }\n"
	"//go:noinline\n"
	"func (s *shape[T]) String() string { return fmt.Sprint(strings.ToUpper(\"x\"), s.v) }\n"
	"func bias(f *elf.File) uint64 {\n"
	"	exe, _ := os.Executable()\n"
	"	maps, _ := os.ReadFile(\"/proc/self/maps\")\n"
	"	for _, line := range strings.Split(string(maps), \"\\n\") {\n"
	"		if !strings.HasSuffix(line, exe) { continue }\n"
	"		var start uint64\n"
	"		fmt.Sscanf(line, \"%x\", &start)\n"
	"		for _, p := range f.Progs { if p.Type == elf.PT_LOAD { return start - "
	"p.Vaddr } }\n"
	"	}\n"
	"	panic(\"not mapped\")\n"
	"}\n"
	"func main() {\n"
	"	f, err := elf.Open(\"/proc/self/exe\")\n"
	"	if err != nil { panic(err) }\n"
	"	moved := bias(f)\n"
	"	out := bufio.NewWriter(os.Stdout)\n"
	"	text := f.Section(\".text\")\n"
	"	for a := text.Addr; a < text.Addr + text.Size; a += 61 {\n"
	"		pc := uintptr(a + moved + 1)\n"
	"		// The first byte of a function is no return address.\n"
	"		if f := runtime.FuncForPC(pc); f == nil || f.Entry() == pc { continue }\n"
	"		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()\n"
	"		if frame.Function != \"\" {\n"
	"			fmt.Fprintf(out, \"%x\\t%s\\t%s\\t%d\\n\", a, frame.Function, "
	"frame.File, frame.Line)\n"
	"		}\n"
	"	}\n"
	"	out.Flush()\n"
	"	fmt.Fprintln(os.Stderr, (&shape[int]{3}).String())\n"
	"}\n";

static char dir[] = "/tmp/symbolize-go-XXXXXX";

static bool build(const char *name, const char *flags)
{
	char command[512];
	int status;

	(void)snprintf(command, sizeof(command),
		       "cd %s && GO111MODULE=off GOFLAGS= go build %s -o %s main.go >&2", dir,
		       flags, name);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static struct symbol_file *open_file(const char *name, bool lines)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol_file *f = NULL;
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	limits.max_line_bytes = lines ? LINE_BYTES : 0;
	CHECK_INT(symbol_file_new_fd(&f, fd, &limits, NULL, NULL), ==, 0);
	(void)close(fd);
	return f;
}

/* Go prints the type arguments of generic functions as [...]; the symbol table names their shapes.
 */
static bool same_function(const char *a, const char *b)
{
	while (*a && *b) {
		if (*a != *b)
			return false;
		if (*a == '[') {
			const char *x = strrchr(a, ']'), *y = strrchr(b, ']');

			if (!x || !y)
				return false;
			a = x;
			b = y;
		}
		a++;
		b++;
	}
	return *a == *b;
}

struct answer {
	uint64_t address;
	char function[1024], file[1024];
	uint32_t line;
};

static bool answer_read(FILE *f, struct answer *a)
{
	return fscanf(f, "%" SCNx64 "\t%1023[^\t]\t%1023[^\t]\t%u\n", &a->address, a->function,
		      a->file, &a->line) == 4;
}

/* Every address as the runtime has it: function, file and line of the innermost call. */
static void compare_with_runtime(const char *name)
{
	struct symbol_file *f = open_file(name, true), *names = open_file(name, false);
	size_t n = 0, n_inlined = 0;
	struct answer a;
	char command[512];
	FILE *program;

	(void)snprintf(command, sizeof(command), "%s/%s 2>/dev/null", dir, name);
	program = popen(command, "r");
	CHECK(program != NULL);
	while (answer_read(program, &a)) {
		struct symbol chain[SYMBOL_MAX_CHAIN], s;
		size_t n_chain = 0;

		CHECK_INT(symbol_file_lines(f, a.address, chain, SYMBOL_MAX_CHAIN, &n_chain), ==,
			  0);
		if (!same_function(chain[0].name, a.function))
			CHECK_STR(chain[0].name, a.function);
		CHECK_STR(chain[0].file ? chain[0].file : "?", a.file);
		CHECK_INT(chain[0].line, ==, a.line);
		CHECK_STR(chain[0].language, "go");
		CHECK(!chain[n_chain - 1].inlined);
		CHECK_INT(symbol_file_lookup(names, a.address, &s), ==, 0);
		CHECK_STR(s.name, chain[n_chain - 1].name);
		CHECK(a.address >= s.start && a.address - s.start < s.size);
		n++;
		n_inlined += n_chain > 1;
	}
	CHECK_INT(pclose(program), ==, 0);
	CHECK_INT(n, >, 5000);
	CHECK_INT(n_inlined, >, n / 20);
	symbol_file_free(f);
	symbol_file_free(names);
}

static void test_runtime(void)
{
	CHECK(build("stripped", "-ldflags='-s -w'"));
	compare_with_runtime("stripped");
}

static void test_runtime_pie(void)
{
	if (!build("pie", "-buildmode=pie -ldflags='-s -w'"))
		SKIP("go cannot build a position-independent program here");
	compare_with_runtime("pie");
}

/* A C linker puts C's code around Go's: code does not begin with .text then. */
static void test_runtime_c_linker(void)
{
	if (!build("linked", "-ldflags='-s -w -linkmode=external'"))
		SKIP("go cannot link by a C compiler here");
	compare_with_runtime("linked");
	if (!build("linked-pie", "-buildmode=pie -ldflags='-s -w -linkmode=external'"))
		SKIP("go cannot link a position-independent program by a C compiler here");
	compare_with_runtime("linked-pie");
}

/* The symbol table also tells the two calling conventions of an assembler function apart. */
static bool same_symbol(const char *table, const char *symbol)
{
	size_t n = strlen(symbol);

	return same_function(table, symbol) || (n > 5 && strcmp(symbol + n - 5, ".abi0") == 0 &&
						strncmp(table, symbol, n - 5) == 0);
}

static bool same_chain(const struct symbol *a, size_t n_a, const struct symbol *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!same_symbol(a[i].name, b[i].name) || a[i].line != b[i].line ||
		    strcmp(a[i].file ? a[i].file : "", b[i].file ? b[i].file : "") != 0)
			return false;
	return true;
}

/* A method that the compiler made up, which does nothing but call another: DWARF marks it as a
 * trampoline, has the line of what is inlined in it, and says no word of that it is inlined. */
static bool is_wrapper(const struct symbol *table, size_t n_table, const struct symbol *dwarf,
		       size_t n_dwarf)
{
	const struct symbol *outer = &table[n_table - 1];

	return n_table > 1 && n_dwarf == 1 && outer->file &&
	       strcmp(outer->file, "<autogenerated>") == 0 &&
	       same_symbol(outer->name, dwarf->name) && table->line == dwarf->line && table->file &&
	       dwarf->file && strcmp(table->file, dwarf->file) == 0;
}

/*
 * In no-ops that Go's assembler put in so that a jump begins with the next 32 bytes. They are no
 * instruction of the program, and their line is that of the instruction before, or, in the table
 * only, of one without length between (Go 1.19). The file is linked to one address.
 */
static bool is_jump_padding(int fd, uint64_t address)
{
	static const char *const nops[] = {"",
					   "\x90",
					   "\x66\x90",
					   "\x0f\x1f\0",
					   "\x0f\x1f\x40\0",
					   "\x0f\x1f\x44\0\0",
					   "\x66\x0f\x1f\x44\0\0",
					   "\x0f\x1f\x80\0\0\0\0",
					   "\x0f\x1f\x84\0\0\0\0\0",
					   "\x66\x0f\x1f\x84\0\0\0\0\0"};
	uint64_t end = (address | 31) + 1;
	char code[9];

	CHECK_INT(pread(fd, code, sizeof(code), (off_t)(end - sizeof(code) - 0x400000)), ==,
		  sizeof(code));
	for (size_t n = end - address; n < ARRAY_SIZE(nops); n++)
		if (memcmp(code + sizeof(code) - n, nops[n], n) == 0)
			return true;
	return false;
}

/*
 * The table's chains against those of DWARF, for the same code: the linker lays it out alike with
 * and without debugging information. Functions that the compiler made up have no lines in DWARF.
 */
static void test_chains(void)
{
	struct symbol_file *plain, *full;
	size_t n = 0, n_same = 0, n_wrappers = 0, n_padding = 0;
	_cleanup_close_ int fd = -EBADF;
	struct answer a;
	char command[512];
	FILE *program;

	CHECK(build("full", ""));
	(void)snprintf(command, sizeof(command), "%s/full", dir);
	fd = open(command, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	plain = open_file("stripped", true);
	full = open_file("full", true);
	(void)snprintf(command, sizeof(command), "%s/full 2>/dev/null", dir);
	program = popen(command, "r");
	CHECK(program != NULL);
	while (answer_read(program, &a)) {
		struct symbol x[SYMBOL_MAX_CHAIN], y[SYMBOL_MAX_CHAIN];
		size_t n_x = 0, n_y = 0;

		CHECK_INT(symbol_file_lines(plain, a.address, x, SYMBOL_MAX_CHAIN, &n_x), ==, 0);
		CHECK_INT(symbol_file_lines(full, a.address, y, SYMBOL_MAX_CHAIN, &n_y), ==, 0);
		if (x[0].file && strcmp(x[0].file, "<autogenerated>") == 0)
			continue;
		n++;
		if (same_chain(x, n_x, y, n_y))
			n_same++;
		else if (is_wrapper(x, n_x, y, n_y))
			n_wrappers++;
		else if (is_jump_padding(fd, a.address))
			n_padding++;
		else
			fprintf(stderr, "	%" PRIx64 ": %s %s:%u, %s %s:%u in DWARF\n",
				a.address, x->name, x->file, x->line, y->name, y->file, y->line);
	}
	CHECK_INT(pclose(program), ==, 0);
	fprintf(stderr, "%zu of %zu chains as in DWARF, %zu in wrappers, %zu in padding\n", n_same,
		n, n_wrappers, n_padding);
	CHECK_INT(n, >, 5000);
	CHECK_INT(n_same + n_wrappers + n_padding, ==, n);
	symbol_file_free(plain);
	symbol_file_free(full);
}

/* A program of a processor whose instructions have 4 bytes each, in which its table counts. DWARF
 * alone judges: it cannot run here. */
static void test_other_processor(void)
{
	enum { BEGIN = 0x11000, BYTES = 512 << 10, STEP = 52 };
	struct symbol_file *plain, *full;
	size_t n = 0, n_inlined = 0, n_same = 0, n_wrappers = 0;

	(void)setenv("GOARCH", "arm64", 1);
	(void)setenv("CGO_ENABLED", "0", 1);
	CHECK(build("full-arm64", ""));
	CHECK(build("stripped-arm64", "-ldflags='-s -w'"));
	(void)unsetenv("GOARCH");
	(void)unsetenv("CGO_ENABLED");
	plain = open_file("stripped-arm64", true);
	full = open_file("full-arm64", true);
	for (uint64_t a = BEGIN; a < BEGIN + BYTES; a += STEP) {
		struct symbol x[SYMBOL_MAX_CHAIN], y[SYMBOL_MAX_CHAIN];
		size_t n_x = 0, n_y = 0;

		if (symbol_file_lines(full, a, y, SYMBOL_MAX_CHAIN, &n_y) != 0 || !y[0].line)
			continue;
		CHECK_INT(symbol_file_lines(plain, a, x, SYMBOL_MAX_CHAIN, &n_x), ==, 0);
		if (x[0].file && strcmp(x[0].file, "<autogenerated>") == 0)
			continue;
		n++;
		n_inlined += n_x > 1;
		if (same_chain(x, n_x, y, n_y))
			n_same++;
		else if (is_wrapper(x, n_x, y, n_y))
			n_wrappers++;
		else
			fprintf(stderr, "	%" PRIx64 ": %s %s:%u, %s %s:%u in DWARF\n", a,
				x->name, x->file, x->line, y->name, y->file, y->line);
	}
	fprintf(stderr, "%zu of %zu chains as in DWARF, %zu in wrappers\n", n_same, n, n_wrappers);
	CHECK_INT(n, >, 5000);
	CHECK_INT(n_inlined, >, n / 20);
	CHECK_INT(n_same + n_wrappers, ==, n);
	symbol_file_free(plain);
	symbol_file_free(full);
}

/* Bytes of the table changed at random: any answer will do that is one. */
static void test_damaged(void)
{
	struct stat st;
	char path[512];
	uint8_t *bytes, *copy;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/stripped", dir);
	CHECK_INT(stat(path, &st), ==, 0);
	bytes = malloc((size_t)st.st_size);
	copy = malloc((size_t)st.st_size);
	f = fopen(path, "r");
	CHECK(bytes && copy && f);
	CHECK_INT(fread(bytes, 1, (size_t)st.st_size, f), ==, (size_t)st.st_size);
	(void)fclose(f);
	srand(7);
	for (unsigned int round = 0; round < 30; round++) {
		struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
		struct symbol_file *s = NULL;

		/* First the header alone, then everywhere. */
		memcpy(copy, bytes, (size_t)st.st_size);
		for (unsigned int i = 0; i < (round < 10 ? 0 : 20000); i++)
			copy[4096 + (size_t)rand() % ((size_t)st.st_size - 8192)] = (uint8_t)rand();
		for (size_t at = 0; round < 10 && at + 72 < (size_t)st.st_size; at += 16) {
			static const uint8_t start[] = {0xff, 0xff, 0xff, 0, 0, 1, 8};

			if (memcmp(copy + at + 1, start, sizeof(start)) == 0)
				copy[at + 8 + (size_t)rand() % 64] ^= (uint8_t)(1 + rand() % 255);
		}
		limits.max_line_bytes = LINE_BYTES;
		if (symbol_file_new_memory(&s, copy, (size_t)st.st_size, &limits) < 0)
			continue;
		for (uint64_t a = 0x400000; a < 0x600000; a += 251) {
			struct symbol chain[SYMBOL_MAX_CHAIN];
			size_t n;

			(void)symbol_file_lines(s, a, chain, SYMBOL_MAX_CHAIN, &n);
		}
		symbol_file_free(s);
	}
	free(bytes);
	free(copy);
}

static void remove_dir(void)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_INT(system(command), ==, 0);
}

int main(void)
{
	char path[512];
	FILE *f;

	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/main.go", dir);
	f = fopen(path, "w");
	CHECK(f && fputs(source, f) >= 0 && fclose(f) == 0);
	if (!build("probe", "")) {
		remove_dir();
		SKIP("go cannot build a program here");
	}
	RUN(test_runtime);
	RUN(test_runtime_pie);
	RUN(test_runtime_c_linker);
	RUN(test_chains);
	RUN(test_other_processor);
	RUN(test_damaged);
	remove_dir();
	return 0;
}
