/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for code that processes compile while they run, from their jitdump files and perf maps. The
 * processes that were not asked about for longest make room for new ones.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

struct role;
struct code_names;

/* How a process describes its code. */
enum code_source { CODE_JITDUMP, CODE_PERF_MAP, N_CODE_SOURCES };

int code_names_new(struct code_names **ret, struct role *role, const struct symbol_limits *limits);
struct code_names *code_names_free(struct code_names *c);

/* Takes fd, in place of one that was there. */
void code_names_add(struct code_names *c, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd);
/* A new window: the next lookups read what the files have got in the meantime. Names of processes
 * that nobody asked about in so many windows are forgotten. */
#define CODE_NAMES_KEPT 30
void code_names_refresh(struct code_names *c);
/* The process has a file with times in it. */
bool code_names_have_times(const struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns);
/*
 * The function at an address at a time (CLOCK_MONOTONIC; UINT64_MAX: now); times of one process do
 * not go back between two refreshes. 0; 1: none is known. ret->start tells functions apart and is
 * no address: another function may have been there before. Texts until the next call.
 */
int code_names_lookup(struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns,
		      uint64_t address, uint64_t time_ns, struct symbol *ret);

/* Memory held by all names. */
uint64_t code_names_bytes(const struct code_names *c);
/* Names beyond the budget go, but those of one process; the next lookup reads them again. */
void code_names_trim(struct code_names *c, uint64_t max_bytes);
