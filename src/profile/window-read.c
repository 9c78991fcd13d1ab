/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/profile/window.h"
#include "src/profile/window-format.h"
#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/memory-file.h"

#define WINDOW_MAX (UINT64_C(1) << 30)
#define MAX_LINES  256 /* of a frame */

/* A window being read: its sections in place, and their rows in the target. */
struct reader {
	struct profile *p;
	struct window_header h;
	const void *sections[N_SECTIONS];
	uint64_t uid_base;
	strid *strings; /* [0 .. n_strings] */
	uint32_t *rows[N_SECTIONS];
	uint32_t *stack; /* room for the frames of one stack */
	uint32_t types[PROFILE_MAX_TYPES];
	/* Which row is being read, and where an error goes. */
	enum window_section at;
	uint32_t at_row;
	char *error;
	size_t n_error;
};

static const char *const section_names[N_SECTIONS] = {
	[SECTION_STRINGS] = "text",
	[SECTION_MODULES] = "module",
	[SECTION_PROCESSES] = "process",
	[SECTION_THREADS] = "thread",
	[SECTION_FUNCTIONS] = "function",
	[SECTION_LINES] = "line",
	[SECTION_FRAMES] = "frame",
	[SECTION_STACKS] = "stack",
	[SECTION_STACK_FRAMES] = "stack frame",
	[SECTION_TYPES] = "type",
	[SECTION_SAMPLES] = "sample",
	[SECTION_RESIDENTS] = "memory in use",
	[SECTION_KILLS] = "kill",
	[SECTION_VICTIMS] = "victim",
};

/* Says what is wrong with the row that is being read: "frame 7: module 9 of 4". */
static __attribute__((format(printf, 2, 3))) int refuse(const struct reader *r, const char *format,
							...)
{
	char why[128];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	(void)snprintf(r->error, r->n_error, "%s %u: %s", section_names[r->at], r->at_row, why);
	return -EBADMSG;
}

static int refuse_all(const struct reader *r, const char *why)
{
	(void)snprintf(r->error, r->n_error, "%s", why);
	return -EBADMSG;
}

static void reader_free(struct reader *r)
{
	free(r->strings);
	free(r->stack);
	for (int s = 0; s < N_SECTIONS; s++)
		free(r->rows[s]);
}

static int reader_layout(struct reader *r, const uint8_t *map, uint64_t size)
{
	struct cursor c = cursor_make(map, size);

	cursor_read(&c, &r->h, sizeof(r->h));
	if (!cursor_ok(&c) || r->h.magic != WINDOW_MAGIC)
		return refuse_all(r, "it does not begin as a window");
	if (r->h.total_bytes != size)
		return refuse_all(r, "it is not as long as it says");
	(void)cursor_take(&c, window_padded(sizeof(r->h)) - sizeof(r->h));
	for (int s = 0; s < N_SECTIONS; s++) {
		r->at = (enum window_section)s;
		r->at_row = r->h.sections[s].n;
		if (r->h.sections[s].item_bytes != window_item_sizes[s])
			return refuse(r, "rows of %u bytes instead of %u",
				      r->h.sections[s].item_bytes, window_item_sizes[s]);
		r->sections[s] = cursor_take(
			&c, window_padded((uint64_t)r->h.sections[s].n * window_item_sizes[s]));
		if (!cursor_ok(&c))
			return refuse(r, "behind the end of the window");
	}
	return 0;
}

static int read_strings(struct reader *r)
{
	struct cursor c =
		cursor_make(r->sections[SECTION_STRINGS], r->h.sections[SECTION_STRINGS].n);

	r->at = SECTION_STRINGS;
	r->at_row = r->h.n_strings;
	if (r->h.n_strings > r->h.sections[SECTION_STRINGS].n)
		return refuse(r, "more texts than bytes");
	r->strings = calloc((size_t)r->h.n_strings + 1, sizeof(*r->strings));
	if (!r->strings)
		return -ENOMEM;
	for (uint32_t i = 1; i <= r->h.n_strings; i++) {
		const char *text = cursor_string(&c);

		r->at_row = i;
		if (!text)
			return refuse(r, "behind the end of the texts");
		r->strings[i] = strtab_put(&r->p->strings, text);
	}
	return 0;
}

/* This and the next two refuse the row when they return false. */
static bool map_string(const struct reader *r, strid *id)
{
	if (*id > r->h.n_strings) {
		(void)refuse(r, "text %u of %u", *id, r->h.n_strings);
		return false;
	}
	*id = r->strings[*id];
	return true;
}

