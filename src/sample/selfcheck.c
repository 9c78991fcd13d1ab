/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of ourselves, some 12 ms long, a few times that where samples come slowly, that
 * answers two questions no version number answers.
 *
 * Does the event fire? Virtual machines exist that let a cycles event be opened and never raise
 * its interrupt.
 *
 * Which user registers are right in a sample taken inside the kernel? A system call on an old
 * kernel does not save all of them: what a sample then shows is -1 (4.x), or whatever stood in that
 * place of the kernel's stack, without a mark (3.10). So registers are set to known values around
 * short system calls, and a register that was wrong once is not trusted in such samples again. Up
 * to 4.0 the stack pointer of a system call is what the last interrupt of the thread has left
 * there, mostly the right one by chance: so between the calls the loop is somewhere else with its
 * stack.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "src/sample/event.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define CHECK_RATE_HZ	     10000
#define CHECK_CPU_NS	     (12 * NSEC_PER_MSEC)
#define CHECK_WALL_NS	     (300 * NSEC_PER_MSEC)
#define CHECK_ROUNDS	     8
#define CHECK_RING_BYTES     UINT64_C(65536)
#define CHECK_KERNEL_SAMPLES 20 /* fewer prove nothing */

#ifdef __x86_64__
#include <asm/perf_regs.h>

#define BIT(reg)  (UINT64_C(1) << PERF_REG_X86_##reg)
#define KNOWN(n)  (UINT64_C(0x5ca1ab1e00) + (n))
#define KNOWN_ASM "0x5ca1ab1e"

/* Offsets are used in the assembly below. */
struct known {
	uint64_t n_calls, sp, begin, end;
};

/* What the loop below puts into each register. */
static const struct {
	uint32_t reg;
	uint64_t value;
} known_registers[] = {
	{PERF_REG_X86_BX, KNOWN(0x01)},	 {PERF_REG_X86_BP, KNOWN(0x02)},
	{PERF_REG_X86_R12, KNOWN(0x03)}, {PERF_REG_X86_R13, KNOWN(0x04)},
	{PERF_REG_X86_R14, KNOWN(0x05)}, {PERF_REG_X86_R15, KNOWN(0x06)},
	{PERF_REG_X86_SI, KNOWN(0x07)},	 {PERF_REG_X86_DX, KNOWN(0x08)},
	{PERF_REG_X86_R8, KNOWN(0x09)},	 {PERF_REG_X86_R9, KNOWN(0x0a)},
	{PERF_REG_X86_R10, KNOWN(0x0b)},
};

/* n_calls short system calls (getppid: no argument, no cost) with known registers; before each some
 * time with another stack pointer, about as long as a call. */
