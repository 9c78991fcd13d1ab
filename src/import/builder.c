/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a captured profile frames are places in code and get names later. Here frames come with names,
 * often without a place: all that a file says about a frame identifies it, names included. Files
 * that say the same share the frame.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/builder.h"
#include "src/profile/labels.h"
#include "util/text.h"

bool import_is_marker(const char *name, uint64_t *ret_marker)
{
	if (name[0] != '[')
		return false;
	for (uint64_t i = 0; i < PROFILE_N_MARKERS; i++) {
		if (strcmp(name, profile_marker_text(i)) == 0) {
			*ret_marker = i;
			return true;
		}
	}
	return false;
}

/* "[cpython]" ... */
static enum profile_runtime runtime_of_module(const char *module)
{
	char name[16];
	size_t n = strlen(module);

	if (n < 3 || n - 2 >= sizeof(name) || module[0] != '[' || module[n - 1] != ']')
		return PROFILE_N_RUNTIMES;
	memcpy(name, module + 1, n - 2);
	name[n - 2] = '\0';
	return profile_runtime_by_name(name);
}

void import_set_kind(struct import_frame *f)
{
	const char *module = f->module ? f->module : "";
	enum profile_runtime runtime = runtime_of_module(module);

	f->kind = PROFILE_MODULE_FILE;
	if (strncmp(module, "[kernel", 7) == 0 || strncmp(module, "[guest.kernel", 13) == 0) {
		f->kind = PROFILE_MODULE_KERNEL;
	} else if (strcmp(module, "[vdso]") == 0) {
		f->kind = PROFILE_MODULE_VDSO;
	} else if (strcmp(module, "[jit]") == 0 || strcmp(module, "//anon") == 0) {
		f->kind = PROFILE_MODULE_JIT;
	} else if (runtime != PROFILE_N_RUNTIMES) {
		f->kind = PROFILE_MODULE_RUNTIME;
		f->runtime = runtime;
	}
}

static void read_build_id(struct profile_module *m, const char *hex)
{
	unsigned int byte;

	while (hex && hex[0] && hex[1] && m->n_build_id < PROFILE_MAX_BUILD_ID &&
	       sscanf(hex, "%2x", &byte) == 1) {
		m->build_id[m->n_build_id++] = (uint8_t)byte;
		hex += 2;
	}
}

static uint32_t add_module(struct import *im, const struct import_frame *f)
{
	struct profile_module m = {
		.kind = f->kind,
		.process = PROFILE_NONE,
		.path = f->kind == PROFILE_MODULE_FILE ? import_text(im, f->module) : STRID_EMPTY,
		.memory_start = f->memory_start,
		.memory_limit = f->memory_limit,
		.file_offset = f->file_offset,
	};

	if (f->kind == PROFILE_MODULE_RUNTIME)
		return profile_add_runtime(im->p, f->runtime);
	switch (f->kind) {
	case PROFILE_MODULE_KERNEL:
		m.uid = PROFILE_UID_KERNEL;
		break;
	case PROFILE_MODULE_VDSO:
		m.uid = PROFILE_UID_VDSO;
		break;
	case PROFILE_MODULE_MARKER:
		m.uid = PROFILE_UID_MARKER;
		break;
	case PROFILE_MODULE_FILE:
		/* A path may have several builds. */
		m.uid = PROFILE_UID_FIRST_FILE + 1 + m.path +
			((uint64_t)import_text(im, f->build_id) << 32);
		m.language = import_text(im, f->language);
		read_build_id(&m, f->build_id);
		break;
	default: /* all JIT code, of any process */
		m.uid = PROFILE_UID_FIRST_FILE;
	}
	return profile_add_module(im->p, &m);
}

static uint32_t add_function(struct import *im, const struct import_frame *f,
			     const struct import_line *l)
{
	struct profile_function function = {
		.name = import_text(im, l->name),
		.system_name = import_text(im, l->system_name ? l->system_name : l->name),
		.file = import_text(im, l->file),
		.start_line = l->start_line,
		.language = import_text(im, f->language),
	};

	return profile_add_function(im->p, &function);
}

