/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel symbols: made-up tables, garbage, and the table of the kernel that runs the test. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;

static int text_fd(const void *text, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, text, n), ==, n);
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	return fd;
}

static struct kallsyms *load(const char *text)
{
	_cleanup_close_ int fd = text_fd(text, strlen(text));
	struct kallsyms *k = NULL;

	CHECK_INT(kallsyms_new_fd(&k, fd, &limits), ==, 0);
	return k;
}

static void check_name(const struct kallsyms *k, uint64_t address, const char *want,
		       const char *module)
{
	struct symbol s = {0};

	if (kallsyms_lookup(k, address, &s))
		s.name = "(none)";
	CHECK_STR(s.name, want);
	CHECK_STR(s.module_name ? s.module_name : "", module);
}

static void test_table(void)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k =
		load("0000000000000000 A fixed_percpu_data\n"
		     "ffffffff81000000 T _stext\n"
		     "ffffffff81000000 T startup_64\n"
		     "ffffffff81000000 T _text\n"
		     "ffffffff81000100 t local_one\n"
		     "ffffffff81000200 W weak_one\n"
		     "ffffffff81000300 T __entry_text_end\n"
		     "ffffffff81000400 T last_one\n"
		     "ffffffff81000500 T _etext\n"
		     "ffffffff82000000 D some_data\n"
		     "ffffffff82000100 R more_data\n"
		     "ffffffff83000000 T before_data\n"
		     "ffffffff83000010 d data_behind\n"
		     "ffffffff83000020 t $x\n"
		     "ffffffffc0002000 t ext4_open\t[ext4]\n"
		     "ffffffffc0001000 T ext4_init\t[ext4]\n"
		     "ffffffffc0001800 r ext4_rodata\t[ext4]\n"
		     "ffffffffc0102000 t bpf_prog_6deef7357e7b4530\t[bpf]\n"
		     "ffffffffc0103000 t ftrace_trampoline\t[__builtin__ftrace]\n");
	struct symbol s;

	check_name(k, 0x10, "(none)", "");
	check_name(k, 0xffffffff80ffffff, "(none)", "");
	check_name(k, 0xffffffff81000000, "startup_64", "");
	check_name(k, 0xffffffff810000ff, "startup_64", "");
	check_name(k, 0xffffffff81000100, "local_one", "");
	check_name(k, 0xffffffff81000250, "weak_one", "");
	check_name(k, 0xffffffff81000300, "(none)", "");
	check_name(k, 0xffffffff810004ff, "last_one", "");
	/* Nothing is behind the end of the text. */
	check_name(k, 0xffffffff81000500, "(none)", "");
	check_name(k, 0xffffffff81800000, "(none)", "");
	check_name(k, 0xffffffff82000000, "(none)", "");
	check_name(k, 0xffffffff8300000f, "before_data", "");
	check_name(k, 0xffffffff83000010, "(none)", "");
	check_name(k, 0xffffffff83000020, "(none)", "");
	check_name(k, 0xffffffffc00017ff, "ext4_init", "ext4");
	check_name(k, 0xffffffffc0001800, "(none)", "");
	check_name(k, 0xffffffffc0002010, "ext4_open", "ext4");
	/* A module's last function does not reach the next module. */
	check_name(k, 0xffffffffc0101000, "(none)", "");
	check_name(k, 0xffffffffc0102fff, "bpf_prog_6deef7357e7b4530", "bpf");
	check_name(k, 0xffffffffc0103000, "ftrace_trampoline", "__builtin__ftrace");
	check_name(k, UINT64_MAX, "(none)", "");
	CHECK_INT(kallsyms_lookup(k, 0xffffffff81000150, &s), ==, 0);
	CHECK_INT(s.start, ==, 0xffffffff81000100);
	CHECK_INT(s.size, ==, 0x100);
	CHECK_INT(kallsyms_refused(k), ==, 0);
}

