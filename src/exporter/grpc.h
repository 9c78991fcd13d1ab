/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One unary gRPC call: the framing of the message, and the meaning of the answer (OTLP
 * specification, "OTLP/gRPC"; gRPC over HTTP/2). It does not know curl. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

#define GRPC_PREFIX_BYTES 5

/* Writes the prefix of a message: whether it is compressed, and its length. */
void grpc_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], bool compressed, size_t n);

struct grpc_status {
	bool known; /* the server sent a status */
	int code;
	bool has_delay; /* RetryInfo */
	uint64_t delay_ns;
	char message[257]; /* without control characters; "": none */
};

/* Reads a line of the headers or trailers; ignores those that it does not know. */
void grpc_take_header(struct grpc_status *s, const char *line, size_t n);

enum grpc_verdict { GRPC_SENT, GRPC_RETRY, GRPC_TOO_LARGE, GRPC_DROP };
/* Judges an answer. complete: the connection did not break. Sets s->code if the server sent none.
 * */
enum grpc_verdict grpc_decide(struct grpc_status *s, bool complete, long http_status);

/* "UNAVAILABLE" ... */
const char *grpc_code_name(int code);

/* Finds the message in an answer's body; *ret borrows the body. false: there is none, or it cannot
 * be read. */
bool grpc_message(const uint8_t *body, size_t n, const uint8_t **ret, size_t *ret_n);