static bool is_in_window(const struct reader *r, uint64_t time_unix_ns)
{
	if (time_unix_ns >= r->h.start_unix_ns && time_unix_ns < r->h.end_unix_ns)
		return true;
	(void)refuse(r, "time %llu ns is outside of the window, from %llu to %llu ns",
		     (unsigned long long)time_unix_ns, (unsigned long long)r->h.start_unix_ns,
		     (unsigned long long)r->h.end_unix_ns);
	return false;
}

/* Maps a row number of the window to the target; PROFILE_NONE: that row did not fit. */
static bool map_row(const struct reader *r, enum window_section s, uint32_t *row)
{
	if (*row >= r->h.sections[s].n) {
		(void)refuse(r, "%s %u of %u", section_names[s], *row, r->h.sections[s].n);
		return false;
	}
	*row = r->rows[s][*row];
	return true;
}

/* Each of these sets *ret to the row of an item in the target, PROFILE_NONE: it does not fit. */
static int read_process(struct reader *r, const void *item, uint32_t *ret)
{
	struct profile_process v = *(const struct profile_process *)item;

	if (!map_string(r, &v.comm) || !map_string(r, &v.executable_path) ||
	    !map_string(r, &v.container_id) || !map_string(r, &v.container_runtime) ||
	    !map_string(r, &v.container_name) || !map_string(r, &v.pod_uid) ||
	    !map_string(r, &v.systemd_unit) || !map_string(r, &v.cgroup) ||
	    !map_string(r, &v.attributes))
		return -EBADMSG;
	v.is_program = v.is_program != 0;
	*ret = profile_add_process(r->p, &v);
	return 0;
}

static int read_module(struct reader *r, const void *item, uint32_t *ret)
{
	struct profile_module v = *(const struct profile_module *)item;

	if (!map_string(r, &v.path) || !map_string(r, &v.go_build_id) ||
	    !map_string(r, &v.htlhash) || !map_string(r, &v.language))
		return -EBADMSG;
	if (v.kind >= PROFILE_N_MODULE_KINDS || v.runtime >= PROFILE_N_RUNTIMES ||
	    v.n_build_id > PROFILE_MAX_BUILD_ID)
		return refuse(r, "kind %u, runtime %u, a build id of %u bytes", (uint32_t)v.kind,
			      (uint32_t)v.runtime, v.n_build_id);
	if (v.process != PROFILE_NONE && !map_row(r, SECTION_PROCESSES, &v.process))
		return -EBADMSG;
	if (v.uid >= PROFILE_UID_FIRST_FILE)
		v.uid += r->uid_base;
	*ret = profile_add_module(r->p, &v);
	return 0;
}

static int read_thread(struct reader *r, const void *item, uint32_t *ret)
{
	struct profile_thread v = *(const struct profile_thread *)item;

	if (!map_string(r, &v.name) || !map_string(r, &v.labels) ||
	    !map_row(r, SECTION_PROCESSES, &v.process))
		return -EBADMSG;
	*ret = v.process == PROFILE_NONE ? PROFILE_NONE : profile_add_labelled_thread(r->p, &v);
	return 0;
}

static int read_function(struct reader *r, const void *item, uint32_t *ret)
{
	struct profile_function v = *(const struct profile_function *)item;

	if (!map_string(r, &v.name) || !map_string(r, &v.system_name) || !map_string(r, &v.file) ||
	    !map_string(r, &v.module_name) || !map_string(r, &v.language))
		return -EBADMSG;
	*ret = profile_add_function(r->p, &v);
	return 0;
}

/* Reads a frame that comes with its names. */
static int read_named_frame(struct reader *r, uint32_t module, const struct profile_frame *v,
			    uint32_t *ret)
{
	const struct profile_line *all = r->sections[SECTION_LINES];
	uint32_t n_all = r->h.sections[SECTION_LINES].n;
	struct profile_line lines[MAX_LINES];
	bool whole = true;

	if (v->n_lines > MAX_LINES || v->first_line > n_all || v->n_lines > n_all - v->first_line)
		return refuse(r, "%u lines from %u of %u", v->n_lines, v->first_line, n_all);
	for (uint32_t i = 0; i < v->n_lines; i++) {
		lines[i] = all[v->first_line + i];
		if (!map_row(r, SECTION_FUNCTIONS, &lines[i].function))
			return -EBADMSG;
		whole = whole && lines[i].function != PROFILE_NONE;
	}
	*ret = whole ? profile_add_named_frame(r->p, module, 0, lines, v->n_lines) : PROFILE_NONE;
	return 0;
}

