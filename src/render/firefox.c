/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processed profile format of the Firefox Profiler (docs-developer/ in its sources; types in
 * src/types/profile.ts), version 61: the first in which all threads share functions, frames and
 * stacks. Every later profiler can upgrade it. Its tables are columns, one JSON array each.
 *
 * Its frames are places (places.h); a stack is a node {prefix, frame} of a tree, made here once for
 * each different path. A process that changed its name or cgroup has several rows with the same
 * pid: they get a suffix, "100.1", because the timeline groups by pid.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/by-thread.h"
#include "src/render/gzip.h"
#include "util/json.h"
#include "src/render/places.h"
#include "src/render/render.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/text.h"

#define FORMAT_VERSION	     61
#define GECKO_FORMAT_VERSION 31
#define MAX_NODES	     (1u << 24)

enum category {
	CATEGORY_OTHER,
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_JIT,
	CATEGORY_INCOMPLETE,
	CATEGORY_INTERPRETED
};

struct stack_node {
	uint32_t prefix; /* PROFILE_NONE: root */
	uint32_t place;
};

struct firefox {
	const struct profile *p;
	const struct render_info *info;
	FILE *out;
	struct places places;
	struct by_thread by_thread;
	ARRAY(struct stack_node) nodes;
	uint32_t *leaves;	       /* by stack: its node, PROFILE_NONE: empty */
	uint32_t *resources, *modules; /* by module: its resource; by resource: its module */
	uint32_t n_resources;
	uint32_t *pid_numbers; /* by process: number of earlier rows with its pid */
};

/* ---- Tables ---- */

static int find_node(struct firefox *x, struct hash_index *index, uint32_t prefix, uint32_t place,
		     uint32_t *ret)
{
	uint64_t hash = hash_u64((uint64_t)prefix << 32 | place);
	uint32_t slot = hash_index_first(index, hash), row;
	struct stack_node *n;

	while ((row = hash_index_row(index, slot)) != HASH_INDEX_NONE) {
		n = &x->nodes.items[row];
		if (n->prefix == prefix && n->place == place) {
			*ret = row;
			return 0;
		}
		slot = hash_index_next(index, slot);
	}
	n = array_push(&x->nodes);
	if (!n || hash_index_add(index, hash, x->nodes.n - 1) < 0)
		return -ENOMEM;
	*n = (struct stack_node){prefix, place};
	*ret = x->nodes.n - 1;
	return 0;
}

static int build_stacks(struct firefox *x)
{
	struct hash_index index = HASH_INDEX_INIT;
	int r = 0;

	x->leaves = calloc((size_t)x->p->stacks.n + 1, sizeof(*x->leaves));
	if (!x->leaves)
		return -ENOMEM;
	for (uint32_t s = 0; s < x->p->stacks.n && r == 0; s++) {
		uint32_t n, node = PROFILE_NONE;
		const uint32_t *frames = profile_stack_frames(x->p, s, &n);

		while (n-- > 0 && r == 0) {
			uint32_t end = x->places.first[frames[n] + 1];

			for (uint32_t i = x->places.first[frames[n]]; i < end && r == 0; i++)
				r = find_node(x, &index, node, i, &node);
		}
		x->leaves[s] = node;
	}
	hash_index_deinit(&index);
	return r;
}

static int build_resources(struct firefox *x)
{
	const struct profile *p = x->p;

	x->resources = calloc((size_t)p->modules.n + 1, sizeof(*x->resources));
	x->modules = calloc((size_t)p->modules.n + 1, sizeof(*x->modules));
	if (!x->resources || !x->modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->modules.n; i++) {
		x->resources[i] = PROFILE_NONE;
		if (p->modules.items[i].kind == PROFILE_MODULE_MARKER ||
		    p->modules.items[i].kind == PROFILE_MODULE_DATA ||
		    p->modules.items[i].kind == PROFILE_MODULE_NONE)
			continue;
		x->resources[i] = x->n_resources;
		x->modules[x->n_resources++] = i;
	}
	return 0;
}

