/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The context of a thread of Node.js (nodejs_v1): V8 keeps the storages of the current
 * continuation in a map. A variable of the thread says where V8 has that map, and which storage has
 * the context: an object with the address of a record as other threads publish it.
 */
#include "runtimes/memory.h"

#define NODE_CONTEXT_VARIABLE "otel_thread_ctx_nodejs_v1"

struct node_variable {
	uint64_t slot, storage; /* where the addresses of the map and of the storage are */
	uint32_t hash, padding; /* of the storage */
	uint64_t undefined;
};

struct node_context {
	uint64_t record;
	uint64_t slot,
		map; /* where the address of the map is: it is another one in another context */
	/* Where the address of the storage's object is, which V8 may move, and that address: as it
	 * was, or as it was the last time. */
	uint64_t storage, key;
};

/* last: the context of the thread's last sample; zeros: none. false: the thread has no context
 * (now). */
bool node_context_find(struct memory *m, const struct node_variable *v,
		       const struct node_context *last, struct node_context *ret);
