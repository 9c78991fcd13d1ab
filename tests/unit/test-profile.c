/* SPDX-License-Identifier: Apache-2.0 */
/* Interning, limits, and windows that cross the wall: round trip and hostile bytes. */
#include <errno.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/profile/labels.h"
#include "src/profile/profile.h"
#include "src/profile/window.h"
#include "src/profile/window-format.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

static void fill(struct profile *p, uint32_t n_samples)
{
	struct profile_process proc = {
		.pid = 42, .start_time_unix_ns = 7, .comm = strtab_put(&p->strings, "work")};
	struct profile_module m = {.uid = PROFILE_UID_FIRST_FILE,
				   .kind = PROFILE_MODULE_FILE,
				   .process = PROFILE_NONE,
				   .path = strtab_put(&p->strings, "/bin/work"),
				   .memory_start = 0x1000,
				   .memory_limit = 0x9000};
	uint32_t process = profile_add_process(p, &proc), module = profile_add_module(p, &m);

	p->start_unix_ns = 1000;
	p->end_unix_ns = 1000 + 2 * (uint64_t)n_samples + 1;
	p->types[0].rate_hz = 99;
	p->types[0].event = strtab_put(&p->strings, "cpu-clock");
	for (uint32_t i = 0; i < n_samples; i++) {
		uint32_t frames[3] = {profile_add_frame(p, module, 0x1000 + i % 7),
				      profile_add_frame(p, module, 0x2000 + i % 3),
				      profile_add_frame(p, module, 0x3000)};
		struct profile_sample s = {
			.time_unix_ns = 1000 + 2 * (uint64_t)i,
			.value = 1,
			.cpu = i % 2,
			.thread = profile_add_thread(p, process, 42 + i % 2, STRID_EMPTY),
			.stack = profile_add_stack(p, frames, 3, 0)};

		CHECK(profile_add_sample(p, &s));
		p->counters[PROFILE_SAMPLES]++;
	}
}

/* A frame of a runtime: a function, and one that was inlined into it. */
static uint32_t put_runtime_frame(struct profile *p, enum profile_runtime runtime, const char *name,
				  uint32_t line, const char *inlined)
{
	struct profile_function f = {.name = strtab_put(&p->strings, name),
				     .file = strtab_put(&p->strings, "app/views.py"),
				     .start_line = 7};
	struct profile_line lines[2] = {{.line = 3}, {.line = line}};

	lines[1].function = profile_add_function(p, &f);
	if (inlined) {
		f.name = strtab_put(&p->strings, inlined);
		lines[0].function = profile_add_function(p, &f);
	}
	return profile_add_named_frame(p, profile_add_runtime(p, runtime), 0,
				       inlined ? lines : lines + 1, inlined ? 2 : 1);
}

/* Samples whose stacks mix frames with names and without. */
static void fill_mixed(struct profile *p, uint32_t n_samples)
{
	fill(p, 1);
	p->end_unix_ns = 1000 + n_samples;
	p->types[0].samples.n = 0;
	for (uint32_t i = 0; i < n_samples; i++) {
		uint32_t frames[5] = {
			profile_add_frame(p, 0, 0x1000 + i % 3),
			put_runtime_frame(p, PROFILE_RUNTIME_CPYTHON, "inner", i % 5, NULL),
			put_runtime_frame(p, PROFILE_RUNTIME_JVM, "Outer.run", i % 2, "Outer.get"),
			profile_add_frame(p, 0, 0x3000),
			profile_add_frame(p, profile_add_runtime(p, PROFILE_RUNTIME_JVM), 0)};
		struct profile_sample s = {.time_unix_ns = 1000 + i,
					   .value = 1,
					   .stack = profile_add_stack(p, frames, 5, 0)};

		CHECK(profile_add_sample(p, &s));
	}
}

static const char *function_of(const struct profile *p, uint32_t frame, uint32_t line)
{
	const struct profile_frame *f = &p->frames.items[frame];

	CHECK_INT(line, <, f->n_lines);
	return profile_text(p,
			    p->functions.items[p->lines.items[f->first_line + line].function].name);
}

static void check_mixed_stack(const struct profile *p, uint32_t sample, uint32_t i)
{
	uint32_t n;
	const uint32_t *frames =
		profile_stack_frames(p, p->types[0].samples.items[sample].stack, &n);
	const struct profile_frame *f;

	CHECK_INT(n, ==, 5);
	CHECK_INT(p->frames.items[frames[0]].address, ==, 0x1000 + i % 3);
	CHECK(profile_wants_name(p, frames[0]) && profile_wants_name(p, frames[3]));
	CHECK_STR(function_of(p, frames[1], 0), "inner");
	CHECK_STR(function_of(p, frames[2], 0), "Outer.get");
	CHECK_STR(function_of(p, frames[2], 1), "Outer.run");
	CHECK(!profile_wants_name(p, frames[1]) && !profile_wants_name(p, frames[2]));
	f = &p->frames.items[frames[1]];
	CHECK_INT(p->lines.items[f->first_line].line, ==, i % 5);
	CHECK_INT(p->modules.items[f->module].kind, ==, PROFILE_MODULE_RUNTIME);
	CHECK_STR(profile_runtime_name(p->modules.items[f->module].runtime), "cpython");
	f = &p->frames.items[frames[2]];
	CHECK_STR(profile_runtime_name(p->modules.items[f->module].runtime), "jvm");
	CHECK_INT(p->lines.items[f->first_line + 1].line, ==, i % 2);
	CHECK_STR(profile_text(p, p->functions.items[p->lines.items[f->first_line].function].file),
		  "app/views.py");
	f = &p->frames.items[frames[4]];
	CHECK_INT(f->n_lines, ==, 0);
	CHECK_STR(profile_runtime_name(p->modules.items[f->module].runtime), "jvm");
}

