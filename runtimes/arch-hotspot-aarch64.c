/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot on aarch64 (frame_aarch64.hpp, macroAssembler_aarch64.cpp,
 * templateInterpreterGenerator_aarch64.cpp).
 *
 * The last two words of a method's frame are the caller's fp and the return address, which is in lr
 * until then: sub sp, sp, N; stp fp, lr, [sp, N - 16]; or, with a large frame, stp fp, lr, [sp,
 * -16]!; sub sp, sp, N - 16. It leaves by the opposite; a poll; ret. Compiled code has other things
 * in fp than a frame pointer. Return addresses may be signed.
 *
 * The interpreter has the top of its operands in x20 (esp), not in sp, which is lower.
 */
#include "runtimes/arch-aarch64.h"
#include "runtimes/arch.h"

const uint8_t arch_hotspot_tried[] = {17, 21, 0};
const bool arch_looks_ahead = true;

enum { X12 = 12, X13, X19 = 19, X22 = 22, LR = 30, SP = 31 };

/* The interpreter's frame, in words from fp. Since 9 it has the method's class and an empty word,
 * too. */
enum { SLOT_SENDER_SP = -1, SLOT_METHOD = -3, SLOT_BCP_8 = -7, SLOT_BCP = -9 };

enum { MAX_LOCALS_BYTES = 65536 * 8 }; /* of a method */

/* The version since which another register has the sender's sp. */
enum { SENDER_SP_IN_X19 = 20 };

static uint64_t without_signature(uint64_t pc)
{
	return pc & UINT64_C(0x0000ffffffffffff);
}

static bool read_record(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret)
{
	if (!runtime_stack_u64(stack, at, &ret->caller_fp) ||
	    !runtime_stack_u64(stack, at + 8, &ret->caller_pc))
		return false;
	ret->caller_pc = without_signature(ret->caller_pc);
	ret->caller_sp = at + 16;
	return true;
}

/* ---- Instructions ---- */

/* The low n bits of a number, as a signed one. */
static int64_t signed_bits(uint32_t number, unsigned int n)
{
	return (int32_t)(number << (32 - n)) >> (32 - n);
}

/* add sp, sp, number; sub sp, sp, number. 0: neither. */
static int64_t added_to_sp(uint32_t word)
{
	int64_t number = (int64_t)(word >> 10 & 0xfff) << (word & 1 << 22 ? 12 : 0);

	if ((word & 0xff8003ff) == 0x910003ff)
		return number;
	return (word & 0xff8003ff) == 0xd10003ff ? -number : 0;
}

/* By how much a load or store of one or two registers moves sp. */
static int64_t moved_sp(uint32_t word)
{
	if ((word >> 5 & 31) != SP)
		return 0;
	if ((word & 0x3a800000) == 0x28800000) { /* two, before or after */
		unsigned int size = word >> 30;
		unsigned int log2 = word & 1 << 26 ? 2 + size : size & 2 ? 3 : 2;

		return signed_bits(word >> 15, 7) * (1 << log2);
	}
	if ((word & 0x3b200400) == 0x38000400) /* one */
		return signed_bits(word >> 12, 9);
	return 0;
}

static bool is_return(uint32_t word)
{
	return word == 0xd65f03c0 || word == 0xd65f0bff || word == 0xd65f0fff;
}

/* stp fp, lr, [sp, -16]!; ldp fp, lr, [sp], 16 */
enum { PUSHES_RECORD = 0xa9bf7bfd, POPS_RECORD = 0xa8c17bfd };

/* stp fp, lr, [sp, number] */
static bool saves_record(uint32_t word)
{
	return (word & 0xffc07fff) == 0xa9007bfd;
}

/* ldp fp, lr, [sp, number] */
static bool loads_record(uint32_t word)
{
	return (word & 0xffc07fff) == 0xa9407bfd;
}

/* ---- Shapes ---- */

/* What may stand between the end of a frame and the return: looks whether the thread shall stop,
 * used its reserved stack, or has an exception, and the check of the return address. */
