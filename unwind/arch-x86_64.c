/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86_64: psABI register numbers for perf's, and code that linkers make without CFI. The perf
 * numbers are kernel ABI (asm/perf_regs.h): ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8
 * .. r15.
 */
#include "unwind/internal.h"

#define N_PERF_REGS 24
#define NO_REG	    0xff

static const uint8_t dwarf_of_perf[N_PERF_REGS] = {
	0,	3,	2,	1,	4, 5, 6,  7,  16, NO_REG, NO_REG, NO_REG,
	NO_REG, NO_REG, NO_REG, NO_REG, 8, 9, 10, 11, 12, 13,	  14,	  15,
};

void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < 64; i++) {
		if (!(mask & UINT64_C(1) << i))
			continue;
		if (i < N_PERF_REGS && dwarf_of_perf[i] != NO_REG) {
			ret->r[dwarf_of_perf[i]] = *values;
			ret->valid |= UNWIND_REG_BIT(dwarf_of_perf[i]);
		}
		values++;
	}
}

static bool starts_with(const uint8_t *code, size_t n, size_t at, const char *bytes, size_t n_bytes)
{
	return at <= n && n - at >= n_bytes && memcmp(code + at, bytes, n_bytes) == 0;
}
#define STARTS(at, bytes) starts_with(code, n, (at), (bytes), sizeof(bytes) - 1)

#define ENDBR64	  "\xf3\x0f\x1e\xfa"
#define JMP_MEM	  "\xff\x25"	     /* jmp *disp32(%rip), 6 bytes */
#define PUSH_MEM  "\xff\x35"	     /* push disp32(%rip), 6 bytes */
#define PUSH_IMM  "\x68"	     /* push imm32, 5 bytes */
#define SUB_SP_8  "\x48\x83\xec\x08" /* sub $8,%rsp */
#define ADD_SP_8  "\x48\x83\xc4\x08"
#define PLT_ENTRY 16

/* The trampoline is in the C library. glibc's has CFI; for others see arch_signal_frame(). */
const uint8_t *const arch_sigreturn_code = NULL;
const size_t arch_sigreturn_bytes = 0;

void arch_sigreturn_rule(struct full_rule *ret)
{
	(void)ret;
}

/*
 * struct ucontext (asm-generic/ucontext.h, asm/sigcontext.h): three flag bits, a link that is
 * always 0, the signal stack, then struct sigcontext_64. In 64-bit programs its cs, gs and fs have
 * one possible value each; ss has one too, or is 0 before Linux 4.6.
 */
bool arch_signal_frame(const struct stack_copy *stack, uint64_t sp, struct unwind_regs *ret)
{
	enum { LINK = 8, CONTEXT = 40, FLAGS = CONTEXT + 17 * 8, SEGMENTS = FLAGS + 8 };
	enum { KNOWN_FLAGS = 7, ALWAYS_SET = 2, USER_CS = 0x33, USER_SS = 0x2b };
	/* DWARF register numbers in the order of struct sigcontext_64. */
	static const uint8_t order[UNWIND_N_REGS] = {8, 9, 10, 11, 12, 13, 14, 15, 5,
						     4, 6, 3,  1,  0,  2,  7,  16};
	const struct stack_copy copy = {stack->bytes, stack->start, stack->n, NULL};
	uint64_t uc_flags, link, flags, segments;

	if (!stack_read(&copy, sp, &uc_flags) || !stack_read(&copy, sp + LINK, &link) ||
	    !stack_read(&copy, sp + FLAGS, &flags) || !stack_read(&copy, sp + SEGMENTS, &segments))
		return false;
	if (uc_flags > KNOWN_FLAGS || link != 0 || !(flags & ALWAYS_SET) || flags > UINT32_MAX ||
	    (segments & UINT64_C(0xffffffffffff)) != USER_CS ||
	    (segments >> 48 != USER_SS && segments >> 48 != 0))
		return false;
	*ret = (struct unwind_regs){.valid = UNWIND_ALL_REGS};
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		(void)stack_read(&copy, sp + CONTEXT + 8 * i, &ret->r[order[i]]);
	return true;
}

