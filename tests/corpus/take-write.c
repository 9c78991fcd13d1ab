/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>

#include "tests/corpus/relation.h"
#include "tests/corpus/take.h"

enum { MAX_EXTRA = 16 }; /* frames of libdw's that are shown beyond ours: it may go in circles */

/* The block under construction. */
struct block {
	uint8_t *bytes;
	size_t n, cap;
};

static void put(struct block *b, const void *data, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = (b->n + n) * 2 + 4096;
		b->bytes = realloc(b->bytes, b->cap);
		if (!b->bytes)
			abort();
	}
	memcpy(b->bytes + b->n, data, n);
	b->n += n;
}

static void put_u32(struct block *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put_u64(struct block *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static void put_text(struct block *b, const char *text)
{
	put(b, text, strlen(text) + 1);
}

static void end_block(gzFile out, struct block *b, enum recorded_block type)
{
	uint32_t head[2] = {type, (uint32_t)b->n};

	(void)gzwrite(out, head, sizeof(head));
	(void)gzwrite(out, b->bytes, (unsigned int)b->n);
	b->n = 0;
}

/* Of a system's file the path, of ours the name: it was built wherever make.sh was run. */
static const char *shown_path(const struct take_file *f)
{
	const char *name = strrchr(f->path, '/');

	return strncmp(f->path, "/usr/", 5) == 0 || !name ? f->path : name + 1;
}

static void put_slices(struct block *b, const struct touch_range *r)
{
	for (uint64_t at = 0; at < r->n;) {
		uint64_t end = at;

		while (end < r->n && touch_is_marked(r, end))
			end += TOUCH_GRANULE;
		if (end > r->n)
			end = r->n;
		if (end > at) {
			put_u64(b, at);
			put_u32(b, (uint32_t)(end - at));
			put(b, r->start + at, end - at);
		}
		at = end + TOUCH_GRANULE - end % TOUCH_GRANULE;
	}
}

static void write_file(gzFile out, struct block *b, const struct take_file *f)
{
	const uint8_t *id = NULL;
	size_t n_id = 0;

	if (f->module)
		id = unwind_module_build_id(f->module, &n_id);
	put_u64(b, f->bytes.n);
	put_u32(b, f->vdso ? RECORDED_VDSO : 0);
	put_u32(b, (uint32_t)n_id);
	put(b, id ? id : (const uint8_t *)"", n_id);
	put_text(b, shown_path(f));
	put_slices(b, &f->bytes);
	end_block(out, b, RECORDED_MODULE);
}

/* All mappings of a file that is wanted, so that it has its neighbours. */
static bool is_wanted(const struct take *t, const struct take_maps *maps, const struct take_line *l)
{
	bool wanted = l->wanted;

	for (uint32_t i = 0; i < maps->lines.n && l->file < t->files.n; i++)
		wanted |= maps->lines.items[i].file == l->file && maps->lines.items[i].wanted;
	return wanted;
}

static void write_files_and_maps(struct take *t, gzFile out, struct block *b)
{
	uint32_t n_files = 0, n_maps = 0;

	for (uint32_t i = 0; i < t->maps.n; i++) {
		struct take_maps *maps = &t->maps.items[i];

		for (uint32_t k = 0; k < maps->lines.n && maps->block; k++) {
			struct take_line *l = &maps->lines.items[k];

			if (l->file < t->files.n && is_wanted(t, maps, l) &&
			    !t->files.items[l->file].block) {
				write_file(out, b, &t->files.items[l->file]);
				t->files.items[l->file].block = ++n_files;
			}
		}
	}
	for (uint32_t i = 0; i < t->maps.n; i++) {
		struct take_maps *maps = &t->maps.items[i];

		if (!maps->block)
			continue;
		for (uint32_t k = 0; k < maps->lines.n; k++) {
			const struct take_line *l = &maps->lines.items[k];

			if (!is_wanted(t, maps, l))
				continue;
			put_u64(b, l->start);
			put_u64(b, l->end);
			put_u64(b, l->offset);
			put_u32(b,
				l->file < t->files.n ? t->files.items[l->file].block - 1 : l->file);
		}
		end_block(out, b, RECORDED_MAPPINGS);
		maps->block = ++n_maps;
	}
}

static void write_sample(struct take *t, gzFile out, struct block *b, const struct take_sample *s,
			 const char *label)
{
	put_u32(b, t->maps.items[s->maps].block - 1);
	put_u32(b, UNWIND_N_REGS);
	for (int i = 0; i < UNWIND_N_REGS; i++)
		put_u64(b, s->regs.r[i]);
	put_u64(b, s->regs.valid);
	put_text(b, label);
	put(b, s->stack, s->n_stack);
	end_block(out, b, RECORDED_SAMPLE);
}

/* ---- What is expected ---- */

static struct oracle *names_of(struct take *t)
{
	static char names[TOUCH_MAX_RANGES][32];
	struct oracle *o = oracle_new();

	for (uint32_t i = 0; i < t->current->lines.n && i < TOUCH_MAX_RANGES; i++) {
		const struct take_line *l = &t->current->lines.items[i];

		(void)snprintf(names[i], sizeof(names[i]), "%u", i);
		if (l->wanted && l->file < t->files.n)
			(void)oracle_add(o, &(struct oracle_module){
						    names[i], t->files.items[l->file].fd, l->bias});
	}
	oracle_ready(o);
	return o;
}

static void print_frame(struct take *t, struct oracle *o, uint64_t address, const char *indent,
			FILE *out)
{
	struct unwind_mapping m;
	char symbol[256];

	if (!take_find(t, address, &m)) {
		(void)fprintf(out, "%s[none]+%#" PRIx64 "\n", indent, address);
	} else if (!m.module) {
		(void)fprintf(out, "%s%s+%#" PRIx64 "\n", indent,
			      m.file_missing ? "[missing]" : "[anonymous]", address);
	} else {
		const struct take_file *f = &t->files.items[t->current->lines.items[m.tag].file];
		const char *name = strrchr(f->path, '/');

		(void)oracle_symbol(o, address, symbol, sizeof(symbol));
		(void)fprintf(out, "%s%s+%#" PRIx64 "%s%s\n", indent, name ? name + 1 : f->path,
			      address - m.bias, *symbol ? " " : "", symbol);
	}
}

static void print_expected(struct take *t, uint32_t i, const struct take_sample *s, FILE *out)
{
	enum relation relation = relation_of(s->ours, s->n_ours, s->theirs, s->n_theirs);
	struct oracle *o;

	t->current = &t->maps.items[s->maps];
	o = names_of(t);
	(void)fprintf(out, "sample %u: %s, %s%s\n", i, unwind_outcome_name(s->outcome),
		      relation_names[relation], t->ours_only ? RELATION_OF_WHOLE_FILES : "");
	for (size_t k = 0; k < s->n_ours; k++)
		print_frame(t, o, s->ours[k], "\t", out);
	if (relation != RELATION_IDENTICAL) {
		(void)fprintf(out, "    libdw has %zu\n", s->n_theirs);
		for (size_t k = 0; k < s->n_theirs && k < s->n_ours + MAX_EXTRA; k++) {
			if (k >= s->n_ours || s->ours[k] != s->theirs[k])
				print_frame(t, o, s->theirs[k], "    \t", out);
		}
	}
	oracle_free(o);
}

int take_write(struct take *t, const char *path, const char *expect_path, const char *label)
{
	const uint32_t head[2] = {RECORDED_VERSION, ARCH_ELF_MACHINE};
	FILE *expect = fopen(expect_path, "we");
	gzFile out = gzopen(path, "wb9");
	struct block b = {NULL, 0, 0};
	bool good = expect && out;

	for (uint32_t i = 0; i < t->samples.n; i++)
		t->maps.items[t->samples.items[i]->maps].block = 1;
	if (good) {
		(void)gzwrite(out, RECORDED_MAGIC, sizeof(RECORDED_MAGIC) - 1);
		(void)gzwrite(out, head, sizeof(head));
		write_files_and_maps(t, out, &b);
		for (uint32_t i = 0; i < t->samples.n; i++) {
			write_sample(t, out, &b, t->samples.items[i], label);
			print_expected(t, i, t->samples.items[i], expect);
		}
	}
	free(b.bytes);
	if (out)
		good &= gzclose(out) == Z_OK;
	if (expect)
		good &= fclose(expect) == 0;
	return good ? 0 : -EIO;
}
