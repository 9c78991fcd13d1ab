/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Merges what a server would take for the same: Profiles of one type and time whose resources and
 * scopes have the same bytes, as those of several processes have once their pids are gone.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/wire-write.h"

/*
 * Writes a request of n bytes again, with one ResourceProfiles for each resource and scope, and one
 * Profile in it for each type and time. A merged Profile has the samples of all of its parts in
 * their order, and the id and the attributes of the first. If it would have more than max_samples
 * Samples, there is another, which begins a millisecond earlier than the one before.
 *
 * 0; -EBADMSG: not such a message; -ENOMEM. The caller calls wire_buffer_deinit(ret), also after a
 * failure.
 */
int otlp_merge(const uint8_t *bytes, size_t n, uint32_t max_samples, struct wire_buffer *ret);
