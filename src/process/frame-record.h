/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a reader tells the profiler, as records of a frame ring: native layout, and each with a
 * type first. Texts come before the first stack that names them.
 */
#include <stdint.h>

enum frame_record_type {
	FRAME_RECORD_TEXT = 1, /* the next number of a text, from 1 on, and its bytes */
	FRAME_RECORD_FORGET,   /* all texts: numbers begin anew */
	FRAME_RECORD_CODE,     /* where a process has the interpreter's evaluation function */
	FRAME_RECORD_STACK,    /* one sample's */
	FRAME_RECORD_CONTEXT,  /* one sample's, before its stack: what its thread says of itself */
	FRAME_RECORD_LABELS,   /* the same: what its goroutine says */
};

enum frame_record_result {
	FRAME_RECORD_WHOLE,    /* up to the thread's first frame */
	FRAME_RECORD_CUT,      /* its callers are left out: there is a limit */
	FRAME_RECORD_NONE,     /* no frames of the interpreter in this thread */
	FRAME_RECORD_LATE,     /* not read at the moment of the sample, or not at all */
	FRAME_RECORD_UNPROVEN, /* the bytes there form no chain of frames */
	FRAME_RECORD_N_RESULTS
};

enum { FRAME_RECORD_MAX_FRAMES = 512, FRAME_RECORD_MAX_RANGES = 8, FRAME_RECORD_MAX_TEXT = 4096 };

struct frame_record_text {
	uint32_t type, n;
	char text[FRAME_RECORD_MAX_TEXT]; /* n bytes of it are there */
};

struct frame_record_code {
	uint32_t type, pid, n;
	uint32_t kind; /* enum interp_kind */
	struct frame_record_range {
		uint64_t start, end;
	} ranges[FRAME_RECORD_MAX_RANGES];
};

/* A thread context as OTEP 4947 lays it out: the ids, and keys with texts. Or the labels of a
 * goroutine, as in runtimes/go.h. */
enum { FRAME_RECORD_MAX_CONTEXT = 640 };
struct frame_record_context {
	uint32_t type, n;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint8_t bytes[FRAME_RECORD_MAX_CONTEXT]; /* n of them are there */
};

struct frame_record_stack {
	uint32_t type, result; /* enum frame_record_result */
	uint64_t time_ns;
	uint32_t pid, tid, n, reserved;
	uint64_t read_ns; /* when that was done */
	struct frame_record_frame {
		uint32_t function, file; /* numbers of texts; 0: none */
		uint32_t line, start_line;
		uint64_t address;	   /* of its own; bit 0: the native call begins with it */
	} frames[FRAME_RECORD_MAX_FRAMES]; /* n of them are there, innermost first */
};
