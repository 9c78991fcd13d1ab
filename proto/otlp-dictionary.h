/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The dictionary of an OTLP profiles message: seven tables, built from plain values.
 *
 * Each put returns the index of an equal entry or of a new one, so no table has duplicates; entry 0
 * of each is the zero value and means "unset". A caller must refer to what it puts: the dictionary
 * keeps unused entries.
 *
 * The error is sticky: after a failed allocation puts return 0 and otlp_dictionary_ok() is false.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire-write.h"
#include "util/array.h"
#include "util/hash.h"

/* In the order of their field numbers in ProfilesDictionary, from 1. */
enum otlp_table_kind {
	OTLP_TABLE_MAPPING,
	OTLP_TABLE_LOCATION,
	OTLP_TABLE_FUNCTION,
	OTLP_TABLE_LINK,
	OTLP_TABLE_STRING,
	OTLP_TABLE_ATTRIBUTE,
	OTLP_TABLE_STACK,
	OTLP_N_TABLES
};

struct otlp_entry {
	uint32_t offset, n; /* in the table's bytes, without the prefix */
};

struct otlp_table {
	struct wire_buffer bytes; /* the entries in wire format */
	ARRAY(struct otlp_entry) entries;
	struct hash_index index;
};

struct otlp_dictionary {
	struct otlp_table tables[OTLP_N_TABLES];
	bool failed;
};

struct otlp_mapping {
	uint64_t memory_start, memory_limit, file_offset;
	int32_t filename;
	const int32_t *attributes;
	size_t n_attributes;
};

struct otlp_function {
	int32_t name, system_name, filename;
	int64_t start_line;
};

struct otlp_line {
	int32_t function;
	int64_t line, column;
};

struct otlp_location {
	int32_t mapping;
	uint64_t address;
	const struct otlp_line *lines;
	size_t n_lines;
	int32_t attribute; /* 0: none */
};

/* The longest string, with its 0; longer ones are cut. */
#define OTLP_MAX_STRING 4096
/*
 * The most lines of one location. If there are more, the outermost are kept, with the physical
 * function.
 */
#define OTLP_MAX_LINES 256

void otlp_dictionary_init(struct otlp_dictionary *d);
void otlp_dictionary_deinit(struct otlp_dictionary *d);
/* Leaves only the zero entries, and keeps the memory. Call it before the first put, too. */
void otlp_dictionary_clear(struct otlp_dictionary *d);

/* Puts any bytes up to the first 0, as valid UTF-8 without control characters. */
int32_t otlp_put_string(struct otlp_dictionary *d, const char *text);
int32_t otlp_put_attribute_string(struct otlp_dictionary *d, const char *key, const char *value);
int32_t otlp_put_attribute_int(struct otlp_dictionary *d, const char *key, int64_t value);
int32_t otlp_put_mapping(struct otlp_dictionary *d, const struct otlp_mapping *m);
int32_t otlp_put_function(struct otlp_dictionary *d, const struct otlp_function *f);
int32_t otlp_put_location(struct otlp_dictionary *d, const struct otlp_location *l);
/* trace: 16 bytes, span: 8. */
int32_t otlp_put_link(struct otlp_dictionary *d, const uint8_t *trace, const uint8_t *span);
/* Leaf first. */
int32_t otlp_put_stack(struct otlp_dictionary *d, const int32_t *locations, size_t n);

static inline bool otlp_dictionary_ok(const struct otlp_dictionary *d)
{
	return !d->failed;
}
/* Bytes of the ProfilesDictionary message, without a prefix of its own. */
size_t otlp_dictionary_size(const struct otlp_dictionary *d);
/* Writes it as the given field of the message in b. */
void otlp_dictionary_write(const struct otlp_dictionary *d, struct wire_buffer *b, uint32_t field);