static void test_runtimes_have_names(void)
{
	for (uint32_t i = 0; i < PROFILE_N_RUNTIMES; i++) {
		CHECK(profile_runtime_name(i)[0] != '\0');
		CHECK_INT(profile_runtime_by_name(profile_runtime_name(i)), ==, i);
	}
	CHECK_STR(profile_runtime_name(PROFILE_N_RUNTIMES), "");
	CHECK_INT(profile_runtime_by_name("native"), ==, PROFILE_N_RUNTIMES);
}

/* Frames with names cross the wall beside frames without, and those of several windows, also of
 * another profiler, are the same. */
static void test_named_frames_cross(void)
{
	enum { N = 60 };
	struct profile p, q;
	uint32_t n_frames;
	int fd;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	/* So that no row has the same number on both sides. */
	(void)put_runtime_frame(&q, PROFILE_RUNTIME_V8JS, "other", 1, "another");
	fill_mixed(&p, N);
	fd = window_write(&p);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(q.types[0].samples.n, ==, N);
	n_frames = q.frames.n;
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(q.frames.n, ==, n_frames);
	CHECK_INT(q.functions.n, ==, 2 + 3);
	for (uint32_t i = 0; i < 2 * N; i++)
		check_mixed_stack(&q, i, i % N);
	/* A restarted profiler's: of files they are others, of runtimes the same. */
	CHECK_INT(window_read(&q, fd, UINT64_C(1) << 40, NULL, 0), ==, 0);
	CHECK_INT(q.modules.n, ==, 1 + 3 + 1);
	for (uint32_t i = 0; i < 3 * N; i++)
		check_mixed_stack(&q, i, i % N);
	close(fd);
	profile_deinit(&p);
	profile_deinit(&q);
}

/* Where functions or lines do not fit, the samples are counted. */
static void test_named_frames_without_room(void)
{
	enum { N = 60 };
	struct profile p, q;
	uint32_t some = 0;
	int fd;

	profile_init(&p, 1 << 20);
	fill_mixed(&p, N);
	fd = window_write(&p);
	for (uint64_t max_bytes = 256; max_bytes < 8192; max_bytes += 8) {
		profile_init(&q, max_bytes);
		CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
		CHECK_INT(q.types[0].samples.n + profile_counter(&q, PROFILE_SAMPLES_DROPPED), ==,
			  N);
		some += q.types[0].samples.n > 0 && q.types[0].samples.n < N;
		for (uint32_t i = 0; i < q.stack_frames.n; i++)
			CHECK_INT(q.stack_frames.items[i], <, q.frames.n);
		profile_deinit(&q);
	}
	CHECK_INT(some, >, 0);
	close(fd);
	profile_deinit(&p);
}

static void test_equal_rows_get_one_number(void)
{
	struct profile p;

	profile_init(&p, 1 << 20);
	fill(&p, 210);
	CHECK_INT(p.types[0].samples.n, ==, 210);
	CHECK_INT(p.frames.n, ==, 7 + 3 + 1);
	CHECK_INT(p.stacks.n, ==, 21);
	CHECK_INT(p.threads.n, ==, 2);
	CHECK_INT(p.processes.n, ==, 1);
	profile_clear(&p);
	CHECK_INT(p.types[0].samples.n, ==, 0);
	CHECK_STR(profile_text(&p, 1), "");
	fill(&p, 21);
	CHECK_INT(p.stacks.n, ==, 21);
	profile_deinit(&p);
}

/* Files of several hosts have processes of equal pid and name. */
static void test_processes_of_several_hosts(void)
{
	struct profile p;
	struct profile_process proc = {.pid = 7};

	profile_init(&p, 1 << 20);
	proc.comm = strtab_put(&p.strings, "web");
	proc.systemd_unit = strtab_put(&p.strings, "a.service");
	CHECK_INT(profile_add_process(&p, &proc), ==, 0);
	proc.systemd_unit = strtab_put(&p.strings, "b.service");
	CHECK_INT(profile_add_process(&p, &proc), ==, 1);
	/* Without an id the name of the container is all there is. */
	proc.container_name = strtab_put(&p.strings, "one");
	CHECK_INT(profile_add_process(&p, &proc), ==, 2);
	/* With one, the name may come later. */
	proc.container_id = strtab_put(&p.strings, "0123456789ab");
	proc.container_name = STRID_EMPTY;
	CHECK_INT(profile_add_process(&p, &proc), ==, 3);
	proc.container_name = strtab_put(&p.strings, "two");
	CHECK_INT(profile_add_process(&p, &proc), ==, 3);
	proc.container_name = strtab_put(&p.strings, "three");
	CHECK_INT(profile_add_process(&p, &proc), ==, 4);
	profile_deinit(&p);
}

