/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Offline stack walking: registers + a copy of the stack + call-frame information -> frames.
 *
 * CFI (.eh_frame, .debug_frame) is compiled into compact rows (by libdw where it is complex) when a
 * walk first meets a pc in their range. The rows belong to a module (file) and are shared by all
 * processes; a direct-mapped cache keyed by (module, module-relative pc) is in front of them. The
 * unwinder knows no processes and no maps (the caller's find function does), opens no file, and
 * never reads the memory of a live process.
 *
 * No call allocates once the modules it walks through are warm. Not thread-safe: use one unwinder
 * per thread. Module files and stack copies may be hostile; the worst they cause is an outcome.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct unwinder;
struct unwind_module;

/* Why a walk ended. Only UNWIND_COMPLETE reached the outermost frame. */
enum unwind_outcome {
	UNWIND_COMPLETE,  /* end of stack: CFI says the return address is undefined, or the entry */
	UNWIND_TRUNCATED, /* the next value lies beyond the copied stack bytes */
	UNWIND_NO_MAPPING,  /* the pc lies in no executable mapping */
	UNWIND_NO_FILE,	    /* the mapping's file could not be read */
	UNWIND_NO_CFI,	    /* no CFI covers the pc, and the frame pointer was not usable */
	UNWIND_BAD_CFI,	    /* the CFI is damaged or exceeds the limits */
	UNWIND_NO_PROGRESS, /* the canonical frame address did not grow: a loop or a broken stack */
	UNWIND_TOO_DEEP,    /* the caller's frame array is full */
	UNWIND_N_OUTCOMES
};
/* "truncated", "no mapping" ...: for marker frames and counters. */
const char *unwind_outcome_name(enum unwind_outcome outcome);

/*
 * The compiler's target decides which processor's stacks are walked, or UNWIND_FOR_AARCH64 (tests
 * walk recorded stacks on any host).
 *
 * Registers by DWARF number. x86_64 (psABI 3.6.2): 0 rax 1 rdx 2 rcx 3 rbx 4 rsi 5 rdi 6 rbp 7 rsp
 * 8..15 r8..r15 16 return address, here the pc. aarch64 (AADWARF64 4.1): 0..30 x0..x30 31 sp 32 pc.
 * riscv64 (psABI 1.0): 0..31 x0..x31, here 32 pc.
 */
#if defined(__aarch64__) || defined(UNWIND_FOR_AARCH64)
#define UNWIND_AARCH64
#define UNWIND_N_REGS 33
enum { UNWIND_REG_FP = 29, UNWIND_REG_SP = 31, UNWIND_REG_PC = 32 };
#elif defined(__riscv)
#define UNWIND_RISCV64
#define UNWIND_N_REGS 33
enum { UNWIND_REG_FP = 8, UNWIND_REG_SP = 2, UNWIND_REG_PC = 32 };
#else
#define UNWIND_N_REGS 17
enum { UNWIND_REG_FP = 6, UNWIND_REG_SP = 7, UNWIND_REG_PC = 16 };
#endif
#define UNWIND_REG_BIT(reg) (UINT64_C(1) << (reg))
#define UNWIND_ALL_REGS	    (UNWIND_REG_BIT(UNWIND_N_REGS) - 1)
struct unwind_regs {
	uint64_t r[UNWIND_N_REGS];
	uint64_t valid; /* UNWIND_REG_BIT(i): r[i] is known. pc and sp must be. */
};

/* Converts what the kernel writes for perf_event_attr.sample_regs_user: one u64 for each set bit of
 * the mask, lowest first. */
void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret);

/* The mapping that covers a pc; the caller fills it in. */
struct unwind_mapping {
	uint64_t start, end;	      /* runtime addresses, [start, end) */
	uint64_t bias;		      /* runtime address - ELF virtual address */
	struct unwind_module *module; /* NULL: of anonymous memory, or of no use here */
	uint32_t tag;		      /* the caller's own number, returned in the frames */
	bool file_missing;	      /* a file is mapped here but could not be opened */
};

/* false: no executable mapping covers pc. Called a few times in a walk at most (it remembers two
 * mappings). */
