/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json). A profile in
 * it is one thread. So the first profile is the sum of all processes, with the process at the root,
 * for the views without time; then follows each thread in the order of time, the busiest first.
 * Each type of samples has its own sum and threads, with its event in their names.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/aggregate.h"
#include "src/render/by-thread.h"
#include "util/json.h"
#include "src/render/places.h"
#include "src/render/render.h"

#define MAX_THREADS 4096 /* profiles in the file; the sum has all of them */

struct speedscope {
	const struct profile *p; /* a view of the current type */
	const struct render_info *info;
	FILE *out;
	struct places places;
	const char *type; /* its name; NULL: the only type */
	struct aggregate sum;
	struct by_thread by_thread;
	uint32_t *busiest; /* threads */
	int64_t *values;   /* by thread */
	uint32_t n_written;
};

static void put_frames(struct speedscope *s)
{
	const struct profile *p = s->p;

	(void)fputs("\"shared\":{\"frames\":[", s->out);
	for (uint32_t i = 0; i < s->places.functions.n; i++) {
		const struct place_function *f = &s->places.functions.items[i];
		const char *file = strtab_get(&s->places.strings, f->file);

		(void)fputs(i ? ",\n{\"name\":" : "{\"name\":", s->out);
		json_put_string(s->out, strtab_get(&s->places.strings, f->name));
		if (!*file)
			file = frame_function_module(p, f->module, f->function);
		if (*file) {
			(void)fputs(",\"file\":", s->out);
			json_put_string(s->out, file);
		}
		if (f->function != PROFILE_NONE && p->functions.items[f->function].start_line)
			(void)fprintf(s->out, ",\"line\":%" PRIu32,
				      p->functions.items[f->function].start_line);
		(void)fputc('}', s->out);
	}
	for (uint32_t i = 0; i < p->processes.n; i++) {
		char name[FRAME_MAX_NAME], owner[256];

		(void)frame_process_name(p, i, name, sizeof(name));
		(void)fputs(s->places.functions.n + i ? ",\n{\"name\":" : "{\"name\":", s->out);
		json_put_string(s->out, name);
		if (frame_process_owner(p, i, owner, sizeof(owner)) > 0) {
			(void)fputs(",\"file\":", s->out);
			json_put_string(s->out, owner);
		}
		(void)fputc('}', s->out);
	}
	(void)fputs("]}", s->out);
}

/* From root to leaf. process: the row at the root, or PROFILE_NONE. */
static void put_stack(struct speedscope *s, uint32_t stack, uint32_t process)
{
	const char *comma = "";
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(s->p, stack, &n);

	(void)fputc('[', s->out);
	if (process != PROFILE_NONE) {
		(void)fprintf(s->out, "%" PRIu32, s->places.functions.n + process);
		comma = ",";
	}
	while (n-- > 0) {
		for (uint32_t i = s->places.first[frames[n]]; i < s->places.first[frames[n] + 1];
		     i++) {
			(void)fprintf(s->out, "%s%" PRIu32, comma,
				      s->places.places.items[i].function);
			comma = ",";
		}
	}
	(void)fputc(']', s->out);
}

static void begin_profile(struct speedscope *s, const char *name, int64_t total)
{
	const char *unit = profile_period_unit(s->p);
	char typed[640];

	s->n_written++;
	(void)snprintf(typed, sizeof(typed), "%.120s: %s", s->type ? s->type : "", name);
	/* We keep these of its units; all else are plain numbers. */
	if (strcmp(unit, "nanoseconds") != 0 && strcmp(unit, "bytes") != 0)
		unit = "none";
	(void)fputs("{\"type\":\"sampled\",\"name\":", s->out);
	json_put_string(s->out, s->type ? typed : name);
	(void)fprintf(s->out,
		      ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\"samples\":[",
		      unit, total);
}

static int64_t weight(const struct speedscope *s, int64_t value)
{
	return profile_product(value, profile_period(s->p));
}

static void put_sum(struct speedscope *s)
{
	begin_profile(s, "all processes", weight(s, s->sum.total));
	for (uint32_t i = 0; i < s->sum.rows.n; i++) {
		const struct aggregate_row *r = &s->sum.rows.items[i];

		(void)fputs(i ? ",\n" : "", s->out);
		put_stack(s, r->stack, s->p->threads.items[r->thread].process);
	}
	(void)fputs("],\"weights\":[", s->out);
	for (uint32_t i = 0; i < s->sum.rows.n; i++)
		(void)fprintf(s->out, "%s%" PRId64, i ? "," : "",
			      weight(s, s->sum.rows.items[i].value));
	(void)fputs("]}", s->out);
}

