/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How our walk of a sample stands to libdw's. */
#include <stddef.h>
#include <stdint.h>

enum relation {
	RELATION_IDENTICAL,
	RELATION_OURS_LONGER,  /* libdw's is the beginning of ours */
	RELATION_OURS_SHORTER, /* ours is the beginning of libdw's */
	RELATION_DIFFERENT,
	RELATION_N
};
static const char *const relation_names[RELATION_N] = {"identical", "libdw-shorter", "libdw-longer",
						       "different"};

/* Behind it, where libdw read whole files when the sample was recorded, and cannot be asked again.
 */
#define RELATION_OF_WHOLE_FILES " on the whole files"

static inline enum relation relation_of(const uint64_t *ours, size_t n_ours, const uint64_t *theirs,
					size_t n_theirs)
{
	size_t same = 0;

	while (same < n_ours && same < n_theirs && ours[same] == theirs[same])
		same++;
	if (same == n_ours && same == n_theirs)
		return RELATION_IDENTICAL;
	if (same == n_theirs)
		return RELATION_OURS_LONGER;
	return same == n_ours ? RELATION_OURS_SHORTER : RELATION_DIFFERENT;
}
