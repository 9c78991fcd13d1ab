/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/process-context.h"
#include "src/process/context-file.h"
#include "src/profile/labels.h"
#include "src/profiler/outside.h"
#include "src/profiler/process-said.h"
#include "src/profiler/setup.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/globs.h"
#include "util/hash.h"
#include "util/text.h"

#define MAX_ATTRIBUTES	 64  /* of a process */
#define MAX_REFUSED	 256 /* of a process, that are counted */
#define MAX_KEY_BYTES	 128
#define MAX_THREAD_KEYS	 256
#define MAX_VALUE_BYTES	 1024
#define MAX_TEXT_BYTES	 8192		       /* of a process */
#define MAX_TOTAL_BYTES	 (UINT64_C(8) << 20)   /* of all */
#define YOUNG_NS	 (500 * NSEC_PER_MSEC) /* too short a life to say much */
#define SOON_NS		 (1 * NSEC_PER_SEC)    /* after new code, or without an answer */
#define FIRST_DELAY_NS	 (4 * NSEC_PER_SEC)
#define LONGEST_DELAY_NS (60 * NSEC_PER_SEC)
#define LONGEST_SAME_NS	 (600 * NSEC_PER_SEC) /* while a size is the same, and no samples pay */
#define MAX_UNREADY	 8 /* looks in a row at a context that is being written */
#define MAX_HURRIED	 8 /* new mappings that are a reason to look earlier */
/* A look reads the maps of a process: its price is at most a microsecond for each sample. */
#define LOOK_SAMPLES	     128
#define LOOK_MAPPING_SAMPLES 4 /* for each mapping of code; others are about five times as many */
/* Without a question; a line of a library has some 100 bytes. */
#define READ_SAMPLES	     16
#define READ_BYTES_OF_SAMPLE 96
#define MAX_PAID_SAMPLES     16384 /* that pay for later looks */
#define MAX_OWED_SAMPLES     1024
#define FREE_NS		     (200 * NSEC_PER_MSEC) /* between looks that nobody pays for */
#define SCHEMA_SECONDS	     600

/* The attributes of a process while they are collected. */
struct collection {
	struct sayings *of;
	struct process_said *said; /* it is for */
	FILE *out;
	char *text;
	size_t n;
	char keys[MAX_ATTRIBUTES][MAX_KEY_BYTES];
	uint32_t n_keys;
	char *service;
	bool in_pod, threads, node;
	char **thread_keys; /* MAX_THREAD_KEYS of them */
	uint32_t n_thread_keys;
	char unknown_schema[32]; /* "": there is none */
};

/* By the hashes of their keys. */
struct refused_attributes {
	uint64_t keys[MAX_REFUSED];
	uint32_t n;
};

/* ---- One attribute ---- */

/* It counts once, however often the process is looked at. */
static void refuse(struct collection *c, const void *key, size_t n)
{
	struct refused_attributes *r = c->said->refused;
	uint64_t hash = hash_bytes(key, n, 0);

	if (!r)
		r = c->said->refused = calloc(1, sizeof(*r));
	for (uint32_t i = 0; r && i < r->n; i++) {
		if (r->keys[i] == hash)
			return;
	}
	if (!r || r->n == MAX_REFUSED)
		return;
	r->keys[r->n++] = hash;
	c->of->n_refused++;
}

static bool is_known(const struct collection *c, const char *key)
{
	for (uint32_t i = 0; i < c->n_keys; i++) {
		if (strcmp(c->keys[i], key) == 0)
			return true;
	}
	return false;
}

/* Room for a label with these texts. */
static bool has_room(const struct collection *c, size_t n)
{
	return c->n_keys < MAX_ATTRIBUTES && (size_t)ftell(c->out) + n + 32 <= MAX_TEXT_BYTES;
}

