/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the kernel: a program linked where a kernel is, with debugging information, stands for
 * the debug file; kallsyms is its symbol table, moved as KASLR does.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/symbolizer/kernel-names.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define MOVED UINT64_C(0x12e00000)

/* Only x86_64 has a code model for where its kernel is. */
#if defined(__x86_64__)
#define FOR_KERNELS "-mcmodel=kernel "
#else
#define FOR_KERNELS ""
#endif

static const char source[] = "static inline __attribute__((always_inline)) int inner(int a)\n"
			     "{\n"
			     "	return a * 31 + *(volatile int *)&a;\n"
			     "}\n"
			     "int startup_64(int a)\n"
			     "{\n"
			     "	return a;\n"
			     "}\n"
			     "int sys_thing(int a)\n"
			     "{\n"
			     "	return inner(a) + 1;\n"
			     "}\n";

static const struct symbol_limits limits = {.max_file_bytes = 1 << 26,
					    .max_inflate_bytes = 1 << 26,
					    .max_table_bytes = 1 << 26,
					    .max_dwarf_bytes = 1 << 26,
					    .max_line_bytes = 1 << 22};
static char directory[] = "/tmp/perfwalk-test.XXXXXX";
static uint64_t startup, thing, thing_size;
static int n_opened, open_which; /* the file is found at which question; 0: never */
static int fetching = -1;	 /* the answer when there is none here */
static char last_path[256];

static void run(const char *command)
{
	CHECK_INT(system(command), ==, 0);
}

static void build(void)
{
	char path[64], line[256], name[64];
	FILE *f;

	test_make_directory(directory);
	CHECK_INT(chdir(directory), ==, 0);
	f = fopen("kernel.c", "w");
	CHECK(f != NULL);
	fputs(source, f);
	(void)fclose(f);
	run("gcc -g -O1 -nostdlib -static -ffreestanding " FOR_KERNELS "-fno-pic -no-pie "
	    "-Wl,-Ttext-segment=0xffffffff81000000,--build-id=sha1,-e,startup_64 -o vmlinux "
	    "kernel.c 2>gcc.log");
	run("objcopy -O binary --only-section=.note.gnu.build-id vmlinux notes");
	run("nm -S vmlinux > symbols");
	(void)snprintf(path, sizeof(path), "symbols");
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		uint64_t start, size;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %*c %63s", &start, &size, name) != 3)
			continue;
		if (strcmp(name, "startup_64") == 0)
			startup = start;
		if (strcmp(name, "sys_thing") == 0) {
			thing = start;
			thing_size = size;
		}
	}
	(void)fclose(f);
	CHECK_INT(startup, >, UINT64_C(0xffffffff80000000));
	CHECK_INT(thing, >, startup);
}

/* distance: of the second function from where it is in the debug file. */
static int kallsyms(uint64_t distance, bool hidden)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	/* The text begins where its segment does. */
	dprintf(fd, "%016" PRIx64 " T _text\n", hidden ? 0 : (startup & ~UINT64_C(0xfff)) + MOVED);
	dprintf(fd, "%016" PRIx64 " T startup_64\n", hidden ? 0 : startup + MOVED);
	dprintf(fd, "%016" PRIx64 " T __x64_sys_thing\n", hidden ? 0 : thing + MOVED + distance);
	dprintf(fd, "%016" PRIx64 " T _etext\n", hidden ? 0 : thing + MOVED + 0x1000);
	dprintf(fd, "%016" PRIx64 " t bpf_prog_0011223344556677_count\t[bpf]\n",
		hidden ? 0 : UINT64_C(0xffffffffc0001000));
	CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
	return fd;
}

static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *path, bool fetch)
{
	CHECK_INT(fetch, ==, n_opened % 2);
	(void)snprintf(last_path, sizeof(last_path), "%s", path);
	CHECK_INT(n, ==, 20);
	return ++n_opened == open_which ? open(ctx, O_RDONLY | O_CLOEXEC) : fetch ? fetching : -1;
}

static struct kernel_names *names_new(const char *file, uint64_t distance, bool hidden)
{
	struct kernel_names *k = NULL;

	n_opened = 0;
	CHECK_INT(kernel_names_new(&k, &limits, open_debug, (void *)file), ==, 0);
	kernel_names_set_kallsyms(k, kallsyms(distance, hidden));
	kernel_names_set_notes(k, open("notes", O_RDONLY | O_CLOEXEC));
	return k;
}

