/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP payloads, decoded again and held against every rule a strict receiver has: the checks of
 * the signal's own conformance checker, restated, and the sums of what went in.
 */
#include <errno.h>
#include <stdbool.h>

#include "proto/otlp-profiles-service.pb-c.h"
#include "proto/otlp-merge.h"
#include "proto/otlp-rewrite.h"
#include "src/profile/labels.h"
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
	request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile profile_message;
typedef Opentelemetry__Proto__Profiles__V1development__Sample sample_message;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;

/* Of the synthetic profiles, in their order. */
static const struct kind {
	const char *type, *unit, *period_type, *period_unit;
	int64_t period;
} kinds[] = {
	{"samples", "count", "cpu", "nanoseconds", NSEC_PER_SEC / 99},
	{"page-faults", "count", "page-faults", "count", 1},
	{"samples", "count", "context-switches", "count", 10},
	{"samples", "count", "task-clock", "nanoseconds", NSEC_PER_MSEC},
};
#define N_KINDS ARRAY_SIZE(kinds)
#define MAX_PID 2000

/* Of values, by type and process. */
struct sums {
	int64_t of[N_KINDS][MAX_PID];
};

struct tally {
	struct sums *sums; /* NULL: not wanted */
	size_t max_bytes;
	uint32_t max_samples;
	uint64_t start, end; /* of the profile */
	uint64_t n_payloads, n_profiles, n_samples, n_sink_samples, value, counter_samples;
	uint64_t n_named, n_unnamed, n_weighted;
	const char *decode; /* protoc's command, NULL: not run */
};

static bool is_clean(const char *text)
{
	_cleanup_free_ char *clean = malloc(strlen(text) + 1);

	CHECK(clean);
	(void)text_clean(clean, strlen(text) + 1, text, SIZE_MAX);
	return strcmp(clean, text) == 0;
}

static void check_strings(const dictionary *d)
{
	CHECK_INT(d->n_string_table, >, 0);
	CHECK_STR(d->string_table[0], "");
	for (size_t i = 0; i < d->n_string_table; i++) {
		CHECK(is_clean(d->string_table[i]));
		CHECK(i == 0 || *d->string_table[i]);
	}
}

static void mark(uint8_t *used, size_t n, int64_t index)
{
	CHECK_INT(index, >=, 0);
	CHECK_INT(index, <, n);
	used[index] |= 1;
}

static void check_all_used(const uint8_t *used, size_t n, const char *what)
{
	for (size_t i = 1; i < n; i++) {
		if (!used[i])
			fprintf(stderr, "orphan: %s %zu\n", what, i);
		CHECK(used[i]);
	}
}

struct packed {
	uint8_t *bytes;
	size_t n;
};

static int compare_packed(const void *a, const void *b)
{
	const struct packed *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? -1 : 1) : memcmp(x->bytes, y->bytes, x->n);
}

/* No two entries of equal encoding; entry 0, the zero value, has no bytes, and no other has none.
 */
static void check_unique(ProtobufCMessage *const *entries, size_t n)
{
	_cleanup_free_ struct packed *packed = calloc(n, sizeof(*packed));

	CHECK(packed && n > 0);
	CHECK_INT(protobuf_c_message_get_packed_size(entries[0]), ==, 0);
	for (size_t i = 0; i < n; i++) {
		packed[i].bytes = malloc(protobuf_c_message_get_packed_size(entries[i]) + 1);
		CHECK(packed[i].bytes);
		packed[i].n = protobuf_c_message_pack(entries[i], packed[i].bytes);
	}
	qsort(packed, n, sizeof(*packed), compare_packed);
	for (size_t i = 1; i < n; i++)
		CHECK(compare_packed(&packed[i - 1], &packed[i]) != 0);
	for (size_t i = 0; i < n; i++)
		free(packed[i].bytes);
}

static void check_attributes(const dictionary *d, uint8_t *used, const int32_t *indices, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mark(used, d->n_attribute_table, indices[i]);
		CHECK_INT(indices[i], >, 0);
		for (size_t j = 0; j < i; j++)
			CHECK_INT(d->attribute_table[indices[i]]->key_strindex, !=,
				  d->attribute_table[indices[j]]->key_strindex);
	}
}

static const char *attribute(const dictionary *d, const int32_t *indices, size_t n, const char *key,
			     int64_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *kv =
			d->attribute_table[indices[i]];

		if (strcmp(d->string_table[kv->key_strindex], key) != 0)
			continue;
		if (kv->value->value_case ==
		    OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE) {
			*ret = kv->value->int_value;
			return "";
		}
		return kv->value->string_value;
	}
	return NULL;
}

struct used {
	uint8_t *strings, *attributes, *functions, *mappings, *locations, *stacks;
};

static void check_dictionary(struct tally *t, const dictionary *d, struct used *u)
{
	check_strings(d);
	check_unique((ProtobufCMessage *const *)d->mapping_table, d->n_mapping_table);
	check_unique((ProtobufCMessage *const *)d->location_table, d->n_location_table);
	check_unique((ProtobufCMessage *const *)d->function_table, d->n_function_table);
	check_unique((ProtobufCMessage *const *)d->attribute_table, d->n_attribute_table);
	check_unique((ProtobufCMessage *const *)d->stack_table, d->n_stack_table);
	CHECK_INT(d->n_link_table, ==, 1);
	CHECK_INT(d->link_table[0]->trace_id.len + d->link_table[0]->span_id.len, ==, 0);
	CHECK(!d->attribute_table[0]->value);

	for (size_t i = 1; i < d->n_stack_table; i++) {
		for (size_t j = 0; j < d->stack_table[i]->n_location_indices; j++) {
			mark(u->locations, d->n_location_table,
			     d->stack_table[i]->location_indices[j]);
			CHECK_INT(d->stack_table[i]->location_indices[j], >, 0);
		}
	}
	for (size_t i = 1; i < d->n_location_table; i++) {
		const Opentelemetry__Proto__Profiles__V1development__Location *l =
			d->location_table[i];
		int64_t n;

		mark(u->mappings, d->n_mapping_table, l->mapping_index);
		check_attributes(d, u->attributes, l->attribute_indices, l->n_attribute_indices);
		CHECK(attribute(d, l->attribute_indices, l->n_attribute_indices,
				"profile.frame.type", &n));
		for (size_t j = 0; j < l->n_lines; j++) {
			mark(u->functions, d->n_function_table, l->lines[j]->function_index);
			CHECK_INT(l->lines[j]->function_index, >, 0);
			CHECK_INT(l->lines[j]->line, >=, 0);
		}
		/* All locations of a mapping have lines or none has; those of mapping 0 have. */
		CHECK(l->mapping_index || l->n_lines);
		u->mappings[l->mapping_index] |= l->n_lines ? 2 : 4;
		CHECK_INT(u->mappings[l->mapping_index] & 6, !=, 6);
		t->n_named += l->n_lines > 0;
		t->n_unnamed += l->n_lines == 0;
	}
	for (size_t i = 1; i < d->n_mapping_table; i++) {
		const Opentelemetry__Proto__Profiles__V1development__Mapping *m =
			d->mapping_table[i];
		int64_t n;

		mark(u->strings, d->n_string_table, m->filename_strindex);
		CHECK(m->memory_start < m->memory_limit || (!m->memory_start && !m->memory_limit));
		check_attributes(d, u->attributes, m->attribute_indices, m->n_attribute_indices);
		CHECK(attribute(d, m->attribute_indices, m->n_attribute_indices,
				"process.executable.build_id.gnu", &n) ||
		      attribute(d, m->attribute_indices, m->n_attribute_indices,
				"process.executable.build_id.go", &n) ||
		      attribute(d, m->attribute_indices, m->n_attribute_indices,
				"process.executable.build_id.htlhash", &n));
	}
	for (size_t i = 1; i < d->n_function_table; i++) {
		const Opentelemetry__Proto__Profiles__V1development__Function *f =
			d->function_table[i];

		CHECK_INT(f->name_strindex, >, 0);
		mark(u->strings, d->n_string_table, f->name_strindex);
		mark(u->strings, d->n_string_table, f->system_name_strindex);
		mark(u->strings, d->n_string_table, f->filename_strindex);
	}
	for (size_t i = 1; i < d->n_attribute_table; i++) {
		CHECK_INT(d->attribute_table[i]->key_strindex, >, 0);
		mark(u->strings, d->n_string_table, d->attribute_table[i]->key_strindex);
		CHECK(d->attribute_table[i]->value);
	}
}

