/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading: defaults, then the file, then its drop-ins in the order of their names, then the
 * environment. Each step sets values through the table (table.c); later ones win. All errors of all
 * files are written before loading fails, each with its file and line.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/config/reader.h"
#include "src/config/table.h"
#include "util/strtab.h"
#include "util/text.h"

#define DROPINS_MAX 256
#define ERRORS_MAX  100	 /* written; a binary file taken for a config does not fill the journal */
#define PAIRS_MAX   4096 /* of one file */

struct loader {
	struct config *config;
	FILE *errors;
	unsigned int n_errors;
	int fatal; /* -ENOMEM, or how a file failed to open */
	const char *file;
	/* "section key" of each pair of this file, and the line of its first place. */
	struct strtab seen;
	unsigned int lines[PAIRS_MAX];
	void *current; /* of the section with a name that was opened last, its struct; else NULL */
	bool skip;     /* the section is unknown: one error for it is enough */
};

static void __attribute__((format(printf, 3, 4)))
fail(struct loader *l, unsigned int line, const char *format, ...)
{
	va_list ap;

	if (l->n_errors++ >= ERRORS_MAX)
		return;
	if (line)
		fprintf(l->errors, "%s:%u: ", l->file, line);
	else
		fprintf(l->errors, "%s: ", l->file);
	va_start(ap, format);
	vfprintf(l->errors, format, ap);
	va_end(ap);
	fputc('\n', l->errors);
}

static void fail_code(struct loader *l, unsigned int line, int r, const char *what)
{
	if (r == -ENOMEM)
		l->fatal = r;
	fail(l, line, "%s: %s", what, r == -E2BIG ? "too many of them" : strerror(-r));
}

/* --- one file ------------------------------------------------------------------------------ */

/* "export:otel" is of the kind "export". */
static const char *section_kind(const char *section)
{
	const struct config_section *named = config_section_with_name(section);

	return named ? named->name : section;
}

/* The struct of a section with a name; NULL, after an error that was told: there is none. */
static void *get_named(struct loader *l, unsigned int line, const char *section)
{
	const char *name = strchr(section, ':') + 1;
	struct config_export *export = NULL;
	struct config_event *event = NULL;
	int r;

	if (strcmp(section_kind(section), CONFIG_SECTION_EVENT) == 0) {
		r = config_event_get(l->config, name, &event);
		if (r == -E2BIG)
			fail(l, line, "[%s]: too many events: at most %d", section,
			     CONFIG_MAX_EVENTS);
		else if (r < 0)
			fail_code(l, line, r, "events");
		return event;
	}
	r = config_export_get(l->config, name, &export);
	if (r < 0)
		fail_code(l, line, r, "destinations");
	return export;
}

static void on_section(void *ctx, unsigned int line, const char *name)
{
	struct loader *l = ctx;
	size_t n;
	const struct config_section *sections = config_sections(&n);
	const char *names[16], *near, *colon = name + strcspn(name, ":");
	const struct config_section *named = config_section_with_name(name);
	char kind[CONFIG_NAME_MAX + 1];

	l->current = NULL;
	l->skip = false;
	if (named && colon[0] && colon[1]) {
		l->current = get_named(l, line, name);
		l->skip = !l->current;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		names[i] = sections[i].name;
		if (strcmp(name, names[i]) == 0 && !named)
			return;
	}
	l->skip = true;
	if (named) {
		fail(l, line, "[%s]: %s needs a name: [%s:NAME]", name, named->what, named->name);
		return;
	}
	(void)snprintf(kind, sizeof(kind), "%.*s", (int)(colon - name), name);
	near = text_nearest(kind, names, n);
	fail(l, line, "unknown section [%s]%s%s%s%s", name, near ? "; did you mean [" : "",
	     near ? near : "",
	     !near || !config_section_with_name(near) ? ""
	     : colon[0] && colon[1]		      ? colon
						      : ":NAME",
	     near ? "]?" : "");
}

static void unknown_key(struct loader *l, unsigned int line, const char *section, const char *key)
{
	const char *candidates[64], *kind = section_kind(section), *near;
	size_t n, n_candidates = 0;
	const struct config_key *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i].name, key) == 0) {
			fail(l, line, "unknown key %s in [%s]; it belongs in [%s%s]", key, section,
			     keys[i].section,
			     config_section_with_name(keys[i].section) ? ":NAME" : "");
			return;
		}
		if (strcmp(keys[i].section, kind) == 0 && n_candidates < ARRAY_SIZE(candidates))
			candidates[n_candidates++] = keys[i].name;
	}
	near = text_nearest(key, candidates, n_candidates);
	if (near)
		fail(l, line, "unknown key %s in [%s]; did you mean %s?", key, section, near);
	else
		fail(l, line, "unknown key %s in [%s]; perfwalk.conf(5) lists all keys", key,
		     section);
}

