/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The record that a thread publishes (OTEP 4947): ids, and keys with texts, as bytes that were read
 * from it. They are a stranger's.
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

/* Reads the record at address: its bytes, as far as there is room; 0: it is not valid, or not
 * there. */
uint32_t thread_context_read(struct memory *m, uint64_t address,
			     uint8_t ret[THREAD_CONTEXT_MAX_BYTES]);

/* How many bytes of the record at address are read at once. */
uint32_t thread_context_at_once(uint64_t address);

/* The ids in n bytes that were read, borrowed; false: there is no span. */
bool thread_context_ids(const uint8_t *bytes, uint32_t n, const uint8_t **ret_trace,
			const uint8_t **ret_span);

struct thread_context_attribute {
	const uint8_t *text; /* n bytes, borrowed */
	uint8_t key, n;	     /* key: the place of its name in the process's list */
};
/*
 * The next attribute from *at on, 0 at first; false: there is none, or it is not whole. Of several
 * with a key only the last one comes.
 */
bool thread_context_next(const uint8_t *bytes, uint32_t n, uint32_t *at,
			 struct thread_context_attribute *ret);
