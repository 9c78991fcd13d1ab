/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The answers of an OTLP server: readers of the two small messages that matter to a client. The
 * bytes are untrusted, so protobuf-c's unpack, which recurses without a limit, never sees them.
 *
 * All return 0, or -EBADMSG if the bytes are not the message (then the results are untouched). They
 * skip unknown fields. message: the server's text, made safe to print (text_clean()) and cut to
 * size bytes with its 0; "": none. size must not be 0.
 */
#include <stddef.h>
#include <stdint.h>

/*
 * ExportProfilesServiceResponse. ret_rejected: number of Profile messages the server refused; 0
 * with a message is a warning, 0 and "" is full success (as is an empty body).
 */
int otlp_response_parse(const uint8_t *bytes, size_t n, int64_t *ret_rejected, char *message,
			size_t size);
/* The same in JSON, the answer to a request in JSON. */
int otlp_response_parse_json(const uint8_t *bytes, size_t n, int64_t *ret_rejected, char *message,
			     size_t size);

/* google.rpc.Status, the body of an HTTP error. ret_code: a gRPC status code; for the log only. */
int otlp_status_parse(const uint8_t *bytes, size_t n, int32_t *ret_code, char *message,
		      size_t size);

/* The delay of the RetryInfo in the details of a google.rpc.Status. 0; -ENOENT: there is none. */
int otlp_status_retry_delay(const uint8_t *bytes, size_t n, uint64_t *ret_ns);
