/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of this room; only they and unit tests include it.
 *
 *	walk.c        the walk and the per-pc cache
 *	continue.c    cut stacks, by the kernel's callchain
 *	step.c        one frame by a full rule: every register, expressions, signal frames
 *	rows.c        compact rows per module, byte budget, eviction
 *	compact.c     one CIE + FDE -> a compact rule, if it is as simple as that
 *	cfi.c         one vetted CIE + FDE through libdw -> a row or a full rule
 *	entry.c       bytes of .eh_frame and .debug_frame -> where a pc's FDE is, a copy of it
 *	vet.c         the check of that copy before libdw may see it
 *	debug-frame.c .debug_frame: bounded inflate
 *	go-table.c    .gopclntab: the ends of Go's stacks, and its frames without CFI
 *	expr.c        DWARF expressions within limits
 *	module.c      ELF headers, bias, build id, the mapped windows
 *	lost-fp.c     the frame pointer, where it was not recorded
 *	guard.c       a mapped file that shrinks
 *	recorded.c    files of recorded samples
 *	explain.c     rows and walks as text
 *	arch-*.c      what only the architecture knows: x86_64, aarch64
 */
#include <elfutils/libdw.h>

#include "unwind/arch.h"
#include "unwind/unwind.h"
#include "util/cursor.h"
#include "util/go-functions.h"

/*
 * The compact form of what CFI says at a pc, enough for nearly every frame: CFA = sp or fp +
 * offset, return address near it (x86_64: always at CFA - 8) or in the link register, the caller's
 * fp still in fp or saved. Everything else is RULE_FULL.
 */
enum rule_kind {
	RULE_NONE, /* an empty cache entry */
	RULE_SP,
	RULE_FP,
	RULE_END,  /* the return address is undefined: the outermost frame */
	RULE_FULL, /* look at the full rule */
	/*
	 * A Go function that switches to another stack somewhere. The rule holds before that point,
	 * and after it if the function did not switch (walk.c).
	 */
	RULE_OTHER_STACK,
	/*
	 * Behind the system call that makes a thread or process: the rule holds for the caller, who
	 * goes on with its stack, and not for the new one (walk.c).
	 */
	RULE_CLONE,
	RULE_SP_TRAP,  /* as RULE_SP, for a call that Go's runtime injected */
	RULE_GUESS_FP, /* no CFI here: try the frame pointer */
	RULE_SIGNAL,   /* in no row: sp points at a signal frame (arch_signal_frame()) */
	RULE_BAD,
};
struct rule {
	uint8_t kind;
	int8_t ra_words;  /* < 0: the return address is at CFA + 8 * this */
	int16_t fp_words; /* the caller's fp is at CFA + 8 * this; 0: it is still in fp */
	int32_t cfa_offset;
};
/*
 * Values of ra_words: the return address is in lr; it follows the saved fp. The second on x86_64,
 * where a step takes it like any other, and fp points there at every call.
 */
enum { RULE_RA_IN_LR = 0, RULE_RA_BEHIND_FP = 1 };

/* Holds for [start, end), relative to the module's base. In a hash of 256-byte pages (rows.c). */
struct row {
	uint32_t start, end;
	uint32_t page, next; /* where a walk met it; the next row of that chain + 1 */
	struct rule rule;
};

/* An operator of a DWARF expression, already decoded by libdw. */
struct expr_op {
	uint8_t atom, reg;
	uint16_t offset; /* in the expression's bytes, for branches */
	int64_t number;
};
enum {
	EXPR_MAX_OPS = 24,   /* of all expressions of one full rule */
	EXPR_MAX_STEPS = 96, /* executed, loops included */
	EXPR_MAX_STACK = 16,
};

enum reg_rule_kind {
	REG_UNDEFINED,
	REG_SAME,
	REG_AT_CFA,	 /* saved at CFA + value */
	REG_IS_CFA,	 /* is CFA + value */
	REG_IN_REG,	 /* is in register `value` */
	REG_AT_REG,	 /* saved at register `reg` + value (signal trampolines) */
	REG_AT_EXPR,	 /* saved where the expression says */
	REG_IS_EXPR,	 /* is what the expression yields */
	REG_UNKNOWN_RULE /* not expressible: using it is BAD_CFI */
};
struct reg_rule {
	uint8_t kind, reg;
	uint8_t op, n_ops; /* expression: ops[op .. op + n_ops) */
	int32_t value;
};
struct full_rule {
	uint32_t module_id, start, end; /* module_id 0: an empty slot */
	bool signal_frame;
	uint8_t n_ops;
	struct reg_rule cfa; /* REG_IS_CFA: cfa.reg + value; REG_AT_REG: loaded from there */
	struct reg_rule regs[UNWIND_N_REGS];
	struct expr_op ops[EXPR_MAX_OPS];
};