/* True when the key was there before in the same section of this file: most likely a mistake. */
static bool is_duplicate(struct loader *l, unsigned int line, const char *section, const char *key)
{
	char text[2 * CONFIG_NAME_MAX + 2];
	uint32_t n_before = l->seen.n;
	strid id;

	(void)snprintf(text, sizeof(text), "%s %s", section, key);
	id = strtab_put(&l->seen, text);
	if (id == STRID_EMPTY || id >= PAIRS_MAX) {
		fail(l, line, "%s: more than %u keys in one file", key, PAIRS_MAX);
		return true;
	}
	if (id <= n_before) {
		fail(l, line, "%s: already set in line %u", key, l->lines[id]);
		return true;
	}
	l->lines[id] = line;
	return false;
}

/* Values that may hold a secret are not repeated in a message. */
static bool is_secret(const struct config_key *row, const char *value)
{
	return row->type == CONFIG_HEADERS || strchr(value, '@');
}

static void on_pair(void *ctx, unsigned int line, const char *section, const char *key,
		    const char *value)
{
	struct loader *l = ctx;
	char error[CONFIG_ERROR_MAX], shown[64];
	size_t n;
	const struct config_key *keys = config_keys(&n), *row = NULL;
	int r;

	if (l->skip)
		return;
	if (!*section) {
		fail(l, line, "%s: before the first [section]", key);
		return;
	}
	if (is_duplicate(l, line, section, key))
		return;
	if (strcmp(section, CONFIG_SECTION_RESOURCE) == 0) {
		if (config_text_check(value, error) < 0) {
			fail(l, line, "%s: %s", key, error);
			return;
		}
		r = config_resource_set(l->config, key, value);
		if (r < 0)
			fail_code(l, line, r, "resource attributes");
		return;
	}
	for (size_t i = 0; i < n && !row; i++) {
		if (strcmp(keys[i].name, key) == 0 &&
		    strcmp(keys[i].section, section_kind(section)) == 0)
			row = &keys[i];
	}
	if (!row) {
		unknown_key(l, line, section, key);
		return;
	}
	r = config_value_set(row, l->current ? l->current : l->config, value, error);
	if (r == -EINVAL && is_secret(row, value)) {
		fail(l, line, "%s: %s", key, error);
	} else if (r == -EINVAL) {
		(void)text_clean(shown, sizeof(shown), value, strlen(value));
		fail(l, line, "%s: %s, not '%s'", key, error, shown);
	} else if (r < 0) {
		fail_code(l, line, r, key);
	}
}

static void on_error(void *ctx, unsigned int line, const char *message)
{
	fail(ctx, line, "%s", message);
}

static void load_file(struct loader *l, const char *path, bool own)
{
	static const struct config_reader_ops ops = {on_section, on_pair, on_error};
	_cleanup_free_ char *text = NULL;
	char error[CONFIG_ERROR_MAX] = "out of memory";
	size_t n;
	int r;

	l->file = path;
	l->current = NULL;
	l->skip = false;
	strtab_clear(&l->seen);
	r = config_file_read(path, CONFIG_FILE_MAX_BYTES, own, &text, &n, error);
	if (r < 0) {
		fail(l, 0, "%s", error);
		l->fatal = r;
		return;
	}
	r = config_reader_run(text, n, &ops, l);
	if (r < 0)
		fail_code(l, 0, r, "reading");
}

/* --- drop-ins ------------------------------------------------------------------------------ */

