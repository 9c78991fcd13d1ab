/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is stored encoded, and the encoding is its identity: the entries it refers to were put
 * before and are known by index, and equal values have equal indices, so equal entries have equal
 * bytes. One hash of bytes serves all seven tables, their sizes are always known (the renderer
 * splits by them), and writing the dictionary is seven copies.
 *
 * An entry is packed right after the last one, and removed if the table already has it. The zero
 * value encodes to no bytes, which makes it entry 0 without a special case.
 */
#include "proto/otlp-dictionary.h"
#include "proto/otlp-profiles.pb-c.h"
#include "util/text.h"

#define PB(name) Opentelemetry__Proto__Profiles__V1development__##name

/* Makes an entry of the encoded bytes at the end of the table's buffer, after their prefix. */
static int32_t intern(struct otlp_dictionary *d, struct otlp_table *t, size_t start, size_t n)
{
	const uint8_t *body = t->bytes.bytes + t->bytes.n - n;
	uint64_t hash = hash_bytes(body, n, 0);
	uint32_t slot = hash_index_first(&t->index, hash), row;
	struct otlp_entry *e;

	while ((row = hash_index_row(&t->index, slot)) != HASH_INDEX_NONE) {
		e = &t->entries.items[row];
		if (hash_index_match(&t->index, slot, hash) && e->n == n &&
		    memcmp(t->bytes.bytes + e->offset, body, n) == 0) {
			t->bytes.n = start;
			return (int32_t)row;
		}
		slot = hash_index_next(&t->index, slot);
	}
	e = t->bytes.n > UINT32_MAX ? NULL : array_push(&t->entries);
	if (!e || hash_index_add(&t->index, hash, t->entries.n - 1) < 0) {
		d->failed = true;
		return 0;
	}
	*e = (struct otlp_entry){(uint32_t)(t->bytes.n - n), (uint32_t)n};
	return (int32_t)(t->entries.n - 1);
}

static int32_t put_message(struct otlp_dictionary *d, enum otlp_table_kind kind,
			   const ProtobufCMessage *m)
{
	struct otlp_table *t = &d->tables[kind];
	size_t start = t->bytes.n, n;

	if (d->failed)
		return 0;
	n = wire_put_message(&t->bytes, kind + 1u, m);
	if (!wire_buffer_ok(&t->bytes)) {
		d->failed = true;
		return 0;
	}
	return intern(d, t, start, n);
}

void otlp_dictionary_init(struct otlp_dictionary *d)
{
	*d = (struct otlp_dictionary){0};
	for (int i = 0; i < OTLP_N_TABLES; i++)
		d->tables[i].entries.max = INT32_MAX;
}

void otlp_dictionary_deinit(struct otlp_dictionary *d)
{
	for (int i = 0; i < OTLP_N_TABLES; i++) {
		wire_buffer_deinit(&d->tables[i].bytes);
		array_deinit(&d->tables[i].entries);
		hash_index_deinit(&d->tables[i].index);
	}
}

void otlp_dictionary_clear(struct otlp_dictionary *d)
{
	d->failed = false;
	for (int i = 0; i < OTLP_N_TABLES; i++) {
		struct otlp_table *t = &d->tables[i];

		wire_buffer_clear(&t->bytes);
		array_clear(&t->entries);
		hash_index_clear(&t->index);
		wire_put_prefix(&t->bytes, (uint32_t)i + 1, 0);
		if (!wire_buffer_ok(&t->bytes))
			d->failed = true;
		else
			(void)intern(d, t, 0, 0);
	}
}

int32_t otlp_put_string(struct otlp_dictionary *d, const char *text)
{
	struct otlp_table *t = &d->tables[OTLP_TABLE_STRING];
	char clean[OTLP_MAX_STRING];
	size_t start = t->bytes.n, n = text_clean(clean, sizeof(clean), text, SIZE_MAX);

	if (d->failed)
		return 0;
	wire_put_bytes(&t->bytes, OTLP_TABLE_STRING + 1, clean, n);
	if (!wire_buffer_ok(&t->bytes)) {
		d->failed = true;
		return 0;
	}
	return intern(d, t, start, n);
}

static int32_t put_attribute(struct otlp_dictionary *d, const char *key,
			     Opentelemetry__Proto__Common__V1__AnyValue *value)
{
	PB(KeyValueAndUnit)
	kv = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__KEY_VALUE_AND_UNIT__INIT;

	kv.key_strindex = otlp_put_string(d, key);
	kv.value = value;
	return put_message(d, OTLP_TABLE_ATTRIBUTE, &kv.base);
}

