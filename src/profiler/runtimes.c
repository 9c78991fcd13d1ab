/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/hotspot.h"
#include "src/host/host.h"
#include "src/profiler/runtimes.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/time-share.h"

enum {
	MAX_PROCESSES = 256, /* each has a descriptor open, and up to 2 MiB */
	MAX_RANGES = 16384,
	MAX_MAPS_BYTES = 8 << 20,
	CHUNK_BYTES = 65536,
	/* Of one walk. A deep stack of code never seen takes more: what is learned is kept, and a
	 * later sample of it gets further. */
	MAX_READS = 2000,
	MAX_BYTES = 1 << 20,
	MAX_INLINED = 64,
	SHARE_PERCENT = 5,
	DEAD_AFTER = 64, /* walks in vain */
};
#define MIN_DELAY_NS (100 * NSEC_PER_MSEC)
#define MAX_DELAY_NS (60 * NSEC_PER_SEC)

/* [start, end) may be read. */
struct range {
	uint64_t start, end;
};

struct process_runtime {
	struct runtimes *all;
	uint32_t pid, major, minor;
	uint64_t image;
	int memory; /* -EBADF: not open */
	struct hotspot *hotspot;
	/* When to try again: to open it, and to read its maps. */
	uint64_t next_open_ns, next_maps_ns, open_delay_ns, maps_delay_ns;
	uint32_t n_vain;
	bool hopeless; /* not understood, or not permitted */
	ARRAY(struct range) ranges;
};

struct runtimes {
	struct runtimes_source source;
	uint32_t n_processes;
	struct time_share share;
	bool walking, refused; /* this walk reads; its share is spent */
	/* Of the walk. */
	struct {
		struct hotspot_frame frame;
		uint32_t index;
	} frames[FRAME_SOURCE_MAX_FRAMES];
	uint32_t n, next;
	struct hotspot *hotspot;
	struct runtime_frame answer[MAX_INLINED];
	enum profile_marker marker;
};

int runtimes_new(struct runtimes **ret, const struct runtimes_source *source)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->source = *source;
	r->share.percent = SHARE_PERCENT;
	r->share.save_ns = NSEC_PER_SEC;
	r->marker = PROFILE_N_MARKERS;
	*ret = r;
	return 0;
}

struct runtimes *runtimes_free(struct runtimes *r)
{
	free(r);
	return NULL;
}

bool runtimes_is_library(const char *path)
{
	return hotspot_is_library(path);
}

struct process_runtime *runtimes_add_process(struct runtimes *r, uint32_t pid, uint64_t image,
					     uint32_t major, uint32_t minor)
{
	struct process_runtime *p = NULL;

	if (r->n_processes < MAX_PROCESSES)
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct process_runtime){
		.all = r,
		.pid = pid,
		.major = major,
		.minor = minor,
		.image = image,
		.memory = -EBADF,
		.open_delay_ns = MIN_DELAY_NS,
		.maps_delay_ns = MIN_DELAY_NS,
		.ranges.max = MAX_RANGES,
	};
	r->n_processes++;
	return p;
}

struct process_runtime *runtimes_free_process(struct runtimes *r, struct process_runtime *p)
{
	if (p) {
		if (r->hotspot && r->hotspot == p->hotspot)
			r->n = 0;
		hotspot_free(p->hotspot);
		(void)close_fd(p->memory);
		array_deinit(&p->ranges);
		free(p);
		r->n_processes--;
	}
	return NULL;
}

/* ---- What may be read ---- */

static void add_range(struct process_runtime *p, const struct host_maps_line *l)
{
	struct range *last = p->ranges.n ? &p->ranges.items[p->ranges.n - 1] : NULL;

	if (l->inode != 0 && (l->major != p->major || l->minor != p->minor))
		return;
	/* The kernel's own: devices have a name in brackets, which no memory of a program has. */
	if (l->inode == 0 && strcmp(l->path, "[vvar]") == 0)
		return;
	if (last && last->end == l->start) {
		last->end = l->end;
		return;
	}
	last = array_push(&p->ranges);
	if (last)
		*last = (struct range){l->start, l->end};
}

/* Lines of text, of which the last may be cut off; how many bytes of it are left. */
static size_t add_lines(struct process_runtime *p, char *text, size_t n)
{
	char *line = text, *end = text + n, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		struct host_maps_line l;

		if (host_parse_maps_line(line, (size_t)(newline - line), &l))
			add_range(p, &l);
		line = newline + 1;
	}
	memmove(text, line, (size_t)(end - line));
	return (size_t)(end - line);
}

