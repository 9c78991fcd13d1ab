/* SPDX-License-Identifier: Apache-2.0 */
/* Records made by hand, and 200 000 damaged ones. */
#include "tests/unit/test.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "src/sample/decode.h"

#define ALL_REGS UINT64_C(0x7)
#define N_REGS	 3

static const struct record_layout layout = {
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
		       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
		       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP,
	.regs_mask = ALL_REGS,
	.kernel_regs_valid = 0x5,
	.sample_id_all = true,
};

struct builder {
	uint64_t words[2048];
	size_t n; /* bytes */
};

static void put(struct builder *b, const void *data, size_t n)
{
	memcpy((uint8_t *)b->words + b->n, data, n);
	b->n += n;
}

static void put64(struct builder *b, uint64_t v)
{
	put(b, &v, 8);
}

static void put32(struct builder *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put16(struct builder *b, uint16_t v)
{
	put(b, &v, 2);
}

static void put_text(struct builder *b, const char *s)
{
	static const char zeros[8];

	put(b, s, strlen(s) + 1);
	put(b, zeros, (8 - b->n % 8) % 8);
}

static void begin(struct builder *b, uint32_t type, uint16_t misc)
{
	b->n = 0;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static void end(struct builder *b)
{
	struct perf_event_header *h = (void *)b->words;

	h->size = (uint16_t)b->n;
}

/* pid 7, tid 8, time 99, cpu 3 */
static void trailer(struct builder *b)
{
	put32(b, 7);
	put32(b, 8);
	put64(b, 99);
	put32(b, 3);
	put32(b, 0);
	end(b);
}

static struct record decode(const struct builder *b)
{
	struct record r;

	CHECK(record_decode(&layout, b->words, b->n, &r));
	return r;
}

static void sample_head(struct builder *b, uint16_t misc)
{
	begin(b, PERF_RECORD_SAMPLE, misc);
	put64(b, 0x401000); /* ip */
	put32(b, 11);
	put32(b, 12);
	put64(b, 1234); /* time */
	put32(b, 1);
	put32(b, 0);
	put64(b, 1000000); /* period */
}

static void whole_sample(struct builder *b, uint16_t misc, uint64_t second_reg)
{
	sample_head(b, misc);
	put64(b, 5);
	put64(b, (uint64_t)PERF_CONTEXT_KERNEL);
	put64(b, 0xffffffff81000001);
	put64(b, 0xffffffff81000002);
	put64(b, (uint64_t)PERF_CONTEXT_USER);
	put64(b, 0x401000);
	put64(b, PERF_SAMPLE_REGS_ABI_64);
	put64(b, 0x11);
	put64(b, second_reg);
	put64(b, 0x33);
	put64(b, 16); /* stack: asked for */
	put64(b, 0xaaaa);
	put64(b, 0xbbbb);
	put64(b, 8);  /* copied */
	put64(b, 42); /* cgroup */
	end(b);
}

static void test_sample(void)
{
	struct builder b;
	struct record r;

	whole_sample(&b, PERF_RECORD_MISC_USER, 0x22);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_SAMPLE);
	CHECK_INT(r.pid, ==, 11);
	CHECK_INT(r.tid, ==, 12);
	CHECK_INT(r.time_ns, ==, 1234);
	CHECK_INT(r.cpu, ==, 1);
	CHECK_INT(r.sample.ip, ==, 0x401000);
	CHECK_INT(r.sample.period, ==, 1000000);
	CHECK_INT(r.sample.n_kernel, ==, 2);
	CHECK(r.sample.kernel[0] == 0xffffffff81000001);
	CHECK(r.sample.kernel[1] == 0xffffffff81000002);
	CHECK_INT(r.sample.user_abi, ==, PERF_SAMPLE_REGS_ABI_64);
	CHECK_INT(r.sample.user_regs[2], ==, 0x33);
	CHECK_INT(r.sample.n_stack, ==, 8);
	CHECK_INT(r.sample.stack[0], ==, 0xaa);
	CHECK_INT(r.sample.cgroup_id, ==, 42);
	CHECK(!r.sample.in_kernel);
	CHECK_INT(r.sample.user_regs_valid, ==, ALL_REGS);
}

static void test_registers_inside_the_kernel(void)
{
	struct builder b;
	struct record r;

	/* What the start-up check did not confirm is not valid. */
	whole_sample(&b, PERF_RECORD_MISC_KERNEL, 0x22);
	r = decode(&b);
	CHECK(r.sample.in_kernel);
	CHECK_INT(r.sample.user_regs_valid, ==, 0x5);
	/* Nor is the mark of 4.x kernels, even if it did. */
	struct record_layout trusting = layout;
	trusting.kernel_regs_valid = UINT64_MAX;
	whole_sample(&b, PERF_RECORD_MISC_KERNEL, UINT64_MAX);
	CHECK(record_decode(&trusting, b.words, b.n, &r));
	CHECK_INT(r.sample.user_regs_valid, ==, 0x5);
	/* In user mode -1 is a value like any other. */
	whole_sample(&b, PERF_RECORD_MISC_USER, UINT64_MAX);
	r = decode(&b);
	CHECK_INT(r.sample.user_regs_valid, ==, ALL_REGS);
}

static void test_kernel_thread(void)
{
	struct builder b;
	struct record r;

	sample_head(&b, PERF_RECORD_MISC_KERNEL);
	put64(&b, 2);
	put64(&b, (uint64_t)PERF_CONTEXT_KERNEL);
	put64(&b, 0xffffffff81000001);
	put64(&b, PERF_SAMPLE_REGS_ABI_NONE);
	put64(&b, 0); /* no stack, and no word for what was copied */
	put64(&b, 1);
	end(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_SAMPLE);
	CHECK_INT(r.sample.n_kernel, ==, 1);
	CHECK_INT(r.sample.user_abi, ==, 0);
	CHECK(!r.sample.user_regs);
	CHECK_INT(r.sample.n_stack, ==, 0);
	CHECK_INT(r.sample.cgroup_id, ==, 1);
}

static void test_sample_that_lies(void)
{
	struct builder b;

	/* More stack copied than there is. */
	whole_sample(&b, 0, 0);
	b.words[b.n / 8 - 2] = 17;
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);
	/* A chain longer than the record; the product of its length overflows. */
	sample_head(&b, 0);
	put64(&b, UINT64_MAX / 8 + 2);
	put64(&b, 0);
	end(&b);
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);
	/* Cut. */
	whole_sample(&b, 0, 0);
	b.n -= 8;
	end(&b);
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);
	/* A size that is not the record's. */
	whole_sample(&b, 0, 0);
	b.n += 8;
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);
}

