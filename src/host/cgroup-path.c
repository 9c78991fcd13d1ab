/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the container, the pod and the systemd unit in a cgroup path.
 *
 *	/docker/<id>                                               docker, cgroupfs driver
 *	/system.slice/docker-<id>.scope                            docker, systemd driver
 *	/kubepods/burstable/pod<uid>/<id>                          kubelet, cgroupfs driver
 *	/kubepods.slice/.../kubepods-burstable-pod<u_i_d>.slice/cri-containerd-<id>.scope
 *	/system.slice/containerd.service/kubepods-pod<u_i_d>.slice:cri-containerd:<id>
 *	/.../crio-<id>.scope[/container]                           (crio-conmon-<id> is the monitor)
 *	/machine.slice/libpod-<id>.scope[/container], /libpod_parent/[<pod>/]libpod-<id>
 *	/ecs/<task>/<id>, with <id> of 64 or of 32 hex digits and "-<digits>"
 *	/.../lxc.payload.<name>, /lxc.payload/<name>, /lxc/<name>  LXC 4, 3.1, and before
 *	/machine.slice/machine-<name>.scope, .../systemd-nspawn@<name>.service
 *
 * The innermost of each counts: a process in nested containers belongs to the inner one. A
 * container may choose its path, so only hex digits become an id. Containers with a name alone
 * count if there is none with an id; the outermost of them does, as those inside cannot choose
 * that.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/host/internal.h"
#include "util/text.h"

#define MAX_COMPONENTS 64

struct component {
	const char *text;
	size_t n;
};

static bool starts_with(struct component c, const char *prefix)
{
	size_t n = strlen(prefix);

	return c.n >= n && memcmp(c.text, prefix, n) == 0;
}

static bool ends_with(struct component c, const char *suffix)
{
	size_t n = strlen(suffix);

	return c.n >= n && memcmp(c.text + c.n - n, suffix, n) == 0;
}

static bool equals(struct component c, const char *text)
{
	return c.n == strlen(text) && memcmp(c.text, text, c.n) == 0;
}

static struct component without(struct component c, const char *prefix, const char *suffix)
{
	if (starts_with(c, prefix)) {
		c.text += strlen(prefix);
		c.n -= strlen(prefix);
	}
	if (ends_with(c, suffix))
		c.n -= strlen(suffix);
	return c;
}

static size_t count_hex(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && ((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
		i++;
	return i;
}

/* 64 hex digits, or 32 and a decimal number (ECS on Fargate). */
static bool is_container_id(struct component c)
{
	size_t hex = count_hex(c.text, c.n), i;

	if (hex == 64)
		return c.n == 64;
	if (hex != 32 || c.n < 34 || c.n > 64 || c.text[32] != '-')
		return false;
	for (i = 33; i < c.n && c.text[i] >= '0' && c.text[i] <= '9'; i++)
		;
	return i == c.n;
}

/* Prefixes as the runtimes write them with the systemd cgroup driver, and podman always. */
static const struct {
	const char *prefix, *runtime;
} runtimes[] = {
	{"docker-", "docker"}, {"cri-containerd-", "containerd"}, {"nerdctl-", "containerd"},
	{"crio-", "cri-o"},    {"libpod-payload-", "podman"},	  {"libpod-", "podman"},
};

/* The parent directory of a bare id. */
static const struct {
	const char *parent, *runtime;
} parents[] = {
	{"docker", "docker"},
	{"nerdctl", "containerd"},
};

/* The middle of "<slice>:<this>:<id>". */
static const struct {
	const char *name, *runtime;
} colon_names[] = {
	{":cri-containerd", "containerd"},
	{":containerd", "containerd"},
	{":nerdctl", "containerd"},
	{":crio", "cri-o"},
	{":docker", "docker"},
};

static void set_container(struct component id, const char *runtime, struct host_cgroup *ret)
{
	memcpy(ret->container_id, id.text, id.n);
	ret->container_id[id.n] = '\0';
	ret->runtime = runtime;
}

static bool parse_colon_form(struct component c, struct host_cgroup *ret)
{
	const char *colon = memrchr(c.text, ':', c.n);
	struct component id, head;

	if (!colon)
		return false;
	head = (struct component){c.text, (size_t)(colon - c.text)};
	id = (struct component){colon + 1, c.n - head.n - 1};
	if (!is_container_id(id))
		return false;
	set_container(id, "", ret);
	for (size_t i = 0; i < ARRAY_SIZE(colon_names); i++) {
		if (ends_with(head, colon_names[i].name))
			ret->runtime = colon_names[i].runtime;
	}
	return true;
}

/* Is c the directory of a container? outer: the component before it. */
static bool parse_container(struct component c, struct component outer, struct host_cgroup *ret)
{
	struct component id;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		id = without(c, runtimes[i].prefix, ".scope");
		if (starts_with(c, runtimes[i].prefix) && is_container_id(id)) {
			set_container(id, runtimes[i].runtime, ret);
			return true;
		}
	}
	id = without(c, "", ".scope");
	if (!is_container_id(id))
		return parse_colon_form(c, ret);
	if (equals(outer, "libpod_parent")) /* a pod's own, with 64 hex digits as well */
		return false;
	set_container(id, "", ret);
	for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
		if (equals(outer, parents[i].parent))
			ret->runtime = parents[i].runtime;
	}
	return true;
}

