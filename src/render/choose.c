/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples the filters of a view choose. All outputs of the view have these alone. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/profile/labels.h"
#include "src/render/frame.h"
#include "src/render/report-internal.h"
#include "util/cleanup.h"

static bool is_set(const char *text)
{
	return text && *text;
}

static bool process_wanted(const struct profile *p, const struct render_report_options *o,
			   uint32_t process)
{
	const struct profile_process *proc = &p->processes.items[process];
	const char *id = profile_text(p, proc->container_id);
	const char *name = profile_text(p, proc->container_name);
	char text[256];

	(void)frame_process_name(p, process, text, sizeof(text));
	if (is_set(o->comm) && fnmatch(o->comm, text, 0) != 0)
		return false;
	(void)frame_service_name(p, process, text, sizeof(text));
	if (is_set(o->service) && fnmatch(o->service, text, 0) != 0)
		return false;
	/* The whole id, or as it is displayed. */
	(void)snprintf(text, sizeof(text), "%.*s", REPORT_CONTAINER_DIGITS, id);
	return !is_set(o->container) || fnmatch(o->container, id, 0) == 0 ||
	       fnmatch(o->container, text, 0) == 0 || fnmatch(o->container, name, 0) == 0;
}

/* Ids are the same in capital letters. */
static bool has_label(const char *labels, const char *key, const char *id)
{
	char text[64];

	return !is_set(id) ||
	       (label_find(labels, key, text, sizeof(text)) && strcasecmp(text, id) == 0);
}

bool report_thread_wanted(const struct profile *p, const struct render_report_options *o,
			  uint32_t thread)
{
	const struct profile_thread *t = &p->threads.items[thread];
	const char *labels = profile_text(p, t->labels);

	return has_label(labels, LABEL_TRACE, o->trace) && has_label(labels, LABEL_SPAN, o->span) &&
	       process_wanted(p, o, t->process);
}

/* What a type says of its samples must be true of those that stay. */
static void choose_of_type(struct profile_type *t, const uint32_t *rows)
{
	uint64_t left_out = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->samples.n; i++) {
		struct profile_sample s = t->samples.items[i];

		if (rows[s.thread] == PROFILE_NONE) {
			left_out += t->weighted ? s.n : (uint64_t)profile_size(s.value);
			continue;
		}
		s.thread = rows[s.thread];
		t->samples.items[n++] = s;
	}
	if (n < t->samples.n)
		t->variance = 0;
	t->samples.n = n;
	t->counters[PROFILE_SAMPLES_FILTERED] += left_out;
}

/* Memory is a process's, and no span's. */
static bool memory_wanted(const struct profile *p, const struct render_report_options *o,
			  uint32_t process)
{
	return !is_set(o->trace) && !is_set(o->span) && process_wanted(p, o, process);
}

static void choose_memory(struct profile *p, const struct render_report_options *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->residents.n; i++) {
		if (memory_wanted(p, o, p->residents.items[i].process))
			p->residents.items[n++] = p->residents.items[i];
	}
	p->residents.n = n;
	n = 0;
	for (uint32_t i = 0; i < p->victims.n; i++) {
		if (memory_wanted(p, o, p->victims.items[i].process))
			p->victims.items[n++] = p->victims.items[i];
	}
	p->victims.n = n;
	/* Who was killed may be any other process. */
	if (n == 0)
		array_clear(&p->kills);
}

/* Pages list all threads. The row of each that stays: the others' are gone. */
static void choose_threads(struct profile *p, const struct render_report_options *o, uint32_t *rows)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->threads.n; i++)
		rows[i] = report_thread_wanted(p, o, i) ? n++ : PROFILE_NONE;
	for (uint32_t i = 0; i < p->threads.n; i++) {
		if (rows[i] != PROFILE_NONE)
			p->threads.items[rows[i]] = p->threads.items[i];
	}
	p->threads.n = n;
}

int render_choose_samples(struct profile *p, const struct render_report_options *o)
{
	_cleanup_free_ uint32_t *rows = NULL;

	if (!is_set(o->comm) && !is_set(o->container) && !is_set(o->service) && !is_set(o->trace) &&
	    !is_set(o->span))
		return 0;
	rows = calloc((size_t)p->threads.n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	choose_threads(p, o, rows);
	for (uint32_t i = 0; i < p->n_types; i++)
		choose_of_type(&p->types[i], rows);
	choose_memory(p, o);
	return 0;
}
