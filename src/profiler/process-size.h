/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a process can have mapped anything since it was looked at, by its sizes in statm: that is
 * one read, and asks nobody. Some programs map and unmap the same memory all the time, so the last
 * sizes at which it was looked at count. One that has mapped as much as it has unmapped, or as much
 * as leads to another of these sizes, seems to be the same.
 */
#include <stdbool.h>
#include <stdint.h>

struct outside;

enum { PROCESS_SIZES = 8 };

/* {0} at first. */
struct process_size {
	bool open, differs, stood;
	int fd; /* its statm, which stays that of this process */
	struct process_pages {
		uint64_t all, data;
	} kept[PROCESS_SIZES], last;
	uint32_t n_kept; /* so far: the next one takes the place of the oldest */
	/* When it had other sizes than these and the last ones for the first time, and the last
	 * read. */
	uint64_t since_ns, read_ns;
};

/* Its sizes of now are among those to compare with. Opens statm if it is not open yet, by a
 * question. */
void process_size_keep(struct process_size *s, struct outside *o, uint32_t pid, uint64_t now_ns);
/*
 * Whether it has one of these. false also if that is not known; once false, until its sizes are
 * kept. Then s->stood says whether it has had other sizes, after it had stood for so long. min_ns:
 * also between reads of sizes that differ.
 */
bool process_size_is_same(struct process_size *s, uint64_t now_ns, uint64_t min_ns);
void process_size_close(struct process_size *s);
