/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a container, from the state files of its engine:
 *
 *	docker's config.v2.json		"Name" at the top; "Config": {"Labels": {...}}
 *	an OCI bundle's config.json	"annotations": {...}, of containerd, nerdctl and cri-o
 *	conmon's command line		... -n NAME ...
 *
 * With Kubernetes, labels and annotations give namespace, pod and container: "NAMESPACE/POD/NAME".
 */
#include <stdio.h>
#include <string.h>

#include "src/host/internal.h"
#include "util/json-read.h"
#include "util/text.h"

#define MAX_TEXT JSON_MAX_TEXT

struct parts {
	char name[MAX_TEXT], pod[MAX_TEXT], namespace[MAX_TEXT];
};

/* The labels and annotations with names, and the field for each. */
static const struct {
	const char *key;
	size_t offset;
} labels[] = {
	{"io.kubernetes.pod.name", offsetof(struct parts, pod)},
	{"io.kubernetes.pod.namespace", offsetof(struct parts, namespace)},
	{"io.kubernetes.container.name", offsetof(struct parts, name)},
	{"io.kubernetes.cri.sandbox-name", offsetof(struct parts, pod)},
	{"io.kubernetes.cri.sandbox-namespace", offsetof(struct parts, namespace)},
	{"io.kubernetes.cri.container-name", offsetof(struct parts, name)},
	{"nerdctl/name", offsetof(struct parts, name)},
};

static void take(const struct json_reader *j, struct parts *p)
{
	const char *key = j->depth <= JSON_MAX_KEYS ? j->keys[j->depth] : "", *value = j->value;
	bool labelled = (j->depth == 2 && strcmp(j->keys[1], "annotations") == 0) ||
			(j->depth == 3 && strcmp(j->keys[1], "Config") == 0 &&
			 strcmp(j->keys[2], "Labels") == 0);

	if (j->depth == 1 && strcmp(key, "Name") == 0 && !p->name[0])
		(void)snprintf(p->name, MAX_TEXT, "%s", value + (value[0] == '/'));
	for (size_t i = 0; labelled && i < ARRAY_SIZE(labels); i++) {
		if (strcmp(key, labels[i].key) == 0)
			(void)snprintf((char *)p + labels[i].offset, MAX_TEXT, "%s", value);
	}
}

/* Words, each with a 0 after it. Another process may have the pid by now. */
static void read_command_line(const char *text, size_t n, const char *id, struct parts *p)
{
	const char *previous = "", *slash;
	bool is_first = true, same_id = false;

	while (n) {
		size_t length = strnlen(text, n);

		if (length == n)
			return;
		if (is_first) {
			slash = strrchr(text, '/');
			if (strcmp(slash ? slash + 1 : text, "conmon") != 0)
				return;
		}
		same_id |= strcmp(previous, "-c") == 0 && strcmp(text, id) == 0;
		if (strcmp(previous, "-n") == 0 && same_id) {
			(void)snprintf(p->name, MAX_TEXT, "%s", text);
			return;
		}
		is_first = false;
		previous = text;
		text += length + 1;
		n -= length + 1;
	}
}

bool host_parse_container_state(const char *text, size_t n, const char *id, char *ret, size_t size)
{
	struct parts p = {0};
	char all[3 * MAX_TEXT];

	if (n && text[0] == '{') {
		struct json_reader j = json_reader_make(text, n);

		while (json_reader_next(&j)) {
			if (j.is_string)
				take(&j, &p);
		}
	} else {
		read_command_line(text, n, id, &p);
	}
	/* The container that holds the namespaces of a pod has no name of its own. */
	(void)snprintf(all, sizeof(all), "%s%s%s%s%s", p.namespace, *p.namespace ? "/" : "", p.pod,
		       *p.pod && *p.name ? "/" : "", p.name);
	(void)text_clean(ret, size, all, SIZE_MAX);
	return *p.name || *p.pod;
}
