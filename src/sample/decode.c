/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record is a header {type, misc, size} and a body; the event's attributes define its layout.
 * With sample_id_all every record but a sample ends with a trailer: the thread, the time, the CPU.
 *
 * Records come from the kernel, or from a file of unknown origin: every count in a record is
 * checked against the record's size, and nothing outside of its bytes is read.
 */
#include <string.h>
#include <sys/mman.h>

#include "src/sample/decode.h"
#include "util/cursor.h"

/* The sample_type bits that appear in the trailer, each as one 64-bit word, in this order. */
static const uint64_t trailer_bits[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
};

static size_t trailer_size(const struct record_layout *l)
{
	size_t n = 0;

	for (size_t i = 0; l->sample_id_all && i < sizeof(trailer_bits) / sizeof(trailer_bits[0]);
	     i++)
		n += l->sample_type & trailer_bits[i] ? 8 : 0;
	return n;
}

size_t record_time_offset(const struct record_layout *l, uint32_t type, size_t n)
{
	size_t at = sizeof(struct perf_event_header), trailer;

	if (!(l->sample_type & PERF_SAMPLE_TIME))
		return 0;
	if (type == PERF_RECORD_SAMPLE)
		at += (l->sample_type & PERF_SAMPLE_IDENTIFIER ? 8 : 0) +
		      (l->sample_type & PERF_SAMPLE_IP ? 8 : 0);
	else if ((trailer = trailer_size(l)) && n >= at + trailer)
		at = n - trailer;
	else
		return 0;
	at += l->sample_type & PERF_SAMPLE_TID ? 8 : 0;
	return at + 8 <= n ? at : 0;
}

static void read_tid(struct cursor *c, struct record *r)
{
	r->pid = cursor_u32(c);
	r->tid = cursor_u32(c);
}

static void read_cpu(struct cursor *c, struct record *r)
{
	r->cpu = cursor_u32(c);
	(void)cursor_u32(c);
}

static void skip_word_if(struct cursor *c, uint64_t present)
{
	if (present)
		(void)cursor_u64(c);
}

static void read_trailer(const struct record_layout *l, struct cursor *c, struct record *r)
{
	if (!l->sample_id_all)
		return;
	if (l->sample_type & PERF_SAMPLE_TID)
		read_tid(c, r);
	if (l->sample_type & PERF_SAMPLE_TIME)
		r->time_ns = cursor_u64(c);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_ID);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_STREAM_ID);
	if (l->sample_type & PERF_SAMPLE_CPU)
		read_cpu(c, r);
}

/* n items of size bytes, or the cursor's error. */
static const void *take_items(struct cursor *c, uint64_t n, size_t size)
{
	if (n > cursor_left(c) / size) {
		c->failed = true;
		return NULL;
	}
	return cursor_take(c, (size_t)n * size);
}

/*
 * Only the values of a group add anything to the sample, and only if ids say which event each value
 * belongs to.
 */