static void check_sample(struct tally *t, const dictionary *d, struct used *u,
			 const profile_message *p, const sample_message *s)
{
	int64_t n;

	mark(u->stacks, d->n_stack_table, s->stack_index);
	CHECK_INT(s->stack_index, >, 0);
	CHECK_INT(s->link_index, ==, 0);
	check_attributes(d, u->attributes, s->attribute_indices, s->n_attribute_indices);
	CHECK(attribute(d, s->attribute_indices, s->n_attribute_indices, "thread.id", &n));
	CHECK(attribute(d, s->attribute_indices, s->n_attribute_indices, "cpu.logical_number", &n));
	/* One shape: either the one or the other. */
	CHECK((s->n_values == 1 && s->n_timestamps_unix_nano == 0) ||
	      (s->n_values == 0 && s->n_timestamps_unix_nano > 0));
	for (size_t i = 0; i < s->n_timestamps_unix_nano; i++) {
		CHECK_INT(s->timestamps_unix_nano[i], >=, p->time_unix_nano);
		CHECK_INT(s->timestamps_unix_nano[i], <, p->time_unix_nano + p->duration_nano);
		CHECK(i == 0 || s->timestamps_unix_nano[i - 1] <= s->timestamps_unix_nano[i]);
	}
	t->n_samples += s->n_timestamps_unix_nano;
	t->value += s->n_values ? (uint64_t)s->values[0] : s->n_timestamps_unix_nano;
}

static bool equal_identity(const sample_message *a, const sample_message *b)
{
	return a->stack_index == b->stack_index &&
	       a->n_attribute_indices == b->n_attribute_indices &&
	       memcmp(a->attribute_indices, b->attribute_indices, a->n_attribute_indices * 4) == 0;
}

static void check_profile(struct tally *t, const dictionary *d, struct used *u,
			  const struct kind *k, const profile_message *p)
{
	int64_t n;

	CHECK_INT(p->n_samples, >, 0);
	CHECK_INT(p->n_samples, <=, t->max_samples);
	CHECK_STR(d->string_table[p->sample_type->type_strindex], k->type);
	CHECK_STR(d->string_table[p->sample_type->unit_strindex], k->unit);
	CHECK_STR(d->string_table[p->period_type->type_strindex], k->period_type);
	CHECK_STR(d->string_table[p->period_type->unit_strindex], k->period_unit);
	mark(u->strings, d->n_string_table, p->sample_type->type_strindex);
	mark(u->strings, d->n_string_table, p->sample_type->unit_strindex);
	mark(u->strings, d->n_string_table, p->period_type->type_strindex);
	mark(u->strings, d->n_string_table, p->period_type->unit_strindex);
	CHECK_INT(p->period, ==, k->period);
	CHECK_INT(p->time_unix_nano, <=, t->start);
	CHECK_INT(p->time_unix_nano + p->duration_nano, >=, t->end);
	CHECK_INT(p->profile_id.len, ==, 16);
	check_attributes(d, u->attributes, p->attribute_indices, p->n_attribute_indices);
	if (attribute(d, p->attribute_indices, p->n_attribute_indices, "perfwalk.samples", &n)) {
		t->counter_samples += (uint64_t)n;
		CHECK(attribute(d, p->attribute_indices, p->n_attribute_indices,
				"perfwalk.samples_lost", &n));
	}
	for (size_t i = 0; i < p->n_samples; i++) {
		check_sample(t, d, u, p, p->samples[i]);
		/* They are sorted by identity, so equal ones would be neighbours. */
		CHECK(i == 0 || !equal_identity(p->samples[i - 1], p->samples[i]));
	}
	t->n_profiles++;
}

static size_t kind_of(const dictionary *d, const profile_message *p)
{
	const char *name = d->string_table[p->period_type->type_strindex];
	size_t i = 0;

	while (i < N_KINDS && strcmp(kinds[i].period_type, name) != 0)
		i++;
	CHECK_INT(i, <, N_KINDS);
	return i;
}

static const key_value *resource_key(const Opentelemetry__Proto__Resource__V1__Resource *r,
				     const char *key)
{
	for (size_t i = 0; i < r->n_attributes; i++) {
		if (strcmp(r->attributes[i]->key, key) == 0)
			return r->attributes[i];
	}
	return NULL;
}

static void check_resource(const Opentelemetry__Proto__Resource__V1__Resource *r)
{
	for (size_t i = 0; i < r->n_attributes; i++) {
		CHECK(*r->attributes[i]->key && is_clean(r->attributes[i]->key));
		CHECK_INT(r->attributes[i]->key_strindex, ==, 0);
		CHECK(resource_key(r, r->attributes[i]->key) == r->attributes[i]);
		if (strcmp(r->attributes[i]->key, "process.pid") != 0) {
			CHECK_INT(r->attributes[i]->value->value_case, ==,
				  OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE);
			CHECK(is_clean(r->attributes[i]->value->string_value));
			CHECK(*r->attributes[i]->value->string_value);
		}
	}
	CHECK(resource_key(r, "service.name"));
}

static request *decode(const uint8_t *bytes, size_t n)
{
	request *r =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
			NULL, n, bytes);

	CHECK(r && r->dictionary);
	CHECK_INT(r->base.n_unknown_fields, ==, 0);
	return r;
}

/* protoc reads the payload by the schema and refuses strings that are not UTF-8. */
static void check_with_protoc(const char *command, const uint8_t *bytes, size_t n)
{
	FILE *f = popen(command, "w");

	CHECK(f);
	CHECK_INT(fwrite(bytes, 1, n, f), ==, n);
	CHECK_INT(pclose(f), ==, 0);
}

/* The Profiles of a process: one of each type at most, in their order. */
static void check_scope(struct tally *t, const dictionary *d, struct used *u,
			const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope,
			int64_t pid)
{
	CHECK_STR(scope->scope->name, "perfwalk");
	CHECK_STR(scope->scope->version, "0.1.0");
	CHECK_INT(scope->n_profiles, >, 0);
	for (size_t i = 0; i < scope->n_profiles; i++) {
		size_t kind = kind_of(d, scope->profiles[i]);
		uint64_t before = t->value;

		CHECK(i == 0 || kind_of(d, scope->profiles[i - 1]) < kind);
		check_profile(t, d, u, &kinds[kind], scope->profiles[i]);
		t->n_weighted += kind == 1;
		if (t->sums)
			t->sums->of[kind][pid] += (int64_t)(t->value - before);
	}
}

