/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one line for each node with samples of its own. The path to it is in a buffer that grows
 * and shrinks as the walk goes down and up, so a line costs its own length.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/calltree.h"
#include "src/render/render.h"
#include "util/clock.h"

struct folded_path {
	char *text;
	size_t n, cap;
	ARRAY(size_t) ends; /* by depth: length of the path up to and with it */
};

static int path_set(struct folded_path *path, uint32_t depth, const char *name)
{
	size_t n = strlen(name);
	size_t *end;

	path->ends.n = depth;
	path->n = depth ? path->ends.items[depth - 1] : 0;
	if (path->n + n + 2 > path->cap) {
		size_t cap = (path->n + n + 2) * 2;
		char *text = realloc(path->text, cap);

		if (!text)
			return -ENOMEM;
		path->text = text;
		path->cap = cap;
	}
	end = array_push(&path->ends);
	if (!end)
		return -ENOMEM;
	if (depth)
		path->text[path->n++] = ';';
	memcpy(path->text + path->n, name, n + 1);
	path->n += n;
	*end = path->n;
	return 0;
}

/* unit: divides the numbers. */
static int write_lines(const struct calltree *t, struct folded_path *path, int64_t unit, FILE *out)
{
	uint32_t depth = 0;

	for (uint32_t i = calltree_next(t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(t, i, &depth)) {
		const struct call_node *n = &t->nodes.items[i];
		int r = path_set(path, depth - 1,
				 strtab_get(&t->names, t->symbols.items[n->symbol].name));

		if (r < 0)
			return r;
		if (n->self >= unit &&
		    fprintf(out, "%s %" PRId64 "\n", path->text, n->self / unit) < 0)
			return -EIO;
	}
	return fflush(out) < 0 || ferror(out) ? -EIO : 0;
}

int render_folded(const struct profile *p, const struct render_info *info, FILE *out)
{
	struct folded_path path = {.ends = ARRAY_INIT(UINT32_MAX)};
	/* Times of threads in the unit of other tools, because folded stacks do not say theirs. */
	bool micro = p->types[0].weighted && (profile_is_off_cpu(p, 0) || profile_is_wall(p, 0));
	int64_t unit = micro ? NSEC_PER_USEC : 1;
	struct calltree t;
	int r;

	r = calltree_build(&t, p, CALLTREE_FOLDED | CALLTREE_INLINED);
	if (r == 0)
		r = write_lines(&t, &path, unit, out);
	calltree_deinit(&t);
	array_deinit(&path.ends);
	free(path.text);
	return r;
}

int render_folded_below_zero(const struct profile *p, uint64_t *ret_n, int64_t *ret_sum)
{
	struct calltree t;
	int r = calltree_build(&t, p, CALLTREE_FOLDED | CALLTREE_INLINED);

	*ret_n = 0;
	*ret_sum = 0;
	for (uint32_t i = 0; r == 0 && i < t.nodes.n; i++) {
		int64_t self = t.nodes.items[i].self;

		*ret_n += self < 0;
		*ret_sum = profile_sum(*ret_sum, self < 0 ? self : 0);
	}
	calltree_deinit(&t);
	return r;
}
