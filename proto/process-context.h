/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the payload of a process context (OTEP 4719): a message ProcessContext with a Resource (1)
 * and further attributes for its readers (2). It comes from a process's memory, so it is untrusted.
 * The generated reader recurses; this one does not: it does not enter lists and maps.
 */
#include <stddef.h>
#include <stdint.h>

enum process_context_kind {
	PROCESS_CONTEXT_TEXT,	/* bytes */
	PROCESS_CONTEXT_NUMBER, /* number */
	PROCESS_CONTEXT_BOOL,	/* number: 0 or 1 */
	PROCESS_CONTEXT_DOUBLE, /* number: its bits */
	PROCESS_CONTEXT_LIST,	/* bytes: for process_context_each_text() */
};

/* An attribute; texts are borrowed from the payload, neither terminated nor checked. */
struct process_context_attribute {
	const uint8_t *key, *bytes;
	size_t n_key, n;
	int64_t number;
	enum process_context_kind kind;
	int is_resource; /* 1: of the Resource; 0: for readers only */
};

/*
 * Calls fn for each attribute with a key and a value of a kind above, until fn fails. 0; -EBADMSG:
 * damaged (fn may have been called); or what fn returned.
 */
int process_context_read(const uint8_t *bytes, size_t n,
			 int (*fn)(void *ctx, const struct process_context_attribute *a),
			 void *ctx);
/* How threads tell their spans: the attribute "threadlocal.schema_version". */
enum process_context_schema {
	PROCESS_CONTEXT_NO_SCHEMA,	/* it is another attribute */
	PROCESS_CONTEXT_UNKNOWN_SCHEMA, /* in a form that nothing here reads */
	PROCESS_CONTEXT_THREADS,	/* in a variable of each thread (OTEP 4947) */
	PROCESS_CONTEXT_NODE,		/* as Node.js does */
};
enum process_context_schema
process_context_schema_of(const struct process_context_attribute *attribute);
/*
 * Calls fn for each item of a list, with text NULL for one that is not a text. Returns as above.
 */
int process_context_each_text(const uint8_t *bytes, size_t n,
			      int (*fn)(void *ctx, const uint8_t *text, size_t n), void *ctx);