/* The end of a name is the name that follows: both keep theirs, and the bytes are there once. */
static void test_shared_names(void)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = load("ffffffff81000000 t __pfx_function\n"
							    "ffffffff81000010 t function\n"
							    "ffffffff81000020 t __pfx_func\n"
							    "ffffffff81000030 t ction\n"
							    "ffffffff81000040 t tion\n"
							    "ffffffff81000050 t func\n");
	_cleanup_(kallsyms_freep) struct kallsyms *apart =
		load("ffffffff81000000 t __pfx_function\n"
		     "ffffffff81000010 t functioN\n"
		     "ffffffff81000020 t __pfx_func\n"
		     "ffffffff81000030 t ction\n"
		     "ffffffff81000040 t tioN\n"
		     "ffffffff81000050 t func\n");

	check_name(k, 0xffffffff81000000, "__pfx_function", "");
	check_name(k, 0xffffffff81000010, "function", "");
	check_name(k, 0xffffffff81000020, "__pfx_func", "");
	check_name(k, 0xffffffff81000030, "ction", "");
	check_name(k, 0xffffffff81000040, "tion", "");
	check_name(k, 0xffffffff81000050, "func", "");
	CHECK_INT(kallsyms_bytes(apart) - kallsyms_bytes(k), ==,
		  strlen("function") + strlen("tion") + 2);
}

/* More than 4 GiB lie between the entries. */
static void test_far_apart(void)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = load("0000000000001000 t low\n"
							    "0000000000001100 t low_end\n"
							    "ffffffff81000000 t high\n"
							    "ffffffff81000010 t module_low\t[m]\n");

	check_name(k, 0x10ff, "low", "");
	check_name(k, 0x1100, "low_end", "");
	check_name(k, 0xffffffff8100000f, "high", "");
	check_name(k, 0xffffffff81000010, "module_low", "m");
	CHECK_INT(kallsyms_text_start(k), ==, 0x1000);
}

static void test_hidden(void)
{
	static const char zeros[] = "0000000000000000 T _stext\n0000000000000000 t x\t[ext4]\n";
	_cleanup_close_ int fd = text_fd(zeros, sizeof(zeros) - 1), empty = text_fd("", 0);
	struct kallsyms *k = (struct kallsyms *)&fd;

	CHECK_INT(kallsyms_new_fd(&k, fd, &limits), ==, 1);
	CHECK(k == NULL);
	CHECK_INT(kallsyms_new_fd(&k, empty, &limits), ==, 1);
	CHECK_INT(kallsyms_new_fd(&k, -1, &limits), ==, -EBADF);
}

static void test_garbage(void)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k =
		load("\n\n \nx\nffffffff81000000\nffffffff81000000 \nffffffff81000000 T\n"
		     "ffffffff81000000 T \nfffffffffffffffff81000000 T toolong\n"
		     "ffffffff81000010 T good\n"
		     "ffffffff81000020Tbad\nffffffff81000020  T bad\n"
		     "ffffffff81000030 T weird\t[\nffffffff81000040 T weirder\t[]\n"
		     "ffffffff81000050 T odd\t]mod[\nffffffff81000060 T with space\t[m]\n"
		     "-1 T minus\nffffffff81000070 T unterminated");

	check_name(k, 0xffffffff81000010, "good", "");
	check_name(k, 0xffffffff81000020, "good", "");
	check_name(k, 0xffffffff81000030, "weird", "");
	check_name(k, 0xffffffff81000040, "weirder", "");
	check_name(k, 0xffffffff81000060, "with space", "m");
	check_name(k, 0xffffffff81000070, "unterminated", "");
}

