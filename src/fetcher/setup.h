/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The set-up of the fetcher, and its limits for the broker. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"

#define SETUP_MAX_URLS 16

/* Texts: the servers' URLs, the cache with its descriptor. */
struct setup_fetcher {
	struct setup_common common;
	uint64_t cache_bytes, max_file_bytes, timeout_ns;
};

_Static_assert(sizeof(struct setup_fetcher) <= PROTOCOL_BLOB_MAX, "fits a message");
