/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside of the symbolizer: its state, and the functions of the files beside main.c. */
#include "src/process/ask.h"
#include "src/process/receipts.h"
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

/* A window whose payloads the exporter does not have all, and the counts that come with it. */
struct unsettled {
	uint64_t id;
	struct sample_place end;
	struct counted counted;
	uint64_t lost;
};

struct symbolizer {
	struct role role;
	struct setup_symbolizer setup;
	struct ask ask;
	struct namer *namer;
	struct payloads *payloads;
	struct receipts *receipts; /* to the profiler */
	struct arrivals arrivals;
	struct sample_place last; /* where the last profiler ended */
	uint32_t switches;	  /* as in the last window */
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
	uint64_t lost;			   /* of MESSAGE_LOST, counted */
	uint64_t exported_at; /* arrivals_n_samples() at the last window with payloads */
	struct viewer viewer;
	struct top_table table; /* live */
	int summary_fd, kallsyms_fd, notes_fd, profiler_sock, screen_sock, leave_timer,
		settle_timer;
	uint64_t uid_base;
	bool stopping;
	uint32_t n_kept;	 /* windows since the rows of earlier ones were forgotten */
	uint64_t kept_bytes;	 /* their rows, KEPT_WINDOWS after that */
	uint64_t heap_ns;	 /* when unused pages were given back */
	uint64_t sent_ns;	 /* when all payloads were sent, at the end; 0: not yet */
	uint64_t await_until_ns; /* 0: not yet */
	uint32_t n_awaited;	 /* then, debug files */
};

/* ---- windows.c ---- */

/*
 * Names the window in fd, which m describes, and exports or shows it; a capture keeps it for the
 * end. Counts with it what is missing before it (gaps).
 */
void symbolizer_take_window(struct symbolizer *s, int fd, const struct message *m,
			    const struct arrivals_gap *gaps);
/* The window of that id is done: tells the profiler once its payloads were sent, or at once if
 * there is no memory to wait. */
void symbolizer_settle(struct symbolizer *s, uint64_t id);
/* Tells the profiler of windows whose payloads were sent to the exporter. The profiler keeps the
 * others, which would die with this process. */
void symbolizer_settle_sent(struct symbolizer *s);
/* At the end of a capture: names frames by what JIT compilers have written since, which is in large
 * pieces, the last one when they end. */
void symbolizer_name_rest(struct symbolizer *s);
/* n_samples were lost since the start of the broker: the next window counts the new ones. */
void symbolizer_count_lost(struct symbolizer *s, uint64_t n_samples);
/* Folds threads that waited for work, once the samples of their time are complete (idle.h). */
void symbolizer_fold_idle(struct symbolizer *s);
/* Forgets names and rows of earlier windows, but no counter. */
void symbolizer_forget(struct symbolizer *s);

/* ---- results.c ---- */

/* perfwalk debug: prints the file as it is; there is no profile. The exit code, or -errno. */
int symbolizer_show_debug(struct symbolizer *s);
/* Reads recorded files into the profile, once everything else is known. */
int symbolizer_view_files(struct symbolizer *s);
/* Writes all outputs and what the command prints, and says in *ret which files are whole. 0 or
 * the first error; each one was logged. */
int symbolizer_render_all(struct symbolizer *s, struct message *ret);
