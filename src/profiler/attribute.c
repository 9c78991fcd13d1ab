/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the attribution, and what happens to each record. attribute-who.c finds out whom a
 * sample belongs to, walk.c its frames, and module-rows.c their modules. attribute-files.c has the
 * files of the window, attribute-types.c its types, and attribute-state.c what is kept of each
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <linux/perf_event.h>

#include "src/profiler/attribute-internal.h"
#include "src/process/filter.h"
#include "src/process/kept-blocks.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "src/profiler/process-runtimes.h"
#include "src/profiler/second-source.h"
#include "src/profiler/setup.h"
#include "src/profiler/walk.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/log.h"
#include "util/text.h"

#define MAX_KERNEL_FRAMES SAMPLE_MAX_KERNEL_FRAMES
/* File pages are given back this often: a search for new code brings some ten of them back. */
#define TRIM_NS		(60 * NSEC_PER_SEC)
#define REFUSED_SECONDS 600
#define LOOK_PERCENT	5
#define LOOK_SAVE_NS	(1 * NSEC_PER_SEC)

/*
 * A file is blamed only while its bytes are read: each read is a job of its own, and work in
 * between counts for no file. Modules without an owner are code that a process compiled, described
 * by its jitdump file; the attribution itself owns the vdso.
 */
static void on_reading(void *ctx, const void *owner, bool begins)
{
	struct attribution *a = ctx;
	const struct process_state *p = a->process ? a->process->user : NULL;
	const struct file_state *f = owner;

	role_job_begin(a->role);
	if (!begins || owner == a)
		return;
	if (f && f->identity.ino)
		role_job_read(a->role, &f->identity, f->path);
	else if (!f && p && p->jitdump_path && p->jitdump.ino)
		role_job_read(a->role, &p->jitdump, p->jitdump_path);
}

/* ---- Life ---- */

static int open_vdso(struct attribution *a)
{
	/* The kernel maps the same image into every 64-bit process, ours included. */
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	int r = image ? unwind_module_new_memory(&a->vdso, a->unwinder, image, 2 * 4096, "[vdso]")
		      : 0;

	if (a->vdso)
		unwind_module_set_owner(a->vdso, a);
	return r;
}

static bool is_foreign_vdso(const struct attribution *a)
{
	const uint8_t *id;
	size_t n;

	if (!a->replay || !a->vdso)
		return false;
	id = unwind_module_build_id(a->vdso, &n);
	return !replay_vdso_is_ours(a->replay, id, n);
}

/* Frames of runtimes in stacks that are kept. */
#define MAX_KNOWN_FRAMES (1u << 18)
#define MAX_KNOWN_BYTES	 (16u << 20)

/* Of a walked stack: the kernel's frames, the walk's with those of runtimes, and markers. */
static uint32_t max_rows(const struct attribution *a)
{
	return a->max_frames + MAX_KERNEL_FRAMES + FRAME_SOURCE_MAX_FRAMES + 3;
}

/* What a walk needs. */
static int new_walk(struct attribution *a)
{
	struct unwind_limits limits = UNWIND_LIMITS_DEFAULT;
	int r = -ENOMEM;

	limits.max_row_bytes = a->setup->unwind_rows_bytes;
	a->walked = calloc(a->max_frames, sizeof(*a->walked));
	a->kept = calloc(ATTRIBUTION_MAX_KEPT(a), sizeof(*a->kept));
	/* Also for a stack that the joiner made, and one marker more. */
	a->frames = calloc(max_rows(a) + FRAME_SOURCE_MAX_FRAMES + 3, sizeof(*a->frames));
	if (a->walked && a->frames && a->kept)
		r = unwinder_new(&a->unwinder, &limits);
	if (r == 0)
		unwinder_watch(a->unwinder, on_reading, a);
	if (r == 0)
		r = known_frames_new(&a->known_frames, MAX_KNOWN_FRAMES, MAX_KNOWN_BYTES);
	if (r == 0)
		r = code_unwinding_new(&a->code, a->unwinder);
	if (r == 0 && !a->replay && a->setup->interpreters)
		r = attribution_new_runtimes(a);
	return r;
}