/* Its engine may write the name of a container down after the first window of it. */
static void test_container_name_comes_later(void)
{
	struct profile p, q;
	struct profile_process proc = {.pid = 42};
	int fd;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	for (int i = 0; i < 3; i++) {
		profile_clear(&p);
		proc.container_id = strtab_put(&p.strings, "0123456789ab");
		proc.container_name = strtab_put(&p.strings, i == 1 ? "web" : "");
		proc.is_program = i == 1;
		CHECK_INT(profile_add_process(&p, &proc), ==, 0);
		fd = window_write(&p);
		CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
		CHECK_INT(close(fd), ==, 0);
		CHECK_INT(q.processes.n, ==, 1);
		CHECK_STR(profile_text(&q, q.processes.items[0].container_name), i ? "web" : "");
		CHECK_INT(q.processes.items[0].is_program, ==, i > 0);
	}
	/* The same number in another container, of another host. */
	proc.container_id = strtab_put(&p.strings, "ba9876543210");
	proc.container_name = STRID_EMPTY;
	CHECK_INT(profile_add_process(&p, &proc), ==, 1);
	profile_deinit(&p);
	profile_deinit(&q);
}

/* A frame without a name is looked up once, until something may have changed. */
static void test_frames_without_a_name(void)
{
	const struct profile_line line = {.line = 1};
	struct profile p;
	uint32_t a, b;

	profile_init(&p, 1 << 20);
	a = profile_add_frame(&p, 0, 0x10);
	b = profile_add_frame(&p, 1, 0x10);
	CHECK(profile_wants_name(&p, a) && profile_wants_name(&p, b));
	profile_set_nameless(&p, a);
	profile_set_nameless(&p, b);
	CHECK(!profile_wants_name(&p, a) && !profile_wants_name(&p, b));
	CHECK_INT(profile_add_frame(&p, 0, 0x10), ==, a);
	CHECK(!profile_wants_name(&p, a));
	profile_forget_names(&p, 0);
	CHECK(profile_wants_name(&p, a) && !profile_wants_name(&p, b));
	profile_set_nameless(&p, a);
	profile_retry_nameless(&p);
	CHECK(profile_wants_name(&p, a) && profile_wants_name(&p, b));
	profile_set_nameless(&p, a);
	CHECK(profile_name_frame(&p, a, &line, 1));
	profile_set_nameless(&p, a);
	CHECK_INT(p.frames.items[a].n_lines, ==, 1);
	CHECK_INT(p.frames.items[a].first_line, ==, 0);
	CHECK(!profile_wants_name(&p, a));
	profile_deinit(&p);
}

static void test_full_profile_counts_what_it_refuses(void)
{
	struct profile p;
	uint32_t frame, stack, kept = 0;

	profile_init(&p, 64 << 10);
	fill(&p, 3);
	frame = profile_add_frame(&p, 0, 1);
	stack = profile_add_stack(&p, &frame, 1, 0);
	for (int i = 0; i < 10000; i++) {
		struct profile_sample s = {.time_unix_ns = 1, .value = 1, .stack = stack};

		kept += profile_add_sample(&p, &s);
	}
	CHECK_INT(profile_counter(&p, PROFILE_SAMPLES_DROPPED) + kept, ==, 10000);
	CHECK_INT(profile_counter(&p, PROFILE_SAMPLES_DROPPED), >, 0);
	CHECK(profile_nearly_full(&p));
	/* The table of frames may have room for a few: not for more than that. */
	for (uint64_t at = 0xdead; frame != PROFILE_NONE && at < 0xdead + 1000; at++)
		frame = profile_add_frame(&p, 0, at);
	CHECK_INT(frame, ==, PROFILE_NONE);
	profile_deinit(&p);
}

static void test_window_round_trip_and_merge(void)
{
	struct profile p, q;
	int fd;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	fill(&p, 100);
	fd = window_write(&p);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(q.types[0].samples.n, ==, 200);
	CHECK_INT(q.stacks.n, ==, p.stacks.n);
	CHECK_INT(q.counters[PROFILE_SAMPLES], ==, 200);
	CHECK_STR(profile_text(&q, q.processes.items[0].comm), "work");
	CHECK_STR(profile_text(&q, q.types[0].event), "cpu-clock");
	CHECK_INT(q.frames.items[0].address, ==, 0x1000);
	/* Another profiler's modules are other modules. */
	CHECK_INT(window_read(&q, fd, UINT64_C(1) << 40, NULL, 0), ==, 0);
	CHECK_INT(q.modules.n, ==, 2);
	close(fd);
	profile_deinit(&p);
	profile_deinit(&q);
}

