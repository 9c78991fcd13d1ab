/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a Profile. Those with the same identity (stack, thread, CPU, labels, by index in
 * the dictionary) become one Sample with many timestamps.
 *
 * Samples have only timestamps, each worth 1. If the value of some sample is not 1 (an imported
 * profile), all Samples of its type have one aggregated value instead, never a value for each
 * timestamp: Pyroscope refuses those.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp-profiles.pb-c.h"
#include "src/profile/labels.h"
#include "src/render/otlp-samples.h"

#define PB(name)      Opentelemetry__Proto__Profiles__V1development__##name
#define PB_INIT(name) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##name##__INIT

#define MAX_LABELS	32   /* of a sample, as attributes */
#define MAX_LABEL_BYTES 8192 /* of one; longer than any that is read */

/* Upper bounds for a Sample that is not encoded yet, without its timestamps: tags, lengths, a
 * stack, three attributes, a link, a value; more of one with labels. */
#define SAMPLE_BYTES   72
#define LABELLED_BYTES (5 * MAX_LABELS)

int otlp_samples_init(struct otlp_samples *o, const struct profile *p, struct otlp_frames *frames,
		      uint32_t max_samples)
{
	o->p = p;
	o->frames = frames;
	o->max_samples = max_samples;
	o->slots.max = o->stamps.max = o->scratch.max = UINT32_MAX - 1;
	o->tids = calloc((size_t)p->threads.n + 1, sizeof(*o->tids));
	o->names = calloc((size_t)p->threads.n + 1, sizeof(*o->names));
	o->labels = calloc((size_t)p->threads.n + 1, sizeof(*o->labels));
	return o->tids && o->names && o->labels ? 0 : -ENOMEM;
}

void otlp_samples_deinit(struct otlp_samples *o)
{
	free(o->tids);
	free(o->names);
	free(o->labels);
	array_deinit(&o->slots);
	array_deinit(&o->stamps);
	array_deinit(&o->scratch);
	hash_index_deinit(&o->slot_index);
}

void otlp_samples_begin_payload(struct otlp_samples *o)
{
	hash_index_clear(&o->slot_index);
}

void otlp_samples_begin(struct otlp_samples *o, bool aggregated)
{
	o->profile++;
	o->aggregated = aggregated;
	array_clear(&o->slots);
	o->n_labelled = 0;
	array_clear(&o->stamps);
}

static int32_t put_thread(struct otlp_samples *o, uint32_t thread, int32_t *ret_name)
{
	const struct profile_thread *t = &o->p->threads.items[thread];
	const char *name = profile_text(o->p, t->name);
	int32_t tid;

	if (!otlp_memo_get(o->frames, &o->tids[thread], &tid))
		tid = otlp_memo_set(
			o->frames, &o->tids[thread],
			otlp_put_attribute_int(&o->frames->dictionary, "thread.id", t->tid));
	if (!otlp_memo_get(o->frames, &o->names[thread], ret_name))
		*ret_name = otlp_memo_set(o->frames, &o->names[thread],
					  *name ? otlp_put_attribute_string(&o->frames->dictionary,
									    "thread.name", name)
						: 0);
	return tid;
}

static bool is_id(const char *key)
{
	return strcmp(key, LABEL_TRACE) == 0 || strcmp(key, LABEL_SPAN) == 0;
}

/* Attributes that samples have anyway. */
static bool is_of_thread(const char *key)
{
	return strcmp(key, "thread.id") == 0 || strcmp(key, "thread.name") == 0 ||
	       strcmp(key, "cpu.logical_number") == 0;
}

static bool is_among(uint64_t key, const uint64_t *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (keys[i] == key)
			return true;
	}
	return false;
}

/* The attributes of a sample with these labels, at most MAX_LABELS: their number. OTLP has each key
 * once, while other profilers' labels repeat them: the first one counts. Ids are none if
 * they make the link *ret_link; 0: there is no link. */
static size_t put_labels(struct otlp_samples *o, strid labels, int32_t *ret, int32_t *ret_link)
{
	struct otlp_dictionary *d = &o->frames->dictionary;
	const char *text = profile_text(o->p, labels);
	uint8_t trace[LABEL_TRACE_BYTES], span[LABEL_SPAN_BYTES];
	bool linked = label_link(text, trace, span);
	uint64_t keys[MAX_LABELS], key;
	char buf[MAX_LABEL_BYTES];
	struct label l;
	size_t n = 0;

	*ret_link = linked ? otlp_put_link(d, trace, span) : 0;
	while (n < MAX_LABELS && label_read(&text, &l, buf, sizeof(buf))) {
		key = hash_bytes(l.key, strlen(l.key), 0);
		if ((linked && is_id(l.key)) || is_of_thread(l.key) || is_among(key, keys, n))
			continue;
		keys[n] = key;
		ret[n++] = l.text ? otlp_put_attribute_string(d, l.key, l.text)
				  : otlp_put_attribute_int(d, l.key, l.number);
	}
	return n;
}

/* Puts into the dictionary what the samples of this row will need. */
static strid put_thread_labels(struct otlp_samples *o, uint32_t thread)
{
	strid labels = o->p->threads.items[thread].labels;
	int32_t attributes[MAX_LABELS], link;

	if (labels != STRID_EMPTY && !otlp_memo_get(o->frames, &o->labels[thread], &link)) {
		(void)put_labels(o, labels, attributes, &link);
		(void)otlp_memo_set(o->frames, &o->labels[thread], link);
	}
	return labels;
}

