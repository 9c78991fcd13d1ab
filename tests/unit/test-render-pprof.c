/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: gunzipped, decoded and checked by hand; and read by go tool pprof where there is one. */
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/pprof.pb-c.h"
#include "src/profile/labels.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

static uint8_t *render(const struct profile *p, size_t *ret_n)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, ret_n);

	CHECK(f);
	CHECK_INT(render_pprof(p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	return (uint8_t *)bytes;
}

static Perftools__Profiles__Profile *decode(const struct profile *p)
{
	const size_t max = 64 << 20;
	_cleanup_free_ uint8_t *plain = malloc(max);
	_cleanup_free_ uint8_t *gz = NULL;
	Perftools__Profiles__Profile *pb;
	z_stream z = {0};
	size_t n;

	gz = render(p, &n);
	CHECK(plain && n > 2 && gz[0] == 0x1f && gz[1] == 0x8b);
	CHECK_INT(inflateInit2(&z, 16 + MAX_WBITS), ==, Z_OK);
	z.next_in = gz;
	z.avail_in = (uInt)n;
	z.next_out = plain;
	z.avail_out = (uInt)max;
	CHECK_INT(inflate(&z, Z_FINISH), ==, Z_STREAM_END);
	(void)inflateEnd(&z);
	pb = perftools__profiles__profile__unpack(NULL, z.total_out, plain);
	CHECK(pb);
	return pb;
}

/* Every id refers to something, every string is in range and clean. Returns the sum of samples. */
static int64_t check(const Perftools__Profiles__Profile *pb, uint64_t period_ns)
{
	int64_t n_strings = (int64_t)pb->n_string_table, sum = 0;

	CHECK_STR(pb->string_table[0], "");
	for (size_t i = 0; i < pb->n_string_table; i++) {
		char clean[8192];

		(void)text_clean(clean, sizeof(clean), pb->string_table[i], SIZE_MAX);
		CHECK_STR(pb->string_table[i], clean);
		CHECK(i == 0 || *clean);
	}
	for (size_t i = 0; i < pb->n_function; i++) {
		CHECK_INT(pb->function[i]->id, ==, i + 1);
		CHECK(pb->function[i]->name > 0 && pb->function[i]->name < n_strings);
		CHECK_INT(pb->function[i]->filename, <, n_strings);
	}
	for (size_t i = 0; i < pb->n_mapping; i++)
		CHECK_INT(pb->mapping[i]->id, ==, i + 1);
	for (size_t i = 0; i < pb->n_location; i++) {
		CHECK_INT(pb->location[i]->id, ==, i + 1);
		CHECK_INT(pb->location[i]->mapping_id, <=, pb->n_mapping);
		CHECK_INT(pb->location[i]->n_line, >, 0);
		for (size_t j = 0; j < pb->location[i]->n_line; j++) {
			CHECK_INT(pb->location[i]->line[j]->function_id, >, 0);
			CHECK_INT(pb->location[i]->line[j]->function_id, <=, pb->n_function);
		}
	}
	for (size_t i = 0; i < pb->n_sample; i++) {
		CHECK_INT(pb->sample[i]->n_value, ==, 2);
		CHECK_INT(pb->sample[i]->value[1], ==,
			  pb->sample[i]->value[0] * (int64_t)period_ns);
		sum += pb->sample[i]->value[0];
		for (size_t j = 0; j < pb->sample[i]->n_location_id; j++) {
			CHECK_INT(pb->sample[i]->location_id[j], >, 0);
			CHECK_INT(pb->sample[i]->location_id[j], <=, pb->n_location);
		}
	}
	return sum;
}

static const char *label(const Perftools__Profiles__Profile *pb, size_t sample, const char *key,
			 int64_t *ret)
{
	for (size_t i = 0; i < pb->sample[sample]->n_label; i++) {
		const Perftools__Profiles__Label *l = pb->sample[sample]->label[i];

		*ret = l->num;
		if (strcmp(pb->string_table[l->key], key) == 0)
			return pb->string_table[l->str];
	}
	return NULL;
}

static void test_small(void)
{
	Perftools__Profiles__Profile *pb;
	const Perftools__Profiles__Location *leaf;
	struct profile p;
	int64_t n;
	bool lost = false;

	synthetic_small(&p);
	/* Begin with the kernel's thread: the last two samples become the first. */
	for (uint32_t i = 0; i < 2; i++) {
		struct profile_sample s = p.types[0].samples.items[i];

		p.types[0].samples.items[i] =
			p.types[0].samples.items[p.types[0].samples.n - 1 - i];
		p.types[0].samples.items[p.types[0].samples.n - 1 - i] = s;
	}
	pb = decode(&p);
	CHECK_INT(check(pb, p.types[0].period_ns), ==, 12);
	CHECK_INT(pb->n_sample, ==, 5);
	CHECK_STR(pb->string_table[pb->default_sample_type], "cpu");
	CHECK_INT(pb->period, ==, NSEC_PER_SEC / 99);
	CHECK_INT(pb->duration_nanos, ==, 10 * NSEC_PER_SEC);
	/* The main program, though the first sample might have begun in another file. */
	CHECK_STR(pb->string_table[pb->mapping[0]->filename], "/usr/bin/web");
	CHECK_STR(label(pb, 1, "comm", &n), "web");
	CHECK_STR(label(pb, 1, "thread", &n), "worker");
	CHECK(label(pb, 1, "pid", &n));
	CHECK_INT(n, ==, 100);
	CHECK(label(pb, 1, "tid", &n));
	CHECK_INT(n, ==, 101);
	CHECK(!label(pb, 0, "container", &n));
	/* The executable's name, where there is one: comm need not be it. */
	CHECK_STR(label(pb, 1, "service.name", &n), "web");
	CHECK(!label(pb, 0, "service.name", &n));
	leaf = pb->location[pb->sample[1]->location_id[0] - 1];
	CHECK_INT(leaf->address, ==, 0x2200);
	CHECK_INT(leaf->n_line, ==, 2);
	CHECK_STR(pb->string_table[pb->function[leaf->line[0]->function_id - 1]->name],
		  "skip_space");
	CHECK_STR(pb->string_table[pb->mapping[leaf->mapping_id - 1]->filename], "/usr/bin/web");
	CHECK_INT(strlen(pb->string_table[pb->mapping[leaf->mapping_id - 1]->build_id]), ==, 40);
	CHECK(pb->mapping[leaf->mapping_id - 1]->has_functions);
	for (size_t i = 0; i < pb->n_comment; i++)
		lost |= strcmp(pb->string_table[pb->comment[i]], "samples_lost: 5") == 0;
	CHECK(lost);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

/* Events that were counted: each N-th, or at a distance of the kernel's choice. */
/* Labels of other files that have our names: as text or number, and how often they come then. */
static const struct {
	struct label label;
	size_t n;
} with_our_names[] = {
	{{.key = "comm", .text = "other", .unit = ""}, 0},
	{{.key = "thread", .text = "other", .unit = ""}, 0},
	{{.key = "container", .text = "other", .unit = ""}, 0},
	{{.key = "container_name", .text = "other", .unit = ""}, 0},
	{{.key = "unit", .text = "other", .unit = ""}, 0},
	{{.key = "service.name", .text = "other", .unit = ""}, 0},
	{{.key = "service.version", .text = "other", .unit = ""}, 0},
	{{.key = "pid", .number = 4711, .unit = ""}, 0},
	{{.key = "tid", .number = 4711, .unit = ""}, 0},
	/* A reader takes the process from none of these. */
	{{.key = "pid", .text = "other", .unit = ""}, 1},
	{{.key = "comm", .number = 4711, .unit = ""}, 1},
	{{.key = "http.route", .text = "other", .unit = ""}, 1},
};

static size_t count_labels(const Perftools__Profiles__Profile *pb, const char *key, bool is_text)
{
	size_t n = 0;

	for (size_t i = 0; i < pb->n_sample; i++) {
		for (size_t j = 0; j < pb->sample[i]->n_label; j++) {
			const Perftools__Profiles__Label *l = pb->sample[i]->label[j];

			n += strcmp(pb->string_table[l->key], key) == 0 &&
			     (is_text ? strcmp(pb->string_table[l->str], "other") == 0
				      : l->num == 4711);
		}
	}
	return n;
}

/* The sample stays that of its own process. */
static void test_labels_with_our_names(void)
{
	_cleanup_free_ char *text = NULL;
	Perftools__Profiles__Profile *pb;
	struct profile p;
	size_t n_text;
	FILE *f = open_memstream(&text, &n_text);

	CHECK(f);
	for (size_t i = 0; i < ARRAY_SIZE(with_our_names); i++)
		label_write(f, &with_our_names[i].label);
	CHECK_INT(fclose(f), ==, 0);
	synthetic_small(&p);
	p.types[0].samples.n = 1;
	p.threads.items[p.types[0].samples.items[0].thread].labels =
		strtab_put_n(&p.strings, text, n_text);
	pb = decode(&p);
	for (size_t i = 0; i < ARRAY_SIZE(with_our_names); i++)
		CHECK_INT(count_labels(pb, with_our_names[i].label.key,
				       with_our_names[i].label.text != NULL),
			  ==, with_our_names[i].n);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

static void test_events(void)
{
	Perftools__Profiles__Profile *pb;
	uint64_t n_events = 0;
	struct profile p;

	synthetic_small(&p);
	p.types[0].period_ns = 0;
	p.types[0].rate_hz = 0;
	p.types[0].period_events = 100;
	p.types[0].event = strtab_put(&p.strings, "page-faults");
	pb = decode(&p);
	CHECK_INT(check(pb, 100), ==, 12);
	CHECK_STR(pb->string_table[pb->default_sample_type], "page-faults");
	CHECK_STR(pb->string_table[pb->period_type->unit], "count");
	CHECK_INT(pb->period, ==, 100);
	perftools__profiles__profile__free_unpacked(pb, NULL);

	p.types[0].period_events = 1;
	p.types[0].weighted = true;
	for (uint32_t i = 0; i < p.types[0].samples.n; i++)
		n_events += p.types[0].samples.items[i].value = 1000 + i;
	pb = decode(&p);
	for (size_t i = 0; i < pb->n_sample; i++)
		n_events -= (uint64_t)pb->sample[i]->value[1];
	CHECK_INT(n_events, ==, 0);
	CHECK(pb->sample[0]->value[0] < 1000);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

/* Of folded stacks nobody knows what a sample stands for: counts are all there is. */
static void test_no_period(void)
{
	Perftools__Profiles__Profile *pb;
	struct profile p;
	int64_t sum = 0;

	synthetic_small(&p);
	p.types[0].period_ns = 0;
	p.types[0].rate_hz = 0;
	pb = decode(&p);
	CHECK_INT(pb->n_sample_type, ==, 1);
	CHECK_STR(pb->string_table[pb->sample_type[0]->type], "samples");
	CHECK_STR(pb->string_table[pb->default_sample_type], "samples");
	CHECK(!pb->period_type);
	CHECK_INT(pb->period, ==, 0);
	for (size_t i = 0; i < pb->n_sample; i++) {
		CHECK_INT(pb->sample[i]->n_value, ==, 1);
		sum += pb->sample[i]->value[0];
	}
	CHECK_INT(sum, ==, 12);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

/* Of each type a column, in which the samples of the others are 0. */
static void test_types(void)
{
	static const char *const names[] = {"samples", "cpu", "page-faults", "context-switches",
					    "task-clock"};
	static const char *const units[] = {"count", "nanoseconds", "count", "count",
					    "nanoseconds"};
	int64_t want[5] = {0}, have[5] = {0};
	Perftools__Profiles__Profile *pb;
	struct profile p;

	synthetic_random(&p, 13, 400);
	synthetic_add_types(&p, 14, 700);
	p.types[0].samples.n = want[0] = 300;
	want[1] = 300 * (int64_t)(NSEC_PER_SEC / 99);
	for (uint32_t i = 0; i < 700; i++)
		want[2] += p.types[1].samples.items[i].value;
	want[3] = 700 * 10;
	want[4] = 700 * (int64_t)NSEC_PER_MSEC;
	pb = decode(&p);
	CHECK_INT(pb->n_sample_type, ==, 5);
	for (size_t i = 0; i < 5; i++) {
		CHECK_STR(pb->string_table[pb->sample_type[i]->type], names[i]);
		CHECK_STR(pb->string_table[pb->sample_type[i]->unit], units[i]);
	}
	CHECK_STR(pb->string_table[pb->default_sample_type], "cpu");
	CHECK_STR(pb->string_table[pb->period_type->type], "cpu");
	for (size_t i = 0; i < pb->n_sample; i++) {
		const int64_t *v = pb->sample[i]->value;

		CHECK_INT(pb->sample[i]->n_value, ==, 5);
		CHECK_INT(!!v[0], ==, !!v[1]);
		CHECK_INT(!!v[1] + !!v[2] + !!v[3] + !!v[4], ==, 1);
		for (size_t j = 0; j < 5; j++)
			have[j] += v[j];
	}
	for (size_t i = 0; i < 5; i++)
		CHECK_INT(have[i], ==, want[i]);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

/* Blocks of 4096 bytes, 4 of each sample, of which a quarter is in use. */
static void make_heap(struct profile *p)
{
	static const char *const names[] = {"alloc_space", "inuse_space", "alloc_objects",
					    "inuse_objects"};
	static const int64_t values[] = {4 * 4096, 4096, 4, 1};

	synthetic_small(p);
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_type t = {
			.period_events = 1,
			.event = strtab_put(&p->strings, names[i]),
			.unit = strtab_put(&p->strings, i < 2 ? "bytes" : ""),
			.weighted = true};

		if (i == 0)
			profile_set_type(p, 0, &t);
		else
			CHECK_INT(profile_add_type(p, &t), ==, i);
		for (uint32_t k = 0; k < p->types[0].samples.n; k++) {
			struct profile_sample s = p->types[0].samples.items[k];

			s.value = values[i];
			s.n = 1;
			if (i == 0)
				p->types[0].samples.items[k] = s;
			else
				CHECK(profile_add_sample_of(p, i, &s));
		}
	}
}

static void check_order(const struct profile *p, const char *const *names, size_t n,
			const char *shown)
{
	Perftools__Profiles__Profile *pb = decode(p);

	CHECK_INT(pb->n_sample_type, ==, n);
	for (size_t i = 0; i < n; i++)
		CHECK_STR(pb->string_table[pb->sample_type[i]->type], names[i]);
	CHECK_STR(pb->string_table[pb->default_sample_type], shown);
	perftools__profiles__profile__free_unpacked(pb, NULL);
}

/* Allocations stand as in Go's own heap profiles, and what is in use is shown first. */
static void test_heap(void)
{
	static const char *const names[] = {"alloc_objects", "alloc_space", "inuse_objects",
					    "inuse_space", "samples"};
	static const int64_t want[] = {48, 12 * 4 * 4096, 12, 12 * 4096, 12};
	static const char *const beside[] = {
		"samples",     "cpu",		"page-faults", "alloc_objects",
		"alloc_space", "inuse_objects", "inuse_space", "context-switches"};
	Perftools__Profiles__Profile *pb;
	struct profile p, other;
	int64_t have[5] = {0};

	make_heap(&p);
	check_order(&p, names, 5, "inuse_space");
	pb = decode(&p);
	CHECK_STR(pb->string_table[pb->period_type->type], "alloc_space");
	for (size_t i = 0; i < pb->n_sample; i++) {
		for (size_t k = 0; k < 5; k++)
			have[k] += pb->sample[i]->value[k];
	}
	for (size_t k = 0; k < 5; k++)
		CHECK_INT(have[k], ==, want[k]);
	perftools__profiles__profile__free_unpacked(pb, NULL);

	/* Beside CPU time, which stays the first: */
	synthetic_small(&other);
	synthetic_add_types(&other, 16, 10);
	other.n_types = 2;
	for (uint32_t i = 0; i < 5; i++) {
		struct profile_type t = {.period_events = 1, .weighted = true};

		t.event = strtab_put(&other.strings,
				     i < 2    ? profile_text(&p, p.types[i].event)
				     : i == 2 ? "context-switches"
					      : profile_text(&p, p.types[i - 1].event));
		(void)profile_add_type(&other, &t);
	}
	check_order(&other, beside, other.n_types + 1, "cpu");
	profile_deinit(&other);
	profile_deinit(&p);
}

static void test_sums(void)
{
	Perftools__Profiles__Profile *pb;
	struct profile p;

	synthetic_random(&p, 11, 5000);
	pb = decode(&p);
	CHECK_INT(check(pb, p.types[0].period_ns), ==, 5000);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);

	synthetic_hostile(&p);
	pb = decode(&p);
	CHECK_INT(check(pb, p.types[0].period_ns), ==, p.types[0].samples.n);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);

	profile_init(&p, 1 << 20);
	pb = decode(&p);
	CHECK_INT(check(pb, 0), ==, 0);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	profile_deinit(&p);
}

static void test_broken_stream(void)
{
	struct profile p;
	FILE *full = fopen("/dev/full", "w");

	CHECK(full);
	synthetic_random(&p, 12, 2000);
	CHECK_INT(render_pprof(&p, &synthetic_info, full), ==, -EIO);
	(void)fclose(full);
	profile_deinit(&p);
}

static void go_tool(const struct profile *p, const char *option, const char *expected)
{
	char path[] = "/tmp/test-pprof-XXXXXX", command[256], line[512];
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_close_ int fd = mkstemp(path);
	bool found = false;
	FILE *f;
	size_t n;

	CHECK_INT(fd, >=, 0);
	bytes = render(p, &n);
	CHECK_INT(write(fd, bytes, n), ==, n);
	(void)snprintf(command, sizeof(command), "PPROF_TMPDIR=/tmp go tool pprof %s %s 2>&1",
		       option, path);
	f = popen(command, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, expected) != NULL;
	CHECK_INT(pclose(f), ==, 0);
	CHECK_INT(unlink(path), ==, 0);
	CHECK(found);
}

static void test_go_tool(void)
{
	struct profile p;

	if (system("go tool pprof -h >/dev/null 2>&1; test $? -le 2") != 0) {
		fprintf(stderr, "no go tool pprof: not read by it\n");
		return;
	}
	synthetic_small(&p);
	go_tool(&p, "-top -sample_index=samples", "4 33.33% 33.33%          4 33.33%  skip_space");
	go_tool(&p, "-comments", "samples_lost: 5");
	synthetic_add_types(&p, 15, 100);
	go_tool(&p, "-top", "Type: cpu");
	go_tool(&p, "-top -sample_index=context-switches", "of 1000 total");
	go_tool(&p, "-comments", "page-faults at 49 Hz");
	profile_deinit(&p);
	make_heap(&p);
	go_tool(&p, "-top", "Type: inuse_space");
	go_tool(&p, "-top -sample_index=0", "Type: alloc_objects");
	go_tool(&p, "-top -sample_index=3", "Type: inuse_space");
	go_tool(&p, "-top -mean -sample_index=alloc_space", "4kB");
	profile_deinit(&p);
	synthetic_hostile(&p);
	go_tool(&p, "-raw", "Samples:");
	profile_deinit(&p);
}

int main(void)
{
	RUN(test_small);
	RUN(test_labels_with_our_names);
	RUN(test_events);
	RUN(test_no_period);
	RUN(test_types);
	RUN(test_heap);
	RUN(test_sums);
	RUN(test_broken_stream);
	RUN(test_go_tool);
	return 0;
}