static int is_dropin(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

/* By bytes, not by locale: the order is the same on every host. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/*
 * A kubelet gives the directory of a ConfigMap to all, and mounts it read-only. Only root can mount
 * it there; but by another mount others may put files into it, so files there must be root's.
 */
static bool is_read_only(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

static void load_dropins(struct loader *l, const char *path)
{
	_cleanup_free_ char *dir = NULL;
	struct dirent **names = NULL;
	struct stat st;
	bool open_to_all;
	int n;

	if (asprintf(&dir, "%s.d", path) < 0) {
		dir = NULL;
		l->fatal = -ENOMEM;
		return;
	}
	l->file = dir;
	if (stat(dir, &st) < 0) {
		if (errno != ENOENT)
			fail(l, 0, "%s", strerror(errno));
		return;
	}
	open_to_all = st.st_mode & (S_IWGRP | S_IWOTH);
	if (geteuid() == 0 && open_to_all && !is_read_only(dir)) {
		fail(l, 0,
		     "users other than its owner can write this directory (mode %04o): chmod go-w "
		     "it",
		     (unsigned int)(st.st_mode & 07777));
		return;
	}
	n = scandir(dir, &names, is_dropin, by_name);
	if (n < 0) {
		fail(l, 0, "%s", strerror(errno));
		return;
	}
	if (n > DROPINS_MAX)
		fail(l, 0, "more than %d drop-ins", DROPINS_MAX);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *file = NULL;

		if (asprintf(&file, "%s/%s", dir, names[i]->d_name) < 0)
			file = NULL;
		if (!file)
			l->fatal = -ENOMEM;
		else if (i < DROPINS_MAX)
			load_file(l, file, open_to_all);
		free(names[i]);
	}
	free(names);
}

static bool has_dropins(const char *path)
{
	_cleanup_free_ char *dir = NULL;

	if (asprintf(&dir, "%s.d", path) < 0)
		dir = NULL;
	return dir && access(dir, F_OK) == 0;
}

bool config_exists(const char *path)
{
	return access(path, F_OK) == 0 || has_dropins(path);
}

/* --- the whole ----------------------------------------------------------------------------- */

/* What no single value shows. path: what is to be named as the place. */
static void check_exports(struct loader *l, const char *path)
{
	l->file = path ? path : "environment";
	for (size_t i = 0; i < l->config->n_exports; i++) {
		const struct config_export *x = &l->config->exports[i];

		if (!x->endpoint && !x->profiles_endpoint)
			fail(l, 0,
			     "[export:%s]: endpoint is missing: expected a URL like "
			     "http://localhost:4318",
			     x->name);
		else if (x->server_name_override &&
			 strncasecmp(x->profiles_endpoint ? x->profiles_endpoint : x->endpoint,
				     "https:", 6) != 0)
			fail(l, 0,
			     "[export:%s]: server_name_override is for TLS: expected an endpoint "
			     "that begins with https://",
			     x->name);
		if (x->preset == CONFIG_PARCA && x->protocol != CONFIG_GRPC)
			fail(l, 0,
			     "[export:%s]: preset = parca needs protocol = grpc, which is all that "
			     "Parca takes",
			     x->name);
		if (!x->client_certificate != !x->client_key)
			fail(l, 0,
			     "[export:%s]: client_certificate and client_key are needed together",
			     x->name);
	}
}

static void check_events(struct loader *l, const char *path)
{
	l->file = path ? path : "environment";
	for (size_t i = 0; i < l->config->n_events; i++) {
		const struct config_event *e = &l->config->events[i];

		if (e->samples_per_second && e->period)
			fail(l, 0,
			     "[event:%s]: samples_per_second and period exclude each other: a rate "
			     "or a period",
			     e->name);
		if (!e->user && !e->kernel)
			fail(l, 0,
			     "[event:%s]: user and kernel are both no, so there is nothing to "
			     "sample: leave one of them out",
			     e->name);
	}
}

static int load_all(struct loader *l, const char *path, bool env)
{
	int r = config_set_defaults("", l->config);

	if (r < 0)
		return r;
	if (path && (access(path, F_OK) == 0 || !has_dropins(path)))
		load_file(l, path, false);
	if (path && l->fatal == 0)
		load_dropins(l, path);
	if (env && l->fatal == 0) {
		r = config_environment_apply(l->config, l->errors);
		if (r < 0 && r != -EINVAL)
			return r;
		l->n_errors += r < 0;
	}
	if (l->fatal == 0 && (r = config_environment_apply_debuginfod(l->config, l->errors)) < 0)
		return r;
	if (l->n_errors == 0) {
		check_events(l, path);
		check_exports(l, path);
	}
	if (l->n_errors > ERRORS_MAX)
		fprintf(l->errors, "... and %u more errors\n", l->n_errors - ERRORS_MAX);
	if (l->fatal < 0)
		return l->fatal;
	return l->n_errors ? -EINVAL : 0;
}

int config_load(struct config **ret, const char *path, bool env, FILE *errors)
{
	_cleanup_(config_freep) struct config *c = calloc(1, sizeof(*c));
	_cleanup_free_ struct loader *l = calloc(1, sizeof(*l));
	int r;

	if (!c || !l)
		return -ENOMEM;
	l->config = c;
	l->errors = errors;
	strtab_init(&l->seen, CONFIG_FILE_MAX_BYTES);
	r = load_all(l, path, env);
	strtab_deinit(&l->seen);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}
