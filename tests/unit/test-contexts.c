/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of this thread, by the reads that it takes: few, and none that another span gets
 * through while the thread goes on between two of them.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "runtimes/node-context.h"
#include "src/reader/contexts.h"
#include "tests/unit/fake-stat.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static __thread void *variable;
struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t n;
	uint8_t bytes[300];
};
static struct page {
	struct record records[12];
	uint8_t rest[160];
} pages[2] __attribute__((aligned(4096)));
_Static_assert(sizeof(struct page) == 4096, "it is one");
static struct record *const records = pages[0].records, *const far = pages[1].records;

static int n_reads, change_at;
static void (*change)(void);

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address < 4096)
		return false;
	if (++n_reads == change_at)
		change();
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static struct contexts *contexts;
static struct context_sample sample;
static uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
static enum frame_record_span span; /* what became of it at the last read */

static uint32_t read_context(void)
{
	struct memory m = {.read = read_own, .reads_left = 16, .bytes_left = 16384}, now = m;
	uint32_t n = 99;

	n_reads = 0;
	span = contexts_read(contexts, &m, &now, &sample, bytes, &n);
	CHECK_INT(n > 0, ==, span == FRAME_RECORD_SPAN_READ);
	return n;
}

static void check_none(enum frame_record_span why)
{
	CHECK_INT(read_context(), ==, 0);
	CHECK_INT(span, ==, why);
}

static void fill(struct record *r, uint8_t byte, uint16_t n)
{
	memset(r, byte, sizeof(*r));
	r->valid = 1;
	r->n = n;
}

static void begin(struct thread_variable v)
{
	uint64_t list, size;

	CHECK_INT(syscall(SYS_get_robust_list, 0, &list, &size), ==, 0);
	sample = (struct context_sample){
		.number = (uint32_t)gettid(),
		.robust_list = list,
		.now_ns = NSEC_PER_SEC,
		.stat = fake_stat_new(),
	};
	fake_stat_set(sample.stat, 0);
	contexts = contexts_new(&v);
	CHECK(contexts != NULL);
	change_at = 0;
	fill(&records[0], 1, 0);
	fill(&records[1], 2, 0);
	fill(far, 3, 0);
	variable = &records[0];
}

static void end(void)
{
	contexts = contexts_free(contexts);
	(void)close(sample.stat);
}

static uint64_t thread_pointer(void)
{
	struct memory m = {.read = read_own, .reads_left = 1, .bytes_left = 8};
	uint64_t list, size;

	CHECK_INT(syscall(SYS_get_robust_list, 0, &list, &size), ==, 0);
	return thread_pointer_of(&m, list, (uint32_t)gettid(), 0);
}

static struct thread_variable near(void)
{
	return (struct thread_variable){.offset =
						(int64_t)((uintptr_t)&variable - thread_pointer())};
}

/* Of threads whose CPU only the kernel says; that is no read of memory. */
static void test_few_reads(void)
{
	begin(near());
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 1);
	CHECK_INT(n_reads, ==, 2);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
		CHECK_INT(n_reads, ==, 2);
	}
	/* In their page, which is read first now. */
	variable = &records[1];
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 2);
	CHECK_INT(n_reads, ==, 2);
	variable = far;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[23], ==, 3);
	CHECK_INT(n_reads, ==, 3);
	variable = NULL;
	check_none(FRAME_RECORD_SPAN_NONE);
	CHECK_INT(n_reads, ==, 1);
	/* A record that is being written, and no record. */
	variable = &records[1];
	records[1].valid = 0;
	check_none(FRAME_RECORD_SPAN_HALF);
	variable = (void *)8;
	check_none(FRAME_RECORD_SPAN_UNREADABLE);
	/* Another thread's list. */
	sample.number++;
	check_none(FRAME_RECORD_SPAN_UNREADABLE);
	end();
}

/* It is on another CPU when all has been read, or has ended. */
static void test_gone_on(void)
{
	begin(near());
	CHECK_INT(read_context(), >, 0);
	fake_stat_set(sample.stat, sample.cpu + 1);
	check_none(FRAME_RECORD_SPAN_MOVED);
	variable = NULL;
	check_none(FRAME_RECORD_SPAN_MOVED);
	variable = &records[0];
	(void)!ftruncate(sample.stat, 0);
	check_none(FRAME_RECORD_SPAN_MOVED);
	fake_stat_set(sample.stat, sample.cpu);
	CHECK_INT(read_context(), >, 0);
	end();
}

/* ---- Threads whose CPU is known ---- */

