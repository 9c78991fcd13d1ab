/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of v8.h:
 *
 *	v8.c		a process: what is learned of it once; the texts
 *	v8-tables.c	offsets and numbers of a version
 *	v8-heap.c	objects: types, numbers, strings
 *	v8-lines.c	places in a script -> lines
 *	v8-function.c	SharedFunctionInfo -> names and lines
 *	v8-bytecode.c	places in bytecode and in baseline code
 *	v8-code.c	pc -> code -> functions in it
 *	v8-copies.c	copies of its built-in functions
 *	v8-walk.c	the steps
 *	arch-v8-*.c	prologues, epilogues, registers
 *
 * An object's address is tagged: 1 is added to it. A small integer stands in the upper half.
 */
#include "runtimes/arch-v8.h"
#include "runtimes/memo.h"
#include "runtimes/trust.h"
#include "runtimes/v8-tables.h"
#include "runtimes/v8.h"
#include "util/array.h"

enum {
	V8_MAX_INLINED = 64, /* functions at one pc */
	/* Remembered, of all processes: */
	V8_N_CODES = 4096,   /* pcs of compiled code, */
	V8_N_SPOTS = 8192,   /* places in functions, */
	V8_N_OFFSETS = 8192, /* and in bytecode, */
	V8_N_FUNCTIONS = 2048,
	V8_N_TYPES = 128,
	V8_SHARED_BYTES = 64,
	V8_N_ARRAYS = 2048,  /* bytecode arrays and their functions, */
	V8_N_HEADS = 2048,   /* where code begins, */
	V8_N_SCRIPTS = 128,  /* and lines of scripts */
	V8_LINE_STEPS = 256, /* of a script, so many characters apart: */
	V8_LINE_STEP = 8192,
	V8_HEAD_PART = 1024,
	V8_MAX_PLACES = 16384,
	V8_N_BLOCKS = 128,     /* of what was read in this walk */
	V8_BLOCK_BYTES = 4096, /* a page: hardly more work for the kernel than a word of it */
	V8_MAX_TEXT = 1 << 20,
	V8_MAX_COPIES = 8, /* of a process; each isolate may have one */
};

/* A function in a script, as it is there now. */
struct v8_function {
	uint64_t shared, name, script, identity;
	int32_t script_id, start; /* its first character in the script; < 0: not known */
};

/* What a function is, and what its head looked like then; struct trust: for how long that is
 * believed while the head is the same. */
struct v8_kept_function {
	uint8_t head[V8_SHARED_BYTES];
	struct v8_function function;
	uint64_t bytecode; /* that is the function's; 0: not seen */
	uint32_t owner;
	struct trust trust;
};

/* Where in the script a place in bytecode is. */
struct v8_kept_offset {
	uint64_t bytecode;
	int32_t offset, position;
	uint32_t owner;
	struct trust trust;
};

/* The type that objects with a map have. */
struct v8_kept_type {
	uint64_t map;
	int32_t type;
	uint32_t owner;
	struct trust trust;
};

/* A place in a function, and what is said of it. */
struct v8_spot {
	uint64_t shared, identity;
	int32_t position;
	uint32_t owner; /* the process's number; 0: nobody's */
	struct stepped_frame frame;
};

/* Code, as it is there now. */
struct v8_code {
	uint64_t at; /* tagged */
	uint64_t start, deopt, positions;
	uint32_t size, kind;
};

/* A function at a pc, and what it was then. */
struct v8_place {
	uint64_t shared, identity;
	int32_t position; /* < 0: not known */
};

/* Of code: characters from the beginning of the script, < 0: not known; and in which function that
 * was inlined there, < 0: none. */
struct v8_position {
	int32_t script_offset, inlining;
};

/* What is remembered of a pc. */
struct v8_known_code {
	uint64_t pc;
	struct v8_code code; /* at 0: there is none */
	uint32_t first, n;   /* rows of places, of optimized code */
	uint64_t word;	     /* at the pc, where there is no code */
	uint32_t n_uses, owner;
	uint8_t innermost, shape; /* enum v8_shape */
	uint8_t return_register;
	bool gone; /* the code was there, and is no longer */
	/* Of baseline code: where its first bytecode's code begins, and the place that the pc is at
	 * in a bytecode array. */
	uint32_t entry;
	int32_t offset;
	uint64_t bytecode; /* 0: not looked for yet */
	struct trust trust;
};

