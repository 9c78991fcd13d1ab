/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk debug runtime in the child without privileges. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/interp.h"
#include "runtimes/stepper.h"
#include "src/symbolizer/debug-show.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/runtime-files.h"

enum { STACK_BYTES = 65536, MAX_FRAMES = 64, MAX_READS = 20000, MAX_BYTES = 16 << 20 };

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	const int *fd = ctx;

	return address <= INT64_MAX && pread(*fd, ret, n, (off_t)address) == (ssize_t)n;
}

static const char *why_ended(enum runtime_step step)
{
	switch (step) {
	case RUNTIME_STEP:
	case RUNTIME_NOT_MINE:
		return "native code called it";
	case RUNTIME_TRUNCATED:
		return "the stack is larger than what is copied of it";
	case RUNTIME_ELSEWHERE:
		return "its callers are in the heap (a virtual thread)";
	case RUNTIME_SPENT:
		return "it took too many reads";
	default:
		return "the runtime's memory does not explain the stack";
	}
}

static void print_frame(const struct stepped_frame *f, const char *function, const char *file,
			const char *level, FILE *out)
{
	(void)fprintf(out, "  %s", function);
	if (*file && f->line)
		(void)fprintf(out, " (%s:%" PRIu32 ")", file, f->line);
	else if (*file)
		(void)fprintf(out, " (%s)", file);
	(void)fprintf(out, ", %s%s\n", level, f->inlined ? ", inlined" : "");
}

/* It ends somewhere above. */
static struct runtime_stack copy_stack(int memory, uint64_t sp)
{
	static uint8_t copy[STACK_BYTES];
	struct runtime_stack stack = {.bytes = copy, .start = sp};

	for (size_t n = sizeof(copy); n >= 64 && stack.n == 0; n /= 2)
		stack.n = read_memory(&memory, sp, copy, n) ? n : 0;
	return stack;
}

/* A stopped thread as setup.h has it. */
struct stopped {
	uint32_t tid, own, n;
	uint8_t regs[STOPPED_BYTES - STOPPED_HEAD];
};

/* The i-th one; false: there are no more. */
static bool read_stopped(int threads, uint32_t i, struct stopped *ret)
{
	uint8_t row[STOPPED_BYTES];

	if (threads < 0 ||
	    pread(threads, row, sizeof(row), (off_t)i * STOPPED_BYTES) != (ssize_t)sizeof(row))
		return false;
	memcpy(&ret->tid, row, sizeof(ret->tid));
	memcpy(&ret->own, row + 4, sizeof(ret->own));
	memcpy(&ret->n, row + 8, sizeof(ret->n));
	memcpy(ret->regs, row + STOPPED_HEAD, sizeof(ret->regs));
	return true;
}

/* Was the thread in code of the runtime? */
static bool show_stack(struct stepper *p, int memory, const struct stopped *s,
		       struct runtime_regs *regs, FILE *out)
{
	struct runtime_stack stack = copy_stack(memory, regs->sp);
	enum runtime_step step = RUNTIME_STEP;
	size_t n_shown = 0;

	stepper_begin(p, MAX_READS, MAX_BYTES);
	while (step == RUNTIME_STEP && stepper_may_have(p, regs->pc)) {
		struct stepped_frame frames[MAX_FRAMES];
		size_t n;

		step = stepper_step(p, &stack, regs, frames, MAX_FRAMES, &n);
		for (size_t i = 0; i < n; i++) {
			if (n_shown++ == 0)
				(void)fprintf(out, "thread %" PRIu32 ", stopped for a moment:\n",
					      s->tid);
			print_frame(&frames[i], stepper_text(p, frames[i].function),
				    stepper_text(p, frames[i].file),
				    stepper_level_name(p, frames[i].level), out);
		}
	}
	if (n_shown > 0)
		(void)fprintf(out, "  = %s\n", why_ended(step));
	return n_shown > 0;
}

static void show_threads(struct stepper *p, int memory, int threads, FILE *out)
{
	uint32_t n = 0, n_shown = 0;
	struct runtime_regs regs;
	struct stopped s;

	for (; read_stopped(threads, n, &s); n++) {
		if (s.n <= sizeof(s.regs) && runtime_regs_from_ptrace(s.regs, s.n, &regs))
			n_shown += show_stack(p, memory, &s, &regs, out);
	}
	if (n == 0)
		(void)fprintf(out, "its threads may not be stopped: no stack is shown\n");
	else if (n_shown == 0)
		(void)fprintf(out,
			      "none of %" PRIu32 " threads was in code of %s: no stack is shown\n",
			      n, stepper_name(p));
}

static int complain(const char *name, const char *what, const char *why, int r)
{
	if (r == -ENOTSUP)
		log_error("%s: its %s is not understood: %s", name, what, why);
	else if (r == -EAGAIN)
		log_error("%s: its %s has not started yet; ask again in a second", name, what);
	else if (r < 0 && r != -ENOENT)
		log_error("%s cannot be looked into: %s", name, strerror(-r));
	return r;
}

