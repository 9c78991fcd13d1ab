/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ExportProfilesServiceRequest written again: cut in two, for a server that takes no message of
 * its size, or in the dialect of a server. Reads and writes the bytes field by field.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/wire-write.h"

struct otlp_half {
	struct wire_buffer bytes; /* wire_buffer_deinit() by the caller, also after a failure */
	uint64_t n_samples;	  /* their timestamps, or the sum of their values */
};

/*
 * In two. The rules that the whole one held to hold for both: each half has the resources and
 * scopes of its own samples, and a dictionary of what these refer to, no more.
 *
 * Of n bytes; half of what all the samples take up goes to either. 0; -ENODATA: there is but one
 * sample, or none; -EBADMSG: not such a message; -ENOMEM.
 */
int otlp_split(const uint8_t *bytes, size_t n, struct otlp_half ret[2]);

enum otlp_dialect {
	OTLP_PLAIN, /* what the specification says */
	/*
	 * Pyroscope makes labels, and a series for each set of them, of all that a resource says.
	 * What tells the processes of a program apart stays out of it: a series for each process
	 * ever would soon be more than it takes.
	 */
	OTLP_PYROSCOPE,
	/*
	 * Parca (pkg/profile/encode.go, seen up to 0.28) takes the function before the one that a
	 * line says. Each function stands in its table twice, and lines say the second.
	 */
	OTLP_PARCA,
};

/* 0; -EBADMSG: not such a message; -ENOMEM. *ret is wire_buffer_deinit()'s, also after a failure.
 */
int otlp_adapt(const uint8_t *bytes, size_t n, enum otlp_dialect dialect, struct wire_buffer *ret);