static int new_host(struct attribution *a, const struct sample_features *features)
{
	const struct host_source source = a->replay
						  ? replay_source(a->replay)
						  : outside_source(&a->outside, features->clockid);
	const struct host_limits limits = {
		.max_processes = a->setup->max_processes,
		.max_mappings = a->replay ? 16384 : 65536,
		.max_threads = 262144,
		.max_files = 16384,
		.max_open_files = a->setup->max_open_files,
		.free_user = attribution_free_file,
		.free_process_user = attribution_free_process,
		.ctx = a,
		.exec_unmarked = !a->replay && !features->comm_exec,
		.recorded = a->replay != NULL,
	};

	return host_new(&a->host, &source, &limits);
}

static int new_parts(struct attribution *a, const struct sample_features *features)
{
	int r = new_walk(a);

	if (r == 0)
		r = new_host(a, features);
	if (r == 0)
		r = off_cpu_new(&a->off_cpu, a);
	if (r == 0)
		r = allocations_new(&a->allocations, a);
	if (r == 0)
		r = residents_new(&a->residents, a);
	return r;
}

int attribution_new(struct attribution **ret, struct role *role, struct ask *ask,
		    const struct setup_profiler *setup, const struct filter *filter,
		    struct replay *replay)
{
	const struct sample_features *features = &setup->events[0].features; /* of the kernel */
	struct attribution *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->role = role;
	a->outside.ask = ask;
	a->filter = filter;
	a->replay = replay;
	a->sayings.outside = replay ? NULL : &a->outside;
	a->sayings.interval_ns = setup->interval_ns;
	a->setup = setup;
	a->max_frames = setup->max_frames;
	a->regs_mask = setup->events[0].options.regs_mask;
	a->items.max = 1u << 20;
	a->look_share = (struct time_share){
		.percent = LOOK_PERCENT, .save_ns = LOOK_SAVE_NS, .only_cpu = true};
	profile_init(&a->profile, setup->window_memory_bytes);
	a->page_bytes = getauxval(AT_PAGESZ);
	a->frame_pointers = features->frame_pointers;
	a->other_clock = replay || !features->clockid;
	if (replay) {
		a->regs_mask = replay_event(replay)->regs_mask;
		a->frame_pointers = !a->regs_mask;
	}
	r = new_parts(a, features);
	if (r < 0) {
		attribution_free(a);
		return r;
	}
	if (open_vdso(a) < 0)
		log_debug("the vdso cannot be read: frames in it end a stack");
	a->foreign_vdso = is_foreign_vdso(a);
	attribution_next_window(a);
	*ret = a;
	return 0;
}

struct attribution *attribution_free(struct attribution *a)
{
	if (a) {
		off_cpu_free(a->off_cpu);
		allocations_free(a->allocations);
		residents_free(a->residents);
		host_free(a->host);
		unwind_module_free(a->vdso);
		code_unwinding_free(a->code);
		runtimes_free(a->runtimes);
		blocked_chains_free(a->blocked);
		unwinder_free(a->unwinder);
		profile_deinit(&a->profile);
		array_deinit(&a->items);
		joiner_deinit(&a->joiner);
		free(a->sps);
		known_frames_free(a->known_frames);
		free(a->kept);
		free(a->walked);
		free(a->frames);
		free(a);
	}
	return NULL;
}

struct profile *attribution_profile(struct attribution *a)
{
	return &a->profile;
}

void attribution_put_host(struct attribution *a, const struct perf_data_host *host)
{
	a->profile.host_name = attribution_put_clean(a, host->name);
	a->profile.kernel_release = attribution_put_clean(a, host->release);
	a->profile.n_cpus = host->n_cpus;
}

void attribution_choose_attributes(struct attribution *a, const char *allow, const char *deny)
{
	a->sayings.allow = allow;
	a->sayings.deny = deny;
}

void attribution_watch_stacks(struct attribution *a, struct stack_size *watch)
{
	a->stack_size = watch;
}

void attribution_watch_gaps(struct attribution *a, const struct ledger *l)
{
	if (a->off_cpu && !a->other_clock)
		off_cpu_watch_gaps(a->off_cpu, l);
}

void attribution_share_blocks(struct attribution *a, struct kept_blocks *k)
{
	uint32_t end = kept_blocks_end(k);

	if (a->allocations) {
		allocations_adopt(a->allocations, k);
		return;
	}
	for (uint32_t i = 0; i < end; i++)
		kept_blocks_remove(k, i);
}

