/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object a line, for databases: the samples of one thread with one stack, added up. Each
 * line has all keys and stands for itself, so that files of many hosts and windows go into one
 * table. perfwalk-convert(1) lists the keys.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "src/profile/labels.h"
#include "src/render/aggregate.h"
#include "src/render/frame.h"
#include "src/render/render.h"
#include "util/clock.h"
#include "util/json.h"

#define MAX_ATTRIBUTES 8192

struct ndjson {
	const struct profile *p; /* a view of the current type */
	FILE *out;
	const char *host, *type, *unit;
	char start[48], end[48];
	int64_t period;
};

static void put_text(FILE *out, const char *key, const char *text)
{
	(void)fprintf(out, ",\"%s\":", key);
	json_put_string(out, text ? text : "");
}

/* RFC 3339, in UTC; "": not known. */
static void format_time(uint64_t unix_ns, char *buf, size_t size)
{
	time_t seconds = (time_t)(unix_ns / NSEC_PER_SEC);
	struct tm tm;
	size_t n;

	*buf = '\0';
	if (!unix_ns || !gmtime_r(&seconds, &tm))
		return;
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, size - n, ".%06" PRIu64 "Z", unix_ns % NSEC_PER_SEC / 1000);
}

/* As OTLP has it, where the config says nothing: its own, else of the executable, else the name. */
static void put_service(const struct ndjson *j, const struct profile_process *proc)
{
	char name[256];

	if (!label_find(profile_text(j->p, proc->attributes), "service.name", name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "%s",
			       frame_basename(profile_text(j->p, proc->executable_path)));
	put_text(j->out, "service", *name ? name : profile_text(j->p, proc->comm));
}

static void put_attributes(const struct ndjson *j, const struct profile_process *proc)
{
	const char *text = profile_text(j->p, proc->attributes), *comma = "";
	char buf[MAX_ATTRIBUTES];
	struct label l;

	(void)fputs(",\"attributes\":{", j->out);
	while (strlen(text) < sizeof(buf) && label_read(&text, &l, buf, sizeof(buf))) {
		(void)fputs(comma, j->out);
		json_put_string(j->out, l.key);
		(void)fputc(':', j->out);
		for (char *c = l.text ? strchr(l.text, LABEL_ITEM_END) : NULL; c;
		     c = strchr(c, LABEL_ITEM_END))
			*c = ',';
		if (l.text)
			json_put_string(j->out, l.text);
		else
			(void)fprintf(j->out, "\"%" PRId64 "\"", l.number);
		comma = ",";
	}
	(void)fputc('}', j->out);
}

static void put_task(const struct ndjson *j, const struct profile_thread *t)
{
	const struct profile_process *proc = &j->p->processes.items[t->process];

	put_service(j, proc);
	put_text(j->out, "process", profile_text(j->p, proc->comm));
	(void)fprintf(j->out, ",\"pid\":%" PRIu32, proc->pid);
	put_text(j->out, "executable", profile_text(j->p, proc->executable_path));
	put_text(j->out, "thread", profile_text(j->p, t->name));
	(void)fprintf(j->out, ",\"tid\":%" PRIu32, t->tid);
	put_text(j->out, "container", profile_text(j->p, proc->container_id));
	put_text(j->out, "container_name", profile_text(j->p, proc->container_name));
	put_text(j->out, "systemd_unit", profile_text(j->p, proc->systemd_unit));
	put_attributes(j, proc);
}

/* Calls put for each function of the stack, from root to leaf, an inlined one after its caller. */
static void each_function(const struct ndjson *j, uint32_t stack,
			  void (*put)(const struct ndjson *j, uint32_t frame, uint32_t function))
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(j->p, stack, &n);
	const char *comma = "";

	(void)fputc('[', j->out);
	while (n-- > 0) {
		const struct profile_frame *f = &j->p->frames.items[frames[n]];

		for (uint32_t i = f->n_lines ? f->n_lines : 1; i-- > 0; comma = ",") {
			(void)fputs(comma, j->out);
			put(j, frames[n],
			    f->n_lines ? j->p->lines.items[f->first_line + i].function
				       : PROFILE_NONE);
		}
	}
	(void)fputc(']', j->out);
}

static void put_name(const struct ndjson *j, uint32_t frame, uint32_t function)
{
	char name[FRAME_MAX_NAME];

	if (function == PROFILE_NONE)
		(void)frame_fallback_name(j->p, frame, name, sizeof(name));
	else
		(void)frame_function_name(j->p, function, name, sizeof(name));
	json_put_string(j->out, name);
}

static void put_module(const struct ndjson *j, uint32_t frame, uint32_t function)
{
	json_put_string(j->out,
			frame_function_module(j->p, j->p->frames.items[frame].module, function));
}

static void put_row(const struct ndjson *j, const struct aggregate_row *row)
{
	(void)fprintf(j->out, "{\"start\":\"%s\",\"end\":\"%s\"", j->start, j->end);
	put_text(j->out, "host", j->host);
	put_text(j->out, "type", j->type);
	put_text(j->out, "unit", j->unit);
	(void)fprintf(j->out, ",\"value\":%" PRId64 ",\"samples\":%" PRId64,
		      profile_product(row->value, (uint64_t)j->period), row->n);
	put_task(j, &j->p->threads.items[row->thread]);
	(void)fputs(",\"stack\":", j->out);
	each_function(j, row->stack, put_name);
	(void)fputs(",\"modules\":", j->out);
	each_function(j, row->stack, put_module);
	(void)fputs("}\n", j->out);
}

static int put_type(struct ndjson *j)
{
	struct aggregate a;
	int r = aggregate_build(&a, j->p, NULL);

	j->unit = profile_period_unit(j->p);
	j->period = (int64_t)profile_period(j->p);
	for (uint32_t i = 0; r == 0 && i < a.rows.n && !ferror(j->out); i++)
		put_row(j, &a.rows.items[i]);
	aggregate_deinit(&a);
	return r;
}

int render_ndjson(const struct profile *p, const struct render_info *info, FILE *out)
{
	struct ndjson j = {.out = out, .host = info->host_name};
	int r = 0;

	format_time(p->start_unix_ns, j.start, sizeof(j.start));
	format_time(p->end_unix_ns, j.end, sizeof(j.end));
	for (uint32_t i = 0; i < p->n_types && r == 0; i++) {
		struct profile view;

		profile_view(p, i, &view);
		j.p = &view;
		j.type = profile_type_name(p, i);
		r = put_type(&j);
	}
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
