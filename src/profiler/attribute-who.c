/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a sample belongs to, and whether it is wanted. */
#include <linux/perf_event.h>

#include "src/process/filter.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "src/profiler/walk.h"
#include "util/clock.h"

/* How often the user of a process is read again. */
#define USER_NS (2 * NSEC_PER_SEC)

static uint32_t add_process(struct attribution *a, const char *comm, const struct host_process *p,
			    const struct host_cgroup *cgroup, const struct process_said *said)
{
	struct profile_process proc = {.comm = attribution_put_clean(a, comm)};
	const char *name;

	if (p) {
		proc.pid = p->pid;
		proc.start_time_unix_ns = p->start_unix_ns;
		proc.is_program = p->n_execs > 0;
		proc.executable_path =
			attribution_put_clean(a, p->executable_path ? p->executable_path : "");
	}
	/* Its parts are clean. */
	if (said && said->text)
		proc.attributes = strtab_put_n(&a->profile.strings, said->text, said->n_text);
	if (cgroup) {
		proc.cgroup = attribution_put_clean(a, cgroup->path);
		proc.container_id = attribution_put_clean(a, cgroup->container_id);
		proc.container_runtime =
			attribution_put_clean(a, cgroup->runtime ? cgroup->runtime : "");
		name = host_container_name(a->host, cgroup);
		proc.container_name = attribution_put_clean(a, name ? name : "");
		proc.pod_uid = attribution_put_clean(a, cgroup->pod_uid);
		proc.systemd_unit = attribution_put_clean(a, cgroup->unit);
	}
	return profile_add_process(&a->profile, &proc);
}

/* At what it says of itself, if it is time. */
static void look_at(struct attribution *a, struct process_state *s, const struct host_process *p,
		    const struct host_cgroup *cgroup)
{
	process_said_look(&s->said, &a->sayings, p, cgroup && cgroup->pod_uid[0], a->time_ns);
}

/* Unless its names are others now. */
static bool is_row_of(const struct process_state *s, uint64_t window,
		      const struct host_cgroup *cgroup)
{
	return s->window == window && s->row != PROFILE_NONE && s->cgroup == cgroup &&
	       s->said_version == s->said.version;
}

static uint32_t process_row(struct attribution *a, struct host_process *p, uint32_t tid,
			    uint64_t cgroup_id)
{
	const struct host_cgroup *cgroup = host_cgroup_get(a->host, p, tid, cgroup_id);
	struct process_state *s = attribution_process_state(p);
	strid comm, path;

	if (!s)
		return PROFILE_NONE;
	look_at(a, s, p, cgroup);
	if (is_row_of(s, a->window, cgroup) && s->n_names == p->n_names)
		return s->row;
	if (s->window != a->window)
		s->jit_row = PROFILE_NONE;
	/* An exec in the window is another row; the same names again are the same one. */
	s->n_names = p->n_names;
	comm = attribution_put_clean(a, p->comm);
	path = attribution_put_clean(a, p->executable_path ? p->executable_path : "");
	if (is_row_of(s, a->window, cgroup) && s->comm == comm && s->path == path)
		return s->row;
	s->row = add_process(a, p->comm, p, cgroup, &s->said);
	s->said_version = s->said.version;
	s->jit_row = PROFILE_NONE;
	s->window = a->window;
	s->comm = comm;
	s->path = path;
	s->cgroup = cgroup;
	return s->row;
}

uint32_t attribution_process_row(struct attribution *a, struct host_process *p)
{
	const struct process_state *s = p->user;

	return s && s->window == a->window && s->row != PROFILE_NONE
		       ? s->row
		       : process_row(a, p, p->pid, p->cgroup ? p->cgroup->id : 0);
}

/* Asked again now and then: a service may start as root and become somebody else. */
static void find_user(struct attribution *a, struct host_process *p, struct process_state *s)
{
	const struct host_process *parent;
	const struct process_state *other;

	if (s->uid_time_ns && a->time_ns - s->uid_time_ns < USER_NS)
		return;
	s->uid_time_ns = a->time_ns;
	if (outside_user(&a->outside, p->pid, &s->uid) == 0) {
		s->has_uid = true;
		return;
	}
	if (s->has_uid)
		return;
	/* It has gone already: most likely it was of its parent's user. */
	parent = host_process_peek(a->host, p->parent_pid);
	other = parent ? parent->user : NULL;
	if (other && other->has_uid)
		s->uid = other->uid;
	s->has_uid = (other && other->has_uid) ||
		     (p->parent_pid && outside_user(&a->outside, p->parent_pid, &s->uid) == 0);
}

static const char *name_without_process(const struct record *r)
{
	return r->pid != 0 ? "[exited]" : attribution_is_out_of_sight(r) ? "[outside]" : "swapper";
}

bool attribution_wants(struct attribution *a, const struct record *r, struct host_process *p)
{
	struct filter_subject subject = {.comm = r->pid == 0 ? name_without_process(r) : "",
					 .thread = ""};
	const struct host_cgroup *cgroup = NULL;
	struct process_state *s;

	if (filter_is_empty(a->filter))
		return true;
	if (p) {
		subject.comm = p->comm;
		subject.thread = host_thread_name(a->host, p, r->tid);
		s = a->filter->asks_user ? attribution_process_state(p) : NULL;
		if (s) {
			find_user(a, p, s);
			subject.has_uid = s->has_uid;
			subject.uid = s->uid;
		}
		if (a->filter->asks_cgroup)
			cgroup = host_cgroup_get(a->host, p, r->tid, r->sample.cgroup_id);
		s = a->filter->asks_service ? attribution_process_state(p) : NULL;
		if (s) {
			look_at(a, s, p, cgroup);
			subject.service = process_said_service(&s->said, p);
		}
		if (cgroup) {
			subject.cgroup = cgroup->path;
			subject.container_id = cgroup->container_id;
		}
		if (cgroup && a->filter->asks_container)
			subject.container = host_container_name(a->host, cgroup);
	}
	return filter_passes(a->filter, &subject);
}

/* Most threads have the name of their process, whose row is the window's by now. */
static strid thread_name(struct attribution *a, const struct record *r, struct host_process *p)
{
	const struct process_state *s = p ? p->user : NULL;
	const char *name = p ? host_thread_name(a->host, p, r->tid) : "";

	return s && name == p->comm ? s->comm : attribution_put_clean(a, name);
}

uint32_t attribution_thread_row(struct attribution *a, const struct record *r,
				struct host_process *p)
{
	uint32_t process = p ? process_row(a, p, r->tid, r->sample.cgroup_id)
			     : add_process(a, name_without_process(r), NULL, NULL, NULL);

	const struct profile_thread thread = {
		.process = process,
		.tid = p ? r->tid : 0,
		.name = thread_name(a, r, p),
		.labels = a->labels,
	};

	return process == PROFILE_NONE ? PROFILE_NONE
				       : profile_add_labelled_thread(&a->profile, &thread);
}
