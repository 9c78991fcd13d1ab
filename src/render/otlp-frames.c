/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, functions, frames and stacks as dictionary entries. Each row becomes an entry once in a
 * payload and is remembered by its row number, so a sample costs one look-up of its stack.
 *
 * Two rules of the receivers shape this:
 *
 * A Mapping must have a build id of some kind. A module without one (the kernel without notes, JIT
 * code, a file that was gone) gets no Mapping: its locations have mapping 0, "unknown", and the
 * names of unnamed frames have the module. In files, such a module is a Mapping with only a name,
 * because otherwise the modules of most imported files would be lost.
 *
 * A mapping counts as symbolized only if all its locations have lines. So if we could name one of
 * its frames, all its locations have lines, the others with "[module+0xaddress]". Otherwise none
 * has, and a backend with symbols for the build id can name them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/frame.h"
#include "src/render/otlp-internal.h"
#include "util/cleanup.h"
#include "util/hash.h"

void otlp_frames_deinit(struct otlp_frames *f)
{
	otlp_dictionary_deinit(&f->dictionary);
	free(f->modules);
	free(f->functions);
	free(f->frames);
	free(f->stacks);
	free(f->module_has_names);
	array_deinit(&f->scratch);
}

void otlp_frames_begin(struct otlp_frames *f)
{
	f->payload++;
	otlp_dictionary_clear(&f->dictionary);
}

/* Does the module have a name of its own? */
static bool is_named(const struct profile_module *m)
{
	return m->kind == PROFILE_MODULE_FILE
		       ? m->path != STRID_EMPTY
		       : m->kind == PROFILE_MODULE_VDSO || m->kind == PROFILE_MODULE_JIT;
}

static int32_t put_module(struct otlp_frames *f, uint32_t module)
{
	const struct profile_module *m = &f->p->modules.items[module];
	const char *go = profile_text(f->p, m->go_build_id),
		   *htlhash = profile_text(f->p, m->htlhash);
	const char *path = profile_text(f->p, m->path);
	struct otlp_dictionary *d = &f->dictionary;
	struct otlp_memo *memo = &f->modules[module];
	struct otlp_mapping mapping = {
		m->memory_start, m->memory_limit, m->file_offset, 0, NULL, 0};
	char hex[2 * PROFILE_MAX_BUILD_ID + 1] = "";
	int32_t ids[3], index;

	if (otlp_memo_get(f, memo, &index))
		return index;
	for (uint32_t i = 0; i < m->n_build_id && i < PROFILE_MAX_BUILD_ID; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	if (*hex)
		ids[mapping.n_attributes++] =
			otlp_put_attribute_string(d, "process.executable.build_id.gnu", hex);
	if (*go)
		ids[mapping.n_attributes++] =
			otlp_put_attribute_string(d, "process.executable.build_id.go", go);
	if (*htlhash)
		ids[mapping.n_attributes++] = otlp_put_attribute_string(
			d, "process.executable.build_id.htlhash", htlhash);
	if (!mapping.n_attributes && !(f->all_modules && is_named(m)))
		return otlp_memo_set(f, memo, 0);
	mapping.attributes = ids;
	mapping.filename = otlp_put_string(d, *path ? path : frame_module_name(f->p, module));
	return otlp_memo_set(f, memo, otlp_put_mapping(d, &mapping));
}

/* The first module with the same build id; itself, if it is the first. 0 or -ENOMEM. */
static int first_with_build_id(const struct profile *p, struct hash_index *ix, uint32_t module,
			       uint32_t *ret)
{
	const struct profile_module *m = &p->modules.items[module];
	uint64_t hash = hash_bytes(m->build_id, m->n_build_id, 0);
	uint32_t slot = hash_index_first(ix, hash), row;

	while ((row = hash_index_row(ix, slot)) != HASH_INDEX_NONE) {
		const struct profile_module *o = &p->modules.items[row];

		if (hash_index_match(ix, slot, hash) && o->n_build_id == m->n_build_id &&
		    memcmp(o->build_id, m->build_id, m->n_build_id) == 0) {
			*ret = row;
			return 0;
		}
		slot = hash_index_next(ix, slot);
	}
	*ret = module;
	return hash_index_add(ix, hash, module);
}

/*
 * A program in several containers is several modules, but one Mapping if only their uids differ. So
 * if one module has names, all with its build id have. Without a build id all frames have names
 * anyway, see put_frame().
 */
static int find_named_mappings(struct otlp_frames *f)
{
	_cleanup_(hash_index_deinit) struct hash_index ix = HASH_INDEX_INIT;
	_cleanup_free_ uint32_t *first = calloc((size_t)f->p->modules.n + 1, sizeof(*first));
	bool *named = f->module_has_names;

	if (!first)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->p->frames.n; i++)
		named[f->p->frames.items[i].module] |= f->p->frames.items[i].n_lines > 0;
	for (uint32_t i = 0; i < f->p->modules.n; i++) {
		first[i] = i;
		if (f->p->modules.items[i].n_build_id &&
		    first_with_build_id(f->p, &ix, i, &first[i]) < 0)
			return -ENOMEM;
		named[first[i]] |= named[i];
	}
	for (uint32_t i = 0; i < f->p->modules.n; i++)
		named[i] = named[first[i]];
	return 0;
}

