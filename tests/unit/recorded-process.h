/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the tests of all runtimes do with a recorded process (tests/runtimes/recording.h): open it,
 * walk all its samples, take some of its memory away, and cut its stacks short.
 */
#include "config.h"

#include "runtimes/memory.h"
#include "tests/runtimes/recording.h"
#include "tests/unit/recorded-file.h"
#include "tests/unit/test.h"

struct recorded_process {
	const char *prefix; /* of its files, below tests/data */
	/* Opens the runtime in p->memory, anew if it is open: 0 or -errno. */
	int (*start)(const struct recorded_process *p);
	void (*stop)(void);
	/* Walks one sample and prints what it finds. */
	void (*walk)(const struct recorded_walk *sample, FILE *out);
	/* While it is open: */
	uint8_t *bytes;
	struct recording recorded;
	struct memory memory;
};

static inline void recorded_process_open(struct recorded_process *p, const char *version)
{
	size_t n;

	p->bytes = (uint8_t *)recorded_file_load(p->prefix, version, "gz", &n);
	CHECK(recording_parse(&p->recorded, p->bytes, n));
	p->memory = (struct memory){.read = recording_read, .ctx = &p->recorded};
	CHECK_INT(p->start(p), ==, 0);
}

static inline void recorded_process_close(struct recorded_process *p)
{
	p->stop();
	recording_deinit(&p->recorded);
	free(p->bytes);
}

/* The bytes of the range that holds an address; NULL: none does. */
static inline uint8_t *recorded_process_at(const struct recorded_process *p, uint64_t at)
{
	for (uint32_t i = 0; i < p->recorded.n_ranges; i++) {
		const struct recorded_range *r = &p->recorded.ranges[i];

		if (at >= r->at && at - r->at < r->n)
			return p->bytes + (r->bytes - p->bytes) + (at - r->at);
	}
	return NULL;
}

/* What the walks of all samples print; free(). */
static inline char *recorded_process_walk(const struct recorded_process *p)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	for (uint32_t i = 0; i < p->recorded.n_samples; i++)
		p->walk(&p->recorded.samples[i], f);
	CHECK_INT(fclose(f), ==, 0);
	return text;
}

/* The walks find what was looked through when the process was recorded: at first, and again by what
 * they remember. What they print; free(). */
static inline char *recorded_process_check(const struct recorded_process *p, const char *version)
{
	size_t n;
	char *expected = recorded_file_load(p->prefix, version, "expect", &n);
	char *cold = recorded_process_walk(p), *warm = recorded_process_walk(p);

	CHECK_STR(cold, expected);
	CHECK_STR(warm, expected);
	free(warm);
	free(expected);
	return cold;
}

/*
 * With the memory of one range gone, walks end; no function appears that was in no walk before.
 * Takes some n_at_most ranges away, one after the other. no_names: with what lines begin that name
 * no function.
 */
static inline void recorded_process_lose(struct recorded_process *p, uint32_t n_at_most,
					 const char *no_names)
{
	char *before = recorded_process_walk(p);
	uint32_t step = 1 + p->recorded.n_ranges / n_at_most;
	int ended = 0;

	for (uint32_t gone = 0; gone < p->recorded.n_ranges; gone += step) {
		uint32_t n = p->recorded.ranges[gone].n;
		char *after;

		p->recorded.ranges[gone].n = 0;
		if (p->start(p) == 0) {
			after = recorded_process_walk(p);
			ended += strcmp(after, before) != 0;
			/* Without a line number, a file or a level, or an end. */
			for (char *line = strtok(after, "\n"); line; line = strtok(NULL, "\n")) {
				char name[256];

				if (sscanf(line, "  %255[^( ] (", name) == 1 &&
				    !strchr(no_names, name[0]))
					CHECK(strstr(before, name) != NULL);
			}
			free(after);
		}
		p->recorded.ranges[gone].n = n;
	}
	CHECK_INT(ended, >, 10);
	free(before);
	CHECK_INT(p->start(p), ==, 0);
}

/* Stack copies of any size have their frames, and then end. What the shortest print; free(). */
static inline char *recorded_process_cut(struct recorded_process *p)
{
	struct recorded_walk *samples = p->recorded.samples;
	char *whole = recorded_process_walk(p), *cut;

	for (uint32_t size = 0; size < 2000; size += 40) {
		for (uint32_t i = 0; i < p->recorded.n_samples; i++)
			samples[i].n = samples[i].n < size ? samples[i].n : size;
		free(recorded_process_walk(p));
	}
	for (uint32_t i = 0; i < p->recorded.n_samples; i++)
		samples[i].n = 64;
	cut = recorded_process_walk(p);
	CHECK_INT(strlen(cut), <, strlen(whole));
	free(whole);
	return cut;
}

/* KiB of data that this program has, as the kernel counts them. 0 with sanitizers, which keep what
 * is freed. */
static inline long recorded_process_data_kib(void)
{
#ifdef WITH_SANITIZERS
	return 0;
#else
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmData: %ld", &kib);
	CHECK(f && kib > 0);
	(void)fclose(f);
	return kib;
#endif
}