static int number_pids(struct firefox *x)
{
	struct hash_index index = HASH_INDEX_INIT;
	int r = 0;

	x->pid_numbers = calloc((size_t)x->p->processes.n + 1, sizeof(*x->pid_numbers));
	if (!x->pid_numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->p->processes.n && r == 0; i++) {
		uint32_t pid = x->p->processes.items[i].pid, row, last = PROFILE_NONE;
		uint64_t hash = hash_u64(pid);
		uint32_t slot = hash_index_first(&index, hash);

		while ((row = hash_index_row(&index, slot)) != HASH_INDEX_NONE) {
			if (x->p->processes.items[row].pid == pid)
				last = row;
			slot = hash_index_next(&index, slot);
		}
		x->pid_numbers[i] = last == PROFILE_NONE ? 0 : x->pid_numbers[last] + 1;
		/* One entry for each pid: a pid with many rows must not become a long chain. */
		if (last != PROFILE_NONE)
			(void)hash_index_remove(&index, hash, last);
		r = hash_index_add(&index, hash, i);
	}
	hash_index_deinit(&index);
	return r < 0 ? -ENOMEM : 0;
}

/* ---- Columns ---- */

/* Writes the cell of a row. */
typedef void (*put_cell)(const struct firefox *x, uint32_t row);

static void put_column(const struct firefox *x, const char *name, uint32_t n, put_cell put)
{
	(void)fprintf(x->out, "\"%s\":[", name);
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			(void)fputc(',', x->out);
		put(x, i);
	}
	(void)fputs("],\n", x->out);
}

static void put_end(const struct firefox *x, uint32_t n)
{
	(void)fprintf(x->out, "\"length\":%" PRIu32 "}", n);
}

static void put_or_null(const struct firefox *x, uint32_t v, bool known)
{
	if (known)
		(void)fprintf(x->out, "%" PRIu32, v);
	else
		(void)fputs("null", x->out);
}

static void cell_null(const struct firefox *x, uint32_t row)
{
	(void)row;
	(void)fputs("null", x->out);
}

static void cell_zero(const struct firefox *x, uint32_t row)
{
	(void)row;
	(void)fputc('0', x->out);
}

static void cell_one(const struct firefox *x, uint32_t row)
{
	(void)row;
	(void)fputc('1', x->out);
}

static void cell_row(const struct firefox *x, uint32_t row)
{
	(void)fprintf(x->out, "%" PRIu32, row);
}

static void cell_false(const struct firefox *x, uint32_t row)
{
	(void)row;
	(void)fputs("false", x->out);
}

static void stack_prefix(const struct firefox *x, uint32_t row)
{
	put_or_null(x, x->nodes.items[row].prefix, x->nodes.items[row].prefix != PROFILE_NONE);
}

static void stack_frame(const struct firefox *x, uint32_t row)
{
	cell_row(x, x->nodes.items[row].place);
}

static const struct profile_module *module_of_place(const struct firefox *x, uint32_t row)
{
	uint32_t frame = x->places.places.items[row].frame;

	return &x->p->modules.items[x->p->frames.items[frame].module];
}

static void frame_address(const struct firefox *x, uint32_t row)
{
	uint64_t address = x->p->frames.items[x->places.places.items[row].frame].address;

	/*
	 * Relative to a library, and exact as a JavaScript number; other addresses mean nothing
	 * later.
	 */
	if (module_of_place(x, row)->kind == PROFILE_MODULE_FILE && address < UINT64_C(1) << 53)
		(void)fprintf(x->out, "%" PRIu64, address);
	else
		(void)fputs("-1", x->out);
}

static void frame_depth(const struct firefox *x, uint32_t row)
{
	uint32_t depth = x->places.places.items[row].inline_depth;

	cell_row(x, depth < 255 ? depth : 255);
}

