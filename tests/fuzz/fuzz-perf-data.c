/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the input is a perf.data file; all its records are read, and what they point to
 * is touched.
 *
 * Seeds: perf record -e cpu-clock:u --call-graph dwarf,256 -o FILE, with -z, and -o - > FILE for a
 * pipe's, of a short loop. With a main of its own (FUZZ_REPLAY) it reads those that are kept, as
 * make check does.
 */
#include <string.h>

#include "src/perf-data/perf-data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

static void touch(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		sink += p[i];
}

static void touch_record(const struct record *r)
{
	switch (r->type) {
	case RECORD_SAMPLE:
		touch(r->sample.kernel, r->sample.n_kernel * 8);
		touch(r->sample.user_chain, r->sample.n_user_chain * 8);
		touch(r->sample.stack, r->sample.n_stack);
		break;
	case RECORD_MMAP:
		touch(r->mmap.path, strlen(r->mmap.path));
		touch(r->mmap.build_id, r->mmap.n_build_id);
		break;
	case RECORD_COMM:
		touch(r->comm.comm, strlen(r->comm.comm));
		break;
	case RECORD_CGROUP:
		touch(r->cgroup.path, strlen(r->cgroup.path));
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct perf_data *d = NULL;
	struct record r;
	char error[256];

	if (perf_data_new(&d, data, n, NULL, error, sizeof(error)) < 0)
		return 0;
	while (perf_data_next(d, &r, error, sizeof(error)) == 1)
		touch_record(&r);
	(void)perf_data_build_id(d, "/usr/bin/true");
	sink += perf_data_host(d)->release[0] + perf_data_event(d)->rate_hz;
	perf_data_free(d);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 104 /* the header stays */, 64, 100);
}
#endif