static void test_long_kernel_chain(void)
{
	struct builder b;
	struct record r;

	sample_head(&b, PERF_RECORD_MISC_KERNEL);
	put64(&b, 301);
	put64(&b, (uint64_t)PERF_CONTEXT_KERNEL);
	for (uint64_t i = 0; i < 300; i++)
		put64(&b, 0xffffffff81000000 + i);
	put64(&b, PERF_SAMPLE_REGS_ABI_NONE);
	put64(&b, 0);
	put64(&b, 1);
	end(&b);
	r = decode(&b);
	CHECK_INT(r.sample.n_kernel, ==, SAMPLE_MAX_KERNEL_FRAMES);
	CHECK(r.sample.kernel[127] == 0xffffffff8100007f);
}

/* Frame pointers followed by the kernel: its run, and the user's behind it. */
static void test_user_chain(void)
{
	struct builder b;
	struct record r;

	sample_head(&b, PERF_RECORD_MISC_KERNEL);
	put64(&b, 5);
	put64(&b, (uint64_t)PERF_CONTEXT_KERNEL);
	put64(&b, 0xffffffff81000000);
	put64(&b, (uint64_t)PERF_CONTEXT_USER);
	put64(&b, 0x401000);
	put64(&b, 0x402000);
	put64(&b, PERF_SAMPLE_REGS_ABI_NONE);
	put64(&b, 0);
	put64(&b, 1);
	end(&b);
	r = decode(&b);
	CHECK_INT(r.sample.n_kernel, ==, 1);
	CHECK_INT(r.sample.n_user_chain, ==, 2);
	CHECK(r.sample.user_chain[0] == 0x401000 && r.sample.user_chain[1] == 0x402000);
}

