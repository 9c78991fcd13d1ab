/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/php-internal.h"

/* ---- Facts that are read once for each process ---- */

static struct php *own(struct interp *p)
{
	return (struct php *)p;
}

static int read_image(struct php *p, const char **ret_why)
{
	uint64_t start = 0, end = 0;
	int r;

	r = php_tables_read(&p->tables, &p->base.image, ret_why);
	if (r < 0)
		return r;
	if (p->tables.micro)
		(void)snprintf(p->base.release, sizeof(p->base.release), "%u.%u.%u",
			       p->tables.major, p->tables.minor, p->tables.micro);
	else
		(void)snprintf(p->base.release, sizeof(p->base.release), "%u.%u", p->tables.major,
			       p->tables.minor);
	(void)image_symbol_range(&p->base.image, "executor_globals", &p->globals, &p->end);
	(void)image_symbol_range(&p->base.image, "execute_ex", &start, &end);
	eval_code_find(&p->base.eval, &p->base.image, start, end);
	return 0;
}

static struct memo *memo;

static int open_php(struct interp *i, const char **ret_why)
{
	struct php *p = own(i);
	int r = read_image(p, ret_why);

	if (r == 0)
		r = memo_join(&memo, sizeof(*p->memo), PHP_MAX_TEXT, &p->owner);
	if (r < 0)
		return r;
	p->memo = (struct php_memo *)memo;
	i->texts = &memo->texts;
	return 0;
}

static void close_php(struct interp *i)
{
	if (own(i)->memo)
		memo_leave(&memo);
}

/* ---- For its user ---- */

static bool is_tried(const struct interp *i)
{
	const struct php *p = (const struct php *)i;

	return p->tables.major == 7 || p->tables.minor >= 1;
}

static void forget(struct interp *i)
{
	struct php *p = own(i);

	memset(p->memo->functions, 0, sizeof(p->memo->functions));
	memset(p->memo->strings, 0, sizeof(p->memo->strings));
}

static enum chain_result walk(struct interp *i, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n)
{
	return php_follow(own(i), thread, frames, max, ret_n);
}

static void explain(const struct interp *i, FILE *out)
{
	const struct php *p = (const struct php *)i;

	(void)fprintf(out, "from the table for this minor version:\n");
	for (unsigned int v = 0; v < PHP_N_VALUES; v++)
		(void)fprintf(out, "  %-34s %d\n", php_value_name(v), p->tables.value[v]);
}

const struct interp_type php_type = {
	.name = "PHP",
	.kind = RUNTIME_KIND_PHP,
	.rules = {.callee_saves = true,
		  .changes_early = true,
		  .is_anyones = true,
		  .compiles = true,
		  .calls_compiled = true},
	.size = sizeof(struct php),
	.read_bytes = PHP_WINDOW,
	.open = open_php,
	.close = close_php,
	.is_tried = is_tried,
	.forget = forget,
	.walk = walk,
	.explain = explain,
};
