/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One unary gRPC call: what is around the message, and what the answer means (OTLP specification,
 * "OTLP/gRPC"). Knows nothing of curl. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

#define GRPC_PREFIX_BYTES 5

/* Before the message: compressed or not, and its length. */
void grpc_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], bool compressed, size_t n);

struct grpc_status {
	bool known; /* the server has said it */
	int code;
	bool has_delay; /* RetryInfo */
	uint64_t delay_ns;
	char message[257]; /* clean; "" none */
};

/* Takes what it knows of one line of headers or trailers. */
void grpc_take_header(struct grpc_status *s, const char *line, size_t n);

enum grpc_verdict { GRPC_SENT, GRPC_RETRY, GRPC_TOO_LARGE, GRPC_DROP };
/* After the answer. complete: it was not broken off. Fills s->code where the server was silent. */
enum grpc_verdict grpc_decide(struct grpc_status *s, bool complete, long http_status);

/* "UNAVAILABLE" ... */
const char *grpc_code_name(int code);

/* The message in an answer's body, borrowed; false: there is none that can be read. */
bool grpc_message(const uint8_t *body, size_t n, const uint8_t **ret, size_t *ret_n);