static int check_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct tally *t = ctx;
	uint64_t before = t->n_samples;
	request *r = decode(bytes, n);
	const dictionary *d = r->dictionary;
	struct used u = {calloc(1, d->n_string_table),	 calloc(1, d->n_attribute_table),
			 calloc(1, d->n_function_table), calloc(1, d->n_mapping_table),
			 calloc(1, d->n_location_table), calloc(1, d->n_stack_table)};

	CHECK_INT(n, <=, t->max_bytes);
	CHECK_INT(r->n_resource_profiles, >, 0);
	check_dictionary(t, d, &u);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		check_resource(r->resource_profiles[i]->resource);
		CHECK_INT(r->resource_profiles[i]->n_scope_profiles, ==, 1);
		CHECK(*r->resource_profiles[i]->schema_url);
		check_scope(t, d, &u, r->resource_profiles[i]->scope_profiles[0],
			    resource_key(r->resource_profiles[i]->resource, "process.pid")
				    ->value->int_value);
	}
	check_all_used(u.strings, d->n_string_table, "string");
	check_all_used(u.attributes, d->n_attribute_table, "attribute");
	check_all_used(u.functions, d->n_function_table, "function");
	check_all_used(u.mappings, d->n_mapping_table, "mapping");
	check_all_used(u.locations, d->n_location_table, "location");
	check_all_used(u.stacks, d->n_stack_table, "stack");
	if (t->decode)
		check_with_protoc(t->decode, bytes, n);

	free(u.strings);
	free(u.attributes);
	free(u.functions);
	free(u.mappings);
	free(u.locations);
	free(u.stacks);
	protobuf_c_message_free_unpacked(&r->base, NULL);
	CHECK(t->n_samples == before || t->n_weighted || t->n_samples - before == n_samples);
	t->n_payloads++;
	t->n_sink_samples += n_samples;
	return 0;
}

static struct tally check_sums(const struct profile *p, const struct render_info *info,
			       size_t max_bytes, uint32_t max_samples, struct sums *sums)
{
	struct render_otlp_options options = {max_bytes, max_samples, false};
	struct tally t = {.max_bytes = max_bytes ? max_bytes : (4u << 20) - (64u << 10),
			  .max_samples = max_samples ? max_samples : 16000,
			  .start = p->start_unix_ns,
			  .end = p->end_unix_ns,
			  .sums = sums};

	CHECK_INT(render_otlp(p, info, &options, check_payload, &t), ==, 0);
	CHECK_INT(t.n_sink_samples, ==, profile_n_samples(p));
	CHECK_INT(t.counter_samples, ==,
		  t.n_sink_samples ? profile_counter(p, PROFILE_SAMPLES) : 0);
	return t;
}

static struct tally check(const struct profile *p, const struct render_info *info, size_t max_bytes,
			  uint32_t max_samples)
{
	return check_sums(p, info, max_bytes, max_samples, NULL);
}

/* The command that decodes a payload from its input, or NULL without a protoc. */
static const char *find_protoc(void)
{
	static char command[512];
	const char *srcdir = getenv("srcdir") ? getenv("srcdir") : ".";

	if (system("protoc --version >/dev/null 2>&1") != 0)
		return NULL;
	(void)snprintf(
		command, sizeof(command),
		"protoc -I'%s' --decode=opentelemetry.proto.collector.profiles.v1development."
		"ExportProfilesServiceRequest '%s'/proto/otlp-profiles-service.proto >/dev/null",
		srcdir, srcdir);
	return command;
}

struct kept {
	uint8_t *bytes;
	size_t n;
};

static int keep(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct kept *k = ctx;

	CHECK(!k->bytes);
	k->bytes = malloc(n);
	CHECK(k->bytes);
	memcpy(k->bytes, bytes, n);
	k->n = n;
	return 0;
}

static request *render_one(const struct profile *p, const struct render_info *info)
{
	struct kept k = {0};
	request *r;

	CHECK_INT(render_otlp(p, info, NULL, keep, &k), ==, 0);
	CHECK(k.bytes);
	r = decode(k.bytes, k.n);
	free(k.bytes);
	return r;
}

static const char *resource_text(const request *r, size_t i, const char *key)
{
	const key_value *kv = resource_key(r->resource_profiles[i]->resource, key);

	return kv ? kv->value->string_value : NULL;
}

static void test_small(void)
{
	struct profile p;
	struct tally t;
	request *r;
	const dictionary *d;
	const sample_message *s;
	const Opentelemetry__Proto__Profiles__V1development__Location *leaf;
	int64_t n = 0;

	synthetic_small(&p);
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.n_payloads, ==, 1);
	CHECK_INT(t.n_profiles, ==, 3);
	CHECK_INT(t.value, ==, 12);

	r = render_one(&p, &synthetic_info);
	d = r->dictionary;
	CHECK_STR(resource_text(r, 0, "service.name"), "web");
	CHECK_STR(resource_text(r, 0, "container.runtime.name"), "docker");
	CHECK_STR(resource_text(r, 0, "process.executable.path"), "/usr/bin/web");
	CHECK_STR(resource_text(r, 0, "process.creation.time"), "2026-09-21T14:11:40.000Z");
	CHECK_STR(resource_text(r, 0, "host.arch"), "amd64");
	CHECK_INT(resource_key(r->resource_profiles[0]->resource, "process.pid")->value->int_value,
		  ==, 100);
	CHECK_STR(resource_text(r, 1, "systemd.unit"), "site.service");
	CHECK(!resource_key(r->resource_profiles[1]->resource, "container.id"));
	CHECK_STR(resource_text(r, 2, "service.name"), "kernel");
	CHECK(!resource_key(r->resource_profiles[2]->resource, "process.executable.name"));

	s = r->resource_profiles[0]->scope_profiles[0]->profiles[0]->samples[0];
	CHECK_INT(s->n_timestamps_unix_nano, ==, 4);
	CHECK_STR(attribute(d, s->attribute_indices, s->n_attribute_indices, "thread.name", &n),
		  "worker");
	CHECK(attribute(d, s->attribute_indices, s->n_attribute_indices, "thread.id", &n));
	CHECK_INT(n, ==, 101);
	CHECK_INT(d->stack_table[s->stack_index]->n_location_indices, ==, 3);
	leaf = d->location_table[d->stack_table[s->stack_index]->location_indices[0]];
	CHECK_INT(leaf->address, ==, 0x2200);
	CHECK_INT(leaf->n_lines, ==, 2);
	CHECK_STR(d->string_table[d->function_table[leaf->lines[0]->function_index]->name_strindex],
		  "skip_space");
	CHECK_STR(d->string_table[d->function_table[leaf->lines[1]->function_index]->name_strindex],
		  "parse");
	CHECK_INT(leaf->lines[0]->column, ==, 2);
	CHECK_STR(attribute(d, leaf->attribute_indices, leaf->n_attribute_indices,
			    "profile.frame.type", &n),
		  "native");

	/* The JIT frame of node, and the marker at the outer end of its stack. */
	s = r->resource_profiles[1]->scope_profiles[0]->profiles[0]->samples[0];
	leaf = d->location_table[d->stack_table[s->stack_index]->location_indices[0]];
	CHECK_STR(attribute(d, leaf->attribute_indices, leaf->n_attribute_indices,
			    "profile.frame.type", &n),
		  "v8js");
	leaf = d->location_table[d->stack_table[s->stack_index]->location_indices[1]];
	CHECK_STR(attribute(d, leaf->attribute_indices, leaf->n_attribute_indices,
			    "profile.frame.type", &n),
		  "abort-marker");
	CHECK_INT(leaf->mapping_index, ==, 0);
	protobuf_c_message_free_unpacked(&r->base, NULL);
	profile_deinit(&p);
}

