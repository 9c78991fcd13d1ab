/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as OTLP payloads. Each has one ResourceProfiles per process with one Profile in it for
 * each type of samples, and a dictionary with what these refer to and nothing else.
 *
 * Samples are added process by process, and type by type within a process (otlp-order.c,
 * otlp-samples.c). The size of a payload is always known to within a few bytes for each Sample. If
 * the next sample would not fit, the payload is built again without it, so that the dictionary has
 * no entry of the refused sample. That costs a second pass over payloads that are followed by
 * another, and nothing for the usual single one.
 *
 * The counters of a type are attributes "perfwalk.NAME" of its first Profile only. Counters of no
 * type, and of types without a sample, are attributes of the very first Profile. So a receiver that
 * adds up all Profiles counts every loss once.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/otlp-profiles.pb-c.h"
#include "proto/otlp-time.h"
#include "src/render/otlp-internal.h"
#include "src/render/otlp-samples.h"
#include "util/clock.h"

#define PB(name)      Opentelemetry__Proto__Profiles__V1development__##name
#define PB_INIT(name) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##name##__INIT

/* The collector's gRPC receiver takes 4 MiB a message, Pyroscope 4 MiB and 16000 samples a profile.
 */
#define DEFAULT_MAX_BYTES   ((4u << 20) - (64u << 10))
#define DEFAULT_MAX_SAMPLES 16000u

/* Upper bounds for parts that are not encoded yet: a Profile's own fields and envelopes. */
#define PROFILE_BYTES 640
#define PREFIX_BYTES  11 /* tag and length of a message */

#define N_FACTS 7

struct otlp {
	const struct profile *p;
	const struct render_info *info;
	size_t max_bytes;
	bool facts;
	struct otlp_order order;
	uint64_t start_unix_ns, end_unix_ns; /* of the window; see otlp-time.h */
	uint32_t n_payloads;		     /* made so far */

	struct otlp_frames frames;

	/* The payload */
	struct wire_buffer out;
	bool common_written, type_written[PROFILE_MAX_TYPES]; /* in earlier payloads */
	bool writes_common, writes_type[PROFILE_MAX_TYPES];   /* in this payload */
	uint32_t max_frames;

	/* The current ResourceProfiles, and its complete Profiles */
	uint32_t process;
	struct wire_buffer resource, heads,
		samples; /* heads: all fields of these except the samples */
	struct {
		size_t n_head, n_samples;
	} parts[PROFILE_MAX_TYPES];
	uint32_t n_parts;

	/* The current Profile */
	uint32_t type;
	struct otlp_samples of_profile;
	struct otlp_value_type {
		int32_t type, unit;
	} sample_type, period_type;
	int32_t attributes[PROFILE_N_COUNTERS + N_FACTS]; /* of the Profile */
	size_t n_attributes;
};

/* The window covers every sample, whatever the clocks did. */
static void find_window(struct otlp *o)
{
	o->start_unix_ns = o->p->start_unix_ns;
	o->end_unix_ns = o->p->end_unix_ns;
	for (uint32_t i = 0; i < o->order.n_samples; i++) {
		uint64_t t = otlp_order_sample(&o->order, i)->time_unix_ns;

		if (t < o->start_unix_ns)
			o->start_unix_ns = t;
		if (t >= o->end_unix_ns)
			o->end_unix_ns = t + 1;
	}
}

/* An upper bound of the payload's size if it ended here. */
static size_t payload_bound(const struct otlp *o)
{
	return o->out.n + o->resource.n + o->heads.n + o->samples.n + o->n_parts * PREFIX_BYTES +
	       PROFILE_BYTES + otlp_samples_bound(&o->of_profile) +
	       otlp_dictionary_size(&o->frames.dictionary) + 16;
}

/* Counters that belong to no other Profile go with the first one. */
static uint64_t count_to_write(const struct otlp *o, int c)
{
	uint64_t n = profile_type_counter(&o->p->types[o->type], (enum profile_counter)c);

	if (o->writes_common)
		return n;
	n += o->p->counters[c];
	for (uint32_t i = 0; i < o->p->n_types; i++)
		n += o->p->types[i].samples.n ? 0 : o->p->types[i].counters[c];
	return n;
}

static void put_fact(struct otlp *o, const char *key, const char *text)
{
	if (text && *text)
		o->attributes[o->n_attributes++] =
			otlp_put_attribute_string(&o->frames.dictionary, key, text);
}

