/* SPDX-License-Identifier: Apache-2.0 */
/* perf.data: files put together by hand, sound ones and damaged ones, and what is read of them. */
#include "config.h"

#include <errno.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "src/perf-data/perf-data.h"
#include "tests/unit/test.h"

#define MAX_BYTES (1u << 20)
#define TYPE_FLAT (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* Aligned as a mapped file is. */
static uint64_t words[MAX_BYTES / 8];
static uint8_t *const file = (uint8_t *)words;
static size_t n_file;

static void put(const void *bytes, size_t n)
{
	CHECK(n_file + n <= MAX_BYTES);
	memcpy(file + n_file, bytes, n);
	n_file += n;
}

static void put_u64(uint64_t v)
{
	put(&v, sizeof(v));
}

static void put_u32(uint32_t v)
{
	put(&v, sizeof(v));
}

/* A 0-terminated text, filled up to 8 bytes. */
static void put_text(const char *s)
{
	put(s, strlen(s) + 1);
	while (n_file % 8)
		put("", 1);
}

static void put_header(uint32_t type, uint16_t misc, size_t size)
{
	const struct perf_event_header h = {type, misc, (uint16_t)size};

	put(&h, sizeof(h));
}

static struct perf_event_attr attr_of(uint64_t sample_type)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(struct perf_event_attr),
		.sample_freq = 99,
		.freq = 1,
		.sample_type = sample_type,
		.sample_id_all = 1,
	};
}

/* ---- A file: header, one id per event, attributes, data, features ---- */

static size_t data_at, n_attr_bytes;

static void begin_file(const struct perf_event_attr *attrs, size_t n, size_t attr_bytes)
{
	size_t attrs_at = 104 + 8 * n;

	n_file = 0;
	n_attr_bytes = attr_bytes;
	put("PERFILE2", 8);
	put_u64(104);
	put_u64(attr_bytes + 16);
	put_u64(attrs_at);
	put_u64(n * (attr_bytes + 16));
	data_at = attrs_at + n * (attr_bytes + 16);
	put_u64(data_at);
	for (int i = 0; i < 3 + 4; i++)
		put_u64(0);
	for (size_t i = 0; i < n; i++)
		put_u64(1000 + i);
	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[512] = {0};

		memcpy(bytes, &attrs[i],
		       attr_bytes < sizeof(attrs[i]) ? attr_bytes : sizeof(attrs[i]));
		put(bytes, attr_bytes);
		put_u64(104 + 8 * i);
		put_u64(8);
	}
	CHECK_INT(n_file, ==, data_at);
}

static void set_u64(size_t at, uint64_t v)
{
	memcpy(file + at, &v, sizeof(v));
}

static void end_data(void)
{
	set_u64(48, n_file - data_at);
}

/* One feature section behind the data: its table has one entry. */
static size_t begin_feature(uint32_t number)
{
	set_u64(72 + 8 * (number / 64), UINT64_C(1) << (number % 64));
	put_u64(n_file + 16);
	put_u64(0);
	return n_file;
}

static void end_feature(size_t at)
{
	set_u64(at - 8, n_file - at);
}

static void put_sample(uint32_t pid, uint64_t time, uint64_t ip)
{
	put_header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 32);
	put_u64(ip);
	put_u32(pid);
	put_u32(pid);
	put_u64(time);
}

static void put_comm(uint32_t pid, uint64_t time, const char *comm)
{
	size_t n = (strlen(comm) + 8) & ~(size_t)7;

	put_header(PERF_RECORD_COMM, 0, 16 + n + 16);
	put_u32(pid);
	put_u32(pid);
	put_text(comm);
	put_u32(pid);
	put_u32(pid);
	put_u64(time);
}

static void put_round(void)
{
	put_header(68, 0, 8);
}

/* ---- Reading ---- */

static char error[256];
static const char *wanted; /* event */

static struct perf_data *sound(void)
{
	struct perf_data *d = NULL;
	int r;

	error[0] = '\0';
	r = perf_data_new(&d, file, n_file, wanted, error, sizeof(error));
	if (r < 0)
		fprintf(stderr, "refused: %s\n", error);
	CHECK_INT(r, ==, 0);
	return d;
}

static void refused(int code, const char *word)
{
	struct perf_data *d = NULL;

	error[0] = '\0';
	CHECK_INT(perf_data_new(&d, file, n_file, wanted, error, sizeof(error)), ==, code);
	if (!strstr(error, word))
		fprintf(stderr, "\"%s\" does not say \"%s\"\n", error, word);
	CHECK(strstr(error, word));
	CHECK(!d);
}

