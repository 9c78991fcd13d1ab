/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of [filter]: what their items must look like. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/check.h"
#include "src/config/table.h"
#include "util/cleanup.h"
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

struct list_check {
	int (*item)(const char *item, char *error); /* NULL: any will do */
	char *error;
};

static int check_container(const char *item, char *error)
{
	if (item[strspn(item, CONTAINER_CHARACTERS)] == '\0')
		return 0;
	return config_expected(error, "beginnings of container ids or names, as "
				      "perfwalk list containers shows them");
}

static int check_cgroup(const char *item, char *error)
{
	if (item[0] == '/')
		return 0;
	return config_expected(error,
			       "paths of control groups, such as /system.slice/nginx.service");
}

static int check_cpus(const char *item, char *error)
{
	bool set[MAX_CPUS];

	if (text_parse_ranges(item, set, MAX_CPUS) == 0)
		return 0;
	return config_expected(error, "CPU numbers and ranges, such as 0-3,8");
}

static int check_item(void *ctx, const char *item, size_t n)
{
	const struct list_check *c = ctx;
	char text[MAX_ITEM_BYTES + 1];

	if (n > MAX_ITEM_BYTES)
		return config_expected(c->error, "names of less than 4000 bytes");
	memcpy(text, item, n);
	text[n] = '\0';
	return c->item ? c->item(text, c->error) : 0;
}

static int check_list(const char *text, char *error, int (*item)(const char *item, char *error))
{
	struct list_check c = {item, error};

	if (strlen(text) > MAX_LIST_BYTES)
		return config_expected(error, "a list of less than 64 KiB");
	if (text[strspn(text, " \t,")] == '\0')
		return config_expected(error, "at least one name");
	return config_list_each(text, check_item, &c);
}

int config_globs_check(const char *text, char *error)
{
	return check_list(text, error, NULL);
}

int config_containers_check(const char *text, char *error)
{
	return check_list(text, error, check_container);
}

int config_cgroups_check(const char *text, char *error)
{
	return check_list(text, error, check_cgroup);
}

int config_cpus_check(const char *text, char *error)
{
	return check_list(text, error, check_cpus);
}

/* ---- Users ---- */

struct uids {
	FILE *out;
	char *error;
};

static int put_uid(void *ctx, const char *item, size_t n)
{
	const struct uids *u = ctx;
	char name[MAX_ITEM_BYTES + 1];
	const struct passwd *user;
	uint64_t uid;

	memcpy(name, item, n);
	name[n] = '\0';
	if (text_parse_u64(name, 0, UINT32_MAX - 1, &uid) < 0) {
		user = getpwnam(name);
		if (!user)
			return config_expected(u->error, "names or numbers of users of this host");
		uid = user->pw_uid;
	}
	(void)fprintf(u->out, "%s%u", ftell(u->out) > 0 ? "," : "", (unsigned int)uid);
	return 0;
}

int config_users_set(char **field, const char *text, char *error)
{
	_cleanup_free_ char *list = NULL;
	struct uids u = {.error = error};
	size_t n_list;
	int r = *text ? check_list(text, error, NULL) : 0;

	if (r < 0)
		return r;
	u.out = open_memstream(&list, &n_list);
	if (!u.out)
		return -ENOMEM;
	r = config_list_each(text, put_uid, &u);
	if (fclose(u.out) != 0)
		return -ENOMEM;
	if (r < 0)
		return r;
	free(*field);
	*field = *list ? TAKE_PTR(list) : NULL;
	return 0;
}
