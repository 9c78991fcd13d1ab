/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For tests and benchmarks of the unwinder: a process's mappings and their modules, registers and
 * stack.
 */
#include <sys/types.h>

#include "unwind/unwind.h"

struct proc_mapping {
	uint64_t start, end, offset;
	struct unwind_module *module; /* borrowed from the module list */
	struct proc_module *file;     /* the same; NULL: not a file's, or it could not be opened */
	const uint8_t *image;	      /* of the vdso; NULL: a file's */
	size_t n_image;
	uint64_t bias;
	bool missing;
};

struct proc_module {
	char *path;
	uint64_t dev, ino, size;
	int fd;
	struct unwind_module *module;
	void *user; /* the caller's */
	struct proc_module *next;
};

/* Modules by file, shared by all processes of one unwinder. */
struct proc_modules {
	struct unwinder *u;
	struct proc_module *list;
	void *vdso; /* image, one for the host */
	size_t n_vdso;
	struct unwind_module *vdso_module;
};
void proc_modules_deinit(struct proc_modules *ms);
/* All modules anew, for another unwinder; proc_maps_renew() then tells the maps. */
void proc_modules_renew(struct proc_modules *ms, struct unwinder *u);

struct proc_maps {
	struct proc_mapping *items; /* executable ones, sorted */
	size_t n;
	uint64_t finds; /* calls of proc_find */
};

/* Reads /proc/PID/maps (or the given text, when not NULL). 0 or -errno. */
int proc_maps_load(struct proc_maps *maps, struct proc_modules *ms, pid_t pid, const char *text);
void proc_maps_deinit(struct proc_maps *maps);
void proc_maps_renew(struct proc_maps *maps, const struct proc_modules *ms);
/* unwind_find_fn over a struct proc_maps. */
bool proc_find(void *ctx, uint64_t pc, struct unwind_mapping *ret);
/* n bytes of the file or image that is mapped at address; false: there are none. */
bool proc_read(void *ctx, uint64_t address, uint8_t *ret, size_t n);

/* One sample: what both unwinders see. */
struct proc_sample {
	struct unwind_regs regs;
	const uint8_t *stack;
	size_t n_stack;
};

/* Registers and up to n bytes of stack of a thread that is stopped under ptrace. 0 or -errno. */
int proc_sample_take(pid_t tid, struct proc_sample *ret, uint8_t *stack, size_t n);

#define PROC_MAX_FRAMES 512