/* A sample of its exec, between the end of the old program and the first mapping of the new one. */
static void test_no_executable_yet(void)
{
	struct profile p;
	request *r;

	synthetic_small(&p);
	p.processes.items[2].is_program = 1;
	r = render_one(&p, &synthetic_info);
	CHECK_STR(resource_text(r, 2, "service.name"), profile_text(&p, p.processes.items[2].comm));
	protobuf_c_message_free_unpacked(&r->base, NULL);
	profile_deinit(&p);
}

static void test_configured_attributes(void)
{
	static const char *const pairs[] = {"deployment.environment",
					    "old",
					    "host.name",
					    "from-config",
					    "service.name",
					    "fleet",
					    "deployment.environment",
					    "prod"};
	struct render_info info = synthetic_info;
	struct profile p;
	request *r;

	synthetic_small(&p);
	info.resource_attributes = pairs;
	info.n_resource_attributes = 4;
	(void)check(&p, &info, 0, 0);
	r = render_one(&p, &info);
	CHECK_STR(resource_text(r, 0, "host.name"), "from-config");
	CHECK_STR(resource_text(r, 0, "service.name"), "fleet");
	CHECK_STR(resource_text(r, 0, "deployment.environment"), "prod");
	protobuf_c_message_free_unpacked(&r->base, NULL);

	info.service_name = "one";
	(void)check(&p, &info, 0, 0);
	r = render_one(&p, &info);
	CHECK_STR(resource_text(r, 2, "service.name"), "one");
	protobuf_c_message_free_unpacked(&r->base, NULL);
	profile_deinit(&p);
}

static void test_split(void)
{
	static const size_t sizes[] = {0, 1u << 20, 200000, 50000, 20000};
	struct profile p;
	uint64_t n_payloads = 0;

	synthetic_random(&p, 5, 1500);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tally t = check(&p, &synthetic_info, sizes[i], 0);

		CHECK_INT(t.value, ==, 1500);
		CHECK_INT(t.n_payloads, >=, n_payloads);
		n_payloads = t.n_payloads;
	}
	CHECK_INT(n_payloads, >, 10);
	CHECK_INT(check(&p, &synthetic_info, 0, 10).value, ==, 1500);
	profile_deinit(&p);
}

static void add_model(const struct profile *p, const struct profile_sample *s, uint32_t n,
		      int64_t *by_pid)
{
	for (uint32_t i = 0; i < n; i++)
		by_pid[p->processes.items[p->threads.items[s[i].thread].process].pid] += s[i].value;
}

/* Of each type each process has its sum, however the payloads are cut. */
static void test_types(void)
{
	static const struct {
		size_t max_bytes;
		uint32_t max_samples;
	} limits[] = {{0, 0}, {200000, 0}, {50000, 0}, {20000, 0}, {0, 10}, {30000, 7}};
	static struct sums model, sums;
	struct profile p;

	synthetic_random(&p, 21, 900);
	synthetic_add_types(&p, 22, 600);
	for (uint32_t i = 0; i < p.n_types; i++)
		add_model(&p, p.types[i].samples.items, p.types[i].samples.n, model.of[i]);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct tally t;

		memset(&sums, 0, sizeof(sums));
		t = check_sums(&p, &synthetic_info, limits[i].max_bytes, limits[i].max_samples,
			       &sums);
		CHECK(memcmp(&sums, &model, sizeof(sums)) == 0);
		CHECK(i == 0 ? t.n_payloads == 1 : t.n_payloads > 2);
		CHECK_INT(t.n_samples, ==, 900 + 2 * 600);
	}
	profile_deinit(&p);
}

/* The first Profile is of the first type, also where the first process has only others. */
static void test_first_type_leads(void)
{
	const profile_message *first;
	struct profile p;
	request *r;

	synthetic_small(&p);
	synthetic_add_types(&p, 23, 50);
	while (p.threads.items[p.types[0].samples.items[0].thread].process == 0) {
		p.types[0].samples.n--;
		memmove(p.types[0].samples.items, p.types[0].samples.items + 1,
			p.types[0].samples.n * sizeof(*p.types[0].samples.items));
	}
	(void)check(&p, &synthetic_info, 0, 0);
	r = render_one(&p, &synthetic_info);
	CHECK_INT(r->n_resource_profiles, ==, 3);
	first = r->resource_profiles[0]->scope_profiles[0]->profiles[0];
	CHECK_INT(kind_of(r->dictionary, first), ==, 0);
	CHECK_STR(resource_text(r, 0, "service.name"), "node");
	protobuf_c_message_free_unpacked(&r->base, NULL);

	p.types[0].samples.n = 0;
	CHECK_INT(check(&p, &synthetic_info, 0, 0).n_samples, ==, 100);
	profile_deinit(&p);
}

/* A file is one message, which names the event of each type once. */
static void test_file_of_types(void)
{
	static const char *const events[] = {"cpu-clock", "page-faults", "context-switches",
					     "task-clock"};
	uint32_t n_named[N_KINDS] = {0};
	_cleanup_free_ char *bytes = NULL;
	struct profile p;
	request *r;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);

	synthetic_random(&p, 24, 300);
	synthetic_add_types(&p, 25, 200);
	CHECK(f);
	CHECK_INT(render_otlp_file(&p, &synthetic_info, f), ==, 0);
	CHECK_INT(fclose(f), ==, 0);
	r = decode((const uint8_t *)bytes, n);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
			r->resource_profiles[i]->scope_profiles[0];

		for (size_t j = 0; j < scope->n_profiles; j++) {
			const profile_message *m = scope->profiles[j];
			size_t kind = kind_of(r->dictionary, m);
			int64_t number;
			const char *event =
				attribute(r->dictionary, m->attribute_indices,
					  m->n_attribute_indices, "perfwalk.event", &number);

			if (event)
				CHECK_STR(event, events[kind]);
			n_named[kind] += event != NULL;
		}
	}
	for (size_t i = 0; i < N_KINDS; i++)
		CHECK_INT(n_named[i], ==, 1);
	protobuf_c_message_free_unpacked(&r->base, NULL);
	profile_deinit(&p);
}

struct halves {
	struct tally t;
	uint64_t n_leaves, n_largest;
	uint32_t seed;
};

/* In halves and their halves until each is one sample: every piece holds every rule. */
static void cut(struct halves *h, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct otlp_half half[2] = {0};
	int r = otlp_split(bytes, n, 0, half);

	if (r == -ENODATA) {
		CHECK_INT(check_payload(&h->t, bytes, n, n_samples), ==, 0);
		h->n_leaves++;
		h->n_largest = n > h->n_largest ? n : h->n_largest;
	} else {
		struct tally t = h->t;

		CHECK_INT(r, ==, 0);
		CHECK_INT(half[0].n_samples + half[1].n_samples, ==, n_samples);
		for (int i = 0; i < 2; i++) {
			CHECK_INT(half[i].bytes.n, <, n + 32); /* an id that it had not */
			(void)check_payload(&t, half[i].bytes.bytes, half[i].bytes.n,
					    half[i].n_samples);
			cut(h, half[i].bytes.bytes, half[i].bytes.n, half[i].n_samples);
		}
	}
	wire_buffer_deinit(&half[0].bytes);
	wire_buffer_deinit(&half[1].bytes);
}