void attribution_read_late(struct attribution *a, uint64_t time_ns)
{
	if (a->off_cpu)
		off_cpu_read_late(a->off_cpu, time_ns);
}

int attribution_set_source(struct attribution *a, const struct frame_source *source)
{
	int r = joiner_init(&a->joiner, &a->profile, max_rows(a));

	a->sps = calloc(a->max_frames, sizeof(*a->sps));
	if (r == 0)
		r = a->sps ? 0 : -ENOMEM;
	if (r == 0)
		a->source = source;
	return r;
}

static enum frame_source_answer ask_readers(void *ctx, const struct frame_source_sample *sample,
					    struct runtime_frames *ret)
{
	const struct attribution *a = ctx;
	const struct process_state *s = sample->process->user;
	uint32_t index = sample->record->index;

	if (s && (s->interpreter_left_out || s->interpreter_hidden))
		return FRAME_SOURCE_UNREAD;
	if (!s || !s->interpreter)
		return FRAME_SOURCE_NONE;
	/* Samples of others do not wake them. */
	if (index > 0 && a->setup->events[index].options.use != SAMPLE_USE_BLOCKS)
		return interpreter_images(s->interpreter)[0] ? FRAME_SOURCE_UNREAD
							     : FRAME_SOURCE_NONE;
	return readers_ask(a->readers, s->interpreter, sample, ret);
}

int attribution_set_readers(struct attribution *a, struct readers *readers)
{
	int r = a->off_cpu ? attribution_new_blocked_chains(a) : 0;

	if (r < 0)
		return r;
	a->readers = readers;
	a->readers_source = (struct frame_source){.ask = ask_readers, .ctx = a};
	return attribution_set_source(a, &a->readers_source);
}

static void log_window(const struct attribution *a)
{
	const struct unwind_stats *u = unwinder_stats(a->unwinder);
	const struct host_stats *h = host_stats(a->host);
	struct code_unwinding_stats c;

	code_unwinding_stats(a->code, &c);
	log_debug(
		"window %llu: %u samples, %u stacks, %u frames; since the start: %llu walks, %llu "
		"frames, %.2f%% of them cached, %llu rows compiled, %llu evicted, %llu bytes of "
		"rows; %llu modules of compiled code (%llu refused), %llu bytes of their jitdump "
		"records (%llu functions refused); %llu processes, %llu files (%llu open), %llu "
		"maps read and %llu asked for one address, %llu questions put off, %llu cgroup "
		"files read, %llu requests to the broker, %llu unanswered",
		(unsigned long long)a->window, a->profile.types[0].samples.n, a->profile.stacks.n,
		a->profile.frames.n, (unsigned long long)u->walks, (unsigned long long)u->frames,
		100.0 * (double)u->cache_hits / (double)(u->cache_hits + u->cache_misses + 1),
		(unsigned long long)u->rows_compiled, (unsigned long long)u->rows_evicted,
		(unsigned long long)u->row_bytes, (unsigned long long)c.modules_made,
		(unsigned long long)c.modules_refused, (unsigned long long)c.bytes,
		(unsigned long long)c.refused, (unsigned long long)h->processes,
		(unsigned long long)h->files, (unsigned long long)h->open_files,
		(unsigned long long)h->maps_reads, (unsigned long long)h->maps_queries,
		(unsigned long long)h->deferred, (unsigned long long)h->cgroup_reads,
		(unsigned long long)a->outside.ask->n_asked,
		(unsigned long long)a->outside.ask->n_timeouts);
}

void attribution_count_said(const struct attribution *a, struct status_said *ret)
{
	*ret = (struct status_said){.labels_refused = a->n_labels_refused,
				    .texts_refused = a->sayings.n_refused,
				    .programs_refused = a->n_not_read};
}

/* What does not fit is missing from the windows, or nameless in them. */
static void report_refused(struct attribution *a)
{
	const struct host_stats *h = host_stats(a->host);
	uint64_t n = h->refused_processes + h->refused_threads + h->refused_mappings +
		     h->refused_files + h->refused_cgroups;

	if (n == a->refused_told || !log_ratelimit(&a->refused, REFUSED_SECONDS))
		return;
	a->refused_told = n;
	log_warning("host tables full: %llu processes refused since the start (%llu tracked; raise "
		    "max_processes), %llu threads, %llu mappings, %llu files and %llu cgroups; "
		    "their samples lack names or are incomplete",
		    (unsigned long long)h->refused_processes, (unsigned long long)h->processes,
		    (unsigned long long)h->refused_threads, (unsigned long long)h->refused_mappings,
		    (unsigned long long)h->refused_files, (unsigned long long)h->refused_cgroups);
}