/* Whatever the locale is. */
static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/* The part of a unit's name in which systemd escapes "-" as "\\x2d". */
static bool put_unescaped(struct component c, struct host_cgroup *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < c.n; i++) {
		char letter = c.text[i];

		if (letter == '\\' && c.n - i >= 4 && memcmp(c.text + i, "\\x2d", 4) == 0) {
			letter = '-';
			i += 3;
		} else if (!is_of_name(letter)) {
			return false;
		}
		if (n + 1 == sizeof(ret->container_id))
			return false;
		ret->container_id[n++] = letter;
	}
	ret->container_id[n] = '\0';
	return n > 0;
}

/* Is c the directory of a container that has a name and no id? depth: 0 for the first component. */
static bool parse_named(struct component c, struct component outer, size_t depth,
			struct host_cgroup *ret)
{
	static const struct {
		const char *outer, *prefix, *suffix, *runtime;
		size_t depth; /* SIZE_MAX: any */
	} forms[] = {
		{"", "lxc.payload.", "", "lxc", SIZE_MAX},
		{"lxc.payload", "", "", "lxc", 1},
		{"lxc", "", "", "lxc", 1},
		{"machine.slice", "machine-", ".scope", "systemd-nspawn", 1},
		{"machine.slice", "systemd-nspawn@", ".service", "systemd-nspawn", 1},
	};
	static const char *const not_containers[] = {"machine-qemu\\x2d", "machine-lxc\\x2d"};

	for (size_t i = 0; i < ARRAY_SIZE(not_containers); i++) {
		if (starts_with(c, not_containers[i])) /* libvirt's */
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if ((*forms[i].outer && !equals(outer, forms[i].outer)) ||
		    (forms[i].depth != SIZE_MAX && forms[i].depth != depth) ||
		    !starts_with(c, forms[i].prefix) || !ends_with(c, forms[i].suffix) ||
		    !put_unescaped(without(c, forms[i].prefix, forms[i].suffix), ret))
			continue;
		ret->runtime = forms[i].runtime;
		ret->is_named = true;
		return true;
	}
	return false;
}

/* "pod<uid>" or "...-pod<u_i_d>.slice[:...]"; static pods have 32 hex digits for a uid. */
static bool parse_pod(struct component c, char ret[37])
{
	const char *colon = memchr(c.text, ':', c.n);
	const char *p = NULL;
	char uid[37];
	size_t n;

	if (colon)
		c.n = (size_t)(colon - c.text);
	if (starts_with(c, "kubepods") && ends_with(c, ".slice")) {
		c.n -= strlen(".slice");
		for (size_t i = 0; i + 4 <= c.n; i++) {
			if (memcmp(c.text + i, "-pod", 4) == 0)
				p = c.text + i + 4;
		}
	} else if (starts_with(c, "pod")) {
		p = c.text + 3;
	}
	n = p ? (size_t)(c.text + c.n - p) : 0;
	if (n != 36 && n != 32)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool dash = n == 36 && (i == 8 || i == 13 || i == 18 || i == 23);

		if (dash ? p[i] != '-' && p[i] != '_' : !count_hex(p + i, 1))
			return false;
		uid[i] = dash ? '-' : p[i];
	}
	uid[n] = '\0';
	memcpy(ret, uid, n + 1);
	return true;
}

