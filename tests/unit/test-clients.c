/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader's processes, of which the memory and the maps are files: recorded reads of CPython
 * (tests/data/cpython), so what is told of each thread must be what its interpreter said then; and
 * this process itself, for the context of its thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtimes/cpython.h"
#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"
#include "src/process/frame-ring.h"
#include "src/reader/clients.h"
#include "src/reader/own-tids.h"
#include "src/reader/setup.h"
#include "src/reader/teller.h"
#include "tests/runtimes/recording.h"
#include "tests/unit/recorded-file.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/cleanup.h"

enum { PID = 4711, MAX_TEXTS = 4096 };

static struct clients *clients;
static struct teller *teller;
static struct frame_ring *ring; /* the profiler's side */
static char *texts[MAX_TEXTS];
static uint32_t n_texts, n_codes;
static int n_begun, n_ended; /* reads of memory */
static uint32_t asked;

static void on_reading(void *ctx, uint32_t pid, bool begins)
{
	CHECK(clients_find(clients, pid) != NULL);
	n_begun += begins;
	n_ended += !begins;
	CHECK_INT(n_begun - n_ended, ==, begins);
}

static void ask_own_tid(void *ctx, uint32_t tid, bool with_stat)
{
	asked = tid;
}

static void begin(void)
{
	const struct clients_callbacks callbacks = {on_reading, ask_own_tid, NULL};
	int fd = teller_new(&teller);

	if (fd == -ENOTSUP)
		SKIP("this kernel has no seals");
	CHECK_INT(fd, >=, 0);
	CHECK_INT(frame_ring_map(&ring, fd), ==, 0);
	(void)close(fd);
	CHECK_INT(clients_new(&clients, &callbacks), ==, 0);
	n_begun = n_ended = 0;
	n_texts = n_codes = 0;
	asked = 0;
}