enum { CPU = 3, POINTER = 0x100, LIST = 0x2e0, CPU_AT = 0x924 };

static uint64_t words[512]; /* a part of a thread's struct, the pointer to it in the middle */

static void put_word(uint32_t at, const void *word, size_t n)
{
	memcpy((uint8_t *)words + POINTER + at, word, n);
}

static void set_record(const struct record *r)
{
	memcpy(words, &r, sizeof(r));
}

static void set_cpu(uint32_t cpu)
{
	put_word(CPU_AT, &cpu, sizeof(cpu));
}

static void begin_on_cpu(void)
{
	begin((struct thread_variable){.offset = -POINTER, .cpu = CPU_AT});
	sample.robust_list = (uintptr_t)words + POINTER + LIST;
	sample.cpu = CPU;
	fake_stat_set(sample.stat, CPU);
	put_word(LIST - 16, &sample.number, sizeof(sample.number));
	set_record(&records[0]);
	set_cpu(CPU);
}

static void test_fewer_reads(void)
{
	begin_on_cpu();
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 3);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 3);
	/* The second one in its page: from then on the page is read first. */
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 2);
	set_record(&records[1]);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 2);
	CHECK_INT(n_reads, ==, 2);
	records[1].span[7] = 10;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[23], ==, 10);
	CHECK_INT(n_reads, ==, 2);
	set_record(&records[0]);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[23], ==, 1);
	CHECK_INT(n_reads, ==, 2);
	records[0].n = 300;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES + 300);
	CHECK_INT(n_reads, ==, 2);
	end();
}

static void leave_span_on(void)
{
	set_cpu(CPU + 1);
	set_record(NULL);
}

/* Out of a span it is in none, unless it may have left that on another CPU. */
static void test_none_on_cpu(void)
{
	begin_on_cpu();
	set_record(NULL);
	check_none(FRAME_RECORD_SPAN_NONE);
	CHECK_INT(n_reads, ==, 1);
	set_cpu(CPU + 1);
	check_none(FRAME_RECORD_SPAN_MOVED);
	set_cpu(CPU);
	set_record(&records[0]);
	change = leave_span_on;
	change_at = 1;
	check_none(FRAME_RECORD_SPAN_MOVED);
	end();
}

static void test_wrong_page(void)
{
	begin_on_cpu();
	for (int i = 0; i < 3; i++, records[0].span[7]++)
		CHECK_INT(read_context(), >, 0);
	set_record(far);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 3);
	CHECK_INT(n_reads, ==, 4);
	/* The next one there, too, is not in that page; this one is not read at once. */
	far->n = 300;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES + 300);
	CHECK_INT(n_reads, ==, 4);
	end();
}

/* At the end of the page, and beyond it. */
static void test_end_of_page(void)
{
	static uint8_t two[2 * 4096] __attribute__((aligned(4096)));
	enum { LEFT = 64 };
	struct record *near_end = (void *)(two + 4096 - LEFT);

	begin_on_cpu();
	memset(two, 4, sizeof(two));
	near_end->valid = 1;
	near_end->n = LEFT - THREAD_CONTEXT_HEAD_BYTES;
	set_record(near_end);
	for (int i = 0; i < 3; i++, near_end->span[7]++)
		CHECK_INT(read_context(), ==, LEFT);
	CHECK_INT(n_reads, ==, 2);
	near_end->n++;
	CHECK_INT(read_context(), ==, LEFT + 1);
	CHECK_INT(bytes[LEFT], ==, 4);
	CHECK_INT(n_reads, ==, 5);
	/* Not even its head is in the page. */
	near_end = (void *)(two + 4096 - 12);
	near_end->valid = 1;
	near_end->n = 1;
	set_record(near_end);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES + 1);
	end();
}

/* The thread runs on another CPU, into another span: in another record, or in the same one. */
static void go_on(void)
{
	set_cpu(CPU + 1);
	set_record(far);
	records[0].span[7]++;
}

static void rewrite(void)
{
	set_cpu(CPU + 1);
	records[0].span[7]++;
}

/* It goes back into the span of its last sample. */
static void go_back(void)
{
	set_cpu(CPU + 1);
	set_record(&records[0]);
}

static uint32_t read_while(void (*what)(void), int at)
{
	uint32_t n;

	change = what;
	change_at = at;
	n = read_context();
	change_at = 0;
	return n;
}

/* It moves in front of the read of that number: the span is what it was before that, or there is
 * none. n_same: how many samples were in a span before that. */