static int cut_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	cut(ctx, bytes, n, n_samples);
	return 0;
}

/* Beginnings of a payload, and wrong bytes in it: an outcome, and no memory error. */
static int damage_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct halves *h = ctx;
	_cleanup_free_ uint8_t *copy = malloc(n);

	CHECK(copy);
	for (size_t i = 0; i < 3000; i++) {
		size_t n_left = i < 1500 ? i * n / 1500 : n;
		struct otlp_half half[2] = {0};
		int r;

		memcpy(copy, bytes, n);
		for (int j = 0; i >= 1500 && j < 3; j++) {
			h->seed = h->seed * 1664525 + 1013904223;
			copy[(h->seed >> 4) % n] = (uint8_t)(h->seed >> 24);
		}
		r = otlp_split(copy, n_left, 0, half);
		CHECK(r == 0 || r == -EBADMSG || r == -ENODATA);
		h->n_leaves += r == -EBADMSG;
		wire_buffer_deinit(&half[0].bytes);
		wire_buffer_deinit(&half[1].bytes);
	}
	return 0;
}

static void test_cut(void)
{
	struct profile p;
	struct halves h = {.seed = 1};

	synthetic_random(&p, 3, 300);
	synthetic_add_types(&p, 4, 100);
	p.types[1].samples.n = 0; /* of their values otlp_split() cannot tell the samples */
	h.t = (struct tally){.max_bytes = 4u << 20,
			     .max_samples = 16000,
			     .start = p.start_unix_ns,
			     .end = p.end_unix_ns};
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, cut_payload, &h), ==, 0);
	CHECK_INT(h.t.n_samples, ==, 500);
	CHECK_INT(h.t.n_sink_samples, ==, 500);
	CHECK_INT(h.t.counter_samples, ==, profile_counter(&p, PROFILE_SAMPLES));
	CHECK_INT(h.n_leaves, >, 100);
	CHECK_INT(h.n_largest, <, 8192);
	h.n_leaves = 0;
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, damage_payload, &h), ==, 0);
	CHECK_INT(h.n_leaves, >, 1500);
	profile_deinit(&p);
}

static const char *function_name(const dictionary *d, int64_t i)
{
	return d->string_table[d->function_table[i]->name_strindex];
}

/* For Parca: a reader that takes the function before the one that is said has the same names. */
static void check_parca(const request *plain, const request *r)
{
	const dictionary *from = plain->dictionary, *d = r->dictionary;

	CHECK_INT(d->n_function_table, ==, 2 * from->n_function_table - 1);
	CHECK_INT(d->n_location_table, ==, from->n_location_table);
	for (size_t i = 0; i < d->n_location_table; i++) {
		CHECK_INT(d->location_table[i]->n_lines, ==, from->location_table[i]->n_lines);
		for (size_t j = 0; j < d->location_table[i]->n_lines; j++) {
			int64_t was = from->location_table[i]->lines[j]->function_index;
			int64_t is = d->location_table[i]->lines[j]->function_index;

			CHECK_INT(is, ==, 2 * was);
			CHECK_STR(function_name(d, is), function_name(from, was));
			if (is)
				CHECK_STR(function_name(d, is - 1), function_name(from, was));
		}
	}
}

static bool has_key(const request *r, size_t i, const char *key)
{
	const Opentelemetry__Proto__Resource__V1__Resource *resource =
		r->resource_profiles[i]->resource;

	for (size_t j = 0; j < resource->n_attributes; j++) {
		if (strcmp(resource->attributes[j]->key, key) == 0)
			return true;
	}
	return false;
}

/* A series of Pyroscope has the labels of its resource and of its samples. */
static const char *const not_labels[] = {"process.pid", "process.creation.time", "thread.id",
					 "thread.name", "cpu.logical_number",	 "trace_id"};

static bool is_label(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_labels); i++) {
		if (strcmp(key, not_labels[i]) == 0)
			return false;
	}
	return true;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text), hash);
}

static uint64_t hash_message(uint64_t hash, const ProtobufCMessage *m)
{
	_cleanup_free_ uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(m) + 1);

	CHECK(bytes);
	return hash_bytes(bytes, protobuf_c_message_pack(m, bytes), hash);
}

/* The labels of a resource, and the time and type of a Profile, each of which sets them apart. */
static uint64_t hash_series(const request *r, size_t i, const profile_message *p)
{
	const Opentelemetry__Proto__Resource__V1__Resource *resource =
		r->resource_profiles[i]->resource;
	char *const *strings = r->dictionary->string_table;
	uint64_t hash = hash_combine(p->time_unix_nano, (uint64_t)p->period);

	for (size_t j = 0; j < resource->n_attributes; j++) {
		if (is_label(resource->attributes[j]->key))
			hash = hash_message(hash, &resource->attributes[j]->base);
	}
	hash = hash_text(hash, strings[p->sample_type->type_strindex]);
	hash = hash_text(hash, strings[p->sample_type->unit_strindex]);
	return hash_text(hash, strings[p->period_type->type_strindex]);
}

static uint64_t hash_sample(const dictionary *d, const sample_message *s, uint64_t hash)
{
	for (size_t i = 0; i < s->n_attribute_indices; i++) {
		const char *key =
			d->string_table[d->attribute_table[s->attribute_indices[i]]->key_strindex];

		if (is_label(key))
			hash = hash_message(
				hash_text(hash, key),
				&d->attribute_table[s->attribute_indices[i]]->value->base);
	}
	hash = hash_bytes(d->link_table[s->link_index]->span_id.data,
			  d->link_table[s->link_index]->span_id.len, hash);
	for (size_t i = 0; i < d->stack_table[s->stack_index]->n_location_indices; i++) {
		int32_t at = d->stack_table[s->stack_index]->location_indices[i];

		hash = hash_combine(hash, d->location_table[at]->address);
		for (size_t j = 0; j < d->location_table[at]->n_lines; j++)
			hash = hash_text(
				hash,
				function_name(d, d->location_table[at]->lines[j]->function_index));
	}
	return hash;
}

struct series_sum {
	uint64_t series, stack;
	int64_t value;
};

static int compare_sums(const void *a, const void *b)
{
	const struct series_sum *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

#define MAX_SUMS 8192

/* The sum of each stack in each series, sorted: their number. No time: all of them as of one. */
static size_t sum_series(const request *r, bool times, struct series_sum *ret)
{
	size_t n = 0, last = 0;

	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		for (size_t j = 0; j < r->resource_profiles[i]->scope_profiles[0]->n_profiles;
		     j++) {
			profile_message p =
				*r->resource_profiles[i]->scope_profiles[0]->profiles[j];

			p.time_unix_nano = times ? p.time_unix_nano : 0;
			for (size_t k = 0; k < p.n_samples; k++) {
				const sample_message *s = p.samples[k];

				CHECK_INT(n, <, MAX_SUMS);
				ret[n].series = hash_series(r, i, &p);
				ret[n].stack = hash_sample(r->dictionary, s, 0);
				ret[n++].value = s->n_values ? s->values[0]
							     : (int64_t)s->n_timestamps_unix_nano;
			}
		}
	}
	CHECK_INT(n, >, 0);
	qsort(ret, n, sizeof(*ret), compare_sums);
	for (size_t i = 1; i < n; i++) {
		if (compare_sums(&ret[last], &ret[i]) == 0)
			ret[last].value += ret[i].value;
		else
			ret[++last] = ret[i];
	}
	return last + 1;
}

