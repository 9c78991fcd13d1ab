/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the samples of all types go into payloads: a counting sort by process. */
#include <errno.h>
#include <stdlib.h>

#include "src/render/otlp-internal.h"

static uint32_t type_of(const struct otlp_order *o, uint32_t number)
{
	uint32_t type = o->n_types - 1;

	while (number < o->types[type].first)
		type--;
	return type;
}

static const struct profile_sample *sample_of(const struct otlp_order *o, uint32_t number)
{
	const struct otlp_type *t = &o->types[type_of(o, number)];

	return &t->view.types[0].samples.items[number - t->first];
}

static uint32_t process_of_sample(const struct otlp_order *o, uint32_t number)
{
	return o->first_process[o->p->threads.items[sample_of(o, number)->thread].process];
}

uint32_t otlp_order_type(const struct otlp_order *o, uint32_t position)
{
	return type_of(o, o->numbers[position]);
}

uint32_t otlp_order_process(const struct otlp_order *o, uint32_t position)
{
	return process_of_sample(o, o->numbers[position]);
}

const struct profile_sample *otlp_order_sample(const struct otlp_order *o, uint32_t position)
{
	return sample_of(o, o->numbers[position]);
}

/*
 * The first process with samples of the first type, because a reader may use the first Profile's
 * type.
 */
static uint32_t leading_process(const struct otlp_order *o)
{
	uint32_t leading = o->p->processes.n;

	for (uint32_t i = 0; i < o->types[0].view.types[0].samples.n; i++) {
		uint32_t process = process_of_sample(o, i);

		leading = process < leading ? process : leading;
	}
	return leading < o->p->processes.n ? leading : 0;
}

/* Sorts samples by process; within a process they stay in order, by type and time. */
static int sort_by_process(struct otlp_order *o, bool by_name)
{
	const struct profile *p = o->p;
	uint32_t *begin = calloc((size_t)p->processes.n + 1, sizeof(*begin)), sum = 0, leading;

	o->numbers = malloc(((size_t)o->n_samples + 1) * sizeof(*o->numbers));
	o->first_process = otlp_group_resources(p, by_name);
	if (!o->numbers || !begin || !o->first_process) {
		free(begin);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < o->n_samples; i++)
		begin[process_of_sample(o, i)]++;
	leading = leading_process(o);
	sum = begin[leading];
	begin[leading] = 0;
	for (uint32_t i = 0; i < p->processes.n; i++) {
		uint32_t n = begin[i];

		if (i == leading)
			continue;
		begin[i] = sum;
		sum += n;
	}
	for (uint32_t i = 0; i < o->n_samples; i++)
		o->numbers[begin[process_of_sample(o, i)]++] = i;
	free(begin);
	return 0;
}

static void find_types(struct otlp_order *o)
{
	o->n_types = o->p->n_types;
	for (uint32_t i = 0; i < o->n_types; i++) {
		struct otlp_type *t = &o->types[i];

		profile_view(o->p, i, &t->view);
		t->first = o->n_samples;
		o->n_samples += t->view.types[0].samples.n;
		for (uint32_t j = 0; j < t->view.types[0].samples.n; j++)
			t->aggregated |= t->view.types[0].samples.items[j].value != 1;
	}
}

int otlp_order_init(struct otlp_order *o, const struct profile *p, bool by_name)
{
	*o = (struct otlp_order){.p = p};
	find_types(o);
	return sort_by_process(o, by_name);
}

void otlp_order_deinit(struct otlp_order *o)
{
	free(o->numbers);
	free(o->first_process);
}