static int32_t put_cpu(struct otlp_samples *o, uint32_t cpu)
{
	int32_t index;

	if (cpu < OTLP_CPU_MEMO && otlp_memo_get(o->frames, &o->cpus[cpu], &index))
		return index;
	index = otlp_put_attribute_int(&o->frames->dictionary, "cpu.logical_number", cpu);
	return cpu < OTLP_CPU_MEMO ? otlp_memo_set(o->frames, &o->cpus[cpu], index) : index;
}

/* The slot with this identity in the current Profile. 1: it would be one too many; or -ENOMEM. */
static int find_slot(struct otlp_samples *o, const struct sample_slot *key,
		     struct sample_slot **ret)
{
	uint64_t hash =
		hash_combine(hash_combine((uint64_t)key->profile << 32 | (uint32_t)key->stack,
					  (uint64_t)(uint32_t)key->tid << 32 | (uint32_t)key->name),
			     (uint64_t)(uint32_t)key->cpu << 32 | key->labels);
	uint32_t slot = hash_index_first(&o->slot_index, hash), row;
	struct sample_slot *s;

	while ((row = hash_index_row(&o->slot_index, slot)) != HASH_INDEX_NONE) {
		s = &o->slots.items[row];
		/* Slots of an earlier Profile may be gone from the table, but not from the index.
		 */
		if (hash_index_match(&o->slot_index, slot, hash) && row < o->slots.n &&
		    s->profile == key->profile && s->stack == key->stack && s->tid == key->tid &&
		    s->name == key->name && s->cpu == key->cpu && s->labels == key->labels) {
			*ret = s;
			return 0;
		}
		slot = hash_index_next(&o->slot_index, slot);
	}
	if (o->slots.n >= o->max_samples)
		return 1;
	s = array_push(&o->slots);
	if (!s || hash_index_add(&o->slot_index, hash, o->slots.n - 1) < 0)
		return -ENOMEM;
	*s = *key;
	o->n_labelled += key->labels != STRID_EMPTY;
	s->first_stamp = s->last_stamp = UINT32_MAX;
	*ret = s;
	return 0;
}

static int add_stamp(struct otlp_samples *o, struct sample_slot *s, uint64_t time_unix_ns)
{
	struct stamp *stamp = array_push(&o->stamps);
	uint32_t row = o->stamps.n - 1;

	if (!stamp)
		return -ENOMEM;
	*stamp = (struct stamp){time_unix_ns, UINT32_MAX};
	if (s->last_stamp == UINT32_MAX)
		s->first_stamp = row;
	else
		o->stamps.items[s->last_stamp].next = row;
	s->last_stamp = row;
	return 0;
}

int otlp_samples_add(struct otlp_samples *o, const struct profile_sample *sample,
		     uint32_t max_frames)
{
	struct sample_slot key = {.profile = o->profile}, *slot;
	int r;

	key.stack = otlp_put_profile_stack(o->frames, sample->stack, max_frames);
	key.tid = put_thread(o, sample->thread, &key.name);
	key.cpu = put_cpu(o, sample->cpu);
	key.labels = put_thread_labels(o, sample->thread);
	if (!otlp_dictionary_ok(&o->frames->dictionary))
		return -ENOMEM;
	r = find_slot(o, &key, &slot);
	if (r != 0)
		return r;
	slot->n++;
	slot->value = profile_sum(slot->value, sample->value);
	return o->aggregated ? 0 : add_stamp(o, slot, sample->time_unix_ns);
}

size_t otlp_samples_bound(const struct otlp_samples *o)
{
	return (size_t)o->slots.n * SAMPLE_BYTES + o->n_labelled * LABELLED_BYTES +
	       (size_t)o->stamps.n * 8;
}

static int compare_slots(const void *a, const void *b)
{
	const struct sample_slot *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (x->labels > y->labels) - (x->labels < y->labels);
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Collects the timestamps of a slot in scratch, sorted. */
static int gather_stamps(struct otlp_samples *o, const struct sample_slot *s)
{
	bool sorted = true;

	array_clear(&o->scratch);
	for (uint32_t i = s->first_stamp; i != UINT32_MAX; i = o->stamps.items[i].next) {
		uint64_t *t = array_push(&o->scratch);

		if (!t)
			return -ENOMEM;
		*t = o->stamps.items[i].time_unix_ns;
		sorted &= o->scratch.n < 2 || t[-1] <= *t;
	}
	if (!sorted)
		qsort(o->scratch.items, o->scratch.n, sizeof(*o->scratch.items), compare_times);
	return 0;
}

int otlp_samples_write(struct otlp_samples *o, struct wire_buffer *to)
{
	qsort(o->slots.items, o->slots.n, sizeof(*o->slots.items), compare_slots);
	for (uint32_t i = 0; i < o->slots.n; i++) {
		struct sample_slot *s = &o->slots.items[i];
		int32_t attributes[3 + MAX_LABELS] = {s->tid, s->cpu, s->name};
		size_t n = s->name ? 3 : 2;
		PB(Sample) pb = PB_INIT(SAMPLE);

		pb.stack_index = s->stack;
		pb.attribute_indices = attributes;
		pb.n_attribute_indices =
			n + put_labels(o, s->labels, attributes + n, &pb.link_index);
		if (o->aggregated) {
			pb.values = &s->value;
			pb.n_values = 1;
		} else {
			if (gather_stamps(o, s) < 0)
				return -ENOMEM;
			pb.timestamps_unix_nano = o->scratch.items;
			pb.n_timestamps_unix_nano = o->scratch.n;
		}
		wire_put_message(to, 2, &pb.base);
	}
	return wire_buffer_ok(to) ? 0 : -ENOMEM;
}
