/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Offline stack walking: registers + a copy of the stack + call-frame information -> frames.
 *
 * What it is: CFI (.eh_frame, .debug_frame) compiled into compact rows (by libdw where it is not
 * simple) the first time a pc in their range is met, kept per module (file) and shared by every
 * process; a direct-mapped cache keyed by (module, module-relative pc) in front; the walk over a
 * stack copy. What it is not: it knows no processes and no maps (the caller's find function does),
 * opens no file, and never reads the memory of a live process.
 *
 * No call allocates once the modules in question are warm. Not thread-safe: one unwinder per
 * thread. Everything in a module's file and in a stack copy is hostile; the worst it gets is an
 * outcome.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct unwinder;
struct unwind_module;

/* Why a walk ended. Only UNWIND_COMPLETE means that the outermost frame was reached. */
enum unwind_outcome {
	UNWIND_COMPLETE,  /* end of stack: CFI says the return address is undefined, or the entry */
	UNWIND_TRUNCATED, /* the next value lies beyond the copied stack bytes */
	UNWIND_NO_MAPPING,  /* the pc lies in no executable mapping */
	UNWIND_NO_FILE,	    /* the mapping's file could not be read */
	UNWIND_NO_CFI,	    /* no CFI covers the pc and the frame-pointer fallback did not hold */
	UNWIND_BAD_CFI,	    /* CFI there, but damaged or not expressible within the limits */
	UNWIND_NO_PROGRESS, /* the canonical frame address did not grow: a loop or a broken stack */
	UNWIND_TOO_DEEP,    /* the caller's frame array is full */
	UNWIND_N_OUTCOMES
};
/* "truncated", "no mapping" ...: the field's words, for markers and counters. */
const char *unwind_outcome_name(enum unwind_outcome outcome);

/*
 * The processor whose stacks are walked is chosen when this room is compiled: the host's, or
 * aarch64 with UNWIND_FOR_AARCH64 (tests read recorded stacks anywhere).
 *
 * Registers by DWARF number. x86_64 (psABI 3.6.2): 0 rax 1 rdx 2 rcx 3 rbx 4 rsi 5 rdi 6 rbp 7 rsp
 * 8..15 r8..r15 16 return address, here the pc. aarch64 (AADWARF64 4.1): 0..30 x0..x30 31 sp 32 pc.
 */
#if defined(__aarch64__) || defined(UNWIND_FOR_AARCH64)
#define UNWIND_AARCH64
#define UNWIND_N_REGS 33
enum { UNWIND_REG_SP = 31, UNWIND_REG_PC = 32 };
#else
#define UNWIND_N_REGS 17
enum { UNWIND_REG_SP = 7, UNWIND_REG_PC = 16 };
#endif
#define UNWIND_REG_BIT(reg) (UINT64_C(1) << (reg))
#define UNWIND_ALL_REGS	    (UNWIND_REG_BIT(UNWIND_N_REGS) - 1)
struct unwind_regs {
	uint64_t r[UNWIND_N_REGS];
	uint64_t valid; /* UNWIND_REG_BIT(i): r[i] is known. pc and sp must be. */
};

/* From what the kernel writes for perf_event_attr.sample_regs_user: one u64 for each set bit of the
 * mask, lowest first. */
void unwind_regs_from_perf(const uint64_t *values, uint64_t mask, struct unwind_regs *ret);

/* The mapping that covers a pc, as the caller knows it. */
struct unwind_mapping {
	uint64_t start, end;	      /* runtime addresses, [start, end) */
	uint64_t bias;		      /* runtime address - ELF virtual address */
	struct unwind_module *module; /* NULL: anonymous memory or the file cannot be read */
	uint32_t tag;		      /* the caller's; handed back in the frames */
	bool file_missing;	      /* a file is mapped here but could not be opened */
};

/* false: no executable mapping covers pc. Called at most a few times a walk (two mappings are
 * remembered). */
typedef bool (*unwind_find_fn)(void *ctx, uint64_t pc, struct unwind_mapping *ret);

/*
 * address is where the frame is executing: the sampled pc in the first frame, the exact pc in a
 * signal trampoline and in what it interrupted, else the return address - 1. tag is of the mapping
 * found, UINT32_MAX without one.
 *
 * sp and fp are the registers there: what a runtime's own records of its frames are laid between
 * these by. Of a caller sp is its callee's CFA; aarch64: or less, if the callee has no CFI. They
 * are 0 where they are not known: fp where some function may have changed it, both in frames that
 * unwind_continue() appends and in a last one of which only the address is known.
 */
struct unwind_frame {
	uint64_t address; /* runtime */
	uint64_t bias;
	uint64_t sp, fp;
	uint32_t tag;
};

struct unwind_limits {
	uint32_t cache_entries; /* per-pc cache, a power of two, 16 bytes each; default 65536 */
	uint64_t max_row_bytes; /* rows of all modules; coldest module's rows go first; default 8
				   MiB */
	uint64_t max_inflate_bytes; /* a compressed .debug_frame larger than this, or than
				      max_row_bytes, which it counts against, is not read; 32 MiB */
};
#define UNWIND_LIMITS_DEFAULT                                                                      \
	{                                                                                          \
		65536, UINT64_C(8) << 20, UINT64_C(32) << 20                                       \
	}

struct unwind_stats {
	uint64_t walks, frames, cache_hits, cache_misses, rows_compiled, rows_evicted;
	uint64_t outcomes[UNWIND_N_OUTCOMES];
	uint64_t row_bytes; /* now: rows, FDE indexes and inflated .debug_frame sections */
	/* Of the last walk: how many bytes of the stack copy lie below its outermost frame; and if
	 * it was truncated, how far above the first byte of the copy the word lies that it wanted
	 * next, UINT64_MAX when that is not known. */
	uint64_t last_depth_bytes, last_missing_bytes;
};

/* limits NULL: the defaults. 0, -ENOMEM, or -errno (the SIGBUS handler). */
int unwinder_new(struct unwinder **ret, const struct unwind_limits *limits);
struct unwinder *unwinder_free(struct unwinder *u);
DEFINE_CLEANUP(struct unwinder *, unwinder_free)
const struct unwind_stats *unwinder_stats(const struct unwinder *u);
/* Gives back memory that can be read from the files again (pages of mapped sections): rows and
 * caches stay. Worth a call every few seconds. */
void unwinder_trim(struct unwinder *u);

/*
 * Told before bytes of a module's file are read, and behind that (begins: false): so that the file
 * is known if reading it never ends, or ends the process. That happens at the first walk through
 * some code, not at later ones. owner: the module's.
 */
typedef void (*unwind_reading_fn)(void *ctx, const void *owner, bool begins);
void unwinder_watch(struct unwinder *u, unwind_reading_fn reading, void *ctx);
/* The same for bytes that the caller itself reads for a walk. */
void unwinder_tell_reading(const struct unwinder *u, const void *owner, bool begins);

/*
 * A module from an ELF file (fd, read through a private mapping; fd stays the caller's and may be
 * closed afterwards) or from an image in memory (the vdso; borrowed until free). Cheap: only the
 * ELF's headers are read here and its CFI sections mapped, CFI is read at the first walk through
 * it. 0, -ENOEXEC: not an ELF file of this architecture or damaged, -ENOMEM, or -errno. name: for
 * messages only, copied.
 */
int unwind_module_new_fd(struct unwind_module **ret, struct unwinder *u, int fd, const char *name);
int unwind_module_new_memory(struct unwind_module **ret, struct unwinder *u, const void *image,
			     size_t n, const char *name);
/*
 * A module of nothing but an .eh_frame of n bytes (copied), which stands at that address and covers
 * code within 2 GiB of it: a just-in-time compiler's. Its bias is 0. 0, -ENOEXEC: no such address,
 * -ENOMEM. Sizes are the caller's to limit: it is read as a whole at the first walk through it.
 */
int unwind_module_new_eh_frame(struct unwind_module **ret, struct unwinder *u, const void *eh_frame,
			       size_t n, uint64_t address, const char *name);
/* Whose it is, for unwinder_watch(); NULL until then. Borrowed. */
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
 * Walks. stack: the copy, whose first byte lay at address regs->r[rsp]; n_stack is what was really
 * copied (perf's dyn_size). frames[0] is the sampled pc. Sets *ret_n (0..max_frames) and returns
 * why the walk ended.
 */
enum unwind_outcome unwind_walk(struct unwinder *u, const struct unwind_regs *regs,
				const uint8_t *stack, size_t n_stack, unwind_find_fn find,
				void *ctx, struct unwind_frame *frames, size_t max_frames,
				size_t *ret_n);

/*
 * Directly behind a walk that returned UNWIND_TRUNCATED, whose stack copy must still be there: goes
 * on where that is provably right. chain: what the kernel found in the same sample by following
 * frame pointers (PERF_SAMPLE_CALLCHAIN behind PERF_CONTEXT_USER), innermost first. Appends to
 * frames, *n of max_frames. Returns why it ended: UNWIND_TRUNCATED again, UNWIND_COMPLETE, or
 * UNWIND_TOO_DEEP. Not counted in the unwinder's outcomes.
 */
enum unwind_outcome unwind_continue(struct unwinder *u, const uint64_t *chain, size_t n_chain,
				    unwind_find_fn find, void *ctx, struct unwind_frame *frames,
				    size_t max_frames, size_t *n);