/* The lines of a script up to some place: how many end before each step. */
struct v8_lines {
	uint64_t script, source;
	int32_t id;
	uint32_t owner, n; /* n: steps */
	uint32_t before[V8_LINE_STEPS];
};

/* What was read in a walk, in blocks: objects lie together, and are read field by field. */
struct v8_block {
	uint64_t at; /* of its first byte */
	uint32_t owner, walk;
	uint8_t bytes[V8_BLOCK_BYTES];
};

struct v8_memo {
	struct memo base; /* first */
	uint32_t last_walk;
	struct v8_known_code codes[V8_N_CODES];
	struct v8_spot spots[V8_N_SPOTS];
	struct v8_kept_function functions[V8_N_FUNCTIONS];
	struct v8_kept_offset offsets[V8_N_OFFSETS];
	struct v8_kept_type types[V8_N_TYPES];
	struct {
		uint64_t array, shared;
		uint32_t owner;
	} arrays[V8_N_ARRAYS];
	struct {
		uint64_t part, head; /* part: of a pc / V8_HEAD_PART */
		uint32_t owner;
	} heads[V8_N_HEADS];
	struct v8_lines lines[V8_N_SCRIPTS];
	ARRAY(struct v8_place) places; /* of the codes */
	/* Of a walk: what was read of the process, and of a table of positions. */
	struct v8_block blocks[V8_N_BLOCKS];
	uint8_t table[32768];
};

struct v8 {
	struct memory memory; /* through the blocks */
	struct memory below;  /* the process's; it has the budget */
	struct v8_memo *memo;
	uint32_t owner, walk; /* its number there, and that of its walk */
	struct trust_walks walks;
	struct image image;
	/* Its built-in functions are mapped once more, near compiled code; 0: not seen yet. */
	uint64_t near_start, near_end;
	struct v8_copy {
		uint64_t isolate, start, end; /* end 0: it has none, as far as that is known */
		uint32_t n_uses;
	} copies[V8_MAX_COPIES]; /* of those that are copied there; a ring */
	uint32_t next_copy;
	uint64_t code_low, code_high; /* compiled code that was seen */
	struct v8_tables tables;
	char release[32];
	uint8_t *bytecode_sizes; /* 3 rows; NULL: not exported */
	uint32_t n_bytecodes;
	/* Of the handler that was interrupted: where the interpreter was. */
	uint64_t leaf_bytecode, leaf_offset;
	struct v8_stats stats;
};

static inline uint64_t v8_value(const struct v8 *v, enum v8_value value)
{
	return (uint64_t)(int64_t)v->tables.value[value];
}

static inline bool v8_is_copied(const struct v8 *v, uint64_t address)
{
	for (int i = 0; i < V8_MAX_COPIES; i++) {
		if (address >= v->copies[i].start && address < v->copies[i].end)
			return true;
	}
	return false;
}

static inline bool v8_is_in_file(const struct v8 *v, uint64_t address)
{
	return (address >= v->image.start && address < v->image.end) ||
	       (address >= v->near_start && address < v->near_end);
}

/* Whether code at an address is V8's own, which never changes. */
static inline bool v8_is_own(const struct v8 *v, uint64_t address)
{
	return v8_is_in_file(v, address) || v8_is_copied(v, address);
}

/* Programs have 47 bits of addresses on x86_64, and 48 elsewhere. */
static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == 1 && word > 4096 && word < UINT64_C(1) << 48;
}

static inline bool v8_is_smi(uint64_t word)
{
	return (word & UINT32_MAX) == 0;
}

static inline int32_t v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

