/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ELF notes (gABI, "Note Section"), wherever they stand: a PT_NOTE segment, a SHT_NOTE section,
 * /sys/kernel/notes. The bytes are a stranger's: every length is checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor;

struct note {
	uint32_t type;
	/* Without its final 0; not terminated. Borrowed from the bytes, as desc is. */
	const char *name;
	size_t n_name;
	const uint8_t *desc;
	size_t n_desc;
};

/* Takes the next note; false at the end and at one that does not fit. align: of the segment or
 * section, 8 or (whatever else it says) 4. Padding counts from the start of the cursor. */
bool notes_next(struct cursor *c, uint64_t align, struct note *ret);

/* The first GNU build id among n bytes of notes, of 1 to max bytes: its length, and where it stands
 * in *ret; 0 without one. */
size_t notes_find_build_id(const void *bytes, size_t n, uint64_t align, size_t max,
			   const uint8_t **ret);

bool note_is(const struct note *note, uint32_t type, const char *name);
