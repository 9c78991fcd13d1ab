/* SPDX-License-Identifier: Apache-2.0 */
/* What perfwalk record says of what it is about to do. */
#include <stdio.h>

#include "src/cmd/record.h"
#include "src/cmd/running.h"
#include "util/log.h"
#include "util/text.h"

/* The filters as they were asked for: "--unit nginx --comm worker"; and where names of the first
 * kind of them are listed. */
static const char *describe_filters(const struct record_options *o, char *buf, size_t size)
{
	static const struct {
		enum config_filter kind;
		const char *option, *list;
	} filters[] = {
		{CONFIG_FILTER_UNIT, "--unit", "perfwalk list units"},
		{CONFIG_FILTER_CONTAINER, "--container", "perfwalk list containers"},
		{CONFIG_FILTER_COMM, "--comm", "perfwalk list processes"},
		{CONFIG_FILTER_USER, "-u", "ps -eo user,pid,comm"},
		{CONFIG_FILTER_CGROUP, "--cgroup", "systemd-cgls"},
	};
	const char *list = NULL;
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(filters) && n < size; i++) {
		const char *value = o->config->include[filters[i].kind];

		if (!value)
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s %s", n ? " " : "", filters[i].option,
				      value);
		list = list ? list : filters[i].list;
	}
	return list;
}

void record_say_if_nothing_matches(const struct record_options *o)
{
	char filters[512];
	const char *list = describe_filters(o, filters, sizeof(filters));

	if (list && o->n_pids == 0 && running_any(o->config) == 0)
		log_warning("no running process matches %s: the capture waits for one; %s shows "
			    "what is there",
			    filters, list);
}

void record_say_started(const struct record_options *o, bool command, unsigned int n_cpus)
{
	const char *whole = command	 ? "the command"
			    : o->threads ? "the given threads"
			    : o->n_pids	 ? "the given processes"
					 : "the whole host";
	char filters[512], event[160] = "", rate[32];
	bool filtered = describe_filters(o, filters, sizeof(filters));

	(void)snprintf(rate, sizeof(rate), " at %u Hz", (unsigned int)o->rate_hz);
	if (o->period == 1)
		(void)snprintf(event, sizeof(event), ": %s, each of them,", o->event.name);
	else if (o->period)
		(void)snprintf(event, sizeof(event),
			       sample_event_is_time(&o->event) ? ": %s every %llu ns"
							       : ": %s, one in %llu,",
			       o->event.name, (unsigned long long)o->period);
	else if (o->event.name[0])
		(void)snprintf(event, sizeof(event), ": %s", o->event.name);
	log_info("recording %s%s%s%s%s%s on %u CPUs", filtered && !o->n_pids ? "" : whole,
		 filtered && o->n_pids ? ", only what matches "
		 : filtered	       ? "what matches "
				       : "",
		 filters, filtered && o->n_pids ? "," : "", event, o->period ? "" : rate, n_cpus);
}