static void put_thread(struct speedscope *s, uint32_t thread)
{
	const struct profile_thread *t = &s->p->threads.items[thread];
	uint32_t first = s->by_thread.first[thread], end = s->by_thread.first[thread + 1];
	char process[256], name[512];

	(void)frame_process_name(s->p, t->process, process, sizeof(process));
	(void)snprintf(name, sizeof(name), "%s (pid %" PRIu32 ", tid %" PRIu32 " %.64s)", process,
		       s->p->processes.items[t->process].pid, t->tid, profile_text(s->p, t->name));
	begin_profile(s, name, weight(s, s->values[thread]));
	for (uint32_t i = first; i < end; i++) {
		(void)fputs(i > first ? "," : "", s->out);
		put_stack(s, s->p->types[0].samples.items[s->by_thread.order[i]].stack,
			  PROFILE_NONE);
	}
	(void)fputs("],\"weights\":[", s->out);
	for (uint32_t i = first; i < end; i++)
		(void)fprintf(s->out, "%s%" PRId64, i > first ? "," : "",
			      weight(s, s->p->types[0].samples.items[s->by_thread.order[i]].value));
	(void)fputs("]}", s->out);
}

static int compare_busiest(const void *a, const void *b, void *ctx)
{
	const struct speedscope *s = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (s->values[i] != s->values[j])
		return s->values[i] > s->values[j] ? -1 : 1;
	return (i > j) - (i < j);
}

static int sort_threads(struct speedscope *s)
{
	size_t n = (size_t)s->p->threads.n + 1;

	s->busiest = calloc(n, sizeof(*s->busiest));
	s->values = calloc(n, sizeof(*s->values));
	if (!s->busiest || !s->values)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->p->types[0].samples.n; i++) {
		int64_t *sum =
			&s->values[s->by_thread.same[s->p->types[0].samples.items[i].thread]];

		*sum = profile_sum(*sum, s->p->types[0].samples.items[i].value);
	}
	for (uint32_t i = 0; i < s->p->threads.n; i++)
		s->busiest[i] = i;
	qsort_r(s->busiest, s->p->threads.n, sizeof(*s->busiest), compare_busiest, s);
	return 0;
}

static int put_type(struct speedscope *s)
{
	int r = aggregate_build(&s->sum, s->p, NULL), e = by_thread_build(&s->by_thread, s->p);

	r = r < 0 ? r : e;
	if (r == 0)
		r = sort_threads(s);
	if (r == 0)
		put_sum(s);
	for (uint32_t i = 0; i < s->p->threads.n && i < MAX_THREADS && r == 0; i++) {
		if (!s->values[s->busiest[i]])
			break;
		(void)fputs(",\n", s->out);
		put_thread(s, s->busiest[i]);
	}
	aggregate_deinit(&s->sum);
	by_thread_deinit(&s->by_thread);
	free(s->busiest);
	free(s->values);
	s->busiest = NULL;
	s->values = NULL;
	return r;
}

static int put_file(struct speedscope *s)
{
	const struct profile *all = s->p;
	uint32_t asked = profile_asked_type(all, s->info->asked), active = 0;
	int r = 0;

	(void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n",
		    s->out);
	(void)fputs("\"exporter\":\"perfwalk\",\"name\":", s->out);
	json_put_string(s->out, s->info->title ? s->info->title : "perfwalk");
	(void)fputs(",\n", s->out);
	put_frames(s);
	(void)fputs(",\n\"profiles\":[", s->out);
	for (uint32_t i = 0; i < all->n_types && r == 0; i++) {
		struct profile view;

		profile_view(all, i, &view);
		s->p = &view;
		if (i == asked)
			active = s->n_written;
		s->type = all->n_types > 1 ? profile_type_name(all, i) : NULL;
		(void)fputs(i ? ",\n" : "", s->out);
		r = put_type(s);
	}
	s->p = all;
	(void)fprintf(s->out, "],\"activeProfileIndex\":%" PRIu32 "}\n", active);
	return r;
}

int render_speedscope(const struct profile *p, const struct render_info *info, FILE *out)
{
	struct speedscope s = {.p = p, .info = info, .out = out};
	int r = places_build(&s.places, p);

	if (r == 0)
		r = put_file(&s);
	places_deinit(&s.places);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
