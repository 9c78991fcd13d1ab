/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The span that a sample was in. A process whose SDK publishes thread contexts (OTEP 4947) says so
 * in its process context. Then the variable is looked for in the files that it has mapped, once;
 * the readers read it at each sample, and what they read becomes labels of the sample. Programs of
 * Go have their spans in labels of goroutines (goroutines.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/node-context.h"
#include "src/host/readable.h"
#include "src/profile/labels.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/c-library.h"
#include "src/profiler/outside.h"
#include "src/profiler/program-variable.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/text.h"

#define VARIABLE	 "otel_thread_ctx_v1"
#define MAX_READS	 4000 /* of one file */
#define MAX_BYTES	 (UINT64_C(4) << 20)
#define MAX_LINES	 65536 /* of maps */
#define MAX_MAPS_BYTES	 (8 << 20)
#define LOOK_NS		 (50 * NSEC_PER_MSEC) /* CPU time for the files of a process */
#define FIRST_DELAY_NS	 (500 * NSEC_PER_MSEC)
#define LONGEST_DELAY_NS (60 * NSEC_PER_SEC)
#define N_KNOWN		 16

/* Of a process. */
struct sample_span {
	uint64_t next_ns, delay_ns;
	uint32_t n_execs;
	bool found, goroutines; /* labels of these, not contexts */
	/* By what was read: its threads are in several, and a later sample may be in the same. */
	struct known_labels {
		uint64_t window;
		uint32_t n, keys_version;
		uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
		strid labels;
		bool has_span;
		bool refused; /* some of them are left out */
	} known[N_KNOWN];
};

/* ---- Where the variable is ---- */

struct looking {
	struct attribution *a;
	uint32_t pid;
	int memory;
	const char *variable; /* its name */
	struct readable readable;
};

static int maps_of(void *ctx)
{
	const struct looking *l = ctx;

	return outside_open_maps(&l->a->outside, l->pid);
}

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct looking *l = ctx;

	return address <= INT64_MAX && readable_has(&l->readable, address, n) &&
	       pread(l->memory, ret, n, (off_t)address) == (ssize_t)n;
}

static void begin_reading(struct looking *l, const struct host_file_key *key)
{
	l->readable = (struct readable){.open_maps = maps_of,
					.ctx = l,
					.major = key->major,
					.minor = key->minor,
					.max_bytes = MAX_MAPS_BYTES};
}

static int find_in_file(struct looking *l, const struct host_file_key *key, uint64_t base,
			struct thread_variable *ret)
{
	struct memory memory = {
		.read = read_memory, .ctx = l, .reads_left = MAX_READS, .bytes_left = MAX_BYTES};
	struct image image;
	int r = 0;

	begin_reading(l, key);
	if (image_open(&image, &memory, base))
		r = thread_variable_find(&image, l->variable, ret);
	readable_deinit(&l->readable);
	return r;
}

/* What it takes to find the threads. */
static void look_at_library(struct looking *l, const struct host_process *p, FILE *maps,
			    const struct host_file_key *key, struct thread_variable *ret)
{
	struct memory memory = {
		.read = read_memory, .ctx = l, .reads_left = MAX_READS, .bytes_left = MAX_BYTES};

	rewind(maps);
	begin_reading(l, key);
	ret->musl_thread = c_library_musl_thread(p, maps, &memory);
	if (!ret->glibc_bytes)
		ret->glibc_bytes = c_library_glibc_bytes(p, &memory);
	ret->cpu = c_library_glibc_cpu(p, &memory);
	readable_deinit(&l->readable);
	if (ret->musl_thread)
		log_debug("process %u: its threads are musl's", p->pid);
}

/* Of the threads of a program that is linked with glibc, if that is on the filesystem of its file,
 * which answers. */
static void look_at_glibc(struct attribution *a, const struct host_process *p,
			  const struct host_file_key *key, struct thread_variable *ret)
{
	struct looking l = {
		.a = a, .pid = p->pid, .memory = outside_open_memory(&a->outside, p->pid, 0)};
	struct memory memory = {
		.read = read_memory, .ctx = &l, .reads_left = MAX_READS, .bytes_left = MAX_BYTES};

	if (l.memory < 0)
		return;
	begin_reading(&l, key);
	ret->glibc_bytes = c_library_glibc_bytes(p, &memory);
	ret->cpu = c_library_glibc_cpu(p, &memory);
	readable_deinit(&l.readable);
	(void)close_fd(l.memory);
}