static void check_moves(void (*what)(void), int n_same, int at)
{
	const struct record *in = what == go_back ? &records[1] : &records[0];
	uint8_t expected[THREAD_CONTEXT_HEAD_BYTES];

	begin_on_cpu();
	for (int i = 0; i < n_same; i++)
		CHECK_INT(read_context(), >, 0);
	set_record(in);
	memcpy(expected, in, sizeof(expected));
	if (read_while(what, at)) {
		CHECK_INT(n_reads, <, at);
		CHECK(memcmp(bytes, expected, sizeof(expected)) == 0);
	}
	end();
}

static void test_another_cpu(void)
{
	static void (*const all[])(void) = {go_on, rewrite, go_back};

	for (int n_same = 0; n_same <= 3; n_same++) {
		for (int at = 1; at <= 6; at++) {
			for (int i = 0; i < 3; i++)
				check_moves(all[i], n_same, at);
		}
	}
	/* As on the CPU of its sample, it is read again there. */
	begin_on_cpu();
	CHECK_INT(read_context(), >, 0);
	set_cpu(CPU + 1);
	check_none(FRAME_RECORD_SPAN_MOVED);
	sample.cpu = CPU + 1;
	CHECK_INT(read_context(), >, 0);
	end();
}

/* ---- Node.js ---- */

/* The map of the continuation and its table, with one bucket: the storage's object and the one that
 * has the record. */
static uint64_t map[64] __attribute__((aligned(512))), holders[2][6], keys[2], *const key = keys;
static uint64_t slot, storage;
enum { KIND = 0x6001 };

static uint64_t tagged(const void *object)
{
	return (uintptr_t)object + 1;
}

static void hold(const uint64_t *holder)
{
	const uint64_t table[] = {
		0, 0, 0, 0, UINT64_C(1) << 32, 0, tagged(key), tagged(holder), UINT64_MAX};

	map[3] = tagged(&map[4]);
	memcpy(&map[4], table, sizeof(table));
}

static void begin_node(void)
{
	const struct node_variable v = {(uintptr_t)&slot, (uintptr_t)&storage, 0, 0, 0x5005};

	begin((struct thread_variable){.offset = -POINTER, .cpu = CPU_AT, .node = true});
	sample.robust_list = (uintptr_t)words + POINTER + LIST;
	sample.cpu = CPU;
	fake_stat_set(sample.stat, CPU);
	put_word(LIST - 16, &sample.number, sizeof(sample.number));
	set_cpu(CPU);
	memcpy(words, &v, sizeof(v));
	slot = tagged(map);
	storage = tagged(key);
	for (int i = 0; i < 2; i++) {
		holders[i][0] = KIND;
		holders[i][3] = (uintptr_t)&records[i];
	}
	hold(holders[0]);
}

static void test_node(void)
{
	enum { CHAIN = 4, PROOF = 1 };

	begin_node();
	/* The variable and where the storage's object is, too. */
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 1 + CHAIN + 1 + PROOF + 1);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 1);
	CHECK_INT(n_reads, ==, CHAIN + PROOF);
	hold(holders[1]);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 2);
	CHECK_INT(n_reads, ==, CHAIN + PROOF);
	/* After a second the thread may be another one of that number. */
	sample.now_ns += NSEC_PER_SEC;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 1 + CHAIN + PROOF);
	memset(words, 0, 4 * sizeof(words[0]));
	CHECK_INT(read_context(), >, 0);
	sample.now_ns += NSEC_PER_SEC;
	check_none(FRAME_RECORD_SPAN_NONE);
	CHECK_INT(n_reads, ==, 1 + PROOF);
	end();
}

/* V8 has moved the storage's object, and another storage's is at its place. */
static void test_node_moved(void)
{
	begin_node();
	CHECK_INT(read_context(), >, 0);
	storage = tagged(&keys[1]);
	holders[1][0] = KIND + 8;
	hold(holders[1]);
	check_none(FRAME_RECORD_SPAN_UNREADABLE);
	end();
	/* The other thread of that number may have such a kind. */
	begin_node();
	CHECK_INT(read_context(), >, 0);
	sample.now_ns += NSEC_PER_SEC;
	words[2]++;
	holders[1][0] = KIND;
	storage = tagged(&keys[1]);
	hold(holders[1]);
	CHECK_INT(read_context(), ==, 0);
	end();
}

/* A vector of blocks, as glibc has it: a number of modules in front, then the block of each. The
 * variable is the third word of its block. */
static uint64_t vector[256];