static struct profile_resident resident_at(uint64_t time_unix_ns, uint64_t bytes)
{
	return (struct profile_resident){.time_unix_ns = time_unix_ns, .bytes = bytes};
}

/* What processes have in memory crosses, too; a window that is refused leaves nothing of it. */
static void test_residents_cross(void)
{
	struct profile_kills k = {.n = 3};
	struct profile_victim v = {.process = 0, .certain = 1};
	struct profile_resident r;
	struct profile p, q;
	int fd, bad;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	fill(&p, 3);
	r = resident_at(p.start_unix_ns, 4096);
	CHECK(profile_add_resident(&p, &r));
	r = resident_at(p.end_unix_ns - 1, PROFILE_RESIDENT_UNKNOWN);
	CHECK(profile_add_resident(&p, &r));
	k.time_unix_ns = p.start_unix_ns;
	CHECK(profile_add_kills(&p, &k));
	v.time_unix_ns = p.start_unix_ns;
	CHECK(profile_add_victim(&p, &v));
	fd = window_write(&p);
	r = resident_at(p.end_unix_ns, 1);
	CHECK(profile_add_resident(&p, &r));
	bad = window_write(&p);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(window_read(&q, bad, 0, NULL, 0), ==, -EBADMSG);
	CHECK_INT(q.residents.n, ==, 2);
	CHECK_INT(q.residents.items[0].bytes, ==, 4096);
	CHECK_INT(q.residents.items[0].time_unix_ns, ==, p.start_unix_ns);
	CHECK(q.residents.items[1].bytes == PROFILE_RESIDENT_UNKNOWN);
	CHECK_INT(q.processes.items[q.residents.items[1].process].pid, ==,
		  p.processes.items[0].pid);
	CHECK_INT(q.kills.n, ==, 1);
	CHECK_INT(q.kills.items[0].n, ==, 3);
	CHECK_INT(q.victims.n, ==, 1);
	CHECK_INT(q.victims.items[0].certain, ==, 1);
	profile_clear_samples(&q);
	CHECK_INT(q.residents.n + q.kills.n + q.victims.n, ==, 0);
	close(fd);
	close(bad);
	profile_deinit(&p);
	profile_deinit(&q);
}

/* As the symbolizer keeps one: names stay with their frames as long as the next window fits in. */
static void test_room_for_a_window(void)
{
	enum { WINDOW_BYTES = 64 << 10 };
	struct profile p, q;

	profile_init(&p, WINDOW_BYTES);
	profile_init(&q, 2 * WINDOW_BYTES);
	for (uint32_t round = 0, address = 0; round < 40; round++) {
		uint32_t n = 0;
		int fd;

		profile_clear(&p);
		fill(&p, 1);
		/* Small ones at first, and what is full behind them. */
		while (!profile_nearly_full(&p) && (round % 4 == 3 || n++ < 50)) {
			uint32_t frame = profile_add_frame(&p, 0, 0x4000 + address++);
			struct profile_sample s = {.time_unix_ns = 1000,
						   .value = 1,
						   .stack = profile_add_stack(&p, &frame, 1, 0)};

			CHECK(profile_add_sample(&p, &s));
		}
		fd = window_write(&p);
		CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
		close(fd);
		CHECK_INT(q.types[0].samples.n, ==, p.types[0].samples.n);
		CHECK_INT(q.counters[PROFILE_SAMPLES_DROPPED], ==, 0);
		array_clear(&q.types[0].samples);
		if (!profile_has_room(&q, WINDOW_BYTES))
			profile_clear(&q);
	}
	profile_deinit(&p);
	profile_deinit(&q);
}

static int sealed_copy(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_INT(write(fd, bytes, n), ==, (int64_t)n);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), ==, 0);
	return fd;
}

/* Adds a type "faults" with n samples of value v; the samples of fill() lend them a stack. */
static void add_faults(struct profile *p, uint32_t n, int64_t v)
{
	struct profile_type facts = {.period_events = 1,
				     .event = strtab_put(&p->strings, "page-faults"),
				     .stack_bytes = 4096};
	uint32_t type = profile_add_type(p, &facts);

	p->types[type].counters[PROFILE_SAMPLES] += n;
	p->types[type].counters[PROFILE_SAMPLES_LOST] += 7;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = p->types[0].samples.items[i];

		s.value = v;
		CHECK(profile_add_sample_of(p, type, &s));
	}
}

/* Several events cross the wall and are merged, each with its own; a window without one of them
 * changes nothing of the rest. */
