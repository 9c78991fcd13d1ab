/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of hotspot.h:
 *
 *	hotspot.c	  a process: what is learned of it once; the texts
 *	hotspot-tables.c  the exported tables
 *	hotspot-code.c	  pc -> blob of the code cache -> functions in it
 *	hotspot-method.c  Method* -> names and lines
 *	hotspot-walk.c	  the steps
 *	arch-*.c	  prologues, epilogues, frames of the interpreter
 */
#include "runtimes/hotspot-tables.h"
#include "runtimes/hotspot.h"
#include "runtimes/memo.h"
#include "runtimes/trust.h"
#include "util/array.h"

enum {
	HOTSPOT_MAX_HEAPS = 8,
	HOTSPOT_MAX_INLINED = 64, /* functions at one pc */
	HOTSPOT_HEADER_BYTES = 512,
	HOTSPOT_N_CODES = 8192, /* remembered, of all processes: pcs of compiled code, */
	HOTSPOT_N_SPOTS = 4096, /* places in interpreted methods, */
	HOTSPOT_N_NAMES = 4096, /* and their names */
	HOTSPOT_N_METHODS = 64, /* of the current walk */
	HOTSPOT_METHOD_BYTES = 128,
	HOTSPOT_MAX_PLACES = 16384,
	HOTSPOT_MAX_TEXT = 1 << 20,
};

struct code_heap {
	uint64_t low, high, segmap;
	unsigned int log2_segment;
};

/* [start, end) of the interpreter. */
struct code_range {
	uint64_t start, end;
};

enum blob_kind {
	BLOB_NONE,
	BLOB_NMETHOD,
	BLOB_NATIVE, /* the wrapper of a native method */
	BLOB_INTERPRETER,
	BLOB_STUBS,	   /* many pieces of code, some with a frame */
	BLOB_CONTINUATION, /* the same, of virtual threads */
	BLOB_FRAMELESS,	   /* a jump on the way from one method to another */
	BLOB_FRAMED,	   /* its frame has a fixed size */
};

/* A blob, as it is there now. */
struct blob {
	uint64_t at, name, code_begin, code_end;
	uint32_t size, frame_words;
	int32_t frame_complete; /* so far from code_begin; < 0: never */
	enum blob_kind kind;
	char text[64]; /* its name */
	/* Of an nmethod. */
	uint64_t method, verified_entry, deopt, deopt_mh, stub;
	uint64_t pcs, pcs_end, scopes, scopes_end, metadata;
	uint32_t compile_id, level, orig_pc_offset;
	uint64_t identity; /* a hash of what makes it this one */
};

/* How a frame stands at a pc. */
enum frame_shape {
	SHAPE_FULL,
	SHAPE_NOT_SAVED, /* it has its size, but the caller's fp is in its register still */
	SHAPE_PUSHED,	 /* the caller's fp is on top of the stack, the return address behind it */
	SHAPE_POINTED,	 /* both are where the fp points */
	SHAPE_NONE,	 /* the return address is on top of the stack, or in its register */
};

/* How a pc is to be understood. */
enum pc_use {
	PC_INTERRUPTED, /* anywhere in the code */
	PC_CALLED_JAVA, /* behind a call with debug information */
	PC_CALLED,	/* behind a call that may have none */
};

/* How code gets to its caller, by what it does next. */
enum code_way {
	WAY_UNKNOWN,
	WAY_REGISTER, /* its return address is in a register still, or again */
	WAY_TOP,      /* the caller's fp and the return address are on top of the stack */
	WAY_FRAME,    /* its frame pointer points at them */
	WAY_FIXED,    /* they are at the end of a frame of fixed size */
};

struct code_ahead {
	uint8_t way;	 /* enum code_way */
	uint16_t pushed; /* bytes that it takes from the stack before it leaves its frame */
};

