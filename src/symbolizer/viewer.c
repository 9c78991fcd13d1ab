/* SPDX-License-Identifier: Apache-2.0 */
#include "src/symbolizer/viewer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/process/role.h"
#include "src/render/amount.h"
#include "src/render/render.h"
#include "src/symbolizer/setup.h"
#include "util/cleanup.h"
#include "util/file-identity.h"
#include "util/log.h"
#include "util/text.h"

#define MAX_FILE_BYTES (UINT64_C(1) << 30) /* of an input, inflated */

void viewer_deinit(struct viewer *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		free(v->inputs[i].path);
		(void)close_fd(v->inputs[i].fd);
	}
	free(v->symbol);
	free(v->comm);
	free(v->container);
	free(v->service);
	free(v->trace);
	free(v->span);
	free(v->event);
	free(v->sum);
	import_facts_deinit(&v->facts);
	import_facts_deinit(&v->before_facts);
	profile_deinit(&v->before);
}

int viewer_text(struct viewer *v, uint32_t kind, const char *text, int fd)
{
	switch (kind) {
	case TEXT_INPUT:
		if (v->n == VIEW_MAX_INPUTS || fd < 0)
			return -EBADMSG;
		v->inputs[v->n].path = strdup(text);
		v->inputs[v->n].fd = fd;
		return v->inputs[v->n++].path ? 0 : -ENOMEM;
	case TEXT_SYMBOL:
		return text_set(&v->symbol, text);
	case TEXT_COMM:
		return text_set(&v->comm, text);
	case TEXT_CONTAINER:
		return text_set(&v->container, text);
	case TEXT_SERVICE:
		return text_set(&v->service, text);
	case TEXT_TRACE:
		return text_set(&v->trace, text);
	case TEXT_SPAN:
		return text_set(&v->span, text);
	case TEXT_EVENT:
		return text_set(&v->event, text);
	default:
		return 1;
	}
}

/* As import_fd(). */
static int import_input(struct viewer *v, struct role *role, uint32_t i, bool before,
			struct profile *p, char error[IMPORT_ERROR_MAX])
{
	const char *path = v->inputs[i].path;
	char head[IMPORT_HEAD_BYTES];
	struct file_identity id;
	ssize_t n = pread(v->inputs[i].fd, head, sizeof(head), 0);
	int r;

	if (n < 0)
		return -errno;
	role_job_begin(role);
	if (file_identity_get(v->inputs[i].fd, &id) == 0)
		role_job_read(role, &id, path);
	r = import_fd(before ? &v->before : p, before ? &v->before_facts : &v->facts,
		      v->inputs[i].fd, import_detect(head, (size_t)n, path), v->event,
		      MAX_FILE_BYTES, error);
	role_job_end(role);
	return r;
}

static int read_input(struct viewer *v, struct role *role, uint32_t i, bool before,
		      struct profile *p)
{
	const char *path = v->inputs[i].path;
	char error[IMPORT_ERROR_MAX] = "";
	int r = import_input(v, role, i, before, p, error);

	if (r < 0)
		log_error("%s cannot be read: %s", path, *error ? error : strerror(-r));
	else if (r == IMPORT_CHOSE)
		log_info("%s: %s", path, error);
	else if (r > 0)
		log_warning("%s: %s", path, error);
	return r < 0 ? r : 0;
}

/* What the first is compared with has to be of its kind. */
static void prefer_kind(struct viewer *v)
{
	const struct import_measure *m = &v->before_facts.measure;

	if (m->what == STRID_EMPTY)
		return;
	v->facts.like_what = profile_text(&v->before, m->what);
	v->facts.like_unit = profile_text(&v->before, m->unit);
}

/* Counts of samples that stand for different periods say nothing beside each other. */
static int use_one_unit(struct viewer *v, struct profile *p)
{
	struct profile *const sides[2] = {&v->before, p};

	if (!profile_has_period(p) || !profile_has_period(&v->before) ||
	    (p->types[0].weighted == v->before.types[0].weighted &&
	     profile_period(p) == profile_period(&v->before)))
		return 0;
	for (int i = 0; i < 2; i++) {
		if (!sides[i]->types[0].weighted && !profile_weigh(sides[i])) {
			log_error("%s cannot be compared: no memory for its units",
				  v->inputs[i].path);
			return -ENOMEM;
		}
	}
	return 0;
}

