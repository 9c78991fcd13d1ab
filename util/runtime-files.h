/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runtimes whose frames perfwalk reads in the memory of a process: how their files are called,
 * and what files of other names export that hold them, as runtime-rows.h has it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum runtime_use {
	RUNTIME_STEPS = 1,  /* its frames are on the native stack (runtimes/stepper.h) */
	RUNTIME_CHAINS = 2, /* it keeps a chain of them (runtimes/interp.h) */
	RUNTIME_ANY = RUNTIME_STEPS | RUNTIME_CHAINS,
	RUNTIME_HIDDEN = 4, /* of a file alone: it holds one, and exports nothing of it */
};

/*
 * How likely a mapped file holds a runtime of such a use, by its path (n bytes), also if the path
 * ends with " (deleted)". 0: it does not. Of several files in one process the one with the highest
 * rank counts: a library is 2 or more, a program that may need that library 1.
 */
int runtime_file_rank(const char *path, size_t n, enum runtime_use use);
/* Are both named like files of one runtime, such as its program and its library? */
bool runtime_files_are_alike(const char *a, const char *b, enum runtime_use use);
/*
 * The symbols of row i, all of which a file exports that holds that runtime: RUNTIME_MAX_SYMBOLS,
 * or a NULL behind the last one. *ret_use: what its frames are. NULL: there are fewer rows.
 */
#define RUNTIME_MAX_SYMBOLS 4
const char *const *runtime_file_symbols(size_t i, enum runtime_use *ret_use);
/* Prints all runtimes and how their files are called, in one line without an end. */
void runtime_files_print(FILE *out);
/* Does a section of that name say that a file holds a runtime, whatever it exports? */
bool runtime_file_is_section(const char *name);
/* Is a program, by its path, likely to have a chain of such frames? Also true of servers that load
 * an interpreter's library later. */
bool runtime_file_may_chain(const char *path);