static void frame_category(const struct firefox *x, uint32_t row)
{
	static const enum category categories[FRAME_N_KINDS] = {
		[FRAME_NATIVE] = CATEGORY_USER,
		[FRAME_KERNEL] = CATEGORY_KERNEL,
		[FRAME_JIT] = CATEGORY_JIT,
		[FRAME_MARKER] = CATEGORY_INCOMPLETE,
		[FRAME_INTERPRETED] = CATEGORY_INTERPRETED,
	};
	uint32_t function = x->places.places.items[row].function;

	cell_row(x, categories[x->places.functions.items[function].kind]);
}

static void frame_function(const struct firefox *x, uint32_t row)
{
	cell_row(x, x->places.places.items[row].function);
}

static void frame_line(const struct firefox *x, uint32_t row)
{
	uint32_t line = x->places.places.items[row].line;

	put_or_null(x, line, line != 0);
}

static void frame_column(const struct firefox *x, uint32_t row)
{
	uint32_t column = x->places.places.items[row].column;

	put_or_null(x, column, column != 0);
}

static void function_name(const struct firefox *x, uint32_t row)
{
	cell_row(x, x->places.functions.items[row].name);
}

static void function_resource(const struct firefox *x, uint32_t row)
{
	uint32_t resource = x->resources[x->places.functions.items[row].module];

	if (resource == PROFILE_NONE)
		(void)fputs("-1", x->out);
	else
		cell_row(x, resource);
}

/* Source i is the file that string i names: see put_shared(). */
static void function_source(const struct firefox *x, uint32_t row)
{
	put_or_null(x, x->places.functions.items[row].file,
		    x->places.functions.items[row].file != STRID_EMPTY);
}

static void function_line(const struct firefox *x, uint32_t row)
{
	uint32_t function = x->places.functions.items[row].function, line = 0;

	if (function != PROFILE_NONE)
		line = x->p->functions.items[function].start_line;
	put_or_null(x, line, line != 0);
}

static void resource_name(const struct firefox *x, uint32_t row)
{
	cell_row(x, x->places.strings.n + 1 + row);
}

/* ---- The parts of the file ---- */

static void put_shared(const struct firefox *x)
{
	uint32_t n_strings = x->places.strings.n + 1, n_places = x->places.places.n;
	uint32_t n_functions = x->places.functions.n;

	(void)fputs("\"shared\":{\"stackTable\":{", x->out);
	put_column(x, "prefix", x->nodes.n, stack_prefix);
	put_column(x, "frame", x->nodes.n, stack_frame);
	put_end(x, x->nodes.n);
	(void)fputs(",\n\"frameTable\":{", x->out);
	put_column(x, "address", n_places, frame_address);
	put_column(x, "inlineDepth", n_places, frame_depth);
	put_column(x, "category", n_places, frame_category);
	put_column(x, "subcategory", n_places, cell_zero);
	put_column(x, "func", n_places, frame_function);
	put_column(x, "nativeSymbol", n_places, cell_null);
	put_column(x, "innerWindowID", n_places, cell_null);
	put_column(x, "line", n_places, frame_line);
	put_column(x, "column", n_places, frame_column);
	put_end(x, n_places);
	(void)fputs(",\n\"funcTable\":{", x->out);
	put_column(x, "name", n_functions, function_name);
	put_column(x, "isJS", n_functions, cell_false);
	put_column(x, "relevantForJS", n_functions, cell_false);
	put_column(x, "resource", n_functions, function_resource);
	put_column(x, "source", n_functions, function_source);
	put_column(x, "lineNumber", n_functions, function_line);
	put_column(x, "columnNumber", n_functions, cell_null);
	put_end(x, n_functions);
	(void)fputs(",\n\"resourceTable\":{", x->out);
	put_column(x, "lib", x->n_resources, cell_row);
	put_column(x, "name", x->n_resources, resource_name);
	put_column(x, "host", x->n_resources, cell_null);
	put_column(x, "type", x->n_resources, cell_one);
	put_end(x, x->n_resources);
	(void)fputs(",\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
		    "\"functionSize\":[],\"length\":0},\n\"sources\":{",
		    x->out);
	/* A source for each string; only those that are files are referred to. */
	put_column(x, "id", n_strings, cell_null);
	put_column(x, "filename", n_strings, cell_row);
	put_column(x, "startLine", n_strings, cell_one);
	put_column(x, "startColumn", n_strings, cell_one);
	put_column(x, "sourceMapURL", n_strings, cell_null);
	put_end(x, n_strings);
	(void)fputs(",\n\"stringArray\":[\"\"", x->out);
	for (strid i = 1; i <= x->places.strings.n; i++) {
		(void)fputc(',', x->out);
		json_put_string(x->out, strtab_get(&x->places.strings, i));
	}
	for (uint32_t i = 0; i < x->n_resources; i++) {
		(void)fputc(',', x->out);
		json_put_string(x->out, frame_module_name(x->p, x->modules[i]));
	}
	(void)fputs("]}", x->out);
}

