/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps, and the proof of each:
 *
 * - compiled code: the return address has debug information, or it follows a call instruction if
 *   the callee has none (a stub, a native function); and the caller of compiled code is in the code
 *   cache, too, because no other code can call it.
 * - compiled code that keeps words below its frame: the same, and the caller's frame has a return
 *   address into the code cache.
 * - the interpreter: the frame has a method in it that hotspot-method.c proves.
 * - the call stub, through which all calls from native code come: its return address is known.
 * - other stubs: their return address follows a call in the code cache.
 */
#include "runtimes/arch.h"

#define MAX_FRAME_BYTES (UINT64_C(1) << 20)

/* A search keeps four words, and may copy a short string there. */
enum { MAX_PUSHED_BYTES = 64 };

struct step {
	struct hotspot *h;
	const struct runtime_stack *stack;
	struct runtime_regs *regs;
	struct stepped_frame *frames;
	size_t max, n;
};

static void put(struct step *s, const struct stepped_frame *f)
{
	if (s->n < s->max)
		s->frames[s->n++] = *f;
}

static void put_places(struct step *s, const struct code *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		put(s, &s->h->memo->places.items[c->first + i]);
}

static bool is_interpreter(const struct hotspot *h, uint64_t pc)
{
	return pc >= h->interpreter.start && pc < h->interpreter.end;
}

static bool is_entry(const struct hotspot *h, uint64_t pc)
{
	for (uint32_t i = 0; i < h->entries.n; i++) {
		if (pc >= h->entries.items[i].start && pc < h->entries.items[i].end)
			return true;
	}
	return false;
}

/* A stack grows down, so that a caller's frame is above. */
static enum runtime_step go(struct step *s, const struct interpreted *to, bool java)
{
	struct runtime_regs *r = s->regs;

	/* Or where it is, if code without a frame keeps its return address in a register. */
	if (to->caller_sp < r->sp || (to->caller_sp == r->sp && !r->innermost) ||
	    to->caller_sp - r->sp > MAX_FRAME_BYTES || to->caller_sp % 8 != 0 || to->caller_pc == 0)
		return RUNTIME_UNPROVEN;
	r->pc = to->caller_pc;
	r->sp = to->caller_sp;
	r->fp = to->caller_fp;
	r->innermost = false;
	r->called_own = java;
	return RUNTIME_STEP;
}

/* Only code of the cache calls such code. */
static enum runtime_step go_java(struct step *s, const struct interpreted *to, bool java)
{
	if (!hotspot_has(s->h, to->caller_pc))
		return RUNTIME_UNPROVEN;
	return go(s, to, java);
}

/* ---- Compiled code, and stubs with a frame of fixed size ---- */

static enum runtime_step step_framed(struct step *s, const struct blob *b, enum frame_shape shape,
				     bool java)
{
	struct interpreted to;

	if (b->frame_words == 0 && (shape == SHAPE_FULL || shape == SHAPE_NOT_SAVED))
		return RUNTIME_UNPROVEN;
	if (!arch_framed(s->stack, s->regs, b->frame_words, shape, &to))
		return RUNTIME_TRUNCATED;
	return go_java(s, &to, java);
}

/* Can a stub return to pc? */
static bool is_caller(struct step *s, uint64_t pc)
{
	const struct hotspot *h = s->h;
	const struct code *c;

	/* HotSpot's own threads call some. */
	if (pc >= h->image.start && pc < h->image.end)
		return hotspot_is_behind_call(s->h, pc);
	c = hotspot_has(h, pc) ? hotspot_code_find(s->h, pc, PC_CALLED) : NULL;
	return c && c->blob.kind != BLOB_FRAMELESS;
}

/* Can a method return to pc? */
static bool is_java_caller(struct step *s, uint64_t pc)
{
	const struct hotspot *h = s->h;
	const struct code *c;

	if (pc == h->call_stub_return || is_interpreter(h, pc))
		return true;
	c = hotspot_has(h, pc) ? hotspot_code_find(s->h, pc, PC_CALLED_JAVA) : NULL;
	return c && c->blob.kind == BLOB_NMETHOD;
}

/* Does the frame of such a caller stand at its sp? */
static bool has_frame_at(struct step *s, const struct interpreted *caller)
{
	const struct code *c;
	struct interpreted f;

	if (caller->caller_pc == s->h->call_stub_return)
		return caller->caller_fp > caller->caller_sp &&
		       arch_fp_frame(s->stack, caller->caller_fp, &f);
	if (is_interpreter(s->h, caller->caller_pc))
		return caller->caller_fp > caller->caller_sp &&
		       arch_interpreted(s->h, s->stack, caller->caller_fp, &f) &&
		       hotspot_method_bci(s->h, f.method, f.bcp) >= 0;
	c = hotspot_code_find(s->h, caller->caller_pc, PC_CALLED_JAVA);
	return c &&
	       arch_framed(s->stack, &(struct runtime_regs){.sp = caller->caller_sp},
			   c->blob.frame_words, SHAPE_FULL, &f) &&
	       hotspot_has(s->h, f.caller_pc);
}

