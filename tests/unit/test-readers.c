/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of made-up readers find their samples, and their places between native frames; and what
 * the native stack does not speak for is not believed.
 */
#include <errno.h>
#include <sys/socket.h>

#include "src/host/host.h"
#include "src/process/frame-record.h"
#include "src/process/frame-ring.h"
#include "src/process/message.h"
#include "src/profiler/chain-places.h"
#include "src/profiler/readers.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "util/fdmsg.h"
#include "util/loop.h"

enum {
	PID = 4711,
	CPU = 3,
	EVAL = 0x500000, /* the evaluation function */
	STACK = 0x7f0000,
	FRAME = 64, /* bytes of each native frame */
	N_NATIVE = 8,
	OBJECT = 0x9000, /* the interpreter's i-th frame is at i * 16 behind */
};

static struct readers *readers;
static struct interpreter *interpreter;
static struct frame_ring *ring; /* the reader's side */
static int told = -1;		/* what the profiler tells the broker */
static uint64_t words[N_NATIVE * FRAME / 8], time_ns = 1000;
static struct unwind_frame frames[N_NATIVE];
static struct record record;
static struct loop *loop;
static int n_joined;

static struct blocked_context answered;
static uint8_t answered_bytes[THREAD_CONTEXT_MAX_BYTES];

static void on_context(void *ctx, const struct blocked_context *context)
{
	answered = *context;
	memcpy(answered_bytes, context->bytes, context->n);
}

static void on_joined(void *ctx, int cpu, bool joined)
{
	CHECK_INT(cpu, ==, CPU);
	n_joined += joined ? 1 : -1;
}

/* Native frames 1 and 5 evaluate: 5 called 1. */
static bool evaluates(size_t i)
{
	return i == 1 || i == 5;
}

static void make_native(void)
{
	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < N_NATIVE; i++)
		frames[i] = (struct unwind_frame){
			.address = evaluates(i) ? EVAL + 10 : 0x1000 * i + 7,
			.sp = STACK + i * FRAME,
		};
	record = (struct record){.type = RECORD_SAMPLE};
	record.sample.stack = (const uint8_t *)words;
	record.sample.n_stack = sizeof(words);
}

static uint64_t object(uint32_t i)
{
	return OBJECT + i * 16;
}

/* Where native frame i has that word. */
static void put_anchor(size_t i, uint64_t value)
{
	words[(i * FRAME + 24) / 8] = value;
}

static void put_text(const char *text)
{
	struct frame_record_text t = {.type = FRAME_RECORD_TEXT, .n = (uint32_t)strlen(text)};

	memcpy(t.text, text, t.n);
	CHECK(frame_ring_put(ring, &t, offsetof(struct frame_record_text, text) + t.n));
}

static void put_code(void)
{
	const struct frame_record_code code = {
		.type = FRAME_RECORD_CODE,
		.pid = PID,
		.kind = RUNTIME_KIND_CPYTHON,
		.image = 0x1000,
		.n = 1,
		.ranges = {{EVAL, EVAL + 100}},
	};

	CHECK(frame_ring_put(ring, &code, sizeof(code)));
}

/* Four frames: 0 and 1 in one native call, 2 and 3 in the one that called it. */
static void put_stack(uint64_t at_ns, uint32_t n, enum frame_record_result result)
{
	struct frame_record_stack s = {
		.type = FRAME_RECORD_STACK,
		.result = result,
		.time_ns = at_ns,
		.pid = PID,
		.tid = PID,
		.n = n,
	};

	for (uint32_t i = 0; i < n; i++)
		s.frames[i] = (struct frame_record_frame){
			.function = 1 + i % 2,
			.line = 10 + i,
			.address = object(i) | (i % 2),
		};
	CHECK(frame_ring_put(
		ring, &s, offsetof(struct frame_record_stack, frames) + n * sizeof(s.frames[0])));
}