static void test_lines(void)
{
	for (open_which = 1; open_which <= 2; open_which++) {
		_cleanup_(kernel_names_freep) struct kernel_names *k =
			names_new("vmlinux", 0, false);
		struct symbol chain[SYMBOL_MAX_CHAIN];
		bool inlined = false;
		size_t n;

		CHECK_INT(kernel_names_lookup(k, startup + MOVED, true, chain, 64, &n), ==, 0);
		CHECK_INT(n, ==, 1);
		CHECK_STR(chain[0].name, "startup_64");
		CHECK_INT(chain[0].line, >=, 6);
		CHECK_STR(strrchr(chain[0].file, '/'), "/kernel.c");
		for (uint64_t at = 0; at < thing_size; at++) {
			CHECK_INT(kernel_names_lookup(k, thing + MOVED + at, true, chain, 64, &n),
				  ==, 0);
			/* The name is kallsyms'. */
			CHECK_STR(chain[n - 1].name, "__x64_sys_thing");
			CHECK_INT(chain[n - 1].start, ==, thing + MOVED);
			CHECK_INT(chain[n - 1].line, >=, 10);
			inlined |= n == 2 && strcmp(chain[0].name, "inner") == 0 &&
				   chain[0].line == 3 && chain[0].inlined;
		}
		CHECK(inlined);
		CHECK_INT(n_opened, ==, open_which);
		CHECK_INT(kernel_names_lookup(k, thing + MOVED, false, chain, 64, &n), ==, 0);
		CHECK(n == 1 && chain[0].file == NULL);
		kernel_names_trim(k);
		CHECK_INT(kernel_names_lookup(k, 0xffffffffc0001010, true, chain, 64, &n), ==, 0);
		CHECK_STR(chain[0].name, "bpf_prog_0011223344556677_count");
		CHECK(n == 1 && chain[0].file == NULL);
		CHECK_INT(kernel_names_lookup(k, 0xfffffffff0000000, true, chain, 64, &n), ==, 1);
	}
}

static void check_name_alone(const char *file, uint64_t distance)
{
	_cleanup_(kernel_names_freep) struct kernel_names *k = names_new(file, distance, false);
	struct symbol chain[SYMBOL_MAX_CHAIN];
	size_t n;

	CHECK_INT(kernel_names_lookup(k, thing + MOVED + distance + 1, true, chain, 64, &n), ==, 0);
	CHECK_INT(n, ==, 1);
	CHECK_STR(chain[0].name, "__x64_sys_thing");
	CHECK(chain[0].file == NULL);
	CHECK_INT(chain[0].line, ==, 0);
}

static void test_no_lines(void)
{
	open_which = 0;
	check_name_alone("vmlinux", 0);
	CHECK_INT(n_opened, ==, 2);
	CHECK(strncmp(last_path, "/lib/modules/", 13) == 0);
	/* A function that is elsewhere than the debug file says. */
	open_which = 1;
	check_name_alone("vmlinux", 1);
	/* Another kernel's, and none. */
	check_name_alone("/proc/self/exe", 0);
	check_name_alone("kernel.c", 0);
}

/* The debug file comes from elsewhere, but not at once. */
static void test_fetched(void)
{
	_cleanup_(kernel_names_freep) struct kernel_names *k = names_new("vmlinux", 0, false);
	struct symbol chain[SYMBOL_MAX_CHAIN];
	uint8_t id[20], other[20] = {0};
	size_t n;
	int notes = open("notes", O_RDONLY | O_CLOEXEC);

	CHECK_INT(pread(notes, id, sizeof(id), 16), ==, sizeof(id));
	(void)close(notes);
	open_which = 5;
	fetching = -EINPROGRESS;
	CHECK(!kernel_names_ask_again(k, false));
	CHECK_INT(kernel_names_lookup(k, thing + MOVED, true, chain, 64, &n), ==, 0);
	CHECK(n == 1 && chain[0].file == NULL && kernel_names_awaits(k));
	CHECK(!kernel_names_debug_file_came(k, other, sizeof(other), true));
	CHECK(kernel_names_awaits(k));
	/* The fetcher died: the next one is asked. */
	CHECK(kernel_names_ask_again(k, false) && !kernel_names_awaits(k));
	CHECK_INT(kernel_names_lookup(k, thing + MOVED, true, chain, 64, &n), ==, 0);
	CHECK(n == 1 && kernel_names_awaits(k));
	CHECK(!kernel_names_debug_file_came(k, id, sizeof(id), false));
	CHECK(!kernel_names_awaits(k));
	CHECK(kernel_names_debug_file_came(k, id, sizeof(id), true));
	CHECK_INT(kernel_names_lookup(k, thing + MOVED, true, chain, 64, &n), ==, 0);
	CHECK(chain[0].file != NULL && !kernel_names_awaits(k));
	CHECK_INT(n_opened, ==, 5);
	CHECK(!kernel_names_debug_file_came(k, id, sizeof(id), true));
	fetching = -1;
}

static void test_hidden(void)
{
	_cleanup_(kernel_names_freep) struct kernel_names *k = names_new("vmlinux", 0, true);
	struct symbol chain[SYMBOL_MAX_CHAIN];
	size_t n;

	CHECK_INT(kernel_names_lookup(k, thing + MOVED, true, chain, 64, &n), ==, 1);
	CHECK_INT(kernel_names_lookup(k, 0, true, chain, 64, &n), ==, 1);
}