static void end(void)
{
	CHECK_INT(n_begun, ==, n_ended);
	clients = clients_free(clients);
	teller = teller_free(teller);
	ring = frame_ring_free(ring);
	while (n_texts > 0)
		free(texts[--n_texts]);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int open_null(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	return fd;
}

/* ---- Who is there ---- */

static int add(uint32_t pid, int memory, int maps)
{
	struct message m = {.type = MESSAGE_CLIENT};

	m.client.pid = m.client.own_pid = pid;
	return clients_add(clients, &m, memory, maps);
}

/* Whatever the outcome, the descriptors are theirs, and are closed in the end. */
static void test_table(void)
{
	int first[2] = {-1, -1}, last[2];

	begin();
	for (uint32_t pid = 1; pid <= READERS_MAX_CLIENTS; pid++) {
		int memory = open_null(), maps = open_null();

		CHECK_INT(add(pid, memory, maps), ==, 0);
		if (pid == 1)
			first[0] = memory, first[1] = maps;
	}
	last[0] = open_null(), last[1] = open_null();
	CHECK_INT(add(1000, last[0], last[1]), ==, -ENOSPC);
	CHECK(!is_open(last[0]) && !is_open(last[1]));
	CHECK(clients_find(clients, 1000) == NULL);
	CHECK(clients_find(clients, 0) == NULL);
	CHECK(clients_find(clients, 1) != NULL);

	last[0] = open_null(), last[1] = open_null();
	CHECK_INT(add(1, last[0], last[1]), ==, 0);
	CHECK(!is_open(first[0]) && !is_open(first[1]));
	clients_remove(clients, 1);
	clients_remove(clients, 1);
	CHECK(!is_open(last[0]) && !is_open(last[1]));
	CHECK(clients_find(clients, 1) == NULL);

	last[0] = open_null(), last[1] = open_null();
	CHECK_INT(add(1000, last[0], last[1]), ==, 0);
	end();
	CHECK(!is_open(last[0]) && !is_open(last[1]));
}

/* ---- Python ---- */

/*
 * At each address its bytes, and lines for these and the byte behind: of an empty table nothing was
 * recorded. But for the range `without`.
 */
static void write_recorded(const struct recording *r, uint32_t without, int memory)
{
	for (uint32_t i = 0; i < r->n_ranges; i++) {
		const struct recorded_range *range = &r->ranges[i];

		if (i != without)
			CHECK_INT(pwrite(memory, range->bytes, range->n, (off_t)range->at), ==,
				  range->n);
	}
}

/* Returns the memory, which is theirs. */
static int add_recorded_as(const struct recording *r, uint32_t without, struct message *m)
{
	int memory = memfd_create("memory", MFD_CLOEXEC), maps = memfd_create("maps", MFD_CLOEXEC);

	write_recorded(r, without, memory);
	for (uint32_t i = 0; i < r->n_ranges; i++) {
		const struct recorded_range *range = &r->ranges[i];

		if (i != without)
			(void)dprintf(maps, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
				      range->at, range->at + range->n + 1);
	}
	m->client.pid = m->client.own_pid = PID;
	CHECK_INT(clients_add(clients, m, memory, maps), ==, 0);
	return memory;
}

static int add_recorded(const struct recording *r, uint32_t without)
{
	struct message m = {.type = MESSAGE_CLIENT};

	m.client.images[0] = r->image;
	return add_recorded_as(r, without, &m);
}

/* Texts and ranges of code that come before a stack. */
static void take_told(void)
{
	static union {
		uint32_t type;
		struct frame_record_text text;
		uint8_t bytes[FRAME_RING_MAX_RECORD];
	} r;

	while (frame_ring_peek(ring, &r) > 0) {
		if (r.type == FRAME_RECORD_TEXT) {
			CHECK_INT(n_texts, <, MAX_TEXTS);
			texts[n_texts++] = strndup(r.text.text, r.text.n);
		} else {
			CHECK_INT(r.type, ==, FRAME_RECORD_CODE);
			n_codes++;
		}
		frame_ring_drop(ring);
	}
}

static const char *text_of(uint32_t number)
{
	CHECK_INT(number, <=, n_texts);
	return number ? texts[number - 1] : "";
}

static void print_stack(const struct frame_record_stack *s, FILE *out)
{
	static const char *const names[FRAME_RECORD_N_RESULTS] = {
		[FRAME_RECORD_WHOLE] = "whole",		[FRAME_RECORD_CUT] = "cut",
		[FRAME_RECORD_NONE] = "no thread",	[FRAME_RECORD_LATE] = "late",
		[FRAME_RECORD_UNPROVEN] = "not proven", [FRAME_RECORD_UNREAD] = "unread"};

	for (uint32_t i = 0; i < s->n; i++) {
		const struct frame_record_frame *f = &s->frames[i];

		(void)fprintf(out, "  %s (%s:%u, from %u)%s\n", text_of(f->function),
			      text_of(f->file), f->line, f->start_line,
			      f->address & 1 ? " entry" : "");
	}
	(void)fprintf(out, "  = %s\n", names[s->result]);
}

/* What a walk learns is kept, so one that its budget ended comes further the next time. */
static void read_whole(uint32_t tid, struct frame_record_stack *ret)
{
	const struct client_sample sample = {.tid = tid};
	int n = 0;

	do {
		client_read(clients_find(clients, PID), &sample, teller, ret);
		CHECK_INT(n++, <, 20);
	} while (ret->result == FRAME_RECORD_LATE);
}

/* Each recorded thread is told as its interpreter said, and the code once until it is forgotten. */
static void check_version(const char *version)
{
	static struct frame_record_stack stack;
	struct recording recorded;
	size_t n_bytes, n_text, n_expected;
	uint8_t *bytes = (uint8_t *)recorded_file_load("cpython/", version, "gz", &n_bytes);
	char *expected = recorded_file_load("cpython/", version, "expect", &n_expected);
	char *text = NULL;
	FILE *f = open_memstream(&text, &n_text);

	CHECK(f && recording_parse(&recorded, bytes, n_bytes));
	begin();
	add_recorded(&recorded, UINT32_MAX);
	for (uint32_t i = 0; i < recorded.n_samples; i++) {
		read_whole((uint32_t)recorded.samples[i].r[0], &stack);
		take_told();
		print_stack(&stack, f);
	}
	(void)fclose(f);
	CHECK_STR(text, expected);
	CHECK_INT(n_codes, ==, 1);
	clients_forget_told(clients);
	read_whole((uint32_t)recorded.samples[0].r[0], &stack);
	take_told();
	CHECK_INT(n_codes, ==, 2);
	end();
	free(text);
	free(expected);
	free(bytes);
	recording_deinit(&recorded);
}

static void test_python(void)
{
	check_version("3.9");
	check_version("3.13");
}

static uint32_t n_of_first(const struct frame_record_stack *s)
{
	uint32_t n = s->n;

	for (uint32_t k = 0; k < s->n_others; k++)
		n -= s->others[k].n;
	return n;
}

/* Of several interpreters in a process each has its own frames and result, in their order. */
static void test_several(void)
{
	static struct frame_record_stack stack;
	struct message m = {.type = MESSAGE_CLIENT};
	struct recording recorded;
	size_t n_bytes;
	uint8_t *bytes = (uint8_t *)recorded_file_load("cpython/", "3.13", "gz", &n_bytes);
	uint32_t n;

	CHECK(recording_parse(&recorded, bytes, n_bytes));
	for (int i = 0; i < 3; i++)
		m.client.images[i] = i == 1 ? 0x10000 : recorded.image;
	begin();
	add_recorded_as(&recorded, UINT32_MAX, &m);
	for (int i = 0; i < 20; i++)
		client_read(clients_find(clients, PID),
			    &(struct client_sample){.tid = (uint32_t)recorded.samples[0].r[0]},
			    teller, &stack);
	take_told();
	CHECK_INT(n_codes, ==, 2);
	CHECK_INT(stack.result, ==, FRAME_RECORD_WHOLE);
	CHECK_INT(stack.n_others, ==, 2);
	CHECK_INT(stack.others[0].result, ==, FRAME_RECORD_LATE);
	CHECK_INT(stack.others[0].n, ==, 0);
	CHECK_INT(stack.others[1].result, ==, FRAME_RECORD_WHOLE);
	n = n_of_first(&stack);
	CHECK_INT(n, >, 1);
	CHECK_INT(stack.others[1].n, ==, n);
	CHECK(memcmp(stack.frames, stack.frames + n, n * sizeof(stack.frames[0])) == 0);
	end();
	free(bytes);
	recording_deinit(&recorded);
}

/* The first thread's result without a range of memory, of which the sample may have a copy. */
static uint32_t result_without(const struct recording *recorded, uint32_t range, bool copied)
{
	static struct frame_record_stack stack;
	struct client_sample sample = {.tid = (uint32_t)recorded->samples[0].r[0]};

	if (copied) {
		sample.start = recorded->ranges[range].at;
		sample.n_stack = recorded->ranges[range].n;
		sample.stack = recorded->ranges[range].bytes;
	}
	begin();
	add_recorded(recorded, range);
	for (int i = 0; i < 5; i++)
		client_read(clients_find(clients, PID), &sample, teller, &stack);
	end();
	return stack.result;
}

/* What the sample has a copy of need not be read, and some of it is needed. */
static void test_copied_stack(void)
{
	struct recording recorded;
	size_t n_bytes;
	uint8_t *bytes = (uint8_t *)recorded_file_load("cpython/", "3.13", "gz", &n_bytes);
	uint32_t n_needed = 0;

	CHECK(recording_parse(&recorded, bytes, n_bytes));
	CHECK_INT(result_without(&recorded, UINT32_MAX, false), ==, FRAME_RECORD_WHOLE);
	for (uint32_t i = 0; i < recorded.n_ranges && n_needed < 3; i++) {
		if (result_without(&recorded, i, false) == FRAME_RECORD_WHOLE ||
		    result_without(&recorded, i, true) != FRAME_RECORD_WHOLE)
			continue; /* no walk needs it, or already the interpreter's start does */
		n_needed++;
	}
	CHECK_INT(n_needed, ==, 3);
	free(bytes);
	recording_deinit(&recorded);
}

/* Where there is no interpreter, memory is read ever less often, and after a while says so. */
static void test_no_python(void)
{
	static struct frame_record_stack stack;
	const struct client_sample sample = {.tid = PID};
	uint8_t bytes[64] = "no program";
	struct recorded_range range = {.at = 0x10000, .n = sizeof(bytes), .bytes = bytes};
	const struct recording r = {.image = 0x10000, .ranges = &range, .n_ranges = 1};

	begin();
	add_recorded(&r, UINT32_MAX);
	client_read(clients_find(clients, PID), &sample, teller, &stack);
	CHECK_INT(stack.result, ==, FRAME_RECORD_LATE);
	CHECK(client_has_interpreter(clients_find(clients, PID)));
	for (int i = 0; stack.result == FRAME_RECORD_LATE; i++) {
		CHECK_INT(i, <, 1000);
		(void)usleep(10000);
		client_read(clients_find(clients, PID), &sample, teller, &stack);
		CHECK_INT(stack.n, ==, 0);
	}
	CHECK_INT(stack.result, ==, FRAME_RECORD_UNREAD);
	CHECK(!client_has_interpreter(clients_find(clients, PID)));
	take_told();
	CHECK_INT(n_texts + n_codes, ==, 0);
	end();
}

/* At first other bytes stand in the place of the library's symbols, as while a loader maps it: what
 * was not found then is looked for again. */
static void test_loading(void)
{
	static struct frame_record_stack stack;
	struct client_sample sample;
	struct recording recorded;
	size_t n_bytes;
	uint8_t *bytes = (uint8_t *)recorded_file_load("cpython/", "3.13", "gz", &n_bytes),
		zero[64] = {0};
	int memory;

	CHECK(recording_parse(&recorded, bytes, n_bytes));
	begin();
	memory = add_recorded(&recorded, UINT32_MAX);
	sample = (struct client_sample){.tid = (uint32_t)recorded.samples[0].r[0]};
	CHECK_INT(pwrite(memory, zero, sizeof(zero), (off_t)recorded.image), ==, sizeof(zero));
	client_read(clients_find(clients, PID), &sample, teller, &stack);
	CHECK_INT(stack.result, ==, FRAME_RECORD_LATE);
	write_recorded(&recorded, UINT32_MAX, memory);
	for (int i = 0; stack.result == FRAME_RECORD_LATE; i++) {
		CHECK_INT(i, <, 1000);
		(void)usleep(1000);
		client_read(clients_find(clients, PID), &sample, teller, &stack);
	}
	CHECK_INT(stack.result, ==, FRAME_RECORD_WHOLE);
	end();
	free(bytes);
	recording_deinit(&recorded);
}

/* Threads of another pid namespace have other numbers: without the broker nothing is read. */
static void test_other_namespace(void)
{
	static struct frame_record_stack stack;
	const struct client_sample sample = {.tid = PID + 5};
	struct message m = {.type = MESSAGE_CLIENT};

	begin();
	m.client.pid = PID;
	m.client.own_pid = 1;
	m.client.images[0] = 0x10000;
	CHECK_INT(clients_add(clients, &m, open_null(), open_null()), ==, 0);
	client_read(clients_find(clients, PID), &sample, teller, &stack);
	CHECK_INT(stack.result, ==, FRAME_RECORD_LATE);
	CHECK_INT(asked, ==, PID + 5);
	CHECK_INT(n_begun, ==, 0);
	clients_tell_thread(clients, PID + 5, &(struct own_thread){.number = 6});
	client_read(clients_find(clients, PID), &sample, teller, &stack);
	CHECK_INT(n_begun, ==, 1);
	end();
}

/* ---- What a thread says of itself ---- */

#ifdef __x86_64__
__attribute__((visibility("default"))) __thread void *test_thread_variable;

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *ret)
{
	/* The program is the first one, and begins with its headers. */
	*(uint64_t *)ret = (uintptr_t)info->dlpi_phdr & ~UINT64_C(4095);
	return 1;
}

