/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* OTLP profiles in JSON (opentelemetry-proto, "JSON Protobuf Encoding"). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * JSON is at most this many times as long as the message. The worst are functions and locations
 * with small numbers: {"nameStrindex":1,"filenameStrindex":2,"startLine":"3"}, in 8 bytes.
 */
#define OTLP_JSON_MAX_GROWTH 10

/*
 * Writes the n bytes of a binary ProfilesData, or of an ExportProfilesServiceRequest, which has the
 * same form, as one line of text without a newline. 0; -EBADMSG: not such a message, and the output
 * is worthless. Write errors stay with the stream.
 */
int otlp_json_write(FILE *out, const uint8_t *bytes, size_t n);