/* A program or module is loaded where another one has been. */
static void test_modules(void)
{
	static const char *const behind[] = {"bpf_prog_0011223344556677_count\t[bpf]",
					     "bpf_prog_8899aabbccddeeff_total\t[bpf]",
					     "init_module\t[one]", "init_module\t[another]"};
	_cleanup_(kernel_names_freep) struct kernel_names *k = names_new("vmlinux", 0, false);
	uint64_t now = clock_monotonic_ns(), start = 0;
	struct symbol chain[SYMBOL_MAX_CHAIN];
	int fd = kallsyms(0, false);
	off_t kernel = lseek(fd, 0, SEEK_END) - (off_t)strlen(behind[0]) - 20;
	size_t n;

	kernel_names_set_kallsyms(k, fd);
	/* Nobody has asked for a name in a module. */
	CHECK_INT(kernel_names_lookup(k, thing + MOVED, false, chain, 64, &n), ==, 0);
	CHECK(!kernel_names_refresh(k, now + 3600 * NSEC_PER_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(behind); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(behind[i], "\t"),
			       behind[i]);
		CHECK_INT(ftruncate(fd, kernel), ==, 0);
		CHECK_INT(lseek(fd, kernel, SEEK_SET), ==, kernel);
		dprintf(fd, "ffffffffc0001000 t %s\n", behind[i]);
		CHECK(!kernel_names_refresh(k, now));
		CHECK(kernel_names_refresh(k, now + 3600 * NSEC_PER_SEC) == (i > 0));
		CHECK(!kernel_names_refresh(k, now + 3600 * NSEC_PER_SEC));
		CHECK_INT(kernel_names_lookup(k, 0xffffffffc0001010, true, chain, 64, &n), ==, 0);
		CHECK_STR(chain[0].name, name);
		/* By which the namer tells functions apart. */
		CHECK(chain[0].start != start);
		start = chain[0].start;
		CHECK_INT(kernel_names_lookup(k, 0xffffffffc0001020, true, chain, 64, &n), ==, 0);
		CHECK(chain[0].start == start);
	}
}

/* The names that were given out hold while it stays as it is. */
static void test_same_modules(void)
{
	_cleanup_(kernel_names_freep) struct kernel_names *k = names_new("vmlinux", 0, false);
	struct symbol chain[SYMBOL_MAX_CHAIN];
	int fd = kallsyms(0, false);
	size_t n;

	kernel_names_set_kallsyms(k, fd);
	CHECK_INT(kernel_names_lookup(k, 0xffffffffc0001010, true, chain, 64, &n), ==, 0);
	for (int i = 0; i < 3; i++) {
		uint64_t now = clock_monotonic_ns();

		CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
		CHECK(!kernel_names_refresh(k, now + 90 * NSEC_PER_SEC));
		CHECK_INT(lseek(fd, 0, SEEK_CUR), ==, 0);
		CHECK(!kernel_names_refresh(k, now + 120 * NSEC_PER_SEC));
		CHECK_INT(lseek(fd, 0, SEEK_CUR), >, 0);
		CHECK_INT(kernel_names_lookup(k, 0xffffffffc0001010, true, chain, 64, &n), ==, 0);
		CHECK_STR(chain[0].name, "bpf_prog_0011223344556677_count");
	}
	CHECK_INT(ftruncate(fd, lseek(fd, 0, SEEK_END) - 2), ==, 0);
	dprintf(fd, "x]\n");
	CHECK(kernel_names_refresh(k, clock_monotonic_ns() + 120 * NSEC_PER_SEC));
}

static void test_notes(void)
{
	static const uint32_t odd[][6] = {{4, 20, 3}, {0xffffffff, 1, 3}, {4, 0xffffffff, 3}, {0}};

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		_cleanup_(kernel_names_freep) struct kernel_names *k =
			names_new("vmlinux", 0, false);
		int fd = memfd_create("notes", MFD_CLOEXEC);

		CHECK_INT(write(fd, odd[i], sizeof(odd[i])), ==, sizeof(odd[i]));
		kernel_names_set_notes(k, fd);
	}
}

int main(void)
{
	if (system("command -v gcc objcopy nm >/dev/null") != 0)
		SKIP("gcc or binutils are not installed");
	build();
	RUN(test_lines);
	RUN(test_no_lines);
	RUN(test_fetched);
	RUN(test_hidden);
	RUN(test_modules);
	RUN(test_same_modules);
	RUN(test_notes);
	run("rm -f vmlinux notes symbols kernel.c gcc.log");
	CHECK_INT(rmdir(directory), ==, 0);
	return 0;
}