static void put_counters(struct otlp *o)
{
	uint32_t stack_bytes = o->p->types[o->type].stack_bytes;

	put_fact(o, "perfwalk.reduced", o->info->reduced);
	if (stack_bytes)
		o->attributes[o->n_attributes++] = otlp_put_attribute_int(
			&o->frames.dictionary, "perfwalk.stack_size", stack_bytes);
	for (int c = 0; c < PROFILE_N_COUNTERS; c++) {
		uint64_t v = count_to_write(o, c);
		char key[64];

		if (!v && c != PROFILE_SAMPLES && c != PROFILE_SAMPLES_LOST)
			continue;
		(void)snprintf(key, sizeof(key), "perfwalk.%s",
			       profile_counter_name((enum profile_counter)c));
		o->attributes[o->n_attributes++] = otlp_put_attribute_int(
			&o->frames.dictionary, key, v > INT64_MAX ? INT64_MAX : (int64_t)v);
	}
}

static void put_facts(struct otlp *o)
{
	const struct profile *p = &o->order.types[o->type].view;

	put_fact(o, "perfwalk.comm", profile_text(p, p->processes.items[o->process].comm));
	if (o->writes_type[o->type])
		return;
	put_fact(o, "perfwalk.title", o->info->title);
	put_fact(o, "perfwalk.event", profile_text(p, p->types[0].event));
	put_fact(o, "perfwalk.kernel_release", o->info->kernel_release);
	if (o->info->n_cpus)
		o->attributes[o->n_attributes++] = otlp_put_attribute_int(
			&o->frames.dictionary, "perfwalk.cpus", o->info->n_cpus);
}

/* Off-CPU time includes every block, so it has no period. Backends recognize the type by that,
 * too. */
static bool has_no_period(const struct profile *p)
{
	return profile_is_off_cpu(p, 0);
}

/*
 * Puts the strings of a Profile when it begins, because the bound includes the dictionary's size.
 */
static void put_profile_strings(struct otlp *o)
{
	const struct profile *p = &o->order.types[o->type].view;
	const char *name = profile_type_name(o->p, o->type), *unit = profile_period_unit(p);
	struct otlp_dictionary *d = &o->frames.dictionary;

	/* If the kernel chose the period, the value of a sample is a number of events. */
	o->sample_type.type = otlp_put_string(d, p->types[0].weighted ? name : "samples");
	o->sample_type.unit = otlp_put_string(d, p->types[0].weighted ? unit : "count");
	o->period_type.type = has_no_period(p) ? 0 : otlp_put_string(d, name);
	o->period_type.unit = has_no_period(p) ? 0 : otlp_put_string(d, unit);
	o->n_attributes = 0;
	if (!o->writes_type[o->type])
		put_counters(o);
	if (o->facts)
		put_facts(o);
	o->writes_common = o->writes_type[o->type] = true;
}

/* No other payload of the window begins then. */
static uint64_t earlier_of(const struct otlp *o)
{
	uint64_t ns = o->n_payloads * OTLP_REQUEST_NS;

	return ns < o->start_unix_ns ? ns : o->start_unix_ns;
}

/* Sets the fields of a Profile except its samples. id: 16 bytes for its id. */
static void fill_profile(struct otlp *o, PB(Profile) * profile, uint8_t id[16])
{
	const struct profile *p = &o->order.types[o->type].view;

	profile->sample_type->type_strindex = o->sample_type.type;
	profile->sample_type->unit_strindex = o->sample_type.unit;
	profile->period_type->type_strindex = o->period_type.type;
	profile->period_type->unit_strindex = o->period_type.unit;
	profile->period =
		profile_has_period(p) && !has_no_period(p) ? (int64_t)profile_period(p) : 0;
	profile->time_unix_nano = o->start_unix_ns - earlier_of(o);
	profile->duration_nano = o->end_unix_ns - profile->time_unix_nano;
	profile->attribute_indices = o->attributes;
	profile->n_attribute_indices = o->n_attributes;
	/* No id is better than an id that is not unique. */
	if (getrandom(id, 16, GRND_NONBLOCK) == 16) {
		profile->profile_id.data = id;
		profile->profile_id.len = 16;
	}
}

/* Completes the current Profile: appends its samples to those of the process. */
static int end_profile(struct otlp *o)
{
	PB(ValueType) sample_type = PB_INIT(VALUE_TYPE), period_type = PB_INIT(VALUE_TYPE);
	size_t heads = o->heads.n, samples = o->samples.n;
	PB(Profile) profile = PB_INIT(PROFILE);
	uint8_t id[16];

	profile.sample_type = &sample_type;
	profile.period_type = &period_type;
	fill_profile(o, &profile, id);
	wire_put_fields(&o->heads, &profile.base);
	if (otlp_samples_write(&o->of_profile, &o->samples) < 0 || !wire_buffer_ok(&o->heads))
		return -ENOMEM;
	o->parts[o->n_parts].n_head = o->heads.n - heads;
	o->parts[o->n_parts++].n_samples = o->samples.n - samples;
	return 0;
}