static int next(struct perf_data *d, struct record *r)
{
	return perf_data_next(d, r, error, sizeof(error));
}

/* All records: their pids in order. */
static void expect_pids(struct perf_data *d, const uint32_t *pids, size_t n)
{
	struct record r;

	for (size_t i = 0; i < n; i++) {
		CHECK_INT(next(d, &r), ==, 1);
		CHECK_INT(r.pid, ==, pids[i]);
	}
	CHECK_INT(next(d, &r), ==, 0);
}

static void flat_file(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);

	begin_file(&a, 1, sizeof(a));
	put_comm(7, 0, "seven");
	put_sample(7, 100, 0x1234);
	put_sample(7, 200, 0x5678);
	end_data();
}

static void test_records(void)
{
	struct perf_data *d;
	struct record r;

	flat_file();
	d = sound();
	CHECK_STR(perf_data_event(d)->name, "cpu-clock");
	CHECK_INT(perf_data_event(d)->rate_hz, ==, 99);
	CHECK(!perf_data_event(d)->stacks && !perf_data_event(d)->callchains);
	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(r.type, ==, RECORD_COMM);
	CHECK_STR(r.comm.comm, "seven");
	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(r.type, ==, RECORD_SAMPLE);
	CHECK_INT(r.time_ns, ==, 100);
	/* An event without stacks: its address is the stack. */
	CHECK_INT(r.sample.n_user_chain, ==, 1);
	CHECK_INT(r.sample.user_chain[0], ==, 0x1234);
	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(next(d, &r), ==, 0);
	CHECK_INT(perf_data_stats(d)->samples, ==, 2);
	CHECK_INT(perf_data_stats(d)->bad_at, ==, 0);
	perf_data_free(d);
}

/* perf of any age: the attribute of 64 bytes, and one longer than ours. */
static void test_attr_sizes(void)
{
	static const size_t sizes[] = {64, 72, 96, 112, 136, 200};
	const struct perf_event_attr a = attr_of(TYPE_FLAT);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_data *d;

		begin_file(&a, 1, sizes[i]);
		put_sample(3, 1, 2);
		end_data();
		d = sound();
		expect_pids(d, (const uint32_t[]){3}, 1);
		perf_data_free(d);
	}
	begin_file(&a, 1, 56);
	end_data();
	refused(-EBADMSG, "table of events");
}

/* What is told waits for the mark after the next; records of one CPU stand behind another's. */
static void test_order(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);
	struct perf_data *d;

	begin_file(&a, 1, sizeof(a));
	put_sample(2, 200, 0);
	put_sample(4, 400, 0);
	put_sample(1, 100, 0);
	put_round();
	put_sample(5, 500, 0);
	put_sample(3, 300, 0);
	put_round();
	put_sample(6, 600, 0);
	put_round();
	end_data();
	d = sound();
	expect_pids(d, (const uint32_t[]){1, 2, 3, 4, 5, 6}, 6);
	CHECK_INT(perf_data_stats(d)->late, ==, 0);
	perf_data_free(d);

	/* One that breaks the promise of the marks is told all the same, and counted. */
	begin_file(&a, 1, sizeof(a));
	put_sample(2, 200, 0);
	put_round();
	put_round();
	put_sample(1, 100, 0);
	end_data();
	d = sound();
	expect_pids(d, (const uint32_t[]){2, 1}, 2);
	CHECK_INT(perf_data_stats(d)->late, ==, 1);
	perf_data_free(d);
}

static void put_identified(uint64_t id, uint32_t pid, uint64_t time, bool callchain)
{
	put_header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, callchain ? 72 : 40);
	put_u64(id);
	put_u64(0x99);
	put_u32(pid);
	put_u32(pid);
	put_u64(time);
	if (!callchain)
		return;
	put_u64(3);
	put_u64((uint64_t)PERF_CONTEXT_USER);
	put_u64(0x99);
	put_u64(0xaa);
}