static void mmap2(struct builder *b, uint16_t misc, uint32_t prot, const char *path)
{
	begin(b, PERF_RECORD_MMAP2, misc);
	put32(b, 20);
	put32(b, 21);
	put64(b, 0x400000);
	put64(b, 0x1000);
	put64(b, 0x2000);
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		uint8_t id[24] = {4, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef};

		put(b, id, sizeof(id));
	} else {
		put32(b, 8);
		put32(b, 1);
		put64(b, 123456);
		put64(b, 99);
	}
	put32(b, prot);
	put32(b, 2);
	put_text(b, path);
	trailer(b);
}

static void test_mmap(void)
{
	struct builder b;
	struct record r;

	mmap2(&b, 0, PROT_READ | PROT_EXEC, "/usr/bin/a b");
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_MMAP);
	CHECK_INT(r.pid, ==, 20);
	CHECK_INT(r.time_ns, ==, 99);
	CHECK_INT(r.cpu, ==, 3);
	CHECK_INT(r.mmap.start, ==, 0x400000);
	CHECK_INT(r.mmap.length, ==, 0x1000);
	CHECK_INT(r.mmap.file_offset, ==, 0x2000);
	CHECK_INT(r.mmap.major, ==, 8);
	CHECK_INT(r.mmap.inode, ==, 123456);
	CHECK_INT(r.mmap.generation, ==, 99);
	CHECK(r.mmap.has_inode && !r.mmap.build_id);
	CHECK_STR(r.mmap.path, "/usr/bin/a b");

	mmap2(&b, PERF_RECORD_MISC_MMAP_BUILD_ID, PROT_EXEC, "/x");
	r = decode(&b);
	CHECK(!r.mmap.has_inode);
	CHECK_INT(r.mmap.n_build_id, ==, 4);
	CHECK_INT(r.mmap.build_id[3], ==, 0xef);
	/* A build id longer than its field. */
	((uint8_t *)b.words)[8 + 8 + 24] = 21;
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);

	/* Data is not told. */
	mmap2(&b, 0, PROT_READ, "/x");
	CHECK(!record_decode(&layout, b.words, b.n, &r));
	mmap2(&b, PERF_RECORD_MISC_MMAP_DATA, PROT_EXEC, "/x");
	CHECK(!record_decode(&layout, b.words, b.n, &r));

	begin(&b, PERF_RECORD_MMAP, 0);
	put32(&b, 20);
	put32(&b, 20);
	put64(&b, 0x400000);
	put64(&b, 0x1000);
	put64(&b, 0);
	put_text(&b, "/bin/old");
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_MMAP);
	CHECK(!r.mmap.has_inode);
	CHECK_STR(r.mmap.path, "/bin/old");
}

static void test_unterminated_path(void)
{
	struct builder b;

	begin(&b, PERF_RECORD_COMM, 0);
	put32(&b, 1);
	put32(&b, 1);
	put(&b, "12345678", 8);
	trailer(&b);
	/* The trailer's zeros must not end it. */
	CHECK_INT(decode(&b).type, ==, RECORD_BAD);
}

static void test_tasks(void)
{
	struct builder b;
	struct record r;

	begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&b, 30);
	put32(&b, 31);
	put_text(&b, "name");
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_COMM);
	CHECK_STR(r.comm.comm, "name");
	CHECK(r.comm.exec);
	CHECK_INT(r.tid, ==, 31);

	for (int i = 0; i < 2; i++) {
		begin(&b, i ? PERF_RECORD_EXIT : PERF_RECORD_FORK, 0);
		put32(&b, 30);
		put32(&b, 1);
		put32(&b, 33);
		put32(&b, 2);
		put64(&b, 98);
		trailer(&b);
		r = decode(&b);
		CHECK_INT(r.type, ==, i ? RECORD_EXIT : RECORD_FORK);
		CHECK_INT(r.pid, ==, 30);
		CHECK_INT(r.tid, ==, 33);
		CHECK_INT(r.task.parent_pid, ==, 1);
		CHECK_INT(r.task.parent_tid, ==, 2);
		CHECK_INT(r.time_ns, ==, 99);
	}
}