/* The build id in Breakpad's form: the first 16 bytes as a GUID, and the age 0. */
static void put_breakpad_id(FILE *out, const struct profile_module *m)
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	(void)fputc('"', out);
	for (size_t i = 0; i < 16 && m->n_build_id; i++)
		(void)fprintf(out, "%02X", order[i] < m->n_build_id ? m->build_id[order[i]] : 0);
	(void)fputs(m->n_build_id ? "0\"" : "\"", out);
}

static void put_code_id(FILE *out, const struct profile_module *m)
{
	if (!m->n_build_id) {
		(void)fputs("null", out);
		return;
	}
	(void)fputc('"', out);
	for (uint32_t i = 0; i < m->n_build_id && i < PROFILE_MAX_BUILD_ID; i++)
		(void)fprintf(out, "%02x", m->build_id[i]);
	(void)fputc('"', out);
}

static void put_libs(const struct firefox *x)
{
	static const char *const names[] = {"name", "debugName"};
	static const char *const paths[] = {"path", "debugPath"};

	(void)fputs("\"libs\":[", x->out);
	for (uint32_t i = 0; i < x->n_resources; i++) {
		const struct profile_module *m = &x->p->modules.items[x->modules[i]];
		const char *name = frame_module_name(x->p, x->modules[i]);
		const char *path = profile_text(x->p, m->path);

		(void)fputs(i ? ",\n{\"arch\":" : "{\"arch\":", x->out);
		json_put_string(x->out, x->info->host_arch ? x->info->host_arch : "");
		for (int k = 0; k < 2; k++) {
			(void)fprintf(x->out, ",\"%s\":", names[k]);
			json_put_string(x->out, name);
			(void)fprintf(x->out, ",\"%s\":", paths[k]);
			json_put_string(x->out, *path ? path : name);
		}
		(void)fputs(",\"breakpadId\":", x->out);
		put_breakpad_id(x->out, m);
		(void)fputs(",\"codeId\":", x->out);
		put_code_id(x->out, m);
		(void)fputc('}', x->out);
	}
	(void)fputs("]", x->out);
}

static void put_meta(const struct firefox *x)
{
	const struct profile *p = x->p;
	uint64_t period = p->types[0].period_ns ? p->types[0].period_ns : NSEC_PER_MSEC;
	char text[256];

	(void)fprintf(x->out,
		      "\"meta\":{\"interval\":%.6f,\"startTime\":%.6f,\"profilingStartTime\":0,"
		      "\"profilingEndTime\":%.6f,\"processType\":0,\"stackwalk\":1,"
		      "\"version\":%d,\"preprocessedProfileVersion\":%d,\"symbolicated\":true,"
		      "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		      "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		      "\"threadCPUDelta\":\"ns\"},\"markerSchema\":[],\"logicalCPUs\":%" PRIu32
		      ",\n\"categories\":[",
		      (double)period / 1e6, (double)p->start_unix_ns / 1e6,
		      (double)(p->end_unix_ns - p->start_unix_ns) / 1e6, GECKO_FORMAT_VERSION,
		      FORMAT_VERSION, x->info->n_cpus);
	/* In the order of enum category. */
	(void)fputs(
		"{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Kernel\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Incomplete\",\"color\":\"red\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Interpreted\",\"color\":\"purple\",\"subcategories\":[\"Other\"]}],\n"
		"\"product\":",
		x->out);
	json_put_string(x->out, x->info->title ? x->info->title : "perfwalk");
	(void)snprintf(text, sizeof(text), "perfwalk %.64s",
		       x->info->version ? x->info->version : "");
	(void)fputs(",\"importedFrom\":", x->out);
	json_put_string(x->out, text);
	(void)fputs(",\"platform\":\"Linux\",\"device\":", x->out);
	json_put_string(x->out, x->info->host_name ? x->info->host_name : "");
	(void)snprintf(text, sizeof(text), "Linux %.200s",
		       x->info->kernel_release ? x->info->kernel_release : "");
	(void)fputs(",\"oscpu\":", x->out);
	json_put_string(x->out, text);
	(void)fputc('}', x->out);
}