/* In its file, which the walk has opened by then, what is not in its memory. */
static bool find_in_program(struct looking *l, struct host_process *p, struct host_mapping *m,
			    struct thread_variable *ret)
{
	int fd = host_file_open(l->a->host, p, m), r;
	const struct file_state *file = fd >= 0 ? m->file->user : NULL;

	if (!file || !file->module)
		return false;
	unwinder_tell_reading(l->a->unwinder, file, true);
	r = program_variable_find(fd, l->variable, ret);
	unwinder_tell_reading(l->a->unwinder, file, false);
	if (r == -ENODATA)
		log_debug("process %u: its samples have no spans: the program is static, and has "
			  "no symbols",
			  l->pid);
	return r > 0;
}

/* The code of the file whose first byte is mapped there. The opener has found that its filesystem
 * keeps nobody waiting. NULL: it has none. */
static struct host_mapping *code_of(struct attribution *a, struct host_process *p,
				    const struct host_maps_line *line)
{
	for (uint32_t i = 0; line->inode && !line->file_offset && i < p->n_mappings; i++) {
		struct host_mapping *m = &p->mappings[i];

		if (m->kind == HOST_MAPPING_FILE && m->file->key.inode == line->inode &&
		    m->file->key.major == line->major && m->file->key.minor == line->minor)
			return host_file_open(a->host, p, m) < 0 ? NULL : m;
	}
	return NULL;
}

/* One of the files that have their first byte mapped. */
static bool find_in_maps(struct looking *l, struct host_process *p, FILE *maps,
			 struct thread_variable *ret, struct host_file_key *ret_key)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	ssize_t n;
	uint64_t end_ns = clock_get_ns(CLOCK_THREAD_CPUTIME_ID) + LOOK_NS;

	for (uint32_t i = 0; i < MAX_LINES && (n = getline(&text, &size, maps)) > 1; i++) {
		struct host_maps_line line;
		struct host_mapping *m;

		if (clock_get_ns(CLOCK_THREAD_CPUTIME_ID) >= end_ns)
			break;
		if (!host_parse_maps_line(text, (size_t)n - 1, &line))
			continue;
		m = code_of(l->a, p, &line);
		if (!m)
			continue;
		*ret_key = m->file->key;
		if (find_in_file(l, ret_key, line.start, ret) > 0 || find_in_program(l, p, m, ret))
			return true;
	}
	return false;
}

static bool find_variable(struct attribution *a, struct host_process *p, bool node,
			  struct thread_variable *ret, struct host_file_key *ret_key)
{
	struct looking l = {.a = a,
			    .pid = p->pid,
			    .memory = outside_open_memory(&a->outside, p->pid, 0),
			    .variable = node ? NODE_CONTEXT_VARIABLE : VARIABLE};
	int fd = l.memory < 0 ? -1 : outside_open_maps(&a->outside, p->pid);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = maps && find_in_maps(&l, p, maps, ret, ret_key);

	if (found)
		look_at_library(&l, p, maps, ret_key, ret);
	if (maps)
		(void)fclose(maps);
	else
		(void)close_fd(fd);
	(void)close_fd(l.memory);
	return found;
}

/* Is it time to look again? */
static bool is_due(const struct attribution *a, const struct sample_span *span)
{
	return a->time_ns >= span->next_ns;
}

/* Each look that finds nothing doubles the time until the next one. */
static void put_off(const struct attribution *a, struct sample_span *span)
{
	span->delay_ns = span->delay_ns ? 2 * span->delay_ns : FIRST_DELAY_NS;
	if (span->delay_ns > LONGEST_DELAY_NS)
		span->delay_ns = LONGEST_DELAY_NS;
	span->next_ns = a->time_ns + span->delay_ns;
}

static void set_found(struct attribution *a, struct sample_span *span, bool found)
{
	a->n_spans += found;
	a->n_spans -= span->found;
	span->found = found;
}

static void look_for_variable(struct attribution *a, struct host_process *p,
			      struct process_state *s)
{
	struct sample_span *span = s->span;
	struct thread_variable variable = {0};
	struct host_file_key key;
	bool found;

	if (!attribution_begin_look(a))
		return;
	put_off(a, span);
	found = find_variable(a, p, s->said.node, &variable, &key);
	attribution_end_look(a);
	if (!found)
		return;
	variable.node = s->said.node;
	/* Records may be in the data of the file, which answers. */
	if (!s->interpreter)
		attribution_let_read(a, s, p, NULL, &key);
	if (!s->interpreter)
		return;
	interpreter_set_context(s->interpreter, &variable);
	set_found(a, span, true);
}

