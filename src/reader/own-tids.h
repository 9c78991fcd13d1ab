/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What only the broker knows of a thread. The reader asks for each once, again soon, because a
 * thread may get its priority after its start, and then from time to time, because another thread
 * may get the number.
 */
#include <stdbool.h>
#include <stdint.h>

/* OWN_TIDS_STATS: threads whose stat files are open at a time. */
enum { OWN_TIDS = 1024, OWN_TIDS_FIRST_USES = 32, OWN_TIDS_USES = 4096, OWN_TIDS_STATS = 256 };

struct own_thread {
	uint32_t number;      /* in its own pid namespace; 0: there is no such thread */
	bool in_front;	      /* it has a real-time priority: a reader does not stop it */
	uint64_t robust_list; /* the address of its list of robust locks; 0: unknown */
	int stat;	      /* its stat file (thread-stat.h); negative: not open */
};

struct own_tids {
	struct own_tid {
		uint32_t tid;
		bool asked_soon;
		struct own_thread thread; /* number 0: the broker has not answered yet */
		uint32_t n_uses;
		uint64_t asked_ns;
		uint64_t left_ns; /* when it was last found elsewhere; 0: never */
	} items[OWN_TIDS];
	uint32_t n_stats, hand; /* open ones; where the next one to close is looked for */
	void (*ask)(void *ctx, uint32_t tid, bool with_stat);
	void *ctx;
};

void own_tids_init(struct own_tids *o, void (*ask)(void *ctx, uint32_t tid, bool with_stat),
		   void *ctx);
void own_tids_deinit(struct own_tids *o);
/* number 0: unknown yet. with_stat: its stat file is of use; it is borrowed until the next call. */
struct own_thread own_tids_find(struct own_tids *o, uint32_t tid, bool with_stat, uint64_t now_ns);
/* The thread was found on another CPU than that of its sample. */
void own_tids_note_left(struct own_tids *o, uint32_t tid, uint64_t now_ns);
/* Was that so within the last minute? */
bool own_tids_leaves(struct own_tids *o, uint32_t tid, uint64_t now_ns);
/* The broker's answer. Takes its stat file. */
void own_tids_put(struct own_tids *o, uint32_t tid, const struct own_thread *thread);
