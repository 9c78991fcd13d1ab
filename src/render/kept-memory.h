/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The data of a window that only the local store keeps, after its OTLP payload
 * (proto/kept-memory.proto). */
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Sets *ret to bytes to append to a ProfilesData message, which the caller frees; NULL and 0: there
 * are none. 0 or -ENOMEM. */
int render_kept_memory(const struct profile *p, uint8_t **ret, size_t *ret_n);