static void read_maps(struct process_runtime *p)
{
	_cleanup_close_ int fd = p->all->source.open_maps(p->all->source.ctx, p->pid);
	_cleanup_free_ char *text = malloc(CHUNK_BYTES);
	size_t n = 0, total = 0;
	ssize_t got;

	array_clear(&p->ranges);
	if (fd < 0 || !text)
		return;
	while (total < MAX_MAPS_BYTES && n < CHUNK_BYTES &&
	       (got = read(fd, text + n, CHUNK_BYTES - n)) > 0) {
		total += (size_t)got;
		n = add_lines(p, text, n + (size_t)got);
	}
}

static bool find_range(const struct process_runtime *p, uint64_t address, size_t n)
{
	uint32_t low = 0, high = p->ranges.n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->ranges.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->ranges.n && address >= p->ranges.items[low].start &&
	       n <= p->ranges.items[low].end - address;
}

/* New memory is not in what is known: it is read again, with back-off. */
static bool may_read(struct process_runtime *p, uint64_t address, size_t n)
{
	uint64_t now;

	if (find_range(p, address, n))
		return true;
	now = clock_monotonic_ns();
	if (now < p->next_maps_ns)
		return false;
	read_maps(p);
	if (find_range(p, address, n))
		p->maps_delay_ns = MIN_DELAY_NS;
	else if (p->maps_delay_ns < MAX_DELAY_NS)
		p->maps_delay_ns *= 2;
	p->next_maps_ns = now + p->maps_delay_ns;
	return find_range(p, address, n);
}

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct process_runtime *p = ctx;

	return address <= INT64_MAX && may_read(p, address, n) &&
	       pread(p->memory, ret, n, (off_t)address) == (ssize_t)n;
}

/* ---- Processes ---- */

static void give_up(struct process_runtime *p, const char *why)
{
	p->hopeless = true;
	p->memory = close_fd(p->memory);
	log_debug("process %u: its Java frames are not read: %s", p->pid, why);
}

static bool is_open(struct process_runtime *p)
{
	const struct memory memory = {.read = read_memory, .ctx = p};
	uint64_t now;
	const char *why;
	int r;

	if (p->hotspot || p->hopeless)
		return p->hotspot != NULL;
	now = clock_monotonic_ns();
	if (now < p->next_open_ns)
		return false;
	p->next_open_ns = now + p->open_delay_ns;
	if (p->open_delay_ns < MAX_DELAY_NS)
		p->open_delay_ns *= 2;
	if (p->memory < 0)
		p->memory = p->all->source.open_memory(p->all->source.ctx, p->pid);
	if (p->memory < 0) {
		if (p->memory == -EPERM || p->memory == -EACCES)
			give_up(p, "its memory may not be read");
		return false;
	}
	r = hotspot_new(&p->hotspot, &memory, p->image, &why);
	if (r == -ENOTSUP)
		give_up(p, why);
	else if (r == 0)
		log_debug("process %u: HotSpot %s%s", p->pid, hotspot_release(p->hotspot),
			  hotspot_is_tried(p->hotspot) ? "" : ", an untested version");
	return r == 0;
}

/* The process is another program by now: it does without until it is looked at anew. */
static void count_vain(struct process_runtime *p)
{
	if (++p->n_vain < DEAD_AFTER)
		return;
	p->n_vain = 0;
	p->hotspot = hotspot_free(p->hotspot);
	p->memory = close_fd(p->memory);
	p->next_maps_ns = 0;
	p->next_open_ns = clock_monotonic_ns() + p->open_delay_ns;
}

/* ---- The walk ---- */

void runtimes_begin(struct runtimes *r)
{
	r->n = r->next = 0;
	r->hotspot = NULL;
	r->refused = false;
	r->marker = PROFILE_N_MARKERS;
}

void runtimes_end(struct runtimes *r)
{
	if (r->walking)
		time_share_end(&r->share, clock_monotonic_ns());
	r->walking = false;
}

/* False: this walk must do without. */
static bool may_walk(struct runtimes *r, struct process_runtime *p)
{
	if (r->walking)
		return true;
	if (r->refused || !time_share_begin(&r->share, clock_monotonic_ns())) {
		r->refused = true;
		return false;
	}
	r->walking = true;
	if (p->hotspot)
		hotspot_begin(p->hotspot, MAX_READS, MAX_BYTES);
	return true;
}

