/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up second source of frames behind the attribution: records of samples go in, walked by
 * their frame pointers, and what stands in the window is held against what the source answered.
 */
#include <linux/perf_event.h>
#include <stdlib.h>

#include "src/host/host.h"
#include "src/process/filter.h"
#include "src/profiler/attribute.h"
#include "src/profiler/frame-source.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/cleanup.h"

enum {
	PID = 4711,
	CODE = 0x10000,
	CODE_BYTES = 0x10000,
	STACK = 0x7f0000,
	MAX_DEPTH = 12,
	MAX_WORDS = 4 * MAX_DEPTH + 8,
	N_SAMPLES = 600,
	N_EVENTS = 2,
};

#ifdef __aarch64__
enum { BIT_FP = 29, BIT_SP = 31, BIT_PC = 32 };
#else
enum { BIT_FP = 6, BIT_SP = 7, BIT_PC = 8 };
#endif

/* What the source does with a sample. */
static const enum frame_source_answer plans[] = {FRAME_SOURCE_NONE, FRAME_SOURCE_READY,
						 FRAME_SOURCE_MISSED, FRAME_SOURCE_UNPROVEN};

struct known {
	enum frame_source_answer plan;
	uint64_t time_ns;
	uint32_t cpu, event, depth, at; /* at: the frame that a runtime's is in the place of */
};

static uint64_t seed = 7;
static struct known all[N_SAMPLES];
static uint32_t n_asked, asked; /* asked: the sample that is taken now */
static struct runtime_frame own;
static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask = {.sock = -EBADF}; /* nobody answers */
static struct filter filter;

static uint32_t chance(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

/* ---- Records ---- */

/* Each frame is two words of its own and { caller's frame pointer, return address }. */
static uint64_t frame_sp(uint32_t i)
{
	return STACK + i * 32;
}

/* Of frame i of a sample of that depth: so that each sample's stack is one of its own. */
static uint64_t address_of(uint32_t sample, uint32_t depth, uint32_t i)
{
	return CODE + 16 + (sample * 7 + (depth - i) * 1000) % (CODE_BYTES - 32);
}

static void make_sample(const struct known *k, uint32_t sample, uint64_t *regs, uint64_t *words,
			struct record *r)
{
	for (uint32_t i = 0; i < k->depth; i++) {
		bool last = i + 1 == k->depth;

		words[4 * i] = words[4 * i + 1] = 0xabab;
		words[4 * i + 2] = last ? 0 : frame_sp(i + 1) + 16;
		words[4 * i + 3] = last ? 0 : address_of(sample, k->depth, i + 1) + 1;
	}
	regs[0] = frame_sp(0) + 16;
	regs[1] = frame_sp(0);
	regs[2] = address_of(sample, k->depth, 0);
	*r = (struct record){.type = RECORD_SAMPLE,
			     .index = k->event,
			     .time_ns = k->time_ns,
			     .pid = PID,
			     .tid = PID,
			     .cpu = k->cpu};
	r->sample.period = 1;
	r->sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r->sample.user_regs = regs;
	r->sample.user_regs_valid =
		UINT64_C(1) << BIT_FP | UINT64_C(1) << BIT_SP | UINT64_C(1) << BIT_PC;
	r->sample.stack = (const uint8_t *)words;
	r->sample.n_stack = r->sample.max_stack = k->depth * 32;
}

static void make_process(struct attribution *a)
{
	struct record r = {.type = RECORD_FORK, .time_ns = 10, .pid = PID, .tid = PID};

	r.task.parent_pid = r.task.parent_tid = 1;
	(void)attribution_record(a, &r);
	r = (struct record){.type = RECORD_COMM, .time_ns = 11, .pid = PID, .tid = PID};
	r.comm.comm = "made-up";
	r.comm.exec = true;
	(void)attribution_record(a, &r);
	r = (struct record){.type = RECORD_MMAP, .time_ns = 12, .pid = PID, .tid = PID};
	r.mmap.start = CODE;
	r.mmap.length = CODE_BYTES;
	r.mmap.path = "//anon";
	(void)attribution_record(a, &r);
}

/* ---- The source ---- */

static struct runtime_frames frames_of(uint32_t sample)
{
	const struct known *k = &all[sample];

	own = (struct runtime_frame){
		.sp = frame_sp(k->at),
		.sp_end = frame_sp(k->at) + 1,
		.runtime = PROFILE_RUNTIME_RUBY,
		.function = "made_up",
		.file = "made_up.rb",
		.line = 1 + sample,
	};
	return (struct runtime_frames){.items = &own, .n = 1};
}

static enum frame_source_answer on_ask(void *ctx, const struct frame_source_sample *s,
				       struct runtime_frames *ret)
{
	const struct known *k = &all[asked];

	CHECK(ctx == all);
	CHECK_INT(s->key.time_ns, ==, k->time_ns);
	CHECK_INT(s->key.cpu, ==, k->cpu);
	CHECK_INT(s->key.tid, ==, PID);
	CHECK_INT(s->process->pid, ==, PID);
	CHECK_INT(s->record->time_ns, ==, k->time_ns);
	CHECK_INT(s->n, ==, k->depth);
	for (uint32_t i = 0; i < s->n; i++) {
		CHECK_INT(s->frames[i].address, ==, address_of(asked, k->depth, i));
		CHECK_INT(s->frames[i].sp, ==, frame_sp(i));
		CHECK_INT(s->frames[i].fp, ==, frame_sp(i) + 16);
	}
	n_asked++;
	/* Frames of any other answer are nothing to go by. */
	*ret = frames_of(asked);
	return k->plan;
}

/* ---- The window ---- */

static void check_stack(const struct profile *p, uint32_t stack, uint32_t sample)
{
	const struct known *k = &all[sample];
	bool joined = k->plan == FRAME_SOURCE_READY;
	bool marked = !joined && k->plan != FRAME_SOURCE_NONE;
	const uint32_t *rows;
	uint32_t n;

	rows = profile_stack_frames(p, stack, &n);
	CHECK_INT(n, ==, k->depth + marked);
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_frame *f = &p->frames.items[rows[i]];
		uint32_t kind = p->modules.items[f->module].kind;

		if (joined && i == k->at) {
			CHECK_INT(kind, ==, PROFILE_MODULE_RUNTIME);
			CHECK_INT(f->n_lines, ==, 1);
			CHECK_INT(p->lines.items[f->first_line].line, ==, 1 + sample);
		} else if (i == k->depth) {
			CHECK_INT(kind, ==, PROFILE_MODULE_MARKER);
			CHECK_INT(f->address, ==,
				  k->plan == FRAME_SOURCE_MISSED ? PROFILE_MARKER_RUNTIME_LATE
								 : PROFILE_MARKER_RUNTIME_UNPROVEN);
		} else {
			CHECK_INT(kind, ==, PROFILE_MODULE_JIT);
			CHECK_INT(f->address, ==, address_of(sample, k->depth, i));
		}
	}
}

