/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the renderings write, the readers read: folded stacks of a profile that went through a
 * format are those of the profile. Then the same bytes damaged in thousands of ways.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/otlp-profiles-service.pb-c.h"
#include "src/import/import.h"
#include "src/render/render.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"

#define ROUNDS	  1500
#define MAX_BYTES (UINT64_C(64) << 20)

typedef int (*render_fn)(const struct profile *, const struct render_info *, FILE *);

static char *rendered(const struct profile *p, render_fn render, size_t *ret_n)
{
	static const struct render_info info = {.host_name = "testhost",
						.kernel_release = "6.1.0",
						.title = "perfwalk record -a",
						.version = "1.0",
						.n_cpus = 4};
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, ret_n);

	CHECK(f != NULL);
	CHECK_INT(render(p, &info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	return bytes;
}

static const char *wanted; /* event */

static int import_bytes(struct profile *p, struct import_facts *facts, enum import_kind kind,
			const void *bytes, size_t n, char *error)
{
	int fd = memfd_create("import", MFD_CLOEXEC), r;

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, bytes, n), ==, (ssize_t)n);
	r = import_fd(p, facts, fd, kind, wanted, MAX_BYTES, error);
	(void)close(fd);
	return r;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in order, without what the first of them says when no executable is known. */
static char *sorted(char *text)
{
	char *lines[4096], *save = NULL, *out;
	size_t n = 0, at = 0, size = strlen(text) + 2;

	out = calloc(1, size);
	for (char *l = strtok_r(text, "\n", &save); l && n < 4096; l = strtok_r(NULL, "\n", &save))
		lines[n++] = l;
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, size - at, "%s\n", lines[i]);
	return out;
}

static void check_round_trip(const struct profile *p, enum import_kind kind, render_fn render)
{
	char error[IMPORT_ERROR_MAX] = "", *bytes, *want, *have, *a, *b;
	struct import_facts facts = {0};
	struct profile back;
	size_t n, m;

	bytes = rendered(p, render, &n);
	profile_init(&back, UINT64_C(1) << 28);
	CHECK_INT(import_bytes(&back, &facts, kind, bytes, n, error), ==, 0);
	want = rendered(p, render_folded, &m);
	have = rendered(&back, render_folded, &m);
	a = sorted(have);
	b = sorted(want);
	CHECK_STR(a, b);
	if (kind != IMPORT_FOLDED) {
		CHECK_STR(facts.host_name, "testhost");
		CHECK_STR(facts.kernel_release, "6.1.0");
		CHECK_STR(facts.title, "perfwalk record -a");
		CHECK_INT(facts.n_cpus, ==, 4);
		CHECK_INT(back.types[0].rate_hz, ==, p->types[0].rate_hz);
		CHECK_INT(back.types[0].period_ns, ==, p->types[0].period_ns);
		CHECK_INT(back.start_unix_ns, ==, p->start_unix_ns);
	}
	if (kind != IMPORT_FOLDED)
		for (int c = 0; c < PROFILE_N_COUNTERS; c++)
			CHECK_INT(back.counters[c], ==, p->counters[c]);
	free(a);
	free(b);
	free(want);
	free(have);
	free(bytes);
	import_facts_deinit(&facts);
	profile_deinit(&back);
}

static void test_round_trips(void)
{
	struct profile p;

	synthetic_small(&p);
	check_round_trip(&p, IMPORT_FOLDED, render_folded);
	check_round_trip(&p, IMPORT_PPROF, render_pprof);
	check_round_trip(&p, IMPORT_OTLP, render_otlp_file);
	profile_deinit(&p);
}

#define MAX_PID 256

static void sum_by_pid(const struct profile *p, int64_t sums[MAX_PID])
{
	for (uint32_t i = 0; i < p->types[0].samples.n; i++) {
		const struct profile_sample *s = &p->types[0].samples.items[i];

		sums[p->processes.items[p->threads.items[s->thread].process].pid] +=
			s->value * (int64_t)profile_period(p);
	}
}

