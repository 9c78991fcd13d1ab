/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to the interpreters behind interp.h: the functions that each provides, and shared state.
 */
#include "runtimes/eval-code.h"
#include "runtimes/image.h"
#include "runtimes/interp.h"
#include "runtimes/trust.h"

/*
 * A kind of interpreter. Its functions get its own struct of `size` bytes, which begins with a
 * struct interp and is zeroed at first.
 */
struct interp_type {
	const char *name; /* "CPython" */
	enum runtime_kind kind;
	struct chain_rules rules;
	size_t size;
	/* Its largest read: a walk with fewer bytes left has used up its budget. */
	uint32_t read_bytes;
	bool knows_stacks; /* it finds a thread whose number is unknown by its stack pointer */
	/*
	 * Called with the image open. Sets release and texts, and eval if it is known yet. 0;
	 * -ENOENT: there is no such interpreter in it; -ENOTSUP: one that we do not understand
	 * (*ret_why, a literal); -EAGAIN: it has not started yet; -ENOMEM.
	 */
	int (*open)(struct interp *p, const char **ret_why);
	/* Frees what p owns, also after a failed open, but not p. */
	void (*close)(struct interp *p);
	bool (*is_tried)(const struct interp *p);
	/* Drops all references to texts, which are cleared. */
	void (*forget)(struct interp *p);
	/* As interp_walk(), which counts; max: at most CHAIN_MAX_FRAMES; *ret_n is 0 at first. */
	enum chain_result (*walk)(struct interp *p, const struct chained_thread *thread,
				  struct chained_frame *frames, size_t max, size_t *ret_n);
	/* Prints where each offset came from. */
	void (*explain)(const struct interp *p, FILE *out);
};

struct interp {
	const struct interp_type *type;
	struct memory memory; /* with the budget of the current walk */
	struct image image;
	struct eval_code eval;
	char release[32];
	struct strtab *texts; /* borrowed from the type; may be cleared between walks */
	struct trust_walks walks;
	struct chain_stats stats;
};
