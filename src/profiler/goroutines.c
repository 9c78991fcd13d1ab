/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of goroutines (runtime/pprof.Do) as labels of samples. Tracers for Go write their spans
 * there: Pyroscope's as span_id and span_name, Datadog's as numbers in "span id" and "local root
 * span id".
 */
#include <stdlib.h>
#include <string.h>

#include "runtimes/go.h"
#include "src/profile/labels.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/go-program.h"
#include "util/globs.h"
#include "util/text.h"

#define GOROUTINE "goroutine.id"
#define SECONDS	  600

/* ---- Programs ---- */

/* Of all files of a process the program's has the lowest address, or is its only one. */
static struct host_mapping *find_program(const struct host_process *p)
{
	for (uint32_t i = 0; i < p->n_mappings; i++) {
		if (p->mappings[i].kind == HOST_MAPPING_FILE)
			return &p->mappings[i];
	}
	return NULL;
}

/* NULL: the walk has not opened it yet. */
static struct file_state *state_of(const struct host_mapping *m)
{
	struct file_state *file = m->file->user;

	return file && file->module ? file : NULL;
}

/* Once a file. NULL: not known yet. */
static const struct file_state *look_at_file(struct attribution *a, struct host_process *p,
					     struct host_mapping *m)
{
	struct file_state *file = state_of(m);
	int fd;

	if (!file || file->go_known)
		return file;
	fd = host_file_open(a->host, p, m);
	/* The mapping may have another file by now, which this descriptor is of. */
	file = fd >= 0 ? state_of(m) : NULL;
	if (!file || file->go_known)
		return file;
	if (!attribution_begin_look(a))
		return NULL;
	file->go_known = true;
	unwinder_tell_reading(a->unwinder, file, true);
	file->go = go_program_find(fd);
	unwinder_tell_reading(a->unwinder, file, false);
	attribution_end_look(a);
	if (*file->go.unknown && log_ratelimit(&a->go_versions, SECONDS))
		log_warning("process %u: its samples have no spans and labels of goroutines: this "
			    "perfwalk does not know \"%s\"",
			    p->pid, file->go.unknown);
	return file;
}

static uint64_t cycle_of(const struct file_state *file, const struct host_mapping *m)
{
	uint64_t bias;

	return file->go.cycle && unwind_module_bias(file->module, m->start, m->file_offset, &bias)
		       ? file->go.cycle + bias
		       : 0;
}

uint32_t attribution_go_version(struct attribution *a, struct host_process *p,
				struct process_state *s)
{
	const struct file_state *file;
	struct host_mapping *m;

	if (s->n_go_mappings == p->n_mappings && s->n_go_execs == p->n_execs)
		return s->go_version;
	m = find_program(p);
	file = m ? look_at_file(a, p, m) : NULL;
	s->go_version = file ? file->go.version : 0;
	s->go_cycle = file ? cycle_of(file, m) : 0;
	s->n_go_execs = p->n_execs;
	/* One that is not open yet is looked at again. */
	s->n_go_mappings = file ? p->n_mappings : 0;
	return s->go_version;
}

const struct host_file_key *attribution_let_read_goroutines(struct attribution *a,
							    const struct host_process *p,
							    struct process_state *s)
{
	const struct host_mapping *m = find_program(p);

	/* Constant labels are in the program's file, which answers: the opener has seen that. */
	if (!s->interpreter && m)
		attribution_let_read(a, s, p, NULL, &m->file->key);
	return s->interpreter && m ? &m->file->key : NULL;
}

/* ---- Labels ---- */

/* An id as so many hexadecimal digits, from those or, of a key with blanks, from a number. */
static bool make_id(const char *key, const char *text, size_t digits, char *ret, size_t size)
{
	size_t n = strlen(text);
	char *end;

	if (strchr(key, ' ') && n && strspn(text, "0123456789") == n && n <= 20) {
		(void)snprintf(ret, size, "%0*llx", (int)digits, strtoull(text, &end, 10));
		return true;
	}
	if (n != digits || strspn(text, "0123456789abcdefABCDEF") != n)
		return false;
	(void)snprintf(ret, size, "%s", text);
	for (char *c = ret; *c; c++)
		*c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
	return true;
}

/* The key that an id has everywhere; NULL: it is none. */
static const char *key_of_id(const char *key, size_t *ret_digits)
{
	bool trace = strcmp(key, "trace_id") == 0 || strcmp(key, "trace id") == 0;

	*ret_digits = 2 * (trace ? LABEL_TRACE_BYTES : LABEL_SPAN_BYTES);
	if (trace)
		return LABEL_TRACE;
	return strcmp(key, "span_id") == 0 || strcmp(key, "span id") == 0 ? LABEL_SPAN : NULL;
}

static void put_label(const struct attribution *a, struct label_set *set,
		      const struct go_label *label)
{
	char key[4 * UINT8_MAX], text[4 * UINT8_MAX], id[2 * LABEL_TRACE_BYTES + 1];
	size_t digits;
	const char *id_key;

	(void)text_clean(key, sizeof(key), (const char *)label->key, label->n_key);
	(void)text_clean(text, sizeof(text), (const char *)label->value, label->n_value);
	id_key = key_of_id(key, &digits);
	/* Without a span tracers write zeros. */
	if (id_key && text[strspn(text, "0")] == '\0')
		return;
	if (id_key && make_id(key, text, digits, id, sizeof(id)))
		label_set_add(set, &(struct label){.key = id_key, .text = id, .unit = ""});
	else if (globs_allow(a->sayings.allow, a->sayings.deny, key))
		label_set_add(set, &(struct label){.key = key, .text = text, .unit = ""});
}

void attribution_put_goroutine(const struct attribution *a, struct label_set *set,
			       const uint8_t *bytes, uint32_t n)
{
	struct go_label label;

	set->n_refused += go_labels_left_out(bytes);
	if (globs_allow(a->sayings.allow, a->sayings.deny, GOROUTINE))
		label_set_add(set, &(struct label){.key = GOROUTINE,
						   .number = (int64_t)go_labels_goroutine(bytes),
						   .unit = ""});
	for (uint32_t at = 0; go_label_next(bytes, n, &at, &label);)
		put_label(a, set, &label);
}
