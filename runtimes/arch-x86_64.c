/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot on x86_64 (frame_x86.hpp, macroAssembler_x86.cpp, c1_MacroAssembler_x86.cpp).
 *
 * A method saves rbp behind its return address: push rbp; sub rsp, N; or sub rsp, N first, and then
 * a move. It leaves by add rsp, N; pop rbp; a poll; ret.
 */
#include <elf.h>

#include "runtimes/arch.h"

const uint8_t arch_hotspot_tried[] = {8, 11, 17, 21, 25, 26, 0};
const bool arch_looks_ahead = false;

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R13 = 13, RIP = 16 };

/* The interpreter's frame, in words from rbp. Since 9 it has the method's class, too. */
enum { SLOT_SENDER_SP = -1, SLOT_METHOD = -3, SLOT_BCP_8 = -7, SLOT_BCP = -8 };

static int64_t bcp_slot(const struct hotspot *h)
{
	return h->major > 8 ? SLOT_BCP : SLOT_BCP_8;
}

static int64_t sender_sp_slot(const struct hotspot *h)
{
	return hs_known(h, HS_SENDER_SP_SLOT) ? hs(h, HS_SENDER_SP_SLOT) : SLOT_SENDER_SP;
}

/* How many bytes of a poll stand at code; 0: none. */
static size_t poll_bytes(const uint8_t *code, size_t n)
{
	/* cmp rsp, [r15 + disp8 or disp32]; ja (17 on) */
	if (n >= 10 && code[0] == 0x49 && code[1] == 0x3b && code[2] == 0x67 && code[4] == 0x0f &&
	    code[5] == 0x87)
		return 10;
	if (n >= 13 && code[0] == 0x49 && code[1] == 0x3b && code[2] == 0xa7 && code[7] == 0x0f &&
	    code[8] == 0x87)
		return 13;
	if (n >= 6 && code[0] == 0x0f && code[1] == 0x87) /* its ja alone */
		return 6;
	/* mov r10, [r15 + disp8 or disp32]; test [r10], eax (11) */
	if (n >= 7 && code[0] == 0x4d && code[1] == 0x8b && code[2] == 0x57 && code[4] == 0x41 &&
	    code[5] == 0x85 && code[6] == 0x02)
		return 7;
	if (n >= 10 && code[0] == 0x4d && code[1] == 0x8b && code[2] == 0x97 && code[7] == 0x41 &&
	    code[8] == 0x85 && code[9] == 0x02)
		return 10;
	if (n >= 3 && code[0] == 0x41 && code[1] == 0x85 && code[2] == 0x02)
		return 3;
	/* test eax, [rip + disp32] */
	if (n >= 6 && code[0] == 0x85 && code[1] == 0x05)
		return 6;
	return 0;
}

/* Is the rest of the code a return, perhaps with the poll of a safepoint before it? */
static bool returns(const uint8_t *code, size_t n)
{
	size_t poll = poll_bytes(code, n);

	return n > poll && (code[poll] == 0xc3 || code[poll] == 0xc2);
}

/* The size of an instruction that may come before those that make the frame: a touch of the stack's
 * end (mov [rsp - N], eax), or a nop for patches; 0: neither. */
static size_t filler_bytes(const uint8_t *code, size_t n)
{
	static const struct {
		uint8_t n_opcode, n;
		uint8_t opcode[4];
	} fillers[] = {
		{3, 7, {0x89, 0x84, 0x24}},
		{4, 5, {0x0f, 0x1f, 0x44, 0x00}},
		{3, 7, {0x0f, 0x1f, 0x80}},
		{2, 2, {0x66, 0x90}},
	};

	for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
		if (n >= fillers[i].n && memcmp(code, fillers[i].opcode, fillers[i].n_opcode) == 0)
			return fillers[i].n;
	}
	return 0;
}

/* sub rsp, imm8 or imm32; 0: another instruction. */
static size_t sub_bytes(const uint8_t *code, size_t n)
{
	if (n >= 4 && code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xec)
		return 4;
	return n >= 7 && code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xec ? 7 : 0;
}

/* The shape of the frame after the n bytes of code from the entry on. */
static enum frame_shape prologue_shape(const uint8_t *code, size_t n)
{
	size_t i = 0, step;

