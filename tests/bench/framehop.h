/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * framehop (Rust) for the benchmark, through the adapter in framehop/: a shared library that
 * unwind.sh builds with cargo and the bench loads if it is given. One file may be in any number of
 * processes; processes are freed before the files they use, and the cache last.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct framehop_file;
struct framehop_process;
struct framehop_cache;

struct framehop {
	void *library;				   /* NULL: not there */
	struct framehop_file *(*file_new)(int fd); /* NULL: not an ELF file */
	struct framehop_file *(*file_new_memory)(const void *image, size_t n); /* borrowed */
	void (*file_free)(struct framehop_file *f);
	struct framehop_process *(*process_new)(void);
	void (*process_free)(struct framehop_process *p);
	/* An executable mapping [start, end) of the file; bias as in struct unwind_mapping. */
	void (*process_add)(struct framehop_process *p, const struct framehop_file *f,
			    uint64_t start, uint64_t end, uint64_t bias);
	struct framehop_cache *(*cache_new)(void);
	void (*cache_free)(struct framehop_cache *c);
	/* Addresses as in struct unwind_frame; how many. */
	size_t (*walk)(const struct framehop_process *p, struct framehop_cache *c, uint64_t pc,
		       uint64_t sp, uint64_t fp, const uint8_t *stack, size_t n_stack,
		       uint64_t *addresses, size_t max);
	void (*cache_stats)(const struct framehop_cache *c, uint64_t *hits, uint64_t *misses);
};

/* false: the library cannot be loaded, told on standard error. */
bool framehop_load(struct framehop *ret, const char *path);
