/* SPDX-License-Identifier: Apache-2.0 */
/* Why a tracepoint is not available, and what is wrong with a filter. The kernel gives only an
 * error number. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sample/event.h"
#include "src/sample/tracepoint.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MAX_NEIGHBOURS 512
#define MAX_FIELDS     64
#define MAX_NAME       64

/* "none integrity [confidentiality]": the current mode is in brackets. */
bool tracefs_is_locked_down(void)
{
	_cleanup_close_ int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "[confidentiality]") != NULL;
}

/* Sets ret to the tracepoint of the same subsystem with the nearest name. */
static bool find_neighbour(const char *name, char *ret, size_t n_ret)
{
	int n_subsystem = (int)strcspn(name, ":");
	char *names[MAX_NEIGHBOURS], path[256];
	const struct dirent *entry;
	const char *near;
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%.*s", n_subsystem, name);
	d = opendir(path);
	while (d && n < MAX_NEIGHBOURS && (entry = readdir(d))) {
		names[n] = entry->d_name[0] != '.' ? strdup(entry->d_name) : NULL;
		n += names[n] != NULL;
	}
	near = text_nearest(name + n_subsystem + 1, (const char *const *)names, n);
	if (near)
		(void)snprintf(ret, n_ret, "%.*s:%s", n_subsystem, name, near);
	while (n > 0)
		free(names[--n]);
	if (d)
		(void)closedir(d);
	return near != NULL;
}

void event_explain_tracepoint(int error, const char *name, char *buf, size_t size)
{
	char near[128] = "";

	if (tracefs_is_locked_down())
		snprintf(buf, size,
			 "the kernel is locked down (confidentiality), which forbids tracefs and "
			 "with it every tracepoint: boot without lockdown=confidentiality");
	else if (error == -ENODEV)
		snprintf(buf, size,
			 "the numbers of tracepoints cannot be read: mount -t tracefs none "
			 "/sys/kernel/tracing, and run as root");
	else if (error == -EACCES || error == -EPERM)
		snprintf(buf, size,
			 "this user may not read its number in /sys/kernel/tracing/events: run as "
			 "root");
	else if (error > 0)
		snprintf(buf, size, "it has no number for perf: it is for other tracers");
	else if (find_neighbour(name, near, sizeof(near)))
		snprintf(buf, size, "this kernel has no such tracepoint (did you mean %s?)", near);
	else
		snprintf(buf, size,
			 "this kernel has no such tracepoint, or this user may not read its "
			 "number; /sys/kernel/tracing/available_events lists all");
}

/* ---- Filters ---- */

struct field_names {
	char names[MAX_FIELDS][MAX_NAME];
	const char *pointers[MAX_FIELDS];
	size_t n;
};

static void read_fields(const char *tracepoint, struct field_names *ret)
{
	_cleanup_free_ char *text = malloc(TRACEPOINT_MAX_FORMAT_BYTES);
	const char *at = text;

	ret->n = 0;
	if (!text || tracepoint_read(tracepoint, "format", text, TRACEPOINT_MAX_FORMAT_BYTES) <= 0)
		return;
	while (ret->n < MAX_FIELDS && tracepoint_next_field(&at, ret->names[ret->n], MAX_NAME)) {
		ret->pointers[ret->n] = ret->names[ret->n];
		ret->n++;
	}
}

static bool is_field(const struct field_names *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++) {
		if (strcmp(fields->names[i], name) == 0)
			return true;
	}
	return false;
}

/* Every filter may use these; no format file lists them. */
static const char *const common[] = {"comm", "COMM", "cpu", "CPU", "stacktrace", "STACKTRACE"};

static bool is_common(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
		if (strcmp(name, common[i]) == 0)
			return true;
	}
	return false;
}

/* Skips a text in quotes. */
static const char *skip_quoted(const char *p)
{
	char quote = *p++;

	while (*p && *p != quote)
		p++;
	return *p ? p + 1 : p;
}

/* Sets ret to the first word that is followed by an operator but is not a field. */
static bool find_unknown(const char *filter, const struct field_names *fields, char *ret,
			 size_t n_ret)
{
	for (const char *p = filter; *p;) {
		size_t n = 0;

		if (*p == '"' || *p == '\'') {
			p = skip_quoted(p);
			continue;
		}
		while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.')
			n++;
		if (n == 0) {
			p++;
			continue;
		}
		(void)snprintf(ret, n_ret, "%.*s", (int)n, p);
		p += n;
		p += strspn(p, " \t");
		if (*p && strchr("=!<>&~", *p) && strncmp(p, "&&", 2) != 0 &&
		    !isdigit((unsigned char)*ret) && !is_common(ret) && !is_field(fields, ret))
			return true;
	}
	return false;
}

/* "prev_comm, prev_pid": the event's own fields, without those that all events have. */
static void list_fields(const struct field_names *fields, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < fields->n && n < size; i++) {
		if (strncmp(fields->names[i], "common_", 7) != 0)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
					      fields->names[i]);
	}
}

void event_explain_filter(int error, const struct sample_event *e, const char *filter, char *buf,
			  size_t size)
{
	char list[512], unknown[MAX_NAME], near[96] = "";
	struct field_names fields;

	read_fields(e->name, &fields);
	list_fields(&fields, list, sizeof(list));
	if (find_unknown(filter, &fields, unknown, sizeof(unknown))) {
		const char *name = text_nearest(unknown, fields.pointers, fields.n);

		if (name)
			(void)snprintf(near, sizeof(near), " (did you mean %s?)", name);
		snprintf(buf, size,
			 "the filter \"%s\" names no field of %s: %s%s; its fields are %s", filter,
			 e->name, unknown, near, list);
		return;
	}
	snprintf(buf, size,
		 "the kernel refuses the filter \"%s\" (%s): a filter is FIELD OPERATOR VALUE, "
		 "with == != < <= > >= & for numbers and == != ~ \"TEXT\" for texts, joined by && "
		 "and ||; the fields of %s are %s",
		 filter, strerror(-error), e->name, list);
}
