/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What all processes of one runtime have one of: most of a host's sleep, and those that run share
 * the room for what is remembered. Each has its own entries, which have its number: what a process
 * says holds for itself alone.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/strtab.h"

/* A memo's struct begins with it. */
struct memo {
	uint32_t n_users, last_owner;
	struct strtab texts;
};

/*
 * Joins *memo, which is made with the first user: `size` bytes, zeros. *ret_owner: the number of
 * the process, from 1 on. 0; -ENOMEM.
 */
static inline int memo_join(struct memo **memo, size_t size, uint32_t max_text_bytes,
			    uint32_t *ret_owner)
{
	if (!*memo) {
		*memo = calloc(1, size);
		if (!*memo)
			return -ENOMEM;
		strtab_init(&(*memo)->texts, max_text_bytes);
	}
	(*memo)->n_users++;
	/* Numbers repeat after 2^32 processes; entries of the last one are long gone by then. */
	(*memo)->last_owner = (*memo)->last_owner == UINT32_MAX ? 1 : (*memo)->last_owner + 1;
	*ret_owner = (*memo)->last_owner;
	return 0;
}

/* Has it other users? The last one frees what else the memo owns before it leaves. */
static inline bool memo_is_shared(const struct memo *memo)
{
	return memo->n_users > 1;
}

/* Frees *memo after the last user. */
static inline void memo_leave(struct memo **memo)
{
	if (--(*memo)->n_users > 0)
		return;
	strtab_deinit(&(*memo)->texts);
	free(*memo);
	*memo = NULL;
}
