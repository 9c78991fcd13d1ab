/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of locks, reasons and threads against a model of the same samples. */
#include "src/render/first-frame.h"
#include "tests/unit/test.h"
#include "tests/unit/waits-model.h"
#include "util/cleanup.h"
#include "util/hash.h"

static void test_by_chance(void)
{
	uint8_t bytes[600];
	uint64_t seed = 1;

	for (size_t n = 0; n < 500; n++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(seed = hash_u64(seed + 1));
		waits_model_run(bytes, n % (sizeof(bytes) + 1));
	}
}

/* A block that goes on over windows is one: its parts add up to the longest. */
static void test_longest(void)
{
	static const uint8_t rows[][MODEL_ROW] = {
		{0, 0, 0, 1, 0, 99}, {0, 1, 0, 1, 0, 9}, {0, 0, 0, 1, 0, 30}, {0, 0, 0, 1, 0, 4}};
	struct waits_model *m = calloc(1, sizeof(*m));
	struct lock_sum *locks = NULL;
	uint32_t n;

	CHECK(m);
	profile_init(&m->p, 1 << 20);
	waits_model_types(m);
	waits_model_tables(m);
	for (int i = 0; i < 4; i++)
		waits_model_sample(m, rows[i]);
	/* Thread 0: 100 so far and 31 more, then it ends with 5; thread 1: its own 10. */
	m->p.types[0].samples.items[0].n = m->p.types[0].samples.items[2].n = 0;
	m->p.types[0].samples.items[1].n = m->p.types[0].samples.items[3].n = 1;
	CHECK_INT(waits_by_lock(&m->p, &locks, &n), ==, 0);
	CHECK_INT(n, ==, 2);
	CHECK_INT(locks[0].longest_ns, ==, 136);
	CHECK_INT(locks[0].n, ==, 1);
	CHECK_INT(locks[1].longest_ns, ==, 10);
	free(locks);
	profile_deinit(&m->p);
	free(m);
}

/* ---- Where stacks begin to say something ---- */

/* The names of functions that are inlined, each into the next, have a | between them. */
static uint32_t add_named(struct profile *p, uint32_t module, const char *names)
{
	uint32_t frame = profile_add_frame(p, module, 0x1000 + p->frames.n), n = 0;
	struct profile_line lines[4] = {{0}};
	char copy[128], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", names);
	for (const char *name; (name = strsep(&rest, "|"));) {
		const struct profile_function f = {.name = strtab_put(&p->strings, name)};

		lines[n++].function = profile_add_function(p, &f);
	}
	CHECK(profile_name_frame(p, frame, lines, n));
	return frame;
}

/* How many frames are left out of the stack, whose names are leaf first, below a marker. */
static uint32_t left_out(const char *event, const char *const *names, uint32_t n_kernel)
{
	const struct profile_module modules[] = {{.uid = 100, .process = PROFILE_NONE},
						 {.uid = PROFILE_UID_MARKER,
						  .kind = PROFILE_MODULE_MARKER,
						  .process = PROFILE_NONE}};
	uint32_t frames[16], rows[2], n = 0, first;
	struct profile_type t = {.weighted = true, .period_events = 1};
	struct profile p;

	profile_init(&p, 1 << 20);
	t.event = strtab_put(&p.strings, event);
	t.unit = strtab_put(&p.strings, "bytes");
	profile_set_type(&p, 0, &t);
	for (int i = 0; i < 2; i++)
		rows[i] = profile_add_module(&p, &modules[i]);
	for (; names[n]; n++)
		frames[n] = add_named(&p, rows[0], names[n]);
	frames[n++] = profile_add_frame(&p, rows[1], PROFILE_MARKER_TRUNCATED);
	first = first_frame(&p, profile_add_stack(&p, frames, n, n_kernel));
	profile_deinit(&p);
	return first;
}

static void test_growth(void)
{
	static const char *const stacks[][6] = {
		{"_int_malloc", "malloc", "work", "main"},
		{"sysmalloc", "_int_malloc", "__libc_malloc", "operator new(unsigned long)",
		 "work"},
		{"__memset_avx2", "__GI___libc_calloc", "work"},
		{"mi_page_init", "realloc", "work", "malloc", "main"},
		{"_int_malloc", "malloc_consolidate", "work"},
		{"memset", "work", "main"},
		{"_int_malloc", "malloc"},
	};
	static const uint32_t want[] = {2, 4, 2, 2, 0, 0, 0};

	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		fprintf(stderr, "%s\n", stacks[i][0]);
		CHECK_INT(left_out("memory_growth", stacks[i], 0), ==, want[i]);
		CHECK_INT(left_out("alloc_space", stacks[i], 0), ==, 0);
	}
}