/* The keys that say which process it is and where it runs: perfwalk knows these itself. */
static bool is_seen(const char *key)
{
	static const char *const keys[] = {"process.pid",	   "process.creation.time",
					   "process.linux.cgroup", "container.id",
					   "k8s.pod.uid",	   "systemd.unit"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return strncmp(key, "process.executable.", 19) == 0;
}

/* Clean texts. The first one of a key stays. */
static void add(struct collection *c, const struct label *l)
{
	if (!*l->key || is_seen(l->key) || is_known(c, l->key) ||
	    !globs_allow(c->of->allow, c->of->deny, l->key))
		return;
	if (!has_room(c, strlen(l->key) + (l->text ? strlen(l->text) : 20))) {
		refuse(c, l->key, strlen(l->key));
		return;
	}
	(void)snprintf(c->keys[c->n_keys++], MAX_KEY_BYTES, "%s", l->key);
	label_write(c->out, l);
	if (l->text && !*l->unit && strcmp(l->key, "service.name") == 0)
		(void)text_set(&c->service, l->text);
}

/* Texts as they came; a longer one is left out, since half a name is another name. */
static void add_text(struct collection *c, const char *key, const char *text)
{
	char clean_key[MAX_KEY_BYTES], clean[MAX_VALUE_BYTES];

	if (strlen(key) >= MAX_KEY_BYTES || strlen(text) >= MAX_VALUE_BYTES) {
		refuse(c, key, strlen(key));
		return;
	}
	(void)text_clean(clean_key, sizeof(clean_key), key, SIZE_MAX);
	(void)text_clean(clean, sizeof(clean), text, SIZE_MAX);
	if (*clean)
		add(c, &(struct label){.key = clean_key, .text = clean, .unit = ""});
}

/* ---- The process context ---- */

static int take_thread_key(void *ctx, const uint8_t *text, size_t n)
{
	struct collection *c = ctx;
	char key[MAX_KEY_BYTES] = "";

	if (!c->thread_keys)
		c->thread_keys = calloc(MAX_THREAD_KEYS, sizeof(*c->thread_keys));
	if (!c->thread_keys || c->n_thread_keys == MAX_THREAD_KEYS)
		return 0;
	if (text && n < sizeof(key))
		(void)text_clean(key, sizeof(key), (const char *)text, n);
	c->thread_keys[c->n_thread_keys++] =
		*key && globs_allow(c->of->allow, c->of->deny, key) ? strdup(key) : NULL;
	return 0;
}

static bool is_text(const uint8_t *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* Attributes only for readers of contexts (OTEP 4947). */
static void take_reference(struct collection *c, const struct process_context_attribute *a)
{
	enum process_context_schema schema = process_context_schema_of(a);

	if (is_text(a->key, a->n_key, "threadlocal.attribute_key_map") &&
	    a->kind == PROCESS_CONTEXT_LIST && !c->thread_keys)
		(void)process_context_each_text(a->bytes, a->n, take_thread_key, c);
	c->node |= schema == PROCESS_CONTEXT_NODE;
	c->threads |= c->node || schema == PROCESS_CONTEXT_THREADS;
	if (schema == PROCESS_CONTEXT_UNKNOWN_SCHEMA)
		(void)text_clean(c->unknown_schema, sizeof(c->unknown_schema),
				 (const char *)a->bytes, a->n);
}

static void add_double(struct collection *c, const char *key, int64_t bits)
{
	char text[LABEL_DOUBLE_BYTES];
	double d;

	memcpy(&d, &bits, sizeof(d));
	add(c, &(struct label){.key = key, .text = label_format_double(text, d), .unit = "double"});
}

/* Half a list would be another one. */
static void add_list(struct collection *c, const char *key, const uint8_t *bytes, size_t n)
{
	struct label_list l = {.n = 0};

	if (process_context_each_text(bytes, n, label_list_add, &l) < 0 || l.refused)
		refuse(c, key, strlen(key));
	else if (l.n_items)
		add(c, &(struct label){.key = key, .text = l.text, .unit = "list"});
}

/* What says the service is a text everywhere. */
static bool fits(const char *key, const struct process_context_attribute *a)
{
	bool is_text = a->kind == PROCESS_CONTEXT_TEXT;

	return a->n_key < MAX_KEY_BYTES && (!is_text || a->n < MAX_VALUE_BYTES) &&
	       (is_text || !label_names_service(key));
}

static int take_attribute(void *ctx, const struct process_context_attribute *a)
{
	struct collection *c = ctx;
	char key[MAX_KEY_BYTES], text[MAX_VALUE_BYTES];

	if (!a->is_resource) {
		take_reference(c, a);
		return 0;
	}
	(void)text_clean(key, sizeof(key), (const char *)a->key, a->n_key);
	if (!fits(key, a)) {
		refuse(c, a->key, a->n_key);
		return 0;
	}
	if (a->kind == PROCESS_CONTEXT_DOUBLE) {
		add_double(c, key, a->number);
		return 0;
	}
	if (a->kind == PROCESS_CONTEXT_LIST) {
		add_list(c, key, a->bytes, a->n);
		return 0;
	}
	if (a->kind == PROCESS_CONTEXT_TEXT) {
		memcpy(text, a->bytes, a->n);
		text[a->n] = '\0';
		add_text(c, key, text);
		return 0;
	}
	add(c, &(struct label){.key = key,
			       .number = a->number,
			       .unit = a->kind == PROCESS_CONTEXT_BOOL ? "bool" : ""});
	return 0;
}

/* ---- The environment ---- */

static void take_pair(void *ctx, const char *key, const char *value)
{
	add_text(ctx, key, value);
}

/* In a pod; elsewhere such a name can mean anything. */
static const char *downward_key(const char *variable)
{
	static const struct {
		const char *variable, *key;
	} names[] = {
		{"OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "k8s.pod.name"},
		{"K8S_POD_NAME", "k8s.pod.name"},
		{"POD_NAME", "k8s.pod.name"},
		{"OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "k8s.node.name"},
		{"K8S_NODE_NAME", "k8s.node.name"},
		{"NODE_NAME", "k8s.node.name"},
		{"K8S_NAMESPACE_NAME", "k8s.namespace.name"},
		{"POD_NAMESPACE", "k8s.namespace.name"},
		{"K8S_CONTAINER_NAME", "k8s.container.name"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(variable, names[i].variable) == 0)
			return names[i].key;
	}
	return NULL;
}

/* The value of a variable among n bytes of them, or NULL. */
static const char *find_variable(const char *text, size_t n, const char *name)
{
	size_t n_name = strlen(name);

	for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
		if (strncmp(text + at, name, n_name) == 0 && text[at + n_name] == '=')
			return text + at + n_name + 1;
	}
	return NULL;
}

/* text: n bytes, the last one a 0; may be changed. */
static void take_environment(struct collection *c, char *text, size_t n)
{
	const char *service = find_variable(text, n, "OTEL_SERVICE_NAME");
	const char *attributes = find_variable(text, n, "OTEL_RESOURCE_ATTRIBUTES");

	if (service)
		add_text(c, "service.name", service);
	if (attributes)
		(void)host_parse_resource_variable(attributes, take_pair, c);
	for (size_t at = 0, next; c->in_pod && at < n; at = next) {
		char *equals = strchr(text + at, '=');
		const char *key;

		next = at + strlen(text + at) + 1;
		if (!equals)
			continue;
		*equals = '\0';
		key = downward_key(text + at);
		if (key)
			add_text(c, key, equals + 1);
	}
}

/* ---- A look ---- */

/* Replaces the text if it is another one; takes those of the collection. */
static void replace(struct process_said *s, struct collection *c)
{
	struct sayings *of = c->of;
	bool same = s->n_text == c->n && (c->n == 0 || memcmp(s->text, c->text, c->n) == 0);

	if (same)
		return;
	if (of->n_bytes - s->n_text + c->n > MAX_TOTAL_BYTES) {
		for (uint32_t i = 0; i < c->n_keys; i++)
			refuse(c, c->keys[i], strlen(c->keys[i]));
		return;
	}
	of->n_bytes += c->n - s->n_text;
	free(s->text);
	free(s->service);
	s->n_text = c->n;
	s->text = TAKE_PTR(c->text);
	s->service = TAKE_PTR(c->service);
	s->version++;
}

static void free_keys(char **keys, uint32_t n)
{
	for (uint32_t i = 0; keys && i < n; i++)
		free(keys[i]);
	free(keys);
}

/* c->threads and its keys are of the context alone. */
static void replace_keys(struct process_said *s, struct collection *c)
{
	free_keys(s->keys, s->n_keys);
	s->threads = c->threads;
	s->node = c->node;
	s->keys = c->thread_keys;
	s->n_keys = c->n_thread_keys;
	s->keys_version++;
}

static void take_nothing(struct process_said *s, struct collection *c)
{
	s->published_ns = 0;
	replace(s, c);
	replace_keys(s, c);
}

/* A context that is being written has no contents for a moment. Some never are at rest. */
static bool is_worth_a_second(struct process_said *s, int error)
{
	return error == -EAGAIN && s->n_unready < MAX_UNREADY && ++s->n_unready;
}

/* false: not now. */
static bool take_all(struct process_said *s, struct collection *c, int fd)
{
	_cleanup_free_ char *bytes = NULL;
	struct context_file head;

	if (!context_file_read(fd, &head, &bytes))
		return true;
	if (is_worth_a_second(s, head.error))
		return false;
	/* Nothing was withdrawn. */
	if (head.error == -EAGAIN && s->published_ns)
		return true;
	if (head.error == 0)
		s->n_unready = 0;
	c->out = open_memstream(&c->text, &c->n);
	if (!c->out)
		return true;
	s->published_ns = head.error == 0 ? head.published_ns : 0;
	if (head.error == 0)
		(void)process_context_read((const uint8_t *)bytes + head.n_environment,
					   head.n_payload, take_attribute, c);
	take_environment(c, bytes, head.n_environment);
	if (fclose(c->out) == 0)
		replace(s, c);
	free(c->text);
	free(c->service);
	replace_keys(s, c);
	return true;
}

/* Programs of a newer form than this version. */
static void warn_of_schema(struct sayings *of, const struct collection *c, uint32_t pid)
{
	if (*c->unknown_schema && !c->threads && log_ratelimit(&of->schemas, SCHEMA_SECONDS))
		log_warning("process %u: its samples have no spans: it tells them as \"%s\", a "
			    "form that this perfwalk does not know",
			    pid, c->unknown_schema);
}

/* All that it says. false: not now. */
static bool ask_for_all(struct process_said *s, struct sayings *of, const struct host_process *p,
			bool in_pod)
{
	_cleanup_free_ struct collection *c = calloc(1, sizeof(*c));
	_cleanup_close_ int fd = outside_open_context(of->outside, p, 0, true);

	if (!c || fd == -EAGAIN || fd == -ETIMEDOUT || fd == -EBUSY)
		return false;
	c->of = of;
	c->said = s;
	c->in_pod = in_pod;
	if (fd >= 0 && !take_all(s, c, fd))
		return false;
	if (fd == -ENOENT)
		take_nothing(s, c);
	warn_of_schema(of, c, p->pid);
	return true;
}

/* Has it published another context since, or withdrawn the one it had? -EAGAIN: not now. */
static int has_changed(struct process_said *s, struct sayings *of, const struct host_process *p)
{
	_cleanup_close_ int fd = -EBADF;

	if (!s->published_ns && process_maps_find_context(&s->maps) == 0)
		return 0;
	fd = outside_open_context(of->outside, p, s->published_ns, false);
	if (is_worth_a_second(s, fd))
		return -EAGAIN;
	return fd >= 0 || (fd == -ENOENT && s->published_ns != 0);
}

static bool is_young(const struct host_process *p)
{
	return p->start_time_ns && clock_get_ns(CLOCK_BOOTTIME) < p->start_time_ns + YOUNG_NS;
}

/* A library that publishes a context for the first time has come with new mappings. Some processes
 * never end to have these: the compilers of runtimes. */
static void hurry(struct process_said *s, const struct host_process *p, uint64_t now_ns)
{
	if (s->looked && !s->published_ns && p->n_mappings > s->n_mappings &&
	    s->n_hurried < MAX_HURRIED && s->next_ns > now_ns + SOON_NS) {
		s->next_ns = now_ns + SOON_NS;
		s->delay_ns = 0;
		s->n_hurried++;
	}
	s->n_mappings = p->n_mappings;
}

/* A context can be published without new code. */
static bool may_look_early(const struct process_said *s, const struct sayings *of, uint64_t now_ns)
{
	return s->looked && !s->published_ns && now_ns - s->looked_ns >= of->interval_ns;
}

static int64_t price_of(const struct process_said *s, const struct host_process *p)
{
	return s->maps.open ? READ_SAMPLES + s->maps.n_bytes / READ_BYTES_OF_SAMPLE
			    : LOOK_SAMPLES + LOOK_MAPPING_SAMPLES * (int64_t)p->n_mappings;
}

/* Do the samples of all processes since the last look pay for another one? Then spends them. */
static bool is_paid(const struct process_said *s, struct sayings *of, const struct host_process *p)
{
	int64_t price = price_of(s, p);

	if (of->n_samples < price)
		return false;
	of->n_samples -= price;
	return true;
}

/* Later samples pay for the looks at a program that always changes, which do not wait for them. */
static void owe(const struct process_said *s, struct sayings *of, const struct host_process *p)
{
	of->n_samples -= price_of(s, p);
	if (of->n_samples < -MAX_OWED_SAMPLES)
		of->n_samples = -MAX_OWED_SAMPLES;
}

/* Looks come together: each is a question to a process that sleeps, which costs several times as
 * much when it has to wake for it. */
static uint64_t at_a_second(uint64_t ns)
{
	return (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC * NSEC_PER_SEC;
}

/* Then it has mapped no context since it was asked, unless it has unmapped as much. */
static bool is_same_size(struct process_said *s, const struct sayings *of, uint64_t now_ns)
{
	return s->looked && !s->published_ns && now_ns - s->asked_ns < LONGEST_SAME_NS &&
	       process_size_is_same(&s->size, now_ns, of->interval_ns);
}

/* That is asked from time to time, if samples pay. */
static bool is_worth_asking(const struct process_said *s, struct sayings *of,
			    const struct host_process *p, uint64_t now_ns)
{
	return now_ns - s->asked_ns >= LONGEST_DELAY_NS && is_paid(s, of, p);
}

/* When one of the same size may be asked. */
static uint64_t next_same(const struct process_said *s, uint64_t now_ns)
{
	uint64_t first = s->asked_ns + LONGEST_DELAY_NS;

	return first > now_ns ? first : at_a_second(now_ns + FIRST_DELAY_NS);
}

/* A program whose size has stood for a while and changes now is worth a look if no samples can pay
 * for it, too. One that always changes is not. */
static bool has_news(const struct process_said *s, struct sayings *of, uint64_t now_ns)
{
	if (!s->size.open || !s->size.stood || now_ns < of->next_free_ns)
		return false;
	of->next_free_ns = now_ns + FREE_NS;
	return true;
}

/* Before it is asked. Of those that live for long: to open something is a question, too. */
static void keep_size(struct process_said *s, struct sayings *of, const struct host_process *p,
		      uint64_t now_ns)
{
	bool was_open = s->size.open;

	if (s->published_ns ||
	    (!was_open && (s->delay_ns <= FIRST_DELAY_NS || of->n_sizes >= PROFILER_MAX_SIZES)))
		return;
	process_size_keep(&s->size, of->outside, p->pid, now_ns);
	of->n_sizes += s->size.open && !was_open;
	if (was_open && s->size.open)
		process_maps_keep(&s->maps, of->outside, p->pid);
}

static uint64_t next_delay(const struct process_said *s, const struct sayings *of)
{
	uint64_t next = s->delay_ns ? 2 * s->delay_ns : FIRST_DELAY_NS;
	uint64_t most = s->published_ns && of->interval_ns < LONGEST_DELAY_NS ? of->interval_ns
									      : LONGEST_DELAY_NS;

	return next < most ? next : most;
}

static void forget_program(struct process_said *s)
{
	free_keys(s->keys, s->n_keys);
	free(s->refused);
	process_maps_close(&s->maps);
	*s = (struct process_said){.text = s->text,
				   .n_text = s->n_text,
				   .service = s->service,
				   .version = s->version,
				   .size = s->size};
}

/* false: not now. */
static bool ask(struct process_said *s, struct sayings *of, const struct host_process *p,
		bool in_pod, uint64_t now_ns)
{
	int changed;

	s->next_ns = now_ns + SOON_NS;
	s->asked_ns = now_ns;
	keep_size(s, of, p, now_ns);
	changed = s->looked ? has_changed(s, of, p) : 1;
	if (changed < 0 || (changed && !ask_for_all(s, of, p, in_pod))) {
		s->size.differs = true; /* there may be a context */
		return false;
	}
	s->looked = true;
	s->n_execs = p->n_execs;
	return true;
}

void process_said_look(struct process_said *s, struct sayings *of, const struct host_process *p,
		       bool in_pod, uint64_t now_ns)
{
	bool early, same, paid;

	if (s->looked && s->n_execs != p->n_execs)
		forget_program(s);
	hurry(s, p, now_ns);
	of->n_samples += of->n_samples < MAX_PAID_SAMPLES;
	early = now_ns < s->next_ns;
	if (!of->outside || p->is_kernel || p->exited || (early && !may_look_early(s, of, now_ns)))
		return;
	if (is_young(p)) {
		s->next_ns = now_ns + YOUNG_NS;
		return;
	}
	same = is_same_size(s, of, now_ns);
	paid = same && is_worth_asking(s, of, p, now_ns);
	same = same && !paid;
	if (early && !same && !paid && !is_paid(s, of, p) && !has_news(s, of, now_ns))
		return;
	if (!early && !same && !paid && s->maps.open)
		owe(s, of, p);
	s->looked_ns = now_ns;
	if ((!same && !ask(s, of, p, in_pod, now_ns)) || (same && early))
		return;
	s->delay_ns = next_delay(s, of);
	s->next_ns = at_a_second(now_ns + s->delay_ns);
	if (same && s->next_ns > next_same(s, now_ns))
		s->next_ns = next_same(s, now_ns);
}

void process_said_deinit(struct process_said *s, struct sayings *of)
{
	of->n_bytes -= s->n_text;
	free(s->text);
	free(s->service);
	free(s->refused);
	free_keys(s->keys, s->n_keys);
	of->n_sizes -= s->size.open;
	process_size_close(&s->size);
	process_maps_close(&s->maps);
	*s = (struct process_said){0};
}

const char *process_said_service(const struct process_said *s, const struct host_process *p)
{
	const char *path = p->executable_path, *slash = path ? strrchr(path, '/') : NULL;

	return s->service ? s->service : slash ? slash + 1 : p->comm;
}
