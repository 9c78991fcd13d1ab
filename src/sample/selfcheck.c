/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records this process for some 12 ms, or a few times that if samples come slowly, to answer two
 * questions that no version number answers.
 *
 * Does the event fire? On some virtual machines a cycles event opens but never raises its
 * interrupt.
 *
 * Which user registers are right in a sample taken inside the kernel? A system call on an old
 * kernel does not save all of them: the sample then has -1 (4.x), or whatever was at that place in
 * the kernel's stack (3.10). So we set registers to known values around short system calls, and do
 * not trust a register in such samples once it was wrong. Up to 4.0 the stack pointer in a system
 * call is the one that the thread's last interrupt saved, which is often right by chance: so the
 * loop uses another stack pointer between the calls.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "src/sample/arch.h"
#include "src/sample/event.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define CHECK_RATE_HZ	     10000
#define CHECK_CPU_NS	     (12 * NSEC_PER_MSEC)
#define CHECK_WALL_NS	     (5 * NSEC_PER_SEC) /* on a host so busy that we get 2% of a CPU */
#define CHECK_ROUNDS	     8
#define CHECK_RING_BYTES     UINT64_C(65536)
#define CHECK_KERNEL_SAMPLES 20 /* fewer prove nothing */

static void run_for_a_while(struct arch_known *k)
{
	uint64_t cpu = clock_get_ns(CLOCK_THREAD_CPUTIME_ID), wall = clock_monotonic_ns();

	do {
		k->n_calls = 1000;
		arch_run_known(k);
	} while (clock_get_ns(CLOCK_THREAD_CPUTIME_ID) - cpu < CHECK_CPU_NS &&
		 clock_monotonic_ns() - wall < CHECK_WALL_NS);
}

static int judge_ring(const struct ring *ring, const struct record_layout *layout,
		      const struct arch_known *k, uint64_t *ret_regs, int *ret_n_judged)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), at = 0;
	uint64_t valid = arch_checkable();
	int n_samples = 0, n_judged = 0;

	/* The ring was new and its tail has not moved, so no record wraps. */
	while (at + sizeof(struct perf_event_header) <= head && head <= ring->data_bytes) {
		const struct perf_event_header *h = (const void *)(ring->data + at);
		struct record r;

		if (h->size < sizeof(*h) || h->size > head - at)
			break;
		if (record_decode(layout, h, h->size, &r) && r.type == RECORD_SAMPLE) {
			n_samples++;
			n_judged += r.sample.in_kernel && r.sample.user_regs &&
				    arch_judge(k, layout->regs_mask, r.sample.user_regs, &valid);
		}
		at += h->size;
	}
	if (n_judged)
		*ret_regs = n_judged >= CHECK_KERNEL_SAMPLES ? valid : valid & arch_unproved();
	*ret_n_judged = n_judged;
	return n_samples;
}

/*
 * Samples come slowly if the kernel has lowered the allowed rate, or if timers are coarse as in
 * emulated machines. Then one round has too few samples to trust a register.
 */
static int record_and_judge(int fd, const struct ring *ring, const struct record_layout *layout,
			    uint64_t *ret_regs)
{
	uint64_t begin = clock_monotonic_ns();
	struct arch_known known = {0};
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