static bool is_poll(uint32_t word)
{
	return (word & 0xffc003fe) == 0xf9400388 || /* ldr x8 or x9, [x28, number] */
	       word == 0xb940011f ||		    /* ldr wzr, [x8] */
	       (word & 0x9f00001f) == 0x90000008 || /* adrp x8 */
	       word == 0xeb2863ff ||		    /* cmp sp, x8 */
	       (word & 0xff000018) == 0x54000008 || /* b.hi, b.ls */
	       (word & 0xff00001f) == 0xb5000008 || /* cbnz x8 */
	       is_hint(word);
}

/* Is the rest of the code a return, perhaps with polls before it? */
static bool returns(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_return(word_at(code, i)))
			return true;
		if (!is_poll(word_at(code, i)))
			return false;
	}
	return false;
}

/* The shape of the frame after the n instructions from the entry on. */
static enum frame_shape prologue_shape(const uint8_t *code, size_t n)
{
	bool lowered = false, pushed = false;

	for (size_t i = 0; i < n; i++) {
		uint32_t word = word_at(code, i);

		if (saves_record(word))
			return SHAPE_FULL;
		if (pushed && word == 0x910003fd) /* mov fp, sp */
			return SHAPE_POINTED;
		pushed |= word == PUSHES_RECORD;
		lowered |= added_to_sp(word) < 0 || word == 0xcb2863ff; /* sub sp, sp, x8 */
	}
	if (pushed)
		return lowered ? SHAPE_FULL : SHAPE_PUSHED;
	return lowered ? SHAPE_NOT_SAVED : SHAPE_NONE;
}

/* Code may be entered at several places. Is a frame about to be made? */
static bool makes_frame(const uint8_t *code, size_t n, enum frame_shape *ret)
{
	enum { MAX_PROLOGUE = 4 };

	*ret = SHAPE_NOT_SAVED;
	for (size_t i = 0; i < n && i < MAX_PROLOGUE; i++) {
		uint32_t word = word_at(code, i);

		if (saves_record(word))
			return true;
		if (word == PUSHES_RECORD || added_to_sp(word) < 0)
			*ret = SHAPE_NONE;
		if (word == PUSHES_RECORD)
			return true;
	}
	return false;
}

enum frame_shape arch_frame_shape(const uint8_t *code, size_t n_before, size_t n, bool complete)
{
	const uint8_t *at = code + n_before;
	size_t n_words = n / WORD;
	enum frame_shape shape;

	if (n_words > 0 && returns(at, n_words))
		return SHAPE_NONE;
	if (n_words > 1 && returns(at + WORD, n_words - 1)) {
		if (word_at(at, 0) == POPS_RECORD)
			return SHAPE_PUSHED;
		/* The registers are the caller's again. */
		if (added_to_sp(word_at(at, 0)) > 0)
			return SHAPE_NOT_SAVED;
	}
	if (complete)
		return makes_frame(at, n_words, &shape) ? shape : SHAPE_FULL;
	return prologue_shape(code, n_before / WORD);
}

bool arch_is_call(const uint8_t *before, size_t n)
{
	uint32_t word;

	if (n < WORD)
		return false;
	word = word_at(before + n - WORD, 0);
	/* bl; blr */
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
}

static enum code_way way_of(uint32_t word)
{
	if (word == PUSHES_RECORD || is_return(word))
		return WAY_REGISTER;
	if (word == 0x910003fd || word == POPS_RECORD) /* mov fp, sp */
		return WAY_TOP;
	if (word == 0x910003bf) /* mov sp, fp */
		return WAY_FRAME;
	return loads_record(word) ? WAY_FIXED : WAY_UNKNOWN;
}