/* wanted: of the file of several types the one that is this number. */
static void check_type(const struct profile *p, uint32_t type, enum import_kind kind,
		       render_fn render)
{
	int64_t have[MAX_PID] = {0}, want[MAX_PID] = {0};
	char error[IMPORT_ERROR_MAX] = "", *bytes;
	struct import_facts facts = {0};
	struct profile back, view;
	size_t n;
	int r;

	bytes = rendered(p, render, &n);
	profile_init(&back, UINT64_C(1) << 28);
	r = import_bytes(&back, &facts, kind, bytes, n, error);
	CHECK_INT(r, ==, wanted ? 0 : kind == IMPORT_PPROF ? IMPORT_CHOSE : IMPORT_LEFT_OUT);
	profile_view(p, type, &view);
	sum_by_pid(&view, want);
	sum_by_pid(&back, have);
	CHECK(memcmp(have, want, sizeof(have)) == 0);
	/* Values in nanoseconds are of "cpu", whatever event gave them. */
	if (!wanted || type > 0)
		CHECK_STR(profile_text(&back, back.types[0].event),
			  profile_text(p, view.types[0].event));
	if (kind == IMPORT_PPROF || back.types[0].period_ns)
		CHECK_INT(back.types[0].rate_hz, ==, view.types[0].rate_hz);
	CHECK_STR(facts.title, "perfwalk record -a");
	for (int c = 0; c < PROFILE_N_COUNTERS; c++)
		CHECK_INT(profile_counter(&back, (enum profile_counter)c), ==,
			  profile_counter(&view, (enum profile_counter)c));
	free(bytes);
	import_facts_deinit(&facts);
	profile_deinit(&back);
}

/* Of a file of several types the first is read, or the one that is asked for, with what was counted
 * of it. */
static void test_types(void)
{
	static const struct {
		const char *wanted;
		uint32_t type;
	} cases[] = {{NULL, 0},
		     {"cpu", 0},
		     {"cpu-clock", 0},
		     {"page-faults", 1},
		     {"context-switches", 2},
		     {"task-clock", 3}};
	struct profile p;

	synthetic_small(&p);
	synthetic_add_types(&p, 31, 100);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wanted = cases[i].wanted;
		check_type(&p, cases[i].type, IMPORT_PPROF, render_pprof);
		check_type(&p, cases[i].type, IMPORT_OTLP, render_otlp_file);
	}
	wanted = NULL;
	profile_deinit(&p);
}

/* ---- Several files ---- */

/* The folded stacks of texts that are read one after the other into one profile. */
static char *merged(const char *const *texts, size_t n)
{
	char error[IMPORT_ERROR_MAX] = "", *text, *lines;
	struct import_facts facts = {0};
	struct profile p;
	size_t m;

	profile_init(&p, UINT64_C(1) << 24);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(
			import_bytes(&p, &facts, IMPORT_FOLDED, texts[i], strlen(texts[i]), error),
			==, 0);
	text = rendered(&p, render_folded, &m);
	lines = sorted(text);
	free(text);
	import_facts_deinit(&facts);
	profile_deinit(&p);
	return lines;
}

/* Frames that have a name and no address keep their names, whatever other files name. */
static void test_merged_names(void)
{
	static const char *const two[] = {"p;a;c 1\n", "p;b;a 7\n"};
	static const char *const three[] = {"main;random 1\n", "x;y;z 1\n", "main;a;random 5\n"};
	char *have = merged(two, 2);

	CHECK_STR(have, "p;a;c 1\np;b;a 7\n");
	free(have);
	have = merged(three, 3);
	CHECK_STR(have, "main;a;random 5\nmain;random 1\nx;y;z 1\n");
	free(have);
}

