/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps (frame-constants.h). Next to the return address and the caller's fp, a frame has a
 * context and a function or, in V8's own code, a small number for the kind of frame. A function
 * that is interpreted or runs as baseline code has its bytecode array there, too. So the words at
 * fp prove a step, and those of the next frame prove its caller.
 */
#include "runtimes/v8-internal.h"

#define MAX_FRAME_BYTES (UINT64_C(1) << 20)

enum { MAX_FRAME_TYPE = 64, SHAPE_BYTES = 64 };

struct v8_walk {
	struct v8 *v;
	const struct runtime_stack *stack;
	struct runtime_regs *regs;
	struct stepped_frame *frames;
	size_t max, n;
};

/* What stands at fp. */
struct v8_frame {
	uint64_t context, function, bytecode, offset;
	uint64_t caller_fp, caller_pc;
};

static void put(struct v8_walk *w, const struct stepped_frame *f)
{
	if (w->n < w->max)
		w->frames[w->n++] = *f;
}

/* A function, or that there is one. */
static void put_function(struct v8_walk *w, uint64_t shared, int32_t position, enum v8_level level,
			 bool inlined)
{
	struct stepped_frame f;

	w->v->stats.functions++;
	if (!shared || !v8_function_frame(w->v, shared, position, &f)) {
		w->v->stats.unproven++;
		f = (struct stepped_frame){.function =
						   strtab_put(&w->v->memo->base.texts,
							      "[JavaScript function not proven]")};
	}
	f.level = (uint8_t)level;
	f.inlined = inlined;
	put(w, &f);
}

/* ---- Frames by fp ---- */

static bool read_frame(struct v8_walk *w, struct v8_frame *ret)
{
	uint64_t fp = w->regs->fp;
	struct v8_frame f = {0};

	if (fp < w->regs->sp || fp - w->regs->sp > MAX_FRAME_BYTES || fp % 8 != 0 ||
	    !runtime_stack_u64(w->stack, fp, &f.caller_fp) ||
	    !runtime_stack_u64(w->stack, fp + 8, &f.caller_pc) ||
	    !runtime_stack_u64(w->stack, fp + v8_value(w->v, V8_FRAME_CONTEXT), &f.context) ||
	    !runtime_stack_u64(w->stack, fp + v8_value(w->v, V8_FRAME_FUNCTION), &f.function))
		return false;
	/* A frame may be smaller. */
	if (!runtime_stack_u64(w->stack, fp + v8_value(w->v, V8_FRAME_BYTECODE), &f.bytecode) ||
	    !runtime_stack_u64(w->stack, fp + v8_value(w->v, V8_FRAME_OFFSET), &f.offset))
		f.bytecode = f.offset = 0;
	*ret = f;
	return true;
}

/* Of a frame of V8's own: an even number instead of a context. */
static bool is_typed(const struct v8_frame *f)
{
	return f->context % 2 == 0 && f->context > 0 && f->context / 2 < MAX_FRAME_TYPE;
}

static bool is_javascript(const struct v8_frame *f)
{
	return v8_is_object(f->context) && v8_is_object(f->function);
}

static enum runtime_step go(struct v8_walk *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct runtime_regs *r = w->regs;
	bool grows = sp > r->sp || (sp == r->sp && r->innermost && arch_v8_link >= 0);

	if (!grows || sp - r->sp > MAX_FRAME_BYTES || sp % 8 != 0 || pc == 0)
		return RUNTIME_NOT_MINE;
	r->pc = pc;
	r->sp = sp;
	r->fp = fp;
	r->innermost = false;
	r->called_own = true;
	r->file_start = r->file_end = 0;
	return RUNTIME_STEP;
}

/* Native code has entered V8's, to call a function or a constructor. These kinds of frames have the
 * same numbers in all versions. */
static bool is_entry(const struct v8_frame *f)
{
	enum { ENTRY = 1, CONSTRUCT_ENTRY = 2 };

	return f->context == 2 * ENTRY || f->context == 2 * CONSTRUCT_ENTRY;
}

static enum runtime_step go_by_fp(struct v8_walk *w, const struct v8_frame *f)
{
	uint64_t saved = is_entry(f) ? arch_v8_entry_bytes : 0;

	return go(w, f->caller_pc, w->regs->fp + 16 + saved, f->caller_fp);
}

