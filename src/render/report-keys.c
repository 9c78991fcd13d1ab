/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the keys for threads and frames. Values are interned, so a function of a stack
 * costs a hash of two numbers: the owner's and the place's. Places are cached by frame.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/profile/labels.h"
#include "src/render/first-frame.h"
#include "src/render/frame.h"
#include "src/render/report-internal.h"
#include "util/text.h"

#define MAX_CHAIN 256

static const struct {
	const char *name, *title;
	bool owner;
} keys[REPORT_N_KEYS] = {
	[REPORT_COMM] = {"comm", "COMM", true},
	[REPORT_CONTAINER] = {"container", "CONTAINER", true},
	[REPORT_UNIT] = {"unit", "UNIT", true},
	[REPORT_SERVICE] = {"service", "SERVICE", true},
	[REPORT_THREAD] = {"thread", "THREAD", true},
	[REPORT_SPAN] = {"span", "SPAN", true},
	[REPORT_MODULE] = {"module", "MODULE", false},
	[REPORT_SYMBOL] = {"symbol", "SYMBOL", false},
	[REPORT_LINE] = {"line", "LINE", false},
};

const char *render_report_key_name(enum render_report_key key)
{
	return keys[key].name;
}

bool report_key_is_owner(enum render_report_key key)
{
	return keys[key].owner;
}

const char *report_key_title(enum render_report_key key)
{
	return keys[key].title;
}

static void owner_value(const struct report *r, enum render_report_key key, uint32_t thread,
			char *buf, size_t size)
{
	const struct profile *p = r->p;
	const struct profile_thread *t = &p->threads.items[thread];
	const struct profile_process *proc = &p->processes.items[t->process];
	const char *name;
	char tid[32];

	buf[0] = '\0';
	switch (key) {
	case REPORT_COMM:
		(void)frame_process_name(p, t->process, buf, size);
		break;
	case REPORT_CONTAINER:
		name = profile_text(p, proc->container_name);
		(void)text_clean(buf, size, *name ? name : profile_text(p, proc->container_id),
				 *name ? SIZE_MAX : REPORT_CONTAINER_DIGITS);
		break;
	case REPORT_UNIT:
		(void)text_clean(buf, size, profile_text(p, proc->systemd_unit), SIZE_MAX);
		break;
	case REPORT_SERVICE:
		(void)frame_service_name(p, t->process, buf, size);
		break;
	case REPORT_SPAN:
		(void)label_find(profile_text(p, t->labels), LABEL_SPAN, buf, size);
		break;
	default:
		(void)text_clean(buf, size - 16, profile_text(p, t->name), SIZE_MAX);
		(void)snprintf(tid, sizeof(tid), "%s%" PRIu32, *buf ? "/" : "", t->tid);
		if (t->tid)
			(void)strcat(buf, tid);
	}
}

static void place_value(const struct report *r, enum render_report_key key, uint32_t frame,
			const struct profile_line *line, char *buf, size_t size)
{
	const struct profile *p = r->p;
	uint32_t module = p->frames.items[frame].module;
	const char *file;
	char name[256];

	buf[0] = '\0';
	switch (key) {
	case REPORT_MODULE:
		(void)text_clean(
			buf, size,
			frame_function_module(p, module, line ? line->function : PROFILE_NONE),
			SIZE_MAX);
		break;
	case REPORT_SYMBOL:
		if (line)
			(void)frame_function_name(p, line->function, buf, size);
		else
			(void)frame_fallback_name(p, frame, buf, size);
		break;
	default:
		file = line ? profile_text(p, p->functions.items[line->function].file) : "";
		(void)text_clean(name, sizeof(name), frame_basename(file), SIZE_MAX);
		if (line && *name)
			(void)snprintf(buf, size, "%s:%" PRIu32, name, line->line);
	}
}

/* The values of the owner's or the place's keys, with separators between. */
static uint32_t put_values(struct report *r, bool owner, uint32_t row,
			   const struct profile_line *line)
{
	char text[(REPORT_N_KEYS + 1) * FRAME_MAX_NAME];
	bool first = true;
	size_t n = 0;

	for (uint32_t i = 0; i < r->o->n_keys; i++) {
		enum render_report_key key = (enum render_report_key)r->o->keys[i];

		if (keys[key].owner != owner)
			continue;
		if (!first)
			text[n++] = REPORT_SEPARATOR;
		first = false;
		if (owner)
			owner_value(r, key, row, text + n, FRAME_MAX_NAME);
		else
			place_value(r, key, row, line, text + n, FRAME_MAX_NAME);
		n += strlen(text + n);
	}
	text[n] = '\0';
	return strtab_put_n(&r->texts, text, n);
}

uint32_t report_owner(struct report *r, uint32_t thread)
{
	if (!r->by_owner)
		return STRID_EMPTY;
	if (!r->owners[thread])
		r->owners[thread] = put_values(r, true, thread, NULL) + 1;
	return r->owners[thread] - 1;
}

/* The places of a frame's functions, innermost first; NULL without memory. */
static const uint32_t *places_of(struct report *r, uint32_t frame, uint32_t *ret_n)
{
	const struct profile_frame *f = &r->p->frames.items[frame];
	struct report_places *have = &r->frames[frame];
	uint32_t n = f->n_lines < MAX_CHAIN ? f->n_lines : MAX_CHAIN;

	if (have->n == 0) {
		have->first = r->places.n;
		for (uint32_t i = 0; i < (n ? n : 1); i++) {
			const struct profile_line *line =
				n ? &r->p->lines.items[f->first_line + f->n_lines - n + i] : NULL;
			uint32_t *place = array_push(&r->places);

			if (!place)
				return NULL;
			*place = put_values(r, false, frame, line);
		}
		have->n = n ? n : 1;
	}
	*ret_n = have->n;
	return r->places.items + have->first;
}

int report_each_place(struct report *r, uint32_t stack,
		      int (*fn)(struct report *r, void *ctx, uint32_t place, uint32_t at),
		      void *ctx)
{
	uint32_t n, at = 0;
	const uint32_t *frames = profile_stack_frames(r->p, stack, &n);
	int e = 0;

	for (uint32_t i = first_frame(r->p, stack); i < n && e == 0; i++) {
		uint32_t n_places;
		const uint32_t *places = places_of(r, frames[i], &n_places);

		if (!places)
			return -ENOMEM;
		for (uint32_t k = 0; k < n_places && e == 0; k++)
			e = fn(r, ctx, r->places.items[r->frames[frames[i]].first + k], at++);
	}
	return e;
}

size_t report_symbol_of(const struct report *r, uint32_t place, const char **ret)
{
	const char *text = strtab_get(&r->texts, place);

	for (uint32_t i = 0; i < r->o->n_keys && r->o->keys[i] != REPORT_SYMBOL; i++) {
		if (!keys[r->o->keys[i]].owner) {
			text += strcspn(text, "\t");
			text += *text != '\0';
		}
	}
	*ret = text;
	return strcspn(text, "\t");
}

bool report_place_matches(const struct report *r, uint32_t place)
{
	char name[FRAME_MAX_NAME];
	const char *text;
	size_t n;

	if (r->only)
		return place == r->only->place;
	n = report_symbol_of(r, place, &text);
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
	return regexec(&r->symbol, name, 0, NULL, 0) == 0;
}
