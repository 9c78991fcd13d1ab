/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation library, which programs preload. It intercepts malloc() and related functions and
 * picks blocks: each allocated byte has the same chance to pick its block, one in mean on average.
 * For a picked block it calls a marker, on which a profiler can set a probe; without a probe that
 * costs nothing. Each thread counts down the bytes to its next pick, drawn from the exponential
 * distribution. So size and mean give the probability that a block is picked, and the number of
 * blocks and bytes that it represents: 1 / (1 - exp(-size / mean)) times its own.
 *
 * A table holds the picked blocks, so that their end is reported, too. A free() reads one byte of a
 * filter, which is 0 for nearly all blocks. The table needs no lock and no fork handler: each step
 * is one atomic instruction, and a child has the same table as its parent.
 *
 * The library links nothing of a C library, so that one file serves glibc and musl. It has no
 * thread, no descriptor and no constructor, and allocates nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/arch.h"

#define PUBLIC	    __attribute__((visibility("default")))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define DEFAULT_MEAN (UINT64_C(512) << 10)
#define MIN_MEAN     (UINT64_C(4) << 10)
#define MAX_MEAN     (UINT64_C(1) << 30)
#define N_BUCKETS    16384
#define N_PLACES     8 /* of a bucket: a line of the cache */
#define ARENA_BYTES  16384
#define ALIGN	     16

/* Weak: a C library may not have them, and a static program has none. */
extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern char **environ __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));
/* glibc before 2.34 has dlsym() in a library that a program need not have. */
extern void *__libc_malloc(size_t n) __attribute__((weak));
extern void *__libc_calloc(size_t n, size_t size) __attribute__((weak));
extern void *__libc_realloc(void *p, size_t n) __attribute__((weak));
extern void *__libc_memalign(size_t align, size_t n) __attribute__((weak));
extern void __libc_free(void *p) __attribute__((weak));

/* ---- The intercepted functions ---- */

static void *first_malloc(size_t n);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t n);
static void first_free(void *p);

/* At the first call these find the real functions. */
static void *(*next_malloc)(size_t n) = first_malloc;
static void *(*next_calloc)(size_t n, size_t size) = first_calloc;
static void *(*next_realloc)(void *p, size_t n) = first_realloc;
static void (*next_free)(void *p) = first_free;
static int (*next_posix_memalign)(void **ret, size_t align, size_t n);
static void *(*next_aligned_alloc)(size_t align, size_t n);
static void *(*next_memalign)(size_t align, size_t n);
static void *(*next_valloc)(size_t n);

static uint64_t mean = DEFAULT_MEAN;
static uint64_t seed; /* the same picks in each run, for tests; 0: other ones */

enum { FINDING = 1, FOUND = 2 };
static int state;

/* For allocations by dlsym() itself, which are never freed. */
static char arena[ARENA_BYTES] __attribute__((aligned(ALIGN)));
static size_t n_arena;

static bool in_arena(const void *p)
{
	return (uintptr_t)p - (uintptr_t)arena < sizeof(arena);
}

static void *arena_take(size_t n)
{
	size_t bytes = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1), at;

	if (bytes < n || bytes > sizeof(arena))
		return NULL;
	at = __atomic_fetch_add(&n_arena, bytes, __ATOMIC_RELAXED);
	return at <= sizeof(arena) - bytes ? arena + at : NULL;
}