static void look_at_goroutines(struct attribution *a, const struct host_process *p,
			       struct process_state *s)
{
	struct thread_variable library = {0};
	const struct host_file_key *key;

	if (!attribution_begin_look(a))
		return;
	put_off(a, s->span);
	key = attribution_let_read_goroutines(a, p, s);
	/* All its threads are those of the library. */
	if (key && c_library_is_glibc(p))
		look_at_glibc(a, p, key, &library);
	attribution_end_look(a);
	if (key)
		interpreter_set_goroutines(s->interpreter, s->go_version, s->go_cycle, &library);
	set_found(a, s->span, key != NULL);
}

/* ---- Labels ---- */

static void put_id(struct label_set *set, const char *key, const uint8_t *bytes, size_t n)
{
	char text[2 * LABEL_TRACE_BYTES + 1];

	text_format_hex(text, bytes, n);
	label_set_add(set, &(struct label){.key = key, .text = text, .unit = ""});
}

static void put_attributes(struct label_set *set, const struct process_said *said,
			   const uint8_t *bytes, uint32_t n)
{
	struct thread_context_attribute a;
	char text[4 * UINT8_MAX];

	set->n_refused += thread_context_is_cut(bytes, n);
	for (uint32_t at = 0; thread_context_next(bytes, n, &at, &a);) {
		/* The list of keys may be that of an earlier context. */
		set->n_refused += a.key >= said->n_keys;
		if (a.key >= said->n_keys || !said->keys[a.key])
			continue;
		(void)text_clean(text, sizeof(text), (const char *)a.text, a.n);
		label_set_add(set,
			      &(struct label){.key = said->keys[a.key], .text = text, .unit = ""});
	}
}

static void put_context(struct label_set *set, const struct process_said *said,
			const uint8_t *bytes, uint32_t n)
{
	const uint8_t *trace, *span;

	if (thread_context_ids(bytes, n, &trace, &span)) {
		put_id(set, LABEL_TRACE, trace, LABEL_TRACE_BYTES);
		put_id(set, LABEL_SPAN, span, LABEL_SPAN_BYTES);
	}
	put_attributes(set, said, bytes, n);
}

static void make_labels(struct attribution *a, const struct process_state *s, const uint8_t *bytes,
			uint32_t n, struct known_labels *ret)
{
	_cleanup_free_ char *text = NULL;
	char span[2 * LABEL_SPAN_BYTES + 1];
	struct label_set set;

	ret->labels = STRID_EMPTY;
	ret->has_span = ret->refused = false;
	if (label_set_begin(&set) < 0)
		return;
	if (s->span->goroutines)
		attribution_put_goroutine(a, &set, bytes, n);
	else
		put_context(&set, &s->said, bytes, n);
	text = label_set_end(&set);
	ret->refused = set.n_refused > 0;
	ret->has_span = text && label_find(text, LABEL_SPAN, span, sizeof(span));
	if (text)
		ret->labels = strtab_put_n(&a->profile.strings, text, set.n_text);
}

static const struct known_labels *find_labels(struct attribution *a, struct process_state *s,
					      const uint8_t *bytes, uint32_t n)
{
	struct known_labels *k = &s->span->known[hash_bytes(bytes, n, 0) % N_KNOWN];

	if (k->window == a->window && k->n == n && k->keys_version == s->said.keys_version &&
	    memcmp(k->bytes, bytes, n) == 0)
		return k;
	make_labels(a, s, bytes, n, k);
	k->window = a->window;
	k->keys_version = s->said.keys_version;
	k->n = n;
	memcpy(k->bytes, bytes, n);
	return k;
}

/* ---- A sample ---- */

static void end_span(struct attribution *a, struct process_state *s)
{
	/* What is looked for next may be an interpreter again. */
	if (s->span->found && s->interpreter) {
		s->interpreter = readers_free_interpreter(a->readers, s->interpreter);
		s->n_interpreter_mappings = 0;
	}
	attribution_free_span(a, s);
}

/* Whether threads say their spans: in contexts, or in the labels of goroutines. */
static bool says_spans(struct attribution *a, struct host_process *p, struct process_state *s,
		       bool *ret_goroutines)
{
	*ret_goroutines = !s->said.threads;
	return s->said.threads || attribution_go_version(a, p, s) != 0;
}

