/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF, from gcc and clang with -gsplit-dwarf.
 *
 * The program holds a skeleton of each unit: its ranges, its line table, its addresses, and the
 * name of a file with the rest. That is a .dwo file, or a part of a package of all of them. The
 * split file is a struct dwarf of its own that asks its main file for addresses and (DWARF 4)
 * ranges. A lookup opens it at the first address in the unit, and an id of 64 bits proves that it
 * belongs there. Its functions become those of the unit. Only names are read from it later, so it
 * can be closed at any time and opened again. We follow a skeleton once, and ignore a split unit
 * that names another file.
 *
 * If the split file is missing, we read the functions and inlined calls that the skeleton itself
 * may have (clang, -fsplit-dwarf-inlining).
 */
#include <dwarf.h>
#include <elf.h>
#include <errno.h>

#include "symbolize/dwarf-internal.h"

#define MAX_OPEN    64 /* split files; each has a descriptor */
#define MAX_PATH    4096
#define MAX_MISSING 64 /* in a row; then we assume that this host has none, and stop asking */

static const char *const split_sections[DWARF_N_SECTIONS] = {
	[DWARF_INFO] = ".debug_info.dwo",	  [DWARF_ABBREV] = ".debug_abbrev.dwo",
	[DWARF_STR] = ".debug_str.dwo",		  [DWARF_STR_OFFSETS] = ".debug_str_offsets.dwo",
	[DWARF_RNGLISTS] = ".debug_rnglists.dwo",
};

static struct dwarf_unit *unit_of(const struct dwarf_unit *u)
{
	return dwarf_unit_of_id(u->split, u->dwo_id);
}

/* Copies to a split unit what it inherits from its skeleton. */
static void unit_join(const struct dwarf_unit *skeleton, struct dwarf_unit *u)
{
	u->addr_base = skeleton->addr_base;
	u->low_pc = skeleton->low_pc;
	if (u->version < 5)
		u->rnglists_base = skeleton->rnglists_base;
}

/* Uses the opened file if it holds the unit. */
static struct dwarf_unit *split_take(struct dwarf *d, struct dwarf_unit *u, struct dwarf *split)
{
	struct dwarf_unit *found;

	split->main = d;
	split->turn = d->turn;
	dwarf_ensure_open(split);
	split->code_start = d->code_start;
	split->code_end = d->code_end;
	found = dwarf_unit_of_id(split, u->dwo_id);
	if (!found) {
		d->n_refused++;
		(void)dwarf_free(split);
		return NULL;
	}
	unit_join(u, found);
	u->split = split;
	u->language = found->language;
	d->n_splits++;
	return found;
}

static struct dwarf_unit *open_in_package(struct dwarf *d, struct dwarf_unit *u)
{
	struct dwarf *split;
	int fd;

	if (!d->package_asked) {
		d->package_asked = true;
		fd = d->open_split(d->open_split_ctx, NULL);
		if (fd >= 0 && dwarf_package_new(&d->package, fd) < 0)
			d->n_refused++;
	}
	if (!d->package ||
	    dwarf_make(&split, dwarf_package_image(d->package), &d->limits, split_sections) != 0)
		return NULL;
	if (!dwarf_package_find(d->package, u->dwo_id, split->sections)) {
		(void)dwarf_free(split);
		return NULL;
	}
	return split_take(d, u, split);
}

/* Appends the parts of a path; ".." removes the last one. False: too long. */
static bool path_append(char path[MAX_PATH], size_t *n, const char *parts)
{
	while (*(parts += strspn(parts, "/"))) {
		size_t n_part = strcspn(parts, "/");

		if (n_part == 2 && parts[0] == '.' && parts[1] == '.') {
			while (*n > 0 && path[--*n] != '/')
				;
		} else if (n_part > 1 || parts[0] != '.') {
			if (n_part >= MAX_PATH - *n - 1)
				return false;
			path[(*n)++] = '/';
			memcpy(path + *n, parts, n_part);
			*n += n_part;
		}
		parts += n_part;
	}
	path[*n] = '\0';
	return true;
}