/* From code without a frame of its own: its return address was behind so many words of the stack,
 * or in a register. */
static enum runtime_step go_frameless(struct v8_walk *w, uint64_t pc, uint64_t words)
{
	return go(w, pc, w->regs->sp + (arch_v8_link < 0 ? (words + 1) * 8 : 0), w->regs->fp);
}

/* The return address of such code. false: the copy of the stack lacks it. */
static bool frameless_return(const struct v8_walk *w, uint64_t words, uint64_t *ret)
{
	if (arch_v8_link < 0)
		return runtime_stack_u64(w->stack, w->regs->sp + words * 8, ret);
	*ret = w->regs->r[arch_v8_link];
	return true;
}

/* ---- Functions ---- */

static bool is_interpreted(struct v8_walk *w, const struct v8_frame *f)
{
	return is_javascript(f) && v8_is_bytecode(w->v, f->bytecode);
}

/* An offset counts from the array's address, which is tagged. */
static int32_t bytecode_offset(const struct v8_walk *w, uint64_t offset)
{
	return (int32_t)offset - ((int32_t)v8_value(w->v, V8_BYTECODE_DATA) - 1);
}

static void put_interpreted(struct v8_walk *w, const struct v8_frame *f)
{
	struct v8 *v = w->v;
	int32_t offset =
		v8_is_smi(f->offset) ? bytecode_offset(w, (uint32_t)v8_smi(f->offset)) : -1;

	if (v->leaf_bytecode == f->bytecode)
		offset = bytecode_offset(w, v->leaf_offset);
	put_function(w, v8_function_of(v, f->function, f->bytecode),
		     v8_bytecode_position(v, f->bytecode, offset), V8_INTERPRETED, false);
}

/* bytecode: of the code, or of the frame (V8 9). */
static void put_baseline(struct v8_walk *w, const struct v8_known_code *k, uint64_t function,
			 uint64_t bytecode)
{
	int32_t offset = -1;

	if (v8_is_bytecode(w->v, k->code.deopt))
		bytecode = k->code.deopt;
	if (!k->innermost)
		offset = v8_code_offset(w->v, k->pc, bytecode);
	put_function(w, v8_function_of(w->v, function, bytecode),
		     v8_bytecode_position(w->v, bytecode, offset), V8_BASELINE, false);
}

static void put_optimized(struct v8_walk *w, const struct v8_known_code *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		struct v8_place p = w->v->memo->places.items[k->first + i];

		put_function(w, p.shared, p.position, V8_OPTIMIZED, i + 1 < k->n);
	}
}

/* ---- Compiled code ---- */

/* Behind a call, of compiled code or of the image's. */
static bool is_return_address(struct v8_walk *w, uint64_t address)
{
	uint8_t before[8];

	if (address < 4096)
		return false;
	if (!v8_is_own(w->v, address))
		return v8_code_at(w->v, address) != NULL;
	return memory_read(&w->v->memory, address - sizeof(before), before, sizeof(before)) &&
	       arch_v8_is_call(before, sizeof(before));
}

/*
 * In baseline code before its first bytecode: a built-in function makes the frame. Until then the
 * frame at fp is the caller's, and the return address is on top of the stack; later there is an
 * object on top.
 */
static enum runtime_step step_entry(struct v8_walk *w, const struct v8_known_code *k,
				    const struct v8_frame *f, bool framed)
{
	struct runtime_regs *r = w->regs;
	uint64_t pc;

	if (arch_v8_link >= 0 && k->shape == V8_SHAPE_FULL)
		pc = 0;
	else if (!frameless_return(w, 0, &pc))
		return RUNTIME_TRUNCATED;
	if (is_return_address(w, pc)) {
		put_baseline(w, k, arch_v8_function(r), 0);
		return go_frameless(w, pc, 0);
	}
	if (!framed || !is_interpreted(w, f) ||
	    (v8_is_bytecode(w->v, k->code.deopt) && f->bytecode != k->code.deopt))
		return RUNTIME_UNPROVEN;
	put_baseline(w, k, f->function, f->bytecode);
	return go_by_fp(w, f);
}

static enum runtime_step step_compiled(struct v8_walk *w, const struct v8_known_code *found)
{
	const struct v8_known_code k = *found;
	uint32_t baseline = (uint32_t)v8_value(w->v, V8_KIND_BASELINE);
	struct runtime_regs *r = w->regs;
	uint64_t pc, words = k.shape == V8_SHAPE_PUSHED ? 1 : 0;
	struct v8_frame f = {0};
	bool framed = read_frame(w, &f);