/* A mapped part of the file: only what CFI needs, never the whole file. */
struct window {
	const uint8_t *data;
	size_t n;
	uint64_t addr; /* ELF virtual address of data[0]; 0 for .debug_frame */
	void *map;     /* to unmap; NULL: borrowed */
	size_t n_map;
};

struct segment {
	uint64_t vaddr, filesz, memsz, offset;
	bool exec;
};
struct section_place {
	uint64_t addr, offset, n;
	bool relocations; /* SHT_RELA */
};
enum {
	MODULE_MAX_SEGMENTS = 64,
	MODULE_MAX_STUBS = 8,
	MODULE_MAX_BUILD_ID = 64,
	GO_MAX_PLACES = 6,
};
/* A section of code made by the linker, with frames of its own kind: .plt*, .init, .fini. */
struct stub_range {
	uint32_t start, end;
	uint32_t n_bytes;
	enum stub_kind kind;
	const uint8_t *bytes; /* private copy, owned */
};

/* Where an FDE is. A scan makes an index of these if the file has no table. */
struct fde_ref {
	uint32_t start; /* module-relative */
	uint32_t offset;
};
struct cfi_section {
	struct window data;
	bool eh;	      /* .eh_frame, not .debug_frame */
	bool broken;	      /* damaged: do not try again */
	const uint8_t *table; /* .eh_frame_hdr's sorted (sdata4, sdata4) pairs; NULL: use index */
	uint32_t n_table;
	uint64_t table_addr;   /* what the pairs are relative to */
	struct fde_ref *index; /* sorted; NULL: not made yet */
	uint64_t made_at;      /* number of the walk that last made index or data; 0: never */
	uint32_t n_index, n_index_reserved;
};

struct unwind_module {
	struct unwinder *u;
	struct unwind_module *prev, *next; /* the unwinder's list */
	const void *owner;		   /* the caller's, for its watch */
	uint32_t id;			   /* key of the per-pc cache; never 0 */
	uint64_t last_used;		   /* walk number; beside id, which each frame loads */
	char *name;
	uint64_t base;	    /* lowest PT_LOAD address; rows are relative to it */
	uint32_t span;	    /* bytes from base to the end of the last PT_LOAD */
	uint64_t entry;	    /* e_entry */
	uint32_t sigreturn; /* the signal trampoline (arch.h), relative to base; 0: none known */
	struct segment segments[MODULE_MAX_SEGMENTS];
	uint32_t n_segments;
	struct stub_range stubs[MODULE_MAX_STUBS];
	uint32_t n_stubs;
	uint8_t build_id[MODULE_MAX_BUILD_ID];
	uint8_t n_build_id;
	bool broken; /* the file shrank under its mapping */

	struct window hdr; /* .eh_frame_hdr */
	struct cfi_section eh_frame;
	struct window debug_raw;	/* .debug_frame as it is in the file */
	uint8_t debug_compression;	/* enum debug_compression */
	struct cfi_section debug_frame; /* inflated on first need */
	struct window text; /* the first executable segment, for lost-fp.c; else without data */

	struct {
		struct window table; /* .gopclntab */
		bool usable;	     /* we know where the code begins */
		struct go_functions functions;
		uint64_t section_text;
		struct section_place places[GO_MAX_PLACES]; /* where moduledata may be */
		bool marked; /* linked by Go, whatever its sections are called */
		uint32_t n_places;
	} go;

	/* rows.c */
	struct row *rows;
	uint32_t n_rows, cap_rows;
	uint32_t *heads; /* page -> first row + 1; cap_rows of them */
};

/* The copy of a stack. */
struct stack_copy {
	const uint8_t *bytes;
	uint64_t start, n; /* runtime address of bytes[0]; how many */
	uint64_t *missing; /* set to the address of the last failed read; NULL: not wanted */
};
struct cache_entry {
	uint64_t key;
	struct rule rule;
};

/* What a walk reports about each frame before its step, to a trace function (explain.c). */
struct walk_step {
	size_t n; /* which frame; 0 a second time: the walk restarted with full rules */
	uint64_t address;
	const struct unwind_mapping *mapping;
	struct rule rule;
	const struct full_rule *full; /* of RULE_FULL */
	const struct unwind_regs *regs;
	const struct stack_copy *stack;
};

/* A walk that ran out of stack bytes: the registers of its first and its last frame. */
struct unwind_cut {
	struct unwind_regs first, last;
	struct stack_copy stack;
	bool called; /* the last frame was calling, not interrupted */
};

