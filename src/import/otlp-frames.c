/* SPDX-License-Identifier: Apache-2.0 */
/* A location becomes a frame when a stack first needs it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire-read.h"
#include "src/import/otlp-internal.h"
#include "util/cleanup.h"
#include "util/cursor.h"

static int mapping_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct import_frame *f = ctx;
	const char *text, *key;
	uint64_t number;

	key = otlp_attribute(o, index, &text, &number);
	if (key && text && strcmp(key, "process.executable.build_id.gnu") == 0) {
		const struct span s = {(const uint8_t *)text, strlen(text)};

		f->build_id = otlp_keep_text(o, TEXT_BUILD_ID, &s);
	}
	return 0;
}

/* Code that a runtime compiled is in anonymous memory, or in a mapping that the writer named; its
 * other frames have no address. */
static void set_runtime(struct import_frame *f, enum profile_runtime runtime)
{
	if (f->kind == PROFILE_MODULE_RUNTIME) /* the writer named the mapping so */
		return;
	f->kind = f->module || f->address ? PROFILE_MODULE_JIT : PROFILE_MODULE_RUNTIME;
	f->runtime = runtime;
}

static int location_attribute(struct otlp_file *o, void *ctx, uint64_t index)
{
	struct import_frame *f = ctx;
	enum profile_runtime runtime;
	const char *text, *key;
	uint64_t number;

	key = otlp_attribute(o, index, &text, &number);
	if (!key || !text || strcmp(key, "profile.frame.type") != 0)
		return 0;
	if (strcmp(text, "kernel") == 0)
		f->kind = PROFILE_MODULE_KERNEL;
	else if (strcmp(text, "abort-marker") == 0)
		f->kind = PROFILE_MODULE_MARKER;
	else if (strcmp(text, "go") == 0 || strcmp(text, "rust") == 0)
		f->language = strcmp(text, "go") == 0 ? "go" : "rust";
	runtime = profile_runtime_by_name(text);
	if (runtime != PROFILE_N_RUNTIMES)
		set_runtime(f, runtime);
	return 0;
}

static void mapping_read(struct otlp_file *o, uint64_t index, struct import_frame *f)
{
	const struct span *m = index ? otlp_row(o, T_MAPPING, index) : NULL;

	if (!m)
		return;
	f->memory_start = otlp_number(m, 1);
	f->memory_limit = otlp_number(m, 2);
	f->file_offset = otlp_number(m, 3);
	f->module = otlp_text(o, TEXT_MODULE, otlp_number(m, 4));
	import_set_kind(f);
	(void)otlp_each_number(o, m, 5, mapping_attribute, f);
}

static char *text_copy(struct otlp_file *o, uint64_t index)
{
	const char *text = otlp_text(o, TEXT_SCRATCH, index);

	return text ? strdup(text) : NULL;
}

static uint32_t location_frame(struct otlp_file *o, uint64_t index)
{
	struct import_line lines[IMPORT_MAX_CHAIN + 1] = {0};
	char *texts[3 * (IMPORT_MAX_CHAIN + 1)] = {NULL};
	struct import_frame frame = {.kind = PROFILE_MODULE_FILE, .lines = lines};
	const struct span *location = &o->tables[T_LOCATION].items[index];
	struct cursor c = cursor_make(location->bytes, location->n);
	struct wire_field f;

	mapping_read(o, otlp_number(location, 1), &frame);
	frame.address = otlp_number(location, 2);
	while (wire_read_field(&c, &f)) {
		const struct span line = {f.bytes, f.n}, *function;
		char **text;

		if (f.number != 3 || f.type != WIRE_BYTES)
			continue;
		/* If there are too many lines, the last is the outermost function. */
		if (frame.n > IMPORT_MAX_CHAIN)
			frame.n--;
		text = texts + 3 * frame.n;
		function = otlp_row(o, T_FUNCTION, otlp_number(&line, 1));
		if (!function)
			continue;
		for (int i = 0; i < 3; i++) /* fields may be left from a line without a name */
			free(text[i]);
		text[0] = text_copy(o, otlp_number(function, 1));
		text[1] = text_copy(o, otlp_number(function, 2));
		text[2] = text_copy(o, otlp_number(function, 3));
		lines[frame.n] =
			(struct import_line){.name = text[0] ? text[0] : text[1],
					     .system_name = text[1],
					     .file = text[2],
					     .line = (uint32_t)otlp_number(&line, 2),
					     .column = (uint32_t)otlp_number(&line, 3),
					     .start_line = (uint32_t)otlp_number(function, 4)};
		frame.n += lines[frame.n].name != NULL;
	}
	(void)otlp_each_number(o, location, 4, location_attribute, &frame);
	if (frame.n == 1 && import_is_marker(lines[0].name, &frame.address))
		frame.kind = PROFILE_MODULE_MARKER;
	else if (frame.kind == PROFILE_MODULE_MARKER)
		frame.kind = PROFILE_MODULE_FILE; /* from another profiler */
	o->frames[index] = import_add_frame(o->im, &frame);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	return o->frames[index];
}

int otlp_push_location(struct otlp_file *o, void *ctx, uint64_t index)
{
	if (index >= o->tables[T_LOCATION].n)
		return import_damaged(
			o->im, "a stack names location %" PRIu64 ", which does not exist", index);
	return import_push(o->im, o->frames[index] == PROFILE_NONE ? location_frame(o, index)
								   : o->frames[index]);
}
