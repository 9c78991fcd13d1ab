/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The version of the profiles schema on the wire. The path and the header value change together
 * with the encoder in proto/; plain v1 replaces both when the signal is stable. A server that knows
 * another version answers 400, and the payload must not be sent again with another number.
 */
#define SCHEMA_PATH "v1development/profiles"
#define SCHEMA_METHOD                                                                              \
	"opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export" /* gRPC */
#define SCHEMA_HEADER "OTLP-Profiles-Development-Version: 1"
#define SCHEMA_CONTENT_TYPE                                                                        \
	"Content-Type: application/x-protobuf" /* no parameters: compared as text */
#define SCHEMA_CONTENT_TYPE_JSON "Content-Type: application/json"
