/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the payload of a process context (OTEP 4719): a message ProcessContext with a Resource (1)
 * and further attributes for those who read it (2). It comes out of a process's memory, so anybody
 * wrote it. Nothing here recurses, as the generated reader does: lists and maps are not entered.
 */
#include <stddef.h>
#include <stdint.h>

enum process_context_kind {
	PROCESS_CONTEXT_TEXT,	/* bytes */
	PROCESS_CONTEXT_NUMBER, /* number */
	PROCESS_CONTEXT_BOOL,	/* number: 0 or 1 */
	PROCESS_CONTEXT_LIST,	/* bytes: for process_context_each_text() */
};

/* An attribute; texts are borrowed from the payload, without a 0 and not checked. */
struct process_context_attribute {
	const uint8_t *key, *bytes;
	size_t n_key, n;
	int64_t number;
	enum process_context_kind kind;
	int is_resource; /* 1: of the Resource, 0: for readers only */
};

/*
 * Calls fn for each attribute with a key and a value of a kind above. 0; -EBADMSG: damaged, after
 * some of the calls; or what fn failed with.
 */
int process_context_read(const uint8_t *bytes, size_t n,
			 int (*fn)(void *ctx, const struct process_context_attribute *a),
			 void *ctx);
/*
 * Calls fn for each item of a list, with NULL for one that is not a text. Returns as above.
 */
int process_context_each_text(const uint8_t *bytes, size_t n,
			      int (*fn)(void *ctx, const uint8_t *text, size_t n), void *ctx);