static void read_values(const struct record_layout *l, struct cursor *c, struct record *r)
{
	const uint64_t wanted = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	uint64_t per_event =
		1 + !!(l->read_format & PERF_FORMAT_ID) + !!(l->read_format & PERF_FORMAT_LOST);
	uint64_t n = 1;
	const uint64_t *values;

	if (l->read_format & PERF_FORMAT_GROUP)
		n = cursor_u64(c);
	skip_word_if(c, l->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED);
	skip_word_if(c, l->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	values = take_items(c, n, (size_t)per_event * 8);
	if (!values || (l->read_format & wanted) != wanted)
		return;
	r->sample.read = values;
	r->sample.n_read = n;
	r->sample.read_words = per_event;
}

static bool is_context_marker(uint64_t address)
{
	return address >= (uint64_t)PERF_CONTEXT_MAX;
}

/* The addresses that follow the marker, in place; NULL: none. */
static const uint64_t *find_run(const uint64_t *chain, uint64_t n, uint64_t marker, uint64_t max,
				uint64_t *ret_n)
{
	uint64_t from = 0, to;

	while (from < n && chain[from] != marker)
		from++;
	if (from == n)
		return NULL;
	for (to = ++from; to < n && !is_context_marker(chain[to]); to++)
		;
	*ret_n = to - from > max ? max : to - from;
	return &chain[from];
}

/*
 * A chain has a marker before the kernel's addresses and one before the user's. User addresses are
 * there only if the kernel was asked to follow frame pointers.
 */
static void read_callchain(struct cursor *c, struct record *r)
{
	uint64_t n = cursor_u64(c);
	const uint64_t *chain = take_items(c, n, 8);

	if (!chain)
		return;
	r->sample.kernel = find_run(chain, n, (uint64_t)PERF_CONTEXT_KERNEL,
				    SAMPLE_MAX_KERNEL_FRAMES, &r->sample.n_kernel);
	r->sample.user_chain = find_run(chain, n, (uint64_t)PERF_CONTEXT_USER, UINT64_MAX,
					&r->sample.n_user_chain);
}

static void read_raw(struct cursor *c, struct record *r)
{
	uint32_t size = cursor_u32(c);

	r->sample.raw = cursor_take(c, size);
	r->sample.n_raw = r->sample.raw ? size : 0;
}

static void skip_branch_stack(const struct record_layout *l, struct cursor *c)
{
	uint64_t n = cursor_u64(c);

	skip_word_if(c, l->branch_type & PERF_SAMPLE_BRANCH_HW_INDEX);
	(void)take_items(c, n, 24);
}

/*
 * Inside the kernel only those registers count that the self-check found right on this kernel. 4.x
 * kernels, and samples by NMI on all kernels, write -1 for a register that was not saved: such a
 * value is never trusted, whatever the self-check found.
 */
static uint64_t valid_registers(const struct record_layout *l, const struct record *r)
{
	uint64_t valid = l->regs_mask, bit;
	const uint64_t *value = r->sample.user_regs;

	if (!r->sample.in_kernel)
		return valid;
	valid &= l->kernel_regs_valid;
	for (uint64_t left = l->regs_mask; left; left &= left - 1, value++) {
		bit = left & -left;
		if (*value == UINT64_MAX)
			valid &= ~bit;
	}
	return valid;
}

static void read_user_regs(const struct record_layout *l, struct cursor *c, struct record *r)
{
	const uint64_t *regs;

	r->sample.user_abi = cursor_u64(c);
	/* Kernel threads have no user side: only the abi is there. */
	if (r->sample.user_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	regs = take_items(c, (uint64_t)__builtin_popcountll(l->regs_mask), 8);
	if (!regs)
		return;
	r->sample.user_regs = regs;
	r->sample.user_regs_valid = valid_registers(l, r);
}

static void read_user_stack(struct cursor *c, struct record *r)
{
	uint64_t size = cursor_u64(c), copied;
	const uint8_t *stack;

	/* Without a stack the word for the copied size is missing. */
	if (!size)
		return;
	stack = take_items(c, size, 1);
	copied = cursor_u64(c);
	if (copied > size)
		c->failed = true;
	if (!cursor_ok(c))
		return;
	r->sample.stack = stack;
	r->sample.n_stack = copied;
	r->sample.max_stack = size;
}

/* Skips the one-word fields between the stack and the cgroup id. */
static void skip_late_fields(const struct record_layout *l, struct cursor *c)
{
	skip_word_if(c, l->sample_type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT));
	skip_word_if(c, l->sample_type & PERF_SAMPLE_DATA_SRC);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_TRANSACTION);
}

