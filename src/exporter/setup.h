/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The exporter's set-up, which the broker sends at its start, and the limits that the broker must
 * know. */
#include <stdbool.h>
#include <stdint.h>

#include "src/exporter/export.h"
#include "src/process/message.h"
#include "src/process/setup.h"

#define SETUP_MAX_DESTINATIONS 16

struct setup_exporter {
	struct setup_common common;
	uint64_t spool_max_bytes, spool_max_age_ns;
	uint64_t store_max_bytes, store_max_age_ns;
	uint32_t n;
	struct setup_destination {
		uint64_t timeout_ns, max_queue_bytes, max_elapsed_ns, max_request_bytes;
		enum export_protocol protocol;
		enum encoding encoding;
		enum otlp_dialect dialect;
		bool insecure_skip_verify;
	} destinations[SETUP_MAX_DESTINATIONS];
};

_Static_assert(sizeof(struct setup_exporter) <= PROTOCOL_BLOB_MAX, "fits a message");
