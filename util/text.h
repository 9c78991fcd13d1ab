/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes untrusted text safe, and reads the units of config values and options. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies at most n bytes of src (stops at a 0) to dst as valid UTF-8 without control characters:
 * each bad byte becomes '?'. dst is terminated and never ends with half a character. Returns the
 * length written, less than size.
 */
size_t text_clean(char *dst, size_t size, const char *src, size_t n);
/*
 * The same for names that identify something: a src of size bytes or more is cut and ends with
 * "...[HASH]", a hash of 16 hex digits over all of whole (NULL: src). So names that differ only
 * near their end stay different. size: more than TEXT_CUT_BYTES.
 */
size_t text_shorten(char *dst, size_t size, const char *src, const char *whole);
#define TEXT_CUT_BYTES 22 /* the end of a cut name and its 0 */

/* Cuts blanks and tabs at both ends, in place; returns where it begins then. */
char *text_strip(char *s);
/* Decodes %XX in place; false for a broken one, and for %00, which no text can hold. */
bool text_decode_percent(char *s);

/* Both NULL, or the same text. */
bool text_equal(const char *a, const char *b);
/* Replaces *field (char ** or const char **; an allocated text, or NULL) with a copy of text. 0, or
 * -ENOMEM and *field is NULL. */
#define text_set(field, text)                                                                      \
	text_replace(_Generic((field), char ** : (field), const char ** : (char **)(field)), (text))
int text_replace(char **field, const char *text);

/* "250ms", "10s", "5m", "1h", "2d"; a bare number is seconds. 0, -EINVAL, -ERANGE. */
int text_parse_duration_ns(const char *text, uint64_t *ret_ns);
/* "4096", "32K", "32KiB", "2M", "1G" (powers of 1024). 0, -EINVAL, -ERANGE. */
int text_parse_bytes(const char *text, uint64_t *ret_bytes);
/* Decimal, whole string, min..max. 0, -EINVAL, -ERANGE. */
int text_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
/* Numbers and ranges, "0-3,8,10-11": sets set[i] for each; all must be below n. 0, -EINVAL, -ERANGE
 * (then set is half done). */
int text_parse_ranges(const char *text, bool *set, size_t n);
/* yes/no, true/false, on/off, 1/0. 0 or -EINVAL. */
int text_parse_bool(const char *text, bool *ret);

/* The port in a URL, which may have a scheme, a user and a path; 0: none. */
uint16_t text_url_port(const char *url);

/* Two lower-case digits for each of n bytes; dst: 2 * n + 1 bytes. */
void text_format_hex(char *dst, const uint8_t *bytes, size_t n);
/* "1.5 MiB", "312 B". Returns buf. */
const char *text_format_bytes(char *buf, size_t size, uint64_t bytes);
/* "10s", "250ms", "1m30s": text_parse_duration_ns() reads it back if it is a single unit. Returns
 * buf.
 */
const char *text_format_duration(char *buf, size_t size, uint64_t ns);

/*
 * The candidate nearest to word by edit distance, for "did you mean"; NULL: none is near.
 * candidates: n strings.
 */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);
