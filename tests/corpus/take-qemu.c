/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corpus's recorder for programs of aarch64, on any host: CMD is qemu-aarch64 with its options
 * and the program. It runs to the address begin (relative to where the program begins), and is
 * stepped from there until that function returns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/corpus/take.h"
#include "tests/emulated/qemu.h"
#include "util/clock.h"

static struct qemu qemu;

int take_read_maps(struct take *t, pid_t pid, char **ret)
{
	_cleanup_free_ char *files = qemu_maps(&qemu);
	struct qemu_vdso vdso;

	if (!files || !*files)
		return -EIO;
	if (!qemu_find_vdso(&qemu, &vdso)) { /* not before the program runs */
		*ret = TAKE_PTR(files);
		return 0;
	}
	t->vdso = vdso.image;
	t->n_vdso = vdso.n;
	if (asprintf(ret, "%s%" PRIx64 "-%" PRIx64 " r-xp %" PRIx64 " 00:00 0 [vdso]\n", files,
		     vdso.start, vdso.end, vdso.offset) < 0)
		return -ENOMEM;
	return 0;
}

static int run_to_begin(struct take *t)
{
	_cleanup_free_ char *maps = qemu_maps(&qemu);
	uint64_t start;

	/* Before the program runs, its first mapping is that of its file. */
	if (!maps || sscanf(maps, "%" SCNx64, &start) != 1)
		return -EIO;
	return qemu_run_to(&qemu, start + t->begin) ? 0 : -ESRCH;
}

static int step_through(struct take *t)
{
	static uint8_t stack[TAKE_STACK_BYTES];
	uint64_t end_ns = clock_monotonic_ns() + TAKE_MAX_TIME_S * NSEC_PER_SEC;
	struct proc_sample now, first = {.n_stack = 0};

	while (t->steps < TAKE_MAX_STEPS && clock_monotonic_ns() < end_ns) {
		const uint64_t *r = now.regs.r;

		if (qemu_sample_take(&qemu, &now, stack, sizeof(stack)) < 0)
			return -EIO;
		if (t->steps++ == 0)
			first = now;
		if (r[ARCH_REG_PC] == first.regs.r[ARCH_REG_LR] &&
		    r[ARCH_REG_SP] >= first.regs.r[ARCH_REG_SP])
			break;
		take_look(t, qemu.pid, &now);
		if (!qemu_step(&qemu))
			break;
	}
	return 0;
}

int take_run(struct take *t, char **argv)
{
	int e = qemu_start(&qemu, argv[0], (const char *const *)argv + 1);

	if (e == 0)
		e = run_to_begin(t);
	if (e == 0)
		e = step_through(t);
	qemu_end(&qemu);
	return e;
}
