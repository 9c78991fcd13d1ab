/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a reader that was taken over tells the profiler, in a ring that both have
 * mapped. Records first: each a type (text, code, stack, forget, anything), a number of changes to
 * a sound one (a place of 2 bytes, a length, and so many bytes), and a byte that says whether it is
 * shorter. Behind a type of 255 the rest is written over the ring itself, its positions first.
 * After each record and at the end a sample asks for its frames.
 */
#include <stddef.h>
#include <stdio.h>

#include "src/host/host.h"
#include "src/process/frame-record.h"
#include "src/process/frame-ring.h"
#include "src/process/message.h"
#include "src/profiler/readers.h"
#include "src/sample/sample.h"
#include "tests/fuzz/input.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"
#include "util/loop.h"

enum { PID = 4711, CPU = 3, EVAL = 0x500000, STACK = 0x7f0000, OBJECT = 0x9000, MAX_RECORDS = 64 };
enum { N_NATIVE = 4, FRAME = 64 };
static const struct host_process its_process = {.pid = PID};

struct world {
	const uint8_t *p, *end; /* of the input */
	struct loop *loop;
	struct readers *readers;
	struct interpreter *interpreter;
	struct frame_ring *ring; /* the reader's side */
	int fd;			 /* of the ring */
	uint64_t time_ns;
};

static unsigned int take(struct world *w)
{
	return w->p < w->end ? *w->p++ : 0;
}

static void on_context(void *ctx, const struct blocked_context *context) {}

static void on_joined(void *ctx, int cpu, bool joined)
{
	if (cpu != CPU)
		abort();
}

/* Every second native frame evaluates, with the address of its frame on its stack. */
static void ask(struct world *w)
{
	uint64_t words[N_NATIVE * FRAME / 8] = {0};
	struct unwind_frame frames[N_NATIVE];
	struct record record = {.type = RECORD_SAMPLE};
	struct runtime_frames got;
	const struct frame_source_sample sample = {
		.key = {.time_ns = w->time_ns, .cpu = CPU, .tid = PID},
		.record = &record,
		.frames = frames,
		.n = N_NATIVE,
		.whole = true,
	};

	for (uint64_t i = 0; i < N_NATIVE; i++) {
		frames[i] = (struct unwind_frame){.address = i % 2 ? EVAL + 10 : 0x1000 * i + 7,
						  .sp = STACK + i * FRAME};
		words[(i * FRAME + 24) / 8] = OBJECT + i / 2 * 16;
	}
	record.sample.stack = (const uint8_t *)words;
	record.sample.n_stack = sizeof(words);
	if (readers_ask(w->readers, w->interpreter, &sample, &got) != FRAME_SOURCE_READY)
		return;
	if (got.n > FRAME_SOURCE_MAX_FRAMES)
		abort();
	for (size_t i = 0; i < got.n; i++) {
		input_touch_text(got.items[i].function);
		input_touch_text(got.items[i].file);
	}
}

/* A sound one; its size. */
static size_t fill(struct world *w, unsigned int type, void *buf)
{
	struct frame_record_text text = {.type = FRAME_RECORD_TEXT, .n = 3, .text = "one"};
	/* Of two interpreters, in turns, whose frames each stack has. */
	struct frame_record_code code = {.type = FRAME_RECORD_CODE,
					 .pid = PID,
					 .kind = w->time_ns % 2 ? RUNTIME_KIND_RUBY
								: RUNTIME_KIND_CPYTHON,
					 .image = 0x1000 + w->time_ns % 2 * 0x1000,
					 .n = 1};
	struct frame_record_stack stack = {.type = FRAME_RECORD_STACK,
					   .pid = PID,
					   .tid = PID,
					   .n_others = w->time_ns % 2,
					   .others = {{.n = w->time_ns % 2}}};

	switch (type) {
	case FRAME_RECORD_TEXT:
		memcpy(buf, &text, sizeof(text));
		return offsetof(struct frame_record_text, text) + text.n;
	case FRAME_RECORD_CODE:
		code.ranges[0] = (struct frame_record_range){EVAL, EVAL + 100};
		memcpy(buf, &code, sizeof(code));
		return sizeof(code);
	case FRAME_RECORD_STACK:
		stack.time_ns = ++w->time_ns;
		for (stack.n = 0; stack.n < 2; stack.n++)
			stack.frames[stack.n] = (struct frame_record_frame){
				.function = 1, .address = (OBJECT + stack.n * 16) | 1};
		memcpy(buf, &stack, sizeof(stack));
		return offsetof(struct frame_record_stack, frames) +
		       stack.n * sizeof(stack.frames[0]);
	default:
		memcpy(buf, &type, sizeof(type));
		return sizeof(type);
	}
}

static void put_record(struct world *w, unsigned int type)
{
	static uint8_t buf[FRAME_RING_MAX_RECORD];
	size_t n, less;

	memset(buf, 0, sizeof(buf));
	n = fill(w, type % 6, buf);
	for (unsigned int changes = take(w) % 16; changes && w->p < w->end; changes--) {
		size_t at = take(w);

		at |= (size_t)take(w) << 8;
		for (unsigned int length = take(w); length && w->p < w->end; length--, at++) {
			buf[at % sizeof(buf)] = (uint8_t)take(w);
			n = at < sizeof(struct frame_record_stack) && at >= n ? at + 1 : n;
		}
	}
	less = take(w);
	(void)frame_ring_put(w->ring, buf, less < n ? n - less : n);
}

static void use_ring(void *ctx)
{
	struct world *w = ctx;

	w->interpreter = readers_add_interpreter(
		w->readers, &its_process, (const uint64_t[CLIENT_MAX_IMAGES]){0x1000, 0x2000}, 8, 1,
		1);
	for (unsigned int i = 0; w->interpreter && i < MAX_RECORDS && w->p < w->end; i++) {
		unsigned int type = take(w);

		if (type == 255) {
			if (pwrite(w->fd, w->p, (size_t)(w->end - w->p), 0) < 0)
				abort();
			w->p = w->end;
		} else {
			put_record(w, type);
		}
		ask(w);
	}
	if (w->interpreter)
		(void)readers_free_interpreter(w->readers, w->interpreter);
	loop_exit(w->loop, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct readers_callbacks callbacks = {.joined = on_joined, .context = on_context};
	const struct message m = {.type = MESSAGE_FRAMES};
	struct world w = {.p = data, .end = data + n, .time_ns = 1000};
	int pair[2];

	w.fd = frame_ring_new(&w.ring);
	if (w.fd < 0 || loop_new(&w.loop) < 0 || readers_new(&w.readers, w.loop, &callbacks) < 0 ||
	    fdmsg_pair(pair, 1) < 0)
		abort();
	readers_join(w.readers, CPU, pair[0]);
	if (message_send(pair[1], &m, &w.fd, 1) < 0 ||
	    loop_add_timer(w.loop, 0, 0, use_ring, &w) < 0)
		abort();
	(void)loop_run(w.loop);
	(void)close_fd(pair[1]);
	frame_ring_free(w.ring);
	(void)close_fd(w.fd);
	readers_free(w.readers);
	loop_free(w.loop);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 8, 100);
}
#endif
