/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/sample: attributes, plain opening, and the meaning of errors. */
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
/* The record layout of either event. */
void event_layout(const struct sample_options *options, const struct sample_features *features,
		  bool sideband, struct record_layout *ret);
/* Descriptor, close-on-exec, or -errno. cloexec: the kernel knows PERF_FLAG_FD_CLOEXEC. */
int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, bool cloexec);
/* Reads a decimal number from a small file; fallback: there is none. */
long event_read_number(const char *path, long fallback);

/* These write a text for the user: cause, current value, remedy. */
/* error: the -errno of opening. */
void event_explain(int error, pid_t pid, int cpu, const struct sample_options *options, char *buf,
		   size_t size);

/* error: the result of tracepoint_read() of "id" (above 0: a text without a number). */
void event_explain_tracepoint(int error, const char *name, char *buf, size_t size);
/* error: the -errno of PERF_EVENT_IOC_SET_FILTER for the tracepoint e. */
void event_explain_filter(int error, const struct sample_event *e, const char *filter, char *buf,
			  size_t size);

/*
 * Records this task for a moment: proves that the event fires, and finds which user registers are
 * right in a sample inside the kernel. Returns the number of samples, or -errno. ret_regs is
 * untouched if no sample was inside the kernel.
 */
int event_self_check(const struct sample_options *options, const struct sample_features *features,
		     uint64_t *ret_regs);
