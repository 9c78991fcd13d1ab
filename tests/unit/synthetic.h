/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Profiles made by hand for the tests of the renderings. */
#include "src/profile/profile.h"
#include "src/render/render.h"

/* The facts all tests render with. */
extern const struct render_info synthetic_info;

/*
 * Twelve samples of three processes, every one of which a test may name:
 *
 *	web (pid 100, in a container)	main -> handle -> {parse + inlined skip_space: 4,
 *					write: 2 with two kernel frames}
 *	node (pid 200, a unit)		[truncated stack] -> a JIT frame "renderPage": 3,
 *					an unnamed one of libfoo.so: 1
 *	kworker/0:1 (pid 7)		two kernel frames: 2
 */
void synthetic_small(struct profile *p);

/* The same host later: main -> handle -> {render: 6, new; parse + skip_space: 2}, nothing else. */
void synthetic_changed(struct profile *p);

/* n_samples over many processes, threads, stacks and modules, always the same for a seed. */
void synthetic_random(struct profile *p, uint32_t seed, uint32_t n_samples);

/*
 * Samples of three more types, n of each, of the threads and stacks that the profile has:
 * page-faults of values 1 to 1000 of the kernel's choice, each tenth of context-switches, and
 * task-clock, which is CPU time as the first type is.
 */
void synthetic_add_types(struct profile *p, uint32_t seed, uint32_t n);

/* Every byte value but 0 in every kind of string there is, in odd orders and broken UTF-8. */
void synthetic_hostile(struct profile *p);

/* Names that mean something to HTML, JavaScript, terminals and folded stacks. */
extern const char *const synthetic_hostile_names[];
extern const uint32_t synthetic_n_hostile_names;