static void check_labels(const request *r)
{
	for (size_t i = 1; i < r->dictionary->n_link_table; i++)
		CHECK_INT(r->dictionary->link_table[i]->trace_id.len, ==, 0);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(not_labels); j++)
			CHECK(!has_key(r, i, not_labels[j]));
		CHECK(has_key(r, i, "service.name"));
	}
	for (size_t i = 1; i < r->dictionary->n_attribute_table; i++)
		CHECK(is_label(
			r->dictionary
				->string_table[r->dictionary->attribute_table[i]->key_strindex]));
}

/* Pyroscope keeps one Profile of a series and time. */
static void check_one_each(const request *r, size_t max_samples)
{
	_cleanup_free_ uint64_t *seen = calloc(MAX_SUMS, sizeof(*seen));
	size_t n = 0;

	CHECK(seen);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		CHECK_INT(r->resource_profiles[i]->n_scope_profiles, ==, 1);
		for (size_t j = 0; j < r->resource_profiles[i]->scope_profiles[0]->n_profiles;
		     j++) {
			const profile_message *p =
				r->resource_profiles[i]->scope_profiles[0]->profiles[j];

			CHECK_INT(p->n_samples, <=, max_samples);
			CHECK_INT(p->profile_id.len, ==, 16);
			CHECK_INT(n, <, MAX_SUMS);
			seen[n++] = hash_series(r, i, p);
			for (size_t k = 0; k + 1 < n; k++)
				CHECK(seen[k] != seen[n - 1]);
		}
	}
}

/* For Pyroscope: the processes and threads of a program are one series, with the sum of all. */
static void check_pyroscope(const request *plain, const request *r, size_t max_samples)
{
	_cleanup_free_ struct series_sum *want = calloc(MAX_SUMS, sizeof(*want));
	_cleanup_free_ struct series_sum *is = calloc(MAX_SUMS, sizeof(*is));
	size_t n = want ? sum_series(plain, max_samples == MAX_SUMS, want) : 0;

	CHECK(want && is);
	check_labels(r);
	check_one_each(r, max_samples);
	CHECK_INT(sum_series(r, max_samples == MAX_SUMS, is), ==, n);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(compare_sums(&is[i], &want[i]), ==, 0);
		CHECK_INT(is[i].value, ==, want[i].value);
	}
	CHECK_INT(r->dictionary->n_function_table, ==, plain->dictionary->n_function_table);
}

static uint64_t count_stamps(const request *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const profile_message *p = r->resource_profiles[i]->scope_profiles[0]->profiles[0];

		for (size_t j = 0; j < p->n_samples; j++)
			n += p->samples[j]->n_timestamps_unix_nano;
	}
	return n;
}

static request *unpack(const uint8_t *bytes, size_t n)
{
	request *r =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
			NULL, n, bytes);

	CHECK(r);
	return r;
}

static void unpacked_free(request *r)
{
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
		r, NULL);
}

static int adapt_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	request *plain = unpack(bytes, n);

	(void)ctx;
	for (enum otlp_dialect dialect = OTLP_PLAIN; dialect <= OTLP_PARCA; dialect++) {
		struct wire_buffer out = {0};
		request *r;

		CHECK_INT(otlp_adapt(bytes, n, dialect, &out), ==, 0);
		r = unpack(out.bytes, out.n);
		CHECK_INT(count_stamps(r), ==, n_samples);
		if (dialect == OTLP_PLAIN)
			CHECK(out.n == n && memcmp(out.bytes, bytes, n) == 0);
		else if (dialect == OTLP_PARCA)
			check_parca(plain, r);
		else
			check_pyroscope(plain, r, MAX_SUMS);
		unpacked_free(r);
		wire_buffer_deinit(&out);
		for (size_t cut_at = 0; cut_at < n; cut_at += 1 + n / 300) {
			int code = otlp_adapt(bytes, cut_at, dialect, &out);

			CHECK(code == 0 || code == -EBADMSG);
			wire_buffer_deinit(&out);
		}
	}
	unpacked_free(plain);
	return 0;
}

static void test_dialects(void)
{
	struct profile p;

	synthetic_random(&p, 4, 500);
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, adapt_payload, NULL), ==, 0);
	profile_deinit(&p);
}

/* Some threads were in a span of a trace each, and others in a trace. */
static void make_traces(struct profile *p)
{
	char text[64];

	for (uint32_t i = 0; i < p->threads.n; i++) {
		_cleanup_free_ char *labels = NULL;
		size_t n;
		FILE *out = open_memstream(&labels, &n);

		CHECK(out);
		(void)snprintf(text, sizeof(text), "%032x", i + 1);
		if (i % 3 < 2)
			label_write(out, &(struct label){.key = LABEL_TRACE, .text = text});
		if (i % 3 == 0)
			label_write(out, &(struct label){.key = LABEL_SPAN, .text = text + 16});
		CHECK_INT(fclose(out), ==, 0);
		p->threads.items[i].labels = strtab_put(&p->strings, labels);
	}
}

/* Makes the processes as those of four programs, each of which runs many times. */
static void make_copies(struct profile *p)
{
	for (uint32_t i = 4; i < p->processes.n; i++) {
		struct profile_process copy = p->processes.items[i % 4];

		copy.pid = p->processes.items[i].pid;
		copy.start_time_unix_ns = p->processes.items[i].start_time_unix_ns;
		p->processes.items[i] = copy;
	}
}

/* The most samples in a Profile. */
static size_t largest_profile(const request *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		for (size_t j = 0; j < r->resource_profiles[i]->scope_profiles[0]->n_profiles;
		     j++) {
			const profile_message *p =
				r->resource_profiles[i]->scope_profiles[0]->profiles[j];

			n = p->n_samples > n ? p->n_samples : n;
		}
	}
	return n;
}

/* What a Profile cannot take goes into another, with a time of its own. Two requests in a row are
 * one with the fields of both. */
static void check_full(const struct wire_buffer *adapted)
{
	_cleanup_free_ uint8_t *twice = malloc(2 * adapted->n);
	struct wire_buffer out = {0};
	request *all, *r;
	size_t max;

	CHECK(twice);
	memcpy(twice, adapted->bytes, adapted->n);
	memcpy(twice + adapted->n, adapted->bytes, adapted->n);
	all = unpack(twice, 2 * adapted->n);
	max = largest_profile(all);
	CHECK_INT(otlp_merge(twice, 2 * adapted->n, (uint32_t)max, &out), ==, 0);
	r = unpack(out.bytes, out.n);
	CHECK_INT(r->n_resource_profiles, ==, 4);
	check_pyroscope(all, r, max);
	unpacked_free(r);
	unpacked_free(all);
	wire_buffer_deinit(&out);
}

static int adapt_copies(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	request *plain = unpack(bytes, n), *r;
	struct wire_buffer out = {0};

	(void)ctx;
	(void)n_samples;
	CHECK_INT(otlp_adapt(bytes, n, OTLP_PYROSCOPE, &out), ==, 0);
	r = unpack(out.bytes, out.n);
	CHECK_INT(plain->n_resource_profiles, ==, 20);
	CHECK_INT(r->n_resource_profiles, ==, 4);
	CHECK_INT(plain->dictionary->n_link_table, >, 10);
	CHECK_INT(r->dictionary->n_link_table, ==, plain->dictionary->n_link_table);
	check_pyroscope(plain, r, MAX_SUMS);
	check_full(&out);
	unpacked_free(r);
	unpacked_free(plain);
	wire_buffer_deinit(&out);
	return 0;
}

