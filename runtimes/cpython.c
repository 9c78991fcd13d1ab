/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/cpython-internal.h"

enum {
	OPEN_READS = 20000, /* real ones: 200 */
	OPEN_BYTES = 4 << 20,
};

/* ---- Recognising ---- */

static const char *skip_digits(const char *text)
{
	return text + strspn(text, "0123456789");
}

int cpython_rank(const char *path)
{
	static const char library[] = "/libpython3.", program[] = "/python3.";
	const char *name = strrchr(path, '/'), *minor, *rest;
	bool is_library = name && strncmp(name, library, sizeof(library) - 1) == 0;

	if (!is_library && !(name && strncmp(name, program, sizeof(program) - 1) == 0))
		return 0;
	minor = name + (is_library ? sizeof(library) : sizeof(program)) - 1;
	rest = skip_digits(minor);
	if (rest == minor)
		return 0;
	/* Kinds of builds: m, d, t ... */
	rest += strspn(rest, "abcdefghijklmnopqrstuvwxyz");
	if (is_library)
		return strncmp(rest, ".so", 3) == 0 ? 2 : 0;
	return *rest == '\0';
}

/* ---- What is learned of a process once ---- */

static bool find_types(struct cpython *p)
{
	p->code_type = image_symbol(&p->image, "PyCode_Type");
	p->text_type = image_symbol(&p->image, "PyUnicode_Type");
	p->bytes_type = image_symbol(&p->image, "PyBytes_Type");
	p->frame_type = image_symbol(&p->image, "PyFrame_Type");
	p->none = image_symbol(&p->image, "_Py_NoneStruct");
	return p->code_type && p->text_type && p->bytes_type && p->frame_type && p->none;
}

/* Bytes up to the end of the last of some fields. */
static size_t extent(const struct cpython *p, enum cpython_value first, enum cpython_value last)
{
	int32_t n = py(p, PY_OBJECT_TYPE) + 8;

	for (unsigned int v = first; v <= last; v++) {
		if (py(p, v) + 8 > n)
			n = py(p, v) + 8;
	}
	return (size_t)n;
}

static void measure(struct cpython *p)
{
	size_t n = extent(p, PY_OBJECT_TYPE, PY_OBJECT_SIZE);

	p->n_state = extent(p, PY_THREAD_PREVIOUS, PY_THREAD_CHUNK);
	p->n_frame = extent(p, PY_FRAME_PREVIOUS, PY_FRAME_COPY);
	/* Of the bytecode only the address counts. */
	p->n_code = extent(p, PY_CODE_FILE, PY_CODE_LINES);
	p->n_code = p->n_code > n ? p->n_code : n;
}

/* "3.11.7", "3.14.0b2", "3.13.1, free-threaded" */
static void print_release(struct cpython *p)
{
	uint32_t v = p->tables.version, level = v >> 4 & 15;
	char micro[16] = "", pre[8] = "";

	if (v & 0xff)
		(void)snprintf(micro, sizeof(micro), ".%u", v >> 8 & 0xff);
	if (level >= 0xa && level < 0xf)
		(void)snprintf(pre, sizeof(pre), "%s%u",
			       level == 0xa   ? "a"
			       : level == 0xb ? "b"
					      : "rc",
			       v & 15);
	(void)snprintf(p->release, sizeof(p->release), "3.%u%s%s%s", p->tables.minor, micro, pre,
		       p->tables.free_threaded ? "t" : "");
}

static int read_image(struct cpython *p, uint64_t image, const char **ret_why)
{
	uint64_t start = 0, end = 0;
	int r;

	if (!image_open(&p->image, &p->memory, image))
		return -ENOENT;
	r = cpython_tables_read(&p->tables, &p->image, ret_why);
	if (r < 0)
		return r;
	if (!find_types(p)) {
		*ret_why = "it does not export its types";
		return -ENOTSUP;
	}
	measure(p);
	print_release(p);
	if (!memory_u64(&p->memory, p->tables.interpreters))
		return -EAGAIN;
	(void)image_symbol_range(&p->image, "_PyEval_EvalFrameDefault", &start, &end);
	eval_code_find(&p->eval, &p->image, start, end);
	return 0;
}

static struct cpython_memo *memo;

static int join_memo(struct cpython *p)
{
	if (!memo) {
		memo = calloc(1, sizeof(*memo));
		if (!memo)
			return -ENOMEM;
		strtab_init(&memo->texts, CPYTHON_MAX_TEXT);
	}
	memo->n_users++;
	/* Whose entries may be there still after so many is long gone. */
	memo->last_owner = memo->last_owner == UINT32_MAX ? 1 : memo->last_owner + 1;
	p->memo = memo;
	p->owner = memo->last_owner;
	return 0;
}

