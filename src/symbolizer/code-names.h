/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for code that processes compile while they run, from their jitdump files and perf maps.
 * Bounded: the process whose names were not needed for the longest time makes room for a new one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

struct role;
struct code_names;

/* How a process describes its code. */
enum code_source { CODE_JITDUMP, CODE_PERF_MAP, N_CODE_SOURCES };

/* role and limits are borrowed. 0 or -ENOMEM. */
int code_names_new(struct code_names **ret, struct role *role, const struct symbol_limits *limits);
struct code_names *code_names_free(struct code_names *c);

/* Takes fd, and closes an earlier one of that process and source. */
void code_names_add(struct code_names *c, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd);
/* Call it for each window: the next look-ups read what was added to the files. Forgets the names of
 * processes that no look-up was for in this many windows. */
#define CODE_NAMES_KEPT 30
void code_names_refresh(struct code_names *c);
/* Does the process have a file with times, that is, a jitdump file? */
bool code_names_have_times(const struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns);
/*
 * The function at an address at a time (CLOCK_MONOTONIC; UINT64_MAX: now); times of one process
 * must not go back between two refreshes. 0; 1: none is known. ret->start distinguishes functions
 * and is no address: another function may have been there before. Texts are valid until the next
 * call.
 */
int code_names_lookup(struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns,
		      uint64_t address, uint64_t time_ns, struct symbol *ret);

/* The memory of all names, in bytes. */
uint64_t code_names_bytes(const struct code_names *c);
/* Frees names beyond the budget, except those of one process; the next look-up reads them again. */
void code_names_trim(struct code_names *c, uint64_t max_bytes);
