/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a process can have mapped anything since it was looked at, by its sizes in statm: that is
 * one read, and asks nobody. One that has mapped as much as it has unmapped seems to be the same.
 */
#include <stdbool.h>
#include <stdint.h>

struct outside;

/* {0} at first. */
struct process_size {
	bool open, differs;
	int fd; /* its statm, which stays that of this process */
	uint64_t all_pages, data_pages;
};

/* Its sizes of now are those to compare with. Opens statm if it is not open yet, by a question. */
void process_size_keep(struct process_size *s, struct outside *o, uint32_t pid);
/* Whether it has these still. false also if that is not known; once false, until they are kept. */
bool process_size_is_same(struct process_size *s);
void process_size_close(struct process_size *s);
