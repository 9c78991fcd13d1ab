/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <zlib.h>

#include "unwind/internal.h"
#include "unwind/recorded.h"
#include "util/bisect.h"

enum { CHUNK_BYTES = 256 * 1024 };

static int complain(char *error, const char *what)
{
	(void)snprintf(error, RECORDED_ERROR_MAX, "%s", what);
	return -EBADMSG;
}

/* Blocks */

/* Makes the image of a binary: zeros, with the slices that follow in c. */
static int read_image(struct recorded *r, struct recorded_module *m, struct cursor *c, char *error)
{
	void *image;

	if (m->size == 0 || m->size > RECORDED_MAX_IMAGE_BYTES - r->n_image_bytes)
		return complain(error, "the binaries in it add up to more than 4 GiB");
	image = mmap(NULL, (size_t)m->size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED)
		return -ENOMEM;
	r->n_image_bytes += m->size;
	m->image = image;
	while (cursor_left(c) > 0) {
		uint64_t offset = cursor_u64(c);
		uint32_t n = cursor_u32(c);
		const uint8_t *bytes = cursor_take(c, n);

		if (!bytes || offset > m->size || n > m->size - offset)
			return complain(error, "a slice of a binary lies outside the binary");
		memcpy(m->image + offset, bytes, n);
	}
	/* So that it no longer counts as data (RLIMIT_DATA). */
	(void)mprotect(image, (size_t)m->size, PROT_READ);
	return 0;
}

static int read_module(struct recorded *r, struct cursor *c, char *error)
{
	struct recorded_module *m = array_push(&r->modules);

	if (!m)
		return complain(error, "more than 256 modules");
	m->size = cursor_u64(c);
	m->flags = cursor_u32(c);
	m->n_build_id = cursor_u32(c);
	m->build_id = cursor_take(c, m->n_build_id);
	m->path = cursor_string(c);
	if (!cursor_ok(c) || m->n_build_id > MODULE_MAX_BUILD_ID)
		return complain(error, "a module block is damaged");
	return read_image(r, m, c, error);
}

static int read_mappings(struct recorded *r, struct cursor *c, char *error)
{
	struct recorded_maps *maps = array_push(&r->maps);
	uint64_t last = 0;

	if (!maps)
		return complain(error, "too many blocks of mappings");
	maps->first = r->mappings.n;
	while (cursor_left(c) > 0) {
		struct recorded_mapping *m = array_push(&r->mappings);

		if (!m)
			return complain(error, "more than 65536 mappings");
		m->start = cursor_u64(c);
		m->end = cursor_u64(c);
		m->offset = cursor_u64(c);
		m->module = cursor_u32(c);
		if (!cursor_ok(c) || m->start < last || m->end <= m->start)
			return complain(error, "the mappings are damaged");
		if (m->module >= r->modules.n && m->module != RECORDED_ANONYMOUS &&
		    m->module != RECORDED_FILE_MISSING)
			return complain(error, "a mapping names a module that the file lacks");
		last = m->end;
	}
	maps->n = r->mappings.n - maps->first;
	return 0;
}

static int read_sample(struct recorded *r, struct cursor *c, char *error)
{
	struct recorded_sample *s = array_push(&r->samples);
	uint32_t n_regs;

	if (!s)
		return complain(error, "more than 4096 samples");
	s->maps = cursor_u32(c);
	n_regs = cursor_u32(c);
	if (n_regs != UNWIND_N_REGS)
		return complain(error, "a sample has registers of another architecture");
	for (uint32_t i = 0; i < n_regs; i++)
		s->regs.r[i] = cursor_u64(c);
	s->regs.valid = cursor_u64(c) & UNWIND_ALL_REGS;
	s->label = cursor_string(c);
	s->n_stack = cursor_left(c);
	s->stack = cursor_take(c, s->n_stack);
	if (!cursor_ok(c))
		return complain(error, "a sample is damaged");
	if (s->maps >= r->maps.n)
		return complain(error, "a sample names mappings that the file lacks");
	return 0;
}

static int read_block(struct recorded *r, struct cursor *c, char *error)
{
	uint32_t type = cursor_u32(c), n = cursor_u32(c);
	const uint8_t *bytes = cursor_take(c, n);
	struct cursor block;

	if (!bytes)
		return complain(error, "the file ends in the middle of a block");
	block = cursor_make(bytes, n);
	switch (type) {
	case RECORDED_MODULE:
		return read_module(r, &block, error);
	case RECORDED_MAPPINGS:
		return read_mappings(r, &block, error);
	case RECORDED_SAMPLE:
		return read_sample(r, &block, error);
	default:
		return 0;
	}
}

static const char *machine_name(uint32_t machine)
{
	return machine == EM_X86_64    ? "x86_64"
	       : machine == EM_AARCH64 ? "aarch64"
	       : machine == EM_RISCV   ? "riscv64"
				       : NULL;
}

static int refuse_machine(uint32_t machine, char *error)
{
	const char *name = machine_name(machine);
	char number[32];

	(void)snprintf(number, sizeof(number), "ELF machine %u", machine);
	(void)snprintf(error, RECORDED_ERROR_MAX,
		       "samples of %s; this perfwalk walks those of %s only", name ? name : number,
		       machine_name(ARCH_ELF_MACHINE));
	return -EBADMSG;
}

