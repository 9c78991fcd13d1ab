/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ExportProfilesServiceRequest cut in two, for a server that takes no message of its size. Reads
 * and writes the bytes field by field, and holds to the rules that the whole one held to: each half
 * has the resources and scopes of its own samples, and a dictionary of what these refer to, no
 * more.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/wire-write.h"

struct otlp_half {
	struct wire_buffer bytes; /* wire_buffer_deinit() by the caller, also after a failure */
	uint64_t n_samples;	  /* their timestamps, or the sum of their values */
};

/*
 * Of n bytes; half of what all the samples take up goes to either. 0; -ENODATA: there is but one
 * sample, or none; -EBADMSG: not such a message; -ENOMEM.
 */
int otlp_split(const uint8_t *bytes, size_t n, struct otlp_half ret[2]);