static __attribute__((noinline)) void run_known(struct known *k)
{
	__asm__ volatile("sub $128, %%rsp\n\t" /* leave the red zone alone */
			 "push %%rbx\n\tpush %%rbp\n\tpush %%r12\n\tpush %%r13\n\t"
			 "push %%r14\n\tpush %%r15\n\t"
			 "movabs $" KNOWN_ASM "01, %%rbx\n\tmovabs $" KNOWN_ASM "02, %%rbp\n\t"
			 "movabs $" KNOWN_ASM "03, %%r12\n\tmovabs $" KNOWN_ASM "04, %%r13\n\t"
			 "movabs $" KNOWN_ASM "05, %%r14\n\tmovabs $" KNOWN_ASM "06, %%r15\n\t"
			 "movabs $" KNOWN_ASM "07, %%rsi\n\tmovabs $" KNOWN_ASM "08, %%rdx\n\t"
			 "movabs $" KNOWN_ASM "09, %%r8\n\tmovabs $" KNOWN_ASM "0a, %%r9\n\t"
			 "movabs $" KNOWN_ASM "0b, %%r10\n\t"
			 "mov %%rsp, 8(%%rdi)\n\t"
			 "lea 1f(%%rip), %%rax\n\tmov %%rax, 16(%%rdi)\n\t"
			 "lea 2f(%%rip), %%rax\n\tmov %%rax, 24(%%rdi)\n"
			 "3:\tlea -1024(%%rsp), %%rsp\n\t"
			 "mov $200, %%eax\n"
			 "4:\tsub $1, %%eax\n\t"
			 "jnz 4b\n\t"
			 "lea 1024(%%rsp), %%rsp\n"
			 "1:\tmov %[call], %%eax\n\t"
			 "syscall\n"
			 "2:\tsubq $1, (%%rdi)\n\t"
			 "jnz 3b\n\t"
			 "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\t"
			 "pop %%rbp\n\tpop %%rbx\n\t"
			 "add $128, %%rsp\n\t"
			 :
			 : "D"(k), [call] "i"(SYS_getppid)
			 : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static uint64_t register_value(uint64_t mask, const uint64_t *regs, uint32_t reg)
{
	return regs[__builtin_popcountll(mask & ((UINT64_C(1) << reg) - 1))];
}

/* Clears in *valid what this sample shows wrongly. false: not taken inside the loop's calls. */
static bool judge_sample(const struct known *k, uint64_t mask, const struct record *r,
			 uint64_t *valid)
{
	const uint64_t *regs = r->sample.user_regs;
	uint64_t ip;

	if (!r->sample.in_kernel || !regs || !(mask & BIT(IP)))
		return false;
	/* Of a call it is what the call returns to. */
	ip = register_value(mask, regs, PERF_REG_X86_IP);
	if (ip <= k->begin || ip > k->end)
		return false;
	if ((mask & BIT(SP)) && register_value(mask, regs, PERF_REG_X86_SP) != k->sp)
		*valid &= ~BIT(SP);
	for (size_t i = 0; i < ARRAY_SIZE(known_registers); i++) {
		uint32_t reg = known_registers[i].reg;

		if ((mask & (UINT64_C(1) << reg)) &&
		    register_value(mask, regs, reg) != known_registers[i].value)
			*valid &= ~(UINT64_C(1) << reg);
	}
	return true;
}

/* Checked registers; rax, rcx, r11 and the flags are the system call's own, never the task's. */
static uint64_t checkable(void)
{
	uint64_t valid = BIT(IP) | BIT(SP) | BIT(DI);

	for (size_t i = 0; i < ARRAY_SIZE(known_registers); i++)
		valid |= UINT64_C(1) << known_registers[i].reg;
	return valid;
}

#define UNPROVED (BIT(IP) | BIT(SP))
#else
/* Other architectures save every register at each entry (arm64: kernel_entry). */
struct known {
	uint64_t n_calls;
};

static void run_known(struct known *k)
{
	for (; k->n_calls; k->n_calls--)
		(void)syscall(SYS_getppid);
}

static bool judge_sample(const struct known *k, uint64_t mask, const struct record *r,
			 uint64_t *valid)
{
	return r->sample.in_kernel;
}

static uint64_t checkable(void)
{
	return UINT64_MAX;
}

#define UNPROVED UINT64_MAX
#endif

static void run_for_a_while(struct known *k)
{
	uint64_t cpu = clock_get_ns(CLOCK_THREAD_CPUTIME_ID), wall = clock_monotonic_ns();

	do {
		k->n_calls = 1000;
		run_known(k);
	} while (clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - cpu < CHECK_CPU_NS &&
		 clock_monotonic_ns() - wall < CHECK_WALL_NS);
}

static int judge_ring(const struct ring *ring, const struct record_layout *layout,
		      const struct known *k, uint64_t *ret_regs, int *ret_n_judged)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), at = 0;
	uint64_t valid = checkable();
	int n_samples = 0, n_judged = 0;

	/* The ring was new and nobody moved its tail: no record wraps. */
	while (at + sizeof(struct perf_event_header) <= head && head <= ring->data_bytes) {
		const struct perf_event_header *h = (const void *)(ring->data + at);
		struct record r;

		if (h->size < sizeof(*h) || h->size > head - at)
			break;
		if (record_decode(layout, h, h->size, &r) && r.type == RECORD_SAMPLE) {
			n_samples++;
			n_judged += judge_sample(k, layout->regs_mask, &r, &valid);
		}
		at += h->size;
	}
	if (n_judged)
		*ret_regs = n_judged >= CHECK_KERNEL_SAMPLES ? valid : valid & UNPROVED;
	*ret_n_judged = n_judged;
	return n_samples;
}

/*
 * Samples come slowly where the kernel has lowered the rate it allows, and where timers are coarse
 * as in emulated machines: then one round has too few to trust a register.
 */
static int record_and_judge(int fd, const struct ring *ring, const struct record_layout *layout,
			    uint64_t *ret_regs)
{
	uint64_t begin = clock_monotonic_ns();
	struct known known = {0};
	int r = 0, n_judged = 0;

	for (int i = 0; i < CHECK_ROUNDS && n_judged < CHECK_KERNEL_SAMPLES &&
			clock_monotonic_ns() - begin < CHECK_WALL_NS;
	     i++) {
		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			return -errno;
		run_for_a_while(&known);
		(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		r = judge_ring(ring, layout, &known, ret_regs, &n_judged);
	}
	return r;
}

int event_self_check(const struct sample_options *options, const struct sample_features *features,
		     uint64_t *ret_regs)
{
	struct sample_options o = *options;
	struct sample_features f = *features;
	struct record_layout layout;
	struct perf_event_attr attr;
	uint64_t bytes = CHECK_RING_BYTES;
	struct ring ring;
	int r;

	o.rate_hz = CHECK_RATE_HZ;
	o.period = 0;
	o.stack_bytes = 0;
	o.kernel_stacks = o.only_user = o.only_kernel = o.by_cgroup = false;
	f.frame_pointers = false;
	event_sample_attr(&o, &f, -1, &attr);
	event_layout(&o, &f, false, &layout);

	_cleanup_close_ int fd = event_open(&attr, 0, -1, features->cloexec);
	if (fd < 0)
		return fd;
	r = ring_map(&ring, fd, &bytes, true);
	if (r < 0)
		return r;
	r = record_and_judge(fd, &ring, &layout, ret_regs);
	ring_unmap(&ring);
	return r;
}