static void test_types(void)
{
	struct profile p, q, view;
	struct profile_type again;
	int both, one;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	fill(&p, 100);
	one = window_write(&p);
	add_faults(&p, 30, 5);
	both = window_write(&p);
	CHECK_INT(window_read(&q, both, 0, NULL, 0), ==, 0);
	CHECK_INT(window_read(&q, one, 0, NULL, 0), ==, 0);
	CHECK_INT(window_read(&q, both, 0, NULL, 0), ==, 0);
	CHECK_INT(q.n_types, ==, 2);
	CHECK_INT(q.types[0].samples.n, ==, 300);
	profile_view(&q, 0, &view);
	CHECK_INT(view.types[0].samples.n, ==, 300);
	CHECK_STR(profile_text(&view, view.types[0].event), "cpu-clock");
	CHECK_INT(profile_counter(&view, PROFILE_SAMPLES), ==, 300);
	CHECK_INT(profile_counter(&view, PROFILE_SAMPLES_LOST), ==, 0);
	CHECK_INT(profile_counter(&q, PROFILE_SAMPLES), ==, 360);
	CHECK_INT(profile_counter(&q, PROFILE_SAMPLES_LOST), ==, 14);
	profile_view(&q, 1, &view);
	CHECK_INT(profile_counter(&view, PROFILE_SAMPLES), ==, 60);
	CHECK_INT(profile_counter(&view, PROFILE_SAMPLES_LOST), ==, 14);
	CHECK_INT(view.types[0].samples.n, ==, 60);
	CHECK_INT(view.types[0].samples.items[59].value, ==, 5);
	CHECK_INT(view.types[0].samples.items[59].stack, ==, q.types[0].samples.items[29].stack);
	CHECK_INT(view.types[0].period_events, ==, 1);
	CHECK_INT(view.types[0].stack_bytes, ==, 4096);
	CHECK_STR(profile_text(&view, view.types[0].event), "page-faults");
	/* Without samples, the next window says what they are of; what was counted stays. */
	profile_clear_samples(&q);
	CHECK_INT(q.n_types, ==, 1);
	CHECK_INT(profile_counter(&q, PROFILE_SAMPLES), ==, 360);
	profile_clear(&q);
	CHECK_INT(profile_counter(&q, PROFILE_SAMPLES), ==, 0);
	CHECK_INT(window_read(&q, both, 0, NULL, 0), ==, 0);
	CHECK_INT(q.n_types, ==, 2);
	CHECK_INT(q.types[1].samples.n, ==, 30);
	again = q.types[1];
	for (uint32_t i = 2; i < PROFILE_MAX_TYPES; i++)
		CHECK_INT(profile_add_type(&q, &again), ==, i);
	CHECK_INT(profile_add_type(&q, &again), ==, PROFILE_NONE);
	close(both);
	close(one);
	profile_deinit(&p);
	profile_deinit(&q);
}

/* Every row number is in range. */
static void check_rows(const struct profile *q)
{
	for (uint32_t i = 0; i < q->types[0].samples.n; i++) {
		CHECK_INT(q->types[0].samples.items[i].stack, <, q->stacks.n);
		CHECK_INT(q->types[0].samples.items[i].thread, <, q->threads.n);
	}
	for (uint32_t i = 0; i < q->residents.n; i++)
		CHECK_INT(q->residents.items[i].process, <, q->processes.n);
	for (uint32_t i = 0; i < q->stack_frames.n; i++)
		CHECK_INT(q->stack_frames.items[i], <, q->frames.n);
	for (uint32_t i = 0; i < q->frames.n; i++) {
		const struct profile_frame *f = &q->frames.items[i];

		CHECK_INT(f->module, <, q->modules.n);
		CHECK_INT(f->first_line, <=, q->lines.n);
		CHECK_INT(f->n_lines, <=, q->lines.n - f->first_line);
		CHECK(f->n_lines == 0 ||
		      q->modules.items[f->module].kind == PROFILE_MODULE_RUNTIME);
	}
	for (uint32_t i = 0; i < q->modules.n; i++) {
		CHECK_INT(q->modules.items[i].kind, <, PROFILE_N_MODULE_KINDS);
		CHECK_INT(q->modules.items[i].runtime, <, PROFILE_N_RUNTIMES);
	}
	for (uint32_t i = 0; i < q->lines.n; i++)
		CHECK_INT(q->lines.items[i].function, <, q->functions.n);
	for (uint32_t i = 0; i < q->functions.n; i++) {
		CHECK_INT(q->functions.items[i].name, <=, q->strings.n);
		CHECK_INT(q->functions.items[i].file, <=, q->strings.n);
	}
}

/* An error, or a profile that is whole; true: the latter. */
static bool check_hostile(const uint8_t *bytes, size_t n)
{
	struct profile q;
	char why[192] = "";
	int fd = sealed_copy(bytes, n), r;

	profile_init(&q, 1 << 18);
	r = window_read(&q, fd, 0, why, sizeof(why));
	CHECK(r == 0 || why[0]);
	if (r == 0)
		check_rows(&q);
	profile_deinit(&q);
	close(fd);
	return r == 0;
}

