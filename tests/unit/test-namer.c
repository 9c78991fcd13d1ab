/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a window are named: those of its samples, and those that there is time for. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdlib.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/symbolizer/namer.h"
#include "tests/unit/nm.h"
#include "util/clock.h"
#include "util/time-share.h"

enum { N_FILES = 3 };

DEFINE_CLEANUP(struct namer *, namer_free)

static char directory[] = "/tmp/perfwalk-test.XXXXXX";
static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers: no debug files */
static uint64_t address;
static struct profile p;
static uint32_t modules[N_FILES];

static void build(void)
{
	char command[128];
	FILE *f;

	test_make_directory(directory);
	CHECK_INT(chdir(directory), ==, 0);
	f = fopen("program.c", "w");
	CHECK(f != NULL);
	(void)fputs("int busy(int a)\n{\n\treturn a * 3 + 1;\n}\nint main(int argc, char **argv)\n"
		    "{\n\treturn busy(argc);\n}\n",
		    f);
	(void)fclose(f);
	run("gcc -g -O1 -no-pie -w -o 0 program.c");
	for (int i = 1; i < N_FILES; i++) {
		(void)snprintf(command, sizeof(command), "(cat 0; echo %d) > %d", i, i);
		run(command);
	}
	address = nm_address("0", "busy");
}

static void closed(void *ctx, uint64_t uid)
{
	(void)ctx, (void)uid;
}

static uint64_t uid_of(unsigned int file)
{
	return PROFILE_UID_FIRST_FILE + 1 + file;
}

