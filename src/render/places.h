/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The frames of a profile for formats whose frames are one function each, with a place in it. A
 * frame becomes a place for every function inlined there and one for the function itself. Functions
 * with the same name, module and file are one.
 */
#include "src/profile/profile.h"
#include "src/render/frame.h"
#include "util/array.h"
#include "util/strtab.h"

struct place_function {
	strid name, file;  /* strings of the list; clean UTF-8; file "": unknown */
	uint32_t module;   /* row of the profile */
	uint32_t function; /* row of the profile, or PROFILE_NONE */
	enum frame_kind kind;
};

struct place {
	uint32_t function;     /* row of functions */
	uint32_t frame;	       /* row of the profile */
	uint32_t line, column; /* 0: unknown */
	uint32_t inline_depth; /* 0: the function itself */
};

struct places {
	struct strtab strings;
	ARRAY(struct place_function) functions;
	ARRAY(struct place) places; /* frame by frame; within one outermost first */
	uint32_t *first;	    /* by frame: its first place; one more for the end */
};

/* 0 or -ENOMEM. The caller calls places_deinit() either way. */
int places_build(struct places *pl, const struct profile *p);
void places_deinit(struct places *pl);