/* Against a model: lines are their texts, equal ones are added up. */
static void test_merged_at_random(void)
{
	enum { FILES = 4, LINES = 20, NAMES = 9 };

	srand(3);
	for (int round = 0; round < 30; round++) {
		char texts[FILES][2048] = {""}, all[FILES * 2048] = "", *have, *want;
		const char *files[FILES];

		for (int i = 0; i < FILES; i++) {
			for (int l = 0; l < LINES; l++) {
				char line[64];

				/* A number of its own in each line, so that none are equal. */
				(void)snprintf(line, sizeof(line), "p;f%d;f%d;f%d;n%d 1\n",
					       rand() % NAMES, rand() % NAMES, rand() % NAMES,
					       i * LINES + l);
				strcat(texts[i], line);
				strcat(all, line);
			}
			files[i] = texts[i];
		}
		have = merged(files, FILES);
		want = sorted(all);
		CHECK_STR(have, want);
		free(have);
		free(want);
	}
}

/* Files of other tools know few build ids, and not every process by a name. */
static void test_otlp_without_ids(void)
{
	char error[IMPORT_ERROR_MAX] = "", *bytes, *text, *want, *have;
	struct import_facts facts = {0};
	struct profile p, back;
	uint32_t n_paths = 0;
	size_t n, m;

	synthetic_small(&p);
	for (uint32_t i = 0; i < p.modules.n; i++) {
		p.modules.items[i].n_build_id = 0;
		p.modules.items[i].htlhash = p.modules.items[i].go_build_id = STRID_EMPTY;
	}
	for (uint32_t i = 0; i < p.processes.n; i++)
		p.processes.items[i].comm = p.processes.items[i].executable_path = STRID_EMPTY;
	bytes = rendered(&p, render_otlp_file, &n);
	profile_init(&back, UINT64_C(1) << 28);
	CHECK_INT(import_bytes(&back, &facts, IMPORT_OTLP, bytes, n, error), ==, 0);
	for (uint32_t i = 0; i < back.modules.n; i++)
		n_paths += back.modules.items[i].path != STRID_EMPTY;
	CHECK_INT(n_paths, ==, 2);
	text = rendered(&p, render_folded, &m);
	want = sorted(text);
	free(text);
	text = rendered(&back, render_folded, &m);
	have = sorted(text);
	free(text);
	CHECK_STR(have, want);
	CHECK(strstr(want, "[7];") != NULL);
	CHECK(strstr(want, "renderPage_[j]") != NULL);
	free(want);
	free(have);
	free(bytes);
	import_facts_deinit(&facts);
	profile_deinit(&back);
	profile_deinit(&p);
}

/* ---- OTLP as others write it ---- */

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
	otlp_request;
#define OTLP(what)	Opentelemetry__Proto__Profiles__V1development__##what
#define OTLP_INIT(what) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##what##__INIT

/* What a Profile says, and its one sample. Types are rows of the strings below. */
struct otlp_case {
	int type, unit, period_type, period_unit;
	int64_t period, values[4];
	size_t n_values;
	uint64_t times[4];
	size_t n_times;
	uint64_t start;
};

enum { S_NONE, S_SAMPLES, S_COUNT, S_CPU, S_NANOSECONDS, S_INUSE_SPACE, S_BYTES, S_N };

