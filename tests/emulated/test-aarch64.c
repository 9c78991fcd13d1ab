/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every instruction of real aarch64 code, as tests/unit/test-unwind-live.c does it on the host: the
 * program runs under qemu-aarch64 and is stepped through its GDB stub.
 *
 *	test-aarch64 EMULATOR SYSROOT PROGRAM START PART EVERY MAX [alone]
 *
 * START: where the stepping begins, hexadecimal, relative to the begin of the program.
 *
 * Where our frames are not libdw's, the code must show that it is wrong (tests/corpus/judge.h), as
 * with signed return addresses (-mbranch-protection), known to it since 0.191, and with lazy
 * binding, where glibc's CFI of _dl_runtime_resolve leaves out 16 bytes (unwind/compact.c).
 *
 * alone: only that our walks reach the entry is checked. For Go, which has no CFI when it is
 * stripped. Its other threads are stopped: one of them sends a goroutine that runs for 10 ms to the
 * scheduler, which is on a stack of its own, and stepping makes that of any.
 */
#include <limits.h>
#include <stdlib.h>

#include "tests/emulated/qemu.h"
#include "tests/unit/test.h"
#include "tests/unit/unwind-compare.h"

#define STACK_BYTES (32 * 1024)

struct stepper {
	struct qemu q;
	struct proc_modules modules;
	struct unwind_module *vdso;
	struct comparison c;
	char *maps; /* as loaded */
	uint8_t stack[STACK_BYTES];
};

static int compare_mappings(const void *a, const void *b)
{
	const struct proc_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_vdso(struct stepper *s)
{
	struct proc_maps *maps = &s->c.maps;
	struct qemu_vdso vdso;

	CHECK(qemu_find_vdso(&s->q, &vdso));
	if (!s->vdso)
		CHECK_INT(unwind_module_new_memory(&s->vdso, s->c.u, vdso.image, vdso.n, "vdso"),
			  ==, 0);
	maps->items = realloc(maps->items, (maps->n + 1) * sizeof(*maps->items));
	CHECK(maps->items);
	maps->items[maps->n] = (struct proc_mapping){.start = vdso.start,
						     .end = vdso.end,
						     .offset = vdso.offset,
						     .module = s->vdso,
						     .image = vdso.image,
						     .n_image = vdso.n};
	CHECK(unwind_module_bias(s->vdso, vdso.start, vdso.offset, &maps->items[maps->n].bias));
	maps->n++;
	s->c.strange_start = vdso.start;
	s->c.strange_end = vdso.end;
	qsort(maps->items, maps->n, sizeof(*maps->items), compare_mappings);
}

/* The loader maps and unmaps. */
static void reload_maps(struct stepper *s)
{
	_cleanup_free_ char *maps = qemu_maps(&s->q);

	CHECK(maps && *maps);
	if (s->maps && strcmp(s->maps, maps) == 0)
		return;
	free(s->maps);
	s->maps = strdup(maps);
	proc_maps_deinit(&s->c.maps);
	CHECK_INT(proc_maps_load(&s->c.maps, &s->modules, s->q.pid, maps), ==, 0);
	oracle_free(s->c.oracle);
	s->c.oracle = oracle_new_process(s->q.pid, maps);
	add_vdso(s);
}

static unsigned int step_through(struct stepper *s, unsigned int every, unsigned int max_steps)
{
	unsigned int steps;

	for (steps = 0; steps < max_steps && qemu_step(&s->q); steps++) {
		struct proc_sample sample;

		if (steps % every != 0)
			continue;
		CHECK_INT(qemu_sample_take(&s->q, &sample, s->stack, sizeof(s->stack)), ==, 0);
		reload_maps(s);
		compare_sample(&s->c, &sample);
	}
	return steps;
}

int main(int argc, char **argv)
{
	struct stepper *s = calloc(1, sizeof(*s));
	bool alone = argc == 9;
	uint64_t begin;
	struct tally *t = &s->c.t;
	unsigned int steps;

	if (argc < 8) {
		fprintf(stderr, "use: %s EMULATOR SYSROOT PROGRAM START PART EVERY MAX [alone]\n",
			argv[0]);
		return 2;
	}
	CHECK_INT(unwinder_new(&s->c.u, NULL), ==, 0);
	s->modules.u = s->c.u;
	s->c.shown = alone ? UINT_MAX / 2 : 0;
	CHECK_INT(
		qemu_start(&s->q, argv[1],
			   (const char *[]){"-cpu", "max", "-L", argv[2], argv[3], argv[5], NULL}),
		==, 0);
	/* Before the program runs, its first mapping is that of its file. */
	reload_maps(s);
	begin = s->c.maps.items[0].start + strtoull(argv[4], NULL, 16);
	CHECK(qemu_run_to(&s->q, begin));
	if (alone)
		CHECK_INT(qemu_hold_others(&s->q), >, 0);
	steps = step_through(s, (unsigned int)atoi(argv[6]), (unsigned int)atoi(argv[7]));
	comparison_print(&s->c, steps);
	qemu_end(&s->q);
	CHECK_INT(t->samples, >, 200);
	CHECK_INT(t->complete * 1000, >=, t->samples * (alone ? 990 : 1000));
	if (!alone)
		CHECK_INT(t->verdicts[VERDICT_UNDECIDED], ==, 0);
	oracle_free(s->c.oracle);
	proc_maps_deinit(&s->c.maps);
	unwind_module_free(s->vdso);
	proc_modules_deinit(&s->modules);
	unwinder_free(s->c.u);
	free(s->maps);
	free(s);
	return 0;
}