static bool same(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

/* "NAME=524288", n bytes of it before the number; what makes no sense is ignored. */
static void read_number(const char *name, size_t n, uint64_t min, uint64_t *ret)
{
	uint64_t v = 0;

	for (char **e = &environ ? environ : NULL; e && *e; e++) {
		const char *p = *e + n;

		if (!same(*e, name, n))
			continue;
		for (; *p >= '0' && *p <= '9' && v < MAX_MEAN; p++)
			v = 10 * v + (uint64_t)(*p - '0');
		if (!*p && v >= min && v <= MAX_MEAN)
			*ret = v;
		return;
	}
}

static void read_environment(void)
{
	static const char bytes[] = "PERFWALK_ALLOC_BYTES=", picks[] = "PERFWALK_ALLOC_SEED=";

	read_number(bytes, sizeof(bytes) - 1, MIN_MEAN, &mean);
	read_number(picks, sizeof(picks) - 1, 1, &seed);
}

/* The next function of that name after this library; NULL: none. */
static void *find(const char *name)
{
	void *volatile found = dlsym ? dlsym((void *)-1L, name) : NULL;

	return found;
}

static void find_all(void)
{
	int before = 0;
	void *f;

	if (!__atomic_compare_exchange_n(&state, &before, FINDING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	read_environment();
	next_posix_memalign = (int (*)(void **, size_t, size_t))find("posix_memalign");
	next_aligned_alloc = (void *(*)(size_t, size_t))find("aligned_alloc");
	next_memalign = (void *(*)(size_t, size_t))find("memalign");
	next_valloc = (void *(*)(size_t))find("valloc");
	f = find("realloc");
	next_realloc = f ? (void *(*)(void *, size_t))f : __libc_realloc;
	f = find("calloc");
	next_calloc = f ? (void *(*)(size_t, size_t))f : __libc_calloc;
	f = find("free");
	next_free = f ? (void (*)(void *))f : __libc_free;
	if (!next_memalign)
		next_memalign = __libc_memalign;
	f = find("malloc");
	next_malloc = f ? (void *(*)(size_t))f : __libc_malloc;
	__atomic_store_n(&state, FOUND, __ATOMIC_RELEASE);
}

static bool is_found(void)
{
	find_all();
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == FOUND;
}

static void *first_malloc(size_t n)
{
	return is_found() ? next_malloc(n) : arena_take(n);
}

static void *first_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (is_found())
		return next_calloc(n, size);
	/* What it gives is 0 still: nothing of it is given twice. */
	return __builtin_mul_overflow(n, size, &bytes) ? NULL : arena_take(bytes);
}

static void *first_realloc(void *p, size_t n)
{
	if (is_found())
		return next_realloc(p, n);
	return p ? NULL : arena_take(n);
}

static void first_free(void *p)
{
	if (is_found())
		next_free(p);
}

/* ---- Blocks that were picked ---- */

static uint8_t filter[N_BUCKETS]; /* how many are in the bucket */
static uintptr_t table[N_BUCKETS][N_PLACES] __attribute__((aligned(64)));

static uint32_t bucket_of(const void *p)
{
	return (uint32_t)(((uint64_t)(uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15)) >> 50);
}

/* Adds a block to the table; false: its bucket is full. */
static bool track(const void *p)
{
	uint32_t b = bucket_of(p);

	(void)__atomic_fetch_add(&filter[b], 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < N_PLACES; i++) {
		uintptr_t empty = 0;

		if (__atomic_compare_exchange_n(&table[b][i], &empty, (uintptr_t)p, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return true;
	}
	(void)__atomic_fetch_sub(&filter[b], 1, __ATOMIC_RELAXED);
	return false;
}

/* Removes a block from the table before it is freed, when no other block can have its address.
 * false: it was not there. */
__attribute__((noinline)) static bool forget(const void *p)
{
	uint32_t b = bucket_of(p);

	for (uint32_t i = 0; i < N_PLACES; i++) {
		uintptr_t place = (uintptr_t)p;

		if (!__atomic_compare_exchange_n(&table[b][i], &place, 0, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		(void)__atomic_fetch_sub(&filter[b], 1, __ATOMIC_RELAXED);
		perfwalk_free_sample(p, 0);
		return true;
	}
	return false;
}

static inline bool ends(const void *p)
{
	return unlikely(__atomic_load_n(&filter[bucket_of(p)], __ATOMIC_RELAXED)) && forget(p);
}

/* The block was not freed after all. If the table has no room for it now, it stays reported as
 * freed. */
__attribute__((noinline)) static void goes_on(const void *p)
{
	if (track(p))
		perfwalk_free_sample(p, 1);
	__asm__ volatile("");
}

/* ---- Picking ---- */

struct thread {
	uint64_t left; /* bytes until the next pick; 0: none was drawn yet */
	uint64_t random;
};
static __thread struct thread self __attribute__((tls_model("initial-exec")));

/* xorshift64*; each draw mixes in the time, so that a child draws other numbers than its parent. */
static uint64_t draw_bits(struct thread *t)
{
	uint64_t other = seed ? seed : arch_cycles() ^ (uintptr_t)t;
	uint64_t x = t->random ^ other * UINT64_C(0xd1342543de82ef95);

	x += !x;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	t->random = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* -ln of u / 2^53, u from 1 to 2^53. There is no libm here: u = m * 2^e with m from 1 to 2, and
 * ln m = 2 atanh((m - 1) / (m + 1)). */
static double minus_ln(uint64_t u)
{
	int e = 63 - __builtin_clzll(u);
	double m = (double)u / (double)(UINT64_C(1) << e), s = (m - 1) / (m + 1), q = s * s;
	double sum = 1.0 / 15;

	for (int n = 13; n > 0; n -= 2)
		sum = sum * q + 1.0 / n;
	return (53 - e) * 0.69314718055994530942 - 2 * s * sum;
}

static uint64_t draw(struct thread *t)
{
	return 1 + (uint64_t)(minus_ln((draw_bits(t) >> 11) + 1) * (double)mean);
}

/* Called when n is not below self.left. true: this block is picked. */
__attribute__((noinline)) static bool pick(size_t n)
{
	bool first = self.left == 0, picked;

	if (first) {
		(void)is_found(); /* and with it the mean that the user wants */
		self.left = draw(&self);
	}
	picked = n >= self.left;
	if (picked)
		self.left = draw(&self);
	else
		self.left -= n;
	return picked;
}

__attribute__((noinline)) static void tell(void *p, size_t n)
{
	if (p && !in_arena(p))
		perfwalk_alloc_sample(p, n, mean, track(p) ? (uintptr_t)table : 0);
	/* Prevents a tail call to the marker, so that a stack walk finds this function. */
	__asm__ volatile("");
}

/* Compares before it subtracts, because n may be any number. */
static inline bool is_picked(size_t n)
{
	uint64_t left = self.left;

	if (likely(n < left)) {
		self.left = left - n;
		return false;
	}
	return pick(n);
}

/* musl's functions call each other by these names; while picking is paused, such an inner call does
 * not count the block again. Returns the value for resume_picking(). */
static inline uint64_t pause_picking(void)
{
	uint64_t left = self.left;

	self.left = UINT64_MAX;
	return left;
}

static inline void resume_picking(uint64_t left)
{
	self.left = left;
}

/* ---- The functions that programs call ---- */

PUBLIC void *malloc(size_t n)
{
	void *p;

	if (likely(!is_picked(n)))
		return next_malloc(n);
	p = next_malloc(n);
	tell(p, n);
	return p;
}

PUBLIC void free(void *p)
{
	if (unlikely(in_arena(p)))
		return;
	(void)ends(p);
	next_free(p);
}

PUBLIC void *calloc(size_t n, size_t size)
{
	size_t bytes;
	bool picked = !__builtin_mul_overflow(n, size, &bytes) && is_picked(bytes);
	uint64_t left = pause_picking();
	void *p = next_calloc(n, size);

	resume_picking(left);
	if (unlikely(picked))
		tell(p, bytes);
	return p;
}

/* realloc() of a block of the arena: the new block is always another one. */
static void *leave_arena(const char *p, size_t n)
{
	size_t most = (size_t)(arena + sizeof(arena) - p);
	char *copy = next_malloc(n);

	for (size_t i = 0; copy && i < n && i < most; i++)
		((volatile char *)copy)[i] = p[i];
	return copy;
}

/* realloc() of a block that was perhaps tracked, to one that is perhaps picked. */
static inline void *realloc_told(void *p, size_t n, bool tracked, bool picked)
{
	uint64_t left = pause_picking();
	void *moved = next_realloc(p, n);

	resume_picking(left);
	/* With no bytes it frees the block or fails, depending on the C library; we assume the
	 * first. */
	if (tracked && !moved && n)
		goes_on(p);
	if (picked)
		tell(moved, n);
	return moved;
}

/* Frees one block and allocates another. */
PUBLIC void *realloc(void *p, size_t n)
{
	bool tracked;

	if (unlikely(p && in_arena(p)))
		return leave_arena(p, n);
	tracked = p && ends(p);
	return realloc_told(p, n, tracked, is_picked(n));
}

static void fail(int error)
{
	if (__errno_location)
		*__errno_location() = error;
}

#define OUT_OF_MEMORY 12 /* ENOMEM and EINVAL on Linux */
#define INVALID	      22

PUBLIC void *reallocarray(void *p, size_t n, size_t size);
PUBLIC void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		fail(OUT_OF_MEMORY);
		return NULL;
	}
	return realloc(p, bytes);
}

PUBLIC int posix_memalign(void **ret, size_t align, size_t n);
PUBLIC int posix_memalign(void **ret, size_t align, size_t n)
{
	bool picked = is_picked(n);
	uint64_t left = pause_picking();
	int r = is_found() && next_posix_memalign ? next_posix_memalign(ret, align, n)
						  : OUT_OF_MEMORY;

	resume_picking(left);
	if (picked && r == 0)
		tell(*ret, n);
	return r;
}

static void *aligned(void *(*next)(size_t align, size_t n), size_t align, size_t n)
{
	bool picked = is_picked(n);
	uint64_t left = pause_picking();
	void *p = next ? next(align, n) : NULL;

	resume_picking(left);
	if (!next)
		fail(INVALID);
	if (picked)
		tell(p, n);
	return p;
}

PUBLIC void *aligned_alloc(size_t align, size_t n);
PUBLIC void *aligned_alloc(size_t align, size_t n)
{
	return aligned(is_found() ? next_aligned_alloc : NULL, align, n);
}

PUBLIC void *memalign(size_t align, size_t n);
PUBLIC void *memalign(size_t align, size_t n)
{
	return aligned(is_found() ? next_memalign : NULL, align, n);
}

PUBLIC void *valloc(size_t n);
PUBLIC void *valloc(size_t n)
{
	bool picked = is_picked(n);
	uint64_t left = pause_picking();
	void *p = is_found() && next_valloc ? next_valloc(n) : NULL;

	resume_picking(left);
	if (picked)
		tell(p, n);
	return p;
}
