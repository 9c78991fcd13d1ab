/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the broker tells each child at its start: the blob of MESSAGE_SETUP, one struct a role. */
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "src/exporter/export.h"
#include "src/process/message.h"
#include "src/process/privileges.h"
#include "src/render/render.h"
#include "src/sample/sample.h"

#define SETUP_MAX_DESTINATIONS 16
/* Sockets, outputs, what is on its way or open for a moment: beside what a child counts. */
#define SETUP_OTHER_DESCRIPTORS 512

struct setup_common {
	struct privileges privileges;
	uint32_t log_level; /* enum log_level */
};

struct setup_profiler {
	struct setup_common common;
	struct sample_options options;
	struct sample_features features;
	uint64_t interval_ns; /* of the windows */
	uint64_t window_memory_bytes, unwind_rows_bytes;
	uint32_t max_processes, max_open_files, max_frames;
	bool capture;	       /* windows are kept until the end */
	bool paused;	       /* no event counts now */
	bool adapt_stack_size; /* the broker takes MESSAGE_STACK_SIZE */
};

struct setup_symbolizer {
	struct setup_common common;
	uint64_t symbols_bytes; /* budget of cached symbol tables and lines */
	uint64_t profile_bytes; /* the profile in memory: one window of the daemon, all of a capture
				 */
	uint32_t max_open_files, n_cpus, terminal_width;
	bool capture; /* record: one profile, rendered at the end; else OTLP per window */
	bool live;    /* top: a table per window for the screen */
	bool color;
	bool lines, inlined; /* source lines, inlined functions as frames */
	bool demangle_again; /* names of recorded files, too */
	uint32_t demangle;   /* enum config_demangle */
	uint32_t view;	     /* enum view_mode */
	struct render_report_options report;
	bool has_which; /* of the samples one, of the rows the one at an address */
	uint64_t which;
};

/* What is made of recorded files, at STOP. */
enum view_mode {
	VIEW_NONE, /* there are none */
	VIEW_CONVERT,
	VIEW_REPORT,
	VIEW_DIFF,	   /* of the first and the second */
	VIEW_DEBUG_SAMPLE, /* how recorded samples are walked */
	VIEW_DEBUG_UNWIND, /* the rows of a binary */
};
#define VIEW_MAX_INPUTS 256

struct setup_exporter {
	struct setup_common common;
	uint64_t spool_max_bytes, spool_max_age_ns;
	uint64_t store_max_bytes, store_max_age_ns;
	uint32_t n;
	struct setup_destination {
		uint64_t timeout_ns, max_queue_bytes, max_elapsed_ns, max_request_bytes;
		enum export_protocol protocol;
		enum encoding encoding;
		enum otlp_dialect dialect;
		bool insecure_skip_verify;
	} destinations[SETUP_MAX_DESTINATIONS];
};

/* Of perfwalk top: what it shows first, and on what. */
struct setup_screen {
	struct setup_common common;
	struct termios termios; /* of the terminal as it was */
	uint64_t window_ns;
	uint32_t rate_hz, n_cpus;
	uint32_t iterations; /* leave after so many tables; 0: never */
	uint32_t view, sort; /* enum top_view_kind, enum top_sort */
	uint32_t width;	     /* batch: columns */
	bool confidence;     /* with the intervals of the shares */
	bool batch;	     /* tables to standard output, one after the other */
	bool color;
};

/* Texts: the socket, what is known of the host, the destinations' names. */
struct setup_metrics {
	struct setup_common common;
	uint64_t profile_bytes; /* of each profile that is asked for, in memory */
	uint32_t n_cpus;
};

/* Texts: the servers' URLs, the cache with its descriptor. */
struct setup_fetcher {
	struct setup_common common;
	uint64_t cache_bytes, max_file_bytes, timeout_ns;
};

/* Each sends one message of a set-up down a control socket: 0 or -errno. The descriptor stays the
 * caller's; -1: none. A text that is NULL is not sent. */
int setup_send(int control, const void *setup, size_t n, int status_fd);
int setup_send_text(int control, enum text_kind kind, const char *text, int fd);
int setup_send_start(int control);
/* Who the children are: as root the named user, else nobody; else who we are. No limits yet. true:
 * it is the named one, of its own. */
bool setup_choose_user(struct privileges *ret, const char *name);

_Static_assert(sizeof(struct setup_profiler) <= PROTOCOL_BLOB_MAX, "fits a message");
_Static_assert(sizeof(struct setup_symbolizer) <= PROTOCOL_BLOB_MAX, "fits a message");
_Static_assert(sizeof(struct setup_screen) <= PROTOCOL_BLOB_MAX, "fits a message");
_Static_assert(sizeof(struct setup_metrics) <= PROTOCOL_BLOB_MAX, "fits a message");
_Static_assert(sizeof(struct setup_fetcher) <= PROTOCOL_BLOB_MAX, "fits a message");
_Static_assert(sizeof(struct setup_exporter) <= PROTOCOL_BLOB_MAX, "fits a message");
