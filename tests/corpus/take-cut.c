/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be kept: both unwinders walk the sample over the whole files, with nothing compiled
 * or cached yet, and every byte that they read of a file or of the stack is noted. Nobody has to
 * know how they search.
 */
#include <stdio.h>

#include "tests/corpus/take.h"

enum {
	CODE_BEFORE = 24, /* of each frame: shows the call, and where in the function it is */
	CODE_AFTER = 24,
	STACK_SLACK = 64,
};

static uint32_t line_of(const struct take_maps *maps, uint64_t address)
{
	for (uint32_t i = 0; i < maps->lines.n; i++) {
		if (address >= maps->lines.items[i].start && address < maps->lines.items[i].end)
			return i;
	}
	return UINT32_MAX;
}

static enum unwind_outcome walk_ours(struct take *t, struct take_sample *s)
{
	static struct unwind_frame frames[TAKE_MAX_FRAMES];
	enum unwind_outcome outcome = unwind_walk(t->u, &s->regs, s->stack, s->n_copied, take_find,
						  t, frames, TAKE_MAX_FRAMES, &s->n_ours);

	for (size_t i = 0; i < s->n_ours; i++)
		s->ours[i] = frames[i].address;
	return outcome;
}

/* Modules for libdw: each file once for each bias that it is mapped with. */
static struct oracle *make_oracle(struct take *t)
{
	struct oracle *o = oracle_new();
	static char names[TOUCH_MAX_RANGES][32];
	struct take_maps *maps = t->current;

	for (uint32_t i = 0; i < maps->lines.n && i < TOUCH_MAX_RANGES; i++) {
		struct take_line *l = &maps->lines.items[i];
		struct unwind_mapping m;
		bool again = false;

		if (l->file >= t->files.n)
			continue;
		/* The bias, from our reading of the program headers. */
		bool was_wanted = l->wanted;

		if (!take_find(t, l->start, &m) || !m.module)
			continue;
		l->wanted = was_wanted;
		for (uint32_t k = 0; k < i; k++)
			again |= maps->lines.items[k].file == l->file &&
				 maps->lines.items[k].bias == l->bias;
		(void)snprintf(names[i], sizeof(names[i]), "%u", i);
		if (!again &&
		    !oracle_add(o, &(struct oracle_module){names[i], t->files.items[l->file].fd,
							   l->bias}))
			fprintf(stderr, "take: libdw does not take %s\n",
				t->files.items[l->file].path);
	}
	oracle_ready(o);
	return o;
}

/* libdw has each file mapped for itself; what it reads there is as needed as what we read. */
struct shadow {
	struct touch_range range;
	struct take_file *file;
};

static size_t find_shadows(struct take *t, struct oracle *o, const struct take_sample *s,
			   struct shadow *shadows, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_theirs + s->n_ours && n < max; i++) {
		uint64_t a = i < s->n_theirs ? s->theirs[i] : s->ours[i - s->n_theirs];
		uint32_t line = line_of(t->current, a);
		const uint8_t *image;
		bool known = false;
		size_t size;

		if (line == UINT32_MAX || t->current->lines.items[line].file >= t->files.n)
			continue;
		image = oracle_image(o, a, &size);
		for (size_t k = 0; k < n; k++)
			known |= shadows[k].range.start == image;
		if (!image || known || (uintptr_t)image % 4096)
			continue;
		shadows[n].file = &t->files.items[t->current->lines.items[line].file];
		shadows[n++].range = (struct touch_range){(uint8_t *)(uintptr_t)image, size,
							  calloc(size / TOUCH_GRANULE / 8 + 64, 1)};
	}
	return n;
}

static void merge_shadows(const struct take *t, struct shadow *shadows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct touch_range *r = &shadows[i].range, *to = &shadows[i].file->bytes;

		for (size_t k = 0;
		     k < r->n / TOUCH_GRANULE / 8 + 1 && r->n == to->n && !t->ours_only; k++)
			to->bits[k] |= r->bits[k];
		free(r->bits);
	}
}

