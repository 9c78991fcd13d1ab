/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What processes publish of themselves, as resource attributes: the process context of an
 * OpenTelemetry SDK (OTEP 4719), then OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and, in a pod,
 * the variables that its manifest set. The first source that has a key wins.
 *
 * The first look at a process is a moment after its start. While it publishes nothing, the next
 * looks come soon, then less and less often; soon again if it maps more code; and at each interval
 * as long as there are so many samples that the looks cost little beside them. While its size is
 * one of those at which it was looked at it has published nothing, which is believed for a minute;
 * if that was so for an interval and then is not, the look is free. Where sizes change, the list of
 * mappings says whether there is something to ask for. Once it has published a context, there is a
 * look at each interval.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/host/host.h"
#include "src/profiler/process-maps.h"
#include "src/profiler/process-size.h"
#include "util/log.h"

struct outside;
struct refused_attributes;

/* Of all processes. */
struct sayings {
	struct outside *outside;  /* borrowed; NULL: a file is replayed, there are no processes */
	const char *allow, *deny; /* globs of keys, borrowed; NULL: all, and none */
	uint64_t interval_ns;	  /* between looks at a context */
	size_t n_bytes;		  /* of all attributes kept; bounded */
	uint64_t n_refused;	  /* attributes that did not fit, each once for its process */
	int64_t n_samples;	  /* credit of samples for looks, or debt; bounded */
	uint64_t next_free_ns;	  /* of a look that they do not pay for */
	uint32_t n_sizes;	  /* of processes whose sizes are known; bounded */
	struct log_ratelimit schemas;
};

/* Of one process; {0} at first. */
struct process_said {
	char *text; /* in the form of src/profile/labels.h; NULL: nothing */
	size_t n_text;
	char *service;			    /* the service.name among it; NULL: none */
	struct refused_attributes *refused; /* those that were counted; NULL: none */
	uint32_t version;		    /* grows when text changes */
	uint32_t n_execs;		    /* of the process, at the last look */
	bool looked;
	/* Its threads publish contexts in a variable; node: as Node.js does. */
	bool threads, node;
	char **keys;		       /* of the attributes in these contexts, by their numbers */
	uint32_t n_keys, keys_version; /* the latter grows when the list changes */
	uint64_t published_ns;	       /* of the context; 0: there was none */
	uint64_t next_ns, delay_ns;
	uint32_t n_mappings;	      /* of the process, at the last sample */
	uint32_t n_hurried;	      /* looks because of new mappings */
	uint32_t n_unready;	      /* looks in a row while its context was being written */
	uint64_t looked_ns, asked_ns; /* the last look, and the last that was a question */
	struct process_size size;     /* when it was asked */
	struct process_maps maps;     /* of one whose size changes, instead of questions */
};
/* Looks at the process if it is time. now_ns: of any steady clock. in_pod: of Kubernetes. */
void process_said_look(struct process_said *s, struct sayings *of, const struct host_process *p,
		       bool in_pod, uint64_t now_ns);
void process_said_deinit(struct process_said *s, struct sayings *of);

/* The name of its service: the published one, else its executable's name, else its own. Borrowed;
 * never NULL. */
const char *process_said_service(const struct process_said *s, const struct host_process *p);
