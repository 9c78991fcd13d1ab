/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page as a file: its data against the folded stacks, and that no name can leave
 * its JSON string. What a browser makes of it is tests/system/test-flamegraph-page.sh, for which
 * this program writes pages: --write small|random|hostile FILE.
 */
#include <errno.h>
#include <stdbool.h>

#include "src/render/calltree.h"
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

/* Adds up the numbers of a list; counts them. */
static uint64_t sum_list(const char *list, size_t *ret_n)
{
	uint64_t sum = 0;

	*ret_n = 0;
	while (*list) {
		char *end;

		sum += strtoull(list, &end, 10);
		CHECK(end != list && (*end == ',' || !*end));
		++*ret_n;
		list = *end ? end + 1 : end;
	}
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
	_cleanup_free_ char *symbol = between(data, "\"nodes\":{\"symbol\":[", "]");
	_cleanup_free_ char *depth = between(data, "],\n\"depth\":[", "]");
	_cleanup_free_ char *self = between(data, "],\n\"self\":[", "]");
	size_t n_symbol, n_depth, n_self;

	(void)sum_list(symbol, &n_symbol);
	(void)sum_list(depth, &n_depth);
	CHECK_INT(sum_list(self, &n_self), ==, sum_folded(folded));
	CHECK_INT(n_symbol, ==, n_depth);
	CHECK_INT(n_symbol, ==, n_self);
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

static int write_page(const char *kind, const char *path)
{
	struct profile p;
	FILE *f = fopen(path, "w");
	int r;

	if (!f)
		return 1;
	if (strcmp(kind, "hostile") == 0)
		synthetic_hostile(&p);
	else if (strcmp(kind, "random") == 0)
		synthetic_random(&p, 3, 20000);
	else
		synthetic_small(&p);
	r = render_html(&p, &synthetic_info, f);
	profile_deinit(&p);
	return fclose(f) == 0 && r == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--write") == 0)
		return write_page(argv[2], argv[3]);
	RUN(test_pages);
	RUN(test_hostile);
	RUN(test_broken_stream);
	return 0;
}