static struct thread_variable find_variable(void)
{
	struct memory m = {.read = read_own, .reads_left = 10000, .bytes_left = 1 << 24};
	struct thread_variable v;
	struct image image;
	uint64_t base = 0;

	(void)dl_iterate_phdr(on_object, &base);
	CHECK(image_open(&image, &m, base));
	CHECK_INT(thread_variable_find(&image, "test_thread_variable", &v), ==, 1);
	return v;
}

static void add_self(void)
{
	const struct thread_variable v = find_variable();
	struct message m = {.type = MESSAGE_CLIENT};

	m.client.pid = m.client.own_pid = (uint32_t)getpid();
	m.client.threads.context_module = v.module;
	m.client.threads.context_offset = v.offset;
	m.client.threads.has_context = 1;
	CHECK_INT(clients_add(clients, &m, open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
			      open("/proc/self/maps", O_RDONLY | O_CLOEXEC)),
		  ==, 0);
}

static void tell_own_thread(bool in_front)
{
	uint32_t tid = (uint32_t)gettid();
	void *list;
	size_t size;

	CHECK_INT(syscall(SYS_get_robust_list, 0, &list, &size), ==, 0);
	clients_tell_thread(
		clients, tid,
		&(struct own_thread){tid, in_front, (uintptr_t)list,
				     open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC)});
}

