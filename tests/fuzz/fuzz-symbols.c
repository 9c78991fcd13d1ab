/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: an ELF file, with its debug file and what was split off it, one behind the
 * other (elf-parts.h). Its identity is taken, and addresses in and around its code are looked up,
 * for functions and for lines, between trims; and addresses behind it, for variables.
 *
 * seeds-symbols.sh makes the seeds.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "tests/fuzz/elf-parts.h"
#include "tests/unit/lookup.h"

#define N_ADDRESSES 48
#define STEP	    23 /* the code of the seeds is some hundreds of bytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct input {
	const uint8_t *data;
	struct elf_part parts[ELF_MAX_PARTS];
	unsigned int n_parts, n_asked;
};

static volatile size_t sink;

static int part_fd(const struct input *in, unsigned int i)
{
	const struct elf_part *p = &in->parts[i < in->n_parts ? i : in->n_parts - 1];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, in->data + p->at, p->n) != (ssize_t)p->n)
		abort();
	return fd;
}

/* The first request wants the second file, and so on; the last one may come again. */
static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *debuglink,
		      uint32_t crc)
{
	struct input *in = ctx;

	for (size_t i = 0; i < n; i++)
		sink += build_id[i];
	sink += (debuglink ? strlen(debuglink) : 0) + crc;
	return part_fd(in, ++in->n_asked);
}

static int open_split(void *ctx, const char *path)
{
	const struct input *in = ctx;

	sink += path ? strlen(path) : 0;
	return part_fd(in, in->n_parts - 1);
}

static void touch(const struct symbol *s)
{
	sink += strlen(s->name) + (s->file ? strlen(s->file) : 0) + s->line;
}

static void look_up(struct symbol_file *f, uint64_t address)
{
	struct symbol chain[SYMBOL_MAX_CHAIN], s;
	size_t n;

	if (symbol_file_lookup(f, address, &s) == 0)
		touch(&s);
	if (symbol_file_lines(f, address, chain, SYMBOL_MAX_CHAIN, &n) != 0)
		return;
	if (n < 1 || n > SYMBOL_MAX_CHAIN)
		abort();
	for (size_t i = 0; i < n; i++)
		touch(&chain[i]);
}

static void look_up_all(struct symbol_file *f)
{
	uint64_t start = symbol_file_code_start(f);

	for (unsigned int i = 0; i < N_ADDRESSES; i++) {
		look_up(f, start + i * STEP);
		if (i % 20 == 7)
			symbol_file_trim(f);
		if (i == 30)
			symbol_file_forget_lines(f);
	}
	look_up(f, 0);
	look_up(f, UINT64_MAX);
	sink += symbol_file_bytes(f) + symbol_file_line_bytes(f) + symbol_file_refused(f);
}

/* Variables lie some pages behind the code. */
static void find_data(int fd, const struct symbol_limits *limits, uint64_t code_start)
{
	uint64_t start;
	char name[64];

	for (uint64_t at = 0x1000; at <= 0x4000; at += 0x800) {
		memset(name, 'n', sizeof(name));
		if (symbol_find_data(fd, limits, code_start + at, name, sizeof(name), &start) != 0)
			continue;
		if (start > code_start + at || strlen(name) >= sizeof(name))
			abort();
		sink += strlen(name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct symbol_limits limits = {
		.max_file_bytes = 1 << 20,
		.max_inflate_bytes = 1 << 20,
		.max_inflate_dwarf_bytes = 1 << 20,
		.max_table_bytes = 1 << 20,
		.max_dwarf_bytes = 1 << 20,
		.max_line_bytes = 1 << 20,
	};
	struct input in = {.data = data};
	struct symbol_file *f = NULL;
	struct symbol_file_id id;
	int fd;

	in.n_parts = elf_parts(data, n, in.parts);
	fd = part_fd(&in, 0);
	if (symbol_file_identify(fd, &id) == 0)
		sink += id.n_gnu + strlen(id.go) + (id.language ? strlen(id.language) : 0);
	/* Where one file is all there is, in memory: a byte too far is seen there. */
	if ((in.n_parts > 1 ? symbol_file_new_fd(&f, fd, &limits, open_debug, &in)
			    : symbol_file_new_memory(&f, data, n, &limits)) == 0) {
		if (in.n_parts > 1)
			symbol_file_set_open_split(f, open_split, &in);
		look_up_all(f);
		find_data(fd, &limits, symbol_file_code_start(f));
	}
	f = symbol_file_free(f);
	(void)close_fd(fd);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	replay_mutate = LLVMFuzzerCustomMutator;
	return replay_directory(FUZZ_REPLAY, 0, 16, 100);
}
#endif