/* Two events of different shape, told apart by the identifier; that with stacks is read. */
static void test_two_events(void)
{
	struct perf_event_attr attrs[2] = {
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER),
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CALLCHAIN),
	};
	struct perf_data *d;
	struct record r;

	begin_file(attrs, 2, sizeof(attrs[0]));
	put_identified(1000, 1, 10, false);
	put_identified(1001, 2, 20, true);
	put_identified(4711, 3, 30, true); /* of nobody */
	end_data();
	d = sound();
	CHECK(perf_data_event(d)->callchains);
	CHECK_INT(perf_data_event(d)->n_others, ==, 1);
	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(r.pid, ==, 2);
	CHECK_INT(r.sample.n_user_chain, ==, 2);
	CHECK_INT(r.sample.user_chain[1], ==, 0xaa);
	CHECK_INT(next(d, &r), ==, 0);
	CHECK_INT(perf_data_stats(d)->other_samples, ==, 2);
	perf_data_free(d);

	attrs[0].sample_type = TYPE_FLAT;
	begin_file(attrs, 2, sizeof(attrs[0]));
	end_data();
	refused(-EOPNOTSUPP, "one event");
}

/* A feature section with the name of each event. */
static void put_event_names(const struct perf_event_attr *attrs, size_t n,
			    const char *const names[])
{
	size_t at = begin_feature(12);

	put_u32((uint32_t)n);
	put_u32(sizeof(*attrs));
	for (size_t i = 0; i < n; i++) {
		put(&attrs[i], sizeof(attrs[i]));
		put_u32(0); /* ids */
		put_u32(16);
		put(names[i], 16);
	}
	end_feature(at);
}

/* The event of exactly that name, though another's begins like it and has stacks. */
static void test_event_names(void)
{
	static const char *const names[] = {"cpu-clock:u\0\0\0\0", "cpu-clock\0\0\0\0\0\0"};
	const struct perf_event_attr attrs[2] = {
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CALLCHAIN),
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER),
	};
	static const struct {
		const char *wanted, *found;
	} cases[] = {
		{"cpu-clock", "cpu-clock"}, {"cpu-clock:u", "cpu-clock:u"}, {NULL, "cpu-clock:u"}};

	begin_file(attrs, 2, sizeof(attrs[0]));
	put_identified(1000, 1, 10, true);
	end_data();
	put_event_names(attrs, 2, names);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_data *d;

		wanted = cases[i].wanted;
		d = sound();
		CHECK_STR(perf_data_event(d)->name, cases[i].found);
		perf_data_free(d);
	}
	wanted = NULL;
}

/* Without sample_id_all a name's last letters are no id. */
static void test_no_trailers(void)
{
	struct perf_event_attr attrs[2] = {
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER),
		attr_of(TYPE_FLAT | PERF_SAMPLE_IDENTIFIER),
	};
	struct perf_data *d;
	struct record r;

	attrs[0].sample_id_all = attrs[1].sample_id_all = 0;
	begin_file(attrs, 2, sizeof(attrs[0]));
	put_header(PERF_RECORD_COMM, 0, 8 + 8 + 16);
	put_u32(7);
	put_u32(7);
	put_text("seven letters");
	put_identified(1000, 7, 10, false);
	end_data();
	d = sound();
	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(r.type, ==, RECORD_COMM);
	CHECK_STR(r.comm.comm, "seven letters");
	expect_pids(d, (const uint32_t[]){7}, 1);
	perf_data_free(d);
}

static void put_group(uint32_t tid, uint64_t time, uint64_t leader, uint64_t member)
{
	put_header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 80);
	put_u64(1000);
	put_u64(0x99);
	put_u32(1);
	put_u32(tid);
	put_u64(time);
	put_u64(2);
	put_u64(leader);
	put_u64(1000);
	put_u64(member);
	put_u64(1001);
}

static void expect_period(struct perf_data *d, uint64_t time, uint64_t period)
{
	struct record r;

	CHECK_INT(next(d, &r), ==, 1);
	CHECK_INT(r.time_ns, ==, time);
	CHECK_INT(r.sample.period, ==, period);
	CHECK_INT(r.sample.n_user_chain, ==, 1);
}

