/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keys with values as one text: in a thread's row the labels of pprof samples that mean nothing to
 * us, which pass from one pprof to the next and distinguish samples; in a process's row its
 * resource attributes, where a number of the unit "bool" is a truth value, a text of the unit
 * "double" such a number, and one of the unit "list" several texts with LABEL_ITEM_END between. The
 * trace and span of a sample are labels of its thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct label {
	const char *key, *text; /* text NULL: a number */
	const char *unit;	/* of the number, or "" */
	int64_t number;
};

#define LABEL_ITEM_END '\x1d'
/* Appends a label; a blank replaces bytes that would end a field or a label. */
void label_write(FILE *out, const struct label *l);
/* The keys of the trace and the span that a sample was in, in hexadecimal digits. */
#define LABEL_TRACE	  "trace_id"
#define LABEL_SPAN	  "span_id"
#define LABEL_TRACE_BYTES 16
#define LABEL_SPAN_BYTES  8
/* Both ids as bytes; false: the labels do not have both of them whole, or one of them is zero. */
bool label_link(const char *labels, uint8_t trace[LABEL_TRACE_BYTES],
		uint8_t span[LABEL_SPAN_BYTES]);
/* Is it a resource attribute that formats without resources have as a label of each sample? */
bool label_names_service(const char *key);
/* Is it a key by which an output says whose a sample is? A label that a program chose must not have
 * it: the sample would be another one's. */
bool label_is_reserved(const char *key);
/* The text of that key, cut to size; false: there is none. */
bool label_find(const char *labels, const char *key, char *ret, size_t size);
/*
 * Reads the next label from *text; false: none. The texts of ret are in buf, size bytes, which must
 * be at least as long as *text at first.
 */
bool label_read(const char **text, struct label *ret, char *buf, size_t size);

/* The text of a number of the unit "double", with as few digits as tell it from all others. Returns
 * buf. */
#define LABEL_DOUBLE_BYTES 32
const char *label_format_double(char buf[LABEL_DOUBLE_BYTES], double number);

/* The text of a label of the unit "list". */
struct label_list {
	char text[1024];
	size_t n, n_items;
	bool refused; /* an item was no text, or there was no room for it */
};
/* Adds an untrusted text of n bytes (NULL: another value) to a struct label_list, which is {0} at
 * first. 0. */
int label_list_add(void *list, const uint8_t *text, size_t n);

/*
 * The labels of one sample, as its program chose them. The set refuses reserved keys, a key that it
 * has already, and what exceeds the limits.
 */
enum { LABEL_SET_MAX = 32, LABEL_SET_MAX_BYTES = 4096 };
struct label_set {
	FILE *out;
	char *text;
	size_t n_text;
	uint64_t keys[LABEL_SET_MAX]; /* hashes */
	uint32_t n, n_refused;
};
/* 0 or -ENOMEM. */
int label_set_begin(struct label_set *s);
/* Adds a label, or counts it in n_refused. One with an empty text says nothing: it is neither. */
void label_set_add(struct label_set *s, const struct label *l);
/* Ends the text of all labels, which is the caller's: n_text bytes. NULL: no memory. Call it once
 * after label_set_begin(). */
char *label_set_end(struct label_set *s);