/* Of no payload. All rows are used: calloc() would fault each page in twice, to be read and to be
 * written. */
static struct otlp_memo *memos_new(uint32_t n)
{
	struct otlp_memo *memos = malloc(((size_t)n + 1) * sizeof(*memos));

	if (memos)
		memset(memos, 0xff, ((size_t)n + 1) * sizeof(*memos));
	return memos;
}

int otlp_frames_init(struct otlp_frames *f, const struct profile *p)
{
	*f = (struct otlp_frames){.p = p, .scratch = ARRAY_INIT(UINT32_MAX)};
	otlp_dictionary_init(&f->dictionary);
	f->modules = memos_new(p->modules.n);
	f->functions = memos_new(p->functions.n);
	f->frames = memos_new(p->frames.n);
	f->stacks = memos_new(p->stacks.n);
	f->module_has_names = calloc((size_t)p->modules.n + 1, sizeof(*f->module_has_names));
	if (!f->modules || !f->functions || !f->frames || !f->stacks || !f->module_has_names)
		return -ENOMEM;
	return find_named_mappings(f);
}

static int32_t put_function(struct otlp_frames *f, uint32_t function)
{
	const struct profile_function *fn = &f->p->functions.items[function];
	struct otlp_function pb = {.start_line = fn->start_line};
	struct otlp_memo *memo = &f->functions[function];
	char name[FRAME_MAX_NAME];
	int32_t index;

	if (otlp_memo_get(f, memo, &index))
		return index;
	(void)frame_function_name(f->p, function, name, sizeof(name));
	pb.name = otlp_put_string(&f->dictionary, name);
	if (fn->system_name != fn->name)
		pb.system_name =
			otlp_put_string(&f->dictionary, profile_text(f->p, fn->system_name));
	pb.filename = otlp_put_string(&f->dictionary, profile_text(f->p, fn->file));
	return otlp_memo_set(f, memo, otlp_put_function(&f->dictionary, &pb));
}

/* The runtime that generates a process's code, as far as its executable shows. */
static const char *jit_frame_type(const struct profile *p, uint32_t process)
{
	static const struct {
		const char *prefix, *type;
	} runtimes[] = {{"node", "v8js"},      {"java", "jvm"},	    {"beam", "beam"},
			{"python", "cpython"}, {"ruby", "ruby"},    {"php", "php"},
			{"dotnet", "dotnet"},  {"luajit", "luajit"}};
	const char *exe;

	if (process >= p->processes.n)
		return "native";
	exe = frame_basename(profile_text(p, p->processes.items[process].executable_path));
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (strncmp(exe, runtimes[i].prefix, strlen(runtimes[i].prefix)) == 0)
			return runtimes[i].type;
	}
	return "native";
}

/* The language of the function that has the code, else of the module. */
static const char *frame_language(const struct profile *p, const struct profile_frame *f)
{
	strid language = STRID_EMPTY;

	if (f->n_lines)
		language =
			p->functions.items[p->lines.items[f->first_line + f->n_lines - 1].function]
				.language;
	return profile_text(p, language != STRID_EMPTY ? language
						       : p->modules.items[f->module].language);
}

