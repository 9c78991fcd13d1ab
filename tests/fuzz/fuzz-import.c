/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a recorded file, read and rendered again. The first byte says the format.
 *
 * With a main of its own (FUZZ_REPLAY) it reads the files named, as make check does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/import/import.h"
#include "src/render/render.h"

#define MAX_BYTES (UINT64_C(16) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void render_all(const struct profile *p)
{
	static const struct render_info info = {.version = "fuzz"};
	static const struct render_report_options options = {
		.n_keys = 3, .keys = {REPORT_COMM, REPORT_LINE, REPORT_SYMBOL}, .callers = true};
	FILE *out = fopen("/dev/null", "we");

	if (!out)
		abort();
	(void)render_folded(p, &info, out);
	(void)render_pprof(p, &info, out);
	(void)render_otlp_file(p, &info, out);
	(void)render_report(p, &info, &options, out);
	(void)render_diff(p, p, &options, out);
	(void)fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const enum import_kind kinds[] = {IMPORT_FOLDED, IMPORT_PPROF, IMPORT_OTLP};
	char error[IMPORT_ERROR_MAX] = "";
	struct import_facts facts = {0};
	struct profile p;
	int fd, r;

	if (n < 2)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 1, n - 1) != (ssize_t)(n - 1))
		abort();
	profile_init(&p, MAX_BYTES);
	r = import_fd(&p, &facts, fd, kinds[data[0] % 3], NULL, MAX_BYTES, error);
	if (r < 0 && !*error)
		abort(); /* a refusal says why */
	render_all(&p);
	profile_deinit(&p);
	import_facts_deinit(&facts);
	(void)close(fd);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 1 /* the format stays */, 64, 50);
}
#endif
