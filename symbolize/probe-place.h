/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The place of a probe of user code in an ELF file, as an offset in the file, which the kernel
 * wants: a function by its name, or a marker that the program's authors put there (USDT, the note
 * "stapsdt" of systemtap's sys/sdt.h).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "symbolize/symbolize.h"

#define PROBE_PLACES_MAX 32

struct probe_place {
	uint64_t offset;
	/* Offset of the counter of those who watch a marker (its semaphore): while it is 0, the
	 * program may skip the marker. 0: there is none. */
	uint64_t counter;
};

/*
 * Finds the places of a probe in the file fd, which stays the caller's. what: "FUNCTION" (as
 * linked, or demangled, with or without the parameters), "FUNCTION+OFFSET", "0xADDRESS" (as nm
 * prints it), or with marker "PROVIDER:NAME". Returns their number, 1 for a function; -errno: error
 * says what is wrong and what to do. open_debug may be NULL. error NULL: the user did not name this
 * file, so nothing is explained, and slow searches are left out.
 */
int probe_find_places(int fd, const char *what, bool marker, symbol_open_debug_fn open_debug,
		      void *ctx, struct probe_place ret[PROBE_PLACES_MAX], char *error,
		      size_t n_error);

/* Prints a line for each marker of the file. Returns their number, or -errno. */
int probe_list_markers(int fd, FILE *out);