static void keep(struct runtimes *r, size_t index, const struct hotspot_frame *frames, size_t n)
{
	/* A walk that starts over. */
	while (r->n > 0 && r->frames[r->n - 1].index >= index)
		r->n--;
	for (size_t i = 0; i < n && r->n < FRAME_SOURCE_MAX_FRAMES; i++) {
		r->frames[r->n].frame = frames[i];
		r->frames[r->n++].index = (uint32_t)index;
	}
}

static enum unwind_answer end(struct runtimes *r, enum profile_marker marker,
			      enum unwind_outcome outcome, enum unwind_outcome *ret_outcome)
{
	r->marker = marker;
	*ret_outcome = outcome;
	return UNWIND_ENDED;
}

enum unwind_answer runtimes_step(struct runtimes *r, struct process_runtime *p,
				 const struct unwind_foreign *frame, struct unwind_regs *regs,
				 enum unwind_outcome *ret_outcome, uint64_t *ret_missing)
{
	const struct runtime_stack stack = {frame->stack, frame->start, frame->n_stack,
					    ret_missing};
	struct runtime_regs now = {
		.pc = regs->r[UNWIND_REG_PC],
		.sp = regs->r[UNWIND_REG_SP],
		.innermost = frame->innermost,
		.called_java = !frame->by_cfi,
	};
	struct hotspot_frame frames[MAX_INLINED];
	enum hotspot_step step;
	size_t n;

	if (!may_walk(r, p))
		return p->hotspot && hotspot_has(p->hotspot, now.pc)
			       ? end(r, PROFILE_MARKER_RUNTIME_LATE, UNWIND_NO_CFI, ret_outcome)
			       : UNWIND_NOT_MINE;
	if (!is_open(p) || !hotspot_has(p->hotspot, now.pc))
		return UNWIND_NOT_MINE;
	for (unsigned int i = 0; i < UNWIND_N_REGS; i++)
		now.r[i] = regs->valid & UNWIND_REG_BIT(i) ? regs->r[i] : 0;
	now.fp = now.r[UNWIND_REG_FP];
	step = hotspot_step(p->hotspot, &stack, &now, frames, MAX_INLINED, &n);
	r->hotspot = p->hotspot;
	keep(r, frame->n, frames, n);
	switch (step) {
	case HOTSPOT_STEP:
		p->n_vain = 0;
		regs->r[UNWIND_REG_PC] = now.pc;
		regs->r[UNWIND_REG_SP] = now.sp;
		regs->r[UNWIND_REG_FP] = now.fp;
		regs->valid |= UNWIND_REG_BIT(UNWIND_REG_FP);
		return UNWIND_STEPPED;
	case HOTSPOT_TRUNCATED:
		*ret_outcome = UNWIND_TRUNCATED;
		return UNWIND_ENDED;
	case HOTSPOT_ELSEWHERE:
		return end(r, PROFILE_MARKER_RUNTIME_ELSEWHERE, UNWIND_NO_CFI, ret_outcome);
	case HOTSPOT_SPENT:
		return end(r, PROFILE_MARKER_RUNTIME_LATE, UNWIND_NO_CFI, ret_outcome);
	default:
		count_vain(p);
		return end(r, PROFILE_MARKER_RUNTIME_UNPROVEN, UNWIND_NO_CFI, ret_outcome);
	}
}

const struct runtime_frame *runtimes_frames(struct runtimes *r, size_t index, size_t *ret_n)
{
	size_t n = 0;

	while (r->next < r->n && r->frames[r->next].index < index)
		r->next++;
	for (; r->hotspot && r->next < r->n && r->frames[r->next].index == index && n < MAX_INLINED;
	     r->next++) {
		const struct hotspot_frame *f = &r->frames[r->next].frame;

		r->answer[n++] = (struct runtime_frame){
			.runtime = PROFILE_RUNTIME_JVM,
			.function = hotspot_text(r->hotspot, f->function),
			.file = hotspot_text(r->hotspot, f->file),
			.line = f->line,
			.start_line = f->start_line,
		};
	}
	*ret_n = n;
	return r->answer;
}

enum profile_marker runtimes_marker(const struct runtimes *r)
{
	return r->marker;
}
