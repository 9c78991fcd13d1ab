/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of interp.h: what all interpreters have, and what each of them brings. */
#include "runtimes/eval-code.h"
#include "runtimes/image.h"
#include "runtimes/interp.h"
#include "runtimes/trust.h"

/*
 * A kind of interpreter. Its functions get its own struct of `size` bytes, all zeros at first,
 * which begins with a struct interp.
 */
struct interp_type {
	const char *name; /* "CPython" */
	enum interp_kind kind;
	size_t size;
	/* A read of so many bytes may be next: a walk that has fewer left has spent its budget. */
	uint32_t read_bytes;
	/* As interp_rank(): 2, a library of that interpreter; 1, a program that may only load it
	 * from one; 0, neither. */
	int (*rank)(const char *path);
	/*
	 * The image is open. Sets release, eval, if it is known yet, and texts. 0; -ENOENT: there
	 * is no such interpreter in it; -ENOTSUP: one that is not understood (*ret_why, a
	 * literal); -EAGAIN: it has not started yet; -ENOMEM.
	 */
	int (*open)(struct interp *p, const char **ret_why);
	/* Frees what it has, opened or not, but not p. */
	void (*close)(struct interp *p);
	bool (*is_tried)(const struct interp *p);
	/* Forgets all that refers to texts. */
	void (*forget)(struct interp *p);
	/* As interp_walk(), without its counts; max: CHAIN_MAX_FRAMES at most; *ret_n is 0. */
	enum chain_result (*walk)(struct interp *p, const struct chained_thread *thread,
				  struct chained_frame *frames, size_t max, size_t *ret_n);
	/* Where each offset came from. */
	void (*explain)(const struct interp *p, FILE *out);
};

struct interp {
	const struct interp_type *type;
	struct memory memory; /* its budget is that of the walk */
	struct image image;
	struct eval_code eval;
	char release[32];
	struct strtab *texts; /* borrowed of the type; cleared between walks */
	struct trust_walks walks;
	struct chain_stats stats;
};
