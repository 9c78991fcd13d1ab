/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the symbolizer: its state, and what main.c asks of the files beside it. */
#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/profile/profile.h"
#include "src/render/render.h"
#include "src/screen/wire.h"
#include "src/symbolizer/arrivals.h"
#include "src/symbolizer/counted.h"
#include "src/symbolizer/namer.h"
#include "src/symbolizer/payloads.h"
#include "src/symbolizer/setup.h"
#include "src/symbolizer/viewer.h"
#include "util/array.h"

struct format;

/* A window whose payloads are not all with the exporter, and what is counted with it. */
struct unsettled {
	uint64_t id;
	struct sample_place end;
	struct counted counted;
};

struct symbolizer {
	struct role role;
	struct setup_symbolizer setup;
	struct ask ask;
	struct namer *namer;
	struct payloads *payloads;
	struct arrivals arrivals;
	struct sample_place last; /* how far the profilers had come, once they have left */
	struct profile profile;
	struct render_info info;
	ARRAY(const char *) resource;
	struct output {
		char *path;
		const struct format *format;
		int fd;
	} outputs[PROTOCOL_MAX_OUTPUTS];
	const struct format *output_format; /* of the next one */
	uint32_t n_outputs;
	ARRAY(struct unsettled) unsettled; /* in their order */
	struct counted counted;		   /* of what is not settled */
	struct viewer viewer;
	struct top_table table; /* live */
	int summary_fd, kallsyms_fd, notes_fd, profiler_sock, screen_sock, leave_timer,
		settle_timer;
	uint64_t uid_base;
	bool stopping;
	uint64_t await_until_ns; /* 0: not yet */
	uint32_t n_awaited;	 /* then, debug files */
};

/* ---- windows.c ---- */

/*
 * A window in fd, of which m speaks, is named and goes where results go; what is missing before it
 * (gaps) is counted with it. A capture keeps it for its end.
 */
void symbolizer_take_window(struct symbolizer *s, int fd, const struct message *m,
			    const struct arrivals_gap *gaps);
/* The window of that id is dealt with: the profiler is told once its payloads have left. Without
 * memory for it, it is settled as if they had. */
void symbolizer_settle(struct symbolizer *s, uint64_t id);
/* What has not left for the exporter dies with us: the profiler keeps it until then. */
void symbolizer_settle_sent(struct symbolizer *s);
/* Compilers write down what they made in large pieces, the last one at their end: names that only
 * came since are given to the frames of a capture. */
void symbolizer_name_rest(struct symbolizer *s);
/* Names and rows of earlier windows, but no counter. */
void symbolizer_forget(struct symbolizer *s);

/* ---- results.c ---- */

/* perfwalk debug: the file is shown as it is, there is no profile. The exit code, or -errno. */
int symbolizer_show_debug(struct symbolizer *s);
/* Recorded files are read when everything else is known, and take the place of this host. */
int symbolizer_view_files(struct symbolizer *s);
/* All outputs and what the command prints; which files were written into *ret. 0 or the first
 * error, each of which was logged. */
int symbolizer_render_all(struct symbolizer *s, struct message *ret);