static void test_copies(void)
{
	struct profile p;

	synthetic_random(&p, 4, 500);
	synthetic_add_types(&p, 8, 300);
	make_copies(&p);
	make_traces(&p);
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, adapt_copies, NULL), ==, 0);
	profile_deinit(&p);
}

/* ---- Requests of one window ---- */

struct requests {
	uint64_t seen[MAX_SUMS], start_unix_ns, end_unix_ns, n_samples;
	size_t n;
	uint32_t seed, n_payloads;
};

/* Pyroscope keeps times in milliseconds, and one Profile of a series and time. */
static void add_request(struct requests *of, const uint8_t *bytes, size_t n)
{
	struct wire_buffer out = {0};
	request *r;

	CHECK_INT(otlp_adapt(bytes, n, OTLP_PYROSCOPE, &out), ==, 0);
	r = unpack(out.bytes, out.n);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		for (size_t j = 0; j < r->resource_profiles[i]->scope_profiles[0]->n_profiles;
		     j++) {
			profile_message p =
				*r->resource_profiles[i]->scope_profiles[0]->profiles[j];

			CHECK_INT(p.time_unix_nano, <=, of->start_unix_ns);
			CHECK_INT(p.time_unix_nano + p.duration_nano, ==, of->end_unix_ns);
			p.time_unix_nano /= 1000000;
			CHECK_INT(of->n, <, MAX_SUMS);
			of->seen[of->n++] = hash_series(r, i, &p);
		}
	}
	unpacked_free(r);
	wire_buffer_deinit(&out);
}

/* Some are cut, and some of their halves, as by a server that takes less. */
static void add_halves(struct requests *of, const uint8_t *bytes, size_t n, uint32_t n_halvings)
{
	struct otlp_half half[2] = {0};
	bool cut;

	of->seed = of->seed * 1664525 + 1013904223;
	cut = n_halvings < 5 && of->seed >> 30 != 0 && otlp_split(bytes, n, n_halvings, half) == 0;
	if (!cut)
		add_request(of, bytes, n);
	for (int i = 0; i < 2 && cut; i++)
		add_halves(of, half[i].bytes.bytes, half[i].bytes.n, n_halvings + 1);
	wire_buffer_deinit(&half[0].bytes);
	wire_buffer_deinit(&half[1].bytes);
}

static int add_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct requests *of = ctx;

	of->n_samples += n_samples;
	of->n_payloads++;
	add_halves(of, bytes, n, 0);
	return 0;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Whatever becomes of a window, a server sees no two Profiles of a series and time. */
static void test_no_copies(void)
{
	static struct requests of;

	for (uint32_t seed = 1; seed <= 20; seed++) {
		const struct render_otlp_options options = {.max_bytes = 6000 + 1500 * seed};
		struct profile p;

		synthetic_random(&p, seed, 300);
		synthetic_add_types(&p, seed + 100, 100);
		make_copies(&p);
		of = (struct requests){.seed = seed,
				       .start_unix_ns = p.start_unix_ns,
				       .end_unix_ns = p.end_unix_ns};
		CHECK_INT(render_otlp(&p, &synthetic_info, &options, add_payload, &of), ==, 0);
		CHECK_INT(of.n_samples, ==, 600);
		CHECK_INT(of.n_payloads, >, 1);
		CHECK_INT(of.n, >, of.n_payloads);
		qsort(of.seen, of.n, sizeof(of.seen[0]), compare_hashes);
		for (size_t i = 1; i < of.n; i++)
			CHECK(of.seen[i] != of.seen[i - 1]);
		profile_deinit(&p);
	}
}

/* One stack that is larger than a payload may be: its leaf goes out, with a marker. */
static void test_stack_too_large(void)
{
	struct profile p;
	struct tally t;
	struct render_otlp_options tiny = {.max_bytes = 300};
	struct tally none = {0};

	synthetic_random(&p, 6, 5);
	t = check(&p, &synthetic_info, 4000, 0);
	CHECK_INT(t.value, ==, 5);
	CHECK_INT(render_otlp(&p, &synthetic_info, &tiny, check_payload, &none), ==, -EMSGSIZE);
	CHECK_INT(none.n_payloads, ==, 0);
	profile_deinit(&p);
}

static void test_hostile(void)
{
	struct profile p;
	struct tally t = {.max_bytes = 1u << 20, .max_samples = 16000, .decode = find_protoc()};
	struct render_otlp_options options = {.max_bytes = 1u << 20};

	synthetic_hostile(&p);
	t.start = p.start_unix_ns;
	t.end = p.end_unix_ns;
	if (!t.decode)
		fprintf(stderr, "no protoc: decoded by the generated reader only\n");
	CHECK_INT(render_otlp(&p, &synthetic_info, &options, check_payload, &t), ==, 0);
	CHECK_INT(t.value, ==, p.types[0].samples.n);
	CHECK_INT(check(&p, &synthetic_info, 30000, 0).value, ==, p.types[0].samples.n);
	synthetic_add_types(&p, 26, 100);
	CHECK_INT(render_otlp(&p, &synthetic_info, &options, check_payload, &t), ==, 0);
	profile_deinit(&p);
}

static void test_empty(void)
{
	struct profile p;

	profile_init(&p, 1 << 20);
	p.counters[PROFILE_SAMPLES_LOST] = 9;
	CHECK_INT(check(&p, &synthetic_info, 0, 0).n_payloads, ==, 0);
	profile_deinit(&p);
}

static int count_resources(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	request *r =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
			NULL, n, bytes);

	CHECK(r);
	*(size_t *)ctx += r->n_resource_profiles;
	protobuf_c_message_free_unpacked(&r->base, NULL);
	return 0;
}

/*
 * A process that renamed itself between two samples, or whose program was deleted, is two rows, but
 * one resource.
 */
static void test_renamed_process(void)
{
	struct profile_process renamed;
	size_t before = 0, after = 0;
	char deleted[256];
	struct profile p;
	uint32_t row;

	synthetic_small(&p);
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, count_resources, &before), ==, 0);
	renamed = p.processes.items[p.threads.items[p.types[0].samples.items[0].thread].process];
	renamed.comm = strtab_put(&p.strings, "other name");
	(void)snprintf(deleted, sizeof(deleted), "%s (deleted)",
		       profile_text(&p, renamed.executable_path));
	renamed.executable_path = strtab_put(&p.strings, deleted);
	row = profile_add_process(&p, &renamed);
	CHECK_INT(row, ==, p.processes.n - 1);
	p.types[0].samples.items[0].thread = profile_add_thread(&p, row, 4711, STRID_EMPTY);
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, count_resources, &after), ==, 0);
	CHECK_INT(after, ==, before);
	CHECK_INT(check(&p, &synthetic_info, 0, 0).n_samples, ==, 12);
	/* The same number in another container is another process, of a file of another host. */
	renamed.container_id = strtab_put(&p.strings, "0123456789ab");
	row = profile_add_process(&p, &renamed);
	p.types[0].samples.items[0].thread = profile_add_thread(&p, row, 4711, STRID_EMPTY);
	after = 0;
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, count_resources, &after), ==, 0);
	CHECK_INT(after, ==, before + 1);
	profile_deinit(&p);
}

