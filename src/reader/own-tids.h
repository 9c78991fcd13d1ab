/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The numbers of threads in their own pid namespace, which interpreters use. The reader asks the
 * broker for each once, and again from time to time, because another thread may get the number.
 */
#include <stdint.h>

enum { OWN_TIDS = 1024, OWN_TIDS_USES = 4096 };

struct own_tids {
	struct own_tid {
		uint32_t tid, own; /* own 0: the broker has not answered yet */
		uint64_t robust_list;
		uint32_t n_uses;
		uint64_t asked_ns;
	} items[OWN_TIDS];
	void (*ask)(void *ctx, uint32_t tid);
	void *ctx;
};

/* The number of a thread; 0: unknown yet. ret_robust_list: set to the address of its list of robust
 * locks; NULL: not wanted. */
uint32_t own_tids_find(struct own_tids *o, uint32_t tid, uint64_t now_ns,
		       uint64_t *ret_robust_list);
/* The broker's answer; own 0: there is no such thread. */
void own_tids_put(struct own_tids *o, uint32_t tid, uint32_t own, uint64_t robust_list);