static void test_counts_and_marks(void)
{
	struct builder b;
	struct record r;

	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, 5);
	put64(&b, 17);
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_LOST);
	CHECK_INT(r.lost, ==, 17);
	begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
	put64(&b, 18);
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_LOST);
	CHECK_INT(r.lost, ==, 18);
	begin(&b, PERF_RECORD_UNTHROTTLE, 0);
	put64(&b, 1);
	put64(&b, 2);
	put64(&b, 3);
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_THROTTLE);
	CHECK(r.throttle_end);
	CHECK_INT(r.pid, ==, 7);
}

static void test_cgroup_and_switch(void)
{
	struct builder b;
	struct record r;

	begin(&b, PERF_RECORD_CGROUP, 0);
	put64(&b, 77);
	put_text(&b, "/a/b");
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_CGROUP);
	CHECK_INT(r.cgroup.id, ==, 77);
	CHECK_STR(r.cgroup.path, "/a/b");

	/* Only the return of a task is told, where its going is a sample. */
	begin(&b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	trailer(&b);
	CHECK(!record_decode(&layout, b.words, b.n, &r));
	for (int preempted = 0; preempted < 2; preempted++) {
		struct record_layout both = layout;

		both.switches_out = true;
		begin(&b, PERF_RECORD_SWITCH,
		      PERF_RECORD_MISC_SWITCH_OUT |
			      (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));
		trailer(&b);
		CHECK(record_decode(&both, b.words, b.n, &r));
		CHECK_INT(r.type, ==, RECORD_SWITCH_OUT);
		CHECK_INT(r.preempted, ==, preempted);
		CHECK_INT(r.tid, ==, 8);
	}
	begin(&b, PERF_RECORD_SWITCH, 0);
	trailer(&b);
	r = decode(&b);
	CHECK_INT(r.type, ==, RECORD_SWITCH_IN);
	CHECK_INT(r.tid, ==, 8);

	/* A type from the future. */
	begin(&b, 200, 0);
	put64(&b, 0);
	trailer(&b);
	CHECK(!record_decode(&layout, b.words, b.n, &r));
}

/* Fields that only files from elsewhere have, in front of ours. */
static void test_foreign_layout(void)
{
	struct record_layout l = layout;
	struct builder b;
	struct record r;

	l.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | PERF_SAMPLE_RAW |
			PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER;
	l.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	begin(&b, PERF_RECORD_SAMPLE, 0);
	put64(&b, 1); /* identifier */
	put64(&b, 2); /* ip */
	put32(&b, 3);
	put32(&b, 4);
	put64(&b, 5); /* time */
	put64(&b, 6); /* address */
	put64(&b, 2); /* group of two */
	put64(&b, 0);
	for (int i = 0; i < 4; i++)
		put64(&b, 0);
	put32(&b, 4); /* raw */
	put32(&b, 4711);
	put64(&b, 1); /* branches */
	for (int i = 0; i < 3; i++)
		put64(&b, 0);
	put64(&b, PERF_SAMPLE_REGS_ABI_32);
	for (int i = 0; i < N_REGS; i++)
		put64(&b, 70u + (uint64_t)i);
	end(&b);
	CHECK(record_decode(&l, b.words, b.n, &r));
	CHECK_INT(r.type, ==, RECORD_SAMPLE);
	CHECK_INT(r.sample.ip, ==, 2);
	CHECK_INT(r.time_ns, ==, 5);
	CHECK_INT(r.sample.user_regs[2], ==, 72);
	CHECK_INT(r.sample.n_raw, ==, 4);
	CHECK_INT(memcmp(r.sample.raw, &(uint32_t){4711}, 4), ==, 0);
	CHECK_INT(record_time_offset(&l, PERF_RECORD_SAMPLE, b.n), ==, 32);
}