/* Whatever a corrupted profiler sends: an error or a profile whose every row number is in range. */
static void test_hostile_windows(void)
{
	struct profile p, q;
	struct profile_resident r;
	uint8_t bytes[16384];
	uint32_t seed = 1, read = 0;
	ssize_t n;
	int fd;

	profile_init(&p, 1 << 20);
	fill_mixed(&p, 20);
	r = resident_at(1000, 4096);
	CHECK(profile_add_resident(&p, &r));
	fd = window_write(&p);
	n = pread(fd, bytes, sizeof(bytes), 0);
	CHECK_INT(n, >, 500);
	CHECK_INT(n, <, (int64_t)sizeof(bytes));
	close(fd);
	for (int round = 0; round < 4000; round++) {
		uint8_t bad[sizeof(bytes)];

		memcpy(bad, bytes, (size_t)n);
		for (int i = 0; i < 3; i++) {
			seed = seed * 1664525 + 1013904223;
			bad[(seed >> 8) % (size_t)n] = (uint8_t)(round % 2 ? seed >> 24 : 0xff);
		}
		(void)check_hostile(bad, round % 5 ? (size_t)n : (seed >> 8) % (size_t)n + 1);
	}
	/* Each number in it, made a little or a lot too large. */
	for (size_t at = 0; at + 4 <= (size_t)n; at += 4) {
		static const uint32_t values[] = {1, 2, 7, 300, 0x7fffffff, 0xffffffff};

		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			uint8_t bad[sizeof(bytes)];

			memcpy(bad, bytes, (size_t)n);
			memcpy(bad + at, &values[i], sizeof(values[i]));
			read += check_hostile(bad, (size_t)n);
		}
	}
	CHECK_INT(read, >, 0);
	/* Not sealed, as on a kernel without seals: a copy is read. */
	fd = memfd_create("test", MFD_CLOEXEC);
	CHECK_INT(write(fd, bytes, (size_t)n), ==, n);
	profile_init(&q, 1 << 18);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, 0);
	CHECK_INT(q.types[0].samples.n, ==, 20);
	check_rows(&q);
	profile_deinit(&q);
	close(fd);
	profile_deinit(&p);
}

static int read_back(const struct profile *p, char why[192])
{
	struct profile q;
	int fd = window_write(p), r;

	CHECK_INT(fd, >=, 0);
	profile_init(&q, 1 << 20);
	r = window_read(&q, fd, 0, why, 192);
	CHECK(r == 0 || q.types[0].samples.n == 0);
	profile_deinit(&q);
	close(fd);
	return r;
}

/* *row, of the row that owner names, names the row behind the last one of n, of what. */
static void check_behind_last(const struct profile *p, uint32_t *row, uint32_t n, const char *owner,
			      const char *what)
{
	uint32_t was = *row;
	char why[192], expected[192];

	CHECK_INT(was, <, n);
	*row = n;
	CHECK_INT(read_back(p, why), ==, -EBADMSG);
	(void)snprintf(expected, sizeof(expected), "%s: %s %u of %u", owner, what, n, n);
	CHECK_STR(why, expected);
	*row = was;
	CHECK_INT(read_back(p, why), ==, 0);
}

static void test_rows_behind_the_last(void)
{
	struct profile_sample *s;
	struct profile p;
	uint32_t frame;
	char owner[32];

	profile_init(&p, 1 << 20);
	fill_mixed(&p, 3);
	s = p.types[0].samples.items;
	check_behind_last(&p, &s[0].thread, p.threads.n, "sample 0", "thread");
	check_behind_last(&p, &s[2].stack, p.stacks.n, "sample 2", "stack");
	check_behind_last(&p, &p.threads.items[0].process, p.processes.n, "thread 0", "process");
	check_behind_last(&p, &p.frames.items[0].module, p.modules.n, "frame 0", "module");
	check_behind_last(&p, &p.stack_frames.items[0], p.frames.n, "stack 0", "frame");
	frame = p.frames.n - 1;
	(void)snprintf(owner, sizeof(owner), "frame %u", frame);
	check_behind_last(&p, &p.lines.items[p.frames.items[frame].first_line].function,
			  p.functions.n, owner, "function");
	profile_deinit(&p);
}

static void test_lines_beyond_their_table(void)
{
	struct profile_line lines[257] = {{0}};
	struct profile p;
	char why[192];
	uint32_t last;

	profile_init(&p, 1 << 20);
	/* What stands behind the lines in a window could be taken for one more: address 0. */
	(void)profile_add_frame(&p, profile_add_runtime(&p, PROFILE_RUNTIME_PHP), 0);
	last = put_runtime_frame(&p, PROFILE_RUNTIME_PHP, "f", 1, "g");
	CHECK_INT(read_back(&p, why), ==, 0);
	p.frames.items[last].n_lines++;
	CHECK_INT(read_back(&p, why), ==, -EBADMSG);
	p.frames.items[last].n_lines--;
	p.frames.items[last].first_line++;
	CHECK_INT(read_back(&p, why), ==, -EBADMSG);
	p.frames.items[last].first_line--;
	CHECK_INT(profile_add_named_frame(&p, 0, 8, lines, 256), !=, PROFILE_NONE);
	CHECK_INT(read_back(&p, why), ==, 0);
	CHECK_INT(profile_add_named_frame(&p, 0, 8, lines, 257), !=, PROFILE_NONE);
	CHECK_INT(read_back(&p, why), ==, -EBADMSG);
	profile_deinit(&p);
}