typedef bool (*unwind_find_fn)(void *ctx, uint64_t pc, struct unwind_mapping *ret);

/*
 * address is where the frame is executing: the sampled pc in the first frame, the exact pc in a
 * signal trampoline and in the frame it interrupted, else the return address - 1. tag is that of
 * the mapping, UINT32_MAX without one.
 *
 * sp and fp are the registers there; frames that a runtime reports are sorted in between by them.
 * The sp of a caller is the CFA of its callee; aarch64: or less, if the callee has no CFI. They are
 * 0 where unknown: fp where some function may have changed it, both in frames that
 * unwind_continue() appends and in a last frame with nothing but an address.
 */
struct unwind_frame {
	uint64_t address; /* runtime */
	uint64_t bias;
	uint64_t sp, fp;
	uint32_t tag;
};

struct unwind_limits {
	uint32_t cache_entries; /* per-pc cache, a power of two, 16 bytes each; default 65536 */
	uint64_t max_row_bytes; /* rows of all modules, evicted by last use; default 8 MiB */
	/* The most bytes of an inflated .debug_frame; it counts against max_row_bytes, too. Larger
	 * ones are not read. Default 32 MiB. */
	uint64_t max_inflate_bytes;
};
#define UNWIND_LIMITS_DEFAULT                                                                      \
	{                                                                                          \
		65536, UINT64_C(8) << 20, UINT64_C(32) << 20                                       \
	}

struct unwind_stats {
	uint64_t walks, frames, cache_hits, cache_misses, rows_compiled, rows_evicted;
	uint64_t outcomes[UNWIND_N_OUTCOMES];
	uint64_t row_bytes; /* now: rows, FDE indexes and inflated .debug_frame sections */
	/* About the last walk: how many bytes of the stack copy lie below its outermost frame; and
	 * if it was truncated, how far the word it wanted next is above the first byte of the copy
	 * (UINT64_MAX: unknown). */
	uint64_t last_depth_bytes, last_missing_bytes;
};

/* limits NULL: the defaults. 0, -ENOMEM, or -errno (the SIGBUS handler). */
int unwinder_new(struct unwinder **ret, const struct unwind_limits *limits);
struct unwinder *unwinder_free(struct unwinder *u);
DEFINE_CLEANUP(struct unwinder *, unwinder_free)
const struct unwind_stats *unwinder_stats(const struct unwinder *u);
/* Gives memory back that can be read from the files again (pages of mapped sections). Rows and
 * caches stay. Call it every few seconds. */
void unwinder_trim(struct unwinder *u);

/*
 * Called before bytes of a module's file are read, and after (begins: false), so that the file is
 * known if reading it never ends, or ends the process. Files are read at the first walk through
 * some code, not at later ones. owner: the module's.
 */
typedef void (*unwind_reading_fn)(void *ctx, const void *owner, bool begins);
void unwinder_watch(struct unwinder *u, unwind_reading_fn reading, void *ctx);
/* The same for bytes that the caller itself reads for a walk. */
void unwinder_tell_reading(const struct unwinder *u, const void *owner, bool begins);

/*
 * Code without a module, or without call frame information, may belong to a runtime that knows its
 * own frames (src/profiler/runtimes.h). The walk calls this function at each frame in such code,
 * before it tries the frame pointer.
 */
struct unwind_foreign {
	size_t n;	/* which frame: 0 is the innermost; a walk that starts again repeats them */
	bool innermost; /* it was interrupted, not calling: all registers are valid */
	bool by_cfi;	/* its callee was native code */
	uint64_t file_start, file_end; /* where the file is that its code is in; 0: in none */
	const uint8_t *stack;	       /* as in unwind_walk() */
	uint64_t start, n_stack;
};
enum unwind_answer {
	UNWIND_NOT_MINE, /* not a frame of a runtime */
	UNWIND_STEPPED,	 /* regs are the caller's: pc, sp and fp */
	UNWIND_ENDED,	 /* the walk ends, *ret_outcome says why */
};
/* UNWIND_TRUNCATED: *ret_missing is the address that it wanted next. */
typedef enum unwind_answer (*unwind_foreign_fn)(void *ctx, const struct unwind_foreign *frame,
						struct unwind_regs *regs,
						enum unwind_outcome *ret_outcome,
						uint64_t *ret_missing);
