/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Resource: the process that spent the time. Keys and texts are written out in every Resource,
 * never as indices into the string table: backends that cannot resolve those refuse the whole
 * payload.
 *
 * service.name is what people look for first. In this order: the configured name, the configured
 * resource attribute, what the process says of itself, the executable's base name, "kernel" for all
 * kernel threads together (a service for each kworker would be thousands of series), and the comm
 * of a process whose executable could not be read, or is not mapped yet in its exec. The
 * specification's "unknown_service:" prefix is for a program that does not know its own name, but a
 * host profiler knows the executable. Only a process of a recorded file may have no name at all: it
 * is the "unknown_service".
 *
 * Of any other key the configured value counts first, then what was seen of the process and the
 * host, then what the process says of itself: nobody can take another one's pid or container.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/otlp-resource.pb-c.h"
#include "src/profile/labels.h"
#include "src/render/frame.h"
#include "src/render/otlp-internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/globs.h"
#include "util/text.h"

#define KEY_SERVICE_NAME "service.name"
#define KEY_POD_NAME	 "k8s.pod.name"
#define MAX_OURS	 32
#define MAX_ITEMS	 1024 /* of a list; more than one that is read has */
#define DELETED		 " (deleted)"

/* Length of a path without the kernel's " (deleted)". */
static size_t path_length(const char *path)
{
	size_t n = strlen(path), tail = strlen(DELETED);

	return n > tail && strcmp(path + n - tail, DELETED) == 0 ? n - tail : n;
}

struct resource {
	struct wire_buffer body;
	const struct render_info *info;
	const char *ours[MAX_OURS]; /* keys of what was seen, which have been written */
	uint32_t n_ours;
};

static void put_key_value(struct resource *r, const char *key,
			  Opentelemetry__Proto__Common__V1__AnyValue *value)
{
	Opentelemetry__Proto__Common__V1__KeyValue kv =
		OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
	char clean_key[OTLP_MAX_STRING];

	(void)text_clean(clean_key, sizeof(clean_key), key, SIZE_MAX);
	kv.key = clean_key;
	kv.value = value;
	wire_put_message(&r->body, 1, &kv.base);
}

static void put_text(struct resource *r, const char *key, const char *text)
{
	Opentelemetry__Proto__Common__V1__AnyValue v =
		OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
	char clean[OTLP_MAX_STRING];

	(void)text_clean(clean, sizeof(clean), text, SIZE_MAX);
	v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
	v.string_value = clean;
	put_key_value(r, key, &v);
}

/* Does one of the configured pairs from i on have this key? */
static bool configured_from(const struct render_info *info, size_t i, const char *key)
{
	for (; i < info->n_resource_attributes; i++) {
		if (strcmp(info->resource_attributes[2 * i], key) == 0)
			return true;
	}
	return false;
}

static bool configured(const struct resource *r, const char *key)
{
	if (r->info->service_name && strcmp(key, KEY_SERVICE_NAME) == 0)
		return true;
	return configured_from(r->info, 0, key);
}

static bool is_ours(const struct resource *r, const char *key)
{
	for (uint32_t i = 0; i < r->n_ours; i++) {
		if (strcmp(r->ours[i], key) == 0)
			return true;
	}
	return false;
}

/* May the attribute of what was seen be added, and was it not yet? Every service has a name. */
static bool take_key(struct resource *r, const char *key)
{
	const struct render_info *info = r->info;

	if (configured(r, key) || is_ours(r, key) || r->n_ours == MAX_OURS)
		return false;
	if (strcmp(key, KEY_SERVICE_NAME) != 0 &&
	    !globs_allow(info->allowed_attributes, info->denied_attributes, key))
		return false;
	r->ours[r->n_ours++] = key;
	return true;
}

/* Adds an attribute of ours if it has a value and the config does not set it. The key stays. */
static void add_text(struct resource *r, const char *key, const char *text)
{
	if (text && *text && take_key(r, key))
		put_text(r, key, text);
}

static void add_int(struct resource *r, const char *key, int64_t n)
{
	Opentelemetry__Proto__Common__V1__AnyValue v =
		OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;

	if (!take_key(r, key))
		return;
	v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
	v.int_value = n;
	put_key_value(r, key, &v);
}

typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;

/* A list of texts. */
static void put_list(struct resource *r, const char *key, const char *text)
{
	any_value items[MAX_ITEMS], *pointers[MAX_ITEMS];
	any_value v = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
	Opentelemetry__Proto__Common__V1__ArrayValue list =
		OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
	const char ends[] = {LABEL_ITEM_END, '\0'};
	_cleanup_free_ char *copy = strdup(text);

	for (char *at = copy; at && list.n_values < MAX_ITEMS; list.n_values++) {
		any_value *item = &items[list.n_values];

		opentelemetry__proto__common__v1__any_value__init(item);
		item->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
		item->string_value = strsep(&at, ends);
		pointers[list.n_values] = item;
	}
	list.values = pointers;
	v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
	v.array_value = &list;
	put_key_value(r, key, &v);
}

