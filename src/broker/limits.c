/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "src/broker/limits.h"

#include "src/broker/internal.h"
#include "src/config/config.h"
#include "src/metrics/setup.h"
#include "src/opener/judge.h"
#include "src/opener/stuck.h"
#include "src/process/setup.h"
#include "src/profiler/setup.h"
#include "src/reader/setup.h"
#include "src/symbolizer/setup.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* The readers share this sum: there is one for each CPU. One keeps about 64 KiB for a client, at
 * most 2 MiB. */
#define READERS_DATA_BYTES (448 * MIB)

/* fixed + the sum of times/per of each measure, within least and most. 0 in all: no limit. */
struct amount {
	uint64_t fixed;
	struct {
		uint32_t times, per; /* per 0: 1 */
		enum limits_measure of;
	} terms[2];
	uint64_t least, most; /* most 0: none */
};

struct limits_row {
	struct amount data;	     /* RLIMIT_DATA, bytes */
	struct amount address_space; /* RLIMIT_AS, bytes */
	struct amount files;	     /* RLIMIT_NOFILE */
	struct amount file_bytes;    /* RLIMIT_FSIZE: of files in memory as well */
	bool tasks;		     /* it starts threads, or processes: no RLIMIT_NPROC */
	struct limits_pause pause;   /* RLIMIT_RTTIME */
};

/*
 * The needs of each, with a margin. The data of all processes of a daemon together are below the
 * unit's MemoryMax, with as many CPUs and destinations as its comment says
 * (tests/unit/test-limits.c): what somebody makes us allocate is refused before the kernel kills
 * one of us for it.
 */
static const struct limits_row rows[LIMITS_N] = {
	[PEER_PROFILER] =
		{
			/* Tables of processes, files and threads; windows. Files are mapped whole,
			 * so address space is no measure of its memory. */
			.data = {.fixed = 128 * MIB,
				 .terms = {{4, 0, LIMITS_OF_WINDOW},
					   {1, 0, LIMITS_OF_UNWIND_ROWS}}},
			/* The third of each ring is of another event that takes the place of
			 * one, for a while. */
			.files = {.fixed = HANDOVER_MAX_WINDOWS + PROFILER_MAX_SIZES +
					   SETUP_OTHER_DESCRIPTORS,
				  .terms = {{1, 0, LIMITS_OF_OPEN_FILES}, {3, 0, LIMITS_OF_RINGS}}},
			/* What a window is made of is in that memory as well. */
			.file_bytes = {.terms = {{4, 0, LIMITS_OF_WINDOW}}},
		},
	[PEER_SYMBOLIZER] =
		{
			/* So much of its address space may be no file. */
			.data = {.terms = {{3, 8, LIMITS_OF_SYMBOLIZER}}},
			.address_space = {.terms = {{1, 0, LIMITS_OF_SYMBOLIZER}}},
			.files = {.fixed = CODE_NAMES_MAX_DESCRIPTORS + PAYLOADS_MAX +
					   SETUP_OTHER_DESCRIPTORS,
				  .terms = {{1, 0, LIMITS_OF_OPEN_FILES}}},
			.file_bytes = {.fixed = 128 * MIB}, /* payloads of 4M each; tables of top */
		},
	[LIMITS_CAPTURE] =
		{
			.data = {.fixed = 3 * BROKER_CAPTURE_BYTES},
			.files = {.fixed = CODE_NAMES_MAX_DESCRIPTORS + PAYLOADS_MAX +
					   SETUP_OTHER_DESCRIPTORS,
				  .terms = {{1, 0, LIMITS_OF_OPEN_FILES}}},
			/* Its outputs may have any size. */
		},
	[LIMITS_VIEWER] =
		{
			.data = {.fixed = 4 * GIB}, /* twice the largest profile */
			.files = {.fixed = 1024},
		},
	[PEER_EXPORTER] =
		{
			/* Payloads as they came, and compressed. */
			.data = {.fixed = 64 * MIB, .terms = {{2, 0, LIMITS_OF_QUEUES}}},
			.files = {.fixed = 256},
			/* The largest payload, and its growth. */
			.file_bytes = {.fixed = 128 * MIB},
			.tasks = true,
		},
	[PEER_FETCHER] =
		{
			.data = {.fixed = 64 * MIB},
			.files = {.fixed = 64},
			/* One byte more tells a file that is too large. */
			.file_bytes = {.fixed = 1, .terms = {{1, 0, LIMITS_OF_DEBUG_FILE}}},
			.tasks = true,
		},
	[PEER_METRICS] =
		{
			.data = {.fixed = 64 * MIB + 2 * PULLS_MAX * BROKER_PULL_BYTES},
			.files = {.fixed = 128},
			.file_bytes = {.fixed = 4096}, /* it writes no files */
		},
	[PEER_SCREEN] =
		{
			.data = {.fixed = 64 * MIB},
			.files = {.fixed = 64},
			.file_bytes = {.fixed = 4096},
		},
	[PEER_READER] =
		{
			.data = {.terms = {{1, 0, LIMITS_OF_READERS_SHARE}},
				 .least = 8 * MIB,
				 .most = 48 * MIB},
			.files = {.fixed = 1024},
			/* Memory of its clients; the ring of frames. */
			.file_bytes = {.fixed = 2 * MIB},
			/* It runs before all else, so it has to pause. */
			.pause = {100000, 200000},
		},
	[LIMITS_OPENER] =
		{
			.data = {.fixed = 16 * MIB},
			.files = {.fixed = 64},
			/* In memory: stacks of blocked threads, tables of allocations, contexts,
			 * copies of maps. */
			.file_bytes = {.fixed = 33 * MIB},
		},
	[LIMITS_JUDGE] =
		{
			.data = {.fixed = 8 * MIB},
			.files = {.fixed = 16},	       /* it has five */
			.file_bytes = {.fixed = 4096}, /* it writes none */
		},
	[LIMITS_BROKER] =
		{
			.data = {.fixed = 32 * MIB},
			.tasks = true,
		},
	[LIMITS_LISTER] =
		{
			.files = {.fixed = 64},
			.tasks = true, /* it is no child, and its user may run others */
		},
};

