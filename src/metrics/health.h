/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answers of /healthz and /readyz. */
#include <stdbool.h>
#include <stddef.h>

struct statistics;

/* Every process runs, and the rings were read just now. why: one line, in either case. */
bool health_is_alive(const struct statistics *s, char *why, size_t size);
/* It also samples, and can pass on its samples. names: of the destinations. */
bool health_is_ready(const struct statistics *s, const char *const *names, char *why, size_t size);