/* A request of n profiles, each with one sample of a stack without frames. */
static uint8_t *otlp_bytes(const struct otlp_case *cases, size_t n, size_t *ret_n)
{
	static char texts[S_N][16] = {
		"", "samples", "count", "cpu", "nanoseconds", "inuse_space", "bytes"};
	char *strings[S_N];
	OTLP(ProfilesDictionary) d = OTLP_INIT(PROFILES_DICTIONARY);
	OTLP(ResourceProfiles) rp = OTLP_INIT(RESOURCE_PROFILES), *rps = &rp;
	OTLP(ScopeProfiles) sp = OTLP_INIT(SCOPE_PROFILES), *sps = &sp;
	OTLP(Stack) stack = OTLP_INIT(STACK), *stacks = &stack;
	otlp_request r =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	OTLP(ValueType) types[4], periods[4];
	OTLP(Profile) profiles[4], *profile_rows[4];
	OTLP(Sample) samples[4], *sample_rows[4];
	uint8_t *bytes;

	for (int i = 0; i < S_N; i++)
		strings[i] = texts[i];
	for (size_t i = 0; i < n; i++) {
		const struct otlp_case *c = &cases[i];

		types[i] = (OTLP(ValueType))OTLP_INIT(VALUE_TYPE);
		types[i].type_strindex = c->type;
		types[i].unit_strindex = c->unit;
		periods[i] = (OTLP(ValueType))OTLP_INIT(VALUE_TYPE);
		periods[i].type_strindex = c->period_type;
		periods[i].unit_strindex = c->period_unit;
		samples[i] = (OTLP(Sample))OTLP_INIT(SAMPLE);
		samples[i].values = (int64_t *)c->values;
		samples[i].n_values = c->n_values;
		samples[i].timestamps_unix_nano = (uint64_t *)c->times;
		samples[i].n_timestamps_unix_nano = c->n_times;
		sample_rows[i] = &samples[i];
		profiles[i] = (OTLP(Profile))OTLP_INIT(PROFILE);
		profiles[i].sample_type = &types[i];
		profiles[i].period_type = &periods[i];
		profiles[i].period = c->period;
		profiles[i].time_unix_nano = c->start;
		profiles[i].samples = &sample_rows[i];
		profiles[i].n_samples = 1;
		profile_rows[i] = &profiles[i];
	}
	d.string_table = strings;
	d.n_string_table = S_N;
	d.stack_table = &stacks;
	d.n_stack_table = 1;
	sp.profiles = profile_rows;
	sp.n_profiles = n;
	rp.scope_profiles = &sps;
	rp.n_scope_profiles = 1;
	r.resource_profiles = &rps;
	r.n_resource_profiles = 1;
	r.dictionary = &d;
	*ret_n = protobuf_c_message_get_packed_size(&r.base);
	bytes = malloc(*ret_n);
	CHECK(bytes != NULL);
	CHECK_INT(protobuf_c_message_pack(&r.base, bytes), ==, *ret_n);
	return bytes;
}

/* The profile that they make; to be deinitialized. */
static void read_otlp(const struct otlp_case *cases, size_t n, const char *event, struct profile *p)
{
	char error[IMPORT_ERROR_MAX] = "";
	struct import_facts facts = {0};
	size_t n_bytes;
	uint8_t *bytes = otlp_bytes(cases, n, &n_bytes);

	profile_init(p, UINT64_C(1) << 24);
	wanted = event;
	CHECK_INT(import_bytes(p, &facts, IMPORT_OTLP, bytes, n_bytes, error), >=, 0);
	wanted = NULL;
	free(bytes);
	import_facts_deinit(&facts);
}

/* Values belong to the timestamps in turn. */
static void test_otlp_values(void)
{
	static const struct {
		struct otlp_case in;
		size_t n;
		int64_t values[4];
		uint64_t times[4];
	} cases[] = {
		{{.values = {5, 1, 9}, .n_values = 3, .times = {10, 20, 30}, .n_times = 3},
		 3,
		 {5, 1, 9},
		 {10, 20, 30}},
		{{.values = {5, 0, -1}, .n_values = 3, .times = {10, 20, 30}, .n_times = 3},
		 2,
		 {5, -1},
		 {10, 30}},
		{{.times = {10, 20}, .n_times = 2}, 2, {1, 1}, {10, 20}},
		{{.values = {7}, .n_values = 1}, 1, {7}, {0}},
		{{.values = {5, -2}, .n_values = 2}, 1, {3}, {0}},
		{{.values = {-5}, .n_values = 1}, 1, {-5}, {0}},
		/* Against the rules. */
		{{.values = {-7}, .n_values = 1, .times = {10, 20}, .n_times = 2},
		 2,
		 {-4, -3},
		 {10, 20}},
		{{.values = {7}, .n_values = 1, .times = {10, 20}, .n_times = 2},
		 2,
		 {4, 3},
		 {10, 20}},
	};
	struct profile p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_otlp(&cases[i].in, 1, NULL, &p);
		CHECK_INT(p.types[0].samples.n, ==, cases[i].n);
		for (uint32_t s = 0; s < p.types[0].samples.n; s++) {
			CHECK_INT(p.types[0].samples.items[s].value, ==, cases[i].values[s]);
			CHECK_INT(p.types[0].samples.items[s].time_unix_ns, ==, cases[i].times[s]);
		}
		profile_deinit(&p);
	}
}