static void begin_block(int32_t cpu, uint64_t module, uint64_t *block)
{
	struct thread_variable v = {.module = module, .offset = 16, .cpu = cpu};
	const uint64_t at = (uintptr_t)&vector[2];

	begin(v);
	memset(words, 0, sizeof(words));
	/* The thread's struct is made: its list of robust locks is 0x2e0 bytes behind it. */
	sample.robust_list = (uintptr_t)words + POINTER + LIST;
	sample.cpu = CPU;
	fake_stat_set(sample.stat, CPU);
	put_word(LIST - 16, &sample.number, sizeof(sample.number));
	put_word(8, &at, sizeof(at));
	set_cpu(CPU);
	memset(vector, 0, sizeof(vector));
	vector[0] = module;
	vector[2 + 2 * module] = (uintptr_t)block;
	if (block)
		block[2] = (uintptr_t)&records[0];
}

static void test_block(void)
{
	uint64_t block[8] = {0};

	/* The thread's number with the vector, the block, the variable and the record. */
	begin_block(0, 2, block);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 4);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 2);
	/* After a second the thread may be another one of that number. */
	put_word(LIST - 16, &(uint32_t){0}, sizeof(uint32_t));
	sample.now_ns += NSEC_PER_SEC;
	check_none(FRAME_RECORD_SPAN_UNREADABLE);
	end();
	/* The thread has not used the library yet: its vector has no block, or is shorter. */
	begin_block(CPU_AT, 2, NULL);
	check_none(FRAME_RECORD_SPAN_NONE);
	set_cpu(CPU + 1);
	check_none(FRAME_RECORD_SPAN_MOVED);
	end();
	begin_block(CPU_AT, 2, block);
	vector[0] = 1;
	check_none(FRAME_RECORD_SPAN_NONE);
	end();
	/* In a long vector. */
	begin_block(0, 100, block);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 5);
	end();
}

/* ---- A record beside its variable, in the memory of a thread ---- */

static struct {
	uint64_t block[8];
	struct record records[2];
} heap __attribute__((aligned(4096)));

static void begin_beside(int32_t cpu)
{
	begin_block(cpu, 2, heap.block);
	fill(&heap.records[0], 1, 0);
	fill(&heap.records[1], 2, 0);
	heap.block[2] = (uintptr_t)&heap.records[0];
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, cpu ? 2 : 1);
}

static void test_beside_the_variable(void)
{
	begin_beside(CPU_AT);
	heap.records[0].span[7] = 9;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[23], ==, 9);
	CHECK_INT(n_reads, ==, 2);
	/* It is longer than that read, and there, but in no read so far. */
	heap.records[0].n = 40;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES + 40);
	CHECK_INT(n_reads, ==, 3);
	heap.block[2] = (uintptr_t)&heap.records[1];
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 2);
	CHECK_INT(n_reads, ==, 3);
	heap.block[2] = (uintptr_t)far;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(bytes[0], ==, 3);
	CHECK_INT(n_reads, ==, 3);
	heap.block[2] = 0;
	check_none(FRAME_RECORD_SPAN_NONE);
	end();
	begin_beside(0);
	heap.records[0].span[7]++;
	CHECK_INT(read_context(), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(n_reads, ==, 1);
	fake_stat_set(sample.stat, CPU + 1);
	check_none(FRAME_RECORD_SPAN_MOVED);
	end();
}

static void leave_span(void)
{
	set_cpu(CPU + 1);
	heap.block[2] = (uintptr_t)&heap.records[1];
}

static void enter_span(void)
{
	set_cpu(CPU + 1);
	heap.records[0].span[7]++;
}

/* The thread goes on between the first read and its proof, or after that. */
static void test_gone_on_beside(void)
{
	for (int at = 2; at <= 3; at++) {
		begin_beside(CPU_AT);
		heap.records[0].span[7]++;
		CHECK_INT(read_while(leave_span, at), ==, at == 2 ? 0 : 28);
		end();
		begin_beside(CPU_AT);
		heap.records[0].span[7]++;
		CHECK_INT(read_while(enter_span, at), ==, at == 2 ? 0 : 28);
		end();
	}
}

int main(void)
{
#ifndef __x86_64__
	SKIP("thread pointers are not known here");
#endif
	RUN(test_few_reads);
	RUN(test_gone_on);
	RUN(test_fewer_reads);
	RUN(test_none_on_cpu);
	RUN(test_wrong_page);
	RUN(test_end_of_page);
	RUN(test_another_cpu);
	RUN(test_node);
	RUN(test_node_moved);
	RUN(test_block);
	RUN(test_beside_the_variable);
	RUN(test_gone_on_beside);
	return 0;
}
