/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cloud that this host runs in, as cloud-init wrote it down at boot or the firmware says it;
 * nothing is asked over the network. */
#include <stddef.h>

/* OpenTelemetry's name of the provider (cloud.provider), such as "aws"; static. NULL: no cloud, or
 * an unknown one. */
const char *cloud_provider(void);
/* The id that the provider gave to the host; "": unknown. Returns buf. */
const char *cloud_host_id(char *buf, size_t size);

/* The first line of a trusted file, cut to size; "": there is none. Returns buf. */
const char *cloud_read_line(const char *path, char *buf, size_t size);