/* What is compared. */
static void name_difference(struct viewer *v)
{
	const char *before = strrchr(v->inputs[0].path, '/'),
		   *after = strrchr(v->inputs[1].path, '/');
	char *title;

	if (asprintf(&title, "%s, compared with %s before", after ? after + 1 : v->inputs[1].path,
		     before ? before + 1 : v->inputs[0].path) < 0)
		return;
	free(v->facts.title);
	v->facts.title = title;
}

/* What is below 0 has no share of a whole. */
static int refuse_differences(const struct viewer *v, const struct profile *p)
{
	const struct profile *const sides[2] = {&v->before, p};

	for (uint32_t i = 0; i < v->n && i < 2; i++) {
		if (!profile_is_difference(sides[i]))
			continue;
		log_error("%s has values below 0: it is already a difference, and has no shares to "
			  "compare; perfwalk report shows it",
			  v->inputs[i].path);
		return -EINVAL;
	}
	return 0;
}

int viewer_read(struct viewer *v, struct role *role, enum view_mode mode, struct profile *p)
{
	int r = 0;

	if (mode == VIEW_DIFF)
		profile_init(&v->before, p->max_bytes);
	for (uint32_t i = 0; i < v->n && r == 0; i++) {
		r = read_input(v, role, i, mode == VIEW_DIFF && i == 0, p);
		if (r == 0 && mode == VIEW_DIFF && i == 0)
			prefer_kind(v);
	}
	if (r < 0 || mode != VIEW_DIFF)
		return r;
	if (v->n == 2)
		name_difference(v);
	r = refuse_differences(v, p);
	return r < 0 ? r : use_one_unit(v, p);
}

int viewer_list_windows(struct viewer *v, struct role *role,
			const struct render_report_options *options, uint64_t max_bytes, FILE *out)
{
	const struct import_facts fresh = v->facts;
	int result = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		char error[IMPORT_ERROR_MAX] = "";
		struct profile p;
		int r;

		profile_init(&p, max_bytes);
		/* That some have other values alone is nothing to warn of. */
		r = import_input(v, role, i, false, &p, error);
		if (r >= 0)
			r = render_window(&p, options, v->inputs[i].path, out);
		if (r < 0)
			log_error("%s cannot be read: %s", v->inputs[i].path,
				  *error ? error : strerror(-r));
		result = result < 0 ? result : r;
		profile_deinit(&p);
		import_facts_deinit(&v->facts);
		v->facts = fresh;
	}
	return result;
}

/* Samples of different periods. */
static char *say_sum(const struct import_facts *f, const struct profile *p)
{
	const char *unit = profile_text(p, f->measure.unit);
	char *text = NULL, amount[72];
	size_t n;
	FILE *out;

	if (f->n_periods < 2)
		return NULL;
	out = open_memstream(&text, &n);
	if (!out)
		return NULL;
	(void)fputs("added up by their weight:", out);
	for (uint32_t i = 0; i < f->n_periods; i++) {
		(void)fputs(i ? ", " : " ", out);
		if (f->periods[i])
			(void)fprintf(
				out, "samples of %s",
				amount_text(amount, sizeof(amount), (int64_t)f->periods[i], unit));
		else
			(void)fputs("values", out);
	}
	return fclose(out) == 0 ? text : NULL;
}

static void take_facts(const struct import_facts *f, struct render_info *info)
{
	info->host_name = f->host_name;
	info->kernel_release = f->kernel_release;
	info->title = f->title;
	info->n_cpus = f->n_cpus;
}

void viewer_info(struct viewer *v, const struct profile *p, struct render_info *info)
{
	take_facts(&v->facts, info);
	free(v->sum);
	info->sum = v->sum = say_sum(&v->facts, p);
	take_facts(&v->before_facts, &v->before_info);
	info->before = &v->before_info;
}