bool arch_cfa_op_is_nop(uint8_t op)
{
	(void)op;
	return false;
}

/* sub $imm8,%rsp and sub $imm32,%rsp. */
size_t arch_frame_sizes(const uint8_t *code, size_t n, uint32_t *ret, size_t max)
{
	size_t found = 0, known;
	uint32_t size;

	for (size_t at = 0; at < n; at++) {
		if (STARTS(at, "\x48\x83\xec") && at + 3 < n && code[at + 3] < 0x80)
			size = code[at + 3];
		else if (STARTS(at, "\x48\x81\xec") && n - at >= 7)
			memcpy(&size, code + at + 3, sizeof(size));
		else
			continue;
		if (size > INT32_MAX / 2 || size % 8 != 0)
			continue;
		for (known = 0; known < found && ret[known] != size; known++)
			;
		if (known < found)
			continue;
		if (found == max)
			return max + 1;
		ret[found++] = size;
	}
	return found;
}

/* call rel32, or call *operand (Intel SDM, opcode FF /2) by its length. */
enum arch_call arch_call_before(const uint8_t *code, uint64_t address, uint64_t *ret_target)
{
	enum { CALL = 0xe8, GROUP = 0xff, DIGIT = 2 << 3 };
	/* Bytes of an operand by the upper bits of its first one: memory, +8 bits, +32 bits. */
	static const uint8_t extra[] = {0, 1, 4};
	const uint8_t *end = code + ARCH_CALL_BYTES;
	int32_t distance;

	if (end[-5] == CALL) {
		memcpy(&distance, end - 4, sizeof(distance));
		*ret_target = address + (uint64_t)(int64_t)distance;
		return ARCH_CALL_DIRECT;
	}
	for (size_t n = 2; n <= ARCH_CALL_BYTES; n++) {
		uint8_t mode = end[-(ptrdiff_t)n + 1];
		size_t bytes = 2;

		if (end[-(ptrdiff_t)n] != GROUP || (mode & 0x38) != DIGIT)
			continue;
		if (mode >> 6 < 3)
			bytes += extra[mode >> 6] + ((mode & 7) == 4);
		if (mode >> 6 == 0 && (mode & 7) == 5)
			bytes += 4;
		if (bytes == n)
			return ARCH_CALL_INDIRECT;
	}
	return ARCH_NO_CALL;
}

/*
 * A lazy entry is `jmp *slot; push index; jmp first`, or `endbr64; push index; jmp first`, and the
 * first entry is `push module; jmp *resolver`; the return address moves up with each push.
 */
static int32_t plt_cfa_offset(const uint8_t *code, size_t n, size_t at)
{
	size_t entry = at - at % PLT_ENTRY, in = at % PLT_ENTRY;

	if (STARTS(entry, PUSH_MEM))
		return in >= 6 ? 24 : 16;
	if (STARTS(entry, JMP_MEM) && STARTS(entry + 6, PUSH_IMM))
		return in >= 11 ? 16 : 8;
	if (STARTS(entry, ENDBR64 PUSH_IMM))
		return in >= 9 ? 16 : 8;
	return 8;
}

/* _init and _fini of crti.o: sub $8,%rsp; ...; add $8,%rsp; ret. */
static int32_t init_cfa_offset(const uint8_t *code, size_t n, size_t at)
{
	size_t body = STARTS(0, ENDBR64) ? 4 : 0, end;

	if (!STARTS(body, SUB_SP_8))
		return 0;
	body += 4;
	for (end = body; end + 4 <= n && !STARTS(end, ADD_SP_8); end++)
		;
	return at >= body && at < end + 4 ? 16 : 8;
}

bool arch_stub_rule(enum stub_kind kind, const uint8_t *code, size_t n, size_t at, struct rule *ret)
{
	int32_t offset =
		kind == STUB_PLT ? plt_cfa_offset(code, n, at) : init_cfa_offset(code, n, at);

	if (offset > 0)
		*ret = (struct rule){
			.kind = RULE_SP, .ra_words = ARCH_RA_WORDS, .cfa_offset = offset};
	return offset > 0;
}