static void copy_bytes(struct wire_buffer *to, const uint8_t *bytes, size_t n)
{
	uint8_t *p = wire_reserve(to, n);

	if (!p || n == 0)
		return;
	memcpy(p, bytes, n);
	to->n += n;
}

/* The size of the Profiles in their envelope. */
static size_t parts_size(const struct otlp *o)
{
	size_t size = 0;

	for (uint32_t i = 0; i < o->n_parts; i++) {
		size_t n = o->parts[i].n_head + o->parts[i].n_samples;

		size += wire_prefix_size(n) + n;
	}
	return size;
}

static void write_parts(struct otlp *o)
{
	size_t head = 0, samples = 0;

	for (uint32_t i = 0; i < o->n_parts; i++) {
		size_t n_head = o->parts[i].n_head, n_samples = o->parts[i].n_samples;

		wire_put_prefix(&o->out, 2, n_head + n_samples);
		copy_bytes(&o->out, o->heads.bytes + head, n_head);
		copy_bytes(&o->out, o->samples.bytes + samples, n_samples);
		head += n_head;
		samples += n_samples;
	}
}

/*
 * Writes the ResourceProfiles of the current process, envelope by envelope. The generated encoder
 * writes the small parts; the samples are copied after the other fields of their Profile.
 */
static int write_process(struct otlp *o)
{
	Opentelemetry__Proto__Common__V1__InstrumentationScope scope =
		OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT;
	char scope_name[] = "perfwalk", version[64] = "", url[] = OTLP_SCHEMA_URL;
	PB(ScopeProfiles) sp = PB_INIT(SCOPE_PROFILES);
	size_t n_scope;

	if (end_profile(o) < 0)
		return -ENOMEM;
	(void)snprintf(version, sizeof(version), "%s", o->info->version ? o->info->version : "");
	scope.name = scope_name;
	scope.version = version;
	sp.scope = &scope;
	sp.schema_url = url;

	n_scope = protobuf_c_message_get_packed_size(&sp.base) + parts_size(o);
	wire_put_prefix(&o->out, 1, o->resource.n + wire_prefix_size(n_scope) + n_scope);
	copy_bytes(&o->out, o->resource.bytes, o->resource.n);
	wire_put_prefix(&o->out, 2, n_scope);
	wire_put_fields(&o->out, &sp.base);
	write_parts(o);
	return wire_buffer_ok(&o->out) ? 0 : -ENOMEM;
}

static void begin_profile(struct otlp *o, uint32_t type)
{
	o->type = type;
	otlp_samples_begin(&o->of_profile, o->order.types[type].aggregated);
	put_profile_strings(o);
}

/* Begins the ResourceProfiles of the process of the sample at this position. */
static int begin_process(struct otlp *o, uint32_t position, uint32_t end)
{
	PB(ResourceProfiles) rp = PB_INIT(RESOURCE_PROFILES);
	char url[] = OTLP_SCHEMA_URL;
	bool user = false;

	o->process = otlp_order_process(&o->order, position);
	for (uint32_t i = position;
	     i < end && !user && otlp_order_process(&o->order, i) == o->process; i++) {
		uint32_t stack = otlp_order_sample(&o->order, i)->stack;

		user = o->p->stacks.items[stack].n > o->p->stacks.items[stack].n_kernel;
	}
	o->n_parts = 0;
	wire_buffer_clear(&o->heads);
	wire_buffer_clear(&o->samples);
	wire_buffer_clear(&o->resource);
	rp.schema_url = url;
	if (otlp_write_resource(&o->resource, o->p, o->info, o->process, user) < 0)
		return -ENOMEM;
	wire_put_fields(&o->resource, &rp.base);
	return wire_buffer_ok(&o->resource) ? 0 : -ENOMEM;
}

/* Moves on to the Profile of the sample at this position. */
static int reach_profile(struct otlp *o, uint32_t position, uint32_t end)
{
	uint32_t type = otlp_order_type(&o->order, position);
	bool same_process = o->process == otlp_order_process(&o->order, position);
	int r = 0;

	if (same_process && o->type == type)
		return 0;
	if (same_process)
		r = end_profile(o);
	else if (o->process != PROFILE_NONE)
		r = write_process(o);
	if (r == 0 && !same_process)
		r = begin_process(o, position, end);
	if (r == 0)
		begin_profile(o, type);
	return r;
}

/*
 * Builds a payload of the samples at [first, end), or of as many of them as fit, *ret_n. If they
 * did not all fit, the payload is unusable; the caller builds it again with those that did.
 */
