/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a process context, as bytes that another writer of protobuf made. */
#include <errno.h>

#include "proto/process-context.h"
#include "tests/unit/test.h"

struct seen {
	char text[512];
	size_t n;
};

static void add(struct seen *s, const char *text, size_t n)
{
	CHECK(s->n + n < sizeof(s->text));
	memcpy(s->text + s->n, text, n);
	s->n += n;
	s->text[s->n] = '\0';
}

static int take_text(void *ctx, const uint8_t *text, size_t n)
{
	add(ctx, text ? (const char *)text : "-", text ? n : 1);
	add(ctx, ";", 1);
	return 0;
}

static int take(void *ctx, const struct process_context_attribute *a)
{
	struct seen *s = ctx;
	char number[32];
	double d;

	add(s, a->is_resource ? "R " : "X ", 2);
	add(s, (const char *)a->key, a->n_key);
	add(s, "=", 1);
	memcpy(&d, &a->number, sizeof(d));
	(void)snprintf(number, sizeof(number), "%lld%s", (long long)a->number,
		       a->kind == PROCESS_CONTEXT_BOOL ? "b" : "");
	if (a->kind == PROCESS_CONTEXT_DOUBLE)
		(void)snprintf(number, sizeof(number), "%gd", d);
	if (a->kind == PROCESS_CONTEXT_TEXT)
		add(s, (const char *)a->bytes, a->n);
	else if (a->kind == PROCESS_CONTEXT_LIST)
		CHECK_INT(process_context_each_text(a->bytes, a->n, take_text, s), ==, 0);
	else
		add(s, number, strlen(number));
	add(s, "\n", 1);
	return 0;
}

#define RESOURCE                                                                                   \
	"\x0a\x3d"                                                                                 \
	"\x0a\x14\x0a\x0cservice.name\x12\x04\x0a\x02"                                             \
	"ab"                                                                                       \
	"\x0a\x10\x0a\x01n\x12\x0b\x18\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01"                    \
	"\x0a\x07\x0a\x01"                                                                         \
	"b\x12\x02\x10\x07"                                                                        \
	"\x0a\x03\x0a\x01v"                                                                        \
	"\x0a\x05\x12\x03\x0a\x01x"
/* A list with the texts "p" and "q" around a number. */
#define EXTRA "\x12\x15\x0a\x01k\x12\x10\x2a\x0e\x0a\x03\x0a\x01p\x0a\x02\x18\x05\x0a\x03\x0a\x01q"

static void test_attributes(void)
{
	static const char payload[] = RESOURCE EXTRA;
	struct seen s = {.n = 0};

	CHECK_INT(process_context_read((const uint8_t *)payload, sizeof(payload) - 1, take, &s), ==,
		  0);
	CHECK_STR(s.text, "R service.name=ab\nR n=-5\nR b=1b\nX k=p;-;q;\n");
}

static void test_double(void)
{
	static const char payload[] = "\x12\x0e\x0a\x01r\x12\x09\x21\0\0\0\0\0\0\xf8\x3f";
	struct seen s = {.n = 0};

	CHECK_INT(process_context_read((const uint8_t *)payload, sizeof(payload) - 1, take, &s), ==,
		  0);
	CHECK_STR(s.text, "X r=1.5d\n");
}

static void test_schemas(void)
{
	static const struct {
		const char *text;
		enum process_context_schema schema;
	} cases[] = {
		{"tls_v1", PROCESS_CONTEXT_THREADS},
		{"tlsdesc_v1", PROCESS_CONTEXT_THREADS},
		{"tlsdesc_v1_dev", PROCESS_CONTEXT_THREADS},
		{"nodejs_v1", PROCESS_CONTEXT_NODE},
		{"nodejs_v1_dev", PROCESS_CONTEXT_NODE},
		{"tls_v", PROCESS_CONTEXT_UNKNOWN_SCHEMA},
		{"tls_v10", PROCESS_CONTEXT_UNKNOWN_SCHEMA},
		{"", PROCESS_CONTEXT_UNKNOWN_SCHEMA},
	};
	static const char key[] = "threadlocal.schema_version";
	struct process_context_attribute a = {.key = (const uint8_t *)key,
					      .n_key = sizeof(key) - 1,
					      .kind = PROCESS_CONTEXT_TEXT};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		a.bytes = (const uint8_t *)cases[i].text;
		a.n = strlen(cases[i].text);
		CHECK_INT(process_context_schema_of(&a), ==, cases[i].schema);
	}
	a.is_resource = 1;
	CHECK_INT(process_context_schema_of(&a), ==, PROCESS_CONTEXT_NO_SCHEMA);
	a.is_resource = 0;
	a.n_key--;
	CHECK_INT(process_context_schema_of(&a), ==, PROCESS_CONTEXT_NO_SCHEMA);
}

static void test_every_cut(void)
{
	static const char payload[] = RESOURCE EXTRA;

	for (size_t n = 0; n < sizeof(payload) - 1; n++) {
		struct seen s = {.n = 0};
		int r = process_context_read((const uint8_t *)payload, n, take, &s);

		/* Between two whole fields it is a shorter payload. */
		CHECK_INT(r, ==, n == 0 || n == sizeof(RESOURCE) - 1 ? 0 : -EBADMSG);
	}
}

static int refuse(void *ctx, const struct process_context_attribute *a)
{
	return -E2BIG;
}

static void test_the_end_is_the_callers(void)
{
	static const char payload[] = EXTRA;

	CHECK_INT(process_context_read((const uint8_t *)payload, sizeof(payload) - 1, refuse, NULL),
		  ==, -E2BIG);
}

int main(void)
{
	RUN(test_attributes);
	RUN(test_double);
	RUN(test_schemas);
	RUN(test_every_cut);
	RUN(test_the_end_is_the_callers);
	return 0;
}
