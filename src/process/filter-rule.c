/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <linux/magic.h>

#include "src/process/filter-rule.h"
#include "util/text.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"

/* The second letter of a text; the first is + or -. */
static const char kind_letters[FILTER_N_KINDS] = {
	[FILTER_COMM] = 'n',	  [FILTER_USER] = 'u',	 [FILTER_UNIT] = 's',
	[FILTER_CONTAINER] = 'c', [FILTER_CGROUP] = 'g', [FILTER_SERVICE] = 'v',
};

void filter_rule_print(enum filter_kind kind, bool exclude, const char *value,
		       char ret[FILTER_RULE_MAX_BYTES])
{
	(void)snprintf(ret, FILTER_RULE_MAX_BYTES, "%c%c%s", exclude ? '-' : '+',
		       kind_letters[kind], value);
}

int filter_rule_parse(const char *text, struct filter_rule *ret)
{
	struct filter_rule rule = {.exclude = text[0] == '-'};
	const char *letter =
		text[0] && text[1] ? memchr(kind_letters, text[1], FILTER_N_KINDS) : NULL;
	uint64_t uid;

	if ((text[0] != '+' && text[0] != '-') || !letter)
		return -EBADMSG;
	rule.kind = (enum filter_kind)(letter - kind_letters);
	if (rule.kind == FILTER_USER) {
		if (text_parse_u64(text + 2, 0, UINT32_MAX, &uid) < 0)
			return -EBADMSG;
		rule.uid = (uint32_t)uid;
	}
	rule.text = strdup(text + 2);
	if (!rule.text)
		return -ENOMEM;
	*ret = rule;
	return 0;
}

void filter_cgroup_path(const char *text, char *ret, size_t size)
{
	size_t n = strlen(CGROUP_MOUNT);
	struct statfs fs;

	if (strncmp(text, CGROUP_MOUNT, n) == 0 && (text[n] == '/' || !text[n])) {
		text += n;
		/* With version 1 the first directory is the hierarchy. */
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
