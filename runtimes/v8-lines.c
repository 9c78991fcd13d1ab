/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a script -> lines. V8 makes an array of a script's line ends when a program first needs
 * one. Before that, we count lines in the source, from the place of the last count on.
 */
#include "runtimes/v8-internal.h"
#include "util/hash.h"

enum { MAX_LINES = 1 << 24 };

/* How many lines end before a place, by V8's array of their ends. */
static bool find_end(struct v8 *v, uint64_t ends, int32_t position, uint32_t *ret)
{
	uint64_t length = v8_word(v, ends, 8);
	uint32_t low = 0, high;

	if (!v8_is_smi(length) || v8_smi(length) <= 0 || v8_smi(length) > MAX_LINES)
		return false;
	high = (uint32_t)v8_smi(length);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint64_t end = v8_element(v, ends, middle);

		if (!v8_is_smi(end))
			return false;
		if (v8_smi(end) < position)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return true;
}

static struct v8_lines *lines_of(struct v8 *v, const struct v8_function *f, uint64_t source)
{
	struct v8_lines *l = &v->memo->lines[hash_combine(f->script, v->owner) % V8_N_SCRIPTS];

	if (l->owner != v->owner || l->script != f->script || l->source != source ||
	    l->id != f->script_id)
		*l = (struct v8_lines){f->script, source, f->script_id, v->owner, 1, {0}};
	return l;
}

static bool count(struct v8 *v, const struct v8_function *f, int32_t position, uint32_t *ret)
{
	uint64_t source = v8_word(v, f->script, v8_value(v, V8_SCRIPT_SOURCE));
	struct v8_lines *l = lines_of(v, f, source);
	uint32_t wanted = (uint32_t)position / V8_LINE_STEP, from, n;

	wanted = wanted < V8_LINE_STEPS ? wanted : V8_LINE_STEPS - 1;
	while (l->n <= wanted) {
		if (!v8_count_lines(v, source, (l->n - 1) * V8_LINE_STEP, V8_LINE_STEP, &n))
			return false;
		l->before[l->n] = l->before[l->n - 1] + n;
		l->n++;
	}
	from = wanted * V8_LINE_STEP;
	if (!v8_count_lines(v, source, from, (uint32_t)position - from, &n))
		return false;
	*ret = l->before[wanted] + n;
	return true;
}

uint32_t v8_line(struct v8 *v, const struct v8_function *f, int32_t position)
{
	uint64_t ends = v8_word(v, f->script, v8_value(v, V8_SCRIPT_LINE_ENDS));
	uint32_t before;
	bool known;

	if (position < 0)
		return 0;
	if (v8_has_type(v, ends, V8_TYPE_FIXED_ARRAY))
		known = find_end(v, ends, position, &before);
	else
		known = count(v, f, position, &before);
	return known ? before + 1 : 0;
}
