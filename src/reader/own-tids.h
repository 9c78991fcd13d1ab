/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The numbers that threads have in their own pid namespace, which interpreters know them by. The
 * broker is asked for each once, and again at times: a number is used for another thread one day.
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

/* 0: not known yet. ret_robust_list: where its list of robust locks is; NULL: not wanted. */
uint32_t own_tids_find(struct own_tids *o, uint32_t tid, uint64_t now_ns,
		       uint64_t *ret_robust_list);
/* The answer; own 0: there is no such thread. */
void own_tids_put(struct own_tids *o, uint32_t tid, uint32_t own, uint64_t robust_list);
