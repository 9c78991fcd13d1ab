/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ELF notes (gABI, "Note Section") of a PT_NOTE segment, a SHT_NOTE section or /sys/kernel/notes.
 * The bytes are untrusted: every length is checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor;

struct note {
	uint32_t type;
	/* Not terminated by a 0. Borrowed from the bytes, like desc. */
	const char *name;
	size_t n_name;
	const uint8_t *desc;
	size_t n_desc;
};

/* Reads the next note; false at the end and at one that does not fit. align: that of the segment or
 * section; 8, any other value means 4. Padding is relative to the start of the cursor. */
bool notes_next(struct cursor *c, uint64_t align, struct note *ret);

/* Finds the first GNU build id of 1 to max bytes in n bytes of notes. Returns its length and sets
 * *ret to its place; 0: none. */
size_t notes_find_build_id(const void *bytes, size_t n, uint64_t align, size_t max,
			   const uint8_t **ret);

/* Has the note that type and that name? */
bool note_is(const struct note *note, uint32_t type, const char *name);
