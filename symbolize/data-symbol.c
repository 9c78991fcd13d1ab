/* SPDX-License-Identifier: Apache-2.0 */
/* Variables are looked up seldom, so each look-up reads all symbols and keeps nothing. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/elf-image.h"
#include "symbolize/symbolize.h"
#include "util/mapped-file.h"

struct data_search {
	uint64_t vaddr, start, size;
	char *name;
	size_t n_name;
	bool found;
};

static void search_symbols(struct data_search *d, const struct elf_image *im,
			   const struct elf_bytes *symbols, const struct elf_bytes *names)
{
	size_t size = im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

	for (size_t at = size; symbols->n >= size && at <= symbols->n - size; at += size) {
		Elf64_Sym s = elf_symbol(symbols->data + at, im->is64);
		size_t n;

		if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_shndx == SHN_UNDEF ||
		    d->vaddr < s.st_value || d->vaddr - s.st_value >= s.st_size || s.st_name == 0 ||
		    s.st_name >= names->n || (d->found && s.st_size >= d->size))
			continue;
		/* Of a name without an end no more is read than can be kept. */
		n = names->n - s.st_name < d->n_name ? names->n - s.st_name : d->n_name;
		(void)snprintf(d->name, d->n_name, "%.*s", (int)n,
			       (const char *)names->data + s.st_name);
		d->start = s.st_value;
		d->size = s.st_size;
		d->found = true;
	}
}

static void search_table(struct data_search *d, const struct elf_image *im, uint32_t type,
			 uint64_t max_bytes)
{
	const struct elf_section *s = elf_image_find_type(im, type);
	struct elf_bytes symbols = {.data = NULL}, names = {.data = NULL};

	if (d->found || !s || s->link >= im->n_sections)
		return;
	if (elf_image_bytes(im, s, max_bytes, &symbols) == 0 &&
	    elf_image_bytes(im, &im->sections[s->link], max_bytes, &names) == 0 &&
	    !symbols.compressed && !names.compressed && names.n <= INT32_MAX)
		search_symbols(d, im, &symbols, &names);
	elf_bytes_release(&symbols);
	elf_bytes_release(&names);
}

int symbol_find_data(int fd, const struct symbol_limits *limits, uint64_t vaddr, char *name,
		     size_t n_name, uint64_t *ret_start)
{
	struct data_search d = {.vaddr = vaddr, .name = name, .n_name = n_name};
	struct elf_image im = ELF_IMAGE_INIT;
	uint64_t n_short = mapped_file_n_short();
	int r = elf_image_open_fd(&im, fd);

	if (r == 0) {
		search_table(&d, &im, SHT_SYMTAB, limits->max_file_bytes);
		search_table(&d, &im, SHT_DYNSYM, limits->max_file_bytes);
		elf_image_close(&im);
	}
	if (mapped_file_n_short() != n_short)
		return -EIO;
	if (r == 0 && d.found)
		*ret_start = d.start;
	return r < 0 ? r : !d.found;
}