/* v8-heap.c. As struct memory's; ctx: struct v8. */
bool v8_read_blocks(void *ctx, uint64_t address, void *ret, size_t n);
/* The type of an object; < 0: it is none. */
int32_t v8_type(struct v8 *v, uint64_t object);
static inline bool v8_has_type(struct v8 *v, uint64_t object, enum v8_value type)
{
	return v8_type(v, object) == v->tables.value[type];
}
uint64_t v8_word(struct v8 *v, uint64_t object, uint64_t offset);
/* As memory_read(); what is in the next page may be missing, and is zeros then. */
bool v8_read(struct v8 *v, uint64_t address, void *ret, size_t n);
/* The bytes of an array of bytes, at most size of them; how many. */
size_t v8_bytes(struct v8 *v, uint64_t array, uint8_t *ret, size_t size);
/* One of an array's objects; 0: it has not so many. */
uint64_t v8_element(struct v8 *v, uint64_t array, uint32_t index);
bool v8_is_string_type(const struct v8 *v, int32_t type);
/* A string in UTF-8, cut to fit; false: it cannot be read. */
bool v8_string(struct v8 *v, uint64_t string, char *ret, size_t size);
/* How many lines end in n characters of a string from `from` on; false: they cannot be read. */
bool v8_count_lines(struct v8 *v, uint64_t string, uint32_t from, uint32_t n, uint32_t *ret);
/* Numbers of V8's tables, 7 bits a byte; *at moves on. */
bool v8_read_signed(const uint8_t *bytes, size_t n, size_t *at, int64_t *ret);
bool v8_read_unsigned(const uint8_t *bytes, size_t n, size_t *at, uint32_t *ret);

/* v8-lines.c. The line of a character in a script, from 1 on; 0: not known. */
uint32_t v8_line(struct v8 *v, const struct v8_function *f, int32_t position);

/* v8-function.c. shared: unproven. position < 0: not known. false: it is no function. */
bool v8_function_frame(struct v8 *v, uint64_t shared, int32_t position, struct stepped_frame *ret);
/* What tells the function that is at an address from all others that may be there; 0: none is. */
uint64_t v8_function_identity(struct v8 *v, uint64_t shared);
/* The SharedFunctionInfo of a function, which may have moved; unproven. 0: there is none. */
uint64_t v8_shared(struct v8 *v, uint64_t function);
/* Whether an object is the bytecode of a function. */
bool v8_is_bytecode(struct v8 *v, uint64_t object);
/* The function whose bytecode an array is; function: what the frame has for it, which may have
 * moved. 0: none is proven. */
uint64_t v8_function_of(struct v8 *v, uint64_t function, uint64_t bytecode);

/* v8-bytecode.c. What a table of positions says of a place in code: of the last one before it. */
struct v8_position v8_position_of(uint64_t raw);
bool v8_position_find(struct v8 *v, uint64_t table, int64_t offset, struct v8_position *ret);
/* The place in the script of a place in bytecode; < 0: not known. */
int32_t v8_bytecode_position(struct v8 *v, uint64_t bytecode, int32_t offset);
/* The place in bytecode of a pc behind a call in baseline code; < 0: not known. */
int32_t v8_baseline_offset(struct v8 *v, const struct v8_code *code, uint64_t bytecode,
			   uint64_t pc);
/* How many bytes of baseline code are in front of the first bytecode's. */
uint32_t v8_baseline_entry(struct v8 *v, const struct v8_code *code);

/* v8-copies.c. Is the pc of the innermost frame in a copy of V8's built-in functions? Then
 * v8_is_own() knows that from now on; else it does no longer. */
bool v8_copies_find(struct v8 *v, const struct runtime_regs *regs);

/* v8-code.c. What is at pc; NULL: no code that can be proven. Valid while no other is found. */
const struct v8_known_code *v8_code_find(struct v8 *v, uint64_t pc, bool innermost);
/* What was at pc when v8_code_find() found it last, if no code is there now; its functions are
 * where they were then. At the sample it may have been other code. NULL: there was none. */
const struct v8_known_code *v8_code_before(struct v8 *v, uint64_t pc, bool innermost);
/* Whether a pc of baseline code, or behind a call there, is in front of the first bytecode. */
static inline bool v8_is_baseline_entry(const struct v8_known_code *k)
{
	return k->pc - k->code.start <= k->entry;
}
/* Of baseline code: the place of the pc in bytecode; < 0: not known. */
int32_t v8_code_offset(struct v8 *v, uint64_t pc, uint64_t bytecode);
/* As that, of a word of the stack that may be a return address. */
const struct v8_known_code *v8_code_at(struct v8 *v, uint64_t word);
