/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/corpus/judge.h"

#include "unwind/internal.h"

const char *const verdict_names[VERDICT_N] = {
	[VERDICT_IDENTICAL] = "identical",
	[VERDICT_LOST_CALLERS] = "libdw lost callers",
	[VERDICT_ENDS_EARLY] = "libdw ends early, then code without a file",
	[VERDICT_NO_MAPPING] = "libdw: frame in no mapping",
	[VERDICT_NO_CALL] = "libdw: frame behind no call",
	[VERDICT_PAST_END] = "libdw: past the outermost function",
	[VERDICT_OTHER_STACK] = "libdw: on in a stack that was left",
	[VERDICT_CAUTIOUS] = "ended where the stack may be left",
	[VERDICT_TRAMPOLINE] = "libdw: out of a trampoline by lr",
	[VERDICT_STALE_LR] = "libdw: stale lr for the caller",
	[VERDICT_TWICE] = "libdw: a return address twice",
	[VERDICT_CIRCLES] = "libdw: in circles",
	[VERDICT_UNDECIDED] = "undecided",
};

/* ---- What there is at an address ---- */

static bool is_mapped(const struct judge *j, uint64_t address)
{
	struct unwind_mapping m;

	return j->find(j->ctx, address, &m);
}

/* What the file says of the function there; RULE_NONE: no file. */
static enum rule_kind kind_at(const struct judge *j, uint64_t address)
{
	struct unwind_mapping m;
	struct row row;

	if (!j->find(j->ctx, address, &m) || !m.module ||
	    address - m.bias - m.module->base >= m.module->span)
		return RULE_NONE;
	m.module->u->work = 0;
	cfi_compile_row(m.module, address - m.bias, &row);
	return (enum rule_kind)row.rule.kind;
}

#ifdef UNWIND_AARCH64

enum {
	INSN_RET = 0xd65f03c0,
	MAX_INSNS = 64, /* from a function's begin to where it was stopped */
};

static bool read_insn(const struct judge *j, uint64_t address, uint32_t *ret)
{
	return j->read(j->ctx, address, (uint8_t *)ret, sizeof(*ret));
}

/* Does the instruction end with the byte `last`, and is it a call? */
static bool is_call(const struct judge *j, uint64_t last)
{
	uint32_t insn;

	/* bl; blr, and blraa, blrab and their forms without a modifier */
	return last % 4 == 3 && read_insn(j, last - 3, &insn) &&
	       ((insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
		(insn & 0xfefff800) == 0xd63f0800);
}

/* mov x8, #139; svc #0; address: of either */
static bool is_sigreturn(const struct judge *j, uint64_t address)
{
	uint32_t insns[3];

	return j->read(j->ctx, address - 4, (uint8_t *)insns, sizeof(insns)) &&
	       ((insns[1] == 0xd2801168 && insns[2] == 0xd4000001) ||
		(insns[0] == 0xd2801168 && insns[1] == 0xd4000001));
}

/* frames[i] twice: one direct call instruction would have called frames[i - 1] and itself, which
 * are in different modules. */
static bool calls_other(const struct judge *j, const uint64_t *frames, size_t i)
{
	struct unwind_mapping a, b;
	uint32_t insn;

	return i > 0 && frames[i] == frames[i + 1] && read_insn(j, frames[i] - 3, &insn) &&
	       (insn & 0xfc000000) == 0x94000000 && j->find(j->ctx, frames[i], &a) &&
	       j->find(j->ctx, frames[i - 1], &b) && a.module != b.module;
}

/* Has the function that was stopped at pc put lr beside fp into its frame, and left them there? */
static bool has_saved_lr(const struct judge *j, uint64_t pc)
{
	uint32_t insn;

	for (unsigned int i = 1; i <= MAX_INSNS; i++) {
		if (!read_insn(j, pc - 4 * i, &insn) || insn == INSN_RET)
			return false;
		/* ldp x29, x30, [sp], #n: taken back */
		if ((insn & 0xffc07fff) == 0xa8c07bfd)
			return false;
		/* stp x29, x30, [sp, #-n]! */
		if ((insn & 0xffc07fff) == 0xa9807bfd)
			return true;
	}
	return false;
}

#else

/* Are these n bytes call *r/m (ff /2), with and without displacement and SIB byte? */
static bool is_indirect_call(const uint8_t *code, size_t n)
{
	uint8_t mod = code[1] >> 6, rm = code[1] & 7;
	size_t want = 2;

	if (code[0] != 0xff || (code[1] & 0x38) != 0x10)
		return false;
	if (mod != 3 && rm == 4)
		want++;
	if (mod == 1)
		want++;
	if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && n > 2 && (code[2] & 7) == 5))))
		want += 4;
	return n == want;
}