/* Milliseconds since the start of the profile, like all times in it. */
static void put_time(const struct firefox *x, uint64_t unix_ns)
{
	uint64_t ns = unix_ns > x->p->start_unix_ns ? unix_ns - x->p->start_unix_ns : 0;

	(void)fprintf(x->out, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

/* The profiler knows three kinds of weights; what is none of time or memory is a number. */
static const char *weight_type(const struct profile *p)
{
	const char *unit = p->types[0].weighted ? profile_period_unit(p) : "";

	return strcmp(unit, "bytes") == 0	  ? "bytes"
	       : strcmp(unit, "nanoseconds") == 0 ? "tracing-ms"
						  : "samples";
}

static void put_weights(const struct firefox *x, uint32_t first, uint32_t end)
{
	bool milliseconds = strcmp(weight_type(x->p), "tracing-ms") == 0;

	(void)fputs("],\n\"weight\":[", x->out);
	for (uint32_t i = first; i < end; i++) {
		int64_t v = x->p->types[0].samples.items[x->by_thread.order[i]].value;

		if (milliseconds)
			(void)fprintf(x->out, "%s%s%" PRId64 ".%06" PRId64, i > first ? "," : "",
				      v < 0 ? "-" : "", profile_size(v) / 1000000,
				      profile_size(v) % 1000000);
		else
			(void)fprintf(x->out, "%s%" PRId64, i > first ? "," : "", v);
	}
	(void)fputs("],", x->out);
}

static void put_samples(const struct firefox *x, uint32_t thread)
{
	uint32_t first = x->by_thread.first[thread], end = x->by_thread.first[thread + 1];
	const struct profile_sample *samples = x->p->types[0].samples.items;
	/* Without weights each sample is one of the unit, which here is none of ours. */
	bool weighted = strcmp(weight_type(x->p), "tracing-ms") == 0;

	(void)fprintf(x->out, "\"samples\":{\"weightType\":\"%s\",\"stack\":[", weight_type(x->p));
	for (uint32_t i = first; i < end; i++) {
		uint32_t leaf = x->leaves[samples[x->by_thread.order[i]].stack];

		(void)fputs(i > first ? "," : "", x->out);
		put_or_null(x, leaf, leaf != PROFILE_NONE);
		weighted |= samples[x->by_thread.order[i]].value != 1;
	}
	(void)fputs("],\n\"time\":[", x->out);
	for (uint32_t i = first; i < end; i++) {
		(void)fputs(i > first ? "," : "", x->out);
		put_time(x, samples[x->by_thread.order[i]].time_unix_ns);
	}
	/* A sample is a period of CPU time, however long the thread slept before it; other events
	 * have no time. */
	if (x->p->types[0].period_ns)
		(void)fputs("],\n\"threadCPUDelta\":[", x->out);
	for (uint32_t i = first; i < end && x->p->types[0].period_ns; i++)
		(void)fprintf(x->out, "%s%" PRId64, i > first ? "," : "",
			      profile_product(samples[x->by_thread.order[i]].value,
					      x->p->types[0].period_ns));
	if (weighted)
		put_weights(x, first, end);
	else
		(void)fputs("],\n\"weight\":null,", x->out);
	put_end(x, end - first);
}

static void put_thread(const struct firefox *x, uint32_t thread)
{
	const struct profile_thread *t = &x->p->threads.items[thread];
	const struct profile_process *proc = &x->p->processes.items[t->process];
	uint32_t first = x->by_thread.first[thread], last = x->by_thread.first[thread + 1] - 1;
	char process[FRAME_MAX_NAME], owner[256], number[16] = "";
	const char *name = profile_text(x->p, t->name);

	(void)frame_process_name(x->p, t->process, process, sizeof(process));
	if (frame_process_owner(x->p, t->process, owner, sizeof(owner)) > 0) {
		size_t n = strlen(process);

		(void)snprintf(process + n, sizeof(process) - n, " (%s)", owner);
	}
	if (x->pid_numbers[t->process])
		(void)snprintf(number, sizeof(number), ".%" PRIu32, x->pid_numbers[t->process]);
	(void)fputs("{\"processType\":\"default\",\"processStartupTime\":0,"
		    "\"processShutdownTime\":null,\"pausedRanges\":[],\"registerTime\":",
		    x->out);
	put_time(x, x->p->types[0].samples.items[x->by_thread.order[first]].time_unix_ns);
	(void)fputs(",\"unregisterTime\":", x->out);
	put_time(x, x->p->types[0].samples.items[x->by_thread.order[last]].time_unix_ns +
			    x->p->types[0].period_ns);
	(void)fputs(",\"name\":", x->out);
	json_put_string(x->out, *name ? name : process);
	(void)fputs(",\"processName\":", x->out);
	json_put_string(x->out, process);
	(void)fprintf(x->out,
		      ",\"isMainThread\":%s,\"pid\":\"%" PRIu32 "%s\",\"tid\":\"%" PRIu32 "\",\n",
		      t->tid == proc->pid ? "true" : "false", proc->pid, number, t->tid);
	(void)fputs("\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
		    "\"phase\":[],\"category\":[],\"length\":0},\n",
		    x->out);
	put_samples(x, thread);
	(void)fputc('}', x->out);
}

static void put_file(const struct firefox *x)
{
	const char *comma = "";

	(void)fputc('{', x->out);
	put_meta(x);
	(void)fputs(",\n", x->out);
	put_libs(x);
	(void)fputs(",\n\"pages\":[],\n", x->out);
	put_shared(x);
	(void)fputs(",\n\"threads\":[", x->out);
	for (uint32_t i = 0; i < x->p->threads.n; i++) {
		if (x->by_thread.first[i] == x->by_thread.first[i + 1])
			continue;
		(void)fputs(comma, x->out);
		put_thread(x, i);
		comma = ",\n";
	}
	(void)fputs("]}\n", x->out);
}

int render_firefox(const struct profile *p, const struct render_info *info, FILE *out)
{
	struct firefox x = {.p = p, .info = info, .out = out, .nodes = ARRAY_INIT(MAX_NODES)};
	int r = places_build(&x.places, p);

	if (r == 0)
		r = by_thread_build(&x.by_thread, p);
	if (r == 0)
		r = build_stacks(&x);
	if (r == 0)
		r = build_resources(&x);
	if (r == 0)
		r = number_pids(&x);
	if (r == 0)
		put_file(&x);
	places_deinit(&x.places);
	by_thread_deinit(&x.by_thread);
	array_deinit(&x.nodes);
	free(x.leaves);
	free(x.resources);
	free(x.modules);
	free(x.pid_numbers);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}

int render_firefox_gzip(const struct profile *p, const struct render_info *info, FILE *out)
{
	FILE *gzip = gzip_open(out);
	int r;

	if (!gzip)
		return -ENOMEM;
	r = render_firefox(p, info, gzip);
	if (fclose(gzip) != 0 && r == 0)
		r = -EIO;
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