/* What is remembered of a pc. */
struct code {
	uint64_t pc, identity;
	struct blob blob;
	uint32_t first, n;	 /* rows of places */
	uint32_t owner;		 /* the process's number; 0: nobody's */
	uint32_t walk;		 /* the last one in which the blob was still this one */
	uint8_t use;		 /* enum pc_use */
	uint8_t shape;		 /* enum frame_shape, if interrupted */
	struct code_ahead ahead; /* if not called by Java */
};

/* What is remembered of a place in a method. */
struct spot {
	uint64_t method, identity;
	uint32_t owner;
	int32_t bci;
	struct stepped_frame frame;
};

/* Of a method: its names, and what they were read from. */
struct method_names {
	uint64_t method, heads, texts; /* texts: a hash of those of class and method */
	uint32_t owner;
	strid function, file;
	struct trust trust;
};

/* The heads of a Method and of its ConstMethod, as they are in one walk. */
struct method {
	uint64_t at, const_method, constants;
	uint8_t head[HOTSPOT_METHOD_BYTES]; /* of the ConstMethod */
	uint64_t heads;			    /* a hash of both heads */
	uint32_t code_size, name_index;
	uint32_t walk; /* 0: none */
};

struct hotspot_memo {
	struct memo base; /* first */
	uint32_t last_walk;
	struct code codes[HOTSPOT_N_CODES];
	struct spot spots[HOTSPOT_N_SPOTS];
	struct method_names names[HOTSPOT_N_NAMES];
	ARRAY(struct stepped_frame) places;
	struct method methods[HOTSPOT_N_METHODS];
};

struct hotspot {
	struct memory memory;
	struct image image;
	struct hotspot_tables tables;
	uint32_t major; /* of the JDK */
	char release[96];
	uint64_t low, high; /* the code cache */
	uint64_t call_stub_return;
	struct code_heap heaps[HOTSPOT_MAX_HEAPS];
	uint32_t n_heaps;
	struct code_range interpreter;
	ARRAY(struct code_range) entries; /* of methods, in the interpreter */
	struct hotspot_memo *memo;
	uint32_t owner, walk; /* its number there, and that of its walk */
	struct trust_walks walks;
	struct hotspot_stats stats;
};

static inline int64_t hs(const struct hotspot *h, enum hotspot_value v)
{
	return h->tables.value[v];
}

static inline bool hs_known(const struct hotspot *h, enum hotspot_value v)
{
	return h->tables.known[v];
}

static inline bool hs_is_code(const struct hotspot *h, uint64_t pc)
{
	return pc >= h->low && pc < h->high;
}

/* hotspot-method.c. method: unproven. bci < 0: none. false: it is no method, or bci is not in it.
 */
bool hotspot_method_frame(struct hotspot *h, uint64_t method, int32_t bci,
			  struct stepped_frame *ret);
/* Of a method in the interpreter: the bci of an address in its bytecodes; -1: it is not there. */
int32_t hotspot_method_bci(struct hotspot *h, uint64_t method, uint64_t bcp);
/* HotSpot's compressed numbers; *at moves on. false: bytes are missing. */
bool hotspot_read_number(const struct hotspot *h, const uint8_t *bytes, size_t n, size_t *at,
			 uint32_t *ret);

/* hotspot-code.c. What there is at pc; NULL: nothing that can be proven. Valid until the next call.
 */
const struct code *hotspot_code_find(struct hotspot *h, uint64_t pc, enum pc_use use);
/* Whether the bytes in front of pc are a call. */
bool hotspot_is_behind_call(struct hotspot *h, uint64_t pc);
/* Finds h->low and h->high; false: not yet. */
bool hotspot_code_bounds(struct hotspot *h);
/* Where the code heaps are now; false: not readable. */
bool hotspot_code_heaps(struct hotspot *h);

/* The interpreter's frame of a method: of the processor. */
struct interpreted {
	uint64_t method, bcp;
	uint64_t caller_pc, caller_sp, caller_fp;
};