static void test_wakeups(void)
{
	static const char *const stack[] = {"try_to_wake_up", "do_syscall_64", "unlock", "work",
					    NULL};

	CHECK_INT(left_out(PROFILE_WAKEUPS, stack, 2), ==, 2);
	CHECK_INT(left_out("cpu-clock", stack, 2), ==, 0);
}

/* ---- Who waited ---- */

enum { LIBC, PYTHON, EXTENSION, FUNCTION, LOCK, REASON, N_MODULES };

static void add_modules(struct profile *p, uint32_t rows[N_MODULES])
{
	static const char *const paths[] = {[LIBC] = "/lib/libc.so.6",
					    [PYTHON] = "/lib/libpython3.so",
					    [EXTENSION] = "/x/ext.so"};
	static const uint8_t kinds[] = {[FUNCTION] = PROFILE_MODULE_RUNTIME,
					[LOCK] = PROFILE_MODULE_DATA,
					[REASON] = PROFILE_MODULE_MARKER};

	for (uint32_t i = 0; i < N_MODULES; i++) {
		const struct profile_module module = {
			.uid = 900 + i,
			.kind = kinds[i],
			.path = i <= EXTENSION ? strtab_put(&p->strings, paths[i]) : STRID_EMPTY,
			.runtime = i == FUNCTION ? PROFILE_RUNTIME_CPYTHON : 0,
			.process = PROFILE_NONE};

		rows[i] = profile_add_module(p, &module);
	}
}

/* A wait for a lock; a frame is a letter for its module and the function's name. */
static void add_wait(struct waits_model *m, const char *const *stack)
{
	static const char letters[] = "LPEF";
	struct profile_sample sample = {.value = 10, .n = 1, .thread = m->threads[0]};
	uint32_t rows[N_MODULES], frames[16], n = 0;

	add_modules(&m->p, rows);
	for (; stack[n]; n++)
		frames[n] =
			add_named(&m->p, rows[strchr(letters, *stack[n]) - letters], stack[n] + 1);
	frames[n++] = add_named(&m->p, rows[LOCK], "a lock");
	frames[n++] = profile_add_frame(&m->p, rows[REASON], PROFILE_MARKER_WAIT_LOCK);
	sample.stack = profile_add_stack(&m->p, frames, n, 0);
	CHECK(profile_add_sample(&m->p, &sample));
}

static void check_waiter(const char *const *stack, const char *want)
{
	struct waits_model *m = calloc(1, sizeof(*m));
	struct lock_sum *locks = NULL;
	char name[64];
	uint32_t n;

	CHECK(m);
	profile_init(&m->p, 1 << 20);
	waits_model_types(m);
	waits_model_tables(m);
	add_wait(m, stack);
	CHECK_INT(waits_by_lock(&m->p, &locks, &n), ==, 0);
	CHECK_INT(n, ==, 1);
	CHECK_STR(waits_caller_name(&m->p, locks[0].waiter, name, sizeof(name)), want);
	free(locks);
	profile_deinit(&m->p);
	free(m);
}

static void test_who_waits(void)
{
	static const struct {
		const char *stack[9], *want;
	} cases[] = {
		{{"Lfutex_wait", "Lpthread_mutex_lock", "Pwork", "Pmain"}, "work"},
		{{"Lfutex_wait", "PPyThread_acquire_lock", "Pcall", "Fconsume", "Frun", "Peval",
		  "Pmain"},
		 "consume"},
		{{"Lfutex_wait", "Eflush", "Pcall", "Fconsume", "Peval", "Pmain"}, "flush"},
		{{"Lfutex_wait", "Pcall", "Efilter", "Fconsume", "Eeval"}, "call"},
		{{"Lfutex_wait", "Lread", "Fconsume", "Peval"}, "consume"},
		{{"Lfutex_wait", "Pstd::mutex::lock()|guard|work|loop", "Pmain"}, "guard"},
		{{"Lfutex_wait", "P__gthread_mutex_lock|std::mutex::lock()", "Pwork", "Pmain"},
		 "work"},
		{{"Lfutex_wait", "Lread|inlined", "Pwork"}, "work"},
		{{"Lsyscall", "P<std::sys::sync::mutex::futex::Mutex>::lock_contended",
		  "Pstd::sync::poison::mutex::Mutex<T>::lock|app::take"},
		 "app::take"},
		{{"Lsyscall", "P<std::sys::sync::mutex::futex::Mutex>::wake",
		  "P<std::sync::poison::mutex::MutexGuard<T> as core::ops::drop::Drop>::drop",
		  "Pcore::ptr::drop_in_place<std::sync::poison::mutex::MutexGuard<u64>>",
		  "Papp::give"},
		 "app::give"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_waiter(cases[i].stack, cases[i].want);
}

int main(void)
{
	RUN(test_growth);
	RUN(test_wakeups);
	RUN(test_by_chance);
	RUN(test_longest);
	RUN(test_who_waits);
	return 0;
}