/* Two functions in C: nothing evaluates them. */
static void put_stack_in_c(uint64_t at_ns)
{
	const struct frame_record_stack s = {
		.type = FRAME_RECORD_STACK,
		.result = FRAME_RECORD_WHOLE,
		.time_ns = at_ns,
		.pid = PID,
		.tid = PID,
		.n = 2,
		.frames = {{.function = 1}, {.function = 2}},
	};

	CHECK(frame_ring_put(
		ring, &s, offsetof(struct frame_record_stack, frames) + 2 * sizeof(s.frames[0])));
}

static enum frame_source_answer ask_at(uint64_t at_ns, bool whole, struct runtime_frames *ret)
{
	const struct frame_source_sample sample = {
		.key = {.time_ns = at_ns, .cpu = CPU, .tid = PID},
		.record = &record,
		.frames = frames,
		.n = N_NATIVE,
		.whole = whole,
	};

	return readers_ask(readers, interpreter, &sample, ret);
}

/* Of the next sample, whose frames are there. */
static enum frame_source_answer ask(uint32_t n, enum frame_record_result result, bool whole,
				    struct runtime_frames *ret)
{
	put_stack(++time_ns, n, result);
	return ask_at(time_ns, whole, ret);
}

static void make_whole(void)
{
	make_native();
	put_anchor(1, object(0));
	put_anchor(5, object(2));
}

static void test_places(void)
{
	struct runtime_frames got;

	make_whole();
	CHECK_INT(ask(0, FRAME_RECORD_UNREAD, true, &got), ==, FRAME_SOURCE_UNREAD);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.n, ==, 4);
	CHECK(!got.cut);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_INT(got.items[i].sp, ==, frames[i < 2 ? 1 : 5].sp);
		CHECK_STR(got.items[i].function, i % 2 ? "two" : "one");
		CHECK_INT(got.items[i].line, ==, 10 + i);
		CHECK_INT(got.items[i].runtime, ==, PROFILE_RUNTIME_CPYTHON);
	}
	CHECK_INT(ask(4, FRAME_RECORD_CUT, true, &got), ==, FRAME_SOURCE_READY);
	CHECK(got.cut);
}