	if (k.code.kind == baseline && v8_is_baseline_entry(&k))
		return step_entry(w, &k, &f, framed);
	if (k.innermost && k.shape != V8_SHAPE_FULL) {
		if (k.code.kind == baseline)
			put_baseline(w, &k, arch_v8_function(r), 0);
		else
			put_optimized(w, &k);
		if (k.shape == V8_SHAPE_POPPED)
			pc = r->r[k.return_register];
		else if (!frameless_return(w, words, &pc))
			return RUNTIME_TRUNCATED;
		return go_frameless(w, pc, words);
	} else if (k.code.kind == baseline) {
		put_baseline(w, &k, f.function, f.bytecode);
	} else {
		put_optimized(w, &k);
	}
	if (!framed)
		return r->fp - w->stack->start >= w->stack->n ? RUNTIME_TRUNCATED
							      : RUNTIME_UNPROVEN;
	return go_by_fp(w, &f);
}

/* ---- V8's own code: handlers of bytecode, built-in functions ---- */

/* Is this the frame of the code's own function? */
static bool is_frame_of(struct v8_walk *w, const struct v8_frame *f, const struct v8_known_code *k)
{
	uint32_t baseline = (uint32_t)v8_value(w->v, V8_KIND_BASELINE);

	/* It is about to get one. */
	if (k->code.kind == baseline && v8_is_baseline_entry(k))
		return true;
	if (k->code.kind < baseline || !is_javascript(f))
		return false;
	if (k->code.kind == baseline)
		return is_interpreted(w, f);
	return k->n > 0 &&
	       v8_shared(w->v, f->function) == w->v->memo->places.items[k->first + k->n - 1].shared;
}

/*
 * A built-in function without a frame, or before it has one: its caller's return address, behind so
 * many words of the stack. certain: it is there; else it must be in code of the function whose
 * frame is at fp.
 */
static bool find_return(struct v8_walk *w, uint64_t words, const struct v8_frame *f, bool certain,
			uint64_t *ret)
{
	const struct v8_known_code *k;
	uint8_t before[8];

	if (!frameless_return(w, words, ret) || *ret < 4096)
		return false;
	/* The frame has just been made, and has saved the register. */
	if (arch_v8_link >= 0 && !certain && *ret == f->caller_pc)
		return false;
	k = v8_is_own(w->v, *ret) ? NULL : v8_code_at(w->v, *ret);
	if (k)
		return certain || is_frame_of(w, f, k);
	return (certain || is_interpreted(w, f)) &&
	       memory_read(&w->v->memory, *ret - sizeof(before), before, sizeof(before)) &&
	       arch_v8_is_call(before, sizeof(before));
}

/* Compiled code that is not found, other than a frame that has its own proof: of a function. */
static void put_unknown(struct v8_walk *w, const struct v8_frame *f)
{
	if (is_javascript(f) && !is_interpreted(w, f))
		put_function(w, 0, -1, V8_OPTIMIZED, false);
}

static enum v8_shape own_shape(struct v8_walk *w, uint8_t *ret_register)
{
	uint8_t bytes[2 * SHAPE_BYTES];

	if (!memory_read(&w->v->memory, w->regs->pc - SHAPE_BYTES, bytes, sizeof(bytes)))
		return V8_SHAPE_FULL;
	return arch_v8_shape(bytes, SHAPE_BYTES, bytes + SHAPE_BYTES, SHAPE_BYTES, ret_register);
}

/*
 * Interrupted in V8's own code, with the frame at fp. It is that code's own, or of the function
 * that called it, as of a handler's: then it is the next one, and who called is on top of the
 * stack.
 */
static enum runtime_step step_interrupted(struct v8_walk *w, const struct v8_frame *f)
{
	struct runtime_regs *r = w->regs;
	uint8_t popped = 0;
	enum v8_shape shape = own_shape(w, &popped);
	uint64_t pc;

