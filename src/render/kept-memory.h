/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the local store keeps of a window beside its OTLP payload (proto/kept-memory.proto). */
#include <stddef.h>
#include <stdint.h>

struct profile;

/* *ret: bytes to be appended to a ProfilesData message, allocated; NULL, 0: there is nothing to
 * keep. 0 or -ENOMEM. */
int render_kept_memory(const struct profile *p, uint8_t **ret, size_t *ret_n);