/* As a reader on this CPU, in time: a busy host may take a while between both. */
static enum frame_record_span read_self(struct reader_client *self,
					struct frame_record_context *ret)
{
	struct client_sample sample = {.tid = (uint32_t)gettid(), .cpu = (uint32_t)sched_getcpu()};
	enum frame_record_span span = FRAME_RECORD_SPAN_LATE;
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(sample.cpu, &only);
	CHECK_INT(sched_setaffinity(0, sizeof(only), &only), ==, 0);
	for (int i = 0; i < 1000 && span == FRAME_RECORD_SPAN_LATE; i++) {
		sample.time_ns = clock_monotonic_ns();
		span = client_read_context(self, &sample, ret);
	}
	return span;
}

static void test_context(void)
{
	uint8_t *record = calloc(1, THREAD_CONTEXT_HEAD_BYTES); /* in memory of no file */
	const uint32_t tid = (uint32_t)gettid();
	struct frame_record_context context = {.n = 99};
	struct reader_client *self;

	begin();
	add_self();
	self = clients_find(clients, (uint32_t)getpid());
	CHECK_INT(read_self(self, &context), ==, FRAME_RECORD_SPAN_UNREAD);
	CHECK_INT(context.n, ==, 0);
	CHECK_INT(asked, ==, tid);
	tell_own_thread(false);
	CHECK_INT(read_self(self, &context), ==, FRAME_RECORD_SPAN_NONE);
	CHECK_INT(context.n, ==, 0);
	memset(record, 9, THREAD_CONTEXT_HEAD_BYTES);
	record[24] = 1;
	record[26] = record[27] = 0;
	test_thread_variable = record;
	CHECK_INT(read_self(self, &context), ==, FRAME_RECORD_SPAN_READ);
	CHECK_INT(context.n, ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK(memcmp(context.bytes, record, THREAD_CONTEXT_HEAD_BYTES) == 0);
	/* The kernel would not say if it had been elsewhere meanwhile. */
	CHECK_INT(client_read_context(
			  self,
			  &(struct client_sample){.tid = tid,
						  .cpu = (uint32_t)sched_getcpu(),
						  .time_ns = clock_monotonic_ns() - NSEC_PER_MSEC},
			  &context),
		  ==, FRAME_RECORD_SPAN_LATE);
	CHECK_INT(context.n, ==, 0);
	/* It would go on before it is read. */
	tell_own_thread(true);
	CHECK_INT(read_self(self, &context), ==, FRAME_RECORD_SPAN_LATE);
	CHECK_INT(context.n, ==, 0);
	tell_own_thread(false);
	test_thread_variable = NULL;
	CHECK_INT(read_self(self, &context), ==, FRAME_RECORD_SPAN_NONE);
	CHECK_INT(context.n, ==, 0);
	free(record);
	end();
}
#endif

int main(void)
{
	RUN(test_table);
	RUN(test_no_python);
	RUN(test_other_namespace);
	NEED_X86_64();
	RUN(test_python);
	RUN(test_several);
	RUN(test_copied_stack);
	RUN(test_loading);
#ifdef __x86_64__
	RUN(test_context);
#endif
	return 0;
}