/* Refused with that error. */
static void check_refused(const uint8_t *bytes, size_t n, const char *error)
{
	struct profile q;
	char why[192] = "";
	int fd = sealed_copy(bytes, n);

	profile_init(&q, 1 << 18);
	CHECK_INT(window_read(&q, fd, 0, why, sizeof(why)), ==, -EBADMSG);
	CHECK_STR(why, error);
	profile_deinit(&q);
	close(fd);
}

/* Of a window whose parts do not fit together: which of them. */
static void test_errors_say_which(void)
{
	struct window_header h, bad;
	struct profile p;
	uint8_t bytes[16384];
	char expected[192];
	ssize_t n;
	int fd;

	profile_init(&p, 1 << 20);
	fill(&p, 3);
	fd = window_write(&p);
	n = pread(fd, bytes, sizeof(bytes), 0);
	CHECK_INT(n, >, (int64_t)sizeof(h));
	close(fd);
	memcpy(&h, bytes, sizeof(h));
#define CHECK_BROKEN(member, value, ...)                                                           \
	do {                                                                                       \
		bad = h;                                                                           \
		bad.member = (value);                                                              \
		memcpy(bytes, &bad, sizeof(bad));                                                  \
		(void)snprintf(expected, sizeof(expected), __VA_ARGS__);                           \
		check_refused(bytes, (size_t)n, expected);                                         \
	} while (0)
	CHECK_BROKEN(magic, 1, "it does not begin as a window");
	CHECK_BROKEN(total_bytes, 1, "it is not as long as it says");
	CHECK_BROKEN(host_name, 99, "the names of its host and kernel are no texts");
	CHECK_BROKEN(n_strings, 5000, "text 5000: more texts than bytes");
	CHECK_BROKEN(sections[SECTION_FRAMES].item_bytes, 3,
		     "frame %u: rows of 3 bytes instead of %zu", p.frames.n,
		     sizeof(struct profile_frame));
	CHECK_BROKEN(sections[SECTION_SAMPLES].n, 5000,
		     "sample 5000: behind the end of the window");
	CHECK_BROKEN(sections[SECTION_TYPES].n, 0, "type 0: none, or more than %d",
		     PROFILE_MAX_TYPES);
	CHECK_BROKEN(sections[SECTION_SAMPLES].n, 2, "type 0: 3 samples of 2");
	CHECK_BROKEN(end_unix_ns, 1004,
		     "sample 2: time 1004 ns is outside of the window, from 1000 to 1004 ns");
#undef CHECK_BROKEN
	profile_deinit(&p);
}

/* A name for a frame of a file is not the profiler's to give. */
static void test_names_of_files_are_refused(void)
{
	const struct profile_function f = {.name = STRID_EMPTY};
	struct profile p, q;
	struct profile_line line = {0};
	int fd;

	profile_init(&p, 1 << 20);
	profile_init(&q, 1 << 20);
	fill(&p, 3);
	line.function = profile_add_function(&p, &f);
	CHECK(profile_name_frame(&p, 0, &line, 1));
	fd = window_write(&p);
	CHECK_INT(window_read(&q, fd, 0, NULL, 0), ==, -EBADMSG);
	CHECK_INT(q.types[0].samples.n, ==, 0);
	close(fd);
	profile_deinit(&p);
	profile_deinit(&q);
}

static void test_addresses_are_hidden(void)
{
	struct profile_module kernel = {.uid = PROFILE_UID_KERNEL,
					.kind = PROFILE_MODULE_KERNEL,
					.process = PROFILE_NONE,
					.memory_start = 0xffffffff81000000,
					.memory_limit = 0xffffffff82000000};
	struct profile_module jit = {.uid = 7, .kind = PROFILE_MODULE_JIT};
	struct profile_module file = {.uid = PROFILE_UID_FIRST_FILE,
				      .kind = PROFILE_MODULE_FILE,
				      .process = PROFILE_NONE,
				      .memory_start = 0x1000,
				      .memory_limit = 0x5000};
	uint32_t modules[3], text, other, code, own;
	struct profile p;

	profile_init(&p, 1 << 20);
	modules[0] = profile_add_module(&p, &kernel);
	modules[1] = profile_add_module(&p, &jit);
	modules[2] = profile_add_module(&p, &file);
	text = profile_add_frame(&p, modules[0], 0xffffffff81001234);
	other = profile_add_frame(&p, modules[0], 0xffffffffc0401234);
	code = profile_add_frame(&p, modules[1], 0x7f1234567890);
	own = profile_add_frame(&p, modules[2], 0x2345);
	profile_hide_addresses(&p);
	CHECK_INT(p.frames.items[text].address, ==, 0x1234);
	CHECK_INT(p.frames.items[other].address, ==, 0); /* a module of the kernel's */
	CHECK_INT(p.frames.items[code].address, ==, 0);
	CHECK_INT(p.frames.items[own].address, ==, 0x2345);
	CHECK_INT(p.modules.items[modules[0]].memory_start, ==, 0);
	CHECK_INT(p.modules.items[modules[0]].memory_limit, ==, 0x1000000);
	CHECK_INT(p.modules.items[modules[2]].memory_start, ==, 0x1000);
	profile_deinit(&p);
}