static bool parse_unit(struct component c, char *ret, size_t size)
{
	if ((!ends_with(c, ".service") && !ends_with(c, ".scope")) || equals(c, "init.scope") ||
	    c.n >= size)
		return false;
	(void)text_clean(ret, size, c.text, c.n);
	return true;
}

/* Keeps the innermost components if there are too many. */
static size_t split(const char *path, struct component ret[MAX_COMPONENTS])
{
	size_t n = 0;

	while (*path) {
		size_t length = strcspn(path, "/");

		if (length) {
			if (n == MAX_COMPONENTS)
				memmove(&ret[0], &ret[1], --n * sizeof(ret[0]));
			ret[n++] = (struct component){path, length};
		}
		path += length;
		if (*path)
			path++;
	}
	return n;
}

void host_parse_cgroup_path(const char *path, struct host_cgroup *ret)
{
	struct component parts[MAX_COMPONENTS];
	const struct component none = {"", 0};
	size_t n = split(path, parts);

	ret->container_id[0] = ret->pod_uid[0] = ret->unit[0] = '\0';
	ret->runtime = "";
	ret->is_named = false;
	while (n--) {
		struct component outer = n ? parts[n - 1] : none;
		struct host_cgroup own = {.runtime = ""};
		bool is_container = parse_container(parts[n], outer, &own) ||
				    parse_named(parts[n], outer, n, &own);

		if (is_container && (!ret->container_id[0] || ret->is_named)) {
			memcpy(ret->container_id, own.container_id, sizeof(own.container_id));
			ret->runtime = own.runtime;
			ret->is_named = own.is_named;
		}
		if (!ret->pod_uid[0])
			(void)parse_pod(parts[n], ret->pod_uid);
		if (!is_container && !ret->unit[0])
			(void)parse_unit(parts[n], ret->unit, sizeof(ret->unit));
	}
}

/* Rank of a path: a container, then a unit, then anything but the root. */
static int telling(const char *path)
{
	struct host_cgroup cg;

	host_parse_cgroup_path(path, &cg);
	return cg.container_id[0] ? 3 : cg.unit[0] ? 2 : path[0] && strcmp(path, "/") != 0;
}

/* The path of "ID:CONTROLLERS:PATH" (version 2: "0::PATH"), terminated in place, or NULL. */
static char *line_path(char *line, size_t n)
{
	char *first = memchr(line, ':', n), *second;

	if (!first)
		return NULL;
	second = memchr(first + 1, ':', n - (size_t)(first + 1 - line));
	if (!second || second[1] != '/')
		return NULL;
	return second + 1;
}

bool host_parse_cgroup_file(char *text, size_t n, char *path, size_t size)
{
	int best = -1;
	size_t best_length = 0;

	if (!size)
		return false;
	while (n) {
		char *end = memchr(text, '\n', n);
		size_t line = end ? (size_t)(end - text) : n;
		char *candidate;

		/* A last line without a newline may be cut, and has no byte for the 0. */
		if (!end)
			break;
		*end = '\0';
		candidate = line_path(text, line);
		if (candidate) {
			struct component c = {candidate, strlen(candidate)};
			int rank;

			/* A cgroup that was removed before its last task exited. */
			if (ends_with(c, " (deleted)"))
				candidate[c.n -= strlen(" (deleted)")] = '\0';
			rank = telling(candidate);
			if (rank > best || (rank == best && rank < 2 && c.n > best_length)) {
				best = rank;
				best_length = c.n;
				(void)text_clean(path, size, candidate, c.n);
			}
		}
		text += line + 1;
		n -= line + 1;
	}
	return best >= 0;
}