static int build_payload(struct otlp *o, uint32_t first, uint32_t end, uint32_t *ret_n)
{
	int r = 0;

	otlp_frames_begin(&o->frames);
	otlp_samples_begin_payload(&o->of_profile);
	wire_buffer_clear(&o->out);
	o->writes_common = o->common_written;
	memcpy(o->writes_type, o->type_written, sizeof(o->writes_type));
	o->process = PROFILE_NONE;
	for (uint32_t i = first; i < end; i++) {
		r = reach_profile(o, i, end);
		if (r == 0)
			r = otlp_samples_add(&o->of_profile, otlp_order_sample(&o->order, i),
					     o->max_frames);
		if (r < 0)
			return r;
		if (r > 0 || payload_bound(o) > o->max_bytes) {
			*ret_n = i - first;
			return 0;
		}
	}
	r = write_process(o);
	otlp_dictionary_write(&o->frames.dictionary, &o->out, 2);
	if (r < 0 || !otlp_dictionary_ok(&o->frames.dictionary) || !wire_buffer_ok(&o->out))
		return -ENOMEM;
	*ret_n = end - first;
	return 0;
}

/*
 * Makes one payload that begins with the sample at first. A single sample with a stack that is too
 * large keeps the frames next to its leaf, as many as fit, and gets a marker.
 */
static int next_payload(struct otlp *o, uint32_t first, uint32_t *ret_n)
{
	uint32_t end = o->order.n_samples, n = 0;
	int r;

	o->max_frames = UINT32_MAX;
	r = build_payload(o, first, end, &n);
	if (r == 0 && n > 0 && n < end - first) {
		end = first + n;
		r = build_payload(o, first, end, &n);
	}
	if (r == 0 && n == 0) {
		(void)profile_stack_frames(o->p, otlp_order_sample(&o->order, first)->stack,
					   &o->max_frames);
		while (r == 0 && n == 0 && o->max_frames > 0) {
			o->max_frames /= 2;
			r = build_payload(o, first, first + 1, &n);
		}
		if (r == 0 && n == 0)
			r = -EMSGSIZE;
	}
	*ret_n = n;
	return r;
}

static int otlp_init(struct otlp *o, const struct profile *p, uint32_t max_samples)
{
	int r = otlp_frames_init(&o->frames, p);

	o->frames.all_modules = o->facts;
	if (r == 0)
		r = otlp_samples_init(&o->of_profile, p, &o->frames, max_samples);
	return r < 0 ? r : otlp_order_init(&o->order, p, o->facts);
}

static void otlp_deinit(struct otlp *o)
{
	otlp_frames_deinit(&o->frames);
	otlp_samples_deinit(&o->of_profile);
	otlp_order_deinit(&o->order);
	wire_buffer_deinit(&o->out);
	wire_buffer_deinit(&o->resource);
	wire_buffer_deinit(&o->heads);
	wire_buffer_deinit(&o->samples);
}

int render_otlp(const struct profile *p, const struct render_info *info,
		const struct render_otlp_options *options, render_otlp_sink sink, void *ctx)
{
	struct otlp o = {.p = p, .info = info};
	int r;

	o.max_bytes = options && options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES;
	o.facts = options && options->facts;
	r = otlp_init(&o, p,
		      options && options->max_samples ? options->max_samples : DEFAULT_MAX_SAMPLES);
	if (r == 0)
		find_window(&o);
	for (uint32_t first = 0, n = 0; first < o.order.n_samples && r == 0; first += n) {
		r = next_payload(&o, first, &n);
		if (r == 0)
			r = sink(ctx, o.out.bytes, o.out.n, n);
		o.n_payloads++;
		o.common_written = o.writes_common;
		memcpy(o.type_written, o.writes_type, sizeof(o.type_written));
	}
	otlp_deinit(&o);
	return r;
}

/* A limit of protobuf itself: messages are below 2 GiB. */
#define FILE_MAX_BYTES ((size_t)INT32_MAX)

struct file_sink {
	FILE *out;
	unsigned int n;
};

static int write_payload(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	struct file_sink *sink = ctx;

	if (sink->n++) /* a file has one message */
		return -EFBIG;
	return fwrite(bytes, 1, n, sink->out) == n ? 0 : -EIO;
}

int render_otlp_file(const struct profile *p, const struct render_info *info, FILE *out)
{
	const struct render_otlp_options options = {FILE_MAX_BYTES, UINT32_MAX, .facts = true};
	struct file_sink sink = {.out = out};
	int r = render_otlp(p, info, &options, write_payload, &sink);

	return r < 0 ? r : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
