/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON strings, speedscope, and OTLP/JSON next to the binary payloads it is made of. That a
 * collector takes it and that both files of a capture say the same is tests/system/outputs.py.
 */
#include <errno.h>
#include <stdbool.h>

#include "proto/otlp-json.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/json.h"

static void check_string(const char *text, size_t n, const char *expected)
{
	_cleanup_free_ char *out = NULL;
	size_t n_out;
	FILE *f = open_memstream(&out, &n_out);

	CHECK(f);
	json_put_bytes(f, text, n);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_STR(out, expected);
}

static void test_strings(void)
{
	check_string("", 0, "\"\"");
	check_string("a\"\\b", 4, "\"a\\u0022\\u005cb\"");
	check_string("</script>'&", 11, "\"\\u003c/script\\u003e\\u0027\\u0026\"");
	check_string("\xe2\x80\xa8", 3, "\"\\u2028\"");
	check_string("a\n\xff", 3, "\"a??\"");
}

/* Characters of three bytes in every place a piece could be cut. */
static void test_long_strings(void)
{
	char text[9003], expected[9006];

	for (size_t shift = 0; shift < 3; shift++) {
		size_t n = shift;

		memset(text, 'x', shift);
		for (; n + 3 < sizeof(text); n += 3)
			memcpy(text + n, "\xe2\x82\xac", 3);
		(void)snprintf(expected, sizeof(expected), "\"%.*s\"", (int)n, text);
		check_string(text, n, expected);
	}
}

struct tally {
	uint64_t n_payloads, n_samples, n_timestamps;
};

static int on_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	static const char stamps[] = "\"timestampsUnixNano\":[";
	struct tally *t = ctx;
	_cleanup_free_ char *text = NULL;
	uint64_t n_stamps = 0;
	bool quoted = false;
	int depth = 0;
	size_t n_text;
	FILE *f = open_memstream(&text, &n_text);

	CHECK(f);
	CHECK_INT(otlp_json_write(f, bytes, n), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_INT(n_text, <=, n * OTLP_JSON_MAX_GROWTH);
	CHECK_INT(strlen(text), ==, n_text);
	for (const char *c = text; *c; c++) {
		quoted ^= *c == '"';
		CHECK((unsigned char)*c >= ' ');
		depth += quoted ? 0 : (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
		CHECK_INT(depth, >=, (c[1] == '\0' ? 0 : 1));
	}
	CHECK(!quoted && depth == 0);
	/* The sanitizers' strstr() reads to the end of the text each time. */
	for (const char *c = text; (c = strchr(c, '"')); c++) {
		if (strncmp(c, stamps, strlen(stamps)) != 0)
			continue;
		for (const char *d = strchr(c, '['); *d != ']'; d++)
			n_stamps += *d == '"';
	}
	t->n_payloads++;
	t->n_samples += n_samples;
	t->n_timestamps += n_stamps / 2;
	return 0;
}

static void check_profile(struct profile *p, size_t max_bytes, uint64_t min_payloads)
{
	struct render_otlp_options o = {.max_bytes = max_bytes};
	struct tally t = {0};

	CHECK_INT(render_otlp(p, &synthetic_info, &o, on_payload, &t), ==, 0);
	CHECK_INT(t.n_samples, ==, profile_n_samples(p));
	/* Those of the kernel's choice have values instead. */
	CHECK_INT(t.n_timestamps, ==, t.n_samples - p->types[1].samples.n);
	CHECK_INT(t.n_payloads, >=, min_payloads);
	profile_deinit(p);
}

static void test_payloads(void)
{
	struct profile p;

	synthetic_random(&p, 1, 4000);
	check_profile(&p, 16 << 20, 1);
	synthetic_random(&p, 2, 4000);
	synthetic_add_types(&p, 3, 1000);
	check_profile(&p, 100 << 10, 2);
	synthetic_hostile(&p);
	check_profile(&p, 16 << 20, 1);
}

/* What is cut off, or no message at all. */
static void test_damaged(void)
{
	static const uint8_t bytes[] = {0x0a, 0x04, 0x0a, 0x02, 0x0a, 0x00, 0x12, 0x05};
	FILE *f = fopen("/dev/null", "we");

	CHECK(f);
	CHECK_INT(otlp_json_write(f, bytes, 6), ==, 0);
	for (size_t n = 1; n < sizeof(bytes); n++)
		CHECK(n == 6 || otlp_json_write(f, bytes, n) == -EBADMSG);
	CHECK_INT(fclose(f), ==, 0);
}

static void test_small(void)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	struct profile p;

	synthetic_small(&p);
	CHECK(f);
	CHECK_INT(render_otlp_json_file(&p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(strncmp(text, "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[", 48) == 0);
	CHECK(strstr(text, "\"mappingTable\":[{},{"));
	CHECK(strstr(text, "\"stringTable\":[\"\",\""));
	CHECK(strstr(text, "{\"key\":\"process.pid\",\"value\":{\"intValue\":\"100\"}}"));
	CHECK(strstr(text, "\"linkTable\":[{}]"));
	profile_deinit(&p);
}

/* The last values of speedscope's profiles whose names begin so, added up; *ret_n: how many. */
static int64_t sum_ends(const char *text, const char *begin, size_t *ret_n)
{
	int64_t sum = 0;

	*ret_n = 0;
	for (const char *c = text; (c = strstr(c, begin)); c++) {
		const char *end = strstr(c, "\"endValue\":");

		CHECK(end);
		sum += strtoll(end + strlen("\"endValue\":"), NULL, 10);
		++*ret_n;
	}
	return sum;
}

/* Of each type there are the sum and the three threads, which come to the same. */
static void check_speedscope(const struct profile *p, const char *begin, const char *unit,
			     int64_t sum)
{
	_cleanup_free_ char *text = NULL;
	char type[256];
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK(f);
	CHECK_INT(render_speedscope(p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	(void)snprintf(type, sizeof(type), "%sall processes\",\"unit\":\"%s\"", begin, unit);
	CHECK(strstr(text, type));
	CHECK_INT(sum_ends(text, type, &n), ==, sum);
	CHECK_INT(n, ==, 1);
	CHECK_INT(sum_ends(text, begin, &n), ==, 2 * sum);
	CHECK_INT(n, ==, 4);
}

static void test_speedscope(void)
{
	int64_t faults = 0;
	struct profile p;

	synthetic_small(&p);
	check_speedscope(&p, "{\"type\":\"sampled\",\"name\":\"", "nanoseconds",
			 12 * (int64_t)p.types[0].period_ns);
	synthetic_add_types(&p, 5, 100);
	for (uint32_t i = 0; i < 100; i++)
		faults += p.types[1].samples.items[i].value;
	check_speedscope(&p, "\"name\":\"cpu: ", "nanoseconds", 12 * (int64_t)p.types[0].period_ns);
	check_speedscope(&p, "\"name\":\"page-faults: ", "none", faults);
	check_speedscope(&p, "\"name\":\"context-switches: ", "none", 1000);
	check_speedscope(&p, "\"name\":\"task-clock: ", "nanoseconds", 100000000);
	profile_deinit(&p);
}

int main(void)
{
	RUN(test_strings);
	RUN(test_long_strings);
	RUN(test_payloads);
	RUN(test_small);
	RUN(test_speedscope);
	RUN(test_damaged);
	return 0;
}