void arch_look_ahead(struct memory *m, uint64_t at, uint64_t end, struct code_ahead *ret)
{
	enum { MAX_JUMPS = 16, MAX_BYTES = 2048 };
	uint8_t code[MAX_BYTES];
	int64_t below = 0, most = 0;
	size_t n_words = (end - at < MAX_BYTES ? end - at : MAX_BYTES) / WORD;

	*ret = (struct code_ahead){.way = WAY_UNKNOWN};
	if (end <= at || !memory_read(m, at, code, n_words * WORD))
		return;
	for (size_t i = 0, jumps = 0; i < n_words; i++) {
		uint32_t word = word_at(code, i), next = 0;
		int64_t added = added_to_sp(word);

		if (i + 1 < n_words)
			next = word_at(code, i + 1);
		if ((word & 0xfc000000) == 0x14000000) { /* b */
			int64_t distance = signed_bits(word, 26);

			if (distance <= 0 || (uint64_t)distance >= n_words - i ||
			    ++jumps > MAX_JUMPS)
				break;
			i += (size_t)distance - 1;
			continue;
		}
		ret->way = added > 0 && next == POPS_RECORD ? WAY_FIXED : way_of(word);
		if (ret->way != WAY_UNKNOWN)
			break;
		below += added + moved_sp(word);
		most = below > most ? below : most;
	}
	ret->pushed = most <= UINT16_MAX ? (uint16_t)most : 0;
}

/* ---- Frames ---- */

bool arch_interpreted(const struct hotspot *h, const struct runtime_stack *stack, uint64_t fp,
		      struct interpreted *ret)
{
	int64_t bcp = h->major > 8 ? SLOT_BCP : SLOT_BCP_8;
	uint64_t sender;

	if (fp % 16 != 0 || !runtime_stack_u64(stack, fp + (uint64_t)(bcp * 8), &ret->bcp) ||
	    !runtime_stack_u64(stack, fp + (uint64_t)(int64_t)(SLOT_METHOD * 8), &ret->method) ||
	    !runtime_stack_u64(stack, fp + (uint64_t)(int64_t)(SLOT_SENDER_SP * 8), &sender) ||
	    !read_record(stack, fp, ret))
		return false;
	/* Of a caller in the interpreter it may be lower; a new frame lacks it. */
	if (sender > ret->caller_sp && sender - fp < MAX_LOCALS_BYTES && sender % 8 == 0)
		ret->caller_sp = sender;
	return true;
}

uint64_t arch_sender_sp(const struct hotspot *h, const struct runtime_regs *regs)
{
	return regs->r[h->major >= SENDER_SP_IN_X19 ? X19 : X13];
}

/* x12 is the method, lr the return address, and fp the caller's, until the frame is there. */
bool arch_entering(const struct hotspot *h, const struct runtime_stack *stack,
		   const struct runtime_regs *regs, struct interpreted *ret)
{
	uint64_t sender = arch_sender_sp(h, regs);

	*ret = (struct interpreted){
		.method = regs->r[X12],
		.caller_pc = without_signature(regs->r[LR]),
		.caller_sp = sender > regs->sp ? sender : regs->sp,
		.caller_fp = regs->fp,
	};
	return hs_is_code(h, ret->caller_pc);
}

uint64_t arch_bcp(const struct runtime_regs *regs)
{
	return regs->r[X22];
}

bool arch_fp_frame(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret)
{
	return read_record(stack, at, ret);
}

bool arch_framed(const struct runtime_stack *stack, const struct runtime_regs *regs, uint32_t words,
		 enum frame_shape shape, struct interpreted *ret)
{
	uint64_t end = regs->sp + (uint64_t)words * 8;

	if (shape == SHAPE_PUSHED || shape == SHAPE_POINTED)
		return read_record(stack, shape == SHAPE_PUSHED ? regs->sp : regs->fp, ret);
	if (shape == SHAPE_FULL)
		return read_record(stack, end - 16, ret);
	(void)arch_return(stack, regs, ret);
	if (shape == SHAPE_NOT_SAVED)
		ret->caller_sp = end;
	return true;
}

bool arch_return(const struct runtime_stack *stack, const struct runtime_regs *regs,
		 struct interpreted *ret)
{
	ret->caller_pc = without_signature(regs->r[LR]);
	ret->caller_sp = regs->sp;
	ret->caller_fp = regs->fp;
	return true;
}
