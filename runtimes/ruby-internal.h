/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of ruby.h:
 *
 *	ruby.c		a process: what is learned of it once
 *	ruby-tables.c	where this release keeps what
 *	ruby-thread.c	tid -> thread -> its execution context
 *	ruby-walk.c	the control frames
 *	ruby-code.c	instruction sequence -> names and lines
 *	ruby-object.c	strings, arrays, names of methods
 *	eval-code.c	where the code of the evaluation function is
 *	arch-*.c	where libc keeps a tid; variables that code loads
 */
#include "runtimes/interp-internal.h"
#include "runtimes/memo.h"
#include "runtimes/ruby-tables.h"
#include "runtimes/ruby.h"

enum {
	/* Remembered, of all processes: */
	RUBY_N_CODES = 4096, /* instruction sequences, */
	RUBY_N_STRINGS = 8192,
	RUBY_N_LINES = 16384,  /* places in them, */
	RUBY_N_METHODS = 2048, /* methods that are written in C, */
	RUBY_N_PATHS = 512,
	RUBY_N_NAMES = 2048,  /* and names; */
	RUBY_N_THREADS = 256, /* of each: threads */
	RUBY_STRICT = 64,     /* walks, of a process that was not known before */
	RUBY_BELIEVE = 15,    /* so often what was proven is believed */
	RUBY_MAX_TEXT = 1 << 20,
	RUBY_FRAMES_BYTES = 512 * RUBY_FRAME_MAX,
	RUBY_VALUES_BYTES = 16384,
	RUBY_STRING_HEAD = 40,
};

/* A string of Ruby's that is remembered, and what it looked like. */
struct ruby_string {
	uint64_t at;
	uint8_t head[RUBY_STRING_HEAD];
	strid text;
	uint32_t owner; /* the process's number; 0: nobody's */
	uint32_t walk;	/* of that process, in which it was last proven */
};

/* What is remembered of an instruction sequence. */
struct ruby_code {
	uint64_t at, identity;
	uint64_t body, encoded, lines, index; /* addresses */
	uint32_t n_encoded, n_lines, start_line, owner;
	strid label, path;
	struct trust trust;
};

/* Of the entry of a method that is written in C. */
struct ruby_method {
	uint64_t at, name; /* name: its number */
	uint32_t owner;
	struct trust trust;
};

/* Of the number of a name. */
struct ruby_name {
	uint64_t id;
	uint32_t owner;
	strid text;
};

/* Of a path. */
struct ruby_path {
	uint64_t at;
	uint32_t owner;
	strid text;
	struct trust trust;
};

/* Of a place in one. */
struct ruby_line {
	uint64_t code, identity;
	uint32_t place, line; /* place: words + 1 */
	uint32_t owner;
};

/* Of a thread that was found. */
struct ruby_thread {
	uint32_t tid, n_believed;
	uint64_t at, number; /* number: for libc */
};

struct ruby_memo {
	struct memo base; /* first */
	struct ruby_code codes[RUBY_N_CODES];
	struct ruby_string strings[RUBY_N_STRINGS];
	struct ruby_line lines[RUBY_N_LINES];
	struct ruby_method methods[RUBY_N_METHODS];
	struct ruby_name names[RUBY_N_NAMES];
	struct ruby_path paths[RUBY_N_PATHS];
	/* Of a walk: the control frames, and a part of the stack of values. */
	uint8_t frames[RUBY_FRAMES_BYTES], values[RUBY_VALUES_BYTES];
};

struct ruby {
	struct interp base; /* first */
	struct ruby_tables tables;
	uint64_t vm_variable; /* address of the pointer to the VM */
	uint64_t vm;	      /* what that was; 0: not read yet */
	struct trust vm_trust;
	uint64_t symbols;     /* address of the table of names; 0: not known */
	uint64_t reads_it;    /* address of a function that reads it; 0: there is none */
	uint32_t look_for_it; /* in a walk from this one on */
	struct ruby_thread threads[RUBY_N_THREADS];
	struct ruby_memo *memo;
	uint32_t owner;		      /* its number there */
	uint64_t values_at, n_values; /* of the current walk */
};

static inline int32_t rb(const struct ruby *p, enum ruby_value v)
{
	return p->tables.value[v];
}

static inline uint64_t rb_u64(const struct ruby *p, const uint8_t *bytes, enum ruby_value v)
{
	return memory_u64_of(bytes, rb(p, v));
}

/* ruby-thread.c. The address of the execution context of a thread; 0: there is none. anew: what is
 * remembered of it was wrong. */
uint64_t ruby_find_context(struct ruby *p, uint32_t tid, bool anew);

/* ruby-object.c. A string's text, proven in this walk; false: it is none. its_end: of a long one.
 */
bool ruby_find_string(struct ruby *p, uint64_t at, bool its_end, strid *ret);
/* Element i of an array; 0: it is none, or not that long. */
uint64_t ruby_element(struct ruby *p, uint64_t array, uint64_t i);
/* The name of a method by its number; empty: not known. */
strid ruby_find_name(struct ruby *p, uint64_t id);
/* Whether an object that is not one of the language's is of that kind; flags: its first word. */
bool ruby_is_internal(uint64_t flags, uint32_t kind);

/* ruby-code.c. The instruction sequence at that address, which pc ought to be in; NULL: there is
 * none. Valid until the next call. */
const struct ruby_code *ruby_find_code(struct ruby *p, uint64_t at, uint64_t pc);
/* The line of the instruction in front of pc; false: pc is not in it. 0: not known. */
bool ruby_find_line(struct ruby *p, const struct ruby_code *c, uint64_t pc, uint32_t *ret);

/* ruby-walk.c. The frames of an execution context; CHAIN_NO_THREAD: it has none. */
enum chain_result ruby_follow(struct ruby *p, uint64_t context, struct chained_frame *frames,
			      size_t max, size_t *n);