/* Is the frame's return address that of a method's caller, with that many bytes below the frame? */
static bool is_pushed(struct step *s, const struct blob *b, uint64_t bytes)
{
	struct runtime_regs below = {.sp = s->regs->sp + bytes};
	struct interpreted to;

	return arch_framed(s->stack, &below, b->frame_words, SHAPE_FULL, &to) &&
	       is_java_caller(s, to.caller_pc) && has_frame_at(s, &to);
}

/*
 * How many bytes are below a method's frame. What C2 puts into methods to compare strings keeps one
 * word there for a while, and to search strings several, the old sp among them; HotSpot writes
 * nowhere down where. In the frames of callers lie old return addresses, so we do not try how many
 * words it may be: either one of them says where the frame is, or it is one. But frames hold other
 * words that look like an old sp, such as the places of their locks. So if there is also a caller
 * with nothing below the frame, neither is proven: false.
 */
static bool find_pushed(struct step *s, const struct blob *b, uint64_t *ret)
{
	uint64_t sp = s->regs->sp, word;
	bool plain = is_pushed(s, b, 0);

	for (uint64_t at = sp; at < sp + MAX_PUSHED_BYTES; at += 8) {
		if (runtime_stack_u64(s->stack, at, &word) && word > at && word % 8 == 0 &&
		    word - sp <= MAX_PUSHED_BYTES && is_pushed(s, b, word - sp)) {
			*ret = word - sp;
			return !plain;
		}
	}
	if (runtime_stack_u64(s->stack, sp + (uint64_t)b->frame_words * 8 - 8, &word) &&
	    (is_java_caller(s, word) || is_caller(s, word)))
		*ret = 0;
	else
		*ret = is_pushed(s, b, 8) ? 8 : 0;
	return true;
}

/* Likewise by what the code does next; but it may take one of several ways. */
static uint64_t find_pushed_ahead(struct step *s, const struct blob *b,
				  const struct code_ahead *ahead)
{
	static const uint16_t others[] = {0, 16};

	if (is_pushed(s, b, ahead->pushed))
		return ahead->pushed;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (others[i] != ahead->pushed && is_pushed(s, b, others[i]))
			return others[i];
	}
	return ahead->pushed;
}

/* How many bytes are below a method's frame. false: not known. */
static bool find_below(struct step *s, const struct code_ahead *ahead, const struct blob *b,
		       uint64_t *ret)
{
	*ret = 0;
	if (arch_looks_ahead)
		*ret = find_pushed_ahead(s, b, ahead);
	else if (b->level == HOTSPOT_C2)
		return find_pushed(s, b, ret);
	return true;
}

static enum runtime_step step_compiled(struct step *s, enum pc_use use)
{
	const struct code *c = hotspot_code_find(s->h, s->regs->pc, use);
	struct code_ahead ahead;
	struct blob blob;
	enum frame_shape shape;
	uint64_t pc, pushed;

	if (!c)
		return RUNTIME_UNPROVEN;
	blob = c->blob;
	ahead = c->ahead;
	shape = use == PC_INTERRUPTED ? (enum frame_shape)c->shape : SHAPE_FULL;
	if (use != PC_INTERRUPTED && (s->regs->pc == blob.deopt || s->regs->pc == blob.deopt_mh)) {
		/* It will be executed by the interpreter; its place was put aside. */
		if (!runtime_stack_u64(s->stack, s->regs->sp + blob.orig_pc_offset, &pc))
			return RUNTIME_TRUNCATED;
		c = pc >= blob.code_begin && pc < blob.code_end
			    ? hotspot_code_find(s->h, pc, PC_CALLED_JAVA)
			    : NULL;
		if (!c || c->blob.at != blob.at)
			return RUNTIME_UNPROVEN;
	}
	put_places(s, c);
	if (use != PC_CALLED_JAVA && blob.kind == BLOB_NMETHOD && shape == SHAPE_FULL &&
	    blob.frame_words >= 2) {
		if (!find_below(s, &ahead, &blob, &pushed))
			return RUNTIME_UNPROVEN;
		s->regs->sp += pushed;
	}
	return step_framed(s, &blob, shape, true);
}

/* ---- The interpreter ---- */

static bool put_interpreted(struct step *s, uint64_t method, uint64_t bcp)
{
	struct stepped_frame f;

	if (!hotspot_method_frame(s->h, method, hotspot_method_bci(s->h, method, bcp), &f))
		return false;
	f.level = HOTSPOT_INTERPRETED;
	put(s, &f);
	return true;
}

static enum runtime_step step_interpreted(struct step *s)
{
	struct runtime_regs *r = s->regs;
	bool entry = r->innermost && is_entry(s->h, r->pc);
	struct interpreted f, entering;
	uint64_t bcp;
	bool has_frame = r->fp >= r->sp && r->fp - r->sp < MAX_FRAME_BYTES &&
			 arch_interpreted(s->h, s->stack, r->fp, &f);

