/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What processes say of themselves, as resource attributes: the process context that an
 * OpenTelemetry SDK publishes (OTEP 4719), then OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and, in
 * a pod, what its manifest put into the environment. The first one to have a key wins.
 *
 * A process is looked at when it has lived for a moment, and again: soon and then less and less
 * often while it says nothing, but soon if it maps more code, and at each interval as long as all
 * samples together are so many that these looks cost little beside them; at each interval in any
 * case once it has published a context. While its size is exactly the same it has published
 * nothing, which is believed for a minute.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/host/host.h"
#include "src/profiler/process-size.h"

struct outside;

/* Of all processes. */
struct sayings {
	struct outside *outside;  /* borrowed; NULL: they are not asked, since they are gone */
	const char *allow, *deny; /* globs of keys, borrowed; NULL: all, and none */
	uint64_t interval_ns;	  /* between looks at a context */
	size_t n_bytes;		  /* held of all; bounded */
	uint64_t n_refused;	  /* attributes that did not fit */
	uint64_t n_samples;	  /* of all processes, that have paid for no look yet; bounded */
	uint32_t n_sizes;	  /* of processes whose sizes are known; bounded */
};

/* Of one process; {0} at first. */
struct process_said {
	char *text; /* in the form of src/profile/labels.h; NULL: nothing */
	size_t n_text;
	char *service;	  /* the service.name among it; NULL: none */
	uint32_t version; /* grows with each other text */
	uint32_t n_execs; /* of the process, when it was looked at */
	bool looked;
	/* Its threads publish contexts in a variable; that leads to those of Node.js. */
	bool threads, node;
	char **keys; /* of the attributes in these, by their numbers */
	uint32_t n_keys;
	uint64_t published_ns; /* of the context; 0: there was none */
	uint64_t next_ns, delay_ns;
	uint32_t n_mappings, n_hurried; /* of the process at the last sample; looks for new ones */
	uint64_t looked_ns, asked_ns;	/* the last look, and the last that was a question */
	struct process_size size;	/* when it was asked */
};
/* Looks again if it is time. now_ns: of any steady clock. in_pod: of Kubernetes. */
void process_said_look(struct process_said *s, struct sayings *of, const struct host_process *p,
		       bool in_pod, uint64_t now_ns);
void process_said_deinit(struct process_said *s, struct sayings *of);

/* The name of its service: what it says, else its executable's, else its own; never NULL. */
const char *process_said_service(const struct process_said *s, const struct host_process *p);
