/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the broker tells the symbolizer at its start, and what it has to know of it. */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/message.h"
#include "src/process/setup.h"
#include "src/render/render.h"
#include "symbolize/symbolize.h"

#define PAYLOADS_MAX		   4096
#define CODE_NAMES_MAX_PROCESSES   256
#define CODE_NAMES_MAX_DESCRIPTORS (2 * CODE_NAMES_MAX_PROCESSES) /* jitdump, perf map */
#define VIEW_MAX_INPUTS		   256

struct setup_symbolizer {
	struct setup_common common;
	uint64_t symbols_bytes; /* budget of cached symbol tables and lines */
	uint64_t profile_bytes; /* the profile in memory: one window of the daemon, all of a capture
				 */
	uint64_t window_ns;	/* from one window to the next; 0: all frames get their names */
	struct sample_place place; /* where the next window begins */
	/* Samples, as MESSAGE_LOST says; of these, counted by those before. */
	uint64_t lost, lost_counted;
	uint32_t max_open_files, n_cpus, terminal_width;
	bool capture; /* record: one profile, rendered at the end; else OTLP per window */
	bool keeps;   /* the local store gets what processes have in memory, too */
	bool live;    /* top: a table per window for the screen */
	bool color;
	bool lines, inlined; /* source lines, inlined functions as frames */
	bool show_idle;	     /* off-CPU time of threads that wait for work, too */
	bool hide_native;    /* interpreters' own frames, where theirs are */
	bool sparing;	     /* names of what is seen often alone: naming gets little time */
	bool demangle_again; /* names of recorded files, too */
	enum symbol_demangling demangle;
	uint32_t view; /* enum view_mode */
	bool of_store; /* its input is the local store: of CPU time, if nothing else is asked for */
	struct render_report_options report;
	bool errors_too; /* what is wrong goes where the table goes, behind "error: " */
	bool has_which;	 /* of the samples one, of the rows the one at an address */
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
	/* Where a probe of user code goes in it: a function, a marker (TEXT_SYMBOL), or without a
	 * name all markers. */
	VIEW_DEBUG_FUNCTION,
	VIEW_DEBUG_MARKER,
	/* What is known of a process's runtime: of its memory, with its file at address `which`,
	 * and, as a second input, the registers of stopped threads (STOPPED_BYTES each). */
	VIEW_DEBUG_RUNTIME,
};
/* u32 tid, u32 its number in the process's pid namespace, u32 n, and behind 16 bytes n of them as
 * PTRACE_GETREGSET gives them. */
#define STOPPED_BYTES 1024
#define STOPPED_HEAD  16

_Static_assert(sizeof(struct setup_symbolizer) <= PROTOCOL_BLOB_MAX, "fits a message");