/* Samples [first, end) are in the window, in their turn, each in its event's. */
static void check_window(const struct profile *p, uint32_t first, uint32_t end)
{
	uint32_t at[N_EVENTS] = {0}, missed = 0, unproven = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct profile_type *type = &p->types[all[i].event];
		const struct profile_sample *s = &type->samples.items[at[all[i].event]];

		CHECK_INT(at[all[i].event], <, type->samples.n);
		CHECK_INT(s->time_unix_ns, ==, all[i].time_ns);
		CHECK_INT(s->cpu, ==, all[i].cpu);
		check_stack(p, s->stack, i);
		missed += all[i].plan == FRAME_SOURCE_MISSED;
		unproven += all[i].plan == FRAME_SOURCE_UNPROVEN;
		at[all[i].event]++;
	}
	for (uint32_t e = 0; e < N_EVENTS; e++)
		CHECK_INT(at[e], ==, p->types[e].samples.n);
	CHECK_INT(profile_counter(p, PROFILE_SAMPLES), ==, end - first);
	CHECK_INT(profile_counter(p, PROFILE_SAMPLES_DROPPED), ==, 0);
	CHECK_INT(profile_counter(p, PROFILE_STACKS_RUNTIME_LATE), ==, missed);
	CHECK_INT(profile_counter(p, PROFILE_STACKS_UNPROVEN), ==, unproven);
	CHECK_INT(profile_stacks_incomplete(p), ==, unproven);
}

static struct attribution *make_attribution(void)
{
	static struct setup_profiler setup;
	struct attribution *a = NULL;

	setup = (struct setup_profiler){.n_events = N_EVENTS,
					.window_memory_bytes = 16 << 20,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		struct setup_event *e = &setup.events[i];

		e->options.index = i;
		e->options.rate_hz = 100;
		e->options.stack_bytes = 4096;
		e->options.regs_mask =
			UINT64_C(1) << BIT_FP | UINT64_C(1) << BIT_SP | UINT64_C(1) << BIT_PC;
		e->features.clockid = e->features.comm_exec = true;
	}
	CHECK_INT(attribution_new(&a, &role, &ask, &setup, &filter, NULL), ==, 0);
	make_process(a);
	return a;
}

static void plan_samples(void)
{
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		struct known *k = &all[i];

		*k = (struct known){
			.plan = plans[chance(ARRAY_SIZE(plans))],
			.time_ns = 1000 + 100 * (uint64_t)i,
			.cpu = chance(4),
			.event = chance(N_EVENTS),
			.depth = 2 + chance(MAX_DEPTH - 2),
		};
		k->at = chance(k->depth);
	}
}

static void take(struct attribution *a, uint32_t sample)
{
	uint64_t regs[3], words[MAX_WORDS];
	struct record r;

	make_sample(&all[sample], sample, regs, words, &r);
	asked = sample;
	CHECK(attribution_record(a, &r));
	/* The ring is the kernel's again. */
	memset(words, 0, sizeof(words));
}

/* ---- Cases ---- */

static void test_without_a_source(void)
{
	struct attribution *a = make_attribution();

	plan_samples();
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		all[i].plan = FRAME_SOURCE_NONE;
		take(a, i);
	}
	check_window(attribution_profile(a), 0, N_SAMPLES);
	attribution_free(a);
}

static void test_answers(void)
{
	const struct frame_source source = {on_ask, all};
	struct attribution *a = make_attribution();

	CHECK_INT(attribution_set_source(a, &source), ==, 0);
	plan_samples();
	n_asked = 0;
	for (uint32_t i = 0; i < N_SAMPLES; i++)
		take(a, i);
	CHECK_INT(n_asked, ==, N_SAMPLES);
	check_window(attribution_profile(a), 0, N_SAMPLES);
	attribution_free(a);
}

static void test_windows_close(void)
{
	enum { WINDOW = 10 };
	const struct frame_source source = {on_ask, all};
	struct attribution *a = make_attribution();

	CHECK_INT(attribution_set_source(a, &source), ==, 0);
	plan_samples();
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		take(a, i);
		if (i % WINDOW == WINDOW - 1) {
			check_window(attribution_profile(a), i - WINDOW + 1, i + 1);
			attribution_next_window(a);
		}
	}
	attribution_free(a);
}

int main(void)
{
	RUN(test_without_a_source);
	RUN(test_answers);
	RUN(test_windows_close);
	return 0;
}
