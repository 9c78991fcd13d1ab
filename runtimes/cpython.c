/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/cpython-internal.h"

/* ---- Facts that are read once for each process ---- */

static struct cpython *own(struct interp *p)
{
	return (struct cpython *)p;
}

static bool find_types(struct cpython *p)
{
	p->code_type = image_symbol(&p->base.image, "PyCode_Type");
	p->text_type = image_symbol(&p->base.image, "PyUnicode_Type");
	p->bytes_type = image_symbol(&p->base.image, "PyBytes_Type");
	p->frame_type = image_symbol(&p->base.image, "PyFrame_Type");
	p->none = image_symbol(&p->base.image, "_Py_NoneStruct");
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
	(void)snprintf(p->base.release, sizeof(p->base.release), "3.%u%s%s%s", p->tables.minor,
		       micro, pre, p->tables.free_threaded ? "t" : "");
}

static int read_image(struct cpython *p, const char **ret_why)
{
	uint64_t start = 0, end = 0;
	int r;

	r = cpython_tables_read(&p->tables, &p->base.image, ret_why);
	if (r < 0)
		return r;
	if (!find_types(p)) {
		*ret_why = "it does not export its types";
		return -ENOTSUP;
	}
	measure(p);
	print_release(p);
	if (!memory_u64(&p->base.memory, p->tables.interpreters))
		return -EAGAIN;
	(void)image_symbol_range(&p->base.image, "_PyEval_EvalFrameDefault", &start, &end);
	eval_code_find(&p->base.eval, &p->base.image, start, end);
	return 0;
}

static struct memo *memo;

static int open_cpython(struct interp *i, const char **ret_why)
{
	struct cpython *p = own(i);
	int r = read_image(p, ret_why);

	if (r == 0)
		r = memo_join(&memo, sizeof(*p->memo), CPYTHON_MAX_TEXT, &p->owner);
	if (r < 0)
		return r;
	p->memo = (struct cpython_memo *)memo;
	i->texts = &memo->texts;
	return 0;
}

static void close_cpython(struct interp *i)
{
	if (own(i)->memo)
		memo_leave(&memo);
}

/* ---- For its user ---- */

static bool is_tried(const struct interp *i)
{
	const struct cpython *p = (const struct cpython *)i;

	/* Final releases: offsets were published, and changed, before. */
	return !p->tables.free_threaded &&
	       ((p->tables.version & 0xff) == 0 || (p->tables.version & 0xf0) == 0xf0);
}

static void forget(struct interp *i)
{
	struct cpython *p = own(i);

	memset(p->memo->codes, 0, sizeof(p->memo->codes));
	memset(p->memo->known_texts, 0, sizeof(p->memo->known_texts));
}

static enum chain_result walk(struct interp *i, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n)
{
	struct cpython *p = own(i);
	size_t n_states;
	enum chain_result r;

	p->thread_pointer = thread->pointer;
	p->thread_stack = thread->tid ? 0 : thread->stack;
	if (thread->tid && cpython_believe_state(p, thread->tid)) {
		r = cpython_walk_state(p, &p->states[0], frames, max, ret_n);
		if ((r == CHAIN_WHOLE && *ret_n > 0) || r == CHAIN_CUT)
			return r;
		*ret_n = 0;
	}
	r = cpython_find_states(p, thread->tid, &n_states);
	for (size_t s = 0; s < n_states && r == CHAIN_WHOLE; s++)
		r = cpython_walk_state(p, &p->states[s], frames, max, ret_n);
	return r;
}

static void explain(const struct interp *i, FILE *out)
{
	const struct cpython *p = (const struct cpython *)i;

	(void)fprintf(out, "%s:\n",
		      p->tables.published ? "from what the interpreter publishes in _PyRuntime"
					  : "from the table for this minor version");
	for (unsigned int v = 0; v < PY_N_VALUES; v++) {
		if (py_known(p, v))
			(void)fprintf(out, "  %-34s %d\n", cpython_value_name(v), py(p, v));
		else
			(void)fprintf(out, "  %-34s not in this version\n", cpython_value_name(v));
	}
}

const struct interp_type cpython_type = {
	.name = "CPython",
	.kind = RUNTIME_KIND_CPYTHON,
	.size = sizeof(struct cpython),
	/* Since 3.12 an evaluation also has its caller's frame as that before its own first one. */
	.rules = {.callee_saves = true, .begins_anew = true},
	.read_bytes = CPYTHON_WINDOW,
	.knows_stacks = true,
	.open = open_cpython,
	.close = close_cpython,
	.is_tried = is_tried,
	.forget = forget,
	.walk = walk,
	.explain = explain,
};