	while ((step = filler_bytes(code + i, n - i)) > 0)
		i += step;
	if (n > i && code[i] == 0x55) { /* push rbp */
		i++;
		if (n - i >= 3 && memcmp(code + i, "\x48\x8b\xec", 3) == 0)
			i += 3; /* mov rbp, rsp */
		return sub_bytes(code + i, n - i) ? SHAPE_FULL : SHAPE_PUSHED;
	}
	step = sub_bytes(code + i, n - i);
	if (step == 0)
		return SHAPE_NONE;
	i += step;
	/* mov [rsp + N], rbp */
	return (n - i >= 5 && memcmp(code + i, "\x48\x89\x6c\x24", 4) == 0) ||
			       (n - i >= 8 && memcmp(code + i, "\x48\x89\xac\x24", 4) == 0)
		       ? SHAPE_FULL
		       : SHAPE_NOT_SAVED;
}

enum frame_shape arch_frame_shape(const uint8_t *code, size_t n_before, size_t n, bool complete)
{
	const uint8_t *at = code + n_before;

	if (n > 0 && returns(at, n))
		return SHAPE_NONE;
	/* pop rbp; before it: add rsp, imm. */
	if (n > 1 && at[0] == 0x5d && returns(at + 1, n - 1))
		return SHAPE_PUSHED;
	return complete ? SHAPE_FULL : prologue_shape(code, n_before);
}

/* Instructions cannot be told apart here as easily. */
void arch_look_ahead(struct memory *m, uint64_t at, uint64_t end, struct code_ahead *ret)
{
	(void)m;
	(void)at;
	(void)end;
	*ret = (struct code_ahead){.way = WAY_UNKNOWN};
}

bool arch_is_call(const uint8_t *before, size_t n)
{
	const uint8_t *end = before + n;

	/* call rel32; call reg; call [reg + disp8]; call [reg + disp32], [rip + disp32] */
	return (n >= 5 && end[-5] == 0xe8) ||
	       (n >= 2 && end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0) ||
	       (n >= 3 && end[-3] == 0xff && (end[-2] & 0x38) == 0x10) ||
	       (n >= 6 && end[-6] == 0xff && (end[-5] & 0x38) == 0x10);
}

/* As asm_trampoline.S has them, maybe behind an endbr64. */
struct trampoline {
	uint8_t body[11];
	size_t n;
	struct trampoline_place {
		uint8_t at;
		enum frame_shape shape; /* SHAPE_FULL: no more */
	} places[5];
};

static const struct trampoline trampolines[] = {
	/* sub rsp, 8; call rcx; add rsp, 8; ret */
	{{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
	 11,
	 {{0, SHAPE_NONE}, {4, SHAPE_NOT_SAVED}, {6, SHAPE_NOT_SAVED}, {10, SHAPE_NONE}}},
	/* push rbp; mov rbp, rsp; call rcx; pop rbp; ret: since 3.14 */
	{{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
	 8,
	 {{0, SHAPE_NONE},
	  {1, SHAPE_PUSHED},
	  {4, SHAPE_PUSHED},
	  {6, SHAPE_PUSHED},
	  {7, SHAPE_NONE}}},
};

static const struct trampoline_place *find_place(const struct trampoline *t, const uint8_t *code,
						 size_t n_before, size_t n)
{
	static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa};

	for (size_t i = 0; i < ARRAY_SIZE(t->places) && t->places[i].shape != SHAPE_FULL; i++) {
		const struct trampoline_place *p = &t->places[i];

		if (p->at <= n_before && t->n - p->at <= n &&
		    memcmp(code + n_before - p->at, t->body, t->n) == 0)
			return p;
	}
	return n >= sizeof(mark) + t->n && memcmp(code + n_before, mark, sizeof(mark)) == 0 &&
			       memcmp(code + n_before + sizeof(mark), t->body, t->n) == 0
		       ? &t->places[0]
		       : NULL;
}

bool arch_trampoline_shape(const uint8_t *code, size_t n_before, size_t n, enum frame_shape *ret)
{
	const struct trampoline_place *p = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(trampolines) && !p; i++)
		p = find_place(&trampolines[i], code, n_before, n);
	if (p)
		*ret = p->shape;
	return p;
}

bool arch_interpreted(const struct hotspot *h, const struct runtime_stack *stack, uint64_t fp,
		      struct interpreted *ret)
{
	uint64_t slot = (uint64_t)(sender_sp_slot(h) * 8);