/* A member of a group takes no samples: it has those of its leader at which it had gone on. */
static void test_group(void)
{
	const uint64_t type = TYPE_FLAT | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ;
	struct perf_event_attr attrs[2] = {attr_of(type), attr_of(type)};
	struct perf_data *d;
	struct record r;

	for (int inherit = 0; inherit < 2; inherit++) {
		for (int i = 0; i < 2; i++) {
			attrs[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
			attrs[i].inherit = inherit;
		}
		attrs[1].type = PERF_TYPE_SOFTWARE;
		attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS;
		attrs[1].sample_period = attrs[1].freq = 0;
		begin_file(attrs, 2, sizeof(attrs[0]));
		put_group(1, 20, 200, 7); /* the second one: they go by time */
		put_group(1, 10, 100, 5);
		put_group(1, 30, 300, 7);
		put_group(2, 40, 400, 17);
		put_round();
		end_data();
		wanted = "page-faults";
		d = sound();
		wanted = NULL;
		CHECK(perf_data_event(d)->weighted);
		CHECK_INT(perf_data_event(d)->period_events, ==, 1);
		expect_period(d, 10, 5);
		expect_period(d, 20, 2);
		/* An inherited counter counts for each task apart. */
		expect_period(d, 40, inherit ? 17 : 10);
		CHECK_INT(next(d, &r), ==, 0);
		CHECK_INT(perf_data_stats(d)->samples, ==, 3);
		perf_data_free(d);

		d = sound();
		CHECK_STR(perf_data_event(d)->name, "cpu-clock");
		expect_pids(d, (const uint32_t[]){1, 1, 1, 1}, 4);
		perf_data_free(d);
	}
}

/* What a sample stands for: time, a fixed number of events, or as many as it says. */
static void test_units(void)
{
	static const struct {
		uint32_t type;
		uint64_t config, n;
		bool freq, period_field;
		uint64_t period_ns, period_events;
		bool weighted;
	} cases[] = {
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 100, true, true, 10000000, 0, false},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000, false, false, 1000000, 0,
		 false},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000, true, true, 1000000, 0, false},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 70000, false, false, 0, 70000,
		 false},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, false, true, 0, 1, false},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 99, true, true, 0, 1, true},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 99, true, false, 0, 1, false},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, UINT64_MAX, true, true, 0, 1, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_event_attr a =
			attr_of(TYPE_FLAT | (cases[i].period_field ? PERF_SAMPLE_PERIOD : 0));
		struct perf_data *d;

		a.type = cases[i].type;
		a.config = cases[i].config;
		a.freq = cases[i].freq;
		a.sample_freq = cases[i].n;
		begin_file(&a, 1, sizeof(a));
		end_data();
		d = sound();
		CHECK_INT(perf_data_event(d)->period_ns, ==, cases[i].period_ns);
		CHECK_INT(perf_data_event(d)->period_events, ==, cases[i].period_events);
		CHECK_INT(perf_data_event(d)->weighted, ==, cases[i].weighted);
		perf_data_free(d);
	}
}

static void test_features(void)
{
	static const uint8_t id[20] = {0xab, 0xcd, 1, 2, 3};
	const struct perf_data_build_id *found;
	struct perf_data *d;
	size_t at;

	flat_file();
	at = begin_feature(2);
	put_header(67, 0x8000, 8 + 4 + 24 + 16);
	put_u32(UINT32_MAX);
	put(id, sizeof(id));
	put_u32(16); /* bytes that count */
	put("/usr/bin/thing\0", 16);
	end_feature(at);
	d = sound();
	found = perf_data_build_id(d, "/usr/bin/thing");
	CHECK(found);
	CHECK_INT(found->n, ==, 16);
	CHECK_INT(found->bytes[1], ==, 0xcd);
	CHECK(!perf_data_build_id(d, "/usr/bin/other"));
	perf_data_free(d);

	flat_file();
	at = begin_feature(4);
	put_u32(16);
	put("6.1.0-31-amd64\0", 16);
	end_feature(at);
	d = sound();
	CHECK_STR(perf_data_host(d)->release, "6.1.0-31-amd64");
	perf_data_free(d);

	/* A length beyond the section says nothing. */
	memset(file + at, 0xff, 4);
	d = sound();
	CHECK_STR(perf_data_host(d)->release, "");
	perf_data_free(d);
}

static void begin_pipe(void)
{
	n_file = 0;
	put("PERFILE2", 8);
	put_u64(16);
}

static void test_pipe(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);
	struct perf_data *d;

	begin_pipe();
	put_header(64, 0, 8 + sizeof(a) + 8);
	put(&a, sizeof(a));
	put_u64(1000);
	put_sample(1, 10, 0);
	put_header(71, 0, 48); /* AUXTRACE with 24 bytes of payload, which look like a record */
	put_u64(24);
	for (int i = 0; i < 4; i++)
		put_u64(0);
	for (int i = 0; i < 3; i++)
		put_u64(UINT64_MAX);
	put_sample(2, 20, 0);
	put_header(80, 0, 8 + 8 + 4 + 12);
	put_u64(3);
	put_u32(12);
	put("pipe-host\0\0", 12);
	d = sound();
	CHECK_STR(perf_data_host(d)->name, "pipe-host");
	expect_pids(d, (const uint32_t[]){1, 2}, 2);
	perf_data_free(d);

	begin_pipe();
	refused(-EBADMSG, "no event");
}

