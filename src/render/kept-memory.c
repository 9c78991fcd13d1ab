/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "proto/kept-memory.pb-c.h"
#include "proto/wire-write.h"
#include "src/render/frame.h"
#include "src/render/kept-memory.h"
#include "src/render/residents.h"
#include "util/cleanup.h"
#include "util/text.h"

#define MEMORY_FIELD 15

static uint64_t us_since(const struct profile *p, uint64_t time_unix_ns)
{
	return (time_unix_ns - p->start_unix_ns) / 1000;
}

static char *clean(const struct profile *p, strid text, char buf[FRAME_MAX_NAME])
{
	(void)text_clean(buf, FRAME_MAX_NAME, profile_text(p, text), SIZE_MAX);
	return buf;
}

struct identity {
	char name[FRAME_MAX_NAME], id[FRAME_MAX_NAME], called[FRAME_MAX_NAME], unit[FRAME_MAX_NAME];
};

static void fill_identity(Perfwalk__KeptProcess *k, const struct profile *p, uint32_t process,
			  struct identity *texts)
{
	const struct profile_process *proc = &p->processes.items[process];

	k->pid = proc->pid;
	k->start_time_unix_nano = proc->start_time_unix_ns;
	k->name = clean(p, proc->comm, texts->name);
	k->container_id = clean(p, proc->container_id, texts->id);
	k->container_name = clean(p, proc->container_name, texts->called);
	k->systemd_unit = clean(p, proc->systemd_unit, texts->unit);
}

static int put_process(struct wire_buffer *b, const struct profile *p,
		       const struct profile_resident *points, const struct resident_sum *of)
{
	struct identity texts;
	_cleanup_free_ uint64_t *pairs = calloc(of->n, 2 * sizeof(*pairs));
	Perfwalk__KeptProcess k = PERFWALK__KEPT_PROCESS__INIT;

	if (!pairs)
		return -ENOMEM;
	for (uint32_t i = 0; i < of->n; i++) {
		const struct profile_resident *at = &points[of->first + i];

		pairs[2 * i] = us_since(p, at->time_unix_ns);
		pairs[2 * i + 1] = at->bytes == PROFILE_RESIDENT_UNKNOWN ? 0 : at->bytes / 1024 + 1;
	}
	fill_identity(&k, p, of->process, &texts);
	k.points = pairs;
	k.n_points = 2 * (size_t)of->n;
	wire_put_message(b, 3, &k.base);
	return 0;
}

static void put_kills(struct wire_buffer *b, const struct profile *p)
{
	for (uint32_t i = 0; i < p->kills.n; i++) {
		Perfwalk__KeptKills k = PERFWALK__KEPT_KILLS__INIT;

		k.time_us = us_since(p, p->kills.items[i].time_unix_ns);
		k.n = p->kills.items[i].n;
		wire_put_message(b, 4, &k.base);
	}
}

static void put_victims(struct wire_buffer *b, const struct profile *p)
{
	for (uint32_t i = 0; i < p->victims.n; i++) {
		const struct profile_victim *v = &p->victims.items[i];
		Perfwalk__KeptProcess k = PERFWALK__KEPT_PROCESS__INIT;
		Perfwalk__KeptVictim out = PERFWALK__KEPT_VICTIM__INIT;
		struct identity texts;

		fill_identity(&k, p, v->process, &texts);
		out.process = &k;
		out.time_us = us_since(p, v->time_unix_ns);
		out.certain = v->certain != 0;
		wire_put_message(b, 5, &out.base);
	}
}

static int put_memory(struct wire_buffer *b, const struct profile *p)
{
	Perfwalk__KeptMemory m = PERFWALK__KEPT_MEMORY__INIT;
	struct resident_sums s;
	int r = residents_by_process(p, &s);

	m.start_unix_nano = p->start_unix_ns;
	m.duration_nano = p->end_unix_ns - p->start_unix_ns;
	wire_put_fields(b, &m.base);
	for (uint32_t i = 0; r == 0 && i < s.n; i++)
		r = put_process(b, p, s.points, &s.items[i]);
	residents_free_sums(&s);
	put_kills(b, p);
	put_victims(b, p);
	return r == 0 && wire_buffer_ok(b) ? 0 : -ENOMEM;
}

int render_kept_memory(const struct profile *p, uint8_t **ret, size_t *ret_n)
{
	struct wire_buffer body = {.n = 0}, out = {.n = 0};
	int r = 0;

	*ret = NULL;
	*ret_n = 0;
	if (p->residents.n + p->kills.n == 0)
		return 0;
	r = put_memory(&body, p);
	if (r == 0)
		wire_put_bytes(&out, MEMORY_FIELD, body.bytes, body.n);
	wire_buffer_deinit(&body);
	if (r < 0 || !wire_buffer_ok(&out)) {
		wire_buffer_deinit(&out);
		return -ENOMEM;
	}
	*ret = out.bytes;
	*ret_n = out.n;
	return 0;
}
