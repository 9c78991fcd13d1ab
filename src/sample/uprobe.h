/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Probes of user code: places in a file, at which the kernel makes an event of every pass of every
 * process that runs the file's code, from Linux 3.14 on. Where a function or a marker (USDT) stands
 * in the file is found by others, who may read it (symbolize/probe-place.h).
 *
 * Each place becomes an event of tracefs, in a group of this process, which is gone with it; what a
 * process left that was killed, the next one removes. Where tracefs is not mounted, perf opens the
 * places itself (from 4.17 on): not of processes, whose threads and children it would follow by a
 * path that it reads in their memory, and so fail their clone(2).
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/sample/sample.h"

struct perf_event_attr;

#define UPROBE_MAX_SITES 32

struct uprobe_site {
	uint64_t offset;  /* in the file */
	uint64_t counter; /* of who watches it, in the file; 0: none */
	/* A number of 8 bytes in memory that each event brings along (sample_fetched()): how far
	 * behind where the file would begin if all of it were mapped as its code is. 0: none. */
	uint64_t fetched;
	uint64_t config; /* of the event */
	int keeper_fd;	 /* an event of all processes (probe.c); -1: none */
};

/* Lives as long as the process. */
struct sample_uprobe {
	char *path, *what; /* as given: the file, and "FUNCTION+OFFSET" or "PROVIDER:NAME" */
	bool marker;
	bool placed;
	bool by_path;	    /* perf opens it itself */
	uint32_t perf_type; /* PERF_TYPE_* or a PMU's */
	int fd;		    /* of the file */
	char fd_path[32];   /* by which the kernel finds it: the same file, whatever becomes of its
			       name */
	uint32_t number;    /* among ours in tracefs */
	uint32_t n_sites;
	struct uprobe_site sites[UPROBE_MAX_SITES];
	struct sample_uprobe *next;
};

/* How far "uprobe:/PATH:" or "usdt:/PATH:" reaches in which neither commas nor slashes have a
 * meaning; 0: it is no probe. */
size_t uprobe_prefix(const char *text);
/*
 * "uprobe:/PATH:FUNCTION", "usdt:/PATH:PROVIDER:NAME": an event without places. The same text gives
 * the same probe. 0; -EINVAL: error says what is wrong; -ENOMEM.
 */
int uprobe_parse(const char *text, struct sample_event *ret, char *error, size_t n_error);
/*
 * Places it in a file (fd: taken over, also on failure) at n offsets. Each must lie within the
 * file; what stands there is not looked at. One that is placed in the same file already stays as it
 * is. 0; -errno: error says cause and remedy.
 */
int uprobe_place(struct sample_uprobe *u, int fd, const struct uprobe_site *sites, uint32_t n,
		 char *error, size_t n_error);

/*
 * A further probe of the same kind in another file (fd: taken over, also on failure), at n offsets.
 * Its events come before it, and go before it. 0; -errno: error says cause and remedy.
 */
int uprobe_new_copy(struct sample_uprobe **ret, const struct sample_uprobe *of, int fd,
		    const struct uprobe_site *sites, uint32_t n, char *error, size_t n_error);
struct sample_uprobe *uprobe_free_copy(struct sample_uprobe *u);

/* What its events are opened with. */
void uprobe_attr(const struct sample_uprobe *u, uint32_t site, struct perf_event_attr *attr);
/* Text for the user: why an event of it cannot be opened. */
void uprobe_explain(const struct sample_uprobe *u, int error, char *buf, size_t size);