static void read_sample_head(const struct record_layout *l, struct cursor *c, struct record *r)
{
	skip_word_if(c, l->sample_type & PERF_SAMPLE_IDENTIFIER);
	if (l->sample_type & PERF_SAMPLE_IP)
		r->sample.ip = cursor_u64(c);
	if (l->sample_type & PERF_SAMPLE_TID)
		read_tid(c, r);
	if (l->sample_type & PERF_SAMPLE_TIME)
		r->time_ns = cursor_u64(c);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_ADDR);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_ID);
	skip_word_if(c, l->sample_type & PERF_SAMPLE_STREAM_ID);
	if (l->sample_type & PERF_SAMPLE_CPU)
		read_cpu(c, r);
	if (l->sample_type & PERF_SAMPLE_PERIOD)
		r->sample.period = cursor_u64(c);
}

static void read_sample(const struct record_layout *l, struct cursor *c, uint16_t misc,
			struct record *r)
{
	r->type = RECORD_SAMPLE;
	r->sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	read_sample_head(l, c, r);
	if (l->sample_type & PERF_SAMPLE_READ)
		read_values(l, c, r);
	if (l->sample_type & PERF_SAMPLE_CALLCHAIN)
		read_callchain(c, r);
	if (l->sample_type & PERF_SAMPLE_RAW)
		read_raw(c, r);
	if (l->sample_type & PERF_SAMPLE_BRANCH_STACK)
		skip_branch_stack(l, c);
	/* Only a record with a wrong RAW size is not aligned here. */
	if ((uintptr_t)c->cur & 7)
		c->failed = true;
	if (l->sample_type & PERF_SAMPLE_REGS_USER)
		read_user_regs(l, c, r);
	if (l->sample_type & PERF_SAMPLE_STACK_USER)
		read_user_stack(c, r);
	skip_late_fields(l, c);
	/* The size of the interrupted registers is unknown, so fields after them are not read. */
	if (l->sample_type & PERF_SAMPLE_REGS_INTR)
		return;
	if (!(l->sample_type & (PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE)))
		return;
	skip_word_if(c, l->sample_type & PERF_SAMPLE_PHYS_ADDR);
	if (l->sample_type & PERF_SAMPLE_CGROUP)
		r->sample.cgroup_id = cursor_u64(c);
	if (l->sample_type & PERF_SAMPLE_DATA_PAGE_SIZE)
		r->sample.page_bytes = cursor_u64(c);
}

static bool read_mmap(struct cursor *c, uint32_t type, uint16_t misc, struct record *r)
{
	bool executable = !(misc & PERF_RECORD_MISC_MMAP_DATA);

	r->type = RECORD_MMAP;
	read_tid(c, r);
	r->mmap.start = cursor_u64(c);
	r->mmap.length = cursor_u64(c);
	r->mmap.file_offset = cursor_u64(c);
	if (type == PERF_RECORD_MMAP2) {
		if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			const uint8_t *id = cursor_take(c, 24);

			if (id && id[0] > 20)
				c->failed = true;
			else if (id && id[0]) {
				r->mmap.n_build_id = id[0];
				r->mmap.build_id = id + 4;
			}
		} else {
			r->mmap.major = cursor_u32(c);
			r->mmap.minor = cursor_u32(c);
			r->mmap.inode = cursor_u64(c);
			r->mmap.generation = cursor_u64(c);
			r->mmap.has_inode = true;
		}
		if (!(cursor_u32(c) & PROT_EXEC))
			executable = false;
		(void)cursor_u32(c);
	}
	r->mmap.path = cursor_string(c);
	if (r->mmap.start + r->mmap.length < r->mmap.start)
		c->failed = true;
	return executable;
}

static void read_task(struct cursor *c, enum record_type type, struct record *r)
{
	r->type = type;
	r->pid = cursor_u32(c);
	r->task.parent_pid = cursor_u32(c);
	r->tid = cursor_u32(c);
	r->task.parent_tid = cursor_u32(c);
	r->time_ns = cursor_u64(c);
}