	if (fp % 8 != 0 ||
	    !runtime_stack_u64(stack, fp + (uint64_t)(int64_t)(SLOT_METHOD * 8), &ret->method) ||
	    !runtime_stack_u64(stack, fp + (uint64_t)(bcp_slot(h) * 8), &ret->bcp) ||
	    !runtime_stack_u64(stack, fp + slot, &ret->caller_sp) ||
	    !runtime_stack_u64(stack, fp, &ret->caller_fp) ||
	    !runtime_stack_u64(stack, fp + 8, &ret->caller_pc))
		return false;
	/* Where the caller's stack ended before the arguments were moved. */
	if (ret->caller_sp < fp + 16)
		ret->caller_sp = fp + 16;
	return true;
}

/*
 * rbx is the method, and r13 the caller's sp until rbp is the frame's. The return address is first
 * on top of the stack, then in rax while the code makes room for locals, and then above the saved
 * rbp. The code makes the frame from there downwards; once it has all slots, arch_interpreted()
 * reads it.
 */
bool arch_entering(const struct hotspot *h, const struct runtime_stack *stack,
		   const struct runtime_regs *regs, struct interpreted *ret)
{
	uint64_t sp = regs->sp, fp = regs->r[RBP], top = 0, next = 0;

	*ret = (struct interpreted){
		.method = regs->r[RBX],
		.caller_sp = regs->r[R13],
		.caller_fp = fp,
	};
	(void)(runtime_stack_u64(stack, sp, &top) && runtime_stack_u64(stack, sp + 8, &next));
	if (fp - sp <= (uint64_t)(-bcp_slot(h) * 8)) {
		if (!runtime_stack_u64(stack, fp, &ret->caller_fp) ||
		    !runtime_stack_u64(stack, fp + 8, &ret->caller_pc))
			return false;
		if (fp > sp && !runtime_stack_u64(stack, fp - 8, &ret->caller_sp))
			return false;
		if (ret->caller_sp < fp + 16)
			ret->caller_sp = fp + 16;
	} else if (hs_is_code(h, top)) {
		ret->caller_pc = top;
	} else if (top == fp && hs_is_code(h, next)) {
		ret->caller_pc = next;
	} else {
		ret->caller_pc = regs->r[RAX];
	}
	if (ret->caller_sp <= sp)
		ret->caller_sp = sp + 8;
	return hs_is_code(h, ret->caller_pc);
}

/* Adapters keep the return address on top of the stack. */
uint64_t arch_sender_sp(const struct hotspot *h, const struct runtime_regs *regs)
{
	return 0;
}

uint64_t arch_bcp(const struct runtime_regs *regs)
{
	return regs->r[R13];
}

bool arch_fp_frame(const struct runtime_stack *stack, uint64_t at, struct interpreted *ret)
{
	if (!runtime_stack_u64(stack, at, &ret->caller_fp) ||
	    !runtime_stack_u64(stack, at + 8, &ret->caller_pc))
		return false;
	ret->caller_sp = at + 16;
	return true;
}

bool arch_framed(const struct runtime_stack *stack, const struct runtime_regs *regs, uint32_t words,
		 enum frame_shape shape, struct interpreted *ret)
{
	uint64_t sp = regs->sp, cfa = sp + (uint64_t)words * 8;

	if (shape == SHAPE_NONE || shape == SHAPE_PUSHED)
		cfa = sp + (shape == SHAPE_NONE ? 8 : 16);
	ret->caller_sp = cfa;
	ret->caller_fp = regs->fp;
	if (!runtime_stack_u64(stack, cfa - 8, &ret->caller_pc))
		return false;
	return (shape != SHAPE_FULL && shape != SHAPE_PUSHED) || cfa < sp + 16 ||
	       runtime_stack_u64(stack, cfa - 16, &ret->caller_fp);
}

bool arch_return(const struct runtime_stack *stack, const struct runtime_regs *regs,
		 struct interpreted *ret)
{
	ret->caller_sp = regs->sp + 8;
	ret->caller_fp = regs->fp;
	return runtime_stack_u64(stack, regs->sp, &ret->caller_pc);
}