/* Samples outside the window they claim, out of order, and of a value other than 1. */
/* The type of the samples and of the first process's period, as "TYPE/UNIT TYPE/UNIT". */
static void check_types(const struct profile *p, const char *expected, int64_t period)
{
	request *r = render_one(p, &synthetic_info);
	const profile_message *profile = r->resource_profiles[0]->scope_profiles[0]->profiles[0];
	char **strings = r->dictionary->string_table;
	char text[256];

	(void)snprintf(text, sizeof(text), "%s/%s %s/%s",
		       strings[profile->sample_type->type_strindex],
		       strings[profile->sample_type->unit_strindex],
		       strings[profile->period_type->type_strindex],
		       strings[profile->period_type->unit_strindex]);
	CHECK_STR(text, expected);
	CHECK_INT(profile->period, ==, period);
	protobuf_c_message_free_unpacked(&r->base, NULL);
}

static void test_events(void)
{
	struct profile p;

	synthetic_small(&p);
	check_types(&p, "samples/count cpu/nanoseconds", NSEC_PER_SEC / 99);
	p.types[0].period_ns = 0;
	p.types[0].rate_hz = 0;
	check_types(&p, "samples/count /", 0);
	p.types[0].period_events = 100;
	p.types[0].event = strtab_put(&p.strings, "page-faults");
	check_types(&p, "samples/count page-faults/count", 100);
	p.types[0].period_events = 1;
	p.types[0].weighted = true;
	check_types(&p, "page-faults/count page-faults/count", 1);
	profile_deinit(&p);
}

static void test_times_and_values(void)
{
	struct profile p;
	struct tally t;

	synthetic_small(&p);
	p.types[0].samples.items[0].time_unix_ns = p.start_unix_ns - 5;
	p.types[0].samples.items[1].time_unix_ns = p.end_unix_ns + 7;
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.n_samples, ==, 12);
	p.types[0].samples.items[3].value = 100;
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.n_samples, ==, 0);
	CHECK_INT(t.value, ==, 111);
	profile_deinit(&p);
}

/* Modules equal in all but their uid, threads equal after cleaning: one entry, one Sample. */
static void test_equal_after_all(void)
{
	struct profile p;
	struct profile_module m;
	struct tally t;
	request *r;
	uint32_t module, frame, thread[2];

	synthetic_small(&p);
	p.types[0].samples.n = 0;
	m = p.modules.items[1];
	m.uid = 999;
	module = profile_add_module(&p, &m);
	frame = profile_add_frame(&p, module, 0x2000);
	CHECK(profile_name_frame(&p, frame, &p.lines.items[p.frames.items[0].first_line], 1));
	thread[0] = profile_add_thread(&p, 0, 5, strtab_put(&p.strings, "a\x01"));
	thread[1] = profile_add_thread(&p, 0, 5, strtab_put(&p.strings, "a\x02"));
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t one = i ? frame : 0;
		struct profile_sample s = {
			p.start_unix_ns + i, 1, thread[i], profile_add_stack(&p, &one, 1, 0), 0, 1};

		CHECK(profile_add_sample(&p, &s));
	}
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.value, ==, 2);
	r = render_one(&p, &synthetic_info);
	CHECK_INT(r->dictionary->n_stack_table, ==, 2);
	CHECK_INT(r->resource_profiles[0]->scope_profiles[0]->profiles[0]->n_samples, ==, 1);
	protobuf_c_message_free_unpacked(&r->base, NULL);
	profile_deinit(&p);
}

/* A module none of whose frames has a name is left to a backend that has symbols. */
static void test_unnamed_module(void)
{
	struct profile p;
	struct tally t;

	synthetic_small(&p);
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.n_unnamed, ==, 0);
	for (uint32_t i = 0; i < p.frames.n; i++)
		p.frames.items[i].n_lines = 0;
	t = check(&p, &synthetic_info, 0, 0);
	CHECK_INT(t.n_unnamed, >, 0);
	CHECK_INT(t.n_named, >, 0);
	profile_deinit(&p);
}

/* The program of two containers: two modules, but one Mapping, which has names for both. */
static void test_named_in_another_module(void)
{
	static const char *const paths[] = {"/usr/bin/as\x01", "/usr/bin/as\x02"};

	for (uint32_t named = 0; named < 2; named++) {
		struct profile p;
		request *r;

		synthetic_small(&p);
		p.types[0].samples.n = 0;
		for (uint32_t i = 0; i < 2; i++) {
			struct profile_module m = p.modules.items[1];
			struct profile_sample s = {
				.time_unix_ns = p.start_unix_ns, .value = 1, .n = 1};
			uint32_t frame;

			m.uid = 1000 + i;
			m.path = strtab_put(&p.strings, paths[i]);
			frame = profile_add_frame(&p, profile_add_module(&p, &m), 0x2000 + i);
			if (i == named)
				CHECK(profile_name_frame(&p, frame, p.lines.items, 1));
			s.stack = profile_add_stack(&p, &frame, 1, 0);
			CHECK(profile_add_sample(&p, &s));
		}
		CHECK_INT(check(&p, &synthetic_info, 0, 0).n_unnamed, ==, 0);
		r = render_one(&p, &synthetic_info);
		CHECK_INT(r->dictionary->n_mapping_table, ==, 2);
		CHECK_INT(r->dictionary->n_location_table, ==, 3);
		protobuf_c_message_free_unpacked(&r->base, NULL);
		profile_deinit(&p);
	}
}

static int stop(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	++*(int *)ctx;
	return -ENOSPC;
}

static void test_sink_ends(void)
{
	struct render_otlp_options options = {.max_bytes = 20000};
	struct profile p;
	int n = 0;

	synthetic_random(&p, 7, 500);
	CHECK_INT(render_otlp(&p, &synthetic_info, &options, stop, &n), ==, -ENOSPC);
	CHECK_INT(n, ==, 1);
	profile_deinit(&p);
}

static int count(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	*(uint64_t *)ctx += n;
	return 0;
}

/* --time N: what a sample costs, for people. */
static void show_time(uint32_t n)
{
	struct profile p;
	uint64_t begin, bytes = 0;

	synthetic_random(&p, 8, n);
	begin = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID);
	CHECK_INT(render_otlp(&p, &synthetic_info, NULL, count, &bytes), ==, 0);
	printf("%u samples, %u stacks: %.2f us and %.1f bytes a sample\n", n, p.stacks.n,
	       (double)(clock_get_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e3 / n,
	       (double)bytes / n);
	profile_deinit(&p);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--time") == 0) {
		show_time((uint32_t)atoi(argv[2]));
		return 0;
	}
	RUN(test_small);
	RUN(test_no_executable_yet);
	RUN(test_configured_attributes);
	RUN(test_split);
	RUN(test_types);
	RUN(test_first_type_leads);
	RUN(test_file_of_types);
	RUN(test_cut);
	RUN(test_dialects);
	RUN(test_copies);
	RUN(test_no_copies);
	RUN(test_stack_too_large);
	RUN(test_hostile);
	RUN(test_empty);
	RUN(test_renamed_process);
	RUN(test_times_and_values);
	RUN(test_events);
	RUN(test_equal_after_all);
	RUN(test_unnamed_module);
	RUN(test_named_in_another_module);
	RUN(test_sink_ends);
	return 0;
}
