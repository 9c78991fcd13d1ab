/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/v8-internal.h"

enum {
	OPEN_READS = 20000,
	OPEN_BYTES = 16 << 20,
	MAX_BYTECODES = 256,
};

static const uint32_t tried[][2] = {{9, 4}, {10, 2}, {11, 3}, {12, 4}, {13, 6}, {14, 1}, {14, 6}};

static const char *const level_names[V8_N_LEVELS] = {
	[V8_INTERPRETED] = "interpreted",
	[V8_BASELINE] = "baseline",
	[V8_OPTIMIZED] = "optimized",
	[V8_WASM] = "WebAssembly",
};

const char *v8_level_name(enum v8_level level)
{
	return (unsigned int)level < V8_N_LEVELS ? level_names[level] : "";
}

/* ---- Facts that are read once for each process ---- */

/* The sizes of bytecodes, for each size of their operands. */
static int read_bytecode_sizes(struct v8 *v)
{
	static const char name[] = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
	uint64_t start, end, n;

	if (!image_symbol_range(&v->image, name, &start, &end))
		return 0;
	n = (end - start) / 3;
	if (end <= start || n == 0 || n > MAX_BYTECODES)
		return 0;
	v->bytecode_sizes = malloc(n * 3);
	if (!v->bytecode_sizes)
		return -ENOMEM;
	v->n_bytecodes = (uint32_t)n;
	if (!memory_read(&v->memory, start, v->bytecode_sizes, n * 3))
		v->n_bytecodes = 0;
	return 0;
}

static struct memo *memo;

static int join_memo(struct v8 *v)
{
	int r = memo_join(&memo, sizeof(*v->memo), V8_MAX_TEXT, &v->owner);

	if (r == 0) {
		v->memo = (struct v8_memo *)memo;
		v->memo->places.max = V8_MAX_PLACES;
	}
	return r;
}

static void leave_memo(const struct v8 *v)
{
	if (!v->memo)
		return;
	if (!memo_is_shared(memo))
		array_deinit(&v->memo->places);
	memo_leave(&memo);
}

int v8_new(struct v8 **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	_cleanup_(v8_freep) struct v8 *v = calloc(1, sizeof(*v));
	int r;

	*ret_why = "";
	if (!v)
		return -ENOMEM;
	v->below = *memory;
	v->memory = (struct memory){v8_read_blocks, v, UINT32_MAX, UINT64_MAX};
	r = join_memo(v);
	if (r < 0)
		return r;
	v8_begin(v, OPEN_READS, OPEN_BYTES);
	if (!image_open(&v->image, &v->memory, image))
		return -ENOENT;
	r = v8_tables_read(&v->tables, &v->image, ret_why);
	if (r == 0 && !arch_has_v8) {
		*ret_why = "its frames on this processor are not known";
		r = -ENOTSUP;
	}
	if (r == 0)
		r = read_bytecode_sizes(v);
	if (r < 0)
		return r;
	(void)snprintf(v->release, sizeof(v->release), "%" PRIu32 ".%" PRIu32 ".%" PRIu32,
		       v->tables.version[0], v->tables.version[1], v->tables.version[2]);
	*ret = TAKE_PTR(v);
	/* The copied image points to the original memory. */
	(*ret)->image.memory = &(*ret)->memory;
	return 0;
}

struct v8 *v8_free(struct v8 *v)
{
	if (v) {
		leave_memo(v);
		free(v->bytecode_sizes);
		free(v);
	}
	return NULL;
}

/* ---- For its user ---- */

const char *v8_release(const struct v8 *v)
{
	return v->release;
}

bool v8_is_tried(const struct v8 *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(tried); i++) {
		if (v->tables.version[0] == tried[i][0] && v->tables.version[1] == tried[i][1])
			return true;
	}
	return false;
}

const char *v8_text(const struct v8 *v, strid id)
{
	return strtab_get(&v->memo->base.texts, id);
}

const struct v8_stats *v8_stats(const struct v8 *v)
{
	return &v->stats;
}

void v8_begin(struct v8 *v, uint32_t reads, uint64_t bytes)
{
	struct v8_memo *m = v->memo;

	v->below.reads_left = reads;
	v->below.bytes_left = bytes;
	v->memory.reads_left = UINT32_MAX;
	v->memory.bytes_left = UINT64_MAX;
	m->last_walk = m->last_walk == UINT32_MAX ? 1 : m->last_walk + 1;
	v->walk = m->last_walk;
	trust_begin_walk(&v->walks);
	v->leaf_bytecode = 0;
	/* Frames of a walk refer to both: room is made between walks. */
	if (m->places.n > V8_MAX_PLACES * 3 / 4 ||
	    strtab_bytes(&m->base.texts) > V8_MAX_TEXT * 3 / 4 || m->base.texts.n_refused > 0) {
		memset(m->codes, 0, sizeof(m->codes));
		memset(m->spots, 0, sizeof(m->spots));
		array_clear(&m->places);
		strtab_clear(&m->base.texts);
		m->base.texts.n_refused = 0;
	}
}

void v8_explain(const struct v8 *v, FILE *out)
{
	(void)fprintf(out, "V8 %s%s\n", v->release, v8_is_tried(v) ? "" : " (untested version)");
	(void)fprintf(out, "image at %#" PRIx64 "-%#" PRIx64 "\n", v->image.start, v->image.end);
	(void)fprintf(out, "sizes of %" PRIu32 " bytecodes%s\n", v->n_bytecodes,
		      v->n_bytecodes ? "" : ": not exported, so baseline code has no lines");
	for (unsigned int i = 0; i < V8_N_VALUES; i++)
		(void)fprintf(out, "  %-32s %6" PRId32 " %s\n", v8_value_name(i),
			      v->tables.value[i],
			      v->tables.exported[i] ? "exported" : "known of this version");
}
