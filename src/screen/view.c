/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/screen/tree.h"

const char *top_view_name(enum top_view_kind kind)
{
	static const char *const names[TOP_VIEW_N] = {"functions", "processes", "containers",
						      "tree"};

	return names[kind];
}

void top_view_init(struct top_view *v)
{
	memset(v, 0, sizeof(*v));
	v->open.max = TOP_MAX_OPEN;
}

void top_view_clear_filter(struct top_view *v)
{
	if (v->filter[0])
		regfree(&v->regex);
	v->filter[0] = '\0';
}

void top_view_deinit(struct top_view *v)
{
	top_view_clear_filter(v);
	array_deinit(&v->open);
}

int top_view_set_filter(struct top_view *v, const char *filter, char *error, size_t size)
{
	regex_t regex;
	int r;

	if (strlen(filter) >= sizeof(v->filter))
		return -EINVAL;
	r = *filter ? regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB | REG_ICASE) : 0;
	if (r != 0) {
		(void)regerror(r, &regex, error, size);
		return -EINVAL;
	}
	top_view_clear_filter(v);
	if (*filter) {
		(void)snprintf(v->filter, sizeof(v->filter), "%s", filter);
		v->regex = regex;
	}
	return 0;
}

static struct top_key key_of(const struct top_view *v, const struct top_table *sum,
			     const struct top_row *r)
{
	const char *owner = strtab_get(&sum->strings, r->owner);
	struct top_key k = {.function = "", .module = "", .comm = "", .owner = ""};

	switch (v->kind) {
	case TOP_VIEW_FUNCTIONS:
		k.function = strtab_get(&sum->strings, r->function);
		k.module = strtab_get(&sum->strings, r->module);
		k.comm = strtab_get(&sum->strings, r->comm);
		break;
	case TOP_VIEW_PROCESSES:
		k.comm = strtab_get(&sum->strings, r->comm);
		k.owner = owner;
		k.pid = r->pid;
		break;
	default:
		k.owner = *owner ? owner : "[none]";
	}
	return k;
}

static void make_list(const struct top_view *v, const struct top_table *sum, struct top_table *out)
{
	bool functions = v->kind == TOP_VIEW_FUNCTIONS;

	for (uint32_t i = 0; i < sum->rows.n; i++) {
		const struct top_row *r = &sum->rows.items[i];
		struct top_key k = key_of(v, sum, r);

		/* A row without function is the process of a tree. */
		if (r->function == STRID_EMPTY || !top_view_wants(v, sum, r))
			continue;
		/* Each sample is in one row's self, so their sum is the total of a process. */
		if ((functions || r->self > 0) && top_view_matches(v, &k))
			(void)top_table_add(out, &k, r->self, functions ? r->total : r->self);
	}
	top_table_sort(out, v->sort);
}

void top_view_make(const struct top_view *v, const struct top_table *sum, struct top_table *out)
{
	top_table_clear(out);
	if (v->kind == TOP_VIEW_TREE)
		top_tree_make(v, sum, out);
	else
		make_list(v, sum, out);
	top_table_copy_facts(out, sum);
}
