/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Probes of user code: places in a file at which the kernel makes an event whenever a process
 * executes the file's code there, from Linux 3.14 on. symbolize/probe-place.h finds the place of a
 * function or a marker (USDT), in a process that may read the file.
 *
 * Each place becomes an event of tracefs, in a group of this process, which removes the group at
 * its end; the next process removes what a killed one left. Without tracefs, perf opens the places
 * itself (from 4.17 on), but not for single processes: it would follow their threads and children
 * by a path that it reads in their memory, and so make their clone(2) fail.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/sample/sample.h"

struct perf_event_attr;

#define UPROBE_MAX_SITES 32

struct uprobe_site {
	uint64_t offset;  /* in the file */
	uint64_t counter; /* offset of the marker's counter of watchers; 0: none */
	/* A number of 8 bytes in memory that each event has (sample_fetched()): its distance from
	 * the address at which the file would begin if all of it were mapped like its code. 0:
	 * none. */
	uint64_t fetched;
	uint64_t config; /* of the event */
	int keeper_fd;	 /* an event of all processes (probe.c); -1: none */
};

/* Lives as long as the process. */
struct sample_uprobe {
	char *path, *what; /* as given: the file, and "FUNCTION+OFFSET" or "PROVIDER:NAME" */
	bool marker;
	bool placed;
	bool by_path;	    /* perf opens it itself, without tracefs */
	uint32_t perf_type; /* PERF_TYPE_* or a PMU's */
	int fd;		    /* of the file */
	/* /proc/PID/fd/N: the kernel finds the same file by it, even if the file was renamed. */
	char fd_path[32];
	uint32_t number; /* among this process's probes in tracefs */
	uint32_t n_sites;
	struct uprobe_site sites[UPROBE_MAX_SITES];
	struct sample_uprobe *next;
};

/* The length of "uprobe:/PATH:" or "usdt:/PATH:" at the start of text, in which commas and slashes
 * are ordinary characters; 0: it is no probe. */
size_t uprobe_prefix(const char *text);
/*
 * "uprobe:/PATH:FUNCTION", "usdt:/PATH:PROVIDER:NAME": an event without places. The same text gives
 * the same probe. 0; -EINVAL: error says what is wrong; -ENOMEM.
 */
int uprobe_parse(const char *text, struct sample_event *ret, char *error, size_t n_error);
/*
 * Places a probe in a file at n offsets. Takes fd, also on failure. Each offset must lie within the
 * file; the code there is not checked. A probe that is placed in the same file stays as it is. 0;
 * -errno: error says cause and remedy.
 */
int uprobe_place(struct sample_uprobe *u, int fd, const struct uprobe_site *sites, uint32_t n,
		 char *error, size_t n_error);

/*
 * Makes a probe of the same kind in another file, at n offsets. Takes fd, also on failure. Close
 * its events before uprobe_free_copy(). 0; -errno: error says cause and remedy.
 */
int uprobe_new_copy(struct sample_uprobe **ret, const struct sample_uprobe *of, int fd,
		    const struct uprobe_site *sites, uint32_t n, char *error, size_t n_error);
struct sample_uprobe *uprobe_free_copy(struct sample_uprobe *u);

/* Sets the attributes with which the event of a place is opened. */
void uprobe_attr(const struct sample_uprobe *u, uint32_t site, struct perf_event_attr *attr);
/* Writes a text for the user: why an event of the probe cannot be opened. */
void uprobe_explain(const struct sample_uprobe *u, int error, char *buf, size_t size);
/* Why an event with by_path is refused for a process or a command, and what to do; a literal. */
const char *uprobe_tracefs_remedy(void);