struct limits_basis limits_basis_of(const struct config *c, uint32_t n_rings, uint32_t n_cpus)
{
	struct limits_basis b = {
		.of = {
			[LIMITS_OF_WINDOW] = c->window_memory_bytes,
			[LIMITS_OF_UNWIND_ROWS] = c->unwind_rows_bytes,
			[LIMITS_OF_SYMBOLIZER] = c->symbolizer_memory_bytes,
			[LIMITS_OF_DEBUG_FILE] = c->debuginfod_max_file_bytes,
			[LIMITS_OF_OPEN_FILES] = c->max_open_files,
			[LIMITS_OF_RINGS] = n_rings,
			[LIMITS_OF_READERS_SHARE] = READERS_DATA_BYTES / (n_cpus ? n_cpus : 1),
		}};

	for (size_t i = 0; i < c->n_exports; i++)
		b.of[LIMITS_OF_QUEUES] += c->exports[i].max_queue_bytes;
	return b;
}

static uint64_t compute(const struct amount *a, const struct limits_basis *basis)
{
	uint64_t n = a->fixed;

	for (size_t i = 0; basis && i < ARRAY_SIZE(a->terms); i++) {
		uint32_t per = a->terms[i].per ? a->terms[i].per : 1;

		n += basis->of[a->terms[i].of] / per * a->terms[i].times;
	}
	if (n < a->least)
		n = a->least;
	return a->most && n > a->most ? a->most : n;
}

void limits_set(struct privileges *ret, enum limits_role who, const struct limits_basis *basis)
{
	const struct limits_row *row = &rows[who];

	ret->max_open_files = (uint32_t)compute(&row->files, basis);
	/* Under sanitizers the shadow memory is terabytes, and the leak checker has a thread and
	 * writes reports. */
#ifndef WITH_SANITIZERS
	ret->max_data = compute(&row->data, basis);
	ret->max_address_space = compute(&row->address_space, basis);
	ret->max_file_bytes = compute(&row->file_bytes, basis);
	ret->no_tasks = !row->tasks;
#endif
}

struct limits_pause limits_pause_of(enum limits_role who)
{
	return rows[who].pause;
}

uint64_t limits_memory_of_all(const struct limits_basis *basis, uint32_t n_cpus)
{
	uint64_t n_readers = n_cpus < READERS_MAX ? n_cpus : READERS_MAX;
	/* In memory, and nobody's data. */
	uint64_t sum = HANDOVER_MAX_BYTES + PAYLOADS_MAX_BYTES;

	sum += limits_data_of(LIMITS_BROKER) + limits_data_of(LIMITS_OPENER) * (1 + STUCK_MAX) +
	       limits_data_of(LIMITS_JUDGE) * (1 + JUDGE_MAX_DYING);
	for (int kind = 0; kind < PEER_N; kind++) {
		if (kind != PEER_SCREEN) /* the daemon has none */
			sum += compute(&rows[kind].data, basis) *
			       (kind == PEER_READER ? n_readers : 1);
	}
	return sum;
}

uint64_t limits_data_of(enum limits_role who)
{
	return rows[who].data.fixed;
}
