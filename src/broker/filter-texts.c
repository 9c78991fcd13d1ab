/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/broker/filter-texts.h"
#include "src/config/config.h"
#include "src/process/filter-rule.h"
#include "util/text.h"

struct each {
	int (*fn)(void *ctx, const char *text);
	void *ctx;
	enum config_filter kind;
	bool exclude;
};

static const enum filter_kind kinds[CONFIG_N_FILTERS] = {
	[CONFIG_FILTER_COMM] = FILTER_COMM,	[CONFIG_FILTER_USER] = FILTER_USER,
	[CONFIG_FILTER_UNIT] = FILTER_UNIT,	[CONFIG_FILTER_CONTAINER] = FILTER_CONTAINER,
	[CONFIG_FILTER_CGROUP] = FILTER_CGROUP, [CONFIG_FILTER_SERVICE] = FILTER_SERVICE,
};

static int each_item(void *ctx, const char *item, size_t n)
{
	const struct each *e = ctx;
	char name[FILTER_RULE_MAX_BYTES - 64], value[FILTER_RULE_MAX_BYTES - 32];
	char text[FILTER_RULE_MAX_BYTES];

	if (n >= sizeof(name))
		return -E2BIG;
	memcpy(name, item, n);
	name[n] = '\0';
	(void)snprintf(value, sizeof(value), "%s", name);
	if (e->kind == CONFIG_FILTER_UNIT && !strchr(name, '.')) {
		(void)snprintf(value, sizeof(value), "%s.service", name);
	} else if (e->kind == CONFIG_FILTER_CGROUP) {
		filter_cgroup_path(name, value, sizeof(value));
	}
	filter_rule_print(kinds[e->kind], e->exclude, value, text);
	return e->fn(e->ctx, text);
}

int filter_texts_each(const struct config *c, bool cgroups, int (*fn)(void *ctx, const char *text),
		      void *ctx)
{
	int r = 0;

	for (int kind = 0; kind < CONFIG_N_FILTERS && r == 0; kind++) {
		struct each e = {fn, ctx, (enum config_filter)kind, false};

		if (kind == CONFIG_FILTER_CPUS)
			continue;
		if (kind != CONFIG_FILTER_CGROUP || cgroups)
			r = config_list_each(c->include[kind], each_item, &e);
		e.exclude = true;
		if (r == 0)
			r = config_list_each(c->exclude[kind], each_item, &e);
	}
	return r;
}

bool filter_texts_equal(const struct config *a, const struct config *b)
{
	for (int kind = 0; kind < CONFIG_N_FILTERS; kind++) {
		if (!text_equal(a->include[kind], b->include[kind]) ||
		    !text_equal(a->exclude[kind], b->exclude[kind]))
			return false;
	}
	return true;
}
