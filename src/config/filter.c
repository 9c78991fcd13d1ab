/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of [filter]: what their items must look like. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/table.h"
#include "util/text.h"

#define MAX_ITEM_BYTES 4000 /* each goes to the profiler in one message */
#define MAX_LIST_BYTES 65536
#define MAX_CPUS       4096

/* Of ids and names of all engines, and the slashes between a pod's namespace and its name. */
#define CONTAINER_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int config_list_each(const char *list, int (*fn)(void *ctx, const char *item, size_t n), void *ctx)
{
	int r = 0;

	while (list && *list && r >= 0) {
		size_t length = strcspn(list, ","), n;
		const char *item = list;

		list += length + (list[length] == ',');
		while (length && is_blank(*item)) {
			item++;
			length--;
		}
		for (n = length; n && is_blank(item[n - 1]); n--)
			;
		if (n)
			r = fn(ctx, item, n);
	}
	return r < 0 ? r : 0;
}

struct check {
	enum config_type type;
	char *error;
};

static int check_user(const char *name, char *error)
{
	uint64_t uid;

	if (text_parse_u64(name, 0, UINT32_MAX - 1, &uid) == 0 || getpwnam(name))
		return 0;
	return config_expected(error, "names or numbers of users of this host");
}

static int check_item(void *ctx, const char *item, size_t n)
{
	const struct check *c = ctx;
	char text[MAX_ITEM_BYTES + 1];
	bool set[MAX_CPUS];

	if (n > MAX_ITEM_BYTES)
		return config_expected(c->error, "names of less than 4000 bytes");
	memcpy(text, item, n);
	text[n] = '\0';
	switch (c->type) {
	case CONFIG_USERS:
		return check_user(text, c->error);
	case CONFIG_CONTAINERS:
		if (strspn(text, CONTAINER_CHARACTERS) == n)
			return 0;
		return config_expected(c->error, "how ids or names of containers begin, as "
						 "perfwalk list containers shows them");
	case CONFIG_CGROUPS:
		return text[0] == '/' ? 0
				      : config_expected(c->error, "paths of control groups, as "
								  "/system.slice/nginx.service");
	case CONFIG_CPUS:
		return text_parse_ranges(text, set, MAX_CPUS) == 0
			       ? 0
			       : config_expected(c->error, "CPU numbers and ranges, as 0-3,8");
	default:
		return 0;
	}
}

int config_filter_check(enum config_type type, const char *text, char *error)
{
	struct check c = {type, error};

	if (strlen(text) > MAX_LIST_BYTES)
		return config_expected(error, "a list of less than 64 KiB");
	if (text[strspn(text, " \t,")] == '\0')
		return config_expected(error, "at least one name");
	return config_list_each(text, check_item, &c);
}

int config_include(struct config *c, enum config_filter filter, const char *value, char *error,
		   size_t n_error)
{
	char **field = &c->include[filter], text[CONFIG_ERROR_MAX] = "out of memory";
	_cleanup_free_ char *list = NULL;
	size_t n;
	const struct config_key *keys = config_keys(&n), *row = NULL;
	int r = -ENOMEM;

	for (size_t i = 0; i < n && !row; i++) {
		if (keys[i].offset == (size_t)((char *)field - (char *)c) &&
		    strcmp(keys[i].section, "filter") == 0)
			row = &keys[i];
	}
	if (!*value) {
		(void)config_expected(text, "at least one name");
		r = -EINVAL;
	} else if (row &&
		   asprintf(&list, "%s%s%s", *field ? *field : "", *field ? "," : "", value) >= 0) {
		r = config_value_set(row, c, list, text);
	}
	if (r < 0)
		(void)snprintf(error, n_error, "%s", text);
	return r;
}
