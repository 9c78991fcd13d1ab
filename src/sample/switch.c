/* SPDX-License-Identifier: Apache-2.0 */
/* sched:sched_switch: for each context switch the thread that stops running and the next one.
 * sched:sched_waking: the thread that is woken; the one that runs wakes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"
#include "src/sample/switch.h"
#include "src/sample/tracepoint.h"

#define NAME	"sched:sched_switch"
#define WAKEUPS "sched:sched_waking"

static int cannot_be(const char *name, const char *what, char *error, size_t n_error)
{
	(void)snprintf(error, n_error, "the format of %s in /sys/kernel/tracing cannot be %s", name,
		       what);
	return -ENOENT;
}

int sample_find_switches(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			 char *error, size_t n_error)
{
	char format[TRACEPOINT_MAX_FORMAT_BYTES];
	struct sample_switch_fields f;
	int r = sample_event_parse(NAME, ret, error, n_error);

	if (r < 0)
		return r;
	r = tracepoint_read(NAME, "format", format, sizeof(format));
	if (r < 0 || !tracepoint_find_field(format, "prev_pid", &f.prev_pid) ||
	    !tracepoint_find_field(format, "prev_state", &f.prev_state) ||
	    !tracepoint_find_field(format, "next_pid", &f.next_pid))
		return cannot_be(NAME, r < 0 ? "read" : "understood", error, n_error);
	f.woken = (struct tracepoint_field){0};
	f.plain = false;
	*ret_fields = f;
	return 0;
}

int sample_find_plain_switches(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			       char *error, size_t n_error)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	/* Until then a thread that is preempted looks like one that blocks. */
	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2 || major < 4 ||
	    (major == 4 && minor < 17)) {
		(void)snprintf(error, n_error,
			       "without tracepoints it needs Linux 4.17: mount -t tracefs none "
			       "/sys/kernel/tracing, and run as root");
		return -ENOENT;
	}
	*ret_fields = (struct sample_switch_fields){.plain = true};
	return sample_event_parse("context-switches", ret, error, n_error);
}

int sample_find_wakeups(struct sample_event *ret, struct sample_switch_fields *ret_fields,
			char *error, size_t n_error)
{
	char format[TRACEPOINT_MAX_FORMAT_BYTES];
	struct sample_switch_fields f = {.woken = {0}};
	int r = sample_event_parse(WAKEUPS, ret, error, n_error);

	if (r < 0)
		return r;
	r = tracepoint_read(WAKEUPS, "format", format, sizeof(format));
	if (r < 0 || !tracepoint_find_field(format, "pid", &f.woken))
		return cannot_be(WAKEUPS, r < 0 ? "read" : "understood", error, n_error);
	*ret_fields = f;
	return 0;
}

/* Each costs some 35 ns of a switch. */
uint64_t sample_switch_regs(bool arguments)
{
	return arguments || !arch_has_arguments ? sample_place_regs
						: sample_place_regs & (sample_place_regs - 1);
}

_Static_assert(ARCH_SPOT_ARGUMENT == 0, "it is the first");

/* They are among others. */
__attribute__((noinline)) static void pick_place(uint64_t mask, const uint64_t *regs,
						 uint64_t *spot)
{
	spot[SAMPLE_SPOT_REGS - 1] = 0;
	for (uint64_t left = sample_place_regs; left; left &= left - 1) {
		uint32_t reg = (uint32_t)__builtin_ctzll(left);

		*spot++ = mask >> reg & 1 ? arch_register(mask, regs, reg) : 0;
	}
}

/* A switch of the host has all registers of a place and no others, or all but the first. */
static void read_place(uint64_t mask, const uint64_t *regs, struct sample_switch *ret)
{
	uint64_t *spot = ret->spot.regs;

	if (mask == (sample_place_regs & (sample_place_regs - 1)))
		ret->spot = (struct sample_spot){
			{0, regs[0], regs[1], regs[2], ARCH_N_SPOT > 4 ? regs[3] : 0}};
	else if (mask == sample_place_regs)
		ret->spot = (struct sample_spot){
			{regs[0], regs[1], regs[2], regs[3], ARCH_N_SPOT > 4 ? regs[4] : 0}};
	else
		pick_place(mask, regs, spot);
	ret->sp = spot[ARCH_SPOT_SP];
	ret->ip = spot[ARCH_SPOT_IP];
	ret->argument = arch_has_arguments ? spot[ARCH_SPOT_ARGUMENT] : 0;
}

/* regs: NULL: it is a kernel thread. */
static void read_program(uint64_t mask, const uint64_t *regs, struct sample_switch *ret)
{
	ret->has_program = regs != NULL;
	if (regs) {
		read_place(mask, regs, ret);
		return;
	}
	ret->sp = ret->ip = ret->argument = 0;
	ret->spot = (struct sample_spot){{0}};
}

static bool fits(const struct sample_switch_fields *f, size_t n)
{
	return tracepoint_fits(&f->prev_pid, n) && tracepoint_fits(&f->prev_state, n) &&
	       tracepoint_fits(&f->next_pid, n);
}

/* They fit. */
static inline void read_payload(const struct sample_switch_fields *f, const uint8_t *raw,
				struct sample_switch *ret)
{
	ret->prev_state = tracepoint_value(&f->prev_state, raw);
	ret->prev_id = (uint32_t)tracepoint_value(&f->prev_pid, raw);
	ret->next_id = (uint32_t)tracepoint_value(&f->next_pid, raw);
}

bool sample_read_switch(const struct sample_options *o, const struct record *r,
			struct sample_switch *ret)
{
	const struct sample_switch_fields *f = &o->switch_fields;

