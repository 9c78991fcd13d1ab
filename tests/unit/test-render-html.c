/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page as a file: its data against the folded stacks, and that no name can leave
 * its JSON string. What a browser makes of it is tests/system/flamegraph-page.py, for which
 * this program writes pages: --write small|random|big|hostile|diff FILE.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <stdbool.h>

#include "src/profile/labels.h"
#include "src/render/calltree.h"
#include "src/render/frame.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

static char *render(const struct profile *p,
		    int (*fn)(const struct profile *, const struct render_info *, FILE *))
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK(f);
	CHECK_INT(fn(p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_INT(strlen(text), ==, n);
	return text;
}

static char *between(const char *text, const char *begin, const char *end)
{
	const char *a = strstr(text, begin), *b;

	CHECK(a);
	a += strlen(begin);
	b = strstr(a, end);
	CHECK(b);
	return strndup(a, (size_t)(b - a));
}

/* Adds up the numbers of a column; counts them. */
static uint64_t sum_column(const char *data, const char *table, const char *key, size_t *ret_n)
{
	_cleanup_free_ char *after = between(data, table, "}"), *text = between(after, key, "\"");
	_cleanup_free_ uint8_t *bytes = malloc(strlen(text) + 1);
	struct base64_decode_ctx ctx;
	size_t n_bytes = BASE64_DECODE_LENGTH(strlen(text));
	uint64_t sum = 0, value = 0;
	unsigned int shift = 0;

	CHECK(bytes);
	base64_decode_init(&ctx);
	CHECK(base64_decode_update(&ctx, &n_bytes, bytes, strlen(text), text));
	CHECK(base64_decode_final(&ctx));
	*ret_n = 0;
	for (size_t i = 0; i < n_bytes; i++) {
		value |= (uint64_t)(bytes[i] & 0x7f) << shift;
		shift += 7;
		if (bytes[i] & 0x80)
			continue;
		sum += value;
		value = shift = 0;
		++*ret_n;
	}
	CHECK_INT(shift, ==, 0);
	return sum;
}

static uint64_t sum_folded(const char *text)
{
	uint64_t sum = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');

		while (end[-1] != ' ')
			end--;
		sum += strtoull(end, NULL, 10);
	}
	return sum;
}

static void check_page(const struct profile *p)
{
	_cleanup_free_ char *page = render(p, render_html), *folded = render(p, render_folded);
	_cleanup_free_ char *data = between(page, "id=\"data\">", "</script>");
	size_t n_place, n_up, n_value, n_node;

	(void)sum_column(data, "\"nodes\":{", "\"place\":\"", &n_place);
	(void)sum_column(data, "\"nodes\":{", "\"up\":\"", &n_up);
	(void)sum_column(data, "\"samples\":{", "\"node\":\"", &n_node);
	CHECK_INT(sum_column(data, "\"samples\":{", "\"value\":\"", &n_value), ==,
		  sum_folded(folded));
	CHECK_INT(n_place, ==, n_up);
	CHECK_INT(n_value, ==, p->types[0].samples.n);
	CHECK_INT(n_node, ==, p->types[0].samples.n);
	CHECK(!strchr(data, '<') && !strchr(data, '>') && !strchr(data, '&') &&
	      !strchr(data, '\''));
	CHECK(!strstr(data, "\xe2\x80\xa8") && !strstr(data, "\xe2\x80\xa9"));
	CHECK(!strchr(page, '@') || !strstr(page, "_HASH@"));
}

static void test_pages(void)
{
	_cleanup_free_ char *page = NULL;
	struct profile p;

	synthetic_small(&p);
	check_page(&p);
	profile_deinit(&p);
	synthetic_random(&p, 21, 3000);
	check_page(&p);
	profile_deinit(&p);
	profile_init(&p, 1 << 20);
	check_page(&p);
	page = render(&p, render_html);
	/* The page by itself names nothing to load. */
	CHECK(!strstr(page, "http://") && !strstr(page, "https://") && !strstr(page, "src="));
	profile_deinit(&p);
}