struct unwinder {
	void (*trace)(void *ctx, const struct walk_step *step); /* NULL: not wanted */
	void *trace_ctx;
	unwind_foreign_fn foreign; /* NULL: none */
	void *foreign_ctx;
	unwind_reading_fn reading; /* NULL: not wanted */
	void *reading_ctx;
	struct unwind_limits limits;
	struct unwind_stats stats;
	struct cache_entry *cache;
	unsigned int cache_shift; /* 64 - log2(entries) */
	struct full_rule *full;	  /* direct-mapped, FULL_CACHE_ENTRIES */
	struct unwind_module *modules;
	uint32_t last_id;
	/* cfi.c: the one image that libdw ever sees, rewritten for each entry. */
	uint8_t *image;
	Elf *elf;
	struct cfi_entry *entry; /* scratch */
	uint64_t work;		 /* bytes of CFI run in this walk */
	struct unwind_cut cut;	 /* of the last walk that was truncated */
};
enum { FULL_CACHE_ENTRIES = 256 };

/*
 * No file may make a walk long: one walk runs at most so much CFI (a cold walk of a hundred frames
 * runs 20 KiB), and an evicted index or inflated section is not made again for a while. A refusal
 * is BAD_CFI for this walk only.
 */
enum {
	MAX_WORK_BYTES = 256 * 1024,
	REMAKE_WALKS = 5000,
};
static inline bool work_exhausted(const struct unwinder *u)
{
	return u->work > MAX_WORK_BYTES;
}
/* May an index or an inflated section be made now? If not, the walk may run no more CFI. */
static inline bool may_make(struct unwinder *u, struct cfi_section *s)
{
	if (s->made_at && u->stats.walks + 1 - s->made_at < REMAKE_WALKS) {
		u->work = UINT64_MAX / 2;
		return false;
	}
	s->made_at = u->stats.walks + 1;
	return true;
}

/* walk.c: the compact rule at an address in a mapping. */
struct rule walk_rule(struct unwinder *u, const struct unwind_mapping *mapping, uint64_t addr);
/* Empties the caches in front of the rows (the numbers of modules have changed). */
static inline void unwinder_forget(struct unwinder *u)
{
	memset(u->cache, 0, u->limits.cache_entries * sizeof(*u->cache));
	memset(u->full, 0, FULL_CACHE_ENTRIES * sizeof(*u->full));
}
/* module.c: takes m out of the list of an unwinder that is freed; returns the rest of the list. */
struct unwind_module *unwind_module_orphan(struct unwind_module *m);

/*
 * entry.c makes a private copy of one CIE + FDE. vet.c checks it: every instruction is known and
 * within bounds, registers and remembered states are limited, expressions have known operators
 * only.
 */
enum {
	ENTRY_MAX_CIE_BYTES = 1024,
	ENTRY_MAX_FDE_BYTES = 32768, /* the largest FDEs of LLVM and V8 are under 8 KiB */
	ENTRY_MAX_REG = 127,	     /* x86_64 numbers end at 125 */
	ENTRY_MAX_REMEMBERED = 64,
};
struct cfi_entry {
	uint64_t start, end;	     /* ELF virtual addresses */
	uint64_t row_start, row_end; /* of the row around the pc that was asked for (vet.c) */
	uint64_t code_align;
	int64_t data_align;
	bool signal_frame;
	bool absolute; /* the FDE's addresses were plain 8-byte numbers */
	uint32_t n_cie_code, n_fde_code;
	uint8_t cie_code[ENTRY_MAX_CIE_BYTES], fde_code[ENTRY_MAX_FDE_BYTES];
};
/*
 * 0: *ret is filled, not vetted yet. -ENOENT: no FDE covers vaddr; [*gap_start, *gap_end) is
 * narrowed to the gap around it. -EBADMSG: damaged or beyond the limits. -EIO: the file shrank
 * (m->broken).
 */
int entry_find(struct unwind_module *m, struct cfi_section *s, uint64_t vaddr,
	       struct cfi_entry *ret, uint64_t *gap_start, uint64_t *gap_end);

/* Finds out whether .eh_frame_hdr's table can be used. */
void entry_use_header(struct unwind_module *m);
/* Checks an entry before libdw sees it: 0 or -EBADMSG. Sets the range of the row around pc. */
int entry_vet(struct cfi_entry *e, uint64_t pc);
/*
 * compact.c: the rule at pc, which the entry must cover, and its range. false: too complex or
 * damaged; libdw's answer about the vetted entry decides.
 */
bool compact_compile(const struct cfi_entry *e, uint64_t pc, struct rule *ret, uint64_t *ret_start,
		     uint64_t *ret_end);
/* Bytes pushed before the function was entered, which its CFI ignores; 0: none. */
int32_t compact_pushed_bytes(const struct cfi_entry *e);
/* Sets where the return address is in a rule that has its fp_words. false: too complex. */
bool compact_return_address(const struct reg_rule *pc, struct rule *rule);
bool leb_read_u(struct cursor *c, uint64_t *ret);
bool leb_read_s(struct cursor *c, int64_t *ret);

