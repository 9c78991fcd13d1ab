/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Values in words: "26.3 MiB", "1.52 s", "893 branches". */
#include <stddef.h>
#include <stdint.h>

struct profile;

/* unit: that of a profile, "nanoseconds", "bytes" or any other; returns buf. */
const char *amount_text(char *buf, size_t size, int64_t value, const char *unit);
/* A sum of the profile's values in its unit: "2.20 s of cpu", "26.3 MiB of inuse_space". NULL: the
 * unit is unknown. */
const char *amount_worth(char *buf, size_t size, const struct profile *p, int64_t value);