	if (shape == V8_SHAPE_POPPED) {
		/* Where native code enters, more is on the stack. */
		if (arch_v8_link >= 0 && !is_return_address(w, r->r[popped]))
			return RUNTIME_UNPROVEN;
		return go_frameless(w, r->r[popped], 0);
	}
	if (shape == V8_SHAPE_PUSHED && find_return(w, 1, f, true, &pc))
		return go_frameless(w, pc, 1);
	if (is_interpreted(w, f)) {
		w->v->leaf_bytecode = arch_v8_bytecode(r) == f->bytecode ? f->bytecode : 0;
		w->v->leaf_offset = (uint32_t)arch_v8_offset(r);
	}
	if (find_return(w, 0, f, shape == V8_SHAPE_NONE, &pc))
		return go_frameless(w, pc, 0);
	/* Its caller is the interpreter's loop, of which any place will do. */
	if (is_interpreted(w, f))
		return go_frameless(w, r->pc + 1, 0);
	return go_by_fp(w, f);
}

/* V8's own code, or code of which nothing is known (unknown). */
static enum runtime_step step_own(struct v8_walk *w, bool unknown)
{
	struct stepped_frame wasm = {.level = V8_WASM};
	struct v8_frame f;

	if (!read_frame(w, &f))
		return w->regs->fp > w->regs->sp && w->regs->fp - w->regs->sp < MAX_FRAME_BYTES &&
				       w->regs->fp - w->stack->start >= w->stack->n
			       ? RUNTIME_TRUNCATED
			       : RUNTIME_NOT_MINE;
	if (!is_typed(&f) && !is_javascript(&f))
		return RUNTIME_NOT_MINE;
	if (is_typed(&f) && f.context / 2 == v8_value(w->v, V8_FRAME_WASM)) {
		wasm.function = strtab_put(&w->v->memo->base.texts, "[WebAssembly]");
		put(w, &wasm);
		return go_by_fp(w, &f);
	}
	if (unknown)
		put_unknown(w, &f);
	if (w->regs->innermost)
		return step_interrupted(w, &f);
	if (is_interpreted(w, &f))
		put_interpreted(w, &f);
	return go_by_fp(w, &f);
}

/*
 * Optimized code that the collector has moved or freed since the sample. Nothing is at the pc now,
 * so what was there before is believed if the frame is one of the function that it was made of.
 */
static const struct v8_known_code *find_gone(struct v8_walk *w)
{
	const struct runtime_regs *r = w->regs;
	const struct v8_known_code *k = v8_code_before(w->v, r->pc, r->innermost);
	struct v8_frame f;

	if (!k || k->code.kind <= (uint32_t)v8_value(w->v, V8_KIND_BASELINE) ||
	    (r->innermost && k->shape != V8_SHAPE_FULL) || !read_frame(w, &f))
		return NULL;
	return is_frame_of(w, &f, k) ? k : NULL;
}

/* ---- All ---- */

static bool is_spent(const struct v8 *v)
{
	return v->below.reads_left == 0 || v->below.bytes_left < V8_BLOCK_BYTES;
}

enum runtime_step v8_step(struct v8 *v, const struct runtime_stack *stack,
			  struct runtime_regs *regs, struct stepped_frame *frames, size_t max,
			  size_t *ret_n)
{
	struct v8_walk w = {v, stack, regs, frames, max, 0};
	const struct v8_known_code *k;
	enum runtime_step r;
	bool known;

	*ret_n = 0;
	if (is_spent(v))
		return RUNTIME_SPENT;
	if (regs->file_end && !v8_is_own(v, regs->pc)) {
		v->near_start = regs->file_start;
		v->near_end = regs->file_end;
	}
	known = v8_is_own(v, regs->pc);
	k = known ? NULL : v8_code_find(v, regs->pc, regs->innermost);
	if (regs->innermost)
		v->leaf_bytecode = 0;
	if (!k && regs->innermost && !regs->file_end && !v8_is_in_file(v, regs->pc))
		known = v8_copies_find(v, regs);
	if (!k && !known)
		k = find_gone(&w);
	known |= k != NULL;
	/* A regular expression, or a copy of the interpreter's loop for one function. */
	if (k && k->code.kind < (uint32_t)v8_value(v, V8_KIND_BASELINE))
		k = NULL;
	r = k ? step_compiled(&w, k) : step_own(&w, !known);
	if (r != RUNTIME_STEP && is_spent(v))
		r = RUNTIME_SPENT;
	v->stats.steps++;
	*ret_n = w.n;
	return r;
}