/* A stepper that has no functions shows nothing: an interpreter is behind it. */
static int show_stepper(const char *name, int memory, uint64_t image, int threads, FILE *out)
{
	const struct memory reads = {.read = read_memory, .ctx = &memory};
	_cleanup_(stepper_freep) struct stepper *p = NULL;
	const char *why;
	int r = stepper_new(&p, &reads, image, &why);

	if (r < 0)
		return complain(name, "runtime", why, r);
	if (!stepper_has_functions(p))
		return -ENOENT;
	stepper_explain(p, out);
	show_threads(p, memory, threads, out);
	return 0;
}

/* ---- Interpreters ---- */

static const char *why_chain_ended(enum chain_result result)
{
	switch (result) {
	case CHAIN_WHOLE:
		return "the thread's first frame";
	case CHAIN_CUT:
		return "more frames than a walk takes";
	case CHAIN_NO_THREAD:
		return "the thread runs none of its code";
	case CHAIN_SPENT:
		return "it took too many reads";
	default:
		return "the interpreter's memory holds no chain of frames";
	}
}

static void show_chain(struct interp *p, uint32_t tid, FILE *out)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	const struct chained_thread thread = {.tid = tid};
	enum chain_result result;
	size_t n;

	interp_begin(p, MAX_READS, MAX_BYTES);
	result = interp_walk(p, &thread, frames, CHAIN_MAX_FRAMES, &n);
	for (size_t i = 0; i < n; i++) {
		const char *file = interp_text(p, frames[i].file);

		(void)fprintf(out, "  %s", interp_text(p, frames[i].function));
		if (frames[i].line)
			(void)fprintf(out, " (%s:%" PRIu32 ")", file, frames[i].line);
		else if (*file)
			(void)fprintf(out, " (%s)", file);
		(void)fprintf(out, "%s\n", frames[i].entry ? ", native code called it" : "");
	}
	(void)fprintf(out, "  = %s\n", why_chain_ended(result));
}

static void walk_once(struct interp *p, uint32_t tid)
{
	static struct chained_frame frames[CHAIN_MAX_FRAMES];
	const struct chained_thread thread = {.tid = tid};
	size_t n;

	interp_begin(p, MAX_READS, MAX_BYTES);
	(void)interp_walk(p, &thread, frames, CHAIN_MAX_FRAMES, &n);
}

static int show_interp(const char *name, int memory, uint64_t image, int threads, FILE *out)
{
	const struct memory reads = {.read = read_memory, .ctx = &memory};
	_cleanup_(interp_freep) struct interp *p = NULL;
	struct stopped s;
	uint32_t i = 0;
	const char *why;
	int r = interp_new(&p, &reads, image, &why);

	if (r < 0)
		return complain(name, "interpreter", why, r);
	/* Some of it is known only once a stack was read. */
	if (read_stopped(threads, 0, &s))
		walk_once(p, s.own);
	interp_explain(p, out);
	for (; read_stopped(threads, i, &s); i++) {
		(void)fprintf(out, "thread %" PRIu32 ", stopped for a moment:\n", s.tid);
		show_chain(p, s.own, out);
	}
	if (i == 0)
		(void)fprintf(out, "its threads may not be stopped: no stack is shown\n");
	return 0;
}

/* ---- All ---- */

static int show_image(const struct debug_process *p, uint64_t image, FILE *out)
{
	int r = show_stepper(p->name, p->memory, image, p->threads, out);

	if (r == -ENOENT)
		r = show_interp(p->name, p->memory, image, p->threads, out);
	return r;
}

static void say_none(const struct debug_process *p)
{
	_cleanup_free_ char *known = NULL;
	size_t n;
	FILE *f = open_memstream(&known, &n);

	if (f) {
		runtime_files_print(f);
		(void)fclose(f);
	}
	if (p->n_named)
		log_error("%s: a file of it is named like a runtime, but exports none of the "
			  "symbols that tell one; perfwalk knows %s",
			  p->name, known ? known : "");
	else
		log_error("process %s has no runtime that perfwalk knows: none of its files is "
			  "named like one or exports its symbols; perfwalk knows %s; a program "
			  "that exports none of its interpreter's symbols cannot be read",
			  p->name, known ? known : "");
}

/* A program that is named like a runtime may only have loaded it from a library. */
int debug_show_runtime(const struct debug_process *p, FILE *out)
{
	int result = -ENOENT;
	uint64_t image;

	for (off_t i = 0; pread(p->images, &image, sizeof(image), i * (off_t)sizeof(image)) ==
			  (ssize_t)sizeof(image);
	     i++) {
		int r = show_image(p, image, out);

		if (r == 0 || result == -ENOENT)
			result = r;
	}
	if (result == -ENOENT)
		say_none(p);
	return result;
}
