/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of src/sample: attributes, plain opening, and what an error means. */
#include <sys/types.h>

#include "src/sample/decode.h"
#include "src/sample/sample.h"

#define EVENT_SIDEBAND_BYTES UINT64_C(262144)
#define EVENT_MAX_CPUS	     8192 /* the most a kernel can be built for */

/* Attributes of the sample event. */
void event_sample_attr(const struct sample_options *options, const struct sample_features *features,
		       pid_t pid, struct perf_event_attr *ret);
/* Attributes of the event that carries the side band. */
void event_sideband_attr(const struct sample_options *options,
			 const struct sample_features *features, pid_t pid,
			 struct perf_event_attr *ret);
/* How the records of either are laid out. */
void event_layout(const struct sample_options *options, const struct sample_features *features,
		  bool sideband, struct record_layout *ret);
/* Descriptor, close-on-exec, or -errno. cloexec: the kernel knows PERF_FLAG_FD_CLOEXEC. */
int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, bool cloexec);
/* A decimal number in a small file; fallback when there is none. */
long event_read_number(const char *path, long fallback);

/* Text for the user: cause, value read, remedy. error is what opening gave (negative errno). */
void event_explain(int error, pid_t pid, int cpu, const struct sample_options *options, char *buf,
		   size_t size);

/* The same of what tracepoint_read() of its "id" gave (above 0: a text without a number). */
void event_explain_tracepoint(int error, const char *name, char *buf, size_t size);
/* The same of PERF_EVENT_IOC_SET_FILTER for a tracepoint, whose name is that of the event. */
void event_explain_filter(int error, const struct sample_event *e, const char *filter, char *buf,
			  size_t size);

/*
 * One short recording of this very task: proves that the event fires, and finds which user
 * registers a sample inside the kernel reports rightly. Number of samples seen, or -errno.
 * ret_regs: untouched when nothing was sampled inside the kernel.
 */
int event_self_check(const struct sample_options *options, const struct sample_features *features,
		     uint64_t *ret_regs);