static void give_file(struct namer *n, unsigned int file)
{
	char path[16];
	int fd;

	(void)snprintf(path, sizeof(path), "%u", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	file_names_add(namer_files(n), uid_of(file), 0, path, fd);
}

static void begin_with(struct namer **ret, uint64_t max_table_bytes)
{
	CHECK_INT(namer_new(ret, &role, &ask, max_table_bytes, 16, false, closed, NULL), ==, 0);
	profile_init(&p, 1 << 26);
	for (unsigned int i = 0; i < N_FILES; i++) {
		struct profile_module m = {
			.uid = uid_of(i), .kind = PROFILE_MODULE_FILE, .process = PROFILE_NONE};

		modules[i] = profile_add_module(&p, &m);
	}
}

static void begin(struct namer **ret)
{
	begin_with(ret, 1 << 26);
}

/* A frame in that file, an instruction further than others: samples of it alone. */
static uint32_t sample(unsigned int file, uint64_t offset, unsigned int n)
{
	uint32_t frame = profile_add_frame(&p, modules[file], address + offset);
	struct profile_sample s = {.value = 1, .stack = profile_add_stack(&p, &frame, 1, 0)};

	for (unsigned int i = 0; i < n; i++)
		CHECK(profile_add_sample(&p, &s));
	return frame;
}

static void check_name(uint32_t frame, const char *name)
{
	const struct profile_frame *f = &p.frames.items[frame];
	const char *is = "none";

	if (f->n_lines)
		is = profile_text(&p,
				  p.functions.items[p.lines.items[f->first_line].function].name);
	CHECK_STR(is, name);
}

static void test_only_of_this_window(void)
{
	_cleanup_(namer_freep) struct namer *n = NULL;
	uint32_t first, second;

	begin(&n);
	give_file(n, 1);
	first = sample(0, 0, 1); /* its file is not there yet */
	namer_name(n, &p, 0);
	check_name(first, "none");

	profile_clear_samples(&p);
	give_file(n, 0);
	second = sample(1, 0, 1);
	(void)sample(0, 1, 1);
	namer_name(n, &p, 0);
	check_name(second, "busy");
	check_name(first, "none");

	/* Sampled again. */
	profile_clear_samples(&p);
	CHECK_INT(sample(0, 0, 1), ==, first);
	namer_name(n, &p, 0);
	check_name(first, "busy");
	CHECK_INT(namer_n_put_off(n), ==, 0);
	profile_deinit(&p);
}

/* A file that has cost too much waits, others do not. */
static void test_a_file_that_costs(void)
{
	_cleanup_(namer_freep) struct namer *n = NULL;
	struct time_share *cost;
	uint32_t first[2], second;

	begin(&n);
	namer_set_window(n, 10 * NSEC_PER_SEC, false);
	give_file(n, 0);
	give_file(n, 1);
	first[0] = sample(0, 0, 100);
	namer_name(n, &p, 0);
	check_name(first[0], "busy");
	cost = file_names_cost(namer_files(n), uid_of(0));
	CHECK(cost != NULL);
	CHECK_INT(cost->last_ns, >, 0); /* it is in the book */
	/* As if its symbols had taken very long. */
	cost->credit_ns = -(int64_t)(1000000 * NSEC_PER_SEC);

	profile_clear_samples(&p);
	first[1] = sample(0, 1, 100);
	(void)sample(0, 2, 1);
	second = sample(1, 0, 1);
	namer_name(n, &p, 0);
	check_name(first[0], "busy");
	check_name(first[1], "none");
	check_name(second, "busy");
	CHECK_INT(namer_n_put_off(n), ==, 2);

	/* Time has passed. */
	cost = file_names_cost(namer_files(n), uid_of(0));
	cost->credit_ns = NSEC_PER_SEC;
	namer_name(n, &p, 0);
	check_name(first[1], "busy");
	CHECK_INT(namer_n_put_off(n), ==, 0);

	/* In a capture all names count. */
	cost = file_names_cost(namer_files(n), uid_of(0));
	cost->credit_ns = -(int64_t)(1000000 * NSEC_PER_SEC);
	namer_set_window(n, 0, false);
	first[1] = sample(0, 3, 1);
	namer_name(n, &p, 0);
	check_name(first[1], "busy");
	profile_deinit(&p);
}

/* When somebody last began to look names up in a file: each time adds to its cost. */
static uint64_t begun(struct namer *n, unsigned int file)
{
	struct time_share *cost = file_names_cost(namer_files(n), uid_of(file));

	return cost ? cost->begin_wall_ns : 0;
}

/* How often a file is looked into, in so many windows with a sample of each of these frames. */
static unsigned int looks(struct namer *n, unsigned int n_windows, const uint32_t *frames,
			  unsigned int n_frames)
{
	unsigned int n_looks = 0;

	for (unsigned int i = 0; i < n_windows; i++) {
		uint64_t before[N_FILES];

		profile_clear_samples(&p);
		for (unsigned int j = 0; j < n_frames; j++) {
			struct profile_sample s = {
				.value = 1, .stack = profile_add_stack(&p, &frames[j], 1, 0)};

			CHECK(profile_add_sample(&p, &s));
		}
		for (unsigned int j = 0; j < N_FILES; j++)
			before[j] = begun(n, j);
		namer_name(n, &p, 0);
		for (unsigned int j = 0; j < N_FILES; j++)
			n_looks += begun(n, j) != before[j];
	}
	return n_looks;
}

/*
 * The profile keeps frames without a name of files whose processes are gone, and their tables were
 * dropped for want of memory. Nobody samples them: nobody reads their files, in any window. Such
 * that are sampled all the time are looked up again once in many windows.
 */
static void test_files_long_gone(void)
{
	_cleanup_(namer_freep) struct namer *n = NULL;
	uint32_t named, nameless[N_FILES];

	begin_with(&n, 1);
	namer_set_window(n, 3600 * NSEC_PER_SEC, false);
	for (unsigned int i = 0; i < N_FILES; i++) {
		give_file(n, i);
		nameless[i] = sample(i, UINT64_C(1) << 32, 1);
	}
	named = sample(0, 0, 1);
	CHECK_INT(looks(n, 1, nameless, N_FILES), ==, N_FILES);
	CHECK_INT(looks(n, 1, &named, 1), ==, 1);
	check_name(named, "busy");
	check_name(nameless[0], "none");

	CHECK_INT(looks(n, 500, &named, 1), ==, 0);
	CHECK_INT(looks(n, 500, nameless, N_FILES), <=, 10 * N_FILES);
	check_name(nameless[0], "none");
	profile_deinit(&p);
}

/* The file of the most samples is named first, however the rows lie. */
static void test_most_samples_first(void)
{
	_cleanup_(namer_freep) struct namer *n = NULL;
	uint32_t frames[N_FILES];
	uint64_t job = status.job;

	begin(&n);
	namer_set_window(n, 10 * NSEC_PER_SEC, false);
	for (unsigned int i = 0; i < N_FILES; i++)
		give_file(n, i);
	frames[0] = sample(0, 0, 2);
	frames[1] = sample(1, 0, 1);
	frames[2] = sample(2, 0, 3);
	namer_name(n, &p, 0);
	CHECK_INT(status.job, ==, job + 2 * N_FILES);
	CHECK_STR(status.file.path, "1"); /* the last one */
	for (unsigned int i = 0; i < N_FILES; i++)
		check_name(frames[i], "busy");
	profile_deinit(&p);
}

/* Frames that name themselves keep their names, also such as look mangled, beside others. */
static void test_frames_of_a_runtime(void)
{
	_cleanup_(namer_freep) struct namer *n = NULL;
	struct profile_sample s = {.value = 1};
	struct profile_line line = {.line = 7};
	uint32_t frames[3], runtime;

	begin(&n);
	give_file(n, 0);
	runtime = profile_add_runtime(&p, PROFILE_RUNTIME_CPYTHON);
	line.function = profile_add_function(
		&p, &(struct profile_function){.name = strtab_put(&p.strings, "_Z3foov")});
	frames[0] = profile_add_named_frame(&p, runtime, 0, &line, 1);
	frames[1] = profile_add_frame(&p, modules[0], address);
	frames[2] = profile_add_named_frame(&p, runtime, 0, NULL, 0);
	s.stack = profile_add_stack(&p, frames, 3, 0);
	CHECK(profile_add_sample(&p, &s));
	for (int i = 0; i < 2; i++) {
		namer_name(n, &p, 0);
		check_name(frames[0], "_Z3foov");
		check_name(frames[1], "busy");
		check_name(frames[2], "none");
	}
	CHECK_INT(p.lines.items[p.frames.items[frames[0]].first_line].line, ==, 7);
	(void)namer_set_demangling(n, SYMBOL_DEMANGLE_NONE);
	namer_demangle_again(n, &p);
	(void)namer_set_demangling(n, SYMBOL_DEMANGLE_FULL);
	namer_demangle_again(n, &p);
	check_name(frames[0], "_Z3foov");
	profile_deinit(&p);
}

int main(void)
{
	if (system("command -v gcc nm > /dev/null") != 0)
		SKIP("no gcc here");
	build();
	RUN(test_only_of_this_window);
	RUN(test_a_file_that_costs);
	RUN(test_files_long_gone);
	RUN(test_most_samples_first);
	RUN(test_frames_of_a_runtime);
	return 0;
}