/* Where the compiler has put the file; relative if it does not give its directory; "": unknown. */
static const char *split_path(struct dwarf *d, const struct dwarf_unit *u, char path[MAX_PATH])
{
	const char *dir, *name;
	size_t n = 0;

	dwarf_unit_split_names(d, u, &dir, &name);
	if ((*name != '/' && !path_append(path, &n, dir)) || !path_append(path, &n, name))
		return "";
	return *name == '/' || *dir == '/' || n == 0 ? path : path + 1;
}

/*
 * A .dwo file of DWARF 5 has a section for each type unit, all with the same name. Returns the one
 * that begins with a unit of another type, searched from the end, where gcc puts it; NULL: none.
 * The start of a compressed section is unknown: then it is the last section.
 */
static const struct elf_section *info_section(const struct elf_image *im)
{
	for (uint32_t i = im->n_sections; i-- > 0;) {
		const struct elf_section *s = &im->sections[i];
		uint8_t bytes[16];
		struct cursor c = cursor_make(bytes, sizeof(bytes));

		if (strcmp(elf_image_section_name(im, s), split_sections[DWARF_INFO]) != 0)
			continue;
		if (s->flags & SHF_COMPRESSED)
			return s;
		if (s->size < sizeof(bytes) || elf_image_read(im, s->offset, bytes, sizeof(bytes)))
			continue;
		c.cur += cursor_u32(&c) == UINT32_MAX ? 8 : 0;
		if (cursor_u16(&c) < 5 || cursor_u8(&c) != DW_UT_split_type)
			return s;
	}
	return NULL;
}

static struct dwarf_unit *open_alone(struct dwarf *d, struct dwarf_unit *u)
{
	struct elf_image im = ELF_IMAGE_INIT;
	_cleanup_close_ int fd = -EBADF;
	struct dwarf *split = NULL;
	char buf[MAX_PATH] = "";
	const char *path;
	int r;

	if (d->n_splits_missing >= MAX_MISSING)
		return NULL;
	path = split_path(d, u, buf);
	fd = *path ? d->open_split(d->open_split_ctx, path) : -1;
	d->n_splits_missing = fd < 0 ? d->n_splits_missing + 1 : 0;
	if (fd < 0)
		return NULL;
	r = elf_image_open_fd(&im, fd);
	if (r == 0) {
		const struct elf_section *info = info_section(&im);

		r = dwarf_make(&split, &im, &d->limits, split_sections);
		if (r == 0 && info)
			split->sections[DWARF_INFO].header = *info;
		elf_image_close(&im);
	}
	if (r != 0) {
		dwarf_refuse(d, r);
		return NULL;
	}
	return split_take(d, u, split);
}

/* Makes room for another split file: closes that of the least recently used unit. */
static void splits_limit(struct dwarf *d)
{
	struct dwarf_unit *oldest = NULL;

	if (d->n_splits < MAX_OPEN)
		return;
	for (uint32_t i = 0; i < d->loaded.n; i++) {
		struct dwarf_unit *u = &d->units.items[d->loaded.items[i]];

		if (u->split && (!oldest || u->used < oldest->used))
			oldest = u;
	}
	if (oldest)
		dwarf_split_close(d, oldest);
}

struct dwarf_unit *dwarf_split_open(struct dwarf *d, struct dwarf_unit *u)
{
	struct dwarf_unit *found;

	if (u->split)
		return unit_of(u);
	if (u->split_bad || !d->open_split)
		return NULL;
	splits_limit(d);
	found = open_in_package(d, u);
	if (!found)
		found = open_alone(d, u);
	u->split_bad = !found;
	return found;
}

void dwarf_split_close(struct dwarf *d, struct dwarf_unit *u)
{
	uint64_t used = u->used;

	if (!u->split)
		return;
	u->split = dwarf_free(u->split);
	d->n_splits--;
	(void)dwarf_unit_account(d, u);
	u->used = used;
}
