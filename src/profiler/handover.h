/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Closed windows on their way to the symbolizer. Each is kept until the symbolizer has settled it
 * and is handed over again to a new one; before a window go the descriptors of the files in it that
 * this symbolizer does not have yet. Sending never blocks. Bounded: the oldest window goes when
 * more than HANDOVER_MAX_WINDOWS or HANDOVER_MAX_BYTES wait. Each window says where it begins and
 * ends among all samples, so the symbolizer sees what is missing between two, and how many samples
 * were given up here.
 *
 * In a capture settled windows are kept too: the symbolizer holds all of it until the end, and one
 * that dies on the way must not take the capture with it. What it had of windows that were too many
 * to keep is given up then.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

#define HANDOVER_MAX_BYTES (UINT64_C(128) << 20)

struct loop;

/* Something a window needs the symbolizer to have: found again by the callback when it is sent. */
struct handover_item {
	enum message_type type; /* MESSAGE_MODULE, _PERF_MAP, _JITDUMP or _KALLSYMS */
	uint64_t id;		/* module uid; of maps the start time of the process */
	uint32_t pid;		/* that process */
};

struct handover;

/* Fills m (path) and returns a borrowed descriptor, or -1: it is not available (any more). */
typedef int (*handover_fd_fn)(void *ctx, const struct handover_item *item, struct message *m);
/* Has this symbolizer got the item? Marked by the callee when sent is true. */
typedef bool (*handover_mark_fn)(void *ctx, const struct handover_item *item, uint32_t generation,
				 bool sent);

struct handover_callbacks {
	handover_fd_fn descriptor;
	handover_mark_fn mark;
	bool keep_settled; /* a capture */
	void *ctx;
};

int handover_new(struct handover **ret, struct loop *loop,
		 const struct handover_callbacks *callbacks);
struct handover *handover_free(struct handover *h);

/* A new symbolizer: fd becomes the handover's. Everything unsettled is sent again. */
void handover_connect(struct handover *h, int fd);
struct handover_window {
	int fd;
	uint64_t n_samples;		/* in it */
	struct sample_place begin, end; /* a window begins where the one before ended */
};
/* Takes the descriptor and items (n, allocated). Without memory the window is given up like one
 * that was too many. */
void handover_push(struct handover *h, const struct handover_window *w, struct handover_item *items,
		   uint32_t n);
/* A window that could not even be written: it has no descriptor. */
void handover_give_up(struct handover *h, const struct handover_window *w);
/* Nothing waits to be settled. */
bool handover_settled(const struct handover *h);
