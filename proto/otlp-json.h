/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* OTLP profiles in JSON (opentelemetry-proto, "JSON Protobuf Encoding"). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * No message becomes more than this many times as long. The worst are functions and locations with
 * small numbers: {"nameStrindex":1,"filenameStrindex":2,"startLine":"3"}, in 8 bytes.
 */
#define OTLP_JSON_MAX_GROWTH 10

/*
 * Writes the n bytes of a binary ProfilesData, or ExportProfilesServiceRequest, which has the same
 * form, as one line of text without its end. 0; -EBADMSG: they are none, and what has been written
 * is worthless. Errors of writing are the stream's.
 */
int otlp_json_write(FILE *out, const uint8_t *bytes, size_t n);