static void test_hostile(void)
{
	struct render_info info = synthetic_info;
	struct profile p;
	char *page = NULL;
	size_t n;
	FILE *f = open_memstream(&page, &n);

	synthetic_hostile(&p);
	check_page(&p);
	info.title = info.host_name = info.kernel_release = "</script><script>alert(1)</script>";
	CHECK(f);
	CHECK_INT(render_html(&p, &info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(!strstr(page, "<script>alert") && strstr(page, "\\u003cscript\\u003ealert"));
	free(page);
	profile_deinit(&p);
}

/* What render_html_diff() made of two profiles, and the two by themselves. */
static void test_diff(void)
{
	_cleanup_free_ char *page = NULL, *data = NULL, *second = NULL;
	struct profile before, after;
	size_t n;
	FILE *f = open_memstream(&page, &n);

	CHECK(f);
	synthetic_small(&before);
	synthetic_random(&after, 5, 500);
	CHECK_INT(render_html_diff(&before, &after, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	data = between(page, "id=\"data\">", "</script>");
	CHECK_INT(sum_column(data, "\"samples\":{", "\"value\":\"", &n), ==, 500);
	second = strdup(strstr(data, "},\n{\"meta\""));
	CHECK(second);
	CHECK_INT(sum_column(second, "\"samples\":{", "\"value\":\"", &n), ==, 12);
	CHECK_INT(n, ==, 12);
	profile_deinit(&before);
	profile_deinit(&after);
}

static void test_broken_stream(void)
{
	struct profile p;
	FILE *full = fopen("/dev/full", "w");

	CHECK(full);
	synthetic_small(&p);
	CHECK_INT(render_html(&p, &synthetic_info, full), ==, -EIO);
	(void)fclose(full);
	profile_deinit(&p);
}

/* Time, events of two kinds, and 64 samples of 4 KiB each. */
static void make_types(struct profile *p)
{
	struct profile_type bytes = {.period_events = 1, .weighted = true};
	uint32_t type;

	synthetic_small(p);
	synthetic_add_types(p, 4, 100);
	bytes.event = strtab_put(&p->strings, "alloc");
	bytes.unit = strtab_put(&p->strings, "bytes");
	type = profile_add_type(p, &bytes);
	for (uint32_t i = 0; i < 64; i++) {
		struct profile_sample s = p->types[0].samples.items[i % 8];

		s.value = 4096;
		CHECK(profile_add_sample_of(p, type, &s));
	}
}

static uint32_t marker_module(const struct profile *p)
{
	uint32_t module = 0;

	while (p->modules.items[module].kind != PROFILE_MODULE_MARKER)
		module++;
	return module;
}

/* 3 s: half a second without the functions of an interpreter, a quarter in a cut stack, and another
 * quarter waiting for a CPU. */
static void make_wall(struct profile *p)
{
	static const struct {
		int64_t ns;
		enum profile_marker marker;
	} parts[] = {{2000000000, PROFILE_N_MARKERS},
		     {500000000, PROFILE_MARKER_RUNTIME_LATE},
		     {250000000, PROFILE_MARKER_TRUNCATED},
		     {250000000, PROFILE_MARKER_RUNNABLE}};
	struct profile_type wall = {.period_events = 1, .weighted = true};
	uint32_t type, n, frames[64];

	synthetic_small(p);
	wall.event = strtab_put(&p->strings, PROFILE_WALL);
	wall.unit = strtab_put(&p->strings, "nanoseconds");
	type = profile_add_type(p, &wall);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct profile_sample s = p->types[0].samples.items[0];
		const uint32_t *rows = profile_stack_frames(p, s.stack, &n);

		memcpy(frames, rows, n * sizeof(*frames));
		n = parts[i].marker == PROFILE_MARKER_RUNNABLE ? 0 : n;
		if (parts[i].marker != PROFILE_N_MARKERS)
			frames[n++] = profile_add_frame(p, marker_module(p), parts[i].marker);
		s.stack = profile_add_stack(p, frames, n, 0);
		s.time_unix_ns += i * 1000000; /* so there is a heat map */
		s.value = parts[i].ns;
		s.n = 1;
		CHECK(profile_add_sample_of(p, type, &s));
	}
}

/* Each type is a capture of the page, in their order. */
static void test_types(void)
{
	static const struct {
		const char *event;
		size_t n;
	} want[] = {{"cpu-clock", 12},
		    {"page-faults", 100},
		    {"context-switches", 100},
		    {"task-clock", 100},
		    {"alloc", 64}};
	_cleanup_free_ char *page = NULL;
	struct profile p;
	char *at;

	make_types(&p);
	at = page = render(&p, render_html);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "\"event\":\"%s\"", want[i].event);
		at = strstr(at, text);
		CHECK(at);
		(void)snprintf(text, sizeof(text), "\"samples\":{\"n\":%zu", want[i].n);
		at = strstr(at, "\"samples\":{");
		CHECK(at && strncmp(at, text, strlen(text)) == 0);
	}
	CHECK(!strstr(at, "\"event\":"));
	profile_deinit(&p);
}

/* Its first thread is in a span. */
static void make_labelled(struct profile *p)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	synthetic_small(p);
	CHECK(out);
	label_write(out,
		    &(struct label){.key = LABEL_SPAN, .text = "00f067aa0ba902b7", .unit = ""});
	label_write(out, &(struct label){.key = "retry", .number = 3, .unit = ""});
	CHECK(fclose(out) == 0);
	p->threads.items[0].labels = strtab_put_n(&p->strings, text, n);
}

