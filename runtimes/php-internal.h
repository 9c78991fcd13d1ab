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
#include "runtimes/php-tables.h"
#include "runtimes/php.h"

enum {
	PHP_N_FUNCTIONS = 2048, /* remembered: functions, */
	PHP_N_TEXTS = 4096,	/* strings, */
	PHP_N_LINES = 8192,	/* instructions */
	PHP_MAX_TEXT = 1 << 20,
	PHP_WINDOW = 4096,
};

/* A string of PHP's that is remembered, and what it looked like. */
struct php_string {
	uint64_t at, hash, length, first; /* its first 8 bytes */
	strid text;
	uint32_t walk; /* in which it was last proven */
};

/* What is remembered of a function. */
struct php_function {
	uint64_t at, identity;
	uint64_t opcodes;
	uint32_t n_opcodes;
	uint32_t start_line;
	strid name, file;
	struct trust trust;
	bool is_user; /* not written in C */
	bool is_code; /* of a file or of eval(): it has no name of its own */
};

/* Of one instruction. */
struct php_line {
	uint64_t at, identity; /* of its function */
	uint32_t line;
	uint8_t opcode;
	uint32_t kind; /* of an instruction that includes a file */
};

struct php {
	struct interp base; /* first */
	struct php_tables tables;
	uint64_t globals, end; /* addresses of executor_globals */
	struct php_function *functions;
	struct php_string *strings;
	struct php_line *lines;
	struct strtab texts;
	/* The part of the stack of frames that was read last. */
	uint8_t window[PHP_WINDOW];
	uint64_t window_at, n_window;
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