static const char *frame_type(const struct profile *p, const struct profile_frame *f)
{
	const struct profile_module *m = &p->modules.items[f->module];
	const char *language = frame_language(p, f);

	switch (m->kind) {
	case PROFILE_MODULE_KERNEL:
		return "kernel";
	case PROFILE_MODULE_MARKER:
	case PROFILE_MODULE_DATA:
		return "abort-marker";
	case PROFILE_MODULE_JIT:
		return jit_frame_type(p, m->process);
	case PROFILE_MODULE_RUNTIME:
		return profile_runtime_name(m->runtime);
	default:
		return strcmp(language, "go") == 0 || strcmp(language, "rust") == 0 ? language
										    : "native";
	}
}

static int32_t put_named_only(struct otlp_frames *f, const char *name, struct otlp_line *line)
{
	struct otlp_function fn = {.name = otlp_put_string(&f->dictionary, name)};

	*line = (struct otlp_line){.function = otlp_put_function(&f->dictionary, &fn)};
	return line->function;
}

/* Most frames are of the same type as the one before. */
static int32_t put_type(struct otlp_frames *f, const char *type)
{
	int32_t index;

	if (type == f->type && otlp_memo_get(f, &f->type_memo, &index))
		return index;
	f->type = type;
	return otlp_memo_set(f, &f->type_memo,
			     otlp_put_attribute_string(&f->dictionary, "profile.frame.type", type));
}

static int32_t put_frame(struct otlp_frames *f, uint32_t frame)
{
	const struct profile_frame *fr = &f->p->frames.items[frame];
	const struct profile_module *m = &f->p->modules.items[fr->module];
	uint32_t n = fr->n_lines > OTLP_MAX_LINES ? OTLP_MAX_LINES : fr->n_lines;
	struct otlp_line lines[OTLP_MAX_LINES];
	struct otlp_location location = {.address = fr->address, .lines = lines, .n_lines = n};
	struct otlp_memo *memo = &f->frames[frame];
	int32_t index;

	if (otlp_memo_get(f, memo, &index))
		return index;
	location.mapping = put_module(f, fr->module);
	location.attribute = put_type(f, frame_type(f->p, fr));
	if (profile_is_marked(f->p, frame))
		location.address = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_line *l =
			&f->p->lines.items[fr->first_line + fr->n_lines - n + i];

		lines[i] = (struct otlp_line){put_function(f, l->function), l->line, l->column};
	}
	if (!n && (f->module_has_names[fr->module] || !location.mapping || !m->n_build_id)) {
		char name[FRAME_MAX_NAME];

		(void)frame_fallback_name(f->p, frame, name, sizeof(name));
		(void)put_named_only(f, name, lines);
		location.n_lines = 1;
	}
	return otlp_memo_set(f, memo, otlp_put_location(&f->dictionary, &location));
}

/* The location of a marker that is not a frame of the profile. */
static int32_t put_marker(struct otlp_frames *f, enum profile_marker marker)
{
	struct otlp_line line;
	struct otlp_location location = {.lines = &line, .n_lines = 1};

	(void)put_named_only(f, profile_marker_text(marker), &line);
	location.attribute = put_type(f, "abort-marker");
	return otlp_put_location(&f->dictionary, &location);
}

int32_t otlp_put_profile_stack(struct otlp_frames *f, uint32_t stack, uint32_t max_frames)
{
	uint32_t n;
	const uint32_t *frames = profile_stack_frames(f->p, stack, &n);
	bool cut = n > max_frames;
	int32_t index, *item;

	if (otlp_memo_get(f, &f->stacks[stack], &index))
		return index;
	array_clear(&f->scratch);
	for (uint32_t i = 0; i < (cut ? max_frames : n) + (cut ? 1 : 0); i++) {
		item = array_push(&f->scratch);
		if (!item) {
			f->dictionary.failed = true;
			return 0;
		}
		*item = i < max_frames ? put_frame(f, frames[i])
				       : put_marker(f, PROFILE_MARKER_TOO_DEEP);
	}
	return otlp_memo_set(f, &f->stacks[stack],
			     otlp_put_stack(&f->dictionary, f->scratch.items, f->scratch.n));
}
