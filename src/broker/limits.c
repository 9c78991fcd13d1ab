/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of each kind of child, from the config: memory, descriptors, threads. */
#include "config.h"

#include <sys/resource.h>

#include "src/broker/internal.h"
#include "src/config/config.h"
#include "src/metrics/setup.h"
#include "src/process/setup.h"
#include "src/profiler/setup.h"
#include "src/symbolizer/setup.h"

#define PAYLOAD_FILE_BYTES (UINT64_C(128) << 20) /* they are of 4M each; tables of top */
/* All these together are below the unit's MemoryMax, with as many CPUs and destinations as its
 * comment says (tests/unit/test-limits.c): what somebody makes us allocate is refused before the
 * kernel kills one of us for it. */
#define DATA_BYTES     (UINT64_C(64) << 20)  /* of any child */
#define PROFILER_BYTES (UINT64_C(128) << 20) /* tables of processes, files and threads */
/* Its descriptors apart from files, rings and windows; and files that it can hardly do without. */
#define PROFILER_DESCRIPTORS 16
#define PROFILER_MIN_FILES   4
/* So much of its address space may be no file. */
#define SYMBOLIZER_DATA(address_space) ((address_space) / 8 * 3)

static uint32_t n_rings(const struct broker *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->options.n_events; i++)
		n += b->events[i].cpus.n;
	return n;
}

uint32_t broker_files_of_profiler(const struct broker *b)
{
	struct rlimit l = {.rlim_cur = 0};
	uint64_t others, left;

	(void)getrlimit(RLIMIT_NOFILE, &l);
	others = 2 * (uint64_t)n_rings(b) + PROFILER_DESCRIPTORS;
	left = l.rlim_cur > others ? (l.rlim_cur - others) / 2 : 0;
	if (left < PROFILER_MIN_FILES)
		left = PROFILER_MIN_FILES;
	return left < b->options.config->max_open_files ? (uint32_t)left
							: b->options.config->max_open_files;
}

/* Files are mapped whole, so address space is no measure of its memory. */
void broker_limit_profiler(const void *ctx, struct privileges *ret)
{
	const struct broker *b = ctx;
	const struct config *c = b->options.config;

	ret->max_data = 4 * c->window_memory_bytes + c->unwind_rows_bytes + PROFILER_BYTES;
	/* What a window is made of is in that memory as well. */
	ret->max_file_bytes = 4 * c->window_memory_bytes;
	/* The third is another event that takes the place of one, for a while. */
	ret->max_open_files =
		c->max_open_files + HANDOVER_MAX_WINDOWS + 3 * n_rings(b) + SETUP_OTHER_DESCRIPTORS;
}

void broker_limit_symbolizer(const void *ctx, struct privileges *ret)
{
	const struct broker *b = ctx;
	const struct config *c = b->options.config;

	if (b->options.capture) {
		ret->max_data = 3 * BROKER_CAPTURE_BYTES;
	} else {
		ret->max_address_space = c->symbolizer_memory_bytes;
		ret->max_data = SYMBOLIZER_DATA(c->symbolizer_memory_bytes);
		ret->max_file_bytes = PAYLOAD_FILE_BYTES;
	}
	ret->max_open_files = c->max_open_files + CODE_NAMES_MAX_DESCRIPTORS + PAYLOADS_MAX +
			      SETUP_OTHER_DESCRIPTORS;
}

void broker_limit_exporter(const void *ctx, struct privileges *ret)
{
	const struct config *c = ((const struct broker *)ctx)->options.config;

	for (size_t i = 0; i < c->n_exports; i++)
		ret->max_data +=
			2 * c->exports[i].max_queue_bytes; /* as they came, and compressed */
}

void broker_limit_fetcher(const void *ctx, struct privileges *ret)
{
	const struct config *c = ((const struct broker *)ctx)->options.config;

	/* One byte more tells a file that is too large. */
	ret->max_file_bytes = c->debuginfod_max_file_bytes + 1;
}

void broker_limit_metrics(const void *ctx, struct privileges *ret)
{
	ret->max_data += 2 * PULLS_MAX * BROKER_PULL_BYTES;
}

void broker_limit(const struct broker *b, enum peer kind, struct privileges *ret)
{
	setup_limit(ret, kind);
	ret->max_data = DATA_BYTES;
	for (size_t i = 0; i < b->n_rows; i++) {
		if (b->rows[i].kind == kind && b->rows[i].limit)
			b->rows[i].limit(b, ret);
	}
#ifdef WITH_SANITIZERS
	ret->max_address_space = ret->max_data = 0; /* the shadow memory is terabytes of it */
#endif
}