static void test_refusals(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT), dummy = attr_of(0);
	struct perf_data *d;
	size_t at;

	n_file = 0;
	refused(-EBADMSG, "empty");
	put("something else, and long enough", 31);
	refused(-EBADMSG, "not a file of perf record");
	n_file = 0;
	put("2ELIFREP", 8);
	refused(-EOPNOTSUPP, "big-endian");
	flat_file();
	n_file = 90;
	refused(-EBADMSG, "within its header");
	begin_file(&a, 0, sizeof(a));
	refused(-EBADMSG, "no event");
	begin_file(&dummy, 1, sizeof(dummy));
	end_data();
	refused(-EBADMSG, "call-graph");

	/* Of another architecture: only what must be walked is refused. */
	for (int stacks = 0; stacks < 2; stacks++) {
		struct perf_event_attr other = attr_of(
			TYPE_FLAT | (stacks ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0));

		other.sample_regs_user = 0xff;
		begin_file(&other, 1, sizeof(other));
		put_comm(1, 0, "one"); /* without data perf is taken to have been killed */
		end_data();
		at = begin_feature(6);
		put_u32(8);
		put("riscv64", 8);
		end_feature(at);
		if (stacks) {
			refused(-EOPNOTSUPP, "riscv64");
		} else {
			d = sound();
			perf_data_free(d);
		}
	}
}

/* Cut, unfinished, or with a record that cannot be true: what is before is told. */
static void test_damage(void)
{
	struct perf_data *d;

	flat_file();
	n_file -= 20;
	d = sound();
	CHECK_INT(perf_data_stats(d)->cut_bytes, ==, 20);
	expect_pids(d, (const uint32_t[]){7, 7}, 2);
	CHECK_INT(perf_data_stats(d)->bad_at, ==, 0);
	perf_data_free(d);

	flat_file();
	set_u64(48, 0); /* perf was killed before it wrote the size */
	d = sound();
	expect_pids(d, (const uint32_t[]){7, 7, 7}, 3);
	perf_data_free(d);

	flat_file();
	memset(file + n_file - 32 + 6, 0, 2); /* the size of the last record */
	d = sound();
	expect_pids(d, (const uint32_t[]){7, 7}, 2);
	CHECK_INT(perf_data_stats(d)->bad_at, ==, n_file - 32);
	perf_data_free(d);

	flat_file();
	set_u64(40, UINT64_MAX - 3);
	refused(-EBADMSG, "outside of the file");
	flat_file();
	set_u64(24, UINT64_MAX - 3);
	refused(-EBADMSG, "outside of the file");
}

#ifdef HAVE_ZSTD
/* One stream, flushed in the middle of a record, and a mark of perf's own behind it. */
static void test_compressed(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);
	static uint8_t plain[4096], packed[8192];
	size_t n_plain, from, n_packed[2] = {0};
	ZSTD_CStream *stream = ZSTD_createCStream();
	struct perf_data *d;
	struct record r;

	begin_file(&a, 1, sizeof(a));
	from = n_file;
	for (uint32_t i = 1; i <= 20; i++)
		put_sample(i, 100 * i, i);
	n_plain = n_file - from;
	CHECK(n_plain <= sizeof(plain));
	memcpy(plain, file + from, n_plain);
	CHECK(!ZSTD_isError(ZSTD_initCStream(stream, 1)));
	for (int i = 0; i < 2; i++) {
		ZSTD_inBuffer in = {plain + (i ? 300 : 0), i ? n_plain - 300 : 300, 0};
		ZSTD_outBuffer out = {packed + 4096 * i, 4096, 0};

		CHECK(!ZSTD_isError(ZSTD_compressStream(stream, &out, &in)));
		CHECK_INT(ZSTD_flushStream(stream, &out), ==, 0);
		n_packed[i] = out.pos;
	}
	ZSTD_freeCStream(stream);

	/* Both forms: with the size in the record's, and with a size and padding. */
	for (int form = 0; form < 2; form++) {
		begin_file(&a, 1, sizeof(a));
		for (int i = 0; i < 2; i++) {
			size_t padding = form ? 5 : 0;

			put_header(form ? 83 : 81, 0, 8 + 8 * form + n_packed[i] + padding);
			if (form)
				put_u64(n_packed[i]);
			put(packed + 4096 * i, n_packed[i]);
			put("12345", padding);
		}
		put_round();
		put_sample(21, 5000, 0);
		end_data();
		d = sound();
		for (uint32_t i = 1; i <= 21; i++) {
			CHECK_INT(next(d, &r), ==, 1);
			CHECK_INT(r.pid, ==, i);
		}
		CHECK_INT(next(d, &r), ==, 0);
		perf_data_free(d);
	}

	memset(file + data_at + 20, 0xff, 8);
	d = sound();
	CHECK_INT(next(d, &r), ==, -EBADMSG);
	CHECK(strstr(error, "compressed"));
	perf_data_free(d);
}
#endif