static bool is_call(const struct judge *j, uint64_t last)
{
	uint8_t code[7], *end = code + sizeof(code);

	if (!j->read(j->ctx, last + 1 - sizeof(code), code, sizeof(code)))
		return false;
	if (end[-5] == 0xe8) /* call rel32 */
		return true;
	for (size_t n = 2; n <= sizeof(code); n++) {
		if (is_indirect_call(end - n, n))
			return true;
	}
	return false;
}

/* mov $15,%rax; syscall */
static bool is_sigreturn(const struct judge *j, uint64_t address)
{
	static const uint8_t wanted[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[sizeof(wanted)];

	return j->read(j->ctx, address, code, sizeof(code)) &&
	       memcmp(code, wanted, sizeof(code)) == 0;
}

static bool has_saved_lr(const struct judge *j, uint64_t pc)
{
	(void)j;
	(void)pc;
	return false;
}

static bool calls_other(const struct judge *j, const uint64_t *frames, size_t i)
{
	(void)j;
	(void)frames;
	(void)i;
	return false;
}

#endif

/* ---- Ours ---- */

/* Was this very address saved, not one behind a call? */
static bool is_on_stack(const struct judge *j, uint64_t address)
{
	for (size_t at = 0; at + sizeof(address) <= j->n_stack; at += 8) {
		if (memcmp(j->stack + at, &address, sizeof(address)) == 0)
			return true;
	}
	return false;
}

/*
 * Can the frame be the caller of the one before it? It lies behind a call. Exceptions: the
 * trampoline that signal handlers return to, what was interrupted (by a signal, or a call put in
 * there), and the outermost function, which is started in other ways.
 */
static bool is_caller(const struct judge *j, const uint64_t *frames, size_t n, size_t i)
{
	if (i == 0 || is_call(j, frames[i]) || is_sigreturn(j, frames[i]))
		return true;
	if (is_sigreturn(j, frames[i - 1]))
		return is_on_stack(j, frames[i]);
	/* CFI does not know of calls that were put in, and takes what it finds for a return
	 * address. */
	if (kind_at(j, frames[i - 1]) == RULE_SP_TRAP)
		return is_on_stack(j, frames[i]) || is_on_stack(j, frames[i] + 1);
	return i + 1 == n && kind_at(j, frames[i]) == RULE_END &&
	       (is_on_stack(j, frames[i] + 1) ||
		(ARCH_HAS_LR && j->regs->r[ARCH_REG_LR] == frames[i] + 1));
}

/* Are all our frames from `from` on callers, up to the entry or to where the copy ends? */
static bool is_proven(const struct judge *j, const uint64_t *ours, size_t n, size_t from,
		      enum unwind_outcome outcome)
{
	if (outcome != UNWIND_COMPLETE && outcome != UNWIND_TRUNCATED)
		return false;
	for (size_t i = from; i < n; i++) {
		if (!is_caller(j, ours, n, i))
			return false;
	}
	return true;
}

/* Does the file say that ours has to end there? both: libdw has this frame, too. */
static bool ends_by_file(const struct judge *j, uint64_t last, bool both,
			 enum unwind_outcome outcome)
{
	enum rule_kind kind = kind_at(j, last);

	return (kind == RULE_END && outcome == UNWIND_COMPLETE && both) ||
	       (kind == RULE_OTHER_STACK && outcome == UNWIND_TRUNCATED);
}

/* libdw's frames, less those that are behind no call, are among ours, in order; ours alone are
 * proven. */
static bool has_lost_callers(const struct judge *j, const uint64_t *ours, size_t n,
			     enum unwind_outcome outcome, const uint64_t *theirs, size_t n_theirs)
{
	size_t at = 0;
	bool both = false;

	if (outcome != UNWIND_COMPLETE && outcome != UNWIND_TRUNCATED && outcome != UNWIND_NO_CFI)
		return false;
	for (size_t i = 0; i < n; i++) {
		while (i > 0 && at < n_theirs && theirs[at] != ours[i] && !is_call(j, theirs[at]))
			at++;
		both = at < n_theirs && ours[i] == theirs[at];
		if (both)
			at++;
		else if (!is_caller(j, ours, n, i))
			return false;
	}
	while (at < n_theirs && !is_call(j, theirs[at]))
		at++;
	return at == n_theirs || ends_by_file(j, ours[n - 1], both, outcome);
}

static bool has_no_file(const struct judge *j, uint64_t address)
{
	struct unwind_mapping m;

	return j->find(j->ctx, address, &m) && !m.module;
}

/* libdw's end is followed by a caller in a file; what is behind that may be without one. */
static bool ends_early(const struct judge *j, const uint64_t *ours, size_t n,
		       enum unwind_outcome outcome, size_t n_theirs)
{
	if (n_theirs >= n || n_theirs == 0 || !is_caller(j, ours, n, n_theirs) ||
	    (outcome != UNWIND_COMPLETE && outcome != UNWIND_TRUNCATED))
		return false;
	for (size_t i = n_theirs; i < n; i++) {
		if (!has_no_file(j, ours[i]) && !is_caller(j, ours, n, i))
			return false;
	}
	return true;
}

/* ---- libdw's ---- */

static bool is_circle(const struct judge *j, const uint64_t *theirs, size_t n, size_t from)
{
	for (size_t i = from; i < n; i++) {
		if (theirs[i] != theirs[from])
			return false;
	}
	return n == j->max_theirs;
}

/* Why theirs[same] is not the caller of the frame before, which both have. */
static enum verdict what_is_wrong(const struct judge *j, const uint64_t *theirs, size_t n,
				  size_t same)
{
	uint64_t last = theirs[same - 1], next = theirs[same];
	enum rule_kind kind = kind_at(j, last);

	if (!is_mapped(j, last) || !is_mapped(j, next))
		return VERDICT_NO_MAPPING;
	if (kind == RULE_END)
		return VERDICT_PAST_END;
	if (is_circle(j, theirs, n, same))
		return VERDICT_CIRCLES;
	if (!is_call(j, next) && !is_sigreturn(j, next) && !is_sigreturn(j, last) &&
	    kind != RULE_SP_TRAP && kind_at(j, next) != RULE_END)
		return VERDICT_NO_CALL;
	if (kind == RULE_OTHER_STACK && !is_mapped(j, theirs[n - 1]))
		return VERDICT_OTHER_STACK;
	return calls_other(j, theirs, same - 1) ? VERDICT_TWICE : VERDICT_UNDECIDED;
}

/* The same where ours goes on with a frame that is one: libdw may have taken lr instead. */
static enum verdict what_is_wrong_of_lr(const struct judge *j, const uint64_t *theirs, size_t same)
{
	uint64_t last = theirs[same - 1], next = theirs[same];

	if (!ARCH_HAS_LR || next != (j->regs->r[ARCH_REG_LR] & ARCH_CODE_MASK) - 1)
		return VERDICT_UNDECIDED;
	/* Its address less one where libdw has not known it. */
	if (is_sigreturn(j, last) || is_sigreturn(j, last + 1))
		return VERDICT_TRAMPOLINE;
	if (same > 2 || !has_saved_lr(j, j->regs->r[ARCH_REG_PC]))
		return VERDICT_UNDECIDED;
	if (same == 1)
		return VERDICT_STALE_LR;
	return next == last ? VERDICT_TWICE : VERDICT_UNDECIDED;
}

enum verdict judge_walks(const struct judge *j, const uint64_t *ours, size_t n_ours,
			 enum unwind_outcome outcome, const uint64_t *theirs, size_t n_theirs)
{
	enum verdict wrong = VERDICT_UNDECIDED;
	size_t same = 0;

	while (same < n_ours && same < n_theirs && ours[same] == theirs[same])
		same++;
	if (same == n_ours && same == n_theirs)
		return VERDICT_IDENTICAL;
	/* Where ours ends, what libdw has more must be wrong. */
	if (same < n_ours && has_lost_callers(j, ours, n_ours, outcome, theirs, n_theirs))
		return VERDICT_LOST_CALLERS;
	if (same == n_theirs && ends_early(j, ours, n_ours, outcome, n_theirs))
		return VERDICT_ENDS_EARLY;
	if (same > 0 && same < n_theirs)
		wrong = what_is_wrong(j, theirs, n_theirs, same);
	if (same == n_ours && same > 0 && wrong == VERDICT_UNDECIDED &&
	    outcome == UNWIND_TRUNCATED && ends_by_file(j, ours[n_ours - 1], true, outcome))
		return VERDICT_CAUTIOUS;
	if (same == n_ours)
		return wrong;
	if (!is_proven(j, ours, n_ours, same, outcome))
		return VERDICT_UNDECIDED;
	if (wrong == VERDICT_UNDECIDED && same > 0 && same < n_theirs)
		wrong = what_is_wrong_of_lr(j, theirs, same);
	return wrong;
}
