/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Profiles of the next seconds, requested over HTTP, as pprof. They come from the daemon's own
 * samples: the payloads of all windows that overlap these seconds.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/render/render.h"

struct ask;
struct loop;
struct pulls;
struct serve_exchange;

#define PULLS_MAX_SECONDS 600
#define PULLS_SECONDS	  30 /* the default */

struct pulls_options {
	struct loop *loop;
	struct ask *ask;
	const struct render_info *info; /* borrowed */
	uint64_t profile_bytes;		/* of each in memory */
	/* Reads the messages that the symbolizer has sent by now. */
	void (*drain)(void *ctx);
	void *ctx;
};

int pulls_new(struct pulls **ret, const struct pulls_options *options);
struct pulls *pulls_free(struct pulls *p);

/* Begins a request; seconds: from the query, NULL: missing. It is answered now or later. */
void pulls_begin(struct pulls *p, struct serve_exchange *x, const char *seconds);
/* The exchange has ended, in any way. */
void pulls_end(struct pulls *p, const struct serve_exchange *x);
/* A payload of the symbolizer's; fd stays the caller's. */
void pulls_payload(struct pulls *p, int fd);
/* Fails the current pulls: a payload is missing, or came twice. */
void pulls_fail(struct pulls *p, const char *why);