/* struct user_regs_struct, in words. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret)
{
	static const uint8_t place[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
	uint64_t words[27];

	if (n < sizeof(words))
		return false;
	memcpy(words, prstatus, sizeof(words));
	*ret = (struct runtime_regs){.innermost = true};
	for (size_t i = 0; i < sizeof(place); i++)
		ret->r[i] = words[place[i]];
	ret->pc = ret->r[RIP];
	ret->sp = ret->r[RSP];
	ret->fp = ret->r[RBP];
	return true;
}

/* ---- CPython ---- */

bool arch_thread_number(struct memory *m, uint64_t thread, uint32_t *ret)
{
	enum { GLIBC_TID = 0x2d0, MUSL_TID = 0x30 };
	uint64_t words[3]; /* both point to themselves; glibc a second time */

	if (!thread || thread % 8 || !memory_read(m, thread, words, sizeof(words)) ||
	    words[0] != thread)
		return false;
	return memory_read(m, thread + (words[2] == thread ? GLIBC_TID : MUSL_TID), ret,
			   sizeof(*ret));
}

/* mov rax, [rip + disp32]; ret */
uint64_t arch_returned_variable(struct memory *m, uint64_t function)
{
	static const uint8_t branch_target[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[12], *c = code;
	int32_t distance;

	if (!function || !memory_read(m, function, code, sizeof(code)))
		return 0;
	if (memcmp(c, branch_target, sizeof(branch_target)) == 0)
		c += sizeof(branch_target);
	if (c[0] != 0x48 || c[1] != 0x8b || c[2] != 0x05 || c[7] != 0xc3)
		return 0;
	memcpy(&distance, c + 3, sizeof(distance));
	return function + (uint64_t)(c - code) + 7 + (uint64_t)(int64_t)distance;
}

/* mov r64, [rip + disp32] */
uint64_t arch_loaded_variable(struct memory *m, uint64_t function, size_t i)
{
	uint8_t code[160];
	int32_t distance;

	if (!function || !memory_read(m, function, code, sizeof(code)))
		return 0;
	for (size_t at = 0; at + 7 <= sizeof(code); at++) {
		if ((code[at] & 0xfb) != 0x48 || code[at + 1] != 0x8b ||
		    (code[at + 2] & 0xc7) != 0x05 || i-- > 0)
			continue;
		memcpy(&distance, code + at + 3, sizeof(distance));
		return function + at + 7 + (uint64_t)(int64_t)distance;
	}
	return 0;
}

const uint32_t arch_lock_bytes = 40;

/* jmp rel32; jcc rel32 */
bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	size_t opcode = n - at >= 6 && code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80 ? 2 : 1;
	int32_t distance;

	if (n - at < 6 || (opcode == 1 && code[at] != 0xe9))
		return false;
	memcpy(&distance, code + at + opcode, sizeof(distance));
	*ret = (int64_t)(at + opcode + 4) + distance;
	return true;
}

/* mov r32, [rip + disp32], not the end of one of 64 bits */
bool arch_load(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	int32_t distance;

	if (n - at < 6 || code[at] != 0x8b || (code[at + 1] & 0xc7) != 0x05 ||
	    (at > 0 && (code[at - 1] & 0xf8) == 0x48))
		return false;
	memcpy(&distance, code + at + 2, sizeof(distance));
	*ret = (int64_t)(at + 6) + distance;
	return true;
}

const uint64_t arch_thread_vector = 8;
const struct arch_musl arch_musl = {
	.previous = 16, .next = 24, .number = 48, .pointer = 0, .vector = 8};
const int arch_go_register = 22; /* r14 */
const int arch_go_near = -8 * ARCH_GO_NEAR_WORDS;

enum arch_thread_relocation arch_thread_relocation(uint32_t type)
{
	return type == R_X86_64_TPOFF64	   ? ARCH_THREAD_OFFSET
	       : type == R_X86_64_DTPMOD64 ? ARCH_THREAD_MODULE
	       : type == R_X86_64_TLSDESC  ? ARCH_THREAD_DESCRIPTOR
					   : ARCH_THREAD_NONE;
}

/* They are in front of it. */
bool arch_is_thread_offset(int64_t offset)
{
	return offset < 0 && offset > -(INT64_C(1) << 32);
}

int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value)
{
	return (int64_t)(value - (bytes + align - 1) / align * align);
}

uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes)
{
	return robust_list - 0x2e0;
}