static void leave_memo(struct cpython *p)
{
	if (!p->memo || --p->memo->n_users > 0)
		return;
	strtab_deinit(&memo->texts);
	free(memo);
	memo = NULL;
}

int cpython_new(struct cpython **ret, const struct memory *memory, uint64_t image,
		const char **ret_why)
{
	_cleanup_(cpython_freep) struct cpython *p = calloc(1, sizeof(*p));
	int r;

	*ret_why = "";
	if (!p)
		return -ENOMEM;
	p->memory = *memory;
	p->memory.reads_left = OPEN_READS;
	p->memory.bytes_left = OPEN_BYTES;
	r = read_image(p, image, ret_why);
	if (r == 0)
		r = join_memo(p);
	if (r < 0)
		return r;
	p->strict = CPYTHON_STRICT;
	*ret = TAKE_PTR(p);
	return 0;
}

struct cpython *cpython_free(struct cpython *p)
{
	if (p)
		leave_memo(p);
	free(p);
	return NULL;
}

/* ---- For its user ---- */

const char *cpython_release(const struct cpython *p)
{
	return p->release;
}

bool cpython_is_tried(const struct cpython *p)
{
	/* Final releases: offsets were published, and changed, before. */
	return !p->tables.free_threaded &&
	       ((p->tables.version & 0xff) == 0 || (p->tables.version & 0xf0) == 0xf0);
}

const char *cpython_text(const struct cpython *p, strid id)
{
	return strtab_get(&p->memo->texts, id);
}

const struct cpython_stats *cpython_stats(const struct cpython *p)
{
	return &p->stats;
}

void cpython_begin(struct cpython *p, uint32_t reads, uint64_t bytes)
{
	struct strtab *texts = &p->memo->texts;

	p->memory.reads_left = reads;
	p->memory.bytes_left = bytes;
	/* Frames of a walk refer to it: room is made between walks. */
	if (strtab_bytes(texts) > CPYTHON_MAX_TEXT * 3 / 4 || texts->n_refused > 0) {
		memset(p->memo->codes, 0, sizeof(p->memo->codes));
		strtab_clear(texts);
		texts->n_refused = 0;
	}
}

static enum chain_result walk(struct cpython *p, uint32_t tid, struct chained_frame *frames,
			      size_t max, size_t *ret_n)
{
	size_t n_states;
	enum chain_result r;

	if (cpython_believe_state(p, tid)) {
		r = cpython_walk_state(p, &p->states[0], frames, max, ret_n);
		if ((r == CHAIN_WHOLE && *ret_n > 0) || r == CHAIN_CUT)
			return r;
		*ret_n = 0;
	}
	r = cpython_find_states(p, tid, &n_states);
	for (size_t i = 0; i < n_states && r == CHAIN_WHOLE; i++)
		r = cpython_walk_state(p, &p->states[i], frames, max, ret_n);
	if (r == CHAIN_WHOLE && *ret_n == 0)
		r = CHAIN_NO_THREAD;
	return r != CHAIN_WHOLE && r != CHAIN_CUT && cpython_is_spent(p) ? CHAIN_SPENT : r;
}

enum chain_result cpython_walk(struct cpython *p, const struct chained_thread *thread,
			       struct chained_frame *frames, size_t max, size_t *ret_n)
{
	uint32_t reads = p->memory.reads_left;
	uint64_t bytes = p->memory.bytes_left;
	enum chain_result r;

	p->thread_pointer = thread->pointer;
	*ret_n = 0;
	p->walk++;
	p->strict -= p->strict > 0;
	r = walk(p, thread->tid, frames, max < CHAIN_MAX_FRAMES ? max : CHAIN_MAX_FRAMES, ret_n);
	p->stats.walks++;
	p->stats.results[r]++;
	p->stats.reads += reads - p->memory.reads_left;
	p->stats.bytes += bytes - p->memory.bytes_left;
	return r;
}

bool cpython_eval_range(const struct cpython *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return eval_code_range(&p->eval, i, ret_start, ret_end);
}

void cpython_explain(const struct cpython *p, FILE *out)
{
	(void)fprintf(out, "CPython %s%s\n", p->release,
		      cpython_is_tried(p) ? "" : " (untested version)");
	(void)fprintf(out, "its image at %#" PRIx64 "\n", p->image.base);
	eval_code_explain(&p->eval, &p->image, out);
	(void)fprintf(out, "%s:\n",
		      p->tables.published ? "from what the interpreter publishes in _PyRuntime"
					  : "from the table for this minor version");
	for (unsigned int i = 0; i < PY_N_VALUES; i++) {
		if (py_known(p, i))
			(void)fprintf(out, "  %-34s %d\n", cpython_value_name(i), py(p, i));
		else
			(void)fprintf(out, "  %-34s not in this version\n", cpython_value_name(i));
	}
}