/*
 * lost-fp.c: where the frame pointer of the function at vaddr can be: so many bytes above its sp.
 * innermost: it may call nothing there. false: nothing is known of it.
 */
struct lost_fp {
	uint64_t function; /* the start of its code, an ELF virtual address */
	uint32_t above_sp[4];
	size_t n;
};
bool lost_fp_places(struct unwind_module *m, uint64_t vaddr, bool innermost, struct lost_fp *ret);
/*
 * Is there a call before this return address that can be a call of that function? function 0: of
 * one of another module.
 */
bool lost_fp_calls(struct unwind_module *m, uint64_t address, uint64_t function);

/* debug-frame.c: makes m->debug_frame usable; 0, -ENOENT: there is none, or -errno. */
enum debug_compression { DEBUG_PLAIN, DEBUG_ZLIB_CHDR, DEBUG_ZLIB_GNU };
int debug_frame_load(struct unwind_module *m);

/*
 * go-table.c: called after the file's headers are read. True: it needs moduledata; call
 * go_table_use_module() with each section that may hold it, until one does.
 */
bool go_table_init(struct unwind_module *m);
/* Where the table begins in a section with other contents; the section's end: not there. */
size_t go_table_locate(struct unwind_module *m, const struct window *section);
bool go_table_use_module(struct unwind_module *m, const struct window *section, bool relocations);
/* A rule from Go's table, for the addresses [start, end). */
struct go_rule {
	uint64_t start, end;
	struct rule rule;
};
/* 0; -ENOENT: the table has no rule for vaddr; -EIO: the file shrank. */
int go_table_find(struct unwind_module *m, uint64_t vaddr, struct go_rule *ret);

/* cfi.c */
int cfi_init(struct unwinder *u);
void cfi_deinit(struct unwinder *u);
/* Makes the row at vaddr. There always is one: damaged or missing CFI has its own kinds of rule. */
void cfi_compile_row(struct unwind_module *m, uint64_t vaddr, struct row *ret);
/* Makes the full rule at vaddr. 0; -ENOENT: no CFI covers it; -EBADMSG: damaged. */
int cfi_compile_full(struct unwind_module *m, uint64_t vaddr, struct full_rule *ret);

/* Bytes that a row of a module counts for. */
#define ROW_COST (sizeof(struct row) + sizeof(uint32_t))

/* rows.c */
const struct row *rows_find(const struct unwind_module *m, uint32_t rel);
/* Keeps a row, unless there is no memory. rel: where the walk met it. */
void rows_add(struct unwind_module *m, uint32_t rel, const struct row *row);

/* budget.c */
/* Frees all that counts against max_row_bytes; or only the table of rows. */
void rows_drop(struct unwind_module *m);
void rows_drop_table(struct unwind_module *m);
/* Reserves bytes against max_row_bytes; evicts other modules' rows. false: not possible. */
bool rows_reserve(struct unwind_module *m, uint64_t bytes);
void rows_release(struct unwind_module *m, uint64_t bytes);

/* step.c / walk.c */
static inline bool stack_read(const struct stack_copy *s, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - s->start;

	if (at >= s->n || s->n - at < sizeof(*ret)) {
		if (s->missing)
			*s->missing = addr;
		return false;
	}
	memcpy(ret, s->bytes + at, sizeof(*ret));
	return true;
}

/*
 * The outcome of a step. STEP_NEEDS_REGS: it needs a register that the compact walk does not track,
 * so walk again with full rules. STEP_LOST_SP: pc is the caller's, and nothing else is known.
 */
enum step {
	STEP_OK,
	STEP_END,
	STEP_TRUNCATED,
	STEP_BAD,
	STEP_NO_PROGRESS,
	STEP_NEEDS_REGS,
	STEP_LOST_SP
};

/* Evaluates ops over regs; cfa: pushed first, NULL: nothing. STEP_OK and *ret; or why it is not
 * possible. */
enum step expr_run(const struct expr_op *ops, unsigned int n, const struct unwind_regs *regs,
		   const struct stack_copy *stack, const uint64_t *cfa, uint64_t *ret);
/* Replaces regs with the caller's. innermost: the frame was interrupted, not calling. */
enum step step_full(const struct full_rule *f, const struct stack_copy *stack, bool innermost,
		    struct unwind_regs *regs);

/*
 * guard.c: runs fn(arg), which reads bytes of a mapped file that somebody else may truncate.
 * Returns what fn returns, or -EIO if the file had shrunk. fn must hold nothing that a jump out of
 * it would leak, and must not call code of other libraries.
 */
int guard_install(void);
int guard_run(int (*fn)(void *arg), void *arg);
