/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of php.h:
 *
 *	php.c		a process: what is learned of it once
 *	php-tables.c	where this release keeps what
 *	php-walk.c	the chain of frames
 *	php-function.c	function -> names; instruction -> line
 *	eval-code.c	where the code of the evaluation function is
 */
#include "runtimes/interp-internal.h"
#include "runtimes/memo.h"
#include "runtimes/php-tables.h"
#include "runtimes/php.h"

enum {
	/* Remembered, of all processes: functions, strings, instructions. */
	PHP_N_FUNCTIONS = 4096,
	PHP_N_TEXTS = 8192,
	PHP_N_LINES = 16384,
	PHP_MAX_TEXT = 1 << 20,
	PHP_WINDOW = 4096,
};

/* A string of PHP's that is remembered, and what it looked like. */
struct php_string {
	uint64_t at, hash, length, first; /* its first 8 bytes */
	strid text;
	uint32_t owner; /* the process's number; 0: nobody's */
	uint32_t walk;	/* of that process, in which it was last proven */
};

/* What is remembered of a function. */
struct php_function {
	uint64_t at, identity;
	uint64_t opcodes;
	uint32_t n_opcodes;
	uint32_t start_line, owner;
	strid name, file;
	struct trust trust;
	bool is_user; /* not written in C */
	bool is_code; /* of a file or of eval(): it has no name of its own */
};

/* Of one instruction. */
struct php_line {
	uint64_t at, identity; /* of its function */
	uint32_t line, owner;
	uint8_t opcode;
	uint32_t kind; /* of an instruction that includes a file */
};

struct php_memo {
	struct memo base; /* first */
	struct php_function functions[PHP_N_FUNCTIONS];
	struct php_string strings[PHP_N_TEXTS];
	struct php_line lines[PHP_N_LINES];
	/* Of a walk: the part of the stack of frames that was read last. */
	uint8_t window[PHP_WINDOW];
};

struct php {
	struct interp base; /* first */
	struct php_tables tables;
	uint64_t globals, end; /* addresses of executor_globals */
	struct php_memo *memo;
	uint32_t owner;		      /* its number there */
	uint64_t window_at, n_window; /* of the current walk */
};

/* An exception that is on its way, and a method that does not exist, have functions and
 * instructions of the process itself. */
static inline bool php_is_of_process(const struct php *p, uint64_t at)
{
	return at >= p->globals && at < p->end;
}

/*
 * php-function.c. The function at that address. place: the instruction that is executed, which one
 * that is written in PHP ought to have, 0: there is none. NULL: there is no function. It is valid
 * until the next call.
 */
const struct php_function *php_find_function(struct php *p, uint64_t at, uint64_t place);
/* Whether an instruction is one of its own; and what it is, false: it cannot be read. */
bool php_has_opcode(const struct php_function *f, uint64_t at);
bool php_find_line(struct php *p, const struct php_function *f, uint64_t at, struct php_line *ret);
/* What a frame with code of a file is called, by the instruction that it was called from. */
strid php_code_name(struct php *p, const struct php_line *caller);

/* php-walk.c. */
enum chain_result php_follow(struct php *p, const struct chained_thread *thread,
			     struct chained_frame *frames, size_t max, size_t *n);