/* The merge orders by a time it reads without decoding: it must be the same time. */
static void test_time_offset(void)
{
	struct builder b;

	whole_sample(&b, 0, 0);
	CHECK_INT(b.words[record_time_offset(&layout, PERF_RECORD_SAMPLE, b.n) / 8], ==, 1234);
	mmap2(&b, 0, PROT_EXEC, "/some/path");
	CHECK_INT(b.words[record_time_offset(&layout, PERF_RECORD_MMAP2, b.n) / 8], ==, 99);
	CHECK_INT(record_time_offset(&layout, PERF_RECORD_SAMPLE, 16), ==, 0);
	CHECK_INT(record_time_offset(&layout, PERF_RECORD_COMM, 16), ==, 0);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Reads every byte a record claims to have: the sanitizer sees what lies outside. */
static uint64_t touch(const struct record *r)
{
	uint64_t sum = 0;

	switch (r->type) {
	case RECORD_SAMPLE:
		for (uint64_t i = 0; i < r->sample.n_kernel; i++)
			sum += r->sample.kernel[i];
		for (uint64_t i = 0; r->sample.user_regs && i < N_REGS; i++)
			sum += r->sample.user_regs[i];
		for (uint64_t i = 0; i < r->sample.n_stack; i++)
			sum += r->sample.stack[i];
		break;
	case RECORD_MMAP:
		sum += strlen(r->mmap.path);
		for (uint32_t i = 0; i < r->mmap.n_build_id; i++)
			sum += r->mmap.build_id[i];
		break;
	case RECORD_COMM:
		sum += strlen(r->comm.comm);
		break;
	case RECORD_CGROUP:
		sum += strlen(r->cgroup.path);
		break;
	default:
		break;
	}
	return sum;
}

static void test_mutations(void)
{
	struct builder seeds[4], b;
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15), n_bad = 0, n_good = 0, sum = 0;

	whole_sample(&seeds[0], PERF_RECORD_MISC_KERNEL, 0x22);
	mmap2(&seeds[1], 0, PROT_EXEC, "/usr/lib/libx.so");
	mmap2(&seeds[2], PERF_RECORD_MISC_MMAP_BUILD_ID, PROT_EXEC, "/usr/lib/libx.so");
	begin(&seeds[3], PERF_RECORD_CGROUP, 0);
	put64(&seeds[3], 77);
	put_text(&seeds[3], "/a/b/c/d/e");
	trailer(&seeds[3]);
	for (int i = 0; i < 200000; i++) {
		uint64_t n_changes = 1 + random_next(&state) % 4;
		struct record r = {0};
		uint8_t *exact;

		b = seeds[random_next(&state) % 4];
		if (random_next(&state) % 4 == 0)
			b.n = 8 + random_next(&state) % (b.n / 8) * 8;
		while (n_changes--) {
			uint8_t *byte = (uint8_t *)b.words + random_next(&state) % b.n;

			*byte = random_next(&state) & 1 ? (uint8_t)random_next(&state)
							: (uint8_t)(*byte ^ 1u << (state & 7));
		}
		if (random_next(&state) % 8)
			end(&b);
		/* A block of just that size, so that one byte too far is seen. */
		exact = aligned_alloc(8, b.n);
		CHECK(exact);
		memcpy(exact, b.words, b.n);
		if (record_decode(&layout, exact, b.n, &r)) {
			sum += touch(&r);
			*(r.type == RECORD_BAD ? &n_bad : &n_good) += 1;
		}
		free(exact);
	}
	/* Both outcomes are reached, or the mutations prove nothing. */
	CHECK_INT(n_bad, >, 20000);
	CHECK_INT(n_good, >, 20000);
	CHECK(sum);
}

/* The size of the page stands behind the cgroup id, also where there is none. */
static void test_page_size(void)
{
	static const uint64_t types[] = {PERF_SAMPLE_DATA_PAGE_SIZE,
					 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CGROUP};

	for (size_t i = 0; i < 2; i++) {
		struct record_layout of = {.sample_type =
						   PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | types[i]};
		struct builder b;
		struct record r;

		begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
		put64(&b, 0x401000);
		put64(&b, 0x7f0000000000);
		if (i == 1)
			put64(&b, 42);
		put64(&b, 2 << 20);
		end(&b);
		CHECK(record_decode(&of, b.words, b.n, &r));
		CHECK_INT(r.type, ==, RECORD_SAMPLE);
		CHECK_INT(r.sample.ip, ==, 0x401000);
		CHECK_INT(r.sample.cgroup_id, ==, i == 1 ? 42 : 0);
		CHECK_INT(r.sample.page_bytes, ==, 2 << 20);
		b.n -= 8;
		end(&b);
		CHECK(record_decode(&of, b.words, b.n, &r));
		CHECK_INT(r.type, ==, RECORD_BAD);
	}
}