/* Whose frames they are comes with the place of its evaluation. */
static void test_unknown_code(void)
{
	struct runtime_frames got;

	make_native();
	frames[1].address = frames[5].address = 0x1007;
	put_stack_in_c(++time_ns);
	CHECK_INT(ask_at(time_ns, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	CHECK_INT(ask(0, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_NONE);
	put_code();
	put_stack_in_c(++time_ns);
	CHECK_INT(ask_at(time_ns, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.items[1].runtime, ==, PROFILE_RUNTIME_CPYTHON);
}

/* Each word that speaks for the frames taken away or moved; one frame more or less. */
static void test_proof(void)
{
	struct runtime_frames got;

	make_whole();
	put_anchor(1, object(1));
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	make_whole();
	put_anchor(5, 0);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	put_anchor(7, object(2)); /* of who called it */
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	put_anchor(3, object(2)); /* a callee has saved it */
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	make_whole();
	put_anchor(5, 0);
	words[(1 * FRAME + 32) / 8] = object(2); /* the evaluation that it called has */
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	make_whole();
	CHECK_INT(ask(6, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	CHECK_INT(ask(0, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
}

/* A greenlet's chain begins anew, on the stack of who started it: of the calls below its own nobody
 * knows the frames. Its own must have been seen: they are all that speaks for it. */
static void test_chain_that_begins_anew(void)
{
	struct runtime_frames got;

	make_whole();
	CHECK_INT(ask(2, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.n, ==, 2);
	CHECK_INT(got.lacks, ==, FRAME_SOURCE_UNPROVEN);
	for (uint32_t i = 0; i < 2; i++)
		CHECK_INT(got.items[i].sp, ==, frames[1].sp);
	put_anchor(1, 0);
	CHECK_INT(ask(2, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	/* Its outermost frame was called by another one. */
	make_whole();
	CHECK_INT(ask(1, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.lacks, ==, FRAME_SOURCE_NONE);
}

/* A thread that stands still, and whose registers are not known, may have the innermost call's word
 * there; all others are on its stack. */
static void test_still(void)
{
	static struct chain_places chain;
	const struct chain_code code = {
		.kind = RUNTIME_KIND_CPYTHON, .n_ranges = 1, .ranges = {{EVAL, EVAL + 100}}};
	const struct frame_source_sample sample = {
		.record = &record, .frames = frames, .n = N_NATIVE, .whole = true};
	struct runtime_frames got;

	chain.n = 4;
	for (uint32_t i = 0; i < 4; i++)
		chain.addresses[i] = object(i) | (i % 2);
	make_whole();
	CHECK_INT(chain_places_find(&chain, &code, &sample, true, &got), ==, FRAME_SOURCE_READY);
	put_anchor(1, 0);
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==,
		  FRAME_SOURCE_UNPROVEN);
	CHECK_INT(chain_places_find(&chain, &code, &sample, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.items[0].sp, ==, frames[1].sp);
	CHECK_INT(got.items[3].sp, ==, frames[5].sp);
	put_anchor(5, 0);
	CHECK_INT(chain_places_find(&chain, &code, &sample, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	/* One that begins anew has nothing but this word. */
	put_anchor(1, 0);
	chain.n = 2;
	CHECK_INT(chain_places_find(&chain, &code, &sample, true, &got), ==, FRAME_SOURCE_UNPROVEN);
}

/* The only call of the evaluation has no frame: it may begin or end, or the chain may be another
 * thread's. Nothing speaks for either. */
static void test_no_frames(void)
{
	static struct chain_places chain;
	const struct chain_code code = {
		.kind = RUNTIME_KIND_PHP, .n_ranges = 1, .ranges = {{EVAL, EVAL + 100}}};
	const struct frame_source_sample sample = {
		.record = &record, .frames = frames, .n = N_NATIVE, .whole = true};
	struct runtime_frames got;

	make_native();
	frames[1].address = 0x1007;
	chain.n = 0;
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==,
		  FRAME_SOURCE_UNPROVEN);
	chain.n = 1;
	chain.addresses[0] = object(0) | 1;
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==,
		  FRAME_SOURCE_UNPROVEN);
	frames[5].address = 0x5007;
	chain.n = 0;
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==, FRAME_SOURCE_NONE);
}

/* Code that the interpreter has compiled stands where the evaluation would, and leads to its caller
 * by the frame pointer: it has the frames. Other code of no file has none. */
static void test_compiled(void)
{
	static struct chain_places chain;
	const struct chain_code code = {
		.kind = RUNTIME_KIND_PHP, .n_ranges = 1, .ranges = {{EVAL, EVAL + 100}}};
	struct host_mapping compiled = {
		.start = 0x800000, .end = 0x900000, .kind = HOST_MAPPING_ANON};
	const struct host_process process = {.mappings = &compiled, .n_mappings = 1};
	const struct frame_source_sample sample = {.process = &process,
						   .record = &record,
						   .frames = frames,
						   .n = N_NATIVE,
						   .whole = true};
	struct runtime_frames got;

	chain.n = 4;
	for (uint32_t i = 0; i < 4; i++)
		chain.addresses[i] = object(i) | (i % 2);
	make_whole();
	frames[1].address = frames[5].address = compiled.start + 10;
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==, FRAME_SOURCE_READY);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_INT(got.items[i].sp, ==, frames[i < 2 ? 1 : 5].sp);
	put_anchor(5, 0);
	CHECK_INT(chain_places_find(&chain, &code, &sample, false, &got), ==,
		  FRAME_SOURCE_UNPROVEN);
}

/* What is beyond the native stack that could be followed stands outside of all that is known. */
static void test_incomplete(void)
{
	struct runtime_frames got;

	make_whole();
	CHECK_INT(ask(6, FRAME_RECORD_WHOLE, false, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.items[3].sp, ==, frames[5].sp);
	CHECK_INT(got.items[4].sp, ==, UINT64_MAX);
	/* The copy ends before the word of the outer call: nothing speaks against it. */
	record.sample.n_stack = 5 * FRAME;
	put_anchor(5, 0);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, false, &got), ==, FRAME_SOURCE_READY);
	put_anchor(1, 0);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, false, &got), ==, FRAME_SOURCE_UNPROVEN);
}

/* By time, CPU, thread and process; each of them, and in their order. */
static void test_keys(void)
{
	struct runtime_frames got;

	make_whole();
	put_stack(2000, 4, FRAME_RECORD_WHOLE);
	put_stack(2010, 4, FRAME_RECORD_LATE);
	put_stack(2020, 0, FRAME_RECORD_NONE);
	put_stack(2030, 0, FRAME_RECORD_UNPROVEN);
	put_stack(2040, 4, FRAME_RECORD_WHOLE);
	CHECK_INT(ask_at(1999, true, &got), ==, FRAME_SOURCE_MISSED);
	CHECK_INT(ask_at(2000, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(ask_at(2000, true, &got), ==, FRAME_SOURCE_MISSED);
	CHECK_INT(ask_at(2010, true, &got), ==, FRAME_SOURCE_MISSED);
	CHECK_INT(ask_at(2020, true, &got), ==, FRAME_SOURCE_NONE);
	CHECK_INT(ask_at(2030, true, &got), ==, FRAME_SOURCE_UNPROVEN);
	CHECK_INT(ask_at(2041, true, &got), ==, FRAME_SOURCE_MISSED);
	time_ns = 3000;
}

/* Records that are none, between those that are. */
static void test_hostile(void)
{
	struct runtime_frames got;
	uint32_t junk[64];

	make_whole();
	for (uint32_t i = 0; i < 64; i++) {
		memset(junk, (int)(i * 37), sizeof(junk));
		junk[0] = i % 6;
		junk[1] = i % 3 ? UINT32_MAX : i;
		if (junk[0] == FRAME_RECORD_FORGET)
			junk[0] = 99;
		CHECK(frame_ring_put(ring, junk, 4 + 4 * i % 250));
	}
	/* What looks like a text took a number. */
	CHECK(frame_ring_put(ring, &(uint32_t){FRAME_RECORD_FORGET}, 4));
	put_text("one");
	put_text("two");
	put_code();
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_STR(got.items[0].function, "one");
}

/* MESSAGE_N_TYPES: nothing. */
static const struct host_process its_process = {.pid = PID, .start_time_ns = 123456789};

static void expect_told_of(uint32_t type, uint32_t pid)
{
	struct message m;
	int fds[2];

	CHECK_INT(message_recv(told, &m, fds, MSG_DONTWAIT), ==,
		  type < MESSAGE_N_TYPES ? 1 : -EAGAIN);
	if (type == MESSAGE_N_TYPES)
		return;
	CHECK_INT(m.type, ==, type);
	CHECK_INT(m.client.pid, ==, pid);
	/* Another process may get its number. */
	CHECK_INT(m.client.start_time_ns, ==, its_process.start_time_ns);
}

static void expect_told(uint32_t type)
{
	expect_told_of(type, PID);
}

/* Stacks of a process that the broker does not let them read say so. */
static void test_refused(void)
{
	struct runtime_frames got;

	interpreter = readers_add_interpreter(
		readers, &its_process, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000}, 8, 1, time_ns);
	CHECK(interpreter);
	expect_told(MESSAGE_INTERPRETER);
	readers_refuse(readers, PID);
	make_whole();
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_UNREAD);
	readers_free_interpreter(readers, interpreter);
	expect_told(MESSAGE_N_TYPES);
}

/* A process gets the number of one that has ended, of which samples may still come. */
static void test_a_number_again(void)
{
	struct interpreter *former = readers_add_interpreter(
		readers, &its_process, (const uint64_t[CLIENT_MAX_IMAGES]){0x2000}, 8, 1, time_ns);
	struct interpreter *now;
	struct runtime_frames got;

	expect_told(MESSAGE_INTERPRETER);
	interpreter = readers_add_interpreter(
		readers, &its_process, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000}, 8, 1, time_ns);
	CHECK(former && interpreter);
	expect_told(MESSAGE_INTERPRETER);
	put_code();
	make_whole();
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	/* One that waited for its frames. */
	now = interpreter;
	interpreter = former;
	put_stack(++time_ns, 4, FRAME_RECORD_NONE);
	CHECK_INT(ask_at(time_ns, true, &got), ==, FRAME_SOURCE_NONE);
	interpreter = now;
	readers_free_interpreter(readers, former);
	expect_told(MESSAGE_N_TYPES);
	CHECK_INT(ask(4, FRAME_RECORD_WHOLE, true, &got), ==, FRAME_SOURCE_READY);
	readers_free_interpreter(readers, interpreter);
	expect_told(MESSAGE_CLIENT_GONE);
}

/* Frames of a second interpreter follow those of the first: their native calls say how they are
 * nested. A stack from before it was told lacks them. */
static void test_two(void)
{
	struct frame_record_code code = {
		.type = FRAME_RECORD_CODE,
		.pid = PID,
		.kind = RUNTIME_KIND_RUBY,
		.image = 0x3000,
		.n = 1,
		.ranges = {{0x300f, 0x3010}},
	};
	struct frame_record_stack s = {
		.type = FRAME_RECORD_STACK,
		.time_ns = ++time_ns,
		.pid = PID,
		.tid = PID,
		.n = 6,
		.n_others = 1,
		.others = {{FRAME_RECORD_WHOLE, 2}},
	};
	static const uint32_t order[] = {0, 1, 4, 5, 2, 3};
	struct runtime_frames got;

	interpreter = readers_add_interpreter(readers, &its_process,
					      (const uint64_t[CLIENT_MAX_IMAGES]){0x1000, 0x3000},
					      8, 1, time_ns);
	CHECK(interpreter);
	expect_told(MESSAGE_INTERPRETER);
	put_code();
	CHECK(frame_ring_put(ring, &code, sizeof(code)));
	/* Of one that is no more. */
	code.image = 0x5000;
	code.kind = RUNTIME_KIND_PHP;
	CHECK(frame_ring_put(ring, &code, sizeof(code)));
	make_whole();
	frames[3].address = 0x300f;
	put_anchor(3, object(4));
	for (uint32_t i = 0; i < s.n; i++)
		s.frames[i] =
			(struct frame_record_frame){.line = 10 + i, .address = object(i) | (i % 2)};
	CHECK(frame_ring_put(
		ring, &s, offsetof(struct frame_record_stack, frames) + s.n * sizeof(s.frames[0])));
	CHECK_INT(ask_at(time_ns, true, &got), ==, FRAME_SOURCE_READY);
	CHECK_INT(got.n, ==, ARRAY_SIZE(order));
	for (uint32_t i = 0; i < got.n; i++) {
		CHECK_INT(got.items[i].line, ==, 10 + order[i]);
		CHECK_INT(got.items[i].runtime, ==,
			  order[i] < 4 ? PROFILE_RUNTIME_CPYTHON : PROFILE_RUNTIME_RUBY);
	}
	/* More frames of others than there are. */
	s.time_ns = ++time_ns;
	s.others[0].n = 7;
	CHECK(frame_ring_put(
		ring, &s, offsetof(struct frame_record_stack, frames) + s.n * sizeof(s.frames[0])));
	CHECK_INT(ask_at(time_ns, true, &got), ==, FRAME_SOURCE_MISSED);
	readers_free_interpreter(readers, interpreter);
	expect_told(MESSAGE_CLIENT_GONE);
}

/* One more than there is room for: it gets the place of one that has ended, or of the one that has
 * had no sample for a minute, and for the longest time. */
static void test_room(void)
{
	const uint64_t minute = UINT64_C(60000000000);
	struct interpreter *all[READERS_MAX_INTERPRETERS], *one_more, *another;
	struct host_process p = its_process;

	for (uint32_t i = 0; i < READERS_MAX_INTERPRETERS; i++) {
		p.pid = 1000 + i;
		all[i] = readers_add_interpreter(readers, &p,
						 (const uint64_t[CLIENT_MAX_IMAGES]){0x1000}, 8, 1,
						 time_ns + i);
		CHECK(all[i]);
		expect_told_of(MESSAGE_INTERPRETER, p.pid);
	}
	CHECK(interpreter_is_in(all[0], time_ns + 1000));
	p.pid = 5000;
	CHECK(!readers_add_interpreter(readers, &p, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000}, 8,
				       1, time_ns + minute));
	expect_told(MESSAGE_N_TYPES);
	one_more = readers_add_interpreter(readers, &p, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000},
					   8, 1, time_ns + minute + 1);
	CHECK(one_more);
	expect_told_of(MESSAGE_CLIENT_GONE, 1001);
	expect_told_of(MESSAGE_INTERPRETER, p.pid);
	/* One that has ended need not have been idle. */
	interpreter_set_ended(all[7]);
	p.pid = 5001;
	another = readers_add_interpreter(readers, &p, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000},
					  8, 1, time_ns + 10);
	CHECK(another);
	expect_told_of(MESSAGE_CLIENT_GONE, 1007);
	expect_told_of(MESSAGE_INTERPRETER, p.pid);
	for (uint32_t i = 0; i < READERS_MAX_INTERPRETERS; i++) {
		bool is_out = i == 1 || i == 7;

		CHECK(interpreter_is_in(all[i], time_ns) == !is_out);
		readers_free_interpreter(readers, all[i]);
		expect_told_of(is_out ? MESSAGE_N_TYPES : MESSAGE_CLIENT_GONE, 1000 + i);
	}
	readers_free_interpreter(readers, one_more);
	expect_told_of(MESSAGE_CLIENT_GONE, 5000);
	readers_free_interpreter(readers, another);
	expect_told_of(MESSAGE_CLIENT_GONE, 5001);
}

static int reader = -1; /* its socket */

static void on_end(void *ctx)
{
	loop_exit(loop, 0);
}

/* The profiler asks for a blocked thread; none is told of that has nothing to say, or too much. */
static void test_blocked(void)
{
	struct message m;
	int fds[2];

	CHECK(!readers_ask_blocked(readers, PID, PID + 1, CPU + 1, 77));
	for (uint32_t n = 0; n <= sizeof(m.context.bytes) + 1; n += sizeof(m.context.bytes) / 2) {
		bool is_told = n > 0 && n <= sizeof(m.context.bytes);

		answered = (struct blocked_context){.n = 0};
		CHECK(readers_ask_blocked(readers, PID, PID + 1, CPU, 77));
		CHECK_INT(message_recv(reader, &m, fds, MSG_DONTWAIT), >, 0);
		CHECK_INT(m.type, ==, MESSAGE_CONTEXT);
		CHECK_INT(m.context.pid, ==, PID);
		CHECK_INT(m.context.tid, ==, PID + 1);
		CHECK_INT(m.context.cpu, ==, CPU);
		CHECK_INT(m.context.time_ns, ==, 77);
		m.context.n = n;
		m.context.read_ns = 99;
		memset(m.context.bytes, 0x5a, sizeof(m.context.bytes));
		CHECK_INT(message_send(reader, &m, NULL, 0), ==, 0);
		readers_take_answers(readers);
		CHECK_INT(answered.n, ==, is_told ? n : 0);
		CHECK(!is_told || (answered.time_ns == 77 && answered.read_ns == 99 &&
				   answered.tid == PID + 1 && answered_bytes[n - 1] == 0x5a));
	}
	CHECK(readers_ask_blocked(readers, PID, PID + 1, CPU, 77));
	CHECK_INT(message_recv(reader, &m, fds, MSG_DONTWAIT), >, 0);
	m.context.n = UINT32_MAX;
	answered.n = 0;
	CHECK_INT(message_send(reader, &m, NULL, 0), ==, 0);
	readers_take_answers(readers);
	CHECK_INT(answered.n, ==, 0);
}

/* No bytes: only a thread that was found in no span is told. */
static void test_blocked_in_none(void)
{
	struct message m;
	int fds[2];

	for (uint32_t span = 0; span < FRAME_RECORD_N_SPANS; span++) {
		answered = (struct blocked_context){.n = 0};
		CHECK(readers_ask_blocked(readers, PID, PID + 1, CPU, 77));
		CHECK_INT(message_recv(reader, &m, fds, MSG_DONTWAIT), >, 0);
		m.context.span = span;
		m.context.read_ns = 99;
		CHECK_INT(message_send(reader, &m, NULL, 0), ==, 0);
		readers_take_answers(readers);
		CHECK_INT(answered.read_ns, ==, span == FRAME_RECORD_SPAN_NONE ? 99 : 0);
	}
}

/* The ring has come. */
static void on_ready(void *ctx)
{
	interpreter = readers_add_interpreter(
		readers, &its_process, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000}, 8, 1, time_ns);
	CHECK(interpreter);
	expect_told(MESSAGE_INTERPRETER);
	put_text("one");
	put_text("two");
	RUN(test_unknown_code);
	RUN(test_places);
	RUN(test_proof);
	RUN(test_chain_that_begins_anew);
	RUN(test_still);
	RUN(test_no_frames);
	RUN(test_compiled);
	RUN(test_incomplete);
	RUN(test_hostile);
	RUN(test_keys);
	readers_free_interpreter(readers, interpreter);
	expect_told(MESSAGE_CLIENT_GONE);
	RUN(test_two);
	RUN(test_a_number_again);
	RUN(test_refused);
	RUN(test_blocked);
	RUN(test_blocked_in_none);
	RUN(test_room);
	(void)close(reader);
	CHECK_INT(loop_add_timer(loop, 0, 0, on_end, NULL), >=, 0);
}

int main(void)
{
	const struct readers_callbacks callbacks = {.joined = on_joined, .context = on_context};
	const struct message m = {.type = MESSAGE_FRAMES};
	int pair[2], control[2], fd;

	CHECK_INT(fdmsg_pair(control, 0), ==, 0);
	told = dup(control[1]);
	CHECK_INT(dup2(control[0], PROTOCOL_CONTROL_FD), ==, PROTOCOL_CONTROL_FD);
	CHECK_INT(loop_new(&loop), ==, 0);
	CHECK_INT(readers_new(&readers, loop, &callbacks), ==, 0);
	CHECK_INT(fdmsg_pair(pair, 1), ==, 0);
	reader = pair[1];
	readers_join(readers, CPU, pair[0]);
	CHECK_INT(n_joined, ==, 1);
	fd = frame_ring_new(&ring);
	if (fd == -ENOTSUP)
		SKIP("this kernel has no seals");
	CHECK_INT(fd, >=, 0);
	CHECK_INT(message_send(reader, &m, &fd, 1), ==, 0);
	CHECK_INT(loop_add_timer(loop, 0, 0, on_ready, NULL), >=, 0);
	CHECK_INT(loop_run(loop), ==, 0);
	/* Its reader has gone. */
	CHECK_INT(n_joined, ==, 0);
	frame_ring_free(ring);
	readers_free(readers);
	loop_free(loop);
	return 0;
}
