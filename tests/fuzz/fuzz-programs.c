/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: an ELF file, of which the profiler wants other things than its code: where a
 * program has the variable of its threads, the version of Go whose goroutines have labels, and
 * where probes go: into allocators of runtimes, functions and markers.
 *
 * The seeds are those of the target symbols, and a small program with all of that.
 */
#include <stdio.h>
#include <stdlib.h>

#include "src/profiler/go-program.h"
#include "src/profiler/program-variable.h"
#include "symbolize/alloc-place.h"
#include "symbolize/probe-place.h"
#include "tests/fuzz/elf-parts.h"
#include "tests/fuzz/input.h"

static void find_variable(int fd)
{
	struct thread_variable v = {0};
	int r = program_variable_find(fd, "otel_thread_ctx_v1", &v);

	if (r > 0)
		input_sink += v.module + (uint64_t)v.offset;
}

/* No range of code ends before it begins. */
static void find_allocator(int fd, const char *path)
{
	struct alloc_places p;

	if (alloc_places_find(fd, path, &p) != 0)
		return;
	if (p.n_picked > ALLOC_PLACES_PICKED || p.n_code > ALLOC_PLACES_CODE)
		abort();
	for (uint32_t i = 0; i < p.n_code; i++)
		input_sink += alloc_places_have(&p, p.code[i].start);
}

/* quiet: as the profiler asks. */
static void find_places(int fd, const char *what, bool marker, bool quiet)
{
	struct probe_place places[PROBE_PLACES_MAX];
	char error[256] = "";
	int n = probe_find_places(fd, what, marker, NULL, NULL, places, quiet ? NULL : error,
				  quiet ? 0 : sizeof(error));

	if (n > PROBE_PLACES_MAX || (n < 0 && !quiet && !*error))
		abort();
	for (int i = 0; i < n; i++)
		input_sink += places[i].offset + places[i].counter;
	input_touch_text(error);
}

static void list_markers(int fd)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		abort();
	(void)probe_list_markers(fd, out);
	(void)fclose(out);
	input_touch(text, n);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = input_fd(data, n);
	struct go_program program;

	find_variable(fd);
	program = go_program_find(fd);
	input_sink += program.version + program.cycle;
	find_allocator(fd, "/a/program");
	find_allocator(fd, "/a/libjvm.so");
	find_places(fd, "f+0x4", false, false);
	find_places(fd, "deep::leaf", false, false);
	find_places(fd, "f", false, true);
	find_places(fd, "unit:step", true, false);
	list_markers(fd);
	(void)close(fd);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	replay_mutate = LLVMFuzzerCustomMutator;
	return replay_directory(FUZZ_REPLAY, 0, 32, 200);
}
#endif
