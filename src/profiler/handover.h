/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Closed windows on their way to the symbolizer. Each is kept until the symbolizer has settled it,
 * and handed over again to a new symbolizer. Descriptors of files that the symbolizer does not have
 * yet are sent before the window that needs them. Sending never blocks. Bounded: if more than
 * HANDOVER_MAX_WINDOWS or HANDOVER_MAX_BYTES wait, the oldest window is dropped. Each window says
 * where it begins and ends among all samples, and how many samples were dropped here, so the
 * symbolizer sees what is missing between two windows.
 *
 * In a capture, settled windows are kept, too: the symbolizer holds the whole capture until the
 * end, and must not lose it if it dies. Windows that were too many to keep are lost then.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"

struct loop;

/* A file that the symbolizer needs for a window; the callback finds it again when it is sent. */
struct handover_item {
	enum message_type type; /* MESSAGE_MODULE, _PERF_MAP, _JITDUMP or _KALLSYMS */
	uint64_t id;		/* module uid; of maps the start time of the process */
	uint32_t pid;		/* that process */
};

struct handover;

/* Fills m (path) and returns a borrowed descriptor; -1: the file is not available, or no longer. */
typedef int (*handover_fd_fn)(void *ctx, const struct handover_item *item, struct message *m);
/* Does the symbolizer of that generation have the item? sent: from now on it does. */
typedef bool (*handover_mark_fn)(void *ctx, const struct handover_item *item, uint32_t generation,
				 bool sent);

struct handover_callbacks {
	handover_fd_fn descriptor;
	handover_mark_fn mark;
	bool keep_settled; /* a capture */
	void *ctx;
};

/* loop: borrowed; callbacks: copied. 0 or -errno. */
int handover_new(struct handover **ret, struct loop *loop,
		 const struct handover_callbacks *callbacks);
struct handover *handover_free(struct handover *h);

/* A new symbolizer: fd becomes the handover's. Sends everything unsettled again. */
void handover_connect(struct handover *h, int fd);
struct handover_window {
	int fd;
	uint64_t n_samples;
	struct sample_place begin, end; /* a window begins where the previous one ended */
	uint32_t switches;		/* as in MESSAGE_WINDOW */
};
/* Takes the window's descriptor, and n items, which it frees. Without memory it drops the window.
 * */
void handover_push(struct handover *h, const struct handover_window *w, struct handover_item *items,
		   uint32_t n);
/* Drops a window that could not be written: it has no descriptor. */
void handover_give_up(struct handover *h, const struct handover_window *w);
/* Has the symbolizer settled all windows? */
bool handover_settled(const struct handover *h);