int32_t otlp_put_attribute_string(struct otlp_dictionary *d, const char *key, const char *value)
{
	Opentelemetry__Proto__Common__V1__AnyValue v =
		OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
	char clean[OTLP_MAX_STRING];

	(void)text_clean(clean, sizeof(clean), value, SIZE_MAX);
	v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
	v.string_value = clean;
	return put_attribute(d, key, &v);
}

int32_t otlp_put_attribute_int(struct otlp_dictionary *d, const char *key, int64_t value)
{
	Opentelemetry__Proto__Common__V1__AnyValue v =
		OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;

	v.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
	v.int_value = value;
	return put_attribute(d, key, &v);
}

int32_t otlp_put_mapping(struct otlp_dictionary *d, const struct otlp_mapping *m)
{
	PB(Mapping) pb = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__MAPPING__INIT;

	/* An unknown range stays unset. */
	if (m->memory_start < m->memory_limit) {
		pb.memory_start = m->memory_start;
		pb.memory_limit = m->memory_limit;
	}
	pb.file_offset = m->file_offset;
	pb.filename_strindex = m->filename;
	pb.attribute_indices = (int32_t *)(uintptr_t)m->attributes;
	pb.n_attribute_indices = m->n_attributes;
	return put_message(d, OTLP_TABLE_MAPPING, &pb.base);
}

int32_t otlp_put_function(struct otlp_dictionary *d, const struct otlp_function *f)
{
	PB(Function) pb = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__FUNCTION__INIT;

	pb.name_strindex = f->name;
	pb.system_name_strindex = f->system_name;
	pb.filename_strindex = f->filename;
	pb.start_line = f->start_line;
	return put_message(d, OTLP_TABLE_FUNCTION, &pb.base);
}

int32_t otlp_put_location(struct otlp_dictionary *d, const struct otlp_location *l)
{
	PB(Location) pb = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__LOCATION__INIT;
	PB(Line) lines[OTLP_MAX_LINES], *pointers[OTLP_MAX_LINES];
	size_t skip = l->n_lines > OTLP_MAX_LINES ? l->n_lines - OTLP_MAX_LINES : 0;
	int32_t attribute = l->attribute;

	for (size_t i = skip; i < l->n_lines; i++) {
		PB(Line) *line = &lines[i - skip];

		opentelemetry__proto__profiles__v1development__line__init(line);
		line->function_index = l->lines[i].function;
		line->line = l->lines[i].line;
		line->column = l->lines[i].column;
		pointers[i - skip] = line;
	}
	pb.mapping_index = l->mapping;
	pb.address = l->address;
	pb.lines = pointers;
	pb.n_lines = l->n_lines - skip;
	pb.attribute_indices = &attribute;
	pb.n_attribute_indices = attribute ? 1 : 0;
	return put_message(d, OTLP_TABLE_LOCATION, &pb.base);
}

int32_t otlp_put_link(struct otlp_dictionary *d, const uint8_t *trace, const uint8_t *span)
{
	PB(Link) pb = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__LINK__INIT;

	pb.trace_id = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)trace};
	pb.span_id = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t)span};
	return put_message(d, OTLP_TABLE_LINK, &pb.base);
}

int32_t otlp_put_stack(struct otlp_dictionary *d, const int32_t *locations, size_t n)
{
	PB(Stack) pb = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__STACK__INIT;

	pb.location_indices = (int32_t *)(uintptr_t)locations;
	pb.n_location_indices = n;
	return put_message(d, OTLP_TABLE_STACK, &pb.base);
}

size_t otlp_dictionary_size(const struct otlp_dictionary *d)
{
	size_t n = 0;

	for (int i = 0; i < OTLP_N_TABLES; i++)
		n += d->tables[i].bytes.n;
	return n;
}

void otlp_dictionary_write(const struct otlp_dictionary *d, struct wire_buffer *b, uint32_t field)
{
	wire_put_prefix(b, field, otlp_dictionary_size(d));
	for (int i = 0; i < OTLP_N_TABLES; i++) {
		const struct wire_buffer *t = &d->tables[i].bytes;
		uint8_t *p = wire_reserve(b, t->n);

		if (!p)
			return;
		memcpy(p, t->bytes, t->n);
		b->n += t->n;
	}
}
