/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a server of OTLP answers, read as each of the things that it may be: a
 * body in protobuf and in JSON, an error's status, a message of gRPC, and lines of headers and
 * trailers.
 */
#include "proto/otlp-response.h"
#include "src/exporter/grpc.h"
#include "tests/fuzz/input.h"

enum { TEXT_MAX = 64 };

static void read_body(const uint8_t *data, size_t n)
{
	char message[TEXT_MAX] = "";
	int64_t rejected = 0;
	int32_t code = 0;
	uint64_t delay_ns = 0;

	(void)otlp_response_parse(data, n, &rejected, message, sizeof(message));
	input_touch_text(message);
	(void)otlp_response_parse_json(data, n, &rejected, message, sizeof(message));
	input_touch_text(message);
	(void)otlp_status_parse(data, n, &code, message, sizeof(message));
	input_touch_text(message);
	(void)otlp_status_retry_delay(data, n, &delay_ns);
	input_sink += (uint64_t)rejected + (uint64_t)code + delay_ns;
}

static void read_headers(const uint8_t *data, size_t n)
{
	struct grpc_status s = {0};

	while (n > 0) {
		const uint8_t *end = memchr(data, '\n', n);
		size_t length = end ? (size_t)(end - data) + 1 : n;

		grpc_take_header(&s, (const char *)data, length);
		data += length;
		n -= length;
	}
	input_touch_text(s.message);
	input_sink += (uint64_t)grpc_decide(&s, true, 200) + (uint64_t)grpc_decide(&s, false, 0);
	input_touch_text(grpc_code_name(s.code));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *message;
	size_t n_message;

	read_body(data, n);
	read_headers(data, n);
	if (grpc_message(data, n, &message, &n_message)) {
		if (message < data || n_message > n || message + n_message > data + n)
			abort();
		read_body(message, n_message);
	}
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 64, 200);
}
#endif
