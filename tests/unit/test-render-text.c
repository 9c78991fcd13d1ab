/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, the call tree below them, and the summary. */
#include <errno.h>

#include "src/render/calltree.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/text.h"

typedef int (*render_fn)(const struct profile *p, FILE *out);

static char *render(const struct profile *p, render_fn fn)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK(f);
	CHECK_INT(fn(p, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	return text;
}

static int folded(const struct profile *p, FILE *out)
{
	return render_folded(p, &synthetic_info, out);
}

static int summary_80(const struct profile *p, FILE *out)
{
	return render_summary(p, &synthetic_info, out, 0, 80);
}

static int summary_120_color(const struct profile *p, FILE *out)
{
	return render_summary(p, &synthetic_info, out, 1, 120);
}

static void test_folded_small(void)
{
	struct profile p;
	_cleanup_free_ char *text = NULL;

	synthetic_small(&p);
	text = render(&p, folded);
	CHECK_STR(text, "kworker/0:1;kthread_[k];worker_thread_[k] 2\n"
			"node;[truncated stack];renderPage_[j] 3\n"
			"node;foo_entry;[libfoo.so+0x1234] 1\n"
			"web;main;handle;parse;skip_space_[i] 4\n"
			"web;main;handle;write;do_syscall_64_[k];vfs_write_[k] 2\n");
	profile_deinit(&p);
}

static int perf_script(const struct profile *p, FILE *out)
{
	return render_perf_script(p, &synthetic_info, out);
}

/* A thread without a name is called as its process is, and that by its pid if need be. */
static void test_perf_script_names(void)
{
	struct profile p;
	_cleanup_free_ char *text = NULL;

	synthetic_small(&p);
	for (uint32_t i = 0; i < p.threads.n; i++)
		p.threads.items[i].name = STRID_EMPTY;
	p.processes.items[1].comm = STRID_EMPTY;
	text = render(&p, perf_script);
	CHECK(strstr(text, "\nweb     100/101     [") != NULL);
	CHECK(strstr(text, "\n[200]     200/200     [") != NULL);
	CHECK(strstr(text, "kworker/0:1       7/7       [") != NULL);
	profile_deinit(&p);
}

/* Every line is "stack N", once, and the numbers add up to the samples. */
static uint64_t check_lines(const char *text)
{
	uint64_t sum = 0;
	const char *previous = NULL;
	size_t n_previous = 0;

	while (*text) {
		const char *end = strchr(text, '\n'), *space;
		uint64_t n;
		char number[24];

		CHECK(end);
		for (space = end; space > text && *space != ' ';)
			space--;
		CHECK(space > text);
		CHECK_INT(end - space, <, 20);
		(void)snprintf(number, sizeof(number), "%.*s", (int)(end - space - 1), space + 1);
		CHECK_INT(text_parse_u64(number, 1, UINT64_MAX, &n), ==, 0);
		CHECK(!previous || (size_t)(space - text) != n_previous ||
		      memcmp(previous, text, n_previous) != 0);
		previous = text;
		n_previous = (size_t)(space - text);
		sum += n;
		text = end + 1;
	}
	return sum;
}

static void test_folded_sums(void)
{
	struct profile p;
	char *text;

	synthetic_random(&p, 1, 3000);
	text = render(&p, folded);
	CHECK_INT(check_lines(text), ==, 3000);
	free(text);
	profile_deinit(&p);

	synthetic_hostile(&p);
	text = render(&p, folded);
	CHECK_INT(check_lines(text), ==, p.types[0].samples.n);
	CHECK(!strstr(text, "\nroot"));
	free(text);
	profile_deinit(&p);
}

static void test_tree(void)
{
	struct profile p;
	struct calltree t;
	uint32_t depth = 0, deepest = 0, n = 1;
	uint64_t self = 0;

	synthetic_random(&p, 2, 2000);
	CHECK_INT(calltree_build(&t, &p, CALLTREE_MODULES), ==, 0);
	CHECK_INT(t.nodes.items[0].total, ==, 2000);
	CHECK_INT(t.n_cut, ==, 0);
	for (uint32_t i = calltree_next(&t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(&t, i, &depth)) {
		const struct call_node *node = &t.nodes.items[i];
		uint64_t children = 0;

		for (uint32_t c = node->first_child; c != CALLTREE_NONE;
		     c = t.nodes.items[c].next) {
			CHECK_INT(t.nodes.items[c].parent, ==, i);
			children += t.nodes.items[c].total;
		}
		CHECK_INT(node->total, ==, node->self + children);
		self += node->self;
		n++;
		if (depth > deepest)
			deepest = depth;
	}
	CHECK_INT(depth, ==, 0);
	CHECK_INT(n, ==, t.nodes.n);
	CHECK_INT(self, ==, 2000);
	CHECK_INT(deepest, >, 40);
	for (uint32_t i = 0; i < t.symbols.n; i++) {
		CHECK_INT(t.symbols.items[i].total, <=, 2000);
		CHECK_INT(t.symbols.items[i].self, <=, t.symbols.items[i].total);
	}
	calltree_deinit(&t);
	profile_deinit(&p);
}

static size_t widest(const char *text)
{
	size_t best = 0, n = 0;

	for (; *text; text++) {
		if (*text == '\n')
			n = 0;
		else if ((*text & 0xc0) != 0x80 && ++n > best)
			best = n;
	}
	return best;
}

static void test_summary(void)
{
	struct profile p;
	char *text;

	synthetic_small(&p);
	text = render(&p, summary_80);
	CHECK(strstr(text,
		     "cpu-clock at 99 Hz for 10.0 s on 4 CPUs, host host-1, Linux 6.1.0-test\n"));
	CHECK(strstr(
		text,
		"Samples                         12          0.1 s of CPU time: 0.01 CPUs busy\n"));
	CHECK(strstr(text, "  lost                           5   29.4%"));
	CHECK(strstr(text, "  complete                       7   70.0%"));
	CHECK(strstr(text, "  truncated                      3   30.0%"));
	CHECK(!strstr(text, "dropped"));
	CHECK(strstr(text, "  33.3%   33.3%  skip_space"));
	CHECK(strstr(text, "  50.0%        1  web                       33.3% skip_space\n"));
	CHECK(strstr(text, "  50.0%  docker 0123456789ab\n"));
	CHECK(strstr(text, "  33.3%  site.service\n"));
	CHECK(!strchr(text, '\033'));
	CHECK_INT(widest(text), <=, 80);
	free(text);
	profile_deinit(&p);

	synthetic_random(&p, 3, 1000);
	text = render(&p, summary_80);
	CHECK_INT(widest(text), <=, 80);
	free(text);
	text = render(&p, summary_120_color);
	CHECK(strstr(text, "\033[1m"));
	free(text);
	profile_deinit(&p);

	/* Nothing of a name reaches the terminal as an escape. */
	synthetic_hostile(&p);
	text = render(&p, summary_80);
	CHECK(!strchr(text, '\033') && !strchr(text, '\r') && !strchr(text, '\a'));
	CHECK_INT(widest(text), <=, 80);
	free(text);
	profile_deinit(&p);
}

/* What was left out does not count; copies and frames are shown where they say something. */
static void test_summary_of_stacks(void)
{
	struct profile p;
	char *text;

	synthetic_small(&p);
	p.counters[PROFILE_SAMPLES] += 30;
	p.counters[PROFILE_SAMPLES_FILTERED] = 30;
	p.types[0].stack_bytes = 16 << 10;
	p.counters[PROFILE_STACKS_WITHIN_8K] = 3;
	p.counters[PROFILE_STACKS_WITHIN_16K] = 1;
	p.counters[PROFILE_STACKS_TO_16_FRAMES] = 4;
	text = render(&p, summary_80);
	CHECK(strstr(text, "Samples                         12  "));
	CHECK(strstr(text, "  left out                      30   63.8%  of other processes\n"));
	CHECK(strstr(text, "  copied                  16.0 KiB          of each stack; 8K would do "
			   "for 75%\n"));
	CHECK(strstr(text, "  frames                  up to 16          in half of the stacks\n"));
	free(text);
	/* The largest copy comes with what the kernel finds by frame pointers. */
	p.counters[PROFILE_STACKS_LEFT] = 2;
	text = render(&p, summary_80);
	CHECK(strstr(text, "  20.0%  not copied: see --stack-size 65528\n"));
	free(text);
	p.types[0].stack_bytes = 65528;
	text = render(&p, summary_80);
	CHECK(strstr(text, "  20.0%  continue on a stack that is not cop"));
	free(text);
	p.counters[PROFILE_STACKS_LEFT] = 0;
	p.types[0].stack_bytes = 32 << 10;
	p.counters[PROFILE_STACKS_TO_16_FRAMES] = 0;
	p.counters[PROFILE_STACKS_TO_16_FRAMES + 4] = 4;
	text = render(&p, summary_120_color);
	CHECK(strstr(text, "of each stack; 8K would do for 75%, 16K for 100%"));
	CHECK(strstr(text, "over 128") && strstr(text, "in 100.0% of the stacks"));
	free(text);
	profile_deinit(&p);
}

/* 1.96 * sqrt(variance) of 12 are 9.8%. A total that lacks more than that is not said to be so. */
static void test_summary_of_errors(void)
{
	struct profile p;
	char *text;

	synthetic_small(&p);
	p.types[0].weighted = true;
	p.types[0].period_ns = 0;
	p.types[0].period_events = 1;
	p.types[0].unit = strtab_put(&p.strings, "bytes");
	p.types[0].variance = 0.36;
	p.counters[PROFILE_SAMPLES_LOST] = p.types[0].counters[PROFILE_SAMPLES_LOST] = 1;
	text = render(&p, summary_80);
	CHECK(strstr(text, " 12 B of cpu-clock \302\261 9.8%\n"));
	free(text);
	p.counters[PROFILE_SAMPLES_LOST] = p.types[0].counters[PROFILE_SAMPLES_LOST] = 2;
	text = render(&p, summary_80);
	CHECK(strstr(text, " 12 B of cpu-clock\n"));
	free(text);
	profile_deinit(&p);
}

/* All of four CPUs are busy. Samples may be in step with the kernel's ticks. */
static void test_summary_of_shares(void)
{
	static const struct {
		uint32_t rate_hz; /* 0: by period_ns */
		uint64_t period_ns;
		int64_t value;
		bool told;
	} cases[] = {
		{0, 2000000, 19000, true},   {0, 2000000, 10000, false},
		{0, 1900000, 19000, false},  {0, 10000000, 3800, true},
		{5, 200000000, 190, true},   {99, 10101010, 4500, false},
		{200, 5000000, 9000, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile p;
		char *text;

		synthetic_small(&p);
		p.types[0].rate_hz = cases[i].rate_hz;
		p.types[0].period_ns = cases[i].period_ns;
		p.types[0].samples.items[0].value = cases[i].value;
		text = render(&p, summary_80);
		CHECK_INT(strstr(text, "shares may be off") != NULL, ==, cases[i].told);
		CHECK_INT(widest(text), <=, 84); /* the line with the period */
		free(text);
		profile_deinit(&p);
	}
}

static void test_empty(void)
{
	struct profile p;
	char *text;

	profile_init(&p, 1 << 20);
	text = render(&p, folded);
	CHECK_STR(text, "");
	free(text);
	text = render(&p, summary_80);
	CHECK(strstr(text, "No samples"));
	free(text);
	p.counters[PROFILE_SAMPLES_FILTERED] = 1;
	text = render(&p, summary_80);
	CHECK(strstr(text, "No samples: what was selected did not run"));
	free(text);
	profile_deinit(&p);
}

static void test_broken_stream(void)
{
	struct profile p;
	FILE *full = fopen("/dev/full", "w");

	CHECK(full);
	synthetic_small(&p);
	CHECK_INT(folded(&p, full), ==, -EIO);
	CHECK_INT(summary_80(&p, full), ==, -EIO);
	(void)fclose(full);
	profile_deinit(&p);
}

int main(int argc, char **argv)
{
	struct profile p;

	if (argc > 1 && strcmp(argv[1], "--show") == 0) {
		synthetic_random(&p, 3, 100000);
		CHECK_INT(render_summary(&p, &synthetic_info, stdout, 1, 110), ==, 0);
		profile_deinit(&p);
		return 0;
	}
	RUN(test_folded_small);
	RUN(test_folded_sums);
	RUN(test_perf_script_names);
	RUN(test_tree);
	RUN(test_summary);
	RUN(test_summary_of_stacks);
	RUN(test_summary_of_errors);
	RUN(test_summary_of_shares);
	RUN(test_empty);
	RUN(test_broken_stream);
	return 0;
}