static void put_lost(uint32_t type, uint64_t n)
{
	put_header(type, 0, (type == PERF_RECORD_LOST ? 24 : 16) + 16);
	if (type == PERF_RECORD_LOST)
		put_u64(1000);
	put_u64(n);
	put_u64(0);
	put_u64(50);
}

/* The same loss is told by the ring and by the event: once it counts. */
static void test_lost(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);
	struct perf_data *d;

	begin_file(&a, 1, sizeof(a));
	put_lost(PERF_RECORD_LOST, 5);
	put_lost(PERF_RECORD_LOST, 4);
	put_lost(PERF_RECORD_LOST_SAMPLES, 8);
	end_data();
	d = sound();
	expect_pids(d, NULL, 0);
	CHECK_INT(perf_data_stats(d)->lost, ==, 9);
	perf_data_free(d);
}

/* Processes that were there before: perf's own forks have mappings of their own behind them. */
static void test_synthesized_forks(void)
{
	const struct perf_event_attr a = attr_of(TYPE_FLAT);
	struct perf_data *d;

	begin_file(&a, 1, sizeof(a));
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t time = i ? 60 : 0;

		put_header(PERF_RECORD_FORK, 0, 8 + 24 + 16);
		put_u32(20 + i);
		put_u32(1);
		put_u32(20 + i);
		put_u32(1);
		put_u64(time);
		put_u64(0);
		put_u64(time);
	}
	end_data();
	d = sound();
	expect_pids(d, (const uint32_t[]){21}, 1);
	perf_data_free(d);
}

/* Every single byte of a small file in turn made wrong, and every length cut. */
static void test_hostile(void)
{
	static uint8_t saved[4096];
	size_t n;

	for (int form = 0; form < 2; form++) {
		if (form == 0) {
			size_t at;

			flat_file();
			at = begin_feature(2);
			put_header(67, 0, 8 + 4 + 24 + 8);
			put_u32(0);
			put("012345678901234567890123", 24);
			put("/a/b\0\0\0", 8);
			end_feature(at);
		} else {
			test_pipe();
		}
		n = n_file;
		CHECK(n <= sizeof(saved));
		memcpy(saved, file, n);
		for (size_t i = 0; i < 4 * n; i++) {
			static const uint8_t values[] = {0, 0xff, 0x80};
			struct perf_data *d = NULL;
			struct record r;
			uint32_t told = 0;

			/* Exactly so long, so that a sanitizer sees what is read behind it. */
			size_t length = i % 4 < 3 ? n : i / 4;
			_cleanup_free_ uint8_t *bytes = malloc(length + !length);

			CHECK(bytes);
			memcpy(bytes, saved, length);
			if (i % 4 < 3)
				bytes[i / 4] = values[i % 4];
			if (perf_data_new(&d, bytes, length, NULL, error, sizeof(error)) < 0)
				continue;
			while (next(d, &r) == 1)
				CHECK_INT(++told, <=, 100);
			perf_data_free(d);
		}
	}
}

int main(void)
{
	RUN(test_records);
	RUN(test_attr_sizes);
	RUN(test_order);
	RUN(test_two_events);
	RUN(test_event_names);
	RUN(test_no_trailers);
	RUN(test_group);
	RUN(test_units);
	RUN(test_features);
	RUN(test_pipe);
	RUN(test_refusals);
	RUN(test_damage);
#ifdef HAVE_ZSTD
	RUN(test_compressed);
#endif
	RUN(test_lost);
	RUN(test_synthesized_forks);
	RUN(test_hostile);
	return 0;
}
