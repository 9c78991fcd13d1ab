/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the file of strikes that outlives the daemon. The input is what follows the
 * first words of the file, whose sum is right but where the first byte is odd. What is read is what
 * a saved one gives again, and no file is set aside for longer than the longest time.
 */
#include <stdio.h>

#include "src/broker/strikes-file.h"
#include "tests/fuzz/input.h"
#include "util/clock.h"
#include "util/hash.h"

#define MAGIC	 "perfwalk strikes 1\n"
#define MAX_FILE (1 << 17)
#define NOW	 (UINT64_C(1000000) * NSEC_PER_SEC)

static const char *home;
static char saved[64];

static void clean_up(void)
{
	(void)unlink(saved);
	(void)rmdir(home);
}

static void write_file(const uint8_t *data, size_t n)
{
	static uint8_t bytes[MAX_FILE];
	uint64_t sum = hash_bytes(data + 1, n - 1, 0) + (data[0] & 1);
	FILE *f;

	memset(bytes, 0, 32);
	memcpy(bytes, MAGIC, sizeof(MAGIC));
	memcpy(bytes + 24, &sum, sizeof(sum));
	memcpy(bytes + 32, data + 1, n - 1);
	f = fopen(saved, "we");
	if (!f || fwrite(bytes, 1, n + 31, f) != n + 31 || fclose(f) != 0)
		abort();
}

static unsigned int look(struct strikes *s)
{
	unsigned int n = 0;
	uint32_t at = 0;
	const struct strike *k;

	if (s->n > STRIKES_MAX || s->next >= STRIKES_MAX)
		abort();
	while ((k = strikes_next(s, &at))) {
		if (k->who >= PEER_N ||
		    k->until_ns > NOW + (STRIKES_PERIOD_NS << STRIKES_MAX_DOUBLINGS))
			abort();
		input_touch_text(k->file.path);
		n++;
	}
	return n;
}

static void strike_again(struct strikes *s)
{
	for (uint32_t i = 0; i < s->n && i < 4; i++) {
		const struct status_file file = s->items[i].file;

		(void)strikes_add(s, s->items[i].who, &file, true, false, NOW);
	}
	(void)look(s);
	while (strikes_take_back(s, UINT64_MAX))
		;
	if (look(s))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct strikes s, again;
	unsigned int n_aside;

	if (n < 1 || n > MAX_FILE - 32)
		return 0;
	if (!*saved) {
		home = input_directory();
		if (atexit(clean_up))
			abort();
		(void)snprintf(saved, sizeof(saved), "%s/strikes", home);
	}
	write_file(data, n);
	memset(&s, 0, sizeof(s));
	memset(&again, 0, sizeof(again));
	s.period_ns = again.period_ns = STRIKES_PERIOD_NS;
	if (strikes_load(&s, saved, NOW) < 0) {
		if (s.n)
			abort();
		return 0;
	}
	if (data[0] & 1)
		abort();
	n_aside = look(&s);
	if (strikes_save(&s, saved, NOW) < 0 || strikes_load(&again, saved, NOW) < 0 ||
	    again.n != s.n || look(&again) > n_aside)
		abort();
	strike_again(&s);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 8, 200);
}
#endif
