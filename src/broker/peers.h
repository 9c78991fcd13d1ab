/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is to be known of each kind of child, a row a kind: the supervisor starts, joins, stops and
 * restarts children by nothing else, and answers them what their row allows. The rows stand in the
 * order in which the children start.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/message.h"

/* Sets of kinds, and of types of requests. */
#define PEER_BIT(kind) (UINT32_C(1) << (kind))
#define ASK_BIT(type)  (UINT64_C(1) << (type))
_Static_assert(PEER_N <= 32 && MESSAGE_N_TYPES <= 64, "fit into a set");

struct privileges;

struct peer_row {
	enum peer kind;
	uint32_t max; /* how many there may be; with more than one their names have an index */
	/* Kinds that it hands its results to: it has a socket to each of their children. */
	uint32_t feeds;
	/* Kinds that have to be gone before it is asked to finish: they hand something to it. */
	uint32_t stops_after;
	/* Nothing is amiss without it, and nobody waits for it to finish: it holds nothing that
	 * could be lost. */
	bool is_optional;
	/* Work waits for it even while none of it runs: one that waits for its next start when it
	 * is to finish is started once more, to do that. */
	bool is_started_to_finish;
	/* When memory is short, how much sooner than the broker the kernel is to kill it: more for
	 * who reads hostile files and can be had again without a loss, less for who holds samples
	 * that nobody else has. */
	int oom_score;
	/* It is told of the files that a kind does not read for now: it hands files on. */
	bool hears_of_files;
	/* What frames of a file have none of when it does not read that file: "names". */
	const char *finds;
	/* Requests that it may make: whoever talks to a network or a terminal, or reads hostile
	 * files, gets no further than what its own work needs. Without any it has no ask socket. */
	uint64_t may_ask;
	/* How many are wanted now; at most max. NULL: max. */
	uint32_t (*count)(const void *ctx);
	/* Changes limits, of which ret has those of all children. NULL: it has the same. */
	void (*limit)(const void *ctx, struct privileges *ret);
	/* Sends the set-up of a child just started (ending with MESSAGE_START) down its control
	 * socket. 0 or -errno, which counts as its death. */
	int (*set_up)(void *ctx, struct peer_id who, int control, int status_fd);
};

/* The children of a broker, whose struct is the ctx of their functions. */
extern const struct peer_row peer_rows[];
extern const size_t n_peer_rows;