static void report_labels(struct attribution *a)
{
	if (a->n_labels_refused != a->labels_told &&
	    log_ratelimit(&a->refused_labels, REFUSED_SECONDS)) {
		a->labels_told = a->n_labels_refused;
		log_warning("%llu samples lack some labels of their programs: their keys are "
			    "reserved (thread.id, comm, container ...) or repeated, or they are "
			    "too many or too long",
			    (unsigned long long)a->labels_told);
	}
}

void attribution_next_window(struct attribution *a)
{
	if (a->window > 0) {
		log_window(a);
		report_refused(a);
		report_labels(a);
	}
	profile_clear(&a->profile);
	attribution_put_types(a);
	host_collect(a->host);
	if (clock_monotonic_ns() - a->trimmed_ns >= TRIM_NS) {
		unwinder_trim(a->unwinder);
		a->trimmed_ns = clock_monotonic_ns();
	}
	a->window++;
	a->kernel_row = a->none_row = a->marker_row = a->vdso_row = PROFILE_NONE;
	array_clear(&a->items);
}

void attribution_add_lost(struct attribution *a, struct sample_losses lost)
{
	for (uint32_t i = 0; i < SAMPLE_MAX_EVENTS; i++) {
		attribution_counters(a, i)[PROFILE_SAMPLES_LOST] += lost.samples[i];
		a->picks[i].taken += lost.samples[i];
		if (lost.samples[i] && a->setup->events[i].options.use == SAMPLE_USE_SWITCHES)
			off_cpu_lost(a->off_cpu);
	}
	a->profile.counters[PROFILE_SIDEBAND_LOST] += lost.sideband;
	if (lost.sideband)
		attribution_doubt(a);
}

void attribution_close(struct attribution *a, uint64_t time_ns, bool pause)
{
	uint64_t lost = a->switch_counters[PROFILE_SAMPLES_LOST];

	if (!pause)
		attribution_put_errors(a);
	if (a->allocations && !pause)
		allocations_close(a->allocations, time_ns);
	if (!a->off_cpu)
		return;
	off_cpu_close(a->off_cpu, time_ns, pause);
	a->profile.counters[PROFILE_SWITCHES_LOST] +=
		lost - a->switch_counters[PROFILE_SWITCHES_LOST];
	a->switch_counters[PROFILE_SWITCHES_LOST] = lost;
}

void attribution_read_residents(struct attribution *a, uint64_t now_unix_ns, bool closes)
{
	if (a->residents)
		residents_read(a->residents, now_unix_ns, closes);
}

void attribution_end(struct attribution *a)
{
	if (a->allocations)
		allocations_end(a->allocations);
	if (a->off_cpu)
		off_cpu_end(a->off_cpu);
}

void attribution_miss_ends(struct attribution *a)
{
	if (a->allocations)
		allocations_miss_ends(a->allocations);
}

void attribution_doubt(struct attribution *a)
{
	host_on_lost(a->host);
	if (a->off_cpu)
		off_cpu_lost_lives(a->off_cpu);
}

/* ---- Samples ---- */

static bool all_fit(const struct attribution *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (a->frames[i] == PROFILE_NONE)
			return false;
	}
	return n > 0;
}

static void add(struct attribution *a, uint32_t type, const struct profile_sample *s)
{
	if (s->thread == PROFILE_NONE || s->stack == PROFILE_NONE)
		a->counters[PROFILE_SAMPLES_DROPPED]++;
	else
		(void)profile_add_sample_of(&a->profile, type, s);
}

/* A call of a runtime's function represents all places in it. Otherwise the functions that the
 * compiler inlined there would appear between it and the runtime's frames, other ones in each
 * sample. */
static void fold_places(struct attribution *a, uint32_t n_kernel, const uint64_t *functions)
{
	for (uint32_t i = 0; i < a->n_walked; i++) {
		uint32_t *row = &a->frames[n_kernel + i];
		struct profile_frame f;

		if (!functions[i] || *row == PROFILE_NONE)
			continue;
		f = a->profile.frames.items[*row];
		f.address -= a->walked[i].address - functions[i];
		*row = profile_add_frame(&a->profile, f.module, f.address);
	}
}