static int read_frame(struct reader *r, const void *item, uint32_t *ret)
{
	const struct profile_frame *v = item;
	uint32_t module = v->module;

	if (!map_row(r, SECTION_MODULES, &module))
		return -EBADMSG;
	*ret = PROFILE_NONE;
	if (module == PROFILE_NONE)
		return 0;
	if (r->p->modules.items[module].kind == PROFILE_MODULE_RUNTIME)
		return read_named_frame(r, module, v, ret);
	/* The profiler has no names for code in files. */
	if (v->n_lines > 0)
		return refuse(r, "%u lines of code in a file", v->n_lines);
	*ret = profile_add_frame(r->p, module, v->address);
	return 0;
}

static int read_stack(struct reader *r, const void *item, uint32_t *ret)
{
	const struct profile_stack *v = item;
	uint32_t n_rows = r->h.sections[SECTION_STACK_FRAMES].n;
	const uint32_t *rows = r->sections[SECTION_STACK_FRAMES];
	bool whole = true;

	if (v->first > n_rows || v->n > n_rows - v->first || v->n_kernel > v->n)
		return refuse(r, "%u frames from %u of %u, of these the kernel's %u", v->n,
			      v->first, n_rows, v->n_kernel);
	for (uint32_t i = 0; i < v->n; i++) {
		r->stack[i] = rows[v->first + i];
		if (!map_row(r, SECTION_FRAMES, &r->stack[i]))
			return -EBADMSG;
		whole = whole && r->stack[i] != PROFILE_NONE;
	}
	*ret = whole ? profile_add_stack(r->p, r->stack, v->n, v->n_kernel) : PROFILE_NONE;
	return 0;
}

static int read_section(struct reader *r, enum window_section s,
			int (*read_item)(struct reader *r, const void *item, uint32_t *ret))
{
	const uint8_t *item = r->sections[s];
	uint32_t n = r->h.sections[s].n;
	int e = 0;

	r->at = s;
	r->rows[s] = calloc((size_t)n + 1, sizeof(*r->rows[s]));
	if (!r->rows[s])
		return -ENOMEM;
	for (uint32_t i = 0; i < n && e == 0; i++, item += window_item_sizes[s]) {
		r->at_row = i;
		e = read_item(r, item, &r->rows[s][i]);
	}
	return e;
}

static int read_stacks(struct reader *r)
{
	r->stack = calloc((size_t)r->h.sections[SECTION_STACK_FRAMES].n + 1, sizeof(*r->stack));
	return r->stack ? read_section(r, SECTION_STACKS, read_stack) : -ENOMEM;
}

static bool same_type(const struct profile_type *a, const struct profile_type *b)
{
	return a->event == b->event && a->unit == b->unit && a->period_ns == b->period_ns &&
	       a->period_events == b->period_events && a->weighted == b->weighted;
}

/* The profile's type for a type of the window, added if needed. The first type of an empty profile
 * becomes the window's first. PROFILE_NONE: too many. */
static uint32_t find_type(struct profile *p, const struct profile_type *facts)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		const struct profile_type *have = &p->types[i];

		if (!same_type(have, facts))
			continue;
		if (have->stack_bytes > facts->stack_bytes)
			return i;
		profile_set_type(p, i, facts);
		return i;
	}
	if (p->n_types == 1 && p->types[0].samples.n == 0 && p->types[0].event == STRID_EMPTY) {
		profile_set_type(p, 0, facts);
		return 0;
	}
	return profile_add_type(p, facts);
}

static uint64_t *counters_of(struct profile *p, uint32_t type)
{
	return type == PROFILE_NONE ? p->counters : p->types[type].counters;
}

static int read_samples(struct reader *r, uint32_t type, const struct profile_sample *items,
			uint32_t n)
{
	const struct profile_sample *all = r->sections[SECTION_SAMPLES];

	r->at = SECTION_SAMPLES;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample v = items[i];

		r->at_row = (uint32_t)(items - all) + i;
		if (!map_row(r, SECTION_THREADS, &v.thread) ||
		    !map_row(r, SECTION_STACKS, &v.stack) || !is_in_window(r, v.time_unix_ns))
			return -EBADMSG;
		if (type == PROFILE_NONE || v.thread == PROFILE_NONE || v.stack == PROFILE_NONE)
			counters_of(r->p, type)[PROFILE_SAMPLES_DROPPED]++;
		else
			(void)profile_add_sample_of(r->p, type, &v);
	}
	return 0;
}

