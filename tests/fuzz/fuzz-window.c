/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: a window, and a table of perfwalk top, as they go from one process to another.
 * Their layout is that of this build's structs, so the input is what is wrong with sound ones: the
 * first byte says with which, then each 7 bytes are a place (3), how many bytes (1 to 8 by the
 * lowest 3 bits of one), and a value for them. Bytes behind the last whole row do not matter.
 */
#include "src/profile/profile.h"
#include "src/profile/window.h"
#include "src/screen/wire.h"
#include "tests/fuzz/input.h"
#include "tests/unit/synthetic.h"

#define MAX_BYTES (UINT64_C(16) << 20)
#define EDIT	  7

struct sound {
	uint8_t *bytes;
	size_t n;
};

static struct sound read_all(int fd)
{
	off_t n = lseek(fd, 0, SEEK_END);
	struct sound s = {malloc((size_t)n), (size_t)n};

	if (n <= 0 || !s.bytes || pread(fd, s.bytes, s.n, 0) != n)
		abort();
	(void)close(fd);
	return s;
}

static struct sound make_window(void)
{
	struct sound s;
	struct profile p;

	synthetic_small(&p);
	synthetic_add_types(&p, 1, 2);
	s = read_all(window_write(&p));
	profile_deinit(&p);
	return s;
}

static struct sound make_table(void)
{
	static struct top_table t;
	const struct top_row *process, *leaf;
	uint32_t node;

	top_table_init(&t);
	(void)top_table_add(&t, &(struct top_key){"main", "web", "web", "unit", 7, TOP_CODE_FILE},
			    1, 4);
	(void)top_table_add(&t, &(struct top_key){"read", "libc", "web", "", 7, TOP_CODE_RUNTIME},
			    3, 3);
	process = &t.rows.items[0];
	node = top_table_node(&t, TOP_NO_NODE, (uint32_t)(process - t.rows.items));
	leaf = &t.rows.items[1];
	(void)top_table_node(&t, node, (uint32_t)(leaf - t.rows.items));
	return read_all(top_table_write(&t));
}

static void read_window(int fd)
{
	struct profile p;

	profile_init(&p, MAX_BYTES);
	/* Twice: the second time every row is there already. */
	if (window_read(&p, fd, 1000, NULL, 0) == 0 && window_read(&p, fd, 2000, NULL, 0) < 0)
		abort();
	for (uint32_t i = 0; i < p.frames.n; i++)
		if (p.frames.items[i].module >= p.modules.n)
			abort();
	for (uint32_t i = 0; i < p.stack_frames.n; i++)
		if (p.stack_frames.items[i] >= p.frames.n)
			abort();
	profile_deinit(&p);
}

static void read_table(int fd)
{
	struct top_table t;

	top_table_init(&t);
	if (top_table_read(&t, fd) == 0) {
		for (uint32_t i = 0; i < t.rows.n; i++) {
			input_touch_text(strtab_get(&t.strings, t.rows.items[i].function));
			input_touch_text(strtab_get(&t.strings, t.rows.items[i].owner));
		}
		for (uint32_t i = 0; i < t.nodes.n; i++)
			if (t.nodes.items[i].row >= t.rows.n ||
			    (t.nodes.items[i].parent != TOP_NO_NODE &&
			     t.nodes.items[i].parent >= i))
				abort();
	}
	top_table_deinit(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct sound sound[2];
	struct sound *s;
	uint8_t *bytes;
	size_t n_bytes;
	int fd;

	if (!sound[0].n) {
		sound[0] = make_window();
		sound[1] = make_table();
	}
	if (n < 1)
		return 0;
	s = &sound[data[0] & 1];
	n_bytes = data[0] & 2 ? s->n - data[0] % s->n : s->n;
	bytes = malloc(s->n + 8);
	if (!bytes)
		abort();
	memcpy(bytes, s->bytes, s->n);
	for (size_t at = 1; n - at >= EDIT; at += EDIT) {
		size_t place = data[at] | (size_t)data[at + 1] << 8 | (size_t)data[at + 2] << 16;
		uint64_t value = data[at + 4] | (uint64_t)data[at + 5] << 8;

		value = data[at + 6] & 1 ? ~value : value << (data[at + 6] & 0x38);
		memcpy(bytes + place % s->n, &value, 1 + (data[at + 3] & 7));
	}
	fd = input_fd(bytes, n_bytes);
	if (data[0] & 1)
		read_table(fd);
	else
		read_window(fd);
	(void)close(fd);
	free(bytes);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 16, 5000);
}
#endif
