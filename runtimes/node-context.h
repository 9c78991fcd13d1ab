/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The context of a thread of Node.js (nodejs_v1). V8 keeps the storages of the current continuation
 * in a map. A thread-local variable says where that map is, and which storage has the context: an
 * object with the address of a record (thread-context.h).
 */
#include "runtimes/memory.h"

#define NODE_CONTEXT_VARIABLE "otel_thread_ctx_nodejs_v1"

struct node_variable {
	uint64_t slot, storage; /* where the addresses of the map and of the storage are stored */
	uint32_t hash, padding; /* of the storage */
	uint64_t undefined;
};

struct node_context {
	uint64_t record; /* 0: the thread has no context now */
	/* V8's description (a "map") of the object with the address of the record: all that one
	 * function makes have the same, and only these. */
	uint64_t kind;
	/* Where the address of the map is stored, and the map: each context has another one. */
	uint64_t slot, map;
	/* Where the address of the storage's object is stored, and that address, now or at the last
	 * look: V8 may move the object. */
	uint64_t storage, key;
};

/* Finds the context of a thread. last: that of the thread's last sample; zeros: none. false: what
 * leads to it cannot be read, or is no object of V8. */
bool node_context_find(struct memory *m, const struct node_variable *v,
		       const struct node_context *last, struct node_context *ret);
