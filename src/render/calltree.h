/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call tree of a profile: root, one node per process name, then the functions from the entry
 * of the thread down to the leaf, inlined functions as nodes of their own. Folded stacks, the
 * flame graph and the summary are walks over it.
 */
#include "src/profile/profile.h"
#include "src/render/aggregate.h"
#include "src/render/frame.h"
#include "util/array.h"
#include "util/strtab.h"

/* Symbols with the same name in different modules differ, and processes with the same name but
 * different owners (container, unit) do. Without it only name and kind count. */
#define CALLTREE_MODULES 0x1u
/* Names for folded stacks: ';' becomes ':', kernel, JIT and inlined names get their suffix. */
#define CALLTREE_FOLDED 0x2u
/* Inlined functions are a kind of their own; else they are merged with the functions themselves. */
#define CALLTREE_INLINED 0x4u
/* Remember the node of each sample. */
#define CALLTREE_SAMPLES 0x8u
/* Functions of equal name (and module, with CALLTREE_MODULES) are one, whatever their kinds. */
#define CALLTREE_ANY_KIND 0x10u
/* A stack ends where it begins to say something: see first-frame.h. */
#define CALLTREE_CALLERS 0x20u

#define CALLTREE_MAX_NODES (1u << 22) /* 40 bytes each */
#define CALLTREE_NONE	   UINT32_MAX

struct call_symbol {
	strid name, module; /* strings of the tree's names; clean UTF-8 */
	strid file;	    /* source file, "" unknown; only with CALLTREE_MODULES */
	uint32_t line;	    /* where the function begins, 0 unknown */
	uint32_t kind;	    /* enum frame_kind */
	/* FRAME_PROCESS: processes with that name and owner that had samples */
	uint32_t n_processes;
	int64_t self, total;		    /* total counts a recursive function once a stack */
	double self_squares, total_squares; /* of the same values, as in aggregate_row */
};

/* A function at an address: one for each function of each frame. */
struct call_place {
	uint32_t symbol, frame, line; /* frame: of the profile, PROFILE_NONE for processes */
};

struct call_node {
	uint32_t symbol; /* CALLTREE_NONE: the root */
	/* the first place that led here, CALLTREE_NONE: the root */
	uint32_t place;
	uint32_t parent, first_child, next; /* CALLTREE_NONE: none; siblings are sorted by name */
	int64_t self, total;
};

struct calltree {
	struct strtab names;
	ARRAY(struct call_symbol) symbols;
	ARRAY(struct call_place) places;
	ARRAY(struct call_node)
	nodes;			/* 0 is the root; a parent has a smaller row than its children */
	uint32_t *sample_nodes; /* by sample of the profile; NULL without CALLTREE_SAMPLES */
	struct sampling sampling;
	double squares; /* of all values */
	int64_t n_cut;	/* value counted for a caller because the tree was full */
};

/* 0 or -ENOMEM. The caller calls calltree_deinit() either way. */
int calltree_build(struct calltree *t, const struct profile *p, unsigned int flags);
void calltree_deinit(struct calltree *t);

/* The node after n in preorder, CALLTREE_NONE at the end; updates *depth (0 at the root). */
uint32_t calltree_next(const struct calltree *t, uint32_t n, uint32_t *depth);