static uint32_t marker_frame(struct import *im)
{
	const struct import_frame f = {.kind = PROFILE_MODULE_MARKER};

	return profile_add_frame(im->p, add_module(im, &f), PROFILE_MARKER_TRUNCATED);
}

/* Stands for functions that were cut from a chain of inlined ones. */
static uint32_t marker_function(struct import *im)
{
	const struct import_frame none = {.kind = PROFILE_MODULE_MARKER};
	const struct import_line l = {.name = profile_marker_text(PROFILE_MARKER_TRUNCATED)};

	return add_function(im, &none, &l);
}

/* If a chain is too long, keeps the outermost function and as many of the innermost as fit. */
static bool put_lines(struct import *im, const struct import_frame *f, struct profile_line *lines,
		      uint32_t n)
{
	bool cut = f->n > n;

	for (uint32_t i = 0; i < n; i++) {
		const struct import_line *l = &f->lines[cut && i + 1 == n ? f->n - 1 : i];

		if (cut && i + 2 == n)
			lines[i] = (struct profile_line){.function = marker_function(im)};
		else
			lines[i] =
				(struct profile_line){add_function(im, f, l), l->line, l->column};
		if (lines[i].function == PROFILE_NONE)
			return false;
	}
	return true;
}

uint32_t import_add_frame(struct import *im, const struct import_frame *f)
{
	uint32_t n = f->n < IMPORT_MAX_CHAIN ? f->n : IMPORT_MAX_CHAIN, frame;
	struct profile_line lines[IMPORT_MAX_CHAIN];
	uint32_t module = add_module(im, f);

	if (module == PROFILE_NONE)
		return PROFILE_NONE;
	if (f->kind == PROFILE_MODULE_MARKER)
		return profile_add_frame(im->p, module, f->address);
	if (!put_lines(im, f, lines, n))
		return PROFILE_NONE;
	frame = profile_add_named_frame(
		im->p, module, f->kind == PROFILE_MODULE_RUNTIME ? 0 : f->address, lines, n);
	if (f->n > n)
		im->cut_function = lines[n - 2].function;
	return frame;
}

void import_begin_stack(struct import *im)
{
	array_clear(&im->stack);
	im->stack_is_cut = false;
}

/* Was the frame's chain of inlined functions cut when it was made? */
static bool is_cut(const struct import *im, uint32_t frame)
{
	const struct profile_frame *f = &im->p->frames.items[frame];

	return f->n_lines == IMPORT_MAX_CHAIN && im->cut_function != PROFILE_NONE &&
	       im->p->lines.items[f->first_line + f->n_lines - 2].function == im->cut_function;
}

int import_push(struct import *im, uint32_t frame)
{
	uint32_t *item;

	if (frame == PROFILE_NONE)
		return -ENOMEM;
	im->stack_is_cut |= is_cut(im, frame);
	if (im->stack.n == IMPORT_MAX_FRAMES) {
		frame = marker_frame(im);
		im->stack.items[IMPORT_MAX_FRAMES - 1] = frame;
		im->stack_is_cut = true;
		return frame == PROFILE_NONE ? -ENOMEM : 0;
	}
	item = array_push(&im->stack);
	if (!item)
		return -ENOMEM;
	*item = frame;
	return 0;
}

void import_drop_leaves(struct import *im, uint32_t n)
{
	n = n < im->stack.n ? n : im->stack.n;
	im->stack.n -= n;
	if (im->stack.n)
		memmove(im->stack.items, im->stack.items + n,
			im->stack.n * sizeof(*im->stack.items));
}

/* Stacks that the writer cut have a marker already, and are in its counters. */
static void count_cut(struct import *im, uint64_t n)
{
	im->n_cut += n;
	im->p->counters[PROFILE_STACKS_TRUNCATED] += n;
}

