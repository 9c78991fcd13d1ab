/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of threads, sound and broken; and where the variable is that points to them: in this
 * program, as the compiler says, and in no other way.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtimes/thread-context.h"
#include "runtimes/thread-variable.h"
#include "tests/unit/test.h"

__attribute__((visibility("default"))) __thread void *test_thread_variable;

static uint8_t record[2048] __attribute__((aligned(8)));

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address < 4096)
		return false;
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static bool read_process(void *ctx, uint64_t address, void *ret, size_t n)
{
	return pread(*(const int *)ctx, ret, n, (off_t)address) == (ssize_t)n;
}

static struct memory own_memory(void)
{
	return (struct memory){.read = read_own, .reads_left = 10000, .bytes_left = 1 << 24};
}

static uint32_t read_record(uint16_t n, uint8_t valid, uint8_t *ret)
{
	struct memory m = own_memory();

	memset(record, 7, THREAD_CONTEXT_HEAD_BYTES);
	record[24] = valid;
	memcpy(record + 26, &n, sizeof(n));
	return thread_context_read(&m, (uintptr_t)record, ret);
}

static void test_records(void)
{
	uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
	struct memory m = own_memory();
	const uint8_t *trace, *span;

	CHECK_INT(read_record(0, 1, bytes), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK(thread_context_ids(bytes, THREAD_CONTEXT_HEAD_BYTES, &trace, &span));
	CHECK(trace == bytes && span == bytes + 16);
	memset(bytes + 16, 0, 8);
	CHECK(!thread_context_ids(bytes, THREAD_CONTEXT_HEAD_BYTES, &trace, &span));
	CHECK_INT(read_record(0, 0, bytes), ==, 0);
	CHECK_INT(read_record(0, 2, bytes), ==, 0);
	CHECK_INT(read_record(65535, 1, bytes), ==, THREAD_CONTEXT_MAX_BYTES);
	CHECK_INT(thread_context_read(&m, 0, bytes), ==, -EFAULT);
	CHECK_INT(thread_context_read(&m, 8, bytes), ==, -EFAULT);
}

/* At the end of a page that nothing follows, nothing behind it is asked for. */
static void test_last_page(void)
{
	enum { PAGE = 4096, N = 300 };
	uint8_t bytes[THREAD_CONTEXT_MAX_BYTES], *pages, *at;
	struct memory m = {.reads_left = 2, .bytes_left = 4096, .read = read_process};
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const uint16_t n = N;

	m.ctx = &memory;
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory >= 0 && pages != MAP_FAILED && munmap(pages + PAGE, PAGE) == 0);
	at = pages + PAGE - THREAD_CONTEXT_HEAD_BYTES;
	at[24] = 1;
	CHECK_INT(thread_context_read(&m, (uintptr_t)at, bytes), ==, THREAD_CONTEXT_HEAD_BYTES);
	CHECK_INT(m.reads_left, ==, 1);
	/* One that is longer than what a read has takes another. */
	at = pages + 64;
	at[24] = 1;
	memcpy(at + 26, &n, sizeof(n));
	at[THREAD_CONTEXT_HEAD_BYTES + N - 1] = 77;
	m.reads_left = 2;
	CHECK_INT(thread_context_read(&m, (uintptr_t)at, bytes), ==, THREAD_CONTEXT_HEAD_BYTES + N);
	CHECK_INT(bytes[THREAD_CONTEXT_HEAD_BYTES + N - 1], ==, 77);
	CHECK_INT(m.reads_left, ==, 0);
	(void)munmap(pages, PAGE);
	(void)close(memory);
}

static void test_attributes(void)
{
	static const char attributes[] = "\1\1x\2\1y\1\3GET\5\11cut";
	uint8_t bytes[64] = {0};
	uint32_t n = THREAD_CONTEXT_HEAD_BYTES + sizeof(attributes) - 1, at = 0;
	struct thread_context_attribute a;

	memcpy(bytes + THREAD_CONTEXT_HEAD_BYTES, attributes, sizeof(attributes) - 1);
	CHECK(thread_context_next(bytes, n, &at, &a));
	CHECK(a.key == 2 && a.n == 1 && *a.text == 'y');
	CHECK(thread_context_next(bytes, n, &at, &a));
	CHECK(a.key == 1 && a.n == 3 && memcmp(a.text, "GET", 3) == 0);
	CHECK(!thread_context_next(bytes, n, &at, &a));
}

static bool is_cut(uint16_t size, uint32_t n)
{
	static const char attributes[] = "\1\1x\2\1y";
	uint8_t bytes[64] = {0};

	memcpy(bytes + 26, &size, sizeof(size));
	memcpy(bytes + THREAD_CONTEXT_HEAD_BYTES, attributes, sizeof(attributes) - 1);
	return thread_context_is_cut(bytes, THREAD_CONTEXT_HEAD_BYTES + n);
}

static void test_cut(void)
{
	CHECK(!is_cut(0, 0) && !is_cut(3, 3) && !is_cut(6, 6));
	/* Within an attribute, and between two, of which the record has more than was kept. */
	CHECK(is_cut(5, 5) && is_cut(4, 4) && is_cut(6, 3));
}

