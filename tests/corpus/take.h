/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the corpus's recorder: files and mappings of a process, samples, what is kept of them.
 */
#include <sys/types.h>

#include "tests/corpus/oracle.h"
#include "tests/corpus/touch.h"
#include "tests/unit/unwind-proc.h"
#include "unwind/internal.h"
#include "unwind/recorded.h"
#include "util/array.h"

enum {
	TAKE_MAX_FRAMES = 512,
	TAKE_STACK_BYTES = 64 * 1024,
	TAKE_MAX_STEPS = 400000,
	TAKE_MAX_TIME_S = 60,
};

/* A mapped file, whole in memory. */
struct take_file {
	char *path;
	uint64_t dev, ino;
	int fd;
	struct touch_range bytes; /* n: the file's size */
	bool vdso, watched;	  /* what opening it reads is known */
	struct unwind_module *module;
	uint32_t block; /* in the output + 1; 0: not in it */
};

struct take_line {
	uint64_t start, end, offset, bias;
	uint32_t file; /* or RECORDED_ANONYMOUS, RECORDED_FILE_MISSING */
	bool wanted;   /* in the output */
};

/* The executable mappings of the process at some time. */
struct take_maps {
	uint64_t hash;
	ARRAY(struct take_line) lines;
	uint32_t block; /* as in take_file */
	uint32_t found; /* line of the last take_find() */
};

struct take_sample {
	struct unwind_regs regs;
	uint8_t *stack; /* page-aligned; n is what was copied, then what is needed */
	size_t n_stack, n_copied;
	uint32_t maps;
	uint64_t key; /* of its shape: the row it stopped in, and how its walk ended */
	bool special; /* the row is not a plain one */
	enum unwind_outcome outcome;
	uint64_t ours[TAKE_MAX_FRAMES], theirs[TAKE_MAX_FRAMES];
	size_t n_ours, n_theirs;
};

struct take {
	struct unwinder *u;
	ARRAY(struct take_file) files;
	ARRAY(struct take_maps) maps;
	ARRAY(struct take_sample *) samples;
	bool ours_only; /* libdw reads too much of these files: its answer is kept instead */
	struct take_maps *current; /* that take_find() looks into */
	int32_t last_maps;	   /* of the last look; -1: look again */
	/* What make.sh asks for. */
	const char *innermost, *among;
	uint32_t max_samples;
	uint64_t interval_ns, begin;
	bool complete_only;
	uint64_t steps;
	/* The vdso where the process has none of its own (take-qemu.c). */
	const uint8_t *vdso;
	size_t n_vdso;
};

/* take.c: a stop of the program; kept where its shape is new. The stack is copied. */
void take_look(struct take *t, pid_t pid, const struct proc_sample *taken);

/*
 * take-ptrace.c, or take-qemu.c for programs of aarch64: runs the program, and looks at where it
 * stops. -errno: it cannot be started.
 */
int take_run(struct take *t, char **argv);
/* The mappings in the form of /proc/PID/maps, malloc'ed. */
int take_read_maps(struct take *t, pid_t pid, char **ret);

/* take-maps.c: the process's mappings now, as a row of t->maps; files are opened. -errno. */
int take_maps_load(struct take *t, pid_t pid);
/* unwind_find_fn over a struct take. */
bool take_find(void *ctx, uint64_t pc, struct unwind_mapping *ret);
int take_open_module(struct take *t, struct take_file *f);
void take_close_modules(struct take *t);

/* take-cut.c: walks the sample by both, notes all that they read. */
int take_cut(struct take *t, struct take_sample *s);
/* take-write.c: the file of samples, and what is expected of them. */
int take_write(struct take *t, const char *path, const char *expect_path, const char *label);
