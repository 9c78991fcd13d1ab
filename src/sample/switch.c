/* SPDX-License-Identifier: Apache-2.0 */
/* sched:sched_switch: for each context switch the thread that stops running and the next one.
 * sched:sched_waking: the thread that is woken; the one that runs wakes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"
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

static bool get(const struct record *r, const struct tracepoint_field *f, int64_t *ret)
{
	return tracepoint_get(f, r->sample.raw, r->sample.n_raw, ret);
}

/* Each costs some 35 ns of a switch. */
uint64_t sample_switch_regs(bool arguments)
{
	return arguments || !arch_has_arguments ? sample_place_regs
						: sample_place_regs & (sample_place_regs - 1);
}

_Static_assert(ARCH_SPOT_ARGUMENT == 0, "it is the first");

/* Of each switch of the host: its event has some of these registers alone, in their order. */
static inline void copy_place(uint64_t mask, const uint64_t *regs, uint64_t *spot)
{
	for (uint64_t left = sample_place_regs; left; left &= left - 1)
		*spot++ = mask & left & -left ? *regs++ : 0;
}

/* They are among others. */
__attribute__((noinline)) static void pick_place(uint64_t mask, const uint64_t *regs,
						 uint64_t *spot)
{
	for (uint64_t left = sample_place_regs; left; left &= left - 1) {
		uint32_t reg = (uint32_t)__builtin_ctzll(left);

		*spot++ = mask >> reg & 1 ? arch_register(mask, regs, reg) : 0;
	}
}

static void read_place(uint64_t mask, const uint64_t *regs, struct sample_switch *ret)
{
	const uint64_t *spot = ret->spot.regs;

	ret->spot.regs[SAMPLE_SPOT_REGS - 1] = 0;
	if (mask & ~sample_place_regs)
		pick_place(mask, regs, ret->spot.regs);
	else
		copy_place(mask, regs, ret->spot.regs);
	ret->sp = spot[ARCH_SPOT_SP];
	ret->ip = spot[ARCH_SPOT_IP];
	ret->argument = arch_has_arguments ? spot[ARCH_SPOT_ARGUMENT] : 0;
}

bool sample_read_switch(const struct sample_options *o, const struct record *r,
			struct sample_switch *ret)
{
	const struct sample_switch_fields *f = &o->switch_fields;
	const uint64_t *regs = r->sample.user_regs;
	int64_t prev = r->tid, next = 0;

	ret->prev_state = 1;
	if (r->type != RECORD_SAMPLE ||
	    (!f->plain &&
	     (!r->sample.raw || !get(r, &f->prev_pid, &prev) ||
	      !get(r, &f->prev_state, &ret->prev_state) || !get(r, &f->next_pid, &next))))
		return false;
	ret->prev_id = (uint32_t)prev;
	ret->next_id = (uint32_t)next;
	ret->has_program = regs != NULL;
	if (regs) {
		read_place(o->regs_mask, regs, ret);
		return true;
	}
	ret->sp = ret->ip = ret->argument = 0;
	ret->spot = (struct sample_spot){{0}};
	return true;
}

bool sample_read_wakeup(const struct sample_options *o, const struct record *r, uint32_t *ret_id)
{
	int64_t id;

	if (r->type != RECORD_SAMPLE || !r->sample.raw || !get(r, &o->switch_fields.woken, &id))
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