/* Bytes from a generator, with enough newlines and digits to reach all paths. */
static void test_random(void)
{
	static const char alphabet[] = "0123456789abcdef \t\n[]TtWD_x\0\xff";
	size_t n = 300000;
	char *text = malloc(n);

	CHECK(text != NULL);
	srand(7);
	for (int round = 0; round < 20; round++) {
		_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
		_cleanup_close_ int fd = -EBADF;
		int r;

		for (size_t i = 0; i < n; i++)
			text[i] = alphabet[(size_t)rand() % (round % 2 ? 26 : sizeof(alphabet))];
		if (round == 0)
			memset(text, 'f', n); /* one line without an end */
		fd = text_fd(text, n);
		r = kallsyms_new_fd(&k, fd, &limits);
		CHECK(r == 0 || r == 1);
		for (int i = 0; k && i < 1000; i++) {
			struct symbol s;

			if (kallsyms_lookup(k, (uint64_t)rand() << (i % 33), &s) == 0)
				CHECK_INT(strlen(s.name), >, 0);
		}
	}
	free(text);
}

static void test_limit(void)
{
	struct symbol_limits small = {.max_table_bytes = 4096};
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);

	for (uint64_t i = 1; i < 20000; i++)
		dprintf(fd, "%016" PRIx64 " T function_%" PRIu64 "\n", i << 12, i);
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	CHECK_INT(kallsyms_new_fd(&k, fd, &small), ==, 0);
	CHECK_INT(kallsyms_refused(k), >, 0);
	CHECK_INT(kallsyms_bytes(k), <, 300000);
	check_name(k, 1 << 12, "function_1", "");
}

/* The order of lines does not matter, and nothing is lost: against a plain reading of the text. */
static struct kallsyms *open_text(const char *text, size_t n, bool file)
{
	_cleanup_close_ int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct kallsyms *k = NULL;
	int pipes[2];

	if (file) {
		CHECK_INT(write(fd, text, n), ==, (ssize_t)n);
		CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
		CHECK_INT(kallsyms_new_fd(&k, fd, &limits), ==, 0);
		return k;
	}
	CHECK_INT(pipe(pipes), ==, 0);
	if (fork() == 0) {
		(void)close(pipes[0]);
		for (size_t at = 0; at < n;)
			at += (size_t)write(pipes[1], text + at, n - at);
		_exit(0);
	}
	(void)close(pipes[1]);
	CHECK_INT(kallsyms_new_fd(&k, pipes[0], &limits), ==, 0);
	(void)close(pipes[0]);
	(void)wait(NULL);
	return k;
}

static void same(const struct kallsyms *a, const struct kallsyms *b, uint64_t address)
{
	struct symbol x, y;
	int r = kallsyms_lookup(a, address, &x);

	CHECK_INT(kallsyms_lookup(b, address, &y), ==, r);
	if (r)
		return;
	CHECK_STR(x.name, y.name);
	CHECK_STR(x.module_name ? x.module_name : "", y.module_name ? y.module_name : "");
	CHECK_INT(x.start, ==, y.start);
	CHECK_INT(x.size, ==, y.size);
}

