/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What people call a frame: the rules that all renderings share for kinds, modules and for frames
 * that have no name. Reads a profile; owns nothing.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

/* Longest name in any output, with its 0; a longer one is cut and ends in a hash of its whole, see
 * text_shorten(). C++ symbols of 100 kB exist. */
#define FRAME_MAX_NAME 2048

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_JIT,
	FRAME_INLINED, /* code of another function's frame; only in trees that tell them apart */
	FRAME_MARKER,
	FRAME_PROCESS,	   /* not of a stack: the process at the root of a call tree */
	FRAME_INTERPRETED, /* a runtime's own frame */
	FRAME_WAIT,	   /* what the stack waits for, at its root */
	FRAME_N_KINDS
};

enum frame_kind frame_kind(const struct profile *p, uint32_t frame);

/* Base name of a path: what follows the last slash. Borrowed from path. */
const char *frame_basename(const char *path);

/*
 * Module of a frame for display, not cleaned: "libc.so.6", "[kernel]", "[vdso]", "[jit]",
 * "[cpython]", "[unknown]", "" for markers. Borrowed from the profile, until its next string.
 */
const char *frame_module_name(const struct profile *p, uint32_t module);
/* The same, but the kernel module of a named kernel function: "ext4". function: PROFILE_NONE or a
 * row. */
const char *frame_function_module(const struct profile *p, uint32_t module, uint32_t function);

/*
 * Name of a frame without lines: "[libc.so.6+0x1234]", the marker's text, or only the module's
 * name where there is no address ("[libc.so.6]") or it means nothing to anybody else ("[kernel]",
 * "[jit]", "[cpython]", "[unknown]"): there thousands of numbers would say less than one sum. Clean
 * UTF-8; returns its length.
 */
size_t frame_fallback_name(const struct profile *p, uint32_t frame, char *buf, size_t size);

/* Name of one function, clean UTF-8: its own, or "[function]"; returns its length. */
size_t frame_function_name(const struct profile *p, uint32_t function, char *buf, size_t size);
/* How many functions have a name longer than that. */
uint32_t frame_count_cut_names(const struct profile *p);

/*
 * Whose a process is, for display: pod, container, systemd unit, or "" when none is known. Clean
 * UTF-8, ids cut to the 12 digits people are used to. Returns its length.
 */
size_t frame_process_owner(const struct profile *p, uint32_t process, char *buf, size_t size);

/* Comm of a process, clean; "[PID]" when there is none. Returns its length. */
size_t frame_process_name(const struct profile *p, uint32_t process, char *buf, size_t size);