static int read_types(struct reader *r)
{
	const struct window_type *types = r->sections[SECTION_TYPES];
	const struct profile_sample *samples = r->sections[SECTION_SAMPLES];
	uint32_t n = r->h.sections[SECTION_TYPES].n, left = r->h.sections[SECTION_SAMPLES].n;

	r->at = SECTION_TYPES;
	r->at_row = n;
	if (n == 0 || n > PROFILE_MAX_TYPES)
		return refuse(r, "none, or more than %d", PROFILE_MAX_TYPES);
	for (uint32_t i = 0; i < n; i++) {
		const struct window_type *t = &types[i];
		struct profile_type facts = {
			.period_ns = t->period_ns,
			.period_events = t->period_events,
			.event = t->event,
			.unit = t->unit,
			.weighted = t->weighted != 0,
			.rate_hz = t->rate_hz,
			.stack_bytes = t->stack_bytes,
		};
		int e;

		r->at = SECTION_TYPES;
		r->at_row = i;
		if (!map_string(r, &facts.event) || !map_string(r, &facts.unit))
			return -EBADMSG;
		if (t->n_samples > left)
			return refuse(r, "%u samples of %u", t->n_samples, left);
		r->types[i] = find_type(r->p, &facts);
		e = read_samples(r, r->types[i], samples, t->n_samples);
		if (e < 0)
			return e;
		samples += t->n_samples;
		left -= t->n_samples;
	}
	return left == 0 ? 0 : refuse(r, "%u samples are of no type", left);
}

/* Those that do not fit are missing: what is known of the process then is what was known before. */
static int read_residents(struct reader *r)
{
	const struct profile_resident *items = r->sections[SECTION_RESIDENTS];

	r->at = SECTION_RESIDENTS;
	for (uint32_t i = 0; i < r->h.sections[SECTION_RESIDENTS].n; i++) {
		struct profile_resident v = items[i];

		r->at_row = i;
		if (!map_row(r, SECTION_PROCESSES, &v.process) || !is_in_window(r, v.time_unix_ns))
			return -EBADMSG;
		if (v.process != PROFILE_NONE)
			(void)profile_add_resident(r->p, &v);
	}
	return 0;
}

static int read_kills(struct reader *r)
{
	const struct profile_kills *items = r->sections[SECTION_KILLS];

	r->at = SECTION_KILLS;
	for (uint32_t i = 0; i < r->h.sections[SECTION_KILLS].n; i++) {
		r->at_row = i;
		if (!is_in_window(r, items[i].time_unix_ns))
			return -EBADMSG;
		(void)profile_add_kills(r->p, &items[i]);
	}
	return 0;
}

static int read_victims(struct reader *r)
{
	const struct profile_victim *items = r->sections[SECTION_VICTIMS];

	r->at = SECTION_VICTIMS;
	for (uint32_t i = 0; i < r->h.sections[SECTION_VICTIMS].n; i++) {
		struct profile_victim v = items[i];

		r->at_row = i;
		if (!map_row(r, SECTION_PROCESSES, &v.process) || !is_in_window(r, v.time_unix_ns))
			return -EBADMSG;
		if (v.process != PROFILE_NONE)
			(void)profile_add_victim(r->p, &v);
	}
	return 0;
}

/* Of a window that is not trusted. */
static void add_variance(struct profile *p, uint32_t type, double variance)
{
	if (type != PROFILE_NONE && isfinite(variance) && variance > 0)
		p->types[type].variance += variance;
}

static void add_counters(struct reader *r)
{
	const struct window_type *types = r->sections[SECTION_TYPES];

	for (uint32_t i = 0; i < r->h.sections[SECTION_TYPES].n; i++)
		add_variance(r->p, r->types[i], types[i].variance);

	for (int c = 0; c < PROFILE_N_COUNTERS; c++) {
		r->p->counters[c] += r->h.counters[c];
		for (uint32_t i = 0; i < r->h.sections[SECTION_TYPES].n; i++)
			counters_of(r->p, r->types[i])[c] += types[i].counters[c];
	}
}

