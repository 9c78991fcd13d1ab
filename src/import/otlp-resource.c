/* SPDX-License-Identifier: Apache-2.0 */
/* A resource is a process, with its container, pod and unit, and what else it says of itself. */
#include <stdlib.h>
#include <string.h>

#include "proto/process-context.h"
#include "proto/wire-read.h"
#include "src/import/otlp-internal.h"
#include "src/profile/labels.h"
#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/text.h"

#define MAX_NAME_BYTES 512

/* Joins namespace, pod and container, which come in any order, to one name. */
static strid join_name(struct otlp_file *o, strid name, const char *part)
{
	const char *before = profile_text(o->im->p, name);
	char text[MAX_NAME_BYTES];

	if (!*before)
		return otlp_keep(o, part);
	(void)snprintf(text, sizeof(text), "%s/%s", before, part ? part : "");
	return otlp_keep(o, text);
}

/* Numbers of the fields of AnyValue. */
enum { ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5 };

/* A list of texts alone. */
static void keep_list(struct otlp_file *o, const char *key, const struct wire_field *f)
{
	struct label_list list = {.n = 0};
	char clean[MAX_NAME_BYTES];

	(void)text_clean(clean, sizeof(clean), key, SIZE_MAX);
	if (process_context_each_text(f->bytes, f->n, label_list_add, &list) == 0 && list.n_items &&
	    !list.refused)
		import_keep_clean_label(
			&o->said, &(struct label){.key = clean, .text = list.text, .unit = "list"},
			&o->said_text, &o->n_said);
}

static void keep_double(struct otlp_file *o, const char *key, uint64_t bits)
{
	char text[LABEL_DOUBLE_BYTES];
	double number;

	memcpy(&number, &bits, sizeof(number));
	import_keep_label(&o->said,
			  &(struct label){.key = key,
					  .text = label_format_double(text, number),
					  .unit = "double"},
			  &o->said_text, &o->n_said);
}

/* An attribute without a field of its own: texts, lists of them, numbers and truth values. */
static void keep_attribute(struct otlp_file *o, const char *key, const char *text,
			   const struct span *value)
{
	struct cursor c = cursor_make(value->bytes, value->n);
	struct label l = {.key = key, .text = text, .unit = ""};
	struct wire_field f = {0}, next;

	/* The last one counts. */
	while (!text && wire_read_field(&c, &next))
		f = next;
	l.number = (int64_t)f.value;
	l.unit = f.number == ANY_BOOL ? "bool" : "";
	if (text || (f.type == WIRE_VARINT && (f.number == ANY_BOOL || f.number == ANY_INT)))
		import_keep_label(&o->said, &l, &o->said_text, &o->n_said);
	else if (f.type == WIRE_FIXED64 && f.number == ANY_DOUBLE)
		keep_double(o, key, f.value);
	else if (f.type == WIRE_BYTES && f.number == ANY_ARRAY)
		keep_list(o, key, &f);
}

/* Does a resource's service have a name of its own, which does not follow from the process? */
static bool is_own_name(struct otlp_file *o, const char *service)
{
	const char *path = profile_text(o->im->p, o->process.executable_path);
	const char *slash = strrchr(path, '/');

	return *service && strcmp(service, slash ? slash + 1 : path) != 0 &&
	       strcmp(service, profile_text(o->im->p, o->process.comm)) != 0 &&
	       strcmp(service, "kernel") != 0 && strcmp(service, "unknown_service") != 0;
}

/* Of a process of which nothing else is known the service is the name; if a profile says another
 * one, it was the service's own. */
static void end_resource(struct otlp_file *o, const char *service)
{
	bool is_own = is_own_name(o, service),
	     is_all = o->process.comm == STRID_EMPTY && o->process.executable_path == STRID_EMPTY;

	if (o->said && fflush(o->said) == 0)
		o->process.attributes = otlp_keep(o, o->said_text);
	if (is_own)
		import_keep_label(
			&o->said,
			&(struct label){.key = "service.name", .text = service, .unit = ""},
			&o->said_text, &o->n_said);
	o->with_service = o->process.attributes;
	if (o->said && fclose(o->said) == 0)
		o->with_service = otlp_keep(o, o->said_text);
	if (!is_all)
		o->process.attributes = o->with_service;
	if (o->process.comm == STRID_EMPTY && strcmp(service, "unknown_service") != 0)
		o->process.comm = otlp_keep(o, service);
	free(o->said_text);
	o->said = NULL;
	o->said_text = NULL;
}

/* Attributes that all have, or that follow from others. */
static bool is_derived(const char *key)
{
	static const char *const keys[] = {"process.pid",	  "process.creation.time",
					   "service.name",	  "host.name",
					   "k8s.namespace.name",  "k8s.pod.name",
					   "k8s.container.name",  "k8s.deployment.name",
					   "k8s.replicaset.name", "os.type"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}

static void resource_attribute(struct otlp_file *o, const struct span *attribute,
			       char service[MAX_NAME_BYTES])
{
	const struct span name = otlp_bytes(attribute, 1), value = otlp_bytes(attribute, 2);
	const struct span string = otlp_bytes(&value, 1);
	const char *key = otlp_keep_text(o, TEXT_RESOURCE_KEY, &name);
	const char *text = otlp_keep_text(o, TEXT_RESOURCE, &string);
	struct profile_process *p = &o->process;
	const struct {
		const char *key;
		strid *field;
	} texts[] = {
		{"process.executable.path", &p->executable_path},
		{"process.executable.name", &p->comm},
		{"process.linux.cgroup", &p->cgroup},
		{"container.id", &p->container_id},
		{"container.name", &p->container_name},
		{"container.runtime.name", &p->container_runtime},
		{"k8s.pod.uid", &p->pod_uid},
		{"systemd.unit", &p->systemd_unit},
	};

	bool known;

	if (!key)
		return;
	known = is_derived(key);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].key) == 0) {
			*texts[i].field = otlp_keep(o, text);
			known = true;
		}
	}
	if (!known)
		keep_attribute(o, key, text, &value);
	if (strcmp(key, "k8s.namespace.name") == 0 || strcmp(key, "k8s.pod.name") == 0 ||
	    strcmp(key, "k8s.container.name") == 0)
		p->container_name = join_name(o, p->container_name, text);
	if (strcmp(key, "service.name") == 0 && text)
		(void)snprintf(service, MAX_NAME_BYTES, "%s", text);
	if (strcmp(key, "process.pid") == 0)
		p->pid = (uint32_t)otlp_number(&value, 3);
	else if (strcmp(key, "host.name") == 0)
		otlp_take_fact(&o->im->facts->host_name, text);
}

void otlp_take_comm(struct otlp_file *o, const char *text)
{
	strid comm = otlp_keep(o, text);

	if (comm != o->process.comm)
		o->process.attributes = o->with_service;
	o->process.comm = comm;
}

void otlp_read_resource(struct otlp_file *o, const struct span *resource)
{
	struct cursor c = cursor_make(resource->bytes, resource->n);
	char service[MAX_NAME_BYTES] = "";
	struct wire_field f;

	o->process = (struct profile_process){0};
	while (wire_read_field(&c, &f)) {
		const struct span attribute = {f.bytes, f.n};

		if (f.number == 1 && f.type == WIRE_BYTES)
			resource_attribute(o, &attribute, service);
	}
	end_resource(o, service);
}
