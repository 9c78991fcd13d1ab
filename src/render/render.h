/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Renderings of a profile, one for each output format. They read the profile and write bytes to a
 * stream or sink; they know nothing about files or networks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct profile;

/* Facts about the host and the capture for outputs; all strings are borrowed, NULL: unknown. */
struct render_info {
	const char *host_name, *host_id, *host_arch, *kernel_release;
	const char *version; /* perfwalk's */
	const char *title;   /* the command of the capture: "perfwalk record -a -d 10" */
	const char *sum; /* how files were added up: "samples of 10 ms and of 1 ms, by weight" */
	const char *asked; /* the event that a capture was made for; NULL: that of the first type */
	const char *reduced; /* reduced quality of a daemon: "lines,rate/2"; NULL or "": none */
	uint32_t n_cpus;
	const char *const
		*resource_attributes; /* n pairs key, value: from the config, win over ours */
	size_t n_resource_attributes;
	const char *service_name; /* overrides every service.name; NULL: per process */
	/* Globs of the keys of resource attributes that may be written; NULL: all, and none. */
	const char *allowed_attributes, *denied_attributes;
	const struct render_info *before; /* of a comparison's older capture; NULL: unknown */
};

/* All return 0 or -errno (-EIO for a stream error). */

/* Folded stacks: "comm;root;...;leaf N"; kernel frames end with _[k], JIT frames with _[j], inlined
 * functions with _[i]. */
int render_folded(const struct profile *p, const struct render_info *info, FILE *out);
/* The part of a difference that folded stacks lose: the number of stacks with a sum below 0, and
 * the total of these sums. */
int render_folded_below_zero(const struct profile *p, uint64_t *ret_n, int64_t *ret_sum);
/* Self-contained flame graph page, with a choice among the types. */
int render_html(const struct profile *p, const struct render_info *info, FILE *out);
/* Two captures on one page: after gives the widths, and the change of a function's share of all
 * samples the colours. info: of the newer one, with the comparison's title; rate, times and
 * counters come from each profile. */
int render_html_diff(const struct profile *before, const struct profile *after,
		     const struct render_info *info, FILE *out);
/* Gzipped pprof (profile.proto). */
int render_pprof(const struct profile *p, const struct render_info *info, FILE *out);
/* Flame graph as a picture: SVG without a script. */
int render_svg(const struct profile *p, const struct render_info *info, FILE *out);
/* speedscope's file format: the sum of all processes, and each thread in the order of time. */
int render_speedscope(const struct profile *p, const struct render_info *info, FILE *out);
/* The Firefox Profiler's processed profile format, plain and gzipped. */
int render_firefox(const struct profile *p, const struct render_info *info, FILE *out);
int render_firefox_gzip(const struct profile *p, const struct render_info *info, FILE *out);
/* A JSON object for each thread and stack, one a line. */
int render_ndjson(const struct profile *p, const struct render_info *info, FILE *out);
/* Text as `perf script` prints it. */
int render_perf_script(const struct profile *p, const struct render_info *info, FILE *out);
/* The summary at the end of a capture: samples, losses by cause, top functions by process and
 * container. color: ANSI. width: columns of the terminal. */
int render_summary(const struct profile *p, const struct render_info *info, FILE *out, int color,
		   unsigned int width);

/* Keys of a report's rows. */
enum render_report_key {
	REPORT_COMM,
	REPORT_CONTAINER,
	REPORT_UNIT,
	REPORT_SERVICE,
	REPORT_THREAD,
	REPORT_SPAN,
	REPORT_MODULE,
	REPORT_SYMBOL,
	REPORT_LINE,
	REPORT_N_KEYS
};
const char *render_report_key_name(enum render_report_key key); /* "comm", "container" ... */

struct render_report_options {
	uint32_t n_keys;	     /* 0: comm, module (if any is known) and symbol */
	uint8_t keys[REPORT_N_KEYS]; /* enum render_report_key, in the order of the columns */
	uint32_t max_rows;	     /* or trees; 0: all */
	double min_percent;	     /* rows with less are summed up */
	/* Trees instead of the table: for symbol, else for each of the first rows. */
	bool callers, callees;
	bool by_total; /* sorted by total, not by self */
	bool no_total; /* no column for the total */
	bool csv;      /* tab-separated values */
	bool color;
	bool confidence;	  /* with the 95% intervals of the shares */
	uint32_t width;		  /* columns of the terminal; 0: no terminal, cut nothing */
	const char *symbol;	  /* extended regular expression; NULL or "": every function */
	const char *comm;	  /* glob; NULL or "": every process */
	const char *container;	  /* glob for ids, whole or as shown; NULL or "": everything */
	const char *service;	  /* glob; NULL or "": every service */
	const char *trace, *span; /* ids in hexadecimal digits; NULL or "": all */
};
/* A table of functions, modules, processes ... by self and total. -EINVAL: a bad expression. */
int render_report(const struct profile *p, const struct render_info *info,
		  const struct render_report_options *options, FILE *out);
/* Leaves only the samples that comm, container, service, trace and span of the options choose, and
 * what the profile knows of their threads and the memory of their processes. The profile takes no
 * further samples then. 0 or -ENOMEM. */
int render_choose_samples(struct profile *p, const struct render_report_options *options);
/* The head of a list of windows, and the row of the profile that was read from the file at path; no
 * row if it has no samples that the options choose, as above. 0 or -ENOMEM. */
void render_window_head(FILE *out);
int render_window(struct profile *p, const struct render_report_options *options, const char *path,
		  FILE *out);
/* A table of the functions that grew or shrank between two captures. Uses the options max_rows,
 * min_percent, csv, color and width. */
int render_diff(const struct profile *before, const struct profile *after,
		const struct render_report_options *options, FILE *out);
/* Folded stacks with two counts each, before and after, as difffolded.pl writes them. */
int render_diff_folded(const struct profile *before, const struct profile *after,
		       const struct render_info *info, FILE *out);
/* OTLP: all of it as one ProfilesData message. */
int render_otlp_file(const struct profile *p, const struct render_info *info, FILE *out);

/*
 * OTLP: the profile as one or more ExportProfilesServiceRequest payloads (wire-identical to
 * ProfilesData), each at most max_bytes and each complete in itself. sink gets each in turn (bytes
 * are borrowed for the call, n_samples: samples in it) and returns 0 or -errno, which ends the
 * rendering.
 */
typedef int (*render_otlp_sink)(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples);
struct render_otlp_options {
	size_t max_bytes;     /* 0: 4 MiB less 64 KiB */
	uint32_t max_samples; /* Sample entries of one Profile; 0: 16000 */
	/*
	 * For files: facts about the capture without a place in the format become attributes:
	 * "perfwalk.title", "perfwalk.event", "perfwalk.kernel_release" and "perfwalk.cpus" of the
	 * first Profile of each type, "perfwalk.comm" of each Profile. A process that changed its
	 * comm has a ResourceProfiles for each.
	 */
	bool facts;
};
int render_otlp(const struct profile *p, const struct render_info *info,
		const struct render_otlp_options *options, render_otlp_sink sink, void *ctx);

/* OTLP/JSON: all of it as one message, as render_otlp_file(), with a newline at its end. */
int render_otlp_json_file(const struct profile *p, const struct render_info *info, FILE *out);
