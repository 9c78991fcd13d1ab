/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that frames lie in, by the uid of their module, with their symbols and debug files. The
 * descriptors of those that were not used for longest make room for new ones. Files with the same
 * contents have one table of symbols.
 *
 * A debug file that this host has not may be fetched from elsewhere: its module goes on without,
 * and is to be named anew when it has come.
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

/* limits: borrowed, and looked at again when a file is opened. */
int file_names_new(struct file_names **ret, struct role *role, struct ask *ask,
		   const struct symbol_limits *limits, uint32_t max_files,
		   file_names_closed_fn closed, void *ctx);
struct file_names *file_names_free(struct file_names *n);

/* Takes fd. A second one of the same uid replaces the first. pid: of a process that had it mapped,
 * 0: none that is known. */
void file_names_add(struct file_names *n, uint64_t uid, uint32_t pid, const char *path, int fd);
/* Closes all files, because the limits have changed; they are opened again when needed. */
void file_names_close(struct file_names *n);

/* A debug file that this host lacked has arrived, or no server has it. The frames of its module get
 * their names anew. */
void file_names_debug_file_came(struct file_names *n, const uint8_t *build_id, size_t n_build_id,
				bool found);
/* Asks again for the debug files of all modules that wait for one, or of all modules. */
void file_names_ask_again(struct file_names *n, bool all);
/* Debug files that may come yet. */
uint32_t file_names_n_awaited(const struct file_names *n);

/* Marks this file as being read: if we die now, the broker sets it aside. */
void file_names_point(struct file_names *n, uint64_t uid);
/* Files identified from here on count as used later than those before. Whether one was written to
 * is looked at once until the next call. */
void file_names_begin(struct file_names *n);
/* NULL: there is no such module, or it was written to since. Until the next file_names_add(). */
const struct symbol_file_id *file_names_identify(struct file_names *n, uint64_t uid);
/* NULL also if it cannot be read. Until the next call of a function here. */
struct symbol_file *file_names_symbols(struct file_names *n, uint64_t uid);
/* Whether it was written to by now: what it has named since file_names_begin() may be wrong. */
bool file_names_changed(struct file_names *n, uint64_t uid);
/* symbol_find_data() in the module's file; 1 also without that module. */
int file_names_data(struct file_names *n, uint64_t uid, uint64_t vaddr, char *name, size_t n_name,
		    uint64_t *ret_start);
/* Empty: not known. */
const char *file_names_path(struct file_names *n, uint64_t uid);
/* Whether it is to be named anew; once. */
bool file_names_take_renamed(struct file_names *n, uint64_t uid);

/* What naming the frames of this module's file may cost, and has cost. NULL: there is no such
 * module. Valid until the next file_names_add(). */
struct time_share *file_names_cost(struct file_names *n, uint64_t uid);

/* Gives back what can be read from the file again. */
void file_names_trim_file(struct file_names *n, uint64_t uid);
/* Memory held by all tables. */
uint64_t file_names_bytes(const struct file_names *n);
/* What symbol_file_refused() counts in it; 0: it is not open. */
uint64_t file_names_refused(struct file_names *n, uint64_t uid);
/* Tables beyond the budget go, the least recently used first; of a file, its lines first. */
void file_names_trim(struct file_names *n, uint64_t max_bytes);
