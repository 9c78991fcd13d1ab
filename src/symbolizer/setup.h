/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The symbolizer's set-up, which the broker sends at its start, and the limits that the broker must
 * know. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"
#include "src/render/render.h"
#include "symbolize/symbolize.h"

#define PAYLOADS_MAX		   4096
#define PAYLOADS_MAX_BYTES	   (UINT64_C(96) << 20)
#define CODE_NAMES_MAX_PROCESSES   256
#define CODE_NAMES_MAX_DESCRIPTORS (2 * CODE_NAMES_MAX_PROCESSES) /* jitdump, perf map */
#define VIEW_MAX_INPUTS		   256

struct setup_symbolizer {
	struct setup_common common;
	uint64_t symbols_bytes; /* budget of cached symbol tables and lines */
	/* memory for the profile: a window of the daemon, or a whole capture */
	uint64_t profile_bytes;
	uint64_t window_ns;	   /* from one window to the next; 0: no limit for naming */
	struct sample_place place; /* where the next window begins */
	uint32_t switches;	   /* as in MESSAGE_WINDOW, before the first one */
	/* Lost samples, as in MESSAGE_LOST; of these, counted by earlier symbolizers. */
	uint64_t lost, lost_counted;
	uint32_t max_open_files, n_cpus, terminal_width;
	bool capture; /* record: one profile, rendered at the end; else OTLP per window */
	bool keeps;   /* the local store also gets how much memory processes have */
	bool live;    /* top: a table per window for the screen */
	bool color;
	bool lines, inlined; /* source lines, inlined functions as frames */
	bool show_idle;	     /* also off-CPU time of threads that wait for work */
	bool hide_native;    /* hide native frames of interpreters beside the interpreter's */
	bool sparing;	     /* give naming little time: only frequent functions get names */
	bool demangle_again; /* also names of recorded files */
	enum symbol_demangling demangle;
	uint32_t view; /* enum view_mode */
	bool of_store; /* the input is the local store: CPU time, unless an event is given */
	struct render_report_options report;
	bool errors_too; /* print errors with the table, after "error: " */
	bool has_which;	 /* only the sample of that number, or the row at that address */
	uint64_t which;
};

/* What to show of recorded files, at STOP. */
enum view_mode {
	VIEW_NONE, /* there are none */
	VIEW_CONVERT,
	VIEW_REPORT,
	VIEW_DIFF,	   /* from the first to the second */
	VIEW_WINDOWS,	   /* a row for each that has samples which the report's filters choose */
	VIEW_DEBUG_SAMPLE, /* how recorded samples are walked */
	VIEW_DEBUG_UNWIND, /* the rows of a binary */
	/* The places of a probe of user code in a binary: of a function, or of a marker
	 * (TEXT_SYMBOL); without a name of all markers. */
	VIEW_DEBUG_FUNCTION,
	VIEW_DEBUG_MARKER,
	/* The runtimes of a process: the inputs are its memory, the addresses (u64) of its files
	 * that may hold one, the `which` first of them by their names, and the registers of its
	 * stopped threads (STOPPED_BYTES each). */
	VIEW_DEBUG_RUNTIME,
};
/* u32 tid, u32 the tid in the process's pid namespace, u32 n; from byte STOPPED_HEAD on n bytes of
 * registers as PTRACE_GETREGSET gives them. */
#define STOPPED_BYTES 1024
#define STOPPED_HEAD  16

_Static_assert(sizeof(struct setup_symbolizer) <= PROTOCOL_BLOB_MAX, "fits a message");
