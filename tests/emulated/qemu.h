/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program of another processor under qemu's user emulation, driven through qemu's GDB stub (GDB
 * remote serial protocol; linux-user/main.c -g) one instruction at a time.
 */
#include <sys/types.h>

#include "tests/unit/unwind-proc.h"

struct qemu {
	pid_t pid;
	int fd;
	char dir[64];	 /* of the stub's socket */
	char thread[32]; /* that stopped, as the stub names it */
	int signal;	 /* to be delivered with the next step; the stub's numbers */
	char in[8192];
	size_t n_in;
};

/* emulator: path of qemu-aarch64; argv: its options and the program. 0 or -errno. */
int qemu_start(struct qemu *q, const char *emulator, const char *const argv[]);
/* Runs to an address of code. false: the program has ended. */
bool qemu_run_to(struct qemu *q, uint64_t addr);
/* One instruction. false: the program has ended. */
bool qemu_step(struct qemu *q);
/*
 * Stops all threads but the one that has stopped, until the end; how many, or -1. For programs
 * with a thread that watches how long the others take, which is longer when they are stepped.
 */
int qemu_hold_others(const struct qemu *q);
/* Registers and up to n bytes of stack. 0 or -errno. */
int qemu_sample_take(struct qemu *q, struct proc_sample *ret, uint8_t *stack, size_t n);
/* Memory of the program; how many bytes could be read. */
size_t qemu_read(struct qemu *q, uint64_t addr, void *ret, size_t n);
/*
 * The program's mappings as /proc/PID/maps would show them on its own machine: qemu's host
 * mappings of ELF files of that machine (guest addresses are host addresses), with their own
 * permissions. malloc'ed.
 */
char *qemu_maps(const struct qemu *q);
/*
 * qemu's trampoline for signal handlers, as the vdso that a kernel would have: an ELF image, of
 * which offset is mapped at [start, end). false: the program has none (yet).
 */
struct qemu_vdso {
	const uint8_t *image;
	size_t n;
	uint64_t start, end, offset;
};
bool qemu_find_vdso(const struct qemu *q, struct qemu_vdso *ret);
void qemu_end(struct qemu *q);
