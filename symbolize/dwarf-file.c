/* SPDX-License-Identifier: Apache-2.0 */
/* A file with DWARF: opening and freeing it, and the limit on what is kept of its units. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "symbolize/dwarf-internal.h"

#define MAX_TEXTS_BYTES (UINT64_C(16) << 20) /* names and paths */

/* Finds .debug_x, or .zdebug_x, the compressed form of GNU tools before 2015. */
static const struct elf_section *section_find(const struct elf_image *im, const char *name,
					      bool *ret_zdebug)
{
	const struct elf_section *s = elf_image_find(im, name);
	char old[32];

	*ret_zdebug = false;
	if (s)
		return s;
	(void)snprintf(old, sizeof(old), ".z%s", name + 1);
	s = elf_image_find(im, old);
	*ret_zdebug = s != NULL;
	return s;
}

int dwarf_make(struct dwarf **ret, const struct elf_image *im, const struct symbol_limits *limits,
	       const char *const names[DWARF_N_SECTIONS])
{
	const struct elf_section *s[DWARF_N_SECTIONS] = {0};
	bool zdebug[DWARF_N_SECTIONS] = {0};
	struct dwarf *d;

	*ret = NULL;
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		if (names[i])
			s[i] = section_find(im, names[i], &zdebug[i]);
	if (im->fd < 0 || !s[DWARF_INFO] || !s[DWARF_ABBREV] || s[DWARF_INFO]->type == SHT_NOBITS)
		return 1;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->limits = *limits;
	d->loaded.max = UINT32_MAX;
	strtab_init(&d->texts, MAX_TEXTS_BYTES);
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++) {
		if (s[i] && s[i]->type != SHT_NOBITS)
			d->sections[i].header = *s[i];
		if (zdebug[i])
			d->sections[i].header.flags |= SHF_COMPRESSED;
	}
	d->image = (struct elf_image)ELF_IMAGE_INIT;
	d->image.n_bytes = im->n_bytes;
	d->image.is64 = im->is64;
	d->image.fd = fcntl(im->fd, F_DUPFD_CLOEXEC, 0);
	if (d->image.fd < 0) {
		int r = -errno;

		(void)dwarf_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

/* ---- What is kept of units ---- */

void dwarf_abbrevs_free(struct dwarf_abbrevs *a)
{
	if (!a)
		return;
	array_deinit(&a->items);
	array_deinit(&a->specs);
	free(a);
}

void dwarf_code_free(struct dwarf_code *c)
{
	if (!c)
		return;
	array_deinit(&c->nodes);
	array_deinit(&c->known);
	array_deinit(&c->map.changes);
	free(c);
}

static size_t code_bytes(const struct dwarf_code *c)
{
	return sizeof(*c) + array_bytes(&c->nodes) + array_bytes(&c->known) +
	       array_bytes(&c->map.changes);
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	array_deinit(&l->rows);
	array_deinit(&l->dirs);
	array_deinit(&l->files);
	free(l);
}

static size_t lines_bytes(const struct dwarf_lines *l)
{
	return sizeof(*l) + array_bytes(&l->rows) + array_bytes(&l->dirs) + array_bytes(&l->files);
}

static size_t unit_bytes(const struct dwarf_unit *u)
{
	return (u->abbrevs ? sizeof(*u->abbrevs) + array_bytes(&u->abbrevs->items) +
				     array_bytes(&u->abbrevs->specs)
			   : 0) +
	       (u->code ? code_bytes(u->code) : 0) + (u->lines ? lines_bytes(u->lines) : 0) +
	       (u->split ? dwarf_bytes(u->split) : 0);
}

static void unit_unload(struct dwarf *d, struct dwarf_unit *u)
{
	dwarf_abbrevs_free(u->abbrevs);
	dwarf_code_free(u->code);
	dwarf_lines_free(u->lines);
	u->abbrevs = NULL;
	u->code = NULL;
	u->lines = NULL;
	u->is_split_code = false;
	d->n_splits -= u->split != NULL;
	u->split = dwarf_free(u->split);
	d->n_unit_bytes -= u->n_bytes;
	u->n_bytes = 0;
}

bool dwarf_unit_account(struct dwarf *d, struct dwarf_unit *u)
{
	size_t n = unit_bytes(u);
	uint32_t *item;

	u->used = d->turn;
	if (n == u->n_bytes)
		return true;
	if (u->n_bytes == 0) {
		item = array_push(&d->loaded);
		if (!item) {
			unit_unload(d, u);
			return false;
		}
		*item = (uint32_t)(u - d->units.items);
	}
	d->n_unit_bytes += n - u->n_bytes;
	u->n_bytes = n;
	return true;
}

void dwarf_units_evict(struct dwarf *d, size_t max_bytes)
{
	while (d->n_unit_bytes > max_bytes) {
		uint32_t oldest = DWARF_NONE;

		for (uint32_t i = 0; i < d->loaded.n; i++) {
			const struct dwarf_unit *u = &d->units.items[d->loaded.items[i]];

			if (u->used != d->turn &&
			    (oldest == DWARF_NONE ||
			     u->used < d->units.items[d->loaded.items[oldest]].used))
				oldest = i;
		}
		if (oldest == DWARF_NONE)
			return;
		unit_unload(d, &d->units.items[d->loaded.items[oldest]]);
		d->loaded.items[oldest] = d->loaded.items[--d->loaded.n];
	}
}

static void units_forget(struct dwarf *d)
{
	for (uint32_t i = 0; i < d->loaded.n; i++)
		unit_unload(d, &d->units.items[d->loaded.items[i]]);
	array_deinit(&d->loaded);
}

/* ---- The end ---- */

static void package_close(struct dwarf *d)
{
	d->package = dwarf_package_free(d->package);
	d->package_asked = false;
	d->n_splits_missing = 0;
}

void dwarf_forget(struct dwarf *d)
{
	if (d->alt)
		dwarf_forget(d->alt);
	dwarf_sections_release(d, true);
	units_forget(d);
	package_close(d);
	array_deinit(&d->units);
	array_deinit(&d->map.changes);
	strtab_deinit(&d->texts);
	strtab_init(&d->texts, MAX_TEXTS_BYTES);
	for (size_t i = 0; i < DWARF_N_SECTIONS; i++)
		d->sections[i].bad = false;
	d->opened = d->no_memory = false;
}

struct dwarf *dwarf_free(struct dwarf *d)
{
	if (!d)
		return NULL;
	dwarf_forget(d);
	(void)dwarf_free(d->alt);
	(void)close_fd(d->image.fd);
	free(d);
	return NULL;
}

size_t dwarf_bytes(const struct dwarf *d)
{
	return sizeof(*d) + d->n_inflated + d->n_unit_bytes + array_bytes(&d->units) +
	       array_bytes(&d->map.changes) + array_bytes(&d->loaded) + strtab_bytes(&d->texts) +
	       (d->package ? dwarf_package_bytes(d->package) : 0) +
	       (d->alt ? dwarf_bytes(d->alt) : 0);
}
