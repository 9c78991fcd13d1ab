/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/filter.h"

#define MAX_RULES 4096

int filter_add(struct filter *f, const char *text)
{
	struct filter_rule rule, *place;
	int r = filter_rule_parse(text, &rule);

	if (r < 0)
		return r;
	f->rules.max = MAX_RULES;
	place = array_push(&f->rules);
	if (!place) {
		free(rule.text);
		return -ENOMEM;
	}
	*place = rule;
	f->includes[rule.kind] |= !rule.exclude;
	f->asks_user |= rule.kind == FILTER_USER;
	f->asks_container |= rule.kind == FILTER_CONTAINER;
	f->asks_service |= rule.kind == FILTER_SERVICE;
	f->asks_cgroup |= rule.kind != FILTER_USER && rule.kind != FILTER_COMM;
	return 0;
}

void filter_deinit(struct filter *f)
{
	for (uint32_t i = 0; i < f->rules.n; i++)
		free(f->rules.items[i].text);
	array_deinit(&f->rules);
}

/*
 * A unit is any directory of the path: a process in a user's service is also in the user's slice.
 */
static bool unit_matches(const char *glob, const char *path)
{
	char part[256];

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n && n < sizeof(part)) {
			memcpy(part, path, n);
			part[n] = '\0';
			if (fnmatch(glob, part, 0) == 0)
				return true;
		}
		path += n + (path[n] == '/');
	}
	return false;
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * Matches the id, the name, or the part of the name after a slash: the pod, or the container in it.
 */
static bool container_matches(const char *prefix, const struct filter_subject *s)
{
	if (s->container_id && s->container_id[0] && begins_with(s->container_id, prefix))
		return true;
	for (const char *name = s->container; name; name = strchr(name, '/')) {
		name += *name == '/';
		if (begins_with(name, prefix))
			return true;
	}
	return false;
}

static bool matches(const struct filter_rule *rule, const struct filter_subject *s)
{
	switch (rule->kind) {
	case FILTER_COMM:
		return fnmatch(rule->text, s->comm, 0) == 0 ||
		       fnmatch(rule->text, s->thread, 0) == 0;
	case FILTER_USER:
		return s->has_uid && s->uid == rule->uid;
	case FILTER_UNIT:
		return s->cgroup && unit_matches(rule->text, s->cgroup);
	case FILTER_CONTAINER:
		return container_matches(rule->text, s);
	case FILTER_CGROUP:
		return s->cgroup && filter_cgroup_lies_in(s->cgroup, rule->text);
	case FILTER_SERVICE:
		return s->service && fnmatch(rule->text, s->service, 0) == 0;
	case FILTER_N_KINDS:
		break;
	}
	return false;
}

bool filter_passes(const struct filter *f, const struct filter_subject *s)
{
	bool found[FILTER_N_KINDS] = {false};

	for (uint32_t i = 0; i < f->rules.n; i++) {
		const struct filter_rule *rule = &f->rules.items[i];

		/* One match of a list is enough. */
		if ((!rule->exclude && found[rule->kind]) || !matches(rule, s))
			continue;
		if (rule->exclude)
			return false;
		found[rule->kind] = true;
	}
	for (int kind = 0; kind < FILTER_N_KINDS; kind++) {
		if (f->includes[kind] && !found[kind])
			return false;
	}
	return true;
}
