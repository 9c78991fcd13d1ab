/* SPDX-License-Identifier: Apache-2.0 */
/* The file is read as the memory of a process into which it was loaded where it is linked for. */
#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtimes/image.h"
#include "runtimes/marks.h"
#include "util/cleanup.h"

enum {
	PAGE = 4096,
	MAX_SEGMENTS = 64,
	MAX_PAGES = 2000, /* real files: 30 */
	MAX_SECTIONS = 128,
	MAX_SECTION_NAMES = 4096, /* bytes */
};

struct loaded_file {
	int fd;
	uint32_t n;
	struct {
		uint64_t start, end, offset; /* whole pages */
	} segments[MAX_SEGMENTS];
};

/* A page of it: behind the end of the file are zeros. */
static bool read_page(void *ctx, uint64_t address, void *ret, size_t n)
{
	const struct loaded_file *f = ctx;

	for (uint32_t i = 0; i < f->n; i++) {
		uint64_t at = address - f->segments[i].start;
		ssize_t got;

		if (address < f->segments[i].start || address >= f->segments[i].end ||
		    f->segments[i].end - address < n || at > INT64_MAX - f->segments[i].offset)
			continue;
		got = pread(f->fd, ret, n, (off_t)(f->segments[i].offset + at));
		if (got < 0)
			return false;
		memset((uint8_t *)ret + got, 0, n - (size_t)got);
		return true;
	}
	return false;
}

static void add_segment(struct loaded_file *f, const Elf64_Phdr *p, uint64_t *base)
{
	uint64_t before = p->p_vaddr % PAGE, end;

	if (p->p_type != PT_LOAD || p->p_filesz == 0 || p->p_offset % PAGE != before ||
	    p->p_offset > INT64_MAX || __builtin_add_overflow(p->p_vaddr, p->p_filesz, &end) ||
	    __builtin_add_overflow(end, PAGE - 1, &end))
		return;
	f->segments[f->n].start = p->p_vaddr - before;
	f->segments[f->n].end = end - end % PAGE;
	f->segments[f->n++].offset = p->p_offset - before;
	if (p->p_offset == 0)
		*base = p->p_vaddr;
}

/* *base: where its first byte would be. */
static bool load(struct loaded_file *f, uint64_t *base)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	*base = UINT64_MAX;
	if (pread(f->fd, &e, sizeof(e), 0) != sizeof(e) || e.e_phnum > MAX_SEGMENTS ||
	    e.e_phoff > INT64_MAX - MAX_SEGMENTS * sizeof(p))
		return false;
	for (uint16_t i = 0; i < e.e_phnum; i++) {
		off_t at = (off_t)(e.e_phoff + i * sizeof(p));

		if (pread(f->fd, &p, sizeof(p), at) != sizeof(p))
			return false;
		add_segment(f, &p, base);
	}
	return *base != UINT64_MAX;
}

static bool exports_all(const struct image *i, const char *const symbols[RUNTIME_MAX_SYMBOLS])
{
	size_t k = 0;

	while (k < RUNTIME_MAX_SYMBOLS && symbols[k] && image_symbol(i, symbols[k]))
		k++;
	return k > 0 && (k == RUNTIME_MAX_SYMBOLS || !symbols[k]);
}

/* The names of sections are in no memory, but in all files that a linker has made. */
static bool has_section(int fd)
{
	Elf64_Shdr sections[MAX_SECTIONS];
	char names[MAX_SECTION_NAMES + 1];
	Elf64_Ehdr e;
	ssize_t n;

	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || e.e_shoff > INT64_MAX ||
	    e.e_shentsize != sizeof(sections[0]) || e.e_shnum > MAX_SECTIONS ||
	    e.e_shstrndx >= e.e_shnum ||
	    pread(fd, sections, e.e_shnum * sizeof(sections[0]), (off_t)e.e_shoff) !=
		    (ssize_t)(e.e_shnum * sizeof(sections[0])) ||
	    sections[e.e_shstrndx].sh_offset > INT64_MAX)
		return false;
	n = pread(fd, names, MAX_SECTION_NAMES, (off_t)sections[e.e_shstrndx].sh_offset);
	names[n > 0 ? n : 0] = '\0';
	for (uint16_t i = 0; i < e.e_shnum; i++) {
		if (sections[i].sh_name < n && sections[i].sh_type == SHT_PROGBITS &&
		    runtime_file_is_section(names + sections[i].sh_name))
			return true;
	}
	return false;
}

static unsigned int exported_by(int fd)
{
	struct loaded_file f = {.fd = fd};
	struct memory memory = {read_page, &f, MAX_PAGES, (uint64_t)MAX_PAGES * PAGE};
	_cleanup_free_ struct memory_pages *pages = memory_pages_new(&memory);
	const char *const *symbols;
	enum runtime_use use;
	unsigned int found = 0;
	struct image image;
	uint64_t base;

	if (!pages || !load(&f, &base) || !image_open(&image, memory_of_pages(pages), base))
		return 0;
	for (size_t i = 0; (symbols = runtime_file_symbols(i, &use)); i++)
		found |= exports_all(&image, symbols) ? use : 0;
	return found;
}

unsigned int runtime_marks_of(int fd)
{
	unsigned int found = exported_by(fd);

	return found || !has_section(fd) ? found : RUNTIME_HIDDEN;
}