/* Ten seconds of two processes: one that grows, is not looked at for a while, and ends. */
static void make_memory(struct profile *p)
{
	static const struct {
		uint32_t process, ms;
		uint64_t mib;
	} points[] = {{1, 1000, 150},	     {0, 0, 100},    {0, 2000, 300},
		      {0, 4000, UINT64_MAX}, {0, 5000, 200}, {0, 7000, 0}};

	struct profile_kills k = {.n = 2};

	synthetic_random(p, 3, 1000);
	k.time_unix_ns = p->start_unix_ns + UINT64_C(6500000000);
	CHECK(profile_add_kills(p, &k));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct profile_resident r = {
			.time_unix_ns = p->start_unix_ns + points[i].ms * UINT64_C(1000000),
			.bytes = points[i].mib == UINT64_MAX ? PROFILE_RESIDENT_UNKNOWN
							     : points[i].mib << 20,
			.process = points[i].process,
		};

		CHECK(profile_add_resident(p, &r));
	}
}

/* The process with the most memory first, each in the order of time. */
static void test_memory(void)
{
	_cleanup_free_ char *page = NULL, *one = NULL, *other = NULL;
	struct profile p;

	make_memory(&p);
	page = render(&p, render_html);
	one = between(page, "\"memory\":[[", "]]],");
	CHECK(strstr(one, ",314572800,[[0,104857600],[2000000,314572800],[4000000,null],"
			  "[5000000,209715200],[7000000,0"));
	other = between(strstr(page, "\"memory\":[["), ",\n[", "}");
	CHECK(strstr(page, "\"kills\":[[6500000,2]]"));
	CHECK(strstr(other, ",157286400,[[1000000,157286400]]]"));
	profile_deinit(&p);
}

static int write_page(const char *kind, const char *path)
{
	struct render_info info = synthetic_info;
	struct profile p, before;
	FILE *f = fopen(path, "w");
	int r;

	if (!f)
		return 1;
	synthetic_small(&before);
	if (strcmp(kind, "hostile") == 0)
		synthetic_hostile(&p);
	else if (strcmp(kind, "random") == 0)
		synthetic_random(&p, 3, 20000);
	else if (strcmp(kind, "big") == 0) /* somewhat more than 100,000 nodes */
		synthetic_random(&p, 3, 4300);
	else if (strcmp(kind, "diff") == 0)
		synthetic_changed(&p);
	else if (strcmp(kind, "types") == 0)
		make_types(&p);
	else if (strcmp(kind, "wall") == 0)
		make_wall(&p);
	else if (strcmp(kind, "labelled") == 0)
		make_labelled(&p);
	else if (strcmp(kind, "memory") == 0)
		make_memory(&p);
	else
		synthetic_small(&p);
	info.before = &synthetic_info;
	r = strcmp(kind, "diff") == 0 ? render_html_diff(&before, &p, &info, f)
				      : render_html(&p, &synthetic_info, f);
	profile_deinit(&p);
	profile_deinit(&before);
	return fclose(f) == 0 && r == 0 ? 0 : 1;
}

/* What a thread waits for stands at the root of its stack, and cuts nothing off. */
static void test_kinds_of_markers(void)
{
	struct profile p;
	uint32_t module;

	synthetic_small(&p);
	module = marker_module(&p);
	CHECK_INT(frame_kind(&p, profile_add_frame(&p, module, PROFILE_MARKER_TRUNCATED)), ==,
		  FRAME_MARKER);
	for (uint64_t m = PROFILE_MARKER_WAIT; m <= PROFILE_MARKER_WAIT_FREEZER; m++)
		CHECK_INT(frame_kind(&p, profile_add_frame(&p, module, m)), ==, FRAME_WAIT);
	CHECK_INT(frame_kind(&p, profile_add_frame(&p, module, PROFILE_MARKER_NOT_SEEN)), ==,
		  FRAME_MARKER);
	profile_deinit(&p);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--write") == 0)
		return write_page(argv[2], argv[3]);
	RUN(test_pages);
	RUN(test_types);
	RUN(test_memory);
	RUN(test_hostile);
	RUN(test_diff);
	RUN(test_broken_stream);
	RUN(test_kinds_of_markers);
	return 0;
}