/* A switch of random form: aligned or not, with or without a user side, cut off, damaged. */
static void random_switch(struct builder *b, uint64_t *state)
{
	uint32_t n_raw = 36 + random_next(state) % 6 * 8;

	begin(b, PERF_RECORD_SAMPLE,
	      random_next(state) % 2 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	for (uint32_t i = 0; i < 2; i++)
		put64(b, random_next(state));
	put32(b, n_raw);
	for (uint32_t i = 0; i < n_raw; i++)
		put(b, state, 1);
	put64(b, random_next(state) % 4 ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_NONE);
	for (uint64_t n = random_next(state) % 11; n > 0; n--)
		put64(b, random_next(state) % 4 ? random_next(state) : UINT64_MAX);
	if (random_next(state) % 4 == 0)
		b->n = 8 + random_next(state) % (b->n / 8) * 8;
	if (random_next(state) % 4 == 0)
		((uint32_t *)b->words)[6] = (uint32_t)(n_raw + random_next(state) % 256);
	end(b);
}

/* Each switch of the host has a way of its own through the decoder, to the same end as the sample
 * that it is. */
static void check_switches_as_samples(uint64_t regs_mask)
{
	const struct sample_options options = {
		.use = SAMPLE_USE_SWITCHES,
		.switch_fields = {.prev_pid = {24, 4, true},
				  .prev_state = {32, 8, true},
				  .next_pid = {56, 4, true}},
		.regs_mask = regs_mask,
	};
	struct record_layout of = layout, other;
	uint64_t state = 1, n_good = 0;
	struct builder b;

	of.sample_type =
		PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER;
	of.regs_mask = regs_mask;
	other = of;
	switch_layout(&options, of.sample_type, &of.switches);
	for (int i = 0; i < 20000; i++) {
		struct sample_switch sw;
		struct record x, y;

		random_switch(&b, &state);
		/* What is left out stays as it was. */
		memset(&x, 1, sizeof(x));
		memset(&sw, 2, sizeof(sw));
		CHECK(record_decode(&of, b.words, b.n, &x));
		CHECK(record_decode(&other, b.words, b.n, &y));
		if (!sample_read_switch(&options, &y, &sw)) {
			CHECK_INT(x.type, ==, RECORD_BAD);
			continue;
		}
		n_good++;
		CHECK_INT(x.type, ==, RECORD_SWITCH);
		CHECK_INT(x.pid, ==, y.pid);
		CHECK_INT(x.tid, ==, y.tid);
		CHECK_INT(x.time_ns, ==, y.time_ns);
		CHECK_INT(x.cpu, ==, y.cpu);
		CHECK_INT(x.sw.prev_state, ==, sw.prev_state);
		CHECK_INT(x.sw.prev_id, ==, sw.prev_id);
		CHECK_INT(x.sw.next_id, ==, sw.next_id);
		CHECK_INT(x.sw.has_program, ==, sw.has_program);
		CHECK_INT(x.sw.sp, ==, sw.sp);
		CHECK_INT(x.sw.ip, ==, sw.ip);
		CHECK_INT(x.sw.argument, ==, sw.argument);
		CHECK(memcmp(&x.sw.spot, &sw.spot, sizeof(sw.spot)) == 0);
	}
	CHECK_INT(n_good, >, 2000);
	CHECK_INT(n_good, <, 18000);
}

/* A place of a program, with and without the first register, and among others. */
static void test_switches_as_samples(void)
{
	check_switches_as_samples(sample_switch_regs(true));
	check_switches_as_samples(sample_switch_regs(false));
	check_switches_as_samples(sample_place_regs | sample_place_regs << 1);
}

int main(void)
{
	RUN(test_sample);
	RUN(test_registers_inside_the_kernel);
	RUN(test_kernel_thread);
	RUN(test_sample_that_lies);
	RUN(test_long_kernel_chain);
	RUN(test_user_chain);
	RUN(test_mmap);
	RUN(test_unterminated_path);
	RUN(test_tasks);
	RUN(test_counts_and_marks);
	RUN(test_cgroup_and_switch);
	RUN(test_foreign_layout);
	RUN(test_time_offset);
	RUN(test_mutations);
	RUN(test_page_size);
	RUN(test_switches_as_samples);
	return 0;
}
