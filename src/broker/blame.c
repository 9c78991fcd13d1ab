/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include "src/broker/blame.h"
#include "src/broker/child.h"
#include "src/process/status-page.h"
#include "util/log.h"
#include "util/text.h"

#define MAX_PATIENCE 3 /* eight times the time */

/*
 * The time was up, and there is no file to set aside that would make it shorter the next time: a
 * starved or very slow machine. Without more time the next one would end in the same way.
 */
#define PROCESS_TIMEOUT_NS (500 * NSEC_PER_MSEC)

static void grow_patience(const struct blame *b, struct child *c)
{
	char had[32];

	if (!c->took_too_long || c->patience == MAX_PATIENCE)
		return;
	log_warning("the %s took more than %s while reading no file; it gets twice the time from "
		    "now on",
		    c->name,
		    text_format_duration(had, sizeof(had), b->file_timeout_ns << c->patience));
	c->patience++;
}

void blame_death(struct blame *b, struct child *c, int wait_status)
{
	struct quarantine_death death = {
		.who = c->id.kind,
		.name = c->name,
		.finds = c->row->finds ? c->row->finds : "names",
		/* Read once: a process that the child left behind may still write there. */
		.file = c->status->file,
		.took_too_long = c->took_too_long,
		.waited = c->effort.waited_ns > c->effort.worked_ns,
	};

	if (!c->status->reading) {
		if (!c->status->process) /* or it is to blame */
			grow_patience(b, c);
		return;
	}
	death.file.path[sizeof(death.file.path) - 1] = '\0';
	death.fault = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) != SIGKILL &&
		      WTERMSIG(wait_status) != SIGTERM;
	if (quarantine_add(&b->quarantine, &death) == STRIKE_BEFORE)
		grow_patience(b, c);
}

/* Reading a file may take long; a process's memory answers at once, or perhaps never. */
static uint64_t time_for(const struct blame *b, const struct child *c)
{
	return c->status->process ? PROCESS_TIMEOUT_NS : b->file_timeout_ns << c->patience;
}

void blame_watch(const struct blame *b, struct child *c, uint64_t now)
{
	if (c->took_too_long ||
	    effort_measure(&c->effort, c->pid, c->status, now) <= time_for(b, c))
		return;
	c->took_too_long = true;
	(void)kill(c->pid, SIGKILL);
}
