/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The record that a thread publishes (OTEP 4947), as untrusted bytes: ids of trace and span, and
 * attributes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/memory.h"

enum {
	THREAD_CONTEXT_TRACE_BYTES = 16,
	THREAD_CONTEXT_SPAN_BYTES = 8,
	THREAD_CONTEXT_HEAD_BYTES = 28,
	THREAD_CONTEXT_MAX_BYTES = 640,
};

/* Reads the record at address. Returns the number of bytes in ret, which cut a longer record; 0: it
 * is not valid, as one that is being written; -EFAULT: it cannot be read. */
int thread_context_read(struct memory *m, uint64_t address, uint8_t ret[THREAD_CONTEXT_MAX_BYTES]);

/* The number of bytes kept of the record with that head; 0: the record is not valid. */
uint32_t thread_context_bytes(const uint8_t head[THREAD_CONTEXT_HEAD_BYTES]);

/* Does a record with these n bytes have attributes that are not in them, or that are cut? */
bool thread_context_is_cut(const uint8_t *bytes, uint32_t n);

/* The ids in n bytes of a record, borrowed; false: there is no span. */
bool thread_context_ids(const uint8_t *bytes, uint32_t n, const uint8_t **ret_trace,
			const uint8_t **ret_span);

struct thread_context_attribute {
	const uint8_t *text; /* n bytes, borrowed */
	uint8_t key, n;	     /* key: index of its name in the process's list */
};
/*
 * The next attribute in n bytes of a record. *at: 0 at first, then where it continues. false: no
 * further one, or it is cut. Skips an attribute if a later one has the same key.
 */
bool thread_context_next(const uint8_t *bytes, uint32_t n, uint32_t *at,
			 struct thread_context_attribute *ret);
