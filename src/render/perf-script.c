/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of `perf script`, for its parsers: for each sample a head line, a line for each frame
 * from the leaf on, and an empty line. There is no specification; the format has what the parsers
 * look for (stackcollapse-perf, speedscope, Firefox Profiler). They split the head at blanks and
 * the first number, so a blank before a digit in a thread's name becomes '_', and so does every
 * blank in a path. Blanks around the pid, as in perf, let them recognize a name of one letter.
 * Samples of several events are mixed, in the order of time; each names its event. A sample with a
 * value above 1 (of an imported profile) is one entry with that many periods.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/render/frame.h"
#include "src/render/render.h"
#include "util/clock.h"
#include "util/text.h"

/* The thread's name, else the process's. */
static void put_comm(FILE *out, const struct profile *p, const struct profile_thread *t)
{
	const char *name = profile_text(p, t->name);
	char clean[256];

	if (*name)
		(void)text_clean(clean, sizeof(clean), name, SIZE_MAX);
	else
		(void)frame_process_name(p, t->process, clean, sizeof(clean));
	for (char *c = clean; *c; c++) {
		bool odd = *c == ' ' && (c == clean || isdigit((unsigned char)c[1]) || !c[1]);

		(void)fputc(odd || (c == clean && *c == '#') ? '_' : *c, out);
	}
}

static void put_module(FILE *out, const struct profile *p, uint32_t module, uint32_t function)
{
	const struct profile_module *m = &p->modules.items[module];
	const char *path = profile_text(p, m->path), *name;
	char clean[FRAME_MAX_NAME];
	bool kernel = m->kind == PROFILE_MODULE_KERNEL;

	if (m->kind == PROFILE_MODULE_JIT && m->process != PROFILE_NONE) {
		(void)fprintf(out, "(/tmp/perf-%" PRIu32 ".map)\n",
			      p->processes.items[m->process].pid);
		return;
	}
	name = frame_function_module(p, module, function);
	if (m->kind == PROFILE_MODULE_MARKER || m->kind == PROFILE_MODULE_DATA)
		name = "perfwalk";
	else if (kernel && *name == '[')
		name = "[kernel.kallsyms]";
	else if (!kernel && *path)
		name = path;
	(void)text_clean(clean, sizeof(clean), name, SIZE_MAX);
	for (char *c = clean; *c; c++)
		*c = *c == ' ' || *c == '(' || *c == ')' ? '_' : *c;
	/* A kernel module's name is in brackets, as in perf. */
	(void)fprintf(out, kernel && *clean != '[' ? "([%s])\n" : "(%s)\n", clean);
}

static void put_frame(FILE *out, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	bool marker = profile_is_marked(p, frame);
	uint64_t address = marker ? 0 : f->address;
	char name[FRAME_MAX_NAME];

	for (uint32_t i = 0; i < f->n_lines; i++) {
		uint32_t function = p->lines.items[f->first_line + i].function;

		(void)frame_function_name(p, function, name, sizeof(name));
		(void)fprintf(out, "\t%16" PRIx64 " %s ", address, name);
		if (i + 1 < f->n_lines)
			(void)fputs("(inlined)\n", out);
		else
			put_module(out, p, f->module, function);
	}
	if (f->n_lines)
		return;
	(void)frame_fallback_name(p, frame, name, sizeof(name));
	(void)fprintf(out, "\t%16" PRIx64 " %s ", address, marker ? name : "[unknown]");
	put_module(out, p, f->module, PROFILE_NONE);
}

static void put_sample(FILE *out, const struct profile *p, const struct profile_sample *s)
{
	const struct profile_thread *t = &p->threads.items[s->thread];
	const char *event = profile_text(p, p->types[0].event);
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(p, s->stack, &n);

	put_comm(out, p, t);
	(void)fprintf(out,
		      " %7" PRIu32 "/%-7" PRIu32 " [%03" PRIu32 "] %" PRIu64 ".%06" PRIu64
		      ": %10" PRId64 " %s:\n",
		      p->processes.items[t->process].pid, t->tid, s->cpu,
		      s->time_unix_ns / NSEC_PER_SEC, s->time_unix_ns % NSEC_PER_SEC / 1000,
		      profile_product(s->value, profile_period(p)),
		      *event && !strpbrk(event, " \n") ? event
		      : p->types[0].period_ns	       ? "cpu-clock"
						       : "samples");
	for (uint32_t i = 0; i < n; i++)
		put_frame(out, p, frames[i]);
	(void)fputc('\n', out);
}

/* The type with the oldest next sample; PROFILE_NONE: no samples left. */
static uint32_t next_type(const struct profile *views, uint32_t n, const uint32_t *at)
{
	uint32_t best = PROFILE_NONE;

	for (uint32_t i = 0; i < n; i++) {
		if (at[i] < views[i].types[0].samples.n &&
		    (best == PROFILE_NONE ||
		     views[i].types[0].samples.items[at[i]].time_unix_ns <
			     views[best].types[0].samples.items[at[best]].time_unix_ns))
			best = i;
	}
	return best;
}

int render_perf_script(const struct profile *p, const struct render_info *info, FILE *out)
{
	uint32_t at[PROFILE_MAX_TYPES] = {0}, n = p->n_types, i;
	struct profile views[PROFILE_MAX_TYPES];
	char clean[1024];

	(void)text_clean(clean, sizeof(clean), info->title ? info->title : "perfwalk", SIZE_MAX);
	(void)fprintf(out, "# cmdline : %s\n\n", clean);
	for (i = 0; i < n; i++)
		profile_view(p, i, &views[i]);
	while ((i = next_type(views, n, at)) != PROFILE_NONE && !ferror(out))
		put_sample(out, &views[i], &views[i].types[0].samples.items[at[i]++]);
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
