/* SPDX-License-Identifier: Apache-2.0 */
/* What the local store keeps of the memory of processes (proto/kept-memory.proto). */
#include <string.h>

#include "proto/wire-read.h"
#include "src/import/otlp-internal.h"
#include "util/clock.h"

/* From the last look of a window to the first one of the next passes less. */
#define GAP_NS (2 * NSEC_PER_SEC)

struct kept_memory {
	uint64_t start_unix_ns, duration_ns;
	uint32_t process; /* row of the current one */
	uint64_t us;	  /* of the current point */
	bool has_us;
};

static bool in_window(const struct kept_memory *m, uint64_t us)
{
	return us <= m->duration_ns / NSEC_PER_USEC;
}

/* Times and amounts take turns. What does not fit is missing, as in a window. */
static int take_point(struct otlp_file *o, void *ctx, uint64_t value)
{
	struct kept_memory *m = ctx;
	struct profile_resident r = {.process = m->process};

	m->has_us = !m->has_us;
	if (m->has_us) {
		m->us = value;
		return 0;
	}
	if (!in_window(m, m->us) || value > UINT64_MAX / 1024)
		return 0;
	r.time_unix_ns = m->start_unix_ns + m->us * NSEC_PER_USEC;
	r.bytes = value ? (value - 1) * 1024 : PROFILE_RESIDENT_UNKNOWN;
	(void)profile_add_resident(o->im->p, &r);
	return 0;
}

static strid text_of(struct otlp_file *o, const struct span *s, uint32_t number)
{
	const struct span text = otlp_bytes(s, number);

	return import_text(o->im, otlp_keep_text(o, TEXT_SCRATCH, &text));
}

static uint32_t process_row(struct otlp_file *o, const struct span *s)
{
	const struct profile_process process = {
		.pid = (uint32_t)otlp_number(s, 1),
		.start_time_unix_ns = otlp_number(s, 2),
		.comm = text_of(o, s, 3),
		.container_id = text_of(o, s, 4),
		.container_name = text_of(o, s, 5),
		.systemd_unit = text_of(o, s, 7),
	};

	return profile_add_process(o->im->p, &process);
}

static int read_process(struct otlp_file *o, struct kept_memory *m, const struct span *s)
{
	m->process = process_row(o, s);
	m->has_us = false;
	return m->process == PROFILE_NONE ? 0 : otlp_each_number(o, s, 6, take_point, m);
}

static void read_kills(struct otlp_file *o, const struct kept_memory *m, const struct span *s)
{
	uint64_t us = otlp_number(s, 1);
	const struct profile_kills k = {m->start_unix_ns + us * NSEC_PER_USEC, otlp_number(s, 2)};

	if (in_window(m, us) && k.n > 0)
		(void)profile_add_kills(o->im->p, &k);
}

static void read_victim(struct otlp_file *o, const struct kept_memory *m, const struct span *s)
{
	const struct span process = otlp_bytes(s, 1);
	uint64_t us = otlp_number(s, 2);
	const struct profile_victim v = {m->start_unix_ns + us * NSEC_PER_USEC,
					 process_row(o, &process), otlp_number(s, 3) != 0};

	if (in_window(m, us) && v.process != PROFILE_NONE)
		(void)profile_add_victim(o->im->p, &v);
}

/* Nobody looked between the window before and this one: nothing is known of then. */
static void end_before(struct import *im, const struct kept_memory *m)
{
	uint32_t n = im->p->residents.n;

	if (m->start_unix_ns < im->memory_end_unix_ns + GAP_NS)
		return;
	for (uint32_t i = im->first_resident; i < n; i++) {
		struct profile_resident r = im->p->residents.items[i];

		r.time_unix_ns = im->memory_end_unix_ns;
		r.bytes = PROFILE_RESIDENT_UNKNOWN;
		if (im->p->residents.items[i].bytes != 0)
			(void)profile_add_resident(im->p, &r);
	}
}

int otlp_read_memory(struct otlp_file *o, const struct span *memory)
{
	struct kept_memory m = {.start_unix_ns = otlp_number(memory, 1),
				.duration_ns = otlp_number(memory, 2)};
	struct cursor c = cursor_make(memory->bytes, memory->n);
	struct import *im = o->im;
	struct wire_field f;
	int r = 0;

	if (m.start_unix_ns + m.duration_ns < m.start_unix_ns)
		return import_damaged(im, "the times of its memory are damaged");
	end_before(im, &m);
	im->first_resident = im->p->residents.n;
	im->memory_end_unix_ns = m.start_unix_ns + m.duration_ns;
	while (r == 0 && wire_read_field(&c, &f)) {
		const struct span s = {f.bytes, f.n};

		if (f.number == 3 && f.type == WIRE_BYTES)
			r = read_process(o, &m, &s);
		else if (f.number == 4 && f.type == WIRE_BYTES)
			read_kills(o, &m, &s);
		else if (f.number == 5 && f.type == WIRE_BYTES)
			read_victim(o, &m, &s);
	}
	return r;
}