int import_add_sample(struct import *im, uint32_t thread, int64_t value, int64_t n,
		      uint64_t time_unix_ns, uint32_t cpu)
{
	struct profile_sample s = {.time_unix_ns = time_unix_ns, .thread = thread, .cpu = cpu};
	const struct profile *p = im->p;
	uint32_t n_kernel = 0;

	n = profile_size(im->counted ? value : n);
	s.value = profile_product(value, im->scale);
	s.n = n <= UINT32_MAX ? (uint32_t)n : 0;
	while (n_kernel < im->stack.n &&
	       p->modules.items[p->frames.items[im->stack.items[n_kernel]].module].kind ==
		       PROFILE_MODULE_KERNEL)
		n_kernel++;
	s.stack = profile_add_stack(im->p, im->stack.items, im->stack.n, n_kernel);
	if (thread == PROFILE_NONE || s.stack == PROFILE_NONE || !profile_add_sample(im->p, &s))
		return -ENOMEM;
	im->n_samples += n ? (uint64_t)n : 1;
	im->n_uncounted += !im->uncounted ? 0 : n ? (uint64_t)n : 1;
	if (im->stack_is_cut)
		count_cut(im, n ? (uint64_t)n : 1);
	return 0;
}

void import_counter(struct import *im, const char *name, uint64_t n)
{
	for (int c = 0; c < PROFILE_N_COUNTERS; c++) {
		if (strcmp(name, profile_counter_name((enum profile_counter)c)) == 0)
			im->p->counters[c] += n;
	}
}

static void take_text(char **field, const char *text, size_t n)
{
	if (!*field && n)
		*field = strndup(text, n);
}

/* There is one comment for each kind of values, in their order. */
static void comment_event(struct import *im, const char *name, uint32_t rate_hz)
{
	if (im->n_event_comments++ == im->kind)
		import_name_event(im, name, rate_hz);
}

/* Counters follow the event they belong to. */
static bool is_of_kind(const struct import *im)
{
	return im->n_event_comments == 0 || im->n_event_comments - 1 == im->kind;
}

bool import_comment_event(const char *text, char name[IMPORT_EVENT_MAX], uint32_t *ret_rate_hz)
{
	unsigned int n = 0;
	int at = 0;

	*ret_rate_hz = 0;
	if (sscanf(text, "%63s at %u Hz%n", name, &n, &at) == 2 && at)
		*ret_rate_hz = n;
	else
		at = sscanf(text, "%63[^,], one of %u%n", name, &n, &at) == 2 ? at : 0;
	return at > 0;
}

void import_comment(struct import *im, const char *text)
{
	const char *colon = strchr(text, ':'), *linux_ = strstr(text, ", Linux ");
	char name[IMPORT_EVENT_MAX];
	uint32_t rate_hz;

	if (strncmp(text, "perfwalk ", 9) == 0) {
		take_text(&im->facts->title, text, strlen(text));
	} else if (strncmp(text, "host ", 5) == 0 && linux_) {
		const char *release = linux_ + 8, *cpus = strstr(release, ", ");

		/* "?" means that the writer did not know. */
		if (strncmp(text + 5, "?,", 2) != 0)
			take_text(&im->facts->host_name, text + 5, (size_t)(linux_ - text - 5));
		if (*release != '?')
			take_text(&im->facts->kernel_release, release, strcspn(release, ","));
		if (cpus && !im->facts->n_cpus)
			im->facts->n_cpus = (uint32_t)strtoul(cpus + 2, NULL, 10);
	} else if (import_comment_event(text, name, &rate_hz)) {
		comment_event(im, name, rate_hz);
	} else if (colon && (size_t)(colon - text) < sizeof(name) && is_of_kind(im)) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
		import_counter(im, name, strtoull(colon + 1, NULL, 10));
	}
}

void import_keep_clean_label(FILE **out, const struct label *l, char **ret_text, size_t *ret_n)
{
	if (!*out)
		*out = open_memstream(ret_text, ret_n);
	if (*out)
		label_write(*out, l);
}

void import_keep_label(FILE **out, const struct label *l, char **ret_text, size_t *ret_n)
{
	char key[512], text[4096], unit[128];
	const struct label clean = {
		.key = key, .text = l->text ? text : NULL, .unit = unit, .number = l->number};

	(void)text_clean(key, sizeof(key), l->key, SIZE_MAX);
	(void)text_clean(text, sizeof(text), l->text ? l->text : "", SIZE_MAX);
	(void)text_clean(unit, sizeof(unit), l->unit, SIZE_MAX);
	import_keep_clean_label(out, &clean, ret_text, ret_n);
}