/* Asks the second source about a sample with n frames: false, it has none of its frames. Otherwise
 * the sample is dealt with. */
static bool ask_source(struct attribution *a, const struct record *r, struct profile_sample *s,
		       uint32_t n, uint32_t n_kernel)
{
	const struct walked_stack stack = {a->frames, a->sps, n, n_kernel, a->n_walked};
	struct runtime_frames frames = {.n = 0};
	enum frame_source_answer answer =
		attribution_ask_source(a, a->source, r, n, n_kernel, &frames);
	bool is_ready = answer == FRAME_SOURCE_READY;
	enum profile_marker marker;

	if (answer == FRAME_SOURCE_NONE)
		return false;
	if (is_ready)
		answer = frames.lacks;
	marker = attribution_source_marker(answer);
	if (is_ready && frames.functions)
		fold_places(a, n_kernel, frames.functions);
	if (marker != PROFILE_N_MARKERS) {
		frames.n = is_ready ? frames.n : 0;
		/* One that lacks native frames is counted for that. */
		if (attribution_last_marker(a, n) == PROFILE_N_MARKERS)
			a->counters[answer == FRAME_SOURCE_MISSED   ? PROFILE_STACKS_RUNTIME_LATE
				    : answer == FRAME_SOURCE_UNREAD ? PROFILE_STACKS_RUNTIME_UNREAD
								    : PROFILE_STACKS_UNPROVEN]++;
	}
	s->stack = joiner_stack(&a->joiner, &stack, &frames, marker, r->index);
	add(a, r->index, s);
	return true;
}

/* Once a window, and when it has more mapped. */
static void look_for_library(struct attribution *a, struct host_process *p)
{
	struct process_state *s = p ? attribution_process_state(p) : NULL;

	if (!a->allocations || !s ||
	    (s->library_window == a->window && s->n_library_mappings == p->n_mappings))
		return;
	s->library_window = a->window;
	s->n_library_mappings = p->n_mappings;
	allocations_look(a->allocations);
}

static bool on_sample(struct attribution *a, const struct record *r)
{
	struct profile_sample s = {
		/* Of the perf clock still; made wall time when the window closes. */
		.time_unix_ns = r->time_ns,
		.value = attribution_sample_value(a, r),
		.stack = PROFILE_NONE,
		.cpu = r->cpu,
		.n = 1,
	};
	struct host_process *p = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	uint32_t n = 0, n_kernel = (uint32_t)r->sample.n_kernel;

	a->counters[PROFILE_SAMPLES]++;
	a->process = p;
	a->time_ns = r->time_ns;
	if (!attribution_wants(a, r, p)) {
		a->counters[PROFILE_SAMPLES_FILTERED]++;
		every_nth_take(&a->picks[r->index], 0);
		return false;
	}
	every_nth_take(&a->picks[r->index], (double)s.value);
	a->labels = a->readers && p && r->index == 0 ? attribution_span(a, r, p) : STRID_EMPTY;
	s.thread = attribution_thread_row(a, r, p);
	a->labels = STRID_EMPTY;
	if (s.thread != PROFILE_NONE)
		n = attribution_walk(a, r);
	look_for_library(a, p);
	if (a->residents && p)
		residents_see(a->residents, p);
	if (all_fit(a, n)) {
		if (a->readers && p)
			attribution_look_for_interpreter(a);
		if (a->source && p && n > n_kernel && ask_source(a, r, &s, n, n_kernel))
			return true;
		s.stack = profile_add_stack(&a->profile, a->frames, n, n_kernel);
	}
	add(a, r->index, &s);
	return true;
}

void attribution_add_target(struct attribution *a, uint32_t pid)
{
	host_add_target(a->host, pid);
}

void attribution_stands(struct attribution *a, const struct message *m)
{
	if (a->off_cpu && m->stands.n <= MESSAGE_MAX_STANDS)
		off_cpu_stands(a->off_cpu, m->stands.threads, m->stands.n, m->stands.n_left);
}

bool attribution_follows_blocks(const struct attribution *a)
{
	return a->off_cpu && a->n_spans > 0;
}