static int parse(struct recorded *r, char *error)
{
	struct cursor c = cursor_make(r->bytes, r->n_bytes);
	const char *magic = cursor_take(&c, sizeof(RECORDED_MAGIC) - 1);
	uint32_t version = cursor_u32(&c), machine = cursor_u32(&c);
	int e = 0;

	if (!cursor_ok(&c) || memcmp(magic, RECORDED_MAGIC, sizeof(RECORDED_MAGIC) - 1) != 0)
		return complain(error, "not a file of recorded samples");
	if (version != RECORDED_VERSION) {
		(void)snprintf(error, RECORDED_ERROR_MAX,
			       "recorded samples of version %u; this perfwalk reads version %u",
			       version, RECORDED_VERSION);
		return -EBADMSG;
	}
	if (machine != ARCH_ELF_MACHINE)
		return refuse_machine(machine, error);
	while (cursor_left(&c) > 0 && e == 0)
		e = read_block(r, &c, error);
	return e;
}

/* Files */

static struct recorded *new_recorded(void)
{
	struct recorded *r = calloc(1, sizeof(*r));

	if (r) {
		r->modules.max = RECORDED_MAX_MODULES;
		r->mappings.max = RECORDED_MAX_MAPPINGS;
		r->maps.max = RECORDED_MAX_SAMPLES;
		r->samples.max = RECORDED_MAX_SAMPLES;
	}
	return r;
}

int recorded_parse(struct recorded **ret, const uint8_t *bytes, size_t n,
		   char error[RECORDED_ERROR_MAX])
{
	_cleanup_(recorded_freep) struct recorded *r = new_recorded();
	int e;

	*error = '\0';
	if (!r)
		return -ENOMEM;
	r->bytes = malloc(n ? n : 1);
	if (!r->bytes)
		return -ENOMEM;
	memcpy(r->bytes, bytes, n);
	r->n_bytes = n;
	e = parse(r, error);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

/* gzread() passes data that is not compressed through unchanged. */
static int read_all(struct recorded *r, gzFile f, char *error)
{
	size_t cap = 0;

	for (;;) {
		int got;

		if (r->n_bytes == cap) {
			uint8_t *bytes = cap >= RECORDED_MAX_BYTES
						 ? NULL
						 : realloc(r->bytes, cap += CHUNK_BYTES);

			if (!bytes)
				return cap >= RECORDED_MAX_BYTES
					       ? complain(error, "the file is larger than 64 MiB")
					       : -ENOMEM;
			r->bytes = bytes;
		}
		got = gzread(f, r->bytes + r->n_bytes, (unsigned int)(cap - r->n_bytes));
		if (got < 0)
			return complain(error, "the compressed data is damaged");
		if (got == 0)
			break;
		r->n_bytes += (size_t)got;
	}
	return 0;
}

int recorded_read(struct recorded **ret, int fd, char error[RECORDED_ERROR_MAX])
{
	_cleanup_(recorded_freep) struct recorded *r = new_recorded();
	int own = dup(fd), e;
	gzFile f;

	*error = '\0';
	if (own < 0)
		return -errno;
	f = gzdopen(own, "rb");
	if (!f || !r) {
		if (f)
			(void)gzclose(f);
		else
			(void)close(own);
		return -ENOMEM;
	}
	e = read_all(r, f, error);
	/* gzread() ends without an error where a stream was cut short. */
	if (gzclose(f) == Z_BUF_ERROR && e == 0)
		e = complain(error, "the compressed data ends too early");
	if (e == 0)
		e = parse(r, error);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

struct recorded *recorded_free(struct recorded *r)
{
	if (!r)
		return NULL;
	for (uint32_t i = 0; i < r->modules.n; i++) {
		struct recorded_module *m = &r->modules.items[i];

		unwind_module_free(m->module);
		if (m->image)
			(void)munmap(m->image, (size_t)m->size);
	}
	array_deinit(&r->modules);
	array_deinit(&r->mappings);
	array_deinit(&r->maps);
	array_deinit(&r->samples);
	free(r->bytes);
	free(r);
	return NULL;
}

/* Walking */

int recorded_open(struct recorded *r, struct unwinder *u)
{
	for (uint32_t i = 0; i < r->modules.n; i++) {
		struct recorded_module *m = &r->modules.items[i];

		if (unwind_module_new_memory(&m->module, u, m->image, (size_t)m->size, m->path) ==
		    -ENOMEM)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < r->mappings.n; i++) {
		struct recorded_mapping *map = &r->mappings.items[i];
		struct unwind_module *m =
			map->module < r->modules.n ? r->modules.items[map->module].module : NULL;

		/* As for a live process: a mapping that no program header covers has no module. */
		if (m && !unwind_module_bias(m, map->start, map->offset, &map->bias))
			map->module = RECORDED_FILE_MISSING;
	}
	return 0;
}

bool recorded_find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	const struct recorded *r = ctx;
	const struct recorded_maps *maps = &r->maps.items[r->current];
	const struct recorded_mapping *m;
	uint32_t at = bisect(maps->n, i, r->mappings.items[maps->first + i].end <= pc);

	if (at == maps->n || pc < r->mappings.items[maps->first + at].start)
		return false;
	m = &r->mappings.items[maps->first + at];
	*ret = (struct unwind_mapping){
		.start = m->start,
		.end = m->end,
		.bias = m->bias,
		.tag = maps->first + at,
		.module = m->module < r->modules.n ? r->modules.items[m->module].module : NULL,
	};
	ret->file_missing = !ret->module && m->module != RECORDED_ANONYMOUS;
	return true;
}

enum unwind_outcome recorded_walk(struct recorded *r, struct unwinder *u, uint32_t i,
				  struct unwind_frame *frames, size_t max_frames, size_t *ret_n)
{
	const struct recorded_sample *s = &r->samples.items[i];

	r->current = s->maps;
	return unwind_walk(u, &s->regs, s->stack, s->n_stack, recorded_find, r, frames, max_frames,
			   ret_n);
}