/* What the values are, and which of them are taken. */
static void test_otlp_types(void)
{
	enum { TEN_MS = 10000000 };
	static const struct otlp_case samples = {S_SAMPLES,	S_COUNT,	  S_CPU,
						 S_NANOSECONDS, .period = TEN_MS, .values = {3},
						 .n_values = 1};
	static const struct otlp_case time = {
		S_CPU,	       S_NANOSECONDS,	 S_CPU,
		S_NANOSECONDS, .period = TEN_MS, .values = {3 * TEN_MS},
		.n_values = 1};
	const struct otlp_case both[2] = {samples, time}, other_order[2] = {time, samples};
	struct profile p;

	read_otlp(&samples, 1, NULL, &p);
	CHECK(!p.types[0].weighted);
	CHECK_INT(p.types[0].period_ns, ==, TEN_MS);
	CHECK_INT(p.types[0].rate_hz, ==, 100);
	profile_deinit(&p);
	/* Nanoseconds that are a value are not multiplied by those of the period. */
	read_otlp(&time, 1, NULL, &p);
	CHECK(p.types[0].weighted);
	CHECK_INT(profile_period(&p), ==, 1);
	CHECK_INT(p.types[0].samples.items[0].value, ==, 3 * TEN_MS);
	CHECK_STR(profile_text(&p, p.types[0].event), "cpu");
	profile_deinit(&p);
	/* Both are called cpu: one of them. */
	for (int i = 0; i < 3; i++) {
		static const char *const events[] = {"cpu", "samples", NULL};

		read_otlp(both, 2, events[i], &p);
		CHECK_INT(p.types[0].samples.n, ==, 1);
		CHECK_INT(p.types[0].samples.items[0].value * profile_period(&p), ==, 3 * TEN_MS);
		CHECK(!p.types[0].weighted);
		profile_deinit(&p);
	}
	read_otlp(other_order, 2, "cpu", &p);
	CHECK_INT(p.types[0].samples.n, ==, 1);
	CHECK(p.types[0].weighted);
	profile_deinit(&p);
	read_otlp(other_order, 2, "samples", &p);
	CHECK_INT(p.types[0].samples.n, ==, 1);
	CHECK(!p.types[0].weighted);
	CHECK_INT(p.types[0].samples.items[0].value, ==, 3);
	profile_deinit(&p);
}

/* Amounts in use at one moment add up, those of several do not. */
static void test_otlp_in_use(void)
{
	static const struct otlp_case first = {S_INUSE_SPACE, S_BYTES, .values = {300},
					       .n_values = 1, .start = 10},
				      second = {S_INUSE_SPACE, S_BYTES, .values = {500},
						.n_values = 1, .start = 20};
	const struct otlp_case same[2] = {first, first}, different[2] = {first, second};
	char error[IMPORT_ERROR_MAX] = "";
	struct import_facts facts = {0};
	struct profile p;
	int64_t sum = 0;
	uint8_t *bytes;
	size_t n;

	read_otlp(same, 2, NULL, &p);
	for (uint32_t i = 0; i < p.types[0].samples.n; i++)
		sum += p.types[0].samples.items[i].value;
	CHECK_INT(sum, ==, 600);
	profile_deinit(&p);

	bytes = otlp_bytes(different, 2, &n);
	profile_init(&p, UINT64_C(1) << 24);
	CHECK_INT(import_bytes(&p, &facts, IMPORT_OTLP, bytes, n, error), ==, -EBADMSG);
	CHECK(strstr(error, "inuse_space of several moments"));
	free(bytes);
	import_facts_deinit(&facts);
	profile_deinit(&p);
}