uint32_t attribution_enough_stacks(struct attribution *a)
{
	return off_cpu_enough_stacks(a->off_cpu);
}

void attribution_context(struct attribution *a, const struct blocked_context *context)
{
	if (a->off_cpu)
		off_cpu_span(a->off_cpu, context);
}

void attribution_look_at(struct attribution *a, uint32_t pid, uint64_t time_ns)
{
	struct host_process *p = host_process_get(a->host, pid, pid, time_ns);

	if (!p)
		return;
	a->process = p;
	a->time_ns = time_ns;
	/* No code is there: all mappings are read. */
	(void)host_mapping_find(a->host, p, 0, time_ns);
	look_for_library(a, p);
	if (a->readers) {
		attribution_look_into_program(a);
		attribution_look_for_interpreter(a);
	}
}

static void on_mmap(struct attribution *a, const struct record *r)
{
	struct host_file_key key = {r->mmap.major, r->mmap.minor, r->mmap.inode,
				    r->mmap.generation};
	bool is_key = r->mmap.has_inode || a->replay;

	if (a->replay)
		replay_file_key(a->replay, r, &key);
	host_on_mmap(a->host, r->pid, r->mmap.start, r->mmap.length, r->mmap.file_offset,
		     is_key ? &key : NULL, r->mmap.path, r->time_ns);
	attribution_see_mapping(a, r);
	if (!a->allocations || !is_key || !allocations_may_matter(a->allocations, r->mmap.path))
		return;
	a->process = host_process_get(a->host, r->pid, r->tid, r->time_ns);
	a->time_ns = r->time_ns;
	allocations_mapped(a->allocations, r->mmap.start);
}

void attribution_begin(struct attribution *a)
{
	/* Their blocks may end in the records that follow. */
	if (a->readers && a->off_cpu)
		readers_take_answers(a->readers);
	host_begin(a->host);
}

bool attribution_asks_for(struct attribution *a, const struct record *r)
{
	return r->type != RECORD_SAMPLE || !a->setup->events[r->index].options.whole_cpus ||
	       host_is_target(a->host, r->pid, r->tid, r->time_ns);
}

/* Apart, so that a switch does not pay for its locals. */
__attribute__((noinline)) static bool on_record(struct attribution *a, const struct record *r)
{
	switch (r->type) {
	case RECORD_SAMPLE:
		return a->setup->events[r->index].options.use != SAMPLE_USE_EVENT ||
		       on_sample(a, r);
	case RECORD_MMAP:
		on_mmap(a, r);
		break;
	case RECORD_COMM:
		host_on_comm(a->host, r->pid, r->tid, r->comm.comm, r->comm.exec, r->time_ns);
		if (a->off_cpu && !r->comm.exec)
			off_cpu_renamed(a->off_cpu, r);
		break;
	case RECORD_FORK:
		host_on_fork(a->host, r->pid, r->tid, r->task.parent_pid, r->task.parent_tid,
			     r->time_ns);
		attribution_see_fork(a, r);
		break;
	case RECORD_EXIT:
		host_on_exit(a->host, r->pid, r->tid, r->time_ns);
		attribution_see_exit(a, r);
		break;
	case RECORD_CGROUP:
		host_on_cgroup(a->host, r->cgroup.id, r->cgroup.path);
		break;
	case RECORD_LOST:
		*(r->from_sideband ? &a->profile.counters[PROFILE_SIDEBAND_LOST]
				   : &a->counters[PROFILE_SAMPLES_LOST]) += r->lost;
		if (r->from_sideband)
			attribution_doubt(a);
		break;
	case RECORD_THROTTLE:
		a->counters[PROFILE_SAMPLES_THROTTLED] += !r->throttle_end;
		break;
	case RECORD_BAD:
		a->profile.counters[PROFILE_RECORDS_BAD]++;
		break;
	case RECORD_SWITCH:
	case RECORD_SWITCH_IN: /* of a file; nobody asked for it */
	case RECORD_SWITCH_OUT:
		break;
	}
	return true;
}

bool attribution_record(struct attribution *a, const struct record *r)
{
	a->counters = attribution_counters(a, r->index);
	if (a->off_cpu)
		off_cpu_record(a->off_cpu, r);
	if (a->allocations)
		allocations_record(a->allocations, r);
	return r->type == RECORD_SWITCH || on_record(a, r);
}