static int on_object(struct dl_phdr_info *info, size_t size, void *ret)
{
	/* The program is the first one, and begins with its headers. */
	*(uint64_t *)ret = (uintptr_t)info->dlpi_phdr & ~UINT64_C(4095);
	return 1;
}

static void *check_variable(void *arg)
{
	const struct thread_variable *v = arg;
	struct memory m = own_memory();
	struct thread_near near;
	uint64_t thread, at;
	void *list;
	size_t size;

	test_thread_variable = &list;
	CHECK_INT(syscall(SYS_get_robust_list, 0, &list, &size), ==, 0);
	thread = thread_pointer_of(&m, (uintptr_t)list, (uint32_t)gettid(), 0);
	CHECK_INT(thread, ==, (uintptr_t)pthread_self());
	m.reads_left = 1;
	CHECK(thread_variable_read_near(&m, v, (uintptr_t)list, (uint32_t)gettid(), 1, &near));
	CHECK_INT(near.address, ==, (uintptr_t)&test_thread_variable);
	CHECK_INT(near.words[0], ==, (uintptr_t)&list);
	CHECK_INT(near.cpu, ==, THREAD_NO_CPU);
	m.reads_left = 10;
	/* Another's number is not believed. */
	CHECK(!thread_variable_read_near(&m, v, (uintptr_t)list, (uint32_t)gettid() + 1, 1, &near));
	CHECK_INT(thread_pointer_of(&m, (uintptr_t)list, (uint32_t)gettid() + 1, 0), ==, 0);
	CHECK(thread_variable_address(&m, v, (uintptr_t)list, (uint32_t)gettid(), &at));
	CHECK_INT(at, ==, (uintptr_t)&test_thread_variable);
	CHECK(!thread_variable_address(&m, v, (uintptr_t)list, (uint32_t)gettid() + 1, &at));
	return NULL;
}

static int on_library(struct dl_phdr_info *info, size_t size, void *ret)
{
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1;
}

/* The list of robust locks is in it, and so is all that follows that. */
static void test_struct(void)
{
	struct memory m = own_memory();
	struct image image;
	uint64_t base = 0;

	if (!dl_iterate_phdr(on_library, &base))
		return;
	CHECK(image_open(&image, &m, base));
	CHECK_INT(thread_struct_bytes(&image), >, 0x2e0);
	CHECK_INT(thread_struct_bytes(&image), <, 8192);
}

/* Wherever this thread runs, it is said there, if glibc says where. */
static void *check_cpu(void *arg)
{
	const struct thread_variable *v = arg;
	struct memory m = own_memory();
	cpu_set_t all, one;
	void *list;
	size_t size;

	CHECK_INT(syscall(SYS_get_robust_list, 0, &list, &size), ==, 0);
	CHECK_INT(sched_getaffinity(0, sizeof(all), &all), ==, 0);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CHECK_INT(sched_setaffinity(0, sizeof(one), &one), ==, 0);
		CHECK_INT(thread_cpu(&m, v, (uintptr_t)list, (uint32_t)gettid()), ==,
			  v->cpu ? cpu : THREAD_NO_CPU);
	}
	CHECK_INT(thread_cpu(&m, v, (uintptr_t)list, (uint32_t)gettid() + 1), ==, THREAD_NO_CPU);
	CHECK_INT(sched_setaffinity(0, sizeof(all), &all), ==, 0);
	return NULL;
}

/* Of glibc 2.35 and later. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static void test_cpu(void)
{
	struct thread_variable v = {0};
	struct memory m = own_memory();
	struct image image;
	pthread_t other;

	CHECK(image_open(&image, &m, getauxval(AT_BASE)));
	v.cpu = thread_struct_cpu(&image);
	CHECK_INT(v.cpu, ==, &__rseq_offset && __rseq_size ? __rseq_offset + 4 : 0);
	(void)check_cpu(&v);
	CHECK_INT(pthread_create(&other, NULL, check_cpu, &v), ==, 0);
	CHECK_INT(pthread_join(other, NULL), ==, 0);
}

static void test_the_variable(void)
{
	struct memory m = own_memory();
	struct thread_variable v;
	struct image image;
	uint64_t base = 0;
	pthread_t thread;

	(void)dl_iterate_phdr(on_object, &base);
	CHECK(image_open(&image, &m, base));
	CHECK_INT(thread_variable_find(&image, "test_thread_variable", &v), ==, 1);
	CHECK_INT(thread_variable_find(&image, "no_such_variable", &v), ==, 0);
	CHECK_INT(thread_variable_find(&image, "main", &v), ==, 0);
	(void)check_variable(&v);
	CHECK_INT(pthread_create(&thread, NULL, check_variable, &v), ==, 0);
	CHECK_INT(pthread_join(thread, NULL), ==, 0);
}

int main(void)
{
	RUN(test_records);
	RUN(test_last_page);
	RUN(test_attributes);
	RUN(test_cut);
#ifndef __x86_64__
	SKIP("thread pointers are not known here");
#endif
	RUN(test_struct);
	RUN(test_cpu);
	RUN(test_the_variable);
	return 0;
}
