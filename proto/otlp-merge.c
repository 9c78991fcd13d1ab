/* SPDX-License-Identifier: Apache-2.0 */
/* One pass collects the fields of all messages by what they belong to, a second one writes them. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp-merge.h"
#include "proto/otlp-time.h"
#include "proto/wire-read.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/hash.h"

/* Fields of a Profile, and the one that holds the next message in all messages above it. */
enum { SAMPLE_TYPE = 1, SAMPLES, PERIOD_TYPE = 5, PERIOD };
enum { RESOURCE_PROFILES = 1, CHILD };

struct merged_profile {
	struct wire_buffer kind; /* what makes it another Profile, as fields */
	struct wire_buffer rest, samples;
	struct otlp_time time;
	uint32_t n_samples;
	uint32_t n_before; /* full ones of this kind and time */
};

/* A ResourceProfiles with one ScopeProfiles. */
struct merged_scope {
	struct wire_buffer resource, scope; /* their other fields */
	ARRAY(struct merged_profile) profiles;
};

struct merged_request {
	uint32_t max_samples;
	ARRAY(struct merged_scope) scopes;
	struct hash_index index;  /* of these */
	struct wire_buffer other; /* of the request: the dictionary */
};

static void merge_deinit(struct merged_request *m)
{
	for (uint32_t i = 0; i < m->scopes.n; i++) {
		struct merged_scope *s = &m->scopes.items[i];

		for (uint32_t j = 0; j < s->profiles.n; j++) {
			wire_buffer_deinit(&s->profiles.items[j].kind);
			wire_buffer_deinit(&s->profiles.items[j].rest);
			wire_buffer_deinit(&s->profiles.items[j].samples);
		}
		array_deinit(&s->profiles);
		wire_buffer_deinit(&s->resource);
		wire_buffer_deinit(&s->scope);
	}
	array_deinit(&m->scopes);
	hash_index_deinit(&m->index);
	wire_buffer_deinit(&m->other);
}

static struct cursor cursor_of(const struct wire_field *message)
{
	return cursor_make(message->n ? message->bytes : (const uint8_t *)"", message->n);
}

static void put_raw(struct wire_buffer *b, const uint8_t *bytes, size_t n)
{
	uint8_t *p = n ? wire_reserve(b, n) : NULL;

	if (!p)
		return;
	memcpy(p, bytes, n);
	b->n += n;
}

static void move_buffer(struct wire_buffer *to, struct wire_buffer *from)
{
	*to = *from;
	*from = (struct wire_buffer){0};
}

static bool same_bytes(const struct wire_buffer *a, const struct wire_buffer *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0);
}