static void mark_code(struct take *t, const uint64_t *addresses, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t line = line_of(t->current, addresses[i]);
		struct take_line *l = line == UINT32_MAX ? NULL : &t->current->lines.items[line];
		uint64_t offset = l ? addresses[i] - l->start + l->offset : 0;

		if (!l || l->file >= t->files.n)
			continue;
		l->wanted = true;
		touch_mark(&t->files.items[l->file].bytes,
			   offset > CODE_BEFORE ? offset - CODE_BEFORE : 0,
			   CODE_BEFORE + CODE_AFTER);
	}
}

/* The last byte of the stack that somebody read. */
static size_t needed_stack(const struct touch_range *r, size_t n_copied)
{
	size_t n = 0;

	for (size_t at = 0; at < n_copied; at += TOUCH_GRANULE) {
		if (touch_is_marked(r, at))
			n = at;
	}
	n += STACK_SLACK;
	return n < n_copied ? n : n_copied;
}

/*
 * Stub sections are copied whole when a module is opened, and are megabytes in large libraries; of
 * them only the code around each frame is kept. Called once for a file, before that is marked.
 */
static void forget_stubs(struct take_file *f)
{
	const struct unwind_module *m = f->module;

	for (uint32_t i = 0; i < m->n_stubs; i++) {
		uint64_t vaddr = m->base + m->stubs[i].start;

		for (uint32_t k = 0; k < m->n_segments && m->stubs[i].n_bytes > 4096; k++) {
			const struct segment *s = &m->segments[k];

			if (vaddr - s->vaddr < s->filesz)
				touch_clear(&f->bytes, vaddr - s->vaddr + s->offset,
					    m->stubs[i].n_bytes);
		}
	}
}

int take_cut(struct take *t, struct take_sample *s)
{
	static struct touch_range ranges[TOUCH_MAX_RANGES];
	static struct shadow shadows[TOUCH_MAX_RANGES];
	static uint8_t stack_bits[TAKE_STACK_BYTES / TOUCH_GRANULE / 8 + 64];
	const struct unwind_limits small = {256, 4 << 20, 32 << 20};
	struct touch_range stack = {s->stack, TAKE_STACK_BYTES, stack_bits};
	struct oracle *o;
	size_t n = 0, n_shadows;

	t->current = &t->maps.items[s->maps];
	memset(stack_bits, 0, sizeof(stack_bits));
	/* Ours: a module is opened by the walk itself, the first time. */
	take_close_modules(t);
	t->u = unwinder_free(t->u);
	if (unwinder_new(&t->u, &small) < 0)
		return -ENOMEM;
	ranges[n++] = stack;
	for (uint32_t i = 0; i < t->files.n && n < TOUCH_MAX_RANGES; i++) {
		struct take_file *f = &t->files.items[i];

		if (f->bytes.start)
			ranges[n++] = f->bytes;
		if (f->watched)
			(void)take_open_module(t, f);
	}
	touch_begin(ranges, n);
	s->outcome = walk_ours(t, s);
	touch_end();
	for (uint32_t i = 0; i < t->files.n; i++) {
		struct take_file *f = &t->files.items[i];

		if (f->module && !f->watched)
			forget_stubs(f);
		f->watched |= f->module != NULL;
	}
	/* libdw: once to know the modules, once to watch. */
	o = make_oracle(t);
	s->n_theirs = oracle_walk(o, &s->regs, s->stack, s->n_copied, s->theirs, TAKE_MAX_FRAMES);
	oracle_free(o);
	o = make_oracle(t);
	n_shadows = find_shadows(t, o, s, shadows, TOUCH_MAX_RANGES - 1);
	for (size_t i = 0; i < n_shadows; i++)
		ranges[i] = shadows[i].range;
	ranges[n_shadows] = stack;
	touch_begin(ranges, n_shadows + 1);
	s->n_theirs = oracle_walk(o, &s->regs, s->stack, s->n_copied, s->theirs, TAKE_MAX_FRAMES);
	touch_end();
	oracle_free(o);
	merge_shadows(t, shadows, n_shadows);
	mark_code(t, s->ours, s->n_ours);
	mark_code(t, s->theirs, s->n_theirs);
	s->n_stack = needed_stack(&stack, s->n_copied);
	return 0;
}
