/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log has a level, mostly a time, and then, in every version of the kernel, "Killed
 * process 123 (name) total-vm:". Its times are on a clock of the log's own, so we remember the last
 * line to know which lines are new.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/profiler/outside.h"
#include "src/profiler/victims.h"
#include "util/cleanup.h"

#define MAX_LOG (UINT64_C(1) << 20)
#define KILLED	"Killed process "
#define BEHIND	") total-vm:"

struct victim_search {
	struct victim *items;
	uint32_t n;
	bool has_known;
	char last[VICTIM_LINE_SIZE];
};

/* A level below 8 is one of the kernel's own messages: no program can write it. */
bool victims_parse_line(const char *line, struct victim *ret)
{
	const char *at = strstr(line, KILLED), *end = at ? strstr(at, BEHIND) : NULL;
	char *name;
	size_t n;

	if (!end || line[0] != '<' || line[1] < '0' || line[1] > '7' || line[2] != '>')
		return false;
	ret->pid = (uint32_t)strtoul(at + strlen(KILLED), &name, 10);
	if (ret->pid == 0 || strncmp(name, " (", 2) != 0 || name + 2 > end)
		return false;
	n = (size_t)(end - name - 2);
	if (n >= sizeof(ret->comm))
		return false;
	memcpy(ret->comm, name + 2, n);
	ret->comm[n] = '\0';
	return true;
}

/* Whatever was there up to the line that was known is old. */
static void take_line(struct victim_search *f, const char *known, const char *line)
{
	struct victim v;

	if (!victims_parse_line(line, &v))
		return;
	if (f->n == VICTIMS_MAX)
		memmove(f->items, f->items + 1, --f->n * sizeof(*f->items));
	f->items[f->n++] = v;
	(void)snprintf(f->last, sizeof(f->last), "%s", line);
	if (strcmp(f->last, known) != 0)
		return;
	f->has_known = true;
	f->n = 0;
}

static int read_log(struct outside *o, char **ret)
{
	_cleanup_close_ int fd = outside_open_kill_lines(o);
	_cleanup_free_ char *text = NULL;
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n;

	if (size < 0)
		return fd < 0 ? fd : -errno;
	text = malloc((size_t)size + 1);
	n = text && (uint64_t)size <= MAX_LOG ? pread(fd, text, (size_t)size, 0) : -1;
	if (n < 0)
		return -ENOMEM;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

static int find(struct victims *v, struct outside *o, struct victim_search *f)
{
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	int r = read_log(o, &text);

	if (r < 0)
		return r;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		take_line(f, v->last, line);
	f->has_known |= !v->last[0];
	if (f->last[0])
		memcpy(v->last, f->last, sizeof(v->last));
	return 0;
}

void victims_begin(struct victims *v, struct outside *o)
{
	struct victim items[VICTIMS_MAX];
	struct victim_search f = {.items = items};

	v->tried = true;
	(void)find(v, o, &f);
}

int victims_read(struct victims *v, struct outside *o, uint64_t n_kills,
		 struct victim ret[VICTIMS_MAX])
{
	uint64_t wanted = v->n_owed + n_kills;
	struct victim_search f = {.items = ret};
	int r;

	v->n_owed = 0;
	if (wanted == 0)
		return 0;
	r = find(v, o, &f);
	if (r < 0)
		return r;
	/* The log has gone round since the line that was known: the rest is older. */
	if (!f.has_known && f.n > wanted) {
		memmove(ret, ret + f.n - wanted, wanted * sizeof(*ret));
		f.n = (uint32_t)wanted;
	}
	/* The kernel counts first, and writes then: once more, at the next look. */
	v->n_owed = n_kills > f.n ? n_kills - f.n : 0;
	return (int)f.n;
}
