/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The benchmark's own capture of this host: samples with their registers, stacks and mappings. */
#include "tests/corpus/oracle.h"
#include "tests/unit/unwind-proc.h"
#include "util/array.h"

struct framehop_process;

/* One process at one state of its mappings. */
struct set {
	pid_t pid;
	uint64_t hash;
	char *text;
	struct proc_maps maps;
	struct oracle *oracle;
	struct framehop_process *fh;
};

struct sample {
	struct proc_sample s;
	uint32_t set;
};

struct capture {
	struct proc_modules modules; /* u: set before */
	ARRAY(struct sample) samples;
	ARRAY(struct set) sets;
	uint64_t lost, no_maps;
};
#define CAPTURE_INIT                                                                               \
	{                                                                                          \
		.samples = ARRAY_INIT(30000), .sets = ARRAY_INIT(8192)                             \
	}

/* Every CPU, user code only, root. 0 or -errno. */
int capture_record(struct capture *c, unsigned int seconds, unsigned int hz,
		   unsigned int stack_bytes);