/* Of a file parts are read when they are asked for, of a pipe all: the answers are the same. */
static void test_in_parts(void)
{
	char *text = malloc(4 << 20);
	_cleanup_(kallsyms_freep) struct kallsyms *file = NULL, *pipe = NULL;
	uint64_t address = 0xffffffff81000000;
	static const char types[] = "TtDtWtbt";
	size_t n = (size_t)sprintf(text, "0000000000000000 A fixed\n0000000000001000 A gdt\n");
	uint64_t addresses[40000];
	char *middle;

	srand(1);
	for (int i = 0; i < 40000; i++) {
		/* Several at one address, also where a part would end; gaps of all kinds. */
		address += rand() % 3 ? (uint64_t)(rand() % 512) : rand() % 200 ? 0 : 3 << 20;
		addresses[i] = address;
		n += (size_t)sprintf(text + n, "%016" PRIx64 " %c %s%d\n", address,
				     types[rand() % 8], rand() % 4 ? "f" : "__f", i);
	}
	middle = text + n;
	/* A module in the order of its file, and a program. */
	n += (size_t)sprintf(text + n, "ffffffffc0002000 t second\t[mod]\nffffffffc0001000 t "
				       "first\t[mod]\nffffffffc0009000 t prog\t[bpf]\n");
	file = open_text(text, n, true);
	pipe = open_text(text, n, false);
	CHECK_INT(kallsyms_bytes(file), <, kallsyms_bytes(pipe) / 8);
	CHECK_INT(kallsyms_text_start(file), ==, kallsyms_text_start(pipe));
	for (int i = 0; i < 40000; i++)
		for (int off = -1; off < 2; off++)
			same(file, pipe, addresses[i] + (uint64_t)off);
	for (uint64_t at = 0xffffffffc0000f00; at < 0xffffffffc0009100; at += 0x80)
		same(file, pipe, at);
	same(file, pipe, 0);
	same(file, pipe, 0x1000);
	same(file, pipe, UINT64_MAX);
	kallsyms_free(file);
	kallsyms_free(pipe);
	/* Not in order: read as a whole, and one line longer than any. */
	memset(middle - (1 << 20), 'x', 20000);
	memcpy(text, "ffffffffffff0000 T high\n", 24);
	file = open_text(text, n, true);
	pipe = open_text(text, n, false);
	for (int i = 0; i < 40000; i += 7)
		same(file, pipe, addresses[i]);
	same(file, pipe, 0xffffffffffff0010);
	free(text);
}

static struct kallsyms *load_again(int fd)
{
	struct kallsyms *k = NULL;

	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	CHECK_INT(kallsyms_new_fd(&k, fd, &limits), ==, 0);
	return k;
}

/* A program of BPF may come in between. */
static void check_equal(int fd)
{
	bool equal = false;

	for (int i = 0; i < 5 && !equal; i++) {
		_cleanup_(kallsyms_freep) struct kallsyms *a = load_again(fd);
		_cleanup_(kallsyms_freep) struct kallsyms *b = load_again(fd);

		equal = kallsyms_equal(a, b);
	}
	CHECK(equal);
}

static void test_running_kernel(void)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	char line[1024], name[512], type;
	uint64_t address, start, ns;
	int n = 0, n_same = 0, r;
	struct symbol s;
	FILE *f;

	if (fd < 0) {
		fprintf(stderr, "SKIP: no /proc/kallsyms\n");
		return;
	}
	start = clock_monotonic_ns();
	r = kallsyms_new_fd(&k, fd, &limits);
	ns = clock_monotonic_ns() - start;
	if (r == 1) {
		fprintf(stderr, "SKIP: the kernel hides its addresses here\n");
		return;
	}
	CHECK_INT(r, ==, 0);
	f = fopen("/proc/kallsyms", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) != 3 ||
		    !strchr("tTwW", type) || strstr(line, "[bpf]")) /* these come and go */
			continue;
		n++;
		if (kallsyms_lookup(k, address, &s))
			continue;
		CHECK_INT(s.start, ==, address);
		n_same += strcmp(s.name, name) == 0;
	}
	(void)fclose(f);
	check_equal(fd);
	fprintf(stderr, "  %d functions, %d under that name; %.1f ms, %zu bytes\n", n, n_same,
		(double)ns / 1e6, kallsyms_bytes(k));
	CHECK_INT(n, >, 1000);
	CHECK_INT(n_same, >, n * 9 / 10);
}

int main(void)
{
	RUN(test_table);
	RUN(test_shared_names);
	RUN(test_far_apart);
	RUN(test_hidden);
	RUN(test_garbage);
	RUN(test_random);
	RUN(test_limit);
	RUN(test_in_parts);
	RUN(test_running_kernel);
	limits.keep_text = true;
	RUN(test_table);
	RUN(test_far_apart);
	RUN(test_hidden);
	RUN(test_garbage);
	RUN(test_random);
	RUN(test_in_parts);
	RUN(test_running_kernel);
	return 0;
}