/* NULL: it is not read (yet). *ret_says: it should be. */
static struct sample_span *span_of(struct attribution *a, struct host_process *p,
				   struct process_state *s, bool *ret_says)
{
	bool goroutines, says = says_spans(a, p, s, &goroutines);

	*ret_says = says;
	if (s->span &&
	    (!says || s->span->n_execs != p->n_execs || s->span->goroutines != goroutines))
		end_span(a, s);
	if (!says || p->exited)
		return NULL;
	if (!s->span)
		s->span = calloc(1, sizeof(*s->span));
	if (!s->span)
		return NULL;
	s->span->n_execs = p->n_execs;
	s->span->goroutines = goroutines;
	if (s->span->found && s->interpreter)
		return s->span;
	if (!is_due(a, s->span))
		return NULL;
	if (goroutines)
		look_at_goroutines(a, p, s);
	else
		look_for_variable(a, p, s);
	return NULL;
}

static const enum profile_counter counters[FRAME_RECORD_N_SPANS] = {
	[FRAME_RECORD_SPAN_UNREAD] = PROFILE_SPANS_UNREAD,
	[FRAME_RECORD_SPAN_READ] = PROFILE_SPANS_OUTSIDE, /* without an id among what was read */
	[FRAME_RECORD_SPAN_NONE] = PROFILE_SPANS_OUTSIDE,
	[FRAME_RECORD_SPAN_LATE] = PROFILE_SPANS_LATE,
	[FRAME_RECORD_SPAN_MOVED] = PROFILE_SPANS_MOVED,
	[FRAME_RECORD_SPAN_HALF] = PROFILE_SPANS_HALF,
	[FRAME_RECORD_SPAN_UNREADABLE] = PROFILE_SPANS_UNREADABLE,
};

bool attribution_read_span(struct attribution *a, const struct record *r, struct host_process *p,
			   uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n,
			   uint64_t *ret_read_ns)
{
	const struct frame_key key = {r->time_ns, r->cpu, r->tid};
	enum frame_record_span what = FRAME_RECORD_SPAN_UNREAD;
	struct process_state *s = p->user;
	bool says = false;

	*ret_n = 0;
	if (s && span_of(a, p, s, &says))
		what = readers_context(a->readers, s->interpreter, &key, ret, ret_n, ret_read_ns);
	return *ret_n > 0 || what == FRAME_RECORD_SPAN_NONE;
}

bool attribution_tells_spans(const struct host_process *p)
{
	const struct process_state *s = p->user;

	return s && s->span && s->span->found && s->interpreter;
}

bool attribution_says_spans(const struct host_process *p)
{
	const struct process_state *s = p->user;

	return s && (s->said.threads || s->go_version);
}

bool attribution_span_labels(struct attribution *a, const struct host_process *p,
			     const uint8_t *bytes, uint32_t n, strid *ret, bool *ret_has_span)
{
	struct process_state *s = p->user;
	const struct known_labels *k;

	/* It may be another program by now. */
	if (!s || !s->span ||
	    n < (s->span->goroutines ? GO_LABELS_HEAD_BYTES : THREAD_CONTEXT_HEAD_BYTES))
		return false;
	k = find_labels(a, s, bytes, n);
	a->n_labels_refused += k->refused;
	*ret = k->labels;
	*ret_has_span = k->has_span;
	return true;
}

strid attribution_span(struct attribution *a, const struct record *r, struct host_process *p)
{
	const struct frame_key key = {r->time_ns, r->cpu, r->tid};
	struct process_state *s = p->user;
	bool says = false;
	struct sample_span *span = s ? span_of(a, p, s, &says) : NULL;
	enum frame_record_span what = FRAME_RECORD_SPAN_UNREAD;
	uint8_t bytes[THREAD_CONTEXT_MAX_BYTES];
	const struct known_labels *k = NULL;
	uint64_t read_ns;
	uint32_t n = 0;

	if (span)
		what = readers_context(a->readers, s->interpreter, &key, bytes, &n, &read_ns);
	if (n)
		k = find_labels(a, s, bytes, n);
	a->n_labels_refused += k && k->refused;
	if (says)
		a->counters[k && k->has_span ? PROFILE_SPANS_LINKED : counters[what]]++;
	return k ? k->labels : STRID_EMPTY;
}

void attribution_free_span(struct attribution *a, struct process_state *s)
{
	if (s->span)
		set_found(a, s->span, false);
	free(s->span);
	s->span = NULL;
}
