/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lines of /proc/kallsyms as a sorted table: all of a text, or a part of it. Damaged lines are
 * skipped.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

struct kallsyms_table;

/* Reads fd to its end. 0; -errno, *ret is NULL. */
int kallsyms_table_read(struct kallsyms_table **ret, int fd, uint64_t max_bytes);
/* Of n bytes of text. end: the address of the line after them, 0: none. NULL: no memory. */
struct kallsyms_table *kallsyms_table_new(const char *text, size_t n, uint64_t end,
					  uint64_t max_bytes);
struct kallsyms_table *kallsyms_table_free(struct kallsyms_table *t);
/* As kallsyms_lookup() and kallsyms_text_start(). */
int kallsyms_table_lookup(const struct kallsyms_table *t, uint64_t address, struct symbol *ret);
uint64_t kallsyms_table_text_start(const struct kallsyms_table *t);
/* Was there a line with an address other than zero? */
bool kallsyms_table_has_addresses(const struct kallsyms_table *t);
/* Have both the same functions, of which there are some? */
bool kallsyms_table_equal(const struct kallsyms_table *a, const struct kallsyms_table *b);
/* Memory held, in bytes; the number of lines beyond the limit. */
size_t kallsyms_table_bytes(const struct kallsyms_table *t);
uint64_t kallsyms_table_refused(const struct kallsyms_table *t);

/* Reads the address at the start of a line and moves *p behind it. false: there is none. */
bool kallsyms_parse_hex(const char **p, const char *end, uint64_t *ret);
