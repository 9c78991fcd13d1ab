/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded ELF reading.
 *
 * Headers are copied by pread; sections are mapped one by one. Why not libelf: it maps the whole
 * file (200 MB for a compiler's library, in a process with limited address space) or copies whole
 * sections, and its checks are not ours. We need only a few tables, and check each against the size
 * that the file had when it was opened.
 *
 * A mapping beats a copy because a lookup touches few pages of a string table of tens of megabytes.
 */
#include "symbolize/elf-image.h"

#include <elf.h>
#include <endian.h>
#include <sys/stat.h>

#include "util/cursor.h"
#include "util/mapped-file.h"
#include "util/notes.h"

/* Linkers make 10 to 15 segments and 30 to 40 sections. */
#define MAX_SEGMENTS   1024
#define MAX_SECTIONS   65536
#define MAX_NAMES      (UINT64_C(4) << 20)
#define MAX_NOTES      (UINT64_C(64) << 10) /* bytes of one note section or segment */
#define MAX_NOTE_AREAS 64

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define ELFDATA_HOST ELFDATA2LSB
#else
#define ELFDATA_HOST ELFDATA2MSB
#endif

bool elf_image_offset(const struct elf_image *im, uint64_t address, uint32_t flags,
		      uint64_t *ret_offset)
{
	for (uint32_t i = 0; i < im->n_segments; i++) {
		const struct elf_segment *g = &im->segments[i];

		if (g->type != PT_LOAD || (g->flags & flags) != flags || address < g->vaddr ||
		    address - g->vaddr >= g->filesz || g->offset > im->n_bytes ||
		    g->filesz > im->n_bytes - g->offset)
			continue;
		*ret_offset = g->offset + (address - g->vaddr);
		return true;
	}
	return false;
}

int elf_image_read(const struct elf_image *im, uint64_t offset, void *ret, size_t n)
{
	uint8_t *p = ret;

	if (offset > im->n_bytes || n > im->n_bytes - offset)
		return -ENOEXEC;
	if (im->memory) {
		memcpy(p, im->memory + offset, n);
		return 0;
	}
	while (n > 0) {
		ssize_t r = pread(im->fd, p, n, (off_t)offset);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0) /* the file has shrunk */
			return -ENOEXEC;
		p += r;
		offset += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

static struct elf_section section_decode(struct cursor *c, bool is64)
{
	struct elf_section s;

	s.name = cursor_u32(c);
	s.type = cursor_u32(c);
	s.flags = is64 ? cursor_u64(c) : cursor_u32(c);
	s.addr = is64 ? cursor_u64(c) : cursor_u32(c);
	s.offset = is64 ? cursor_u64(c) : cursor_u32(c);
	s.size = is64 ? cursor_u64(c) : cursor_u32(c);
	s.link = cursor_u32(c);
	s.info = cursor_u32(c);
	(void)(is64 ? cursor_u64(c) : cursor_u32(c)); /* sh_addralign */
	s.entsize = is64 ? cursor_u64(c) : cursor_u32(c);
	return s;
}

static struct elf_segment segment_decode(struct cursor *c, bool is64)
{
	struct elf_segment s;

	s.type = cursor_u32(c);
	s.flags = is64 ? cursor_u32(c) : 0;
	s.offset = is64 ? cursor_u64(c) : cursor_u32(c);
	s.vaddr = is64 ? cursor_u64(c) : cursor_u32(c);
	(void)(is64 ? cursor_u64(c) : cursor_u32(c)); /* p_paddr */
	s.filesz = is64 ? cursor_u64(c) : cursor_u32(c);
	s.memsz = is64 ? cursor_u64(c) : cursor_u32(c);
	if (!is64)
		s.flags = cursor_u32(c);
	s.align = is64 ? cursor_u64(c) : cursor_u32(c);
	return s;
}

struct header {
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, shstrndx;
	uint16_t phentsize, shentsize;
};

static int read_header(struct elf_image *im, struct header *ret)
{
	uint8_t raw[sizeof(Elf64_Ehdr)] = {0};
	struct cursor c;
	size_t n;
	int r;

	r = elf_image_read(im, 0, raw, EI_NIDENT);
	if (r < 0)
		return r;
	if (memcmp(raw, ELFMAG, SELFMAG) != 0 || raw[EI_DATA] != ELFDATA_HOST ||
	    (raw[EI_CLASS] != ELFCLASS64 && raw[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	im->is64 = raw[EI_CLASS] == ELFCLASS64;
	n = im->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	r = elf_image_read(im, 0, raw, n);
	if (r < 0)
		return r;
	c = cursor_make(raw, n);
	(void)cursor_take(&c, EI_NIDENT);
	im->type = cursor_u16(&c);
	im->machine = cursor_u16(&c);
	(void)cursor_u32(&c);				    /* e_version */
	(void)(im->is64 ? cursor_u64(&c) : cursor_u32(&c)); /* e_entry */
	ret->phoff = im->is64 ? cursor_u64(&c) : cursor_u32(&c);
	ret->shoff = im->is64 ? cursor_u64(&c) : cursor_u32(&c);
	(void)cursor_u32(&c); /* e_flags */
	(void)cursor_u16(&c); /* e_ehsize */
	ret->phentsize = cursor_u16(&c);
	ret->phnum = cursor_u16(&c);
	ret->shentsize = cursor_u16(&c);
	ret->shnum = cursor_u16(&c);
	ret->shstrndx = cursor_u16(&c);
	return cursor_ok(&c) ? 0 : -ENOEXEC;
}

/* Counts that do not fit in the header are in section 0. It may be absent. */
static void read_extended_counts(const struct elf_image *im, struct header *h)
{
	size_t size = im->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint8_t raw[sizeof(Elf64_Shdr)];
	struct elf_section s;
	struct cursor c;

	if (!h->shoff || h->shentsize != size || elf_image_read(im, h->shoff, raw, size) < 0) {
		h->shnum = 0;
		return;
	}
	c = cursor_make(raw, size);
	s = section_decode(&c, im->is64);
	if (h->shnum == 0)
		h->shnum = s.size <= MAX_SECTIONS ? (uint32_t)s.size : UINT32_MAX;
	if (h->shstrndx == SHN_XINDEX)
		h->shstrndx = s.link;
	if (h->phnum == PN_XNUM)
		h->phnum = s.info;
}

static int read_segments(struct elf_image *im, const struct header *h)
{
	size_t size = im->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	_cleanup_free_ uint8_t *raw = NULL;
	struct cursor c;
	int r;

	if (h->phnum == 0)
		return 0;
	if (h->phnum > MAX_SEGMENTS || h->phentsize != size)
		return -ENOEXEC;
	raw = malloc(h->phnum * size);
	im->segments = calloc(h->phnum, sizeof(*im->segments));
	if (!raw || !im->segments)
		return -ENOMEM;
	r = elf_image_read(im, h->phoff, raw, h->phnum * size);
	if (r < 0)
		return r;
	c = cursor_make(raw, h->phnum * size);
	for (; im->n_segments < h->phnum; im->n_segments++)
		im->segments[im->n_segments] = segment_decode(&c, im->is64);
	return 0;
}

/* Cuts the names after the last 0. Then each name that begins within has an end, and this need not
 * be checked again for each of thousands of sections. */
static void read_names(struct elf_image *im, const struct elf_section *s)
{
	const uint8_t *last;

	if (elf_image_bytes(im, s, MAX_NAMES, &im->names) < 0)
		return;
	last = im->names.compressed ? NULL : memrchr(im->names.data, 0, im->names.n);
	im->names.n = last ? (size_t)(last - im->names.data) + 1 : 0;
}

static int read_sections(struct elf_image *im, const struct header *h)
{
	size_t size = im->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	_cleanup_free_ uint8_t *raw = NULL;
	struct cursor c;

	if (h->shnum == 0 || h->shnum > MAX_SECTIONS || h->shentsize != size ||
	    h->shoff > im->n_bytes || h->shnum * size > im->n_bytes - h->shoff)
		return 0;
	raw = malloc(h->shnum * size);
	im->sections = calloc(h->shnum, sizeof(*im->sections));
	if (!raw || !im->sections)
		return -ENOMEM;
	if (elf_image_read(im, h->shoff, raw, h->shnum * size) < 0)
		return 0;
	c = cursor_make(raw, h->shnum * size);
	for (; im->n_sections < h->shnum; im->n_sections++)
		im->sections[im->n_sections] = section_decode(&c, im->is64);
	if (h->shstrndx < im->n_sections)
		read_names(im, &im->sections[h->shstrndx]);
	return 0;
}

static int image_open(struct elf_image *im)
{
	struct header h;
	int r;

	r = read_header(im, &h);
	if (r == 0) {
		read_extended_counts(im, &h);
		r = read_segments(im, &h);
	}
	if (r == 0)
		r = read_sections(im, &h);
	if (r < 0)
		elf_image_close(im);
	return r;
}

int elf_image_open_fd(struct elf_image *im, int fd)
{
	struct stat st;

	*im = (struct elf_image)ELF_IMAGE_INIT;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	im->fd = fd;
	im->n_bytes = (uint64_t)st.st_size;
	return image_open(im);
}

int elf_image_open_memory(struct elf_image *im, const void *image, size_t n)
{
	*im = (struct elf_image)ELF_IMAGE_INIT;
	im->memory = image;
	im->n_bytes = n;
	return image_open(im);
}

void elf_image_close(struct elf_image *im)
{
	elf_bytes_release(&im->names);
	free(im->segments);
	free(im->sections);
	*im = (struct elf_image)ELF_IMAGE_INIT;
}

const char *elf_image_section_name(const struct elf_image *im, const struct elf_section *s)
{
	return s->name < im->names.n ? (const char *)im->names.data + s->name : "";
}

const struct elf_section *elf_image_find(const struct elf_image *im, const char *name)
{
	for (uint32_t i = 1; i < im->n_sections; i++)
		if (strcmp(elf_image_section_name(im, &im->sections[i]), name) == 0)
			return &im->sections[i];
	return NULL;
}

const struct elf_section *elf_image_find_type(const struct elf_image *im, uint32_t type)
{
	for (uint32_t i = 1; i < im->n_sections; i++)
		if (im->sections[i].type == type)
			return &im->sections[i];
	return NULL;
}

Elf64_Sym elf_symbol(const uint8_t *p, bool is64)
{
	Elf64_Sym s;
	Elf32_Sym t;

	if (is64) {
		memcpy(&s, p, sizeof(s));
		return s;
	}
	memcpy(&t, p, sizeof(t));
	return (Elf64_Sym){.st_name = t.st_name,
			   .st_info = t.st_info,
			   .st_other = t.st_other,
			   .st_shndx = t.st_shndx,
			   .st_value = t.st_value,
			   .st_size = t.st_size};
}

int elf_image_bytes(const struct elf_image *im, const struct elf_section *s, uint64_t max_bytes,
		    struct elf_bytes *ret)
{
	struct elf_bytes b = {.n = s->size, .compressed = s->flags & SHF_COMPRESSED};

	if (s->type == SHT_NOBITS || s->size == 0 || s->offset > im->n_bytes ||
	    s->size > im->n_bytes - s->offset)
		return -ENOEXEC;
	if (s->size > max_bytes || s->size > SIZE_MAX / 2)
		return -EFBIG;
	if (im->memory) {
		b.data = im->memory + s->offset;
	} else {
		int r = mapped_file_new(&b.file, im->fd, s->offset, s->size);

		if (r < 0)
			return r;
		b.data = mapped_file_bytes(b.file);
	}
	*ret = b;
	return 0;
}

void elf_bytes_populate(const struct elf_bytes *b)
{
	if (b->file)
		mapped_file_populate(b->file);
}

void elf_bytes_forget(const struct elf_bytes *b)
{
	if (b->file)
		mapped_file_forget(b->file);
}

void elf_bytes_release(struct elf_bytes *b)
{
	mapped_file_free(b->file);
	free(b->heap);
	*b = (struct elf_bytes){0};
}

/* Reads one area of notes; true: fn stopped it. */
static bool notes_at(const struct elf_image *im, uint64_t offset, uint64_t n, uint64_t align,
		     elf_note_fn fn, void *ctx)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct cursor c;
	struct note note;

	if (n > MAX_NOTES)
		n = MAX_NOTES;
	if (n == 0 || offset > im->n_bytes || n > im->n_bytes - offset)
		return false;
	data = malloc(n);
	if (!data || elf_image_read(im, offset, data, n) < 0)
		return false;
	c = cursor_make(data, n);
	while (notes_next(&c, align, &note)) {
		if (fn(ctx, &note))
			return true;
	}
	return false;
}

void elf_image_each_note(const struct elf_image *im, elf_note_fn fn, void *ctx)
{
	unsigned int n_areas = 0;

	/* Sections first: a separate debug file's segments may point anywhere. sh_addralign is not
	 * kept; a property note in a section of its own is skipped by its first field.
	 */
	for (uint32_t i = 1; i < im->n_sections && n_areas < MAX_NOTE_AREAS; i++) {
		const struct elf_section *s = &im->sections[i];
		bool wide = strcmp(elf_image_section_name(im, s), ".note.gnu.property") == 0;

		if (s->type != SHT_NOTE || s->flags & SHF_COMPRESSED)
			continue;
		n_areas++;
		if (notes_at(im, s->offset, s->size, wide ? 8 : 4, fn, ctx))
			return;
	}
	for (uint32_t i = 0; i < im->n_segments && n_areas < MAX_NOTE_AREAS; i++) {
		const struct elf_segment *s = &im->segments[i];

		if (s->type != PT_NOTE)
			continue;
		n_areas++;
		if (notes_at(im, s->offset, s->filesz, s->align, fn, ctx))
			return;
	}
}

struct build_id {
	uint8_t *bytes;
	size_t n;
};

static bool build_id_note(void *ctx, const struct note *note)
{
	struct build_id *id = ctx;

	if (!note_is(note, NT_GNU_BUILD_ID, "GNU") || note->n_desc == 0 ||
	    note->n_desc > ELF_BUILD_ID_MAX)
		return false;
	memcpy(id->bytes, note->desc, note->n_desc);
	id->n = note->n_desc;
	return true;
}

size_t elf_image_build_id(const struct elf_image *im, uint8_t ret[ELF_BUILD_ID_MAX])
{
	struct build_id id = {ret, 0};

	elf_image_each_note(im, build_id_note, &id);
	return id.n;
}
