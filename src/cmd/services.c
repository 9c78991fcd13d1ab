/* SPDX-License-Identifier: Apache-2.0 */
/* We collect what processes publish first, and parse it after all privileges are given up. A
 * process that publishes nothing has the name of its executable, as in a capture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/process-context.h"
#include "src/cmd/running.h"
#include "src/cmd/services.h"
#include "src/opener/opener.h"
#include "src/process/context-file.h"
#include "util/cleanup.h"
#include "util/text.h"

enum { MAX_SAYING = 16384 };
#define UNKNOWN "unknown:"

struct saying {
	const struct running *process;
	struct context_file head;
	char *bytes;	  /* NULL: it says nothing that is readable */
	char *executable; /* NULL: it has none */
};

struct sayings_of_all {
	ARRAY(struct saying) items;
};

static void free_saying(struct saying *s)
{
	free(s->bytes);
	free(s->executable);
}

/* Its name without directories; NULL: it has none, as kernel threads, or is another user's. */
static char *executable_of(uint32_t pid)
{
	struct message facts;
	const char *slash;

	if (opener_process(pid, &facts) < 0 || facts.answer_process.is_kernel)
		return NULL;
	slash = strrchr(facts.answer_process.executable_path, '/');
	return slash && slash[1] ? strdup(slash + 1) : NULL;
}

static void ask(struct sayings_of_all *all, const struct running *e)
{
	struct message m = {.type = MESSAGE_ASK_CONTEXT};
	_cleanup_close_ int fd = -EBADF;
	struct saying s = {.process = e, .executable = executable_of(e->pid)}, *place;

	m.ask_context.pid = e->pid;
	m.ask_context.environment = 1;
	fd = opener_context(&m);
	if (fd >= 0)
		(void)context_file_read(fd, &s.head, &s.bytes);
	place = s.bytes || s.executable ? array_push(&all->items) : NULL;
	if (place)
		*place = s;
	else
		free_saying(&s);
}

/* The first one counts. */
static void take_service(struct serving *s, const char *text, size_t n)
{
	if (!*s->service)
		(void)text_clean(s->service, sizeof(s->service), text, n);
}

static bool is(const uint8_t *key, size_t n, const char *wanted)
{
	return n == strlen(wanted) && memcmp(key, wanted, n) == 0;
}

static int take_attribute(void *ctx, const struct process_context_attribute *a)
{
	enum process_context_schema schema = process_context_schema_of(a);
	struct serving *s = ctx;
	size_t n;

	if (a->kind != PROCESS_CONTEXT_TEXT)
		return 0;
	if (a->is_resource && is(a->key, a->n_key, "service.name"))
		take_service(s, (const char *)a->bytes, a->n);
	if (schema == PROCESS_CONTEXT_NO_SCHEMA)
		return 0;
	n = schema == PROCESS_CONTEXT_UNKNOWN_SCHEMA ? sizeof(UNKNOWN) - 1 : 0;
	memcpy(s->spans, UNKNOWN, n);
	(void)text_clean(s->spans + n, sizeof(s->spans) - n, (const char *)a->bytes, a->n);
	return 0;
}

static void take_pair(void *ctx, const char *key, const char *value)
{
	if (strcmp(key, "service.name") == 0)
		take_service(ctx, value, SIZE_MAX);
}

/* n bytes, the last one a 0. */
static void take_environment(struct serving *s, const char *text, size_t n)
{
	static const char name[] = "OTEL_SERVICE_NAME=", pairs[] = "OTEL_RESOURCE_ATTRIBUTES=";
	const char *attributes = NULL;

	for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
		if (strncmp(text + at, name, sizeof(name) - 1) == 0)
			take_service(s, text + at + sizeof(name) - 1, SIZE_MAX);
		if (strncmp(text + at, pairs, sizeof(pairs) - 1) == 0)
			attributes = text + at + sizeof(pairs) - 1;
	}
	if (attributes)
		(void)host_parse_resource_variable(attributes, take_pair, s);
}

static void add(struct serving_list *list, const struct saying *what)
{
	struct serving s = {.pid = what->process->pid}, *place;

	if (what->bytes && what->head.error == 0)
		(void)process_context_read((const uint8_t *)what->bytes + what->head.n_environment,
					   what->head.n_payload, take_attribute, &s);
	if (what->bytes)
		take_environment(&s, what->bytes, what->head.n_environment);
	if (what->executable)
		take_service(&s, what->executable, SIZE_MAX);
	if (!*s.service && !*s.spans)
		return;
	(void)text_clean(s.comm, sizeof(s.comm), what->process->comm, SIZE_MAX);
	place = array_push(&list->items);
	if (place)
		*place = s;
}

static int compare(const void *a, const void *b)
{
	const struct serving *x = a, *y = b;
	int r = strcmp(x->service, y->service);

	return r ? r : x->pid < y->pid ? -1 : x->pid > y->pid;
}

int services_find(struct serving_list *ret, enum sandbox_mode seccomp)
{
	struct sayings_of_all all = {.items = ARRAY_INIT(MAX_SAYING)};
	struct running_list running = {0};
	int r = running_find(&running);

	ret->items.max = MAX_SAYING;
	for (uint32_t i = 0; i < running.items.n && r == 0; i++)
		ask(&all, &running.items.items[i]);
	if (r == 0)
		r = running_drop_privileges(seccomp);
	for (uint32_t i = 0; i < all.items.n; i++) {
		if (r == 0)
			add(ret, &all.items.items[i]);
		free_saying(&all.items.items[i]);
	}
	if (ret->items.n)
		qsort(ret->items.items, ret->items.n, sizeof(*ret->items.items), compare);
	array_deinit(&all.items);
	running_deinit(&running);
	return r;
}

void services_deinit(struct serving_list *list)
{
	array_deinit(&list->items);
}
