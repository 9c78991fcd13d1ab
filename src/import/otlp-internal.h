/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * State of reading an OTLP message: otlp.c reads the message, its profiles and samples,
 * otlp-resource.c their processes and threads, otlp-frames.c locations and stacks, otlp-memory.c
 * the part of the local store, otlp-fields.c single fields.
 */
#include <stdint.h>
#include <stdio.h>

#include "src/import/builder.h"
#include "util/array.h"

/* Field numbers of ProfilesDictionary, less one. */
enum { T_MAPPING, T_LOCATION, T_FUNCTION, T_LINK, T_STRING, T_ATTRIBUTE, T_STACK, N_TABLES };

struct span {
	const uint8_t *bytes;
	size_t n;
};

struct otlp_file {
	struct import *im;
	ARRAY(struct span) tables[N_TABLES];
	uint32_t *frames; /* by location */
	char *texts[16];
	struct profile_process process; /* of the current resource */
	strid with_service;		/* its attributes, if service.name is one of them */
	FILE *said;			/* its other attributes, in the form of labels.h */
	char *said_text;
	size_t n_said;
	ARRAY(uint64_t) times; /* of the current sample */
};

enum text_place {
	TEXT_KEY,
	TEXT_VALUE,
	TEXT_MODULE,
	TEXT_BUILD_ID,
	TEXT_LANGUAGE,
	TEXT_THREAD,
	TEXT_SCRATCH,
	TEXT_RESOURCE,
	TEXT_RESOURCE_KEY,
	TEXT_TYPE,
	TEXT_UNIT,
	TEXT_PERIOD_TYPE,
	TEXT_PERIOD_UNIT
};

/* The first number, or the first bytes, of that field; 0, or n 0: none. */
uint64_t otlp_number(const struct span *s, uint32_t number);
struct span otlp_bytes(const struct span *s, uint32_t number);
/* A row of the dictionary, borrowed; NULL: there is none. */
const struct span *otlp_row(const struct otlp_file *o, unsigned int table, uint64_t index);
/* A terminated copy, valid until the next one in that place; NULL: it is empty. */
const char *otlp_keep_text(struct otlp_file *o, enum text_place place, const struct span *s);
/* The same for a string of the dictionary; NULL also: there is none. */
const char *otlp_text(struct otlp_file *o, enum text_place place, uint64_t index);
/* The key of an attribute of the dictionary, and its value: *ret_text; NULL: *ret_number. Returns
 * NULL: there is no such attribute. */
const char *otlp_attribute(struct otlp_file *o, uint64_t index, const char **ret_text,
			   uint64_t *ret_number);
/* Calls fn for each number of a repeated field of s, packed or not, until it returns another value
 * than 0. Returns that value. */
int otlp_each_number(struct otlp_file *o, const struct span *s, uint32_t number,
		     int (*fn)(struct otlp_file *o, void *ctx, uint64_t value), void *ctx);
/* Adds a text, cleaned, to the profile's strings; NULL: "". */
strid otlp_keep(struct otlp_file *o, const char *text);
/* Sets an unknown fact to a copy of text, unless that is NULL. */
void otlp_take_fact(char **field, const char *text);

/* For otlp_each_number() of a stack: pushes the frame of a location. 0; -EBADMSG: there is none. */
int otlp_push_location(struct otlp_file *o, void *ctx, uint64_t index);
/* Adds the data that the local store keeps after the OTLP payload. 0 or -EBADMSG. */
int otlp_read_memory(struct otlp_file *o, const struct span *memory);
/* Fills in o->process, and the facts about the host. */
void otlp_read_resource(struct otlp_file *o, const struct span *resource);
/* Fills in the name of its process, which a profile of it says. */
void otlp_take_comm(struct otlp_file *o, const char *text);