static void add(struct label_set *s, const char *key, const char *text)
{
	label_set_add(s, &(struct label){.key = key, .text = text, .unit = ""});
}

/* Keys that an output has for itself, keys that the set has already: neither gets in. */
static void test_labels_keep_their_keys(void)
{
	static const char *const reserved[] = {
		"thread.id", "thread.name", "cpu.logical_number", "pid",  "tid",	 "comm",
		"thread",    "container",   "container_name",	  "unit", "service.name"};
	_cleanup_free_ char *text = NULL;
	struct label_set s;

	CHECK_INT(label_set_begin(&s), ==, 0);
	add(&s, "a", "first");
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		add(&s, reserved[i], "another");
	add(&s, "a", "second");
	label_set_add(&s, &(struct label){.key = "a", .number = 3, .unit = ""});
	add(&s, "", "no key");
	CHECK_INT(s.n_refused, ==, ARRAY_SIZE(reserved) + 3);
	add(&s, "empty", "");
	add(&s, "b", "last");
	text = label_set_end(&s);
	CHECK_STR(text, "a\x1fs\x1f"
			"first\x1f\x1e"
			"b\x1fs\x1flast\x1f\x1e");
	CHECK_INT(s.n_text, ==, strlen(text));
	CHECK_INT(s.n_refused, ==, ARRAY_SIZE(reserved) + 3);
}

/* 256 empty texts make nothing, and long ones no more than the limit. */
static void test_labels_have_limits(void)
{
	char key[8], long_text[128];
	struct label_set s;

	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	for (int bytes = 0; bytes < 2; bytes++) {
		_cleanup_free_ char *text = NULL;

		CHECK_INT(label_set_begin(&s), ==, 0);
		for (int i = 0; i < 256; i++) {
			(void)snprintf(key, sizeof(key), "k%d", i);
			add(&s, key, "");
		}
		CHECK_INT(s.n + s.n_refused, ==, 0);
		for (int i = 0; i < 256; i++) {
			(void)snprintf(key, sizeof(key), "k%d", i);
			add(&s, key, bytes ? long_text : "1");
		}
		CHECK_INT(s.n + s.n_refused, ==, 256);
		text = label_set_end(&s);
		CHECK(text);
		CHECK_INT(s.n_text, <=, LABEL_SET_MAX_BYTES);
		if (bytes)
			CHECK_INT(s.n_text, >, LABEL_SET_MAX_BYTES - 200);
		else
			CHECK_INT(s.n, ==, LABEL_SET_MAX);
	}
}

static void test_links_have_two_ids(void)
{
#define ID(key, text) key "\x1fs\x1f" text "\x1f\x1e"
	static const struct {
		const char *labels;
		bool linked;
	} cases[] = {
		{ID("trace_id", "0000000000000000000000000000000A"), false},
		{ID("span_id", "000000000000000b")
			 ID("trace_id", "0000000000000000000000000000000a"),
		 true},
		{ID("span_id", "0000000000000000")
			 ID("trace_id", "0000000000000000000000000000000a"),
		 false},
		{ID("span_id", "000000000000000b")
			 ID("trace_id", "00000000000000000000000000000000"),
		 false},
		{ID("span_id", "00000000000000b")
			 ID("trace_id", "0000000000000000000000000000000a"),
		 false},
	};
	uint8_t trace[LABEL_TRACE_BYTES], span[LABEL_SPAN_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_INT(label_link(cases[i].labels, trace, span), ==, cases[i].linked);
	CHECK(label_link(cases[1].labels, trace, span) && trace[15] == 10 && span[7] == 11);
}

int main(void)
{
	RUN(test_equal_rows_get_one_number);
	RUN(test_container_name_comes_later);
	RUN(test_processes_of_several_hosts);
	RUN(test_frames_without_a_name);
	RUN(test_full_profile_counts_what_it_refuses);
	RUN(test_window_round_trip_and_merge);
	RUN(test_residents_cross);
	RUN(test_runtimes_have_names);
	RUN(test_named_frames_cross);
	RUN(test_named_frames_without_room);
	RUN(test_rows_behind_the_last);
	RUN(test_lines_beyond_their_table);
	RUN(test_errors_say_which);
	RUN(test_names_of_files_are_refused);
	RUN(test_types);
	RUN(test_room_for_a_window);
	RUN(test_addresses_are_hidden);
	RUN(test_hostile_windows);
	RUN(test_labels_keep_their_keys);
	RUN(test_labels_have_limits);
	RUN(test_links_have_two_ids);
	return 0;
}