/* Reads the body of anything but a sample. false: a record that we do not need. */
static bool read_event(const struct record_layout *l, struct cursor *c,
		       const struct perf_event_header *h, struct record *r)
{
	switch (h->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mmap(c, h->type, h->misc, r);
	case PERF_RECORD_COMM:
		r->type = RECORD_COMM;
		read_tid(c, r);
		r->comm.comm = cursor_string(c);
		r->comm.exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
		return true;
	case PERF_RECORD_FORK:
		read_task(c, RECORD_FORK, r);
		return true;
	case PERF_RECORD_EXIT:
		read_task(c, RECORD_EXIT, r);
		return true;
	case PERF_RECORD_CGROUP:
		r->type = RECORD_CGROUP;
		r->cgroup.id = cursor_u64(c);
		r->cgroup.path = cursor_string(c);
		return true;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (!(h->misc & PERF_RECORD_MISC_SWITCH_OUT)) {
			r->type = RECORD_SWITCH_IN;
			return true;
		}
		r->type = RECORD_SWITCH_OUT;
		r->preempted = h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		return l->switches_out;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		r->type = RECORD_LOST;
		if (h->type == PERF_RECORD_LOST)
			(void)cursor_u64(c);
		r->lost = cursor_u64(c);
		return true;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		r->type = RECORD_THROTTLE;
		r->time_ns = cursor_u64(c);
		r->throttle_end = h->type == PERF_RECORD_UNTHROTTLE;
		return true;
	default:
		return false;
	}
}

/* false: nobody wants it. bytes: with their header h. */
static bool decode_event(const struct record_layout *l, const void *bytes, size_t n,
			 const struct perf_event_header *h, struct cursor c, struct record *ret)
{
	size_t trailer = trailer_size(l);
	struct record r = {.type = RECORD_BAD}, id = r;
	struct cursor end;
	bool wanted;

	if (trailer > cursor_left(&c))
		goto bad;
	end = cursor_make((const uint8_t *)bytes + n - trailer, trailer);
	c.end -= trailer;
	read_trailer(l, &end, &id);
	wanted = read_event(l, &c, h, &r);
	if (!cursor_ok(&c))
		goto bad;
	if (!wanted)
		return false;
	/* The body, if anything, says which task the record is about; the trailer has the task that
	 * was running.
	 */
	if (r.type == RECORD_LOST || r.type == RECORD_THROTTLE || r.type == RECORD_CGROUP ||
	    r.type == RECORD_SWITCH_IN || r.type == RECORD_SWITCH_OUT) {
		r.pid = id.pid;
		r.tid = id.tid;
	}
	if (l->sample_id_all && (l->sample_type & PERF_SAMPLE_TIME))
		r.time_ns = id.time_ns;
	r.cpu = id.cpu;
	*ret = r;
	return true;
bad:
	*ret = (struct record){.type = RECORD_BAD};
	return true;
}

/* Apart, so that a switch does not pay for its locals. */
__attribute__((noinline)) static bool decode_any(const struct record_layout *l, const void *bytes,
						 size_t n, struct record *ret)
{
	struct cursor c = cursor_make(bytes, n);
	struct perf_event_header h;
	bool good;

	cursor_read(&c, &h, sizeof(h));
	good = cursor_ok(&c) && h.size == n && ((uintptr_t)bytes & 7) == 0;
	if (good && h.type != PERF_RECORD_SAMPLE)
		return decode_event(l, bytes, n, &h, c, ret);
	*ret = (struct record){.type = RECORD_BAD};
	if (!good)
		return true;
	/* Of these there are many, and a record is large: no copies, and no locals of that size. */
	read_sample(l, &c, h.misc, ret);
	if (!cursor_ok(&c))
		*ret = (struct record){.type = RECORD_BAD};
	return true;
}

static bool is_sample(const void *bytes, size_t n)
{
	const struct perf_event_header *h = bytes;

	return n >= sizeof(*h) && ((uintptr_t)bytes & 7) == 0 && h->type == PERF_RECORD_SAMPLE &&
	       h->size == n;
}

bool record_decode(const struct record_layout *l, const void *bytes, size_t n, struct record *ret)
{
	if (!l->switches.is_used || !is_sample(bytes, n))
		return decode_any(l, bytes, n, ret);
	switch_decode(&l->switches, bytes, n, ret);
	return true;
}
