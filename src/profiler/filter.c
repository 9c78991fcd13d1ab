/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <linux/magic.h>

#include "src/host/host.h"
#include "src/profiler/filter.h"
#include "util/text.h"

#define MAX_RULES      4096
#define MAX_TEXT_BYTES 4200
#define CGROUP_MOUNT   "/sys/fs/cgroup"

/* ---- From the config to texts ---- */

struct each {
	int (*fn)(void *ctx, const char *text);
	void *ctx;
	enum config_filter kind;
	bool exclude;
};

void filter_cgroup_path(const char *text, char *ret, size_t size)
{
	size_t n = strlen(CGROUP_MOUNT);
	struct statfs fs;

	if (strncmp(text, CGROUP_MOUNT, n) == 0 && (text[n] == '/' || !text[n])) {
		text += n;
		/* With version 1 a directory for each hierarchy comes first. */
		if (*text && statfs(CGROUP_MOUNT, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
			text += 1 + strcspn(text + 1, "/");
	}
	n = strlen(text);
	while (n && text[n - 1] == '/')
		n--;
	(void)snprintf(ret, size, "%.*s", (int)n, text);
}

bool filter_cgroup_lies_in(const char *path, const char *group)
{
	size_t n = strlen(group);

	return strncmp(path, group, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The kinds' letters of the texts. */
static const char kind_letters[CONFIG_N_FILTERS] = {
	[CONFIG_FILTER_COMM] = 'n',	 [CONFIG_FILTER_USER] = 'u',   [CONFIG_FILTER_UNIT] = 's',
	[CONFIG_FILTER_CONTAINER] = 'c', [CONFIG_FILTER_CGROUP] = 'g', [CONFIG_FILTER_CPUS] = 'p',
};

static int each_item(void *ctx, const char *item, size_t n)
{
	const struct each *e = ctx;
	char name[MAX_TEXT_BYTES - 64], value[MAX_TEXT_BYTES - 32], text[MAX_TEXT_BYTES];

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
	(void)snprintf(text, sizeof(text), "%c%c%s", e->exclude ? '-' : '+', kind_letters[e->kind],
		       value);
	return e->fn(e->ctx, text);
}

int filter_each(const struct config *c, bool cgroups, int (*fn)(void *ctx, const char *text),
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

bool filter_equal(const struct config *a, const struct config *b)
{
	for (int kind = 0; kind < CONFIG_N_FILTERS; kind++) {
		if (!text_equal(a->include[kind], b->include[kind]) ||
		    !text_equal(a->exclude[kind], b->exclude[kind]))
			return false;
	}
	return true;
}

/* ---- Rules ---- */

int filter_add(struct filter *f, const char *text)
{
	struct filter_rule rule = {.exclude = text[0] == '-'}, *place;
	const char *letter =
		text[0] && text[1] ? memchr(kind_letters, text[1], CONFIG_N_FILTERS) : NULL;
	uint64_t uid;

	if ((text[0] != '+' && text[0] != '-') || !letter)
		return -EBADMSG;
	rule.kind = (enum config_filter)(letter - kind_letters);
	if (rule.kind == CONFIG_FILTER_USER) {
		if (text_parse_u64(text + 2, 0, UINT32_MAX, &uid) < 0)
			return -EBADMSG;
		rule.uid = (uint32_t)uid;
	}
	rule.text = strdup(text + 2);
	f->rules.max = MAX_RULES;
	place = rule.text ? array_push(&f->rules) : NULL;
	if (!place) {
		free(rule.text);
		return -ENOMEM;
	}
	*place = rule;
	f->includes[rule.kind] |= !rule.exclude;
	f->asks_user |= rule.kind == CONFIG_FILTER_USER;
	f->asks_container |= rule.kind == CONFIG_FILTER_CONTAINER;
	f->asks_cgroup |= rule.kind != CONFIG_FILTER_USER && rule.kind != CONFIG_FILTER_COMM;
	return 0;
}

void filter_deinit(struct filter *f)
{
	for (uint32_t i = 0; i < f->rules.n; i++)
		free(f->rules.items[i].text);
	array_deinit(&f->rules);
}

/* A unit is any directory of the path: what runs in a service of a user runs in the user's. */
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

/* The id, the name, or what follows a slash of it: the pod, or the container within. */
static bool container_matches(const char *prefix, const struct filter_subject *s)
{
	if (!s->cgroup)
		return false;
	if (s->cgroup->container_id[0] && begins_with(s->cgroup->container_id, prefix))
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
	case CONFIG_FILTER_COMM:
		return fnmatch(rule->text, s->comm, 0) == 0 ||
		       fnmatch(rule->text, s->thread, 0) == 0;
	case CONFIG_FILTER_USER:
		return s->has_uid && s->uid == rule->uid;
	case CONFIG_FILTER_UNIT:
		return s->cgroup && unit_matches(rule->text, s->cgroup->path);
	case CONFIG_FILTER_CONTAINER:
		return container_matches(rule->text, s);
	case CONFIG_FILTER_CGROUP:
		return s->cgroup && filter_cgroup_lies_in(s->cgroup->path, rule->text);
	case CONFIG_FILTER_CPUS:
	case CONFIG_N_FILTERS:
		break;
	}
	return false;
}

bool filter_passes(const struct filter *f, const struct filter_subject *s)
{
	bool found[CONFIG_N_FILTERS] = {false};

	for (uint32_t i = 0; i < f->rules.n; i++) {
		const struct filter_rule *rule = &f->rules.items[i];

		/* One of a list is enough; the rest of it need not be looked at. */
		if ((!rule->exclude && found[rule->kind]) || !matches(rule, s))
			continue;
		if (rule->exclude)
			return false;
		found[rule->kind] = true;
	}
	for (int kind = 0; kind < CONFIG_N_FILTERS; kind++) {
		if (f->includes[kind] && !found[kind])
			return false;
	}
	return true;
}
