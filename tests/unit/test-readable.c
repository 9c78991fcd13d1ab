/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read in this process, and what in it is never written. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "src/host/readable.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static int open_maps(void *ctx)
{
	return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

static struct readable begin(void)
{
	struct readable r = {.open_maps = open_maps, .max_bytes = 1 << 20};
	struct stat st;

	CHECK_INT(stat("/proc/self/exe", &st), ==, 0);
	r.major = major(st.st_dev);
	r.minor = minor(st.st_dev);
	return r;
}

static bool has(struct readable *r, const void *at)
{
	return readable_has(r, (uintptr_t)at, 4);
}

static bool is_constant(const struct readable *r, const void *at)
{
	return readable_is_constant(r, (uintptr_t)at, 4);
}

static void test_own(void)
{
	static const char text[] = "constant";
	static char variable[] = "variable";
	struct readable r = begin();
	char *heap = malloc(64);

	CHECK(heap && has(&r, text) && has(&r, variable) && has(&r, heap));
	CHECK(is_constant(&r, text));
	CHECK(!is_constant(&r, variable) && !is_constant(&r, heap) && !is_constant(&r, &r));
	CHECK(!is_constant(&r, (const void *)8));
	free(heap);
	readable_deinit(&r);
}

/* Memory of nobody is none, and what no file has is not constant, even if nobody may write it. */
static void test_refused(void)
{
	struct readable r = begin();
	char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	CHECK(has(&r, page) && !is_constant(&r, page));
	CHECK(!readable_has(&r, (uintptr_t)page, 4097));
	CHECK(!has(&r, (const void *)8));
	(void)munmap(page, 4096);
	readable_deinit(&r);
}

static int n_opened;

static uint64_t cpu_ns(void)
{
	return clock_get_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int open_slowly(void *ctx)
{
	const struct timespec while_it_opens = {.tv_nsec = *(long *)ctx};

	n_opened++;
	(void)nanosleep(&while_it_opens, NULL);
	return open_maps(NULL);
}

static int open_with_work(void *ctx)
{
	uint64_t begin_ns = cpu_ns();

	n_opened++;
	while (cpu_ns() - begin_ns < *(uint64_t *)ctx)
		;
	return open_maps(NULL);
}

static void *new_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	return page;
}

/* Maps are read again for memory that is new; but that takes a twentieth of the time at most. */
static void test_again(void)
{
	struct readable r = begin();
	uint64_t begin_ns, work_ns = 0;

	r.open_maps = open_with_work;
	r.ctx = &work_ns;
	r.min_delay_ns = 1000;
	CHECK(has(&r, new_page()));
	for (int i = 0; i < 5; i++) {
		void *page = new_page();

		while (!has(&r, page))
			(void)usleep(1000);
	}
	work_ns = 5 * NSEC_PER_MSEC;
	n_opened = 0;
	begin_ns = clock_monotonic_ns();
	while (clock_monotonic_ns() - begin_ns < 300 * NSEC_PER_MSEC) {
		CHECK(!has(&r, (const void *)8));
		(void)usleep(1000);
	}
	CHECK_INT(n_opened, <=, 4);
	readable_deinit(&r);
}

/* Of a process that began just now, maps are read again soon, also after many a miss: when a
 * twentieth of its life has passed. To wait for them costs less than to read them. */
static void check_young(long slow_ns)
{
	struct readable r = begin();

	r.open_maps = open_slowly;
	r.ctx = &slow_ns;
	r.min_delay_ns = 1000;
	r.begun_ns = clock_monotonic_ns();
	for (int i = 0; i < 200; i++) {
		uint64_t start_ns = clock_monotonic_ns(), start_cpu_ns = cpu_ns(), took_ns;
		uint64_t work_ns, age_ns;

		n_opened = 0;
		CHECK(!has(&r, (const void *)8));
		took_ns = clock_monotonic_ns() - start_ns;
		work_ns = cpu_ns() - start_cpu_ns;
		age_ns = start_ns + took_ns - r.begun_ns;
		CHECK(n_opened == 0 || r.delay_ns <= 1000 || r.delay_ns <= age_ns / 20 ||
		      r.delay_ns <= 20 * work_ns || r.delay_ns <= 4 * took_ns);
		(void)usleep(1000);
	}
	readable_deinit(&r);
}

static void test_young(void)
{
	check_young(0);
	check_young(3 * (long)NSEC_PER_MSEC);
}

int main(void)
{
	RUN(test_own);
	RUN(test_refused);
	RUN(test_again);
	RUN(test_young);
	return 0;
}
