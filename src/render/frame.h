/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Display names: the rules of all renderings for kinds, modules and frames without a name. Reads a
 * profile; owns nothing.
 */
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

/* Longest name in any output, with its 0. A longer one is cut and ends with a hash of the whole
 * name, see text_shorten(). C++ symbols of 100 kB exist. */
#define FRAME_MAX_NAME 2048

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_JIT,
	FRAME_INLINED, /* inlined into another function; only in trees that distinguish it */
	FRAME_MARKER,
	FRAME_PROCESS,	   /* not in a stack: the process at the root of a call tree */
	FRAME_INTERPRETED, /* a runtime's own frame */
	FRAME_WAIT,	   /* what the thread waits for, at the root */
	FRAME_N_KINDS
};

enum frame_kind frame_kind(const struct profile *p, uint32_t frame);

/* Base name of a path: the part after the last slash. Borrowed from path. */
const char *frame_basename(const char *path);

/*
 * Module of a frame for display, as untrusted text: "libc.so.6", "[kernel]", "[vdso]", "[jit]",
 * "[cpython]", "[unknown]", "" for markers. Borrowed from the profile, until its next string.
 */
const char *frame_module_name(const struct profile *p, uint32_t module);
/* The same, but for a named kernel function its kernel module: "ext4". function: PROFILE_NONE or a
 * row. */
const char *frame_function_module(const struct profile *p, uint32_t module, uint32_t function);

/*
 * Name of a frame without lines: "[libc.so.6+0x1234]", the marker's text, or only the module's name
 * if there is no address ("[libc.so.6]") or the address means nothing elsewhere ("[kernel]",
 * "[jit]", "[cpython]", "[unknown]"): there one sum says more than thousands of numbers. Clean
 * UTF-8; returns its length.
 */
size_t frame_fallback_name(const struct profile *p, uint32_t frame, char *buf, size_t size);

/* Name of one function, clean UTF-8: its own, or "[function]"; returns its length. */
size_t frame_function_name(const struct profile *p, uint32_t function, char *buf, size_t size);
/* The number of functions with a longer name. */
uint32_t frame_count_cut_names(const struct profile *p);

/*
 * The owner of a process for display: pod, container, systemd unit, or "": unknown. Clean UTF-8,
 * ids cut to the usual 12 digits. Returns its length.
 */
size_t frame_process_owner(const struct profile *p, uint32_t process, char *buf, size_t size);

/* The name of a process's service: what it says, its executable's name, or its comm. Clean UTF-8.
 * Returns its length. */
size_t frame_service_name(const struct profile *p, uint32_t process, char *buf, size_t size);

/* Comm of a process, clean; "[PID]": none. Returns its length. */
size_t frame_process_name(const struct profile *p, uint32_t process, char *buf, size_t size);