/* An attribute that the process has for itself. */
static void add_said(struct resource *r, const struct label *l)
{
	Opentelemetry__Proto__Common__V1__AnyValue v =
		OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;

	if (configured(r, l->key) || is_ours(r, l->key))
		return;
	if (l->text && strcmp(l->unit, "list") == 0) {
		put_list(r, l->key, l->text);
		return;
	}
	if (l->text && strcmp(l->unit, "double") != 0) {
		put_text(r, l->key, l->text);
		return;
	}
	if (l->text) {
		v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE;
		v.double_value = strtod(l->text, NULL);
	} else if (strcmp(l->unit, "bool") == 0) {
		v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE;
		v.bool_value = l->number != 0;
	} else {
		v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
		v.int_value = l->number;
	}
	put_key_value(r, l->key, &v);
}

/* They passed allow and deny where they were read. */
static int add_all_said(struct resource *r, const char *labels)
{
	size_t size = strlen(labels) + 1;
	_cleanup_free_ char *buf = malloc(size);
	struct label l;

	if (!buf)
		return -ENOMEM;
	while (label_read(&labels, &l, buf, size))
		add_said(r, &l);
	return 0;
}

/*
 * The pods of a Deployment are called DEPLOYMENT-HASH-XXXXX, with letters and digits that
 * Kubernetes takes for them alone: no vowels, and none that look alike.
 */
static void add_deployment(struct resource *r, const char *pod)
{
	static const char safe[] = "bcdfghjklmnpqrstvwxz2456789";
	char name[FRAME_MAX_NAME], *dash;

	(void)snprintf(name, sizeof(name), "%s", pod);
	dash = strrchr(name, '-');
	if (!dash || strlen(dash + 1) != 5 || strspn(dash + 1, safe) != 5)
		return;
	*dash = '\0';
	dash = strrchr(name, '-');
	if (!dash || dash == name || strlen(dash + 1) < 6 || strlen(dash + 1) > 10 ||
	    dash[1 + strspn(dash + 1, safe)])
		return;
	add_text(r, "k8s.replicaset.name", name);
	*dash = '\0';
	add_text(r, "k8s.deployment.name", name);
}

static void add_time(struct resource *r, const char *key, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NSEC_PER_SEC);
	char date[32], text[64];
	struct tm tm;

	if (!unix_ns || !gmtime_r(&seconds, &tm))
		return;
	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text, sizeof(text), "%s.%03uZ", date,
		       (unsigned int)(unix_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	add_text(r, key, text);
}

static void add_configured(struct resource *r)
{
	const struct render_info *info = r->info;

	if (info->service_name)
		put_text(r, KEY_SERVICE_NAME, info->service_name);
	for (size_t i = 0; i < info->n_resource_attributes; i++) {
		const char *key = info->resource_attributes[2 * i];

		/* The last of several wins; the service name has been written. */
		if (*key && !configured_from(info, i + 1, key) &&
		    !(info->service_name && strcmp(key, KEY_SERVICE_NAME) == 0))
			put_text(r, key, info->resource_attributes[2 * i + 1]);
	}
}

/* A Kubernetes name has parts; the conventions have a key for each. */
static void add_container_name(struct resource *r, const char *name)
{
	static const char *const keys[] = {"k8s.namespace.name", KEY_POD_NAME,
					   "k8s.container.name"};

	if (!strchr(name, '/')) {
		add_text(r, "container.name", name);
		return;
	}
	for (size_t i = 0; *name && i < sizeof(keys) / sizeof(keys[0]); i++) {
		char part[FRAME_MAX_NAME];
		size_t n = strcspn(name, "/");

		(void)text_clean(part, sizeof(part), name, n);
		add_text(r, keys[i], part);
		if (i == 1)
			add_deployment(r, part);
		name += n + (name[n] == '/');
	}
}