void unwinder_ask_foreign(struct unwinder *u, unwind_foreign_fn foreign, void *ctx);

/*
 * Makes a module from an ELF file (fd, read through a private mapping; fd stays the caller's and
 * may be closed afterwards) or from an image in memory (the vdso; borrowed until free). This is
 * cheap: it reads only the ELF headers and maps the CFI sections; a walk reads CFI when it needs
 * it. 0; -ENOEXEC: not an ELF file of this architecture, or damaged; -ENOMEM, or -errno. name: for
 * messages only, copied.
 */
int unwind_module_new_fd(struct unwind_module **ret, struct unwinder *u, int fd, const char *name);
int unwind_module_new_memory(struct unwind_module **ret, struct unwinder *u, const void *image,
			     size_t n, const char *name);
/*
 * Makes a module from an .eh_frame alone, for code of a just-in-time compiler: n bytes (copied)
 * that are mapped at `address` and cover code within 2 GiB of it. Its bias is 0. 0; -ENOEXEC: no
 * such address; -ENOMEM. The caller limits n, because the first walk reads all of it.
 */
int unwind_module_new_eh_frame(struct unwind_module **ret, struct unwinder *u, const void *eh_frame,
			       size_t n, uint64_t address, const char *name);
/* Sets the owner that unwinder_watch() reports, NULL until then. Borrowed. */
void unwind_module_set_owner(struct unwind_module *m, const void *owner);
struct unwind_module *unwind_module_free(struct unwind_module *m);
DEFINE_CLEANUP(struct unwind_module *, unwind_module_free)

/*
 * Load bias of a mapping of this module: the runtime address of the mapped file offset less the
 * ELF virtual address of that offset, from the PT_LOAD that covers it (p_align need not be the
 * page size, p_offset need not equal p_vaddr). false: no PT_LOAD covers the offset.
 */
bool unwind_module_bias(const struct unwind_module *m, uint64_t start, uint64_t file_offset,
			uint64_t *ret_bias);

/* GNU build id (at most 64 bytes), 0 bytes when there is none. Borrowed. */
const uint8_t *unwind_module_build_id(const struct unwind_module *m, size_t *ret_n);
/* ELF virtual address range of the executable PT_LOADs, and the file offset of the first. */
void unwind_module_text(const struct unwind_module *m, uint64_t *ret_start, uint64_t *ret_limit,
			uint64_t *ret_offset);
/*
 * Does pc lie in that range, or has the module none? *start and *end are those of a mapping that
 * holds pc; they become those of the part of it, around pc, for which the answer is the same.
 */
bool unwind_module_has_text(const struct unwind_module *m, uint64_t bias, uint64_t pc,
			    uint64_t *start, uint64_t *end);

/*
 * Walks a stack. stack: the copy; its first byte was at address regs->r[UNWIND_REG_SP]; n_stack:
 * the bytes that the kernel copied (perf's dyn_size). frames[0] is the sampled pc. Sets *ret_n
 * (0..max_frames) and returns why the walk ended.
 */
enum unwind_outcome unwind_walk(struct unwinder *u, const struct unwind_regs *regs,
				const uint8_t *stack, size_t n_stack, unwind_find_fn find,
				void *ctx, struct unwind_frame *frames, size_t max_frames,
				size_t *ret_n);

/*
 * Continues the walk that has just returned UNWIND_TRUNCATED, where that is provably right. The
 * stack copy must still be valid. chain: what the kernel found in the same sample by following
 * frame pointers (PERF_SAMPLE_CALLCHAIN after PERF_CONTEXT_USER), innermost first. Appends to
 * frames, *n of max_frames. Returns why it ended: UNWIND_TRUNCATED again, UNWIND_COMPLETE, or
 * UNWIND_TOO_DEEP. Not counted in the unwinder's outcomes.
 */
enum unwind_outcome unwind_continue(struct unwinder *u, const uint64_t *chain, size_t n_chain,
				    unwind_find_fn find, void *ctx, struct unwind_frame *frames,
				    size_t max_frames, size_t *n);
