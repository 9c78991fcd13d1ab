/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cloud that this host is in, as cloud-init wrote it down at the boot; nobody is asked. */
#include <stddef.h>

/* OpenTelemetry's name of the provider, "aws" ...; NULL: none, or not known. */
const char *cloud_provider(void);
/* The id that the provider gave to the host; "": not known. Returns buf. */
const char *cloud_host_id(char *buf, size_t size);

/* The first line of a file of ours, "" when there is none. Returns buf. */
const char *cloud_read_line(const char *path, char *buf, size_t size);