/* Bytes changed, cut, and doubled: an answer or an error, never more memory than allowed. */
static void damage(enum import_kind kind, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(2 * n);
	unsigned int n_errors = 0;

	CHECK(copy != NULL);
	srand(11);
	for (int round = 0; round < ROUNDS; round++) {
		char error[IMPORT_ERROR_MAX] = "";
		struct import_facts facts = {0};
		struct profile p;
		size_t length = n;
		int r;

		memcpy(copy, bytes, n);
		for (int i = 0, k = 1 + rand() % 8; i < k; i++)
			copy[(size_t)rand() % n] = (uint8_t)(rand() % 3 ? rand() : 0xff);
		if (round % 5 == 0)
			length = (size_t)rand() % n;
		if (round % 7 == 0) {
			memcpy(copy + n, copy, n);
			length = 2 * n;
		}
		profile_init(&p, UINT64_C(1) << 22);
		r = import_bytes(&p, &facts, kind, copy, length, error);
		CHECK(r == 0 || *error);
		n_errors += r != 0;
		import_facts_deinit(&facts);
		profile_deinit(&p);
	}
	fprintf(stderr, "	%u of %d refused\n", n_errors, ROUNDS);
	free(copy);
}

static void test_damaged(void)
{
	struct profile p;
	uint8_t *plain = malloc(1 << 20);
	uLongf n_plain = 1 << 20;
	z_stream z = {0};
	char *bytes;
	size_t n;

	synthetic_small(&p);
	bytes = rendered(&p, render_folded, &n);
	damage(IMPORT_FOLDED, (uint8_t *)bytes, n);
	free(bytes);
	bytes = rendered(&p, render_otlp_file, &n);
	damage(IMPORT_OTLP, (uint8_t *)bytes, n);
	free(bytes);
	bytes = rendered(&p, render_pprof, &n);
	damage(IMPORT_PPROF, (uint8_t *)bytes, n);
	CHECK_INT(inflateInit2(&z, 16 + MAX_WBITS), ==, Z_OK);
	z.next_in = (Bytef *)bytes;
	z.avail_in = (uInt)n;
	z.next_out = plain;
	z.avail_out = (uInt)n_plain;
	CHECK_INT(inflate(&z, Z_FINISH), ==, Z_STREAM_END);
	n_plain -= z.avail_out;
	(void)inflateEnd(&z);
	damage(IMPORT_PPROF, plain, n_plain);
	free(plain);
	free(bytes);
	profile_deinit(&p);
}

static void test_detect(void)
{
	CHECK_INT(import_detect("PERFILE2........", 16, "x"), ==, IMPORT_PERF_DATA);
	CHECK_INT(import_detect("\x1f\x8b\x08", 3, "x.pb.gz"), ==, IMPORT_PPROF);
	CHECK_INT(import_detect("\x0a\x04\x01", 3, "x.pb.gz"), ==, IMPORT_PPROF);
	CHECK_INT(import_detect("\x1f\x8b\x08", 3, "x.otlp.gz"), ==, IMPORT_OTLP);
	CHECK_INT(import_detect("\x1f\x8b\x08", 3, "x.folded.gz"), ==, IMPORT_FOLDED);
	CHECK_INT(import_detect("\x0a\x04", 2, "x.otlp"), ==, IMPORT_OTLP);
	CHECK_INT(import_detect("a;b 1\n", 6, "stacks"), ==, IMPORT_FOLDED);
	CHECK_INT(import_detect("\x0a\x04\x01", 3, "x"), ==, IMPORT_UNKNOWN);
	CHECK_INT(import_detect("", 0, "x"), ==, IMPORT_UNKNOWN);
}

int main(void)
{
	RUN(test_detect);
	RUN(test_round_trips);
	RUN(test_types);
	RUN(test_merged_names);
	RUN(test_merged_at_random);
	RUN(test_otlp_without_ids);
	RUN(test_otlp_values);
	RUN(test_otlp_types);
	RUN(test_otlp_in_use);
	RUN(test_damaged);
	return 0;
}