	/* On entry the frame at fp may be the caller's still. */
	if (entry && arch_entering(s->h, s->stack, r, &entering) &&
	    (!has_frame || f.method != entering.method) && put_interpreted(s, entering.method, 0))
		return go_java(s, &entering, true);
	if (!has_frame)
		return r->fp - s->stack->start >= s->stack->n && r->fp > r->sp &&
				       r->fp - r->sp < MAX_FRAME_BYTES
			       ? RUNTIME_TRUNCATED
			       : RUNTIME_UNPROVEN;
	bcp = f.bcp;
	if (r->innermost && hotspot_method_bci(s->h, f.method, arch_bcp(r)) >= 0)
		bcp = arch_bcp(r);
	if (!put_interpreted(s, f.method, bcp))
		return RUNTIME_UNPROVEN;
	return go_java(s, &f, true);
}

/* ---- Stubs ---- */

static enum runtime_step step_frameless(struct step *s)
{
	struct interpreted to;

	if (!s->regs->innermost)
		return RUNTIME_UNPROVEN;
	if (!arch_return(s->stack, s->regs, &to))
		return RUNTIME_TRUNCATED;
	if (!is_caller(s, to.caller_pc))
		return RUNTIME_UNPROVEN;
	if (is_java_caller(s, to.caller_pc) && !has_frame_at(s, &to)) {
		to.caller_sp = arch_sender_sp(s->h, s->regs);
		if (!has_frame_at(s, &to))
			return RUNTIME_UNPROVEN;
	}
	return go(s, &to, true);
}

/* The caller of the innermost code of a stub that has no frame pointer, or has not set it yet. */
static bool find_stub_caller(struct step *s, const struct code_ahead *ahead,
			     struct interpreted *ret)
{
	struct runtime_regs regs = *s->regs;

	regs.sp += ahead->pushed;
	return (ahead->way == WAY_TOP ? arch_fp_frame(s->stack, regs.sp, ret)
				      : arch_return(s->stack, &regs, ret)) &&
	       is_caller(s, ret->caller_pc);
}

static enum runtime_step step_stub(struct step *s, const struct code_ahead *ahead,
				   bool continuation)
{
	struct runtime_regs *r = s->regs;
	struct interpreted to;

	if (r->pc == s->h->call_stub_return)
		return arch_fp_frame(s->stack, r->fp, &to) ? go(s, &to, false) : RUNTIME_TRUNCATED;
	if (r->innermost && ahead->way != WAY_FRAME && find_stub_caller(s, ahead, &to))
		return go(s, &to, false);
	if (r->fp >= r->sp && r->fp - r->sp < MAX_FRAME_BYTES &&
	    arch_fp_frame(s->stack, r->fp, &to) && is_caller(s, to.caller_pc) && !continuation)
		return go(s, &to, false);
	return continuation ? RUNTIME_ELSEWHERE : RUNTIME_UNPROVEN;
}

/* Does it say where the frame is better than its size? */
static bool is_way_of_stub(uint8_t way)
{
	return way == WAY_REGISTER || way == WAY_TOP || way == WAY_FRAME;
}

/* ---- All ---- */

static enum runtime_step step(struct step *s)
{
	struct runtime_regs *r = s->regs;
	enum pc_use use = r->innermost	  ? PC_INTERRUPTED
			  : r->called_own ? PC_CALLED_JAVA
					  : PC_CALLED;
	enum frame_shape shape;
	struct code_ahead ahead;
	const struct code *c;
	struct blob blob;

	if (is_interpreter(s->h, r->pc))
		return step_interpreted(s);
	c = hotspot_code_find(s->h, r->pc, use);
	if (!c)
		return RUNTIME_UNPROVEN;
	blob = c->blob;
	ahead = c->ahead;
	switch (blob.kind) {
	case BLOB_NMETHOD:
	case BLOB_NATIVE:
		return step_compiled(s, use);
	case BLOB_FRAMELESS:
		put_places(s, c);
		return step_frameless(s);
	case BLOB_STUBS:
	case BLOB_CONTINUATION:
		put_places(s, c);
		return step_stub(s, &ahead, blob.kind == BLOB_CONTINUATION);
	case BLOB_FRAMED:
		put_places(s, c);
		if (r->innermost && is_way_of_stub(ahead.way))
			return step_stub(s, &ahead, false);
		shape = use == PC_INTERRUPTED ? (enum frame_shape)c->shape : SHAPE_FULL;
		return step_framed(s, &blob, shape, false);
	default:
		return RUNTIME_UNPROVEN;
	}
}

enum runtime_step hotspot_step(struct hotspot *h, const struct runtime_stack *stack,
			       struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			       size_t *ret_n)
{
	struct step s = {h, stack, regs, frames, max, 0};
	enum runtime_step r = step(&s);

	if (r == RUNTIME_UNPROVEN && (h->memory.reads_left == 0 || h->memory.bytes_left < 512))
		r = RUNTIME_SPENT;
	h->stats.steps++;
	h->stats.failed[r]++;
	*ret_n = s.n;
	return r;
}
