/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of cpython.h:
 *
 *	cpython.c	  a process: what is learned of it once; the texts
 *	cpython-tables.c  where this release keeps what
 *	cpython-thread.c  tid -> states of the thread
 *	cpython-walk.c	  the chain of frames
 *	eval-code.c	  where the code of the evaluation function is
 *	cpython-code.c	  code object -> names and lines
 *	arch-*.c	  where libc keeps a tid; jumps
 */
#include "runtimes/cpython-tables.h"
#include "runtimes/cpython.h"
#include "runtimes/interp-internal.h"
#include "runtimes/memo.h"
#include "util/array.h"

enum {
	/* Remembered, of all processes: code objects, texts, places in code; of each: threads. */
	CPYTHON_N_CODES = 8192,
	CPYTHON_N_TEXTS = 8192,
	CPYTHON_N_LINES = 16384,
	CPYTHON_N_THREADS = 512,
	CPYTHON_MAX_STATES = 4, /* of one thread: one of each interpreter */
	CPYTHON_MAX_TEXT = 1 << 20,
	CPYTHON_WINDOW = 65536,
};

#define PYTHON_NO_HASH UINT64_MAX

/* A text that is remembered, and what it looked like. */
struct python_text {
	uint64_t at, length, hash; /* hash: Python's own; PYTHON_NO_HASH: it has none yet */
	uint32_t kind;		   /* how its characters are stored */
	uint32_t owner;		   /* the process's number; 0: nobody's */
	uint32_t walk;		   /* of that process, in which it was last proven */
	strid text;
};

/* What is remembered of a code object. */
struct python_code {
	uint64_t at, identity;
	uint64_t lines, bytecode; /* addresses */
	uint32_t n_bytecode;	  /* bytes; 0: not known */
	uint32_t start_line;
	strid function, file;
	uint32_t owner; /* the process's number; 0: nobody's */
	struct trust trust;
};

/* Of a place in one. */
struct python_line {
	uint64_t code, identity;
	int32_t place; /* bytes of bytecode in front of it; -1: none yet */
	uint32_t owner, line;
};

struct cpython_memo {
	struct memo base; /* first */
	struct python_code codes[CPYTHON_N_CODES];
	struct python_text known_texts[CPYTHON_N_TEXTS];
	struct python_line lines[CPYTHON_N_LINES];
	/* Of a walk: a piece of a data stack, and a table of lines. */
	uint8_t window[CPYTHON_WINDOW], table[CPYTHON_WINDOW];
};

/* Of a thread: its state, or that there was none while the newest state was `newest`. */
struct python_thread {
	uint32_t tid;
	uint32_t n_believed; /* so often: that there is none; or without a look at the list */
	uint32_t n_none;     /* that there is none was found so often, one time after the other */
	uint64_t state, newest;
	uint64_t number; /* of the thread for libc, as its state says */
};

/* A thread's state and its bytes. */
struct python_state {
	uint64_t at;
	uint8_t bytes[PYTHON_THREAD_BYTES];
};

struct cpython {
	struct interp base; /* first */
	struct cpython_tables tables;
	uint64_t code_type, text_type, bytes_type, frame_type, none;
	size_t n_state, n_frame, n_code; /* bytes to read of each */
	/* Threads. */
	uint64_t interp;	 /* the newest interpreter; 0: not known */
	bool only_one;		 /* it is the only one */
	uint64_t thread_pointer; /* of the thread that is looked for; 0: not known */
	uint64_t thread_stack;	 /* its stack pointer, if its number is not known */
	uint64_t next_scan;	 /* where a search of its threads goes on that had no budget left */
	struct python_thread threads[CPYTHON_N_THREADS];
	struct python_state states[CPYTHON_MAX_STATES];
	/* Of code. */
	struct cpython_memo *memo;
	uint32_t owner; /* its number there */
};

static inline int32_t py(const struct cpython *p, enum cpython_value v)
{
	return p->tables.value[v];
}

static inline bool py_known(const struct cpython *p, enum cpython_value v)
{
	return p->tables.value[v] >= 0;
}

/* Whether a read may have failed for want of budget. */
static inline bool cpython_is_spent(const struct cpython *p)
{
	return p->base.memory.reads_left == 0 || p->base.memory.bytes_left < CPYTHON_WINDOW;
}

/*
 * cpython-thread.c. The state that the thread had last, into p->states[0], without a look at the
 * lists: one read. false: it does not say so any more, or it was believed often enough.
 */
bool cpython_believe_state(struct cpython *p, uint32_t tid);
/*
 * The states of a thread into p->states, innermost first, *ret_n of them. CHAIN_WHOLE, else why
 * there are none.
 */
enum chain_result cpython_find_states(struct cpython *p, uint32_t tid, size_t *ret_n);

/*
 * cpython-code.c. place: as the frame has it; copy: which of the bytecode's copies it is in. Fills
 * in texts and lines; false: at is no code object, or the place is not in it.
 */
bool cpython_code_frame(struct cpython *p, uint64_t at, uint64_t place, uint32_t copy,
			struct chained_frame *ret);
/* The line at a place of a table of n bytes; 0: none. For releases of that minor version. */
uint32_t cpython_find_line(uint32_t minor, const uint8_t *table, size_t n, uint32_t first_line,
			   int32_t place);

/* cpython-walk.c. Appends the frames of a state to *n of them. */
enum chain_result cpython_walk_state(struct cpython *p, const struct python_state *state,
				     struct chained_frame *frames, size_t max, size_t *n);
