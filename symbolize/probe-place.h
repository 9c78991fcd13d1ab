/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where in an ELF file a probe of user code goes: a function by its name, or a marker that the
 * program's authors left (USDT, the note "stapsdt" of systemtap's sys/sdt.h). The kernel wants
 * offsets in the file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "symbolize/symbolize.h"

#define PROBE_PLACES_MAX 32

struct probe_place {
	uint64_t offset;
	/* Where the program counts who watches a marker (its semaphore): without it the marker may
	 * be skipped. 0: there is none. */
	uint64_t counter;
};

/*
 * The places of a probe in the file fd, which stays the caller's. what: "FUNCTION" (as linked, or
 * demangled, with or without the parameters), "FUNCTION+OFFSET", "0xADDRESS" (as nm prints it), or
 * with marker "PROVIDER:NAME". How many, of which a function has one; -errno: error says what is
 * wrong and what to do. open_debug may be NULL. error NULL: nobody has asked for this file, so
 * nothing is explained, and what would take long is left out.
 */
int probe_find_places(int fd, const char *what, bool marker, symbol_open_debug_fn open_debug,
		      void *ctx, struct probe_place ret[PROBE_PLACES_MAX], char *error,
		      size_t n_error);

/* A line for each marker of the file: how many, or -errno. */
int probe_list_markers(int fd, FILE *out);