static int read_all(struct reader *r, const uint8_t *map, uint64_t size)
{
	struct profile *p = r->p;
	strid host_name, kernel_release;
	int e;

	if ((e = reader_layout(r, map, size)) < 0 || (e = read_strings(r)) < 0 ||
	    (e = read_section(r, SECTION_PROCESSES, read_process)) < 0 ||
	    (e = read_section(r, SECTION_MODULES, read_module)) < 0 ||
	    (e = read_section(r, SECTION_THREADS, read_thread)) < 0 ||
	    (e = read_section(r, SECTION_FUNCTIONS, read_function)) < 0 ||
	    (e = read_section(r, SECTION_FRAMES, read_frame)) < 0 || (e = read_stacks(r)) < 0)
		return e;
	host_name = r->h.host_name;
	kernel_release = r->h.kernel_release;
	if (host_name > r->h.n_strings || kernel_release > r->h.n_strings)
		return refuse_all(r, "the names of its host and kernel are no texts");
	host_name = r->strings[host_name];
	kernel_release = r->strings[kernel_release];
	if ((e = read_types(r)) < 0 || (e = read_residents(r)) < 0 || (e = read_kills(r)) < 0 ||
	    (e = read_victims(r)) < 0)
		return e;

	add_counters(r);
	if (p->start_unix_ns == 0 || r->h.start_unix_ns < p->start_unix_ns)
		p->start_unix_ns = r->h.start_unix_ns;
	if (r->h.end_unix_ns > p->end_unix_ns)
		p->end_unix_ns = r->h.end_unix_ns;
	p->host_name = host_name;
	p->kernel_release = kernel_release;
	p->n_cpus = r->h.n_cpus;
	return 0;
}

/* Maps or copies n bytes, so that nobody can change them. The caller unmaps them. */
static int map_sealed(int fd, size_t n, uint8_t **ret)
{
	bool sealed = memory_file_is_sealed(fd);
	size_t done = 0;
	uint8_t *map = mmap(NULL, n, sealed ? PROT_READ : PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | (sealed ? 0 : MAP_ANONYMOUS), sealed ? fd : -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	/* Its writer could change or shrink it meanwhile: copy it. */
	while (!sealed && done < n) {
		ssize_t got = pread(fd, map + done, n - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			(void)munmap(map, n);
			return got < 0 ? -errno : -EIO;
		}
		done += (size_t)got;
	}
	*ret = map;
	return 0;
}

/* The samples and counters of the profile before a window is read. */
struct extent {
	uint64_t n_dropped;
	uint32_t n_residents, n_kills, n_victims;
	struct {
		uint32_t n_samples;
		uint64_t n_dropped;
	} types[PROFILE_MAX_TYPES];
};

static void extent_remember(struct extent *e, const struct profile *p)
{
	*e = (struct extent){.n_dropped = p->counters[PROFILE_SAMPLES_DROPPED],
			     .n_residents = p->residents.n,
			     .n_kills = p->kills.n,
			     .n_victims = p->victims.n};
	for (uint32_t i = 0; i < p->n_types; i++) {
		e->types[i].n_samples = p->types[i].samples.n;
		e->types[i].n_dropped = p->types[i].counters[PROFILE_SAMPLES_DROPPED];
	}
}

static void extent_restore(const struct extent *e, struct profile *p)
{
	p->counters[PROFILE_SAMPLES_DROPPED] = e->n_dropped;
	p->residents.n = e->n_residents;
	p->kills.n = e->n_kills;
	p->victims.n = e->n_victims;
	for (uint32_t i = 0; i < p->n_types; i++) {
		p->types[i].samples.n = e->types[i].n_samples;
		p->types[i].counters[PROFILE_SAMPLES_DROPPED] = e->types[i].n_dropped;
	}
}

static int read_file(struct reader *r, int fd)
{
	struct extent before;
	struct stat st;
	uint8_t *map = NULL;
	int e;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (uint64_t)st.st_size > WINDOW_MAX)
		return refuse_all(r, "it is empty or too long");
	e = map_sealed(fd, (size_t)st.st_size, &map);
	if (e < 0)
		return e;
	extent_remember(&before, r->p);
	e = read_all(r, map, (uint64_t)st.st_size);
	if (e < 0)
		extent_restore(&before, r->p);
	(void)munmap(map, (size_t)st.st_size);
	return e;
}

int window_read(struct profile *p, int fd, uint64_t module_uid_base, char *error, size_t n_error)
{
	struct reader r = {.p = p, .uid_base = module_uid_base, .error = error, .n_error = n_error};
	int e = read_file(&r, fd);

	if (e < 0 && e != -EBADMSG)
		(void)snprintf(error, n_error, "%s", strerror(-e));
	reader_free(&r);
	return e;
}
