/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One INI file as sections and `key = value` pairs with their real line numbers. Knows the form of
 * the file only; what sections and keys mean is the caller's business.
 *
 * Form: a line is empty, a comment (# or ; as its first character; nowhere else, so values may
 * hold both), `[section]`, or `key = value`. Indentation means nothing. A line that ends in a
 * backslash goes on in the next one that is no comment, joined by one space.
 */
#include <stddef.h>

/* All strings are borrowed for the call. */
struct config_reader_ops {
	/* A section heading. */
	void (*section)(void *ctx, unsigned int line, const char *name);
	/* A pair of the current section; section "": before the first. */
	void (*pair)(void *ctx, unsigned int line, const char *section, const char *key,
		     const char *value);
	/* A line that is none of the above; reading continues with the next line. */
	void (*error)(void *ctx, unsigned int line, const char *message);
};

#define CONFIG_NAME_MAX	      48	     /* section or key; inih keeps 49 bytes of either */
#define CONFIG_TEXT_MAX_BYTES (64u * 1024)   /* one value, continuation lines included */
#define CONFIG_FILE_MAX_BYTES (1024u * 1024) /* one file */

/* Reads n bytes of text (needs no terminating 0). 0 or -ENOMEM; errors in the text go to ops. */
int config_reader_run(const char *text, size_t n, const struct config_reader_ops *ops, void *ctx);
