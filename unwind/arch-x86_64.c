/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86_64: psABI register numbers against perf's, and the code that linkers make without CFI.
 * The perf numbers are the kernel's ABI (asm/perf_regs.h): ax bx cx dx si di bp sp ip flags cs ss
 * ds es fs gs r8 .. r15.
 */
#include "unwind/internal.h"

#define N_PERF_REGS 24
#define NO_REG	    0xff

static const uint8_t dwarf_of_perf[N_PERF_REGS] = {
	0,	3,	2,	1,	4, 5, 6,  7,  16, NO_REG, NO_REG, NO_REG,
	NO_REG, NO_REG, NO_REG, NO_REG, 8, 9, 10, 11, 12, 13,	  14,	  15,
};

const uint64_t unwind_perf_regs_mask = 0xff01ff;

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

/* Kernels give it CFI. */
const uint8_t *const arch_sigreturn_code = NULL;
const size_t arch_sigreturn_bytes = 0;

void arch_sigreturn_rule(struct full_rule *ret)
{
	(void)ret;
}

bool arch_cfa_op_is_nop(uint8_t op)
{
	(void)op;
	return false;
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