static void add_process(struct resource *r, const struct profile *p, uint32_t process,
			bool runs_user_code)
{
	const struct profile_process *proc = &p->processes.items[process];
	const char *comm = profile_text(p, proc->comm), *name;
	const char *said = profile_text(p, proc->attributes);
	char exe[FRAME_MAX_NAME], service[FRAME_MAX_NAME];

	(void)text_clean(exe, sizeof(exe), profile_text(p, proc->executable_path), SIZE_MAX);
	exe[path_length(exe)] = '\0';
	name = frame_basename(exe);

	if (label_find(said, KEY_SERVICE_NAME, service, sizeof(service)))
		add_text(r, KEY_SERVICE_NAME, service);
	else if (*name)
		add_text(r, KEY_SERVICE_NAME, name);
	else if (*comm)
		add_text(r, KEY_SERVICE_NAME, runs_user_code || proc->is_program ? comm : "kernel");
	else
		add_text(r, KEY_SERVICE_NAME, "unknown_service");
	add_int(r, "process.pid", proc->pid);
	add_time(r, "process.creation.time", proc->start_time_unix_ns);
	add_text(r, "process.executable.name", name);
	add_text(r, "process.executable.path", exe);
	add_text(r, "process.linux.cgroup", profile_text(p, proc->cgroup));
	add_text(r, "container.id", profile_text(p, proc->container_id));
	add_container_name(r, profile_text(p, proc->container_name));
	add_text(r, "container.runtime.name", profile_text(p, proc->container_runtime));
	add_text(r, "k8s.pod.uid", profile_text(p, proc->pod_uid));
	add_text(r, "systemd.unit", profile_text(p, proc->systemd_unit));
}

static int add_what_it_says(struct resource *r, const char *said)
{
	char pod[FRAME_MAX_NAME];

	/* Only Kubernetes' own name of a pod shows its deployment. */
	if (!is_ours(r, KEY_POD_NAME) && label_find(said, KEY_POD_NAME, pod, sizeof(pod)))
		add_deployment(r, pod);
	return add_all_said(r, said);
}

/* Names of architectures in the conventions; others stay as in the kernel. */
static const char *convention_arch(const char *arch)
{
	if (arch && strcmp(arch, "x86_64") == 0)
		return "amd64";
	if (arch && strcmp(arch, "aarch64") == 0)
		return "arm64";
	return arch;
}

int otlp_write_resource(struct wire_buffer *b, const struct profile *p,
			const struct render_info *info, uint32_t process, bool runs_user_code)
{
	struct resource r = {.info = info};
	int e;

	add_configured(&r);
	add_process(&r, p, process, runs_user_code);
	add_text(&r, "host.name", info->host_name);
	add_text(&r, "host.id", info->host_id);
	add_text(&r, "host.arch", convention_arch(info->host_arch));
	add_text(&r, "os.type", "linux");
	e = add_what_it_says(&r, profile_text(p, p->processes.items[process].attributes));
	if (!wire_buffer_ok(&r.body))
		e = -ENOMEM;
	wire_put_bytes(b, 1, r.body.bytes, r.body.n);
	wire_buffer_deinit(&r.body);
	return wire_buffer_ok(b) ? e : -ENOMEM;
}

/* Compares names, for recorded files, where pid and container may be missing. */
static bool same_names(const struct profile_process *a, const struct profile_process *b)
{
	return a->comm == b->comm && a->container_name == b->container_name &&
	       a->systemd_unit == b->systemd_unit;
}

/* A program that is deleted while it runs has two paths, but is exported with one. */
static bool same_executable(const struct profile *p, strid a, strid b)
{
	const char *x = profile_text(p, a), *y = profile_text(p, b);
	size_t n = path_length(x);

	return a == b || (n == path_length(y) && memcmp(x, y, n) == 0);
}

static bool same_resource(const struct profile *p, const struct profile_process *a,
			  const struct profile_process *b, bool by_name)
{
	return (!by_name || same_names(a, b)) && a->pid == b->pid &&
	       a->start_time_unix_ns == b->start_time_unix_ns && a->cgroup == b->cgroup &&
	       a->container_id == b->container_id && a->attributes == b->attributes &&
	       same_executable(p, a->executable_path, b->executable_path);
}

uint32_t *otlp_group_resources(const struct profile *p, bool by_name)
{
	uint32_t *first = calloc((size_t)p->processes.n + 1, sizeof(*first));
	struct hash_index index = HASH_INDEX_INIT;

	for (uint32_t i = 0; first && i < p->processes.n; i++) {
		const struct profile_process *proc = &p->processes.items[i];
		uint64_t hash = hash_combine(proc->pid, proc->start_time_unix_ns);
		uint32_t slot = hash_index_first(&index, hash), row;

		while ((row = hash_index_row(&index, slot)) != HASH_INDEX_NONE &&
		       !same_resource(p, &p->processes.items[row], proc, by_name))
			slot = hash_index_next(&index, slot);
		first[i] = row == HASH_INDEX_NONE ? i : row;
		if (row == HASH_INDEX_NONE && hash_index_add(&index, hash, i) < 0) {
			free(first);
			first = NULL;
		}
	}
	hash_index_deinit(&index);
	return first;
}
