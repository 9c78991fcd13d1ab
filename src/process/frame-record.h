/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The records of a frame ring, in which a reader passes stacks to the profiler: native layout, each
 * with its type first. Texts come before the first stack that refers to them. Times are of
 * CLOCK_MONOTONIC, process and thread ids of our pid namespace.
 */
#include <stdint.h>

enum frame_record_type {
	FRAME_RECORD_TEXT = 1, /* the text with the next number; the first one is 1 */
	FRAME_RECORD_FORGET,   /* forget all texts: the next one is number 1 again */
	FRAME_RECORD_CODE,     /* where a process has the interpreter's evaluation function */
	FRAME_RECORD_STACK,    /* the stack of a sample */
	FRAME_RECORD_CONTEXT,  /* the context of a sample's thread; it comes before the stack */
	FRAME_RECORD_LABELS,   /* the labels of a sample's goroutine; before the stack, too */
};

enum frame_record_result {
	FRAME_RECORD_WHOLE, /* up to the thread's first frame */
	FRAME_RECORD_CUT,   /* longer than FRAME_RECORD_MAX_FRAMES: without the outermost frames */
	FRAME_RECORD_NONE,  /* the thread has no frames of the interpreter */
	FRAME_RECORD_LATE,  /* not read at the moment of the sample, or not at all */
	FRAME_RECORD_UNPROVEN, /* the bytes there form no chain of frames */
	FRAME_RECORD_UNREAD,   /* its interpreter is not understood, or exports nothing */
	FRAME_RECORD_N_RESULTS
};

/* What became of the span of a sample, in a program whose threads tell theirs. */
enum frame_record_span {
	FRAME_RECORD_SPAN_UNREAD,     /* no reader read it */
	FRAME_RECORD_SPAN_READ,	      /* the context or the labels came before */
	FRAME_RECORD_SPAN_NONE,	      /* the thread had none */
	FRAME_RECORD_SPAN_LATE,	      /* not read at the moment of the sample */
	FRAME_RECORD_SPAN_MOVED,      /* the thread may have run on while it was read */
	FRAME_RECORD_SPAN_HALF,	      /* the record was half-written, or is no record */
	FRAME_RECORD_SPAN_UNREADABLE, /* its place was not found, or cannot be read */
	FRAME_RECORD_N_SPANS
};

enum { FRAME_RECORD_MAX_FRAMES = 512, FRAME_RECORD_MAX_RANGES = 8, FRAME_RECORD_MAX_TEXT = 4096 };
/* Interpreters of one process. */
enum { FRAME_RECORD_MAX_CHAINS = 4 };

struct frame_record_text {
	uint32_t type, n;
	char text[FRAME_RECORD_MAX_TEXT]; /* n bytes of it are in the record */
};

struct frame_record_code {
	uint32_t type, pid, n;
	uint32_t kind;	/* enum runtime_kind */
	uint64_t image; /* which of the process's interpreters: the first byte of its file */
	struct frame_record_range {
		uint64_t start, end;
	} ranges[FRAME_RECORD_MAX_RANGES];
};

/* A thread context in the layout of OTEP 4947: the ids, and keys with texts. Or the labels of a
 * goroutine, as in runtimes/go.h. */
enum { FRAME_RECORD_MAX_CONTEXT = 640 };
struct frame_record_context {
	uint32_t type, n;
	uint64_t time_ns; /* of the sample */
	uint32_t pid, tid;
	uint64_t read_ns;			 /* when it was read */
	uint8_t bytes[FRAME_RECORD_MAX_CONTEXT]; /* n of them are in the record */
};

struct frame_record_stack {
	uint32_t type, result; /* enum frame_record_result, of the first interpreter */
	uint64_t time_ns;      /* of the sample */
	uint32_t pid, tid, n;
	uint32_t span;	  /* enum frame_record_span */
	uint64_t read_ns; /* when the stack was read */
	/* Of the process's further interpreters, whose frames follow those of the first. */
	struct frame_record_chain {
		uint32_t result, n; /* enum frame_record_result; its frames */
	} others[FRAME_RECORD_MAX_CHAINS - 1];
	uint32_t n_others, reserved;
	struct frame_record_frame {
		uint32_t function, file;   /* numbers of texts; 0: unknown */
		uint32_t line, start_line; /* 0: unknown */
		/* Of the interpreter's own frame; bit 0: its native call begins with this frame. */
		uint64_t address;
	} frames[FRAME_RECORD_MAX_FRAMES]; /* n are in the record, each chain innermost first */
};