/* Collects the fields of a message except those of this number. */
static int gather_others(const struct wire_field *message, uint32_t except, struct wire_buffer *out)
{
	struct cursor c = cursor_of(message);
	const uint8_t *begin = c.cur;
	struct wire_field f;

	for (; wire_read_field(&c, &f); begin = c.cur) {
		if (f.number != except)
			put_raw(out, begin, (size_t)(c.cur - begin));
		else if (f.type != WIRE_BYTES)
			return -EBADMSG;
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	return wire_buffer_ok(out) ? 0 : -ENOMEM;
}

/* --- collecting ---------------------------------------------------------------------------- */

/* Reads a Profile apart from how it is merged. The caller frees its buffers, also on failure. */
static int read_profile(const struct wire_field *profile, struct merged_profile *ret)
{
	struct cursor c = cursor_of(profile);
	const uint8_t *begin = c.cur;
	struct wire_field f;

	for (; wire_read_field(&c, &f); begin = c.cur) {
		struct wire_buffer *to = &ret->rest;

		if (otlp_time_take(&f, &ret->time))
			continue;
		if (f.number == SAMPLES) {
			to = &ret->samples;
			ret->n_samples++;
		} else if (f.number == SAMPLE_TYPE || f.number == PERIOD_TYPE ||
			   f.number == PERIOD) {
			to = &ret->kind;
		}
		put_raw(to, begin, (size_t)(c.cur - begin));
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	return ret->kind.failed || ret->rest.failed || ret->samples.failed ? -ENOMEM : 0;
}

static bool same_time(const struct otlp_time *a, const struct otlp_time *b)
{
	return a->begin_unix_ns == b->begin_unix_ns && a->duration_ns == b->duration_ns;
}

/* The newest Profile that a further part may belong to; NULL: there is none. */
static struct merged_profile *find_profile(const struct merged_scope *s,
					   const struct merged_profile *part)
{
	for (uint32_t i = s->profiles.n; i > 0; i--) {
		struct merged_profile *p = &s->profiles.items[i - 1];

		if (same_time(&p->time, &part->time) && same_bytes(&p->kind, &part->kind))
			return p;
	}
	return NULL;
}

static int add_profile(struct merged_request *m, struct merged_scope *s,
		       struct merged_profile *part)
{
	struct merged_profile *p = find_profile(s, part);
	uint32_t n_before = 0;

	if (p && p->n_samples <= m->max_samples &&
	    part->n_samples <= m->max_samples - p->n_samples) {
		put_raw(&p->samples, part->samples.bytes, part->samples.n);
		p->n_samples += part->n_samples;
		return wire_buffer_ok(&p->samples) ? 0 : -ENOMEM;
	}
	if (p)
		n_before = p->n_before + 1;
	p = array_push(&s->profiles);
	if (!p)
		return -ENOMEM;
	p->time = part->time;
	p->n_samples = part->n_samples;
	p->n_before = n_before;
	move_buffer(&p->kind, &part->kind);
	move_buffer(&p->rest, &part->rest);
	move_buffer(&p->samples, &part->samples);
	return 0;
}

/* The number of the scope with these fields, which it takes if it is new. 0 or -errno. */
static int find_scope(struct merged_request *m, struct wire_buffer *resource,
		      struct wire_buffer *scope, uint32_t *ret)
{
	uint64_t hash = hash_combine(hash_bytes(resource->bytes, resource->n, 0),
				     hash_bytes(scope->bytes, scope->n, 0));
	uint32_t slot = hash_index_first(&m->index, hash), row;
	struct merged_scope *s;

	while ((row = hash_index_row(&m->index, slot)) != HASH_INDEX_NONE) {
		s = &m->scopes.items[row];
		if (same_bytes(&s->resource, resource) && same_bytes(&s->scope, scope))
			break;
		slot = hash_index_next(&m->index, slot);
	}
	*ret = row;
	if (row != HASH_INDEX_NONE)
		return 0;
	s = array_push(&m->scopes);
	if (!s)
		return -ENOMEM;
	s->profiles.max = UINT32_MAX - 1;
	put_raw(&s->resource, resource->bytes, resource->n);
	move_buffer(&s->scope, scope);
	*ret = m->scopes.n - 1;
	return wire_buffer_ok(&s->resource) ? hash_index_add(&m->index, hash, *ret) : -ENOMEM;
}

static int add_scope(struct merged_request *m, struct wire_buffer *resource,
		     const struct wire_field *scope)
{
	_cleanup_(wire_buffer_deinit) struct wire_buffer other = {0};
	struct cursor c = cursor_of(scope);
	struct wire_field f;
	uint32_t number;
	int r = gather_others(scope, CHILD, &other);

	if (r == 0)
		r = find_scope(m, resource, &other, &number);
	while (r == 0 && wire_read_field(&c, &f)) {
		struct merged_profile part = {0};

		if (f.number != CHILD)
			continue;
		r = read_profile(&f, &part);
		if (r == 0)
			r = add_profile(m, &m->scopes.items[number], &part);
		wire_buffer_deinit(&part.kind);
		wire_buffer_deinit(&part.rest);
		wire_buffer_deinit(&part.samples);
	}
	return r;
}

static int add_resource(struct merged_request *m, const struct wire_field *resource)
{
	_cleanup_(wire_buffer_deinit) struct wire_buffer other = {0};
	struct cursor c = cursor_of(resource);
	struct wire_field f;
	int r = gather_others(resource, CHILD, &other);

	while (r == 0 && wire_read_field(&c, &f)) {
		if (f.number == CHILD)
			r = add_scope(m, &other, &f);
	}
	return r;
}

/* --- writing ------------------------------------------------------------------------------- */

static int put_scope(const struct merged_scope *s, struct wire_buffer *out)
{
	_cleanup_(wire_buffer_deinit) struct wire_buffer scope = {0}, profile = {0};

	put_raw(&scope, s->scope.bytes, s->scope.n);
	for (uint32_t i = 0; i < s->profiles.n; i++) {
		const struct merged_profile *p = &s->profiles.items[i];

		wire_buffer_clear(&profile);
		put_raw(&profile, p->kind.bytes, p->kind.n);
		otlp_time_put(&profile, &p->time, p->n_before * OTLP_MILLISECOND_NS);
		put_raw(&profile, p->rest.bytes, p->rest.n);
		put_raw(&profile, p->samples.bytes, p->samples.n);
		if (profile.failed)
			return -ENOMEM;
		wire_put_bytes(&scope, CHILD, profile.bytes, profile.n);
	}
	wire_buffer_clear(&profile);
	put_raw(&profile, s->resource.bytes, s->resource.n);
	wire_put_bytes(&profile, CHILD, scope.bytes, scope.n);
	if (scope.failed || profile.failed)
		return -ENOMEM;
	wire_put_bytes(out, RESOURCE_PROFILES, profile.bytes, profile.n);
	return wire_buffer_ok(out) ? 0 : -ENOMEM;
}

int otlp_merge(const uint8_t *bytes, size_t n, uint32_t max_samples, struct wire_buffer *ret)
{
	_cleanup_(merge_deinit) struct merged_request m = {.max_samples = max_samples,
							   .scopes.max = UINT32_MAX - 1};
	struct wire_field request = {.bytes = bytes, .n = n}, f;
	struct cursor c = cursor_of(&request);
	int r = gather_others(&request, RESOURCE_PROFILES, &m.other);

	while (r == 0 && wire_read_field(&c, &f)) {
		if (f.number == RESOURCE_PROFILES)
			r = add_resource(&m, &f);
	}
	wire_buffer_clear(ret);
	for (uint32_t i = 0; i < m.scopes.n && r == 0; i++)
		r = put_scope(&m.scopes.items[i], ret);
	put_raw(ret, m.other.bytes, m.other.n);
	return r == 0 && !wire_buffer_ok(ret) ? -ENOMEM : r;
}
