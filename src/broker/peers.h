/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One row for each kind of child, with all that the supervisor knows of it: it starts, joins, stops
 * and restarts children by these rows alone, and answers only the requests that they allow.
 * Children start in the order of the rows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/message.h"

/* Sets of kinds, and of types of requests. */
#define PEER_BIT(kind) (UINT32_C(1) << (kind))
#define ASK_BIT(type)  (UINT64_C(1) << ((type)-MESSAGE_ASK_MAPS))
_Static_assert(PEER_N <= 32 && MESSAGE_ANSWER - MESSAGE_ASK_MAPS <= 64, "fit into a set");
/* Is that a type of requests, which have a bit? */
static inline bool is_ask(uint32_t type)
{
	return type >= MESSAGE_ASK_MAPS && type < MESSAGE_ANSWER;
}

struct privileges;

struct peer_row {
	enum peer kind;
	uint32_t max; /* how many there may be; with more than one their names have an index */
	/* Kinds that get its results: it has a socket to each of their children. */
	uint32_t feeds;
	/* Kinds that must have ended before it is asked to finish, because they hand it data. */
	uint32_t stops_after;
	/* The tree works without it and does not wait for it to finish: it holds nothing that
	 * could be lost. */
	bool is_optional;
	/* Work waits for it even while it does not run. If it waits for its next start when the
	 * tree stops, it is started once more to finish that work. */
	bool is_started_to_finish;
	/* When memory is short, how much sooner than the broker the kernel kills it: more for a
	 * child that reads hostile files and can be replaced without a loss, less for one that
	 * holds samples no other has. */
	int oom_score;
	/* It hands files on, so the supervisor tells it which files are set aside, and for whom. */
	bool hears_of_files;
	/* What the frames of a file lack when it does not read that file, such as "names"; for the
	 * log. NULL: it reads no files of strangers. */
	const char *finds;
	/* The requests it may make: no more than its work needs, since it may talk to a network
	 * or a terminal, or read hostile files. Without any it has no ask socket. */
	uint64_t may_ask;
	/* How many to start with the tree, at most max. NULL: max. */
	uint32_t (*count)(const void *ctx);
	/* Sends a new child its set-up, up to MESSAGE_START, through its control socket. 0 or
	 * -errno, which counts as its death. */
	int (*set_up)(void *ctx, struct peer_id who, int control, int status_fd);
};

/* The children of a broker, whose struct is the ctx of their functions. */
extern const struct peer_row peer_rows[];
extern const size_t n_peer_rows;