	if (r->type != RECORD_SAMPLE)
		return false;
	if (!f->plain && (!r->sample.raw || !fits(f, r->sample.n_raw)))
		return false;
	if (f->plain)
		*ret = (struct sample_switch){.prev_state = 1, .prev_id = r->tid};
	else
		read_payload(f, r->sample.raw, ret);
	read_program(o->regs_mask, r->sample.user_regs, ret);
	return true;
}

/* ---- Each switch of the host ---- */

/* A switch has these fields and no others. There may be hundreds of thousands of them a second, so
 * they are read at once, to the same end as those of any sample. */
#define FIELDS (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER)

struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t n_raw;
	uint8_t raw[]; /* and registers, if there is a user side: what they are of, and values */
};

static uint32_t end_of(const struct tracepoint_field *f)
{
	return f->offset + f->size;
}

static uint32_t least_payload(const struct sample_switch_fields *f)
{
	uint32_t n = end_of(&f->prev_pid);

	n = end_of(&f->prev_state) > n ? end_of(&f->prev_state) : n;
	n = end_of(&f->next_pid) > n ? end_of(&f->next_pid) : n;
	return fits(f, n) ? n : UINT32_MAX;
}

void switch_layout(const struct sample_options *o, uint64_t sample_type, struct switch_layout *ret)
{
	*ret = (struct switch_layout){
		.is_used = o->use == SAMPLE_USE_SWITCHES && sample_type == FIELDS,
		.fields = o->switch_fields,
		.n_payload = least_payload(&o->switch_fields),
		.regs_mask = o->regs_mask,
		.n_regs = (uint32_t)__builtin_popcountll(o->regs_mask),
	};
}

/* The registers of a record of n bytes: what they are of, and, if there is a user side, values.
 * NULL: the record contradicts itself. */
static inline const uint64_t *find_regs(const struct switch_layout *l,
					const struct switch_record *s, size_t n)
{
	size_t at = offsetof(struct switch_record, raw);
	const uint64_t *regs;

	if (n < at || s->n_raw > n - at || s->n_raw < l->n_payload)
		return NULL;
	at += s->n_raw;
	if (at % sizeof(*regs) || n - at < sizeof(*regs))
		return NULL;
	regs = (const uint64_t *)((const uint8_t *)s + at);
	if (*regs != PERF_SAMPLE_REGS_ABI_NONE && (n - at) / sizeof(*regs) - 1 < l->n_regs)
		return NULL;
	return regs;
}

void switch_decode(const struct switch_layout *l, const void *bytes, size_t n, struct record *ret)
{
	const struct switch_record *s = bytes;
	const uint64_t *regs = find_regs(l, s, n);

	if (!regs) {
		*ret = (struct record){.type = RECORD_BAD};
		return;
	}
	ret->type = RECORD_SWITCH;
	ret->index = ret->cpu = 0;
	ret->time_ns = s->time_ns;
	ret->pid = s->pid;
	ret->tid = s->tid;
	ret->from_sideband = ret->preempted = false;
	read_payload(&l->fields, s->raw, &ret->sw);
	read_program(l->regs_mask, *regs != PERF_SAMPLE_REGS_ABI_NONE ? regs + 1 : NULL, &ret->sw);
}

/* ---- Other samples ---- */

bool sample_read_wakeup(const struct sample_options *o, const struct record *r, uint32_t *ret_id)
{
	int64_t id;

	if (r->type != RECORD_SAMPLE || !r->sample.raw ||
	    !tracepoint_get(&o->switch_fields.woken, r->sample.raw, r->sample.n_raw, &id))
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

uint64_t sample_spot_to_regs(const struct sample_spot *spot, uint64_t *regs)
{
	uint32_t n = 0, k = 0;

	for (uint32_t reg = 0; reg < 64; reg++) {
		if (!(sample_user_regs >> reg & 1))
			continue;
		regs[n++] = sample_place_regs >> reg & 1 ? spot->regs[k++] : 0;
	}
	return sample_place_regs;
}

uint64_t sample_place_to_regs(uint64_t sp, uint64_t ip, uint64_t *regs)
{
	uint32_t n = 0;

	for (uint32_t reg = 0; reg < 64; reg++) {
		if (sample_user_regs >> reg & 1)
			regs[n++] = reg == arch_sp ? sp : reg == arch_ip ? ip : 0;
	}
	return UINT64_C(1) << arch_sp | UINT64_C(1) << arch_ip;
}

bool sample_second_argument(const struct sample_options *o, const struct record *r, uint64_t *ret)
{
	uint64_t bit = arch_second_argument < 64 ? UINT64_C(1) << arch_second_argument : 0;

	if (!r->sample.user_regs || !(o->regs_mask & r->sample.user_regs_valid & bit))
		return false;
	*ret = arch_register(o->regs_mask, r->sample.user_regs, arch_second_argument);
	return true;
}

bool sample_has_arguments(void)
{
	return arch_has_arguments;
}

bool sample_arguments(const struct sample_options *o, const struct record *r, bool go,
		      uint64_t ret[SAMPLE_N_ARGUMENTS])
{
	for (uint32_t i = 0; i < SAMPLE_N_ARGUMENTS; i++) {
		uint32_t reg = go ? arch_go_arguments[i] : arch_arguments[i];

		if (!r->sample.user_regs || reg >= 64 || !(o->regs_mask >> reg & 1))
			return false;
		ret[i] = arch_register(o->regs_mask, r->sample.user_regs, reg);
	}
	return true;
}
