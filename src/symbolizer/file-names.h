/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files of frames, by the uid of their module, with their symbols and debug files. The
 * descriptor of the least recently used file makes room for a new one. Files with the same contents
 * share one table of symbols.
 *
 * A debug file that this host lacks may be fetched from a server. Until it has come, the names of
 * its module come from the file alone; then the module is named again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

struct role;
struct ask;
struct file_names;
struct time_share;

/* The descriptor of a module was given up to stay within max_files. */
typedef void (*file_names_closed_fn)(void *ctx, uint64_t uid);

/* Everything is borrowed; limits are read again when a file is opened. 0 or -ENOMEM. */
int file_names_new(struct file_names **ret, struct role *role, struct ask *ask,
		   const struct symbol_limits *limits, uint32_t max_files,
		   file_names_closed_fn closed, void *ctx);
struct file_names *file_names_free(struct file_names *n);

/* Takes fd, and closes an earlier one of that uid. pid: a process that had the file mapped; 0:
 * unknown. */
void file_names_add(struct file_names *n, uint64_t uid, uint32_t pid, const char *path, int fd);
/* Closes all files, because the limits have changed; they are opened again when needed. */
void file_names_close(struct file_names *n);

/* A debug file that this host lacked has arrived, or no server has it. The frames of its module are
 * named again. */
void file_names_debug_file_came(struct file_names *n, const uint8_t *build_id, size_t n_build_id,
				bool found);
/* Asks again for the debug files of all modules that wait for one, or of all modules. */
void file_names_ask_again(struct file_names *n, bool all);
/* The number of debug files that may still come. */
uint32_t file_names_n_awaited(const struct file_names *n);

/* Marks this file as being read: if we die now, the broker sets it aside. */
void file_names_point(struct file_names *n, uint64_t uid);
/* Call it before each window: files identified from now on count as used later than others, and
 * each is checked once more for having been written to. */
void file_names_begin(struct file_names *n);
/* The ids of a module's file, valid until the next file_names_add(). NULL: there is no such module,
 * or its file was written to. */
const struct symbol_file_id *file_names_identify(struct file_names *n, uint64_t uid);
/* The symbols of a module's file, valid until the next call of a function here. NULL also if the
 * file cannot be read. */
struct symbol_file *file_names_symbols(struct file_names *n, uint64_t uid);
/* Was the file written to by now? Then its names since file_names_begin() may be wrong. */
bool file_names_changed(struct file_names *n, uint64_t uid);
/* symbol_find_data() in the module's file; 1 also without that module. */
int file_names_data(struct file_names *n, uint64_t uid, uint64_t vaddr, char *name, size_t n_name,
		    uint64_t *ret_start);
/* The path of a module's file, borrowed until the next file_names_add(); "": unknown. */
const char *file_names_path(struct file_names *n, uint64_t uid);
/* Must the module be named again, since its debug file has come? Answers true once. */
bool file_names_take_renamed(struct file_names *n, uint64_t uid);

/* The share of time for naming the frames of this module's file. NULL: there is no such module.
 * Valid until the next file_names_add(). */
struct time_share *file_names_cost(struct file_names *n, uint64_t uid);

/* Frees what can be read from the file again. */
void file_names_trim_file(struct file_names *n, uint64_t uid);
/* The memory of all tables, in bytes. */
uint64_t file_names_bytes(const struct file_names *n);
/* symbol_file_refused() of the module's file; 0: it is not open. */
uint64_t file_names_refused(struct file_names *n, uint64_t uid);
/* Frees tables beyond the budget, the least recently used first, and the lines of a file first. */
void file_names_trim(struct file_names *n, uint64_t max_bytes);
