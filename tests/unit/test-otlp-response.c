/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "proto/otlp-profiles-service.pb-c.h"
#include "proto/otlp-response.h"
#include "proto/rpc-status.pb-c.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

/* The generated encoder is the other end of the wire here. */
static size_t encode_response(uint8_t *buf, int64_t rejected, const char *text)
{
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess ps =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse r =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	char copy[256];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	ps.rejected_profiles = rejected;
	ps.error_message = copy;
	r.partial_success = &ps;
	return protobuf_c_message_pack(&r.base, buf);
}

static size_t encode_status(uint8_t *buf, int32_t code, const char *text)
{
	Google__Rpc__Status s = GOOGLE__RPC__STATUS__INIT;
	Google__Rpc__Detail d = GOOGLE__RPC__DETAIL__INIT, *details[] = {&d};
	char copy[256], url[] = "type.example/Thing";

	(void)snprintf(copy, sizeof(copy), "%s", text);
	s.code = code;
	s.message = copy;
	d.type_url = url;
	s.n_details = 1;
	s.details = details;
	return protobuf_c_message_pack(&s.base, buf);
}

static void test_response(void)
{
	uint8_t buf[512];
	char message[64];
	int64_t rejected = -1;

	CHECK_INT(otlp_response_parse(NULL, 0, &rejected, message, sizeof(message)), ==, 0);
	CHECK_INT(rejected, ==, 0);
	CHECK_STR(message, "");

	CHECK_INT(otlp_response_parse(buf, encode_response(buf, 7, "too \x1b[1m old"), &rejected,
				      message, sizeof(message)),
		  ==, 0);
	CHECK_INT(rejected, ==, 7);
	CHECK_STR(message, "too ?[1m old");

	CHECK_INT(otlp_response_parse(buf, encode_response(buf, -1, "abcdefghij"), &rejected,
				      message, 5),
		  ==, 0);
	CHECK_INT(rejected, ==, -1);
	CHECK_STR(message, "abcd");
}

static void check_json(const char *text, int64_t expected, const char *expected_message)
{
	int64_t rejected = -1;
	char message[64] = "untouched";

	CHECK_INT(otlp_response_parse_json((const uint8_t *)text, strlen(text), &rejected, message,
					   sizeof(message)),
		  ==, expected < 0 ? -EBADMSG : 0);
	CHECK_INT(rejected, ==, expected);
	CHECK_STR(message, expected_message);
}

static void test_response_in_json(void)
{
	check_json("{}", 0, "");
	check_json("{\"partialSuccess\":{}}", 0, "");
	check_json("{\"partialSuccess\":{\"rejectedProfiles\":\"7\"}}", 7, "");
	check_json("{ \"partialSuccess\" : { \"rejectedProfiles\" : 7, "
		   "\"errorMessage\":\"a \\u003cb\\u003E\\n\\\"c\\\" \\u00e9\" } }",
		   7, "a <b> \"c\" ?");
	check_json("{\"other\":{\"rejectedProfiles\":7},\"partialSuccess\":{\"x\":[{"
		   "\"errorMessage\":\"no\"}],\"errorMessage\":null}}",
		   0, "");
	check_json("{\"partialSuccess\":{\"errorMessage\":\"cut", 0, "");
	check_json("", -1, "untouched");
	check_json("oops", -1, "untouched");
}

static void test_status(void)
{
	uint8_t buf[512];
	char message[64];
	int32_t code = -1;

	CHECK_INT(otlp_status_parse(buf, encode_status(buf, 3, "bad"), &code, message,
				    sizeof(message)),
		  ==, 0);
	CHECK_INT(code, ==, 3);
	CHECK_STR(message, "bad");
}

/* Every prefix of a good message either parses or is refused, and a refusal changes nothing. */
static void test_cut(void)
{
	uint8_t buf[512];
	size_t n = encode_status(buf, 14, "unavailable for now");
	int n_refused = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ uint8_t *exact = malloc(i ? i : 1);
		char message[64] = "as before";
		int32_t code = -5;

		CHECK(exact);
		memcpy(exact, buf, i);
		if (otlp_status_parse(exact, i, &code, message, sizeof(message)) < 0) {
			CHECK_INT(code, ==, -5);
			CHECK_STR(message, "as before");
			n_refused++;
		}
	}
	CHECK_INT(n_refused, >, 20);
}

static void refused(const uint8_t *bytes, size_t n)
{
	char message[16];
	int64_t rejected;
	int32_t code;

	CHECK_INT(otlp_response_parse(bytes, n, &rejected, message, sizeof(message)), ==, -EBADMSG);
	CHECK_INT(otlp_status_parse(bytes, n, &code, message, sizeof(message)), ==, -EBADMSG);
}

static void test_hostile(void)
{
	static const uint8_t too_long[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0x7f};
	static const uint8_t huge[] = {0x12, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0x01};
	static const uint8_t group[] = {0x0b, 0x0c}, field_zero[] = {0x00, 0x00};
	_cleanup_free_ uint8_t *deep = malloc(1 << 20);
	char message[16];
	int64_t rejected;
	size_t n = 0;

	refused(too_long, sizeof(too_long));
	refused(huge, sizeof(huge));
	refused(group, sizeof(group));
	refused(field_zero, sizeof(field_zero));

	/* Messages nested a quarter of a million deep cost one level, not a stack. */
	CHECK(deep);
	for (size_t left = 1 << 20; left > 8 && n < (1 << 20) - 8;) {
		size_t inner = left - 5;

		deep[n++] = 0x0a;
		deep[n++] = (uint8_t)(0x80 | (inner & 0x7f));
		deep[n++] = (uint8_t)(0x80 | (inner >> 7 & 0x7f));
		deep[n++] = (uint8_t)(0x80 | (inner >> 14 & 0x7f));
		deep[n++] = (uint8_t)(inner >> 21 & 0x7f);
		left = inner;
	}
	memset(deep + n, 0, (1 << 20) - n);
	CHECK_INT(otlp_response_parse(deep, 1 << 20, &rejected, message, sizeof(message)), ==, 0);
	CHECK_INT(rejected, ==, 0);
}

int main(void)
{
	RUN(test_response);
	RUN(test_response_in_json);
	RUN(test_status);
	RUN(test_cut);
	RUN(test_hostile);
	return 0;
}
