/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rewrites an ExportProfilesServiceRequest: cuts it in two for a server that refuses its size, or
 * adapts it to a server's dialect. Reads and writes the bytes field by field.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/wire-write.h"

struct otlp_half {
	struct wire_buffer bytes; /* the caller calls wire_buffer_deinit(), also after a failure */
	uint64_t n_samples;	  /* their timestamps, or the sum of their values */
};

/*
 * Cuts a request of n bytes in two, at half the bytes of all samples. Each half is a valid request:
 * it has the resources and scopes of its own samples, and a dictionary of what these refer to, no
 * more. n_halvings: how often the request was halved before; beyond OTLP_MAX_HALVINGS the halves
 * begin at the same time.
 *
 * 0; -ENODATA: it has less than two samples; -EBADMSG: not such a message; -ENOMEM.
 */
int otlp_split(const uint8_t *bytes, size_t n, uint32_t n_halvings, struct otlp_half ret[2]);

enum otlp_dialect {
	OTLP_PLAIN, /* the specification */
	/*
	 * Pyroscope makes labels of all attributes of a resource and of a sample, and of the trace
	 * of a link, and a series for each set of labels. It refuses a request when its tenant has
	 * too many series. So we omit traces and the attributes that differ between processes and
	 * threads of a program; a span, which we keep, is no such label. It takes two Profiles of a
	 * series with the same time for copies of one, so we merge them.
	 */
	OTLP_PYROSCOPE,
	/*
	 * Parca (pkg/profile/encode.go, seen up to 0.28) uses the function before the one that a
	 * line names. So each function is in its table twice, and lines name the second.
	 */
	OTLP_PARCA,
};

/* 0; -EBADMSG: not such a message; -ENOMEM. The caller calls wire_buffer_deinit(ret), also after a
 * failure.
 */
int otlp_adapt(const uint8_t *bytes, size_t n, enum otlp_dialect dialect, struct wire_buffer *ret);
