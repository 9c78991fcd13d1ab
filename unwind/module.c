/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file for the walk: its segments, its build id and the few mapped windows with CFI.
 *
 * pread() reads the headers into bounded buffers, which are freed. Only .eh_frame_hdr, .eh_frame,
 * .debug_frame and .gopclntab stay mapped: a host has gigabytes of libraries, and an address space
 * limit should mean something. Section headers are used if the file has them; a file stripped of
 * them is walked by its program headers alone.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/internal.h"
#include "util/go-module.h"
#include "util/notes.h"

enum {
	MAX_PHDRS = 256,
	MAX_SHDRS = 4096,
	MAX_SHSTRTAB = 256 * 1024,
	MAX_NOTES = 64 * 1024,
	MAX_STUB_BYTES = 1024 * 1024,
	MAX_VDSO_BYTES = 64 * 1024,
	MAX_GO_PLACE = 64 * 1024 * 1024,
};
#define EITHER_SIDE (UINT64_C(1) << 31) /* of an .eh_frame without a file, for code */

/* A file or an image, read by offset. */
struct module_source {
	int fd; /* -EBADF: image */
	const uint8_t *image;
	uint64_t size;
};

static bool source_has(const struct module_source *src, uint64_t offset, uint64_t n)
{
	return offset <= src->size && n <= src->size - offset;
}

static bool source_read(const struct module_source *src, uint64_t offset, void *ret, size_t n)
{
	uint8_t *to = ret;

	if (!source_has(src, offset, n))
		return false;
	if (src->image) {
		memcpy(ret, src->image + offset, n);
		return true;
	}
	while (n > 0) {
		ssize_t got = pread(src->fd, to, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

/* A private copy of n bytes, to be freed; NULL: not there, n over max, or no memory. */
static void *source_dup(const struct module_source *src, uint64_t offset, uint64_t n, uint64_t max)
{
	_cleanup_free_ void *p = NULL;

	if (n == 0 || n > max || !source_has(src, offset, n))
		return NULL;
	p = malloc((size_t)n);
	if (!p || !source_read(src, offset, p, (size_t)n))
		return NULL;
	return TAKE_PTR(p);
}

static void window_close(struct window *w)
{
	if (w->map)
		(void)munmap(w->map, w->n_map);
	*w = (struct window){NULL, 0, 0, NULL, 0};
}

/* 0 also if the range is not in the file; the window is empty then. */
static int window_open(struct window *w, const struct module_source *src, uint64_t addr,
		       uint64_t offset, uint64_t n)
{
	uint64_t start = offset & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1), extra = offset - start;
	void *map;

	if (n == 0 || n > UINT32_MAX || !source_has(src, offset, n))
		return 0;
	window_close(w);
	if (src->image) {
		*w = (struct window){src->image + offset, (size_t)n, addr, NULL, 0};
		return 0;
	}
	map = mmap(NULL, (size_t)(n + extra), PROT_READ, MAP_PRIVATE, src->fd, (off_t)start);
	if (map == MAP_FAILED)
		return -errno;
	*w = (struct window){(uint8_t *)map + extra, (size_t)n, addr, map, (size_t)(n + extra)};
	return 0;
}

static void window_trim(const struct window *w)
{
	if (w->map)
		(void)madvise(w->map, w->n_map, MADV_DONTNEED);
}

void unwinder_trim(struct unwinder *u)
{
	for (const struct unwind_module *m = u->modules; m; m = m->next) {
		window_trim(&m->hdr);
		window_trim(&m->eh_frame.data);
		window_trim(&m->debug_raw);
		window_trim(&m->go.table);
		window_trim(&m->text);
	}
}

/* Segments */

static int add_segment(struct unwind_module *m, const Elf64_Phdr *ph)
{
	uint64_t end;

	if (ph->p_memsz == 0)
		return 0;
	if (m->n_segments == MODULE_MAX_SEGMENTS || ph->p_filesz > ph->p_memsz ||
	    __builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) ||
	    __builtin_add_overflow(ph->p_offset, ph->p_filesz, &end))
		return -ENOEXEC;
	m->segments[m->n_segments++] = (struct segment){ph->p_vaddr, ph->p_filesz, ph->p_memsz,
							ph->p_offset, ph->p_flags & PF_X};
	return 0;
}

static int measure_segments(struct unwind_module *m)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];

		if (s->vaddr < low)
			low = s->vaddr;
		if (s->vaddr + s->memsz > high)
			high = s->vaddr + s->memsz;
	}
	/* Rows and cache keys hold 32-bit module-relative addresses. */
	if (m->n_segments == 0 || high - low > UINT32_MAX)
		return -ENOEXEC;
	m->base = low;
	m->span = (uint32_t)(high - low);
	return 0;
}

static void read_build_id(struct unwind_module *m, const struct module_source *src,
			  const Elf64_Phdr *ph)
{
	_cleanup_free_ void *notes = source_dup(src, ph->p_offset, ph->p_filesz, MAX_NOTES);
	const uint8_t *id;

	if (!notes || m->n_build_id)
		return;
	m->n_build_id = (uint8_t)notes_find_build_id(notes, (size_t)ph->p_filesz, ph->p_align,
						     MODULE_MAX_BUILD_ID, &id);
	if (m->n_build_id)
		memcpy(m->build_id, id, m->n_build_id);
}

static int read_segments(struct unwind_module *m, const struct module_source *src,
			 const Elf64_Ehdr *eh, Elf64_Phdr *ret_eh_frame)
{
	_cleanup_free_ Elf64_Phdr *ph = NULL;
	int r;

	if (eh->e_phentsize != sizeof(*ph) || eh->e_phnum > MAX_PHDRS)
		return -ENOEXEC;
	ph = source_dup(src, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(*ph),
			MAX_PHDRS * sizeof(*ph));
	if (!ph)
		return -ENOEXEC;
	for (unsigned int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD) {
			r = add_segment(m, &ph[i]);
			if (r < 0)
				return r;
		} else if (ph[i].p_type == PT_GNU_EH_FRAME) {
			*ret_eh_frame = ph[i];
		} else if (ph[i].p_type == PT_NOTE) {
			read_build_id(m, src, &ph[i]);
		}
	}
	return measure_segments(m);
}

/* Sections */

static void add_stub(struct unwind_module *m, const struct module_source *src, const Elf64_Shdr *sh,
		     enum stub_kind kind)
{
	uint64_t at = sh->sh_addr - m->base;
	uint8_t *bytes;

	if (m->n_stubs == MODULE_MAX_STUBS || at > m->span || sh->sh_size > m->span - at)
		return;
	bytes = source_dup(src, sh->sh_offset, sh->sh_size, MAX_STUB_BYTES);
	if (bytes)
		m->stubs[m->n_stubs++] =
			(struct stub_range){(uint32_t)at, (uint32_t)(at + sh->sh_size),
					    (uint32_t)sh->sh_size, kind, bytes};
}

static int use_debug_frame(struct unwind_module *m, const struct module_source *src,
			   const Elf64_Shdr *sh, enum debug_compression plain)
{
	if (m->debug_raw.data)
		return 0;
	m->debug_compression = sh->sh_flags & SHF_COMPRESSED ? DEBUG_ZLIB_CHDR : plain;
	return window_open(&m->debug_raw, src, 0, sh->sh_offset, sh->sh_size);
}

static bool is_listed(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

/* Notes a section that may hold Go's moduledata. */
static void note_place(struct unwind_module *m, const Elf64_Shdr *sh, const char *name)
{
	bool relocations = sh->sh_type == SHT_RELA;
	const char *const *list =
		relocations ? go_module_relocation_sections : go_module_data_sections;

	if (m->go.n_places < GO_MAX_PLACES && is_listed(list, name))
		m->go.places[m->go.n_places++] = (struct section_place){sh->sh_addr, sh->sh_offset,
									sh->sh_size, relocations};
}

static int use_section(struct unwind_module *m, const struct module_source *src,
		       const Elf64_Shdr *sh, const char *name)
{
	if (sh->sh_type == SHT_NOBITS)
		return 0;
	if (strcmp(name, ".debug_frame") == 0)
		return use_debug_frame(m, src, sh, DEBUG_PLAIN);
	if (strcmp(name, ".zdebug_frame") == 0)
		return use_debug_frame(m, src, sh, DEBUG_ZLIB_GNU);
	if (!(sh->sh_flags & SHF_ALLOC) || sh->sh_flags & SHF_COMPRESSED)
		return 0;
	if (strcmp(name, ".eh_frame") == 0)
		return window_open(&m->eh_frame.data, src, sh->sh_addr, sh->sh_offset, sh->sh_size);
	if (strcmp(name, ".eh_frame_hdr") == 0)
		return window_open(&m->hdr, src, sh->sh_addr, sh->sh_offset, sh->sh_size);
	/* The second name: position-independent programs up to Go 1.25. */
	if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".data.rel.ro.gopclntab") == 0)
		return window_open(&m->go.table, src, sh->sh_addr, sh->sh_offset, sh->sh_size);
	if (strcmp(name, ".text") == 0)
		m->go.section_text = sh->sh_addr;
	else if (strcmp(name, ".plt") == 0 || strncmp(name, ".plt.", 5) == 0 ||
		 strcmp(name, ".iplt") == 0)
		add_stub(m, src, sh, STUB_PLT);
	else if (strcmp(name, ".init") == 0 || strcmp(name, ".fini") == 0)
		add_stub(m, src, sh, STUB_INIT);
	else if (strcmp(name, GO_MODULE_MARK) == 0)
		m->go.marked = true;
	else
		note_place(m, sh, name);
	return 0;
}

/* 0 also for damaged section headers, which count as none. */
static int read_sections(struct unwind_module *m, const struct module_source *src,
			 const Elf64_Ehdr *eh)
{
	_cleanup_free_ Elf64_Shdr *sh = NULL;
	_cleanup_free_ char *names = NULL;
	uint32_t n = eh->e_shnum, strndx = eh->e_shstrndx;
	uint64_t n_names;

	if (eh->e_shoff == 0 || eh->e_shentsize != sizeof(*sh) || n == 0 || strndx >= n)
		return 0;
	sh = source_dup(src, eh->e_shoff, (uint64_t)n * sizeof(*sh), MAX_SHDRS * sizeof(*sh));
	if (!sh)
		return 0;
	n_names = sh[strndx].sh_size;
	names = source_dup(src, sh[strndx].sh_offset, n_names, MAX_SHSTRTAB);
	if (!names || names[n_names - 1] != '\0')
		return 0;
	for (uint32_t i = 1; i < n; i++) {
		if (sh[i].sh_name < n_names) {
			int r = use_section(m, src, &sh[i], names + sh[i].sh_name);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/*
 * .eh_frame without section headers: from the address in .eh_frame_hdr to the end of that segment.
 */
static int find_eh_frame(struct unwind_module *m, const struct module_source *src,
			 const Elf64_Phdr *ph)
{
	uint8_t head[8];
	int32_t rel;
	uint64_t addr;
	int r;

	if (ph->p_type == PT_GNU_EH_FRAME && !m->hdr.data) {
		r = window_open(&m->hdr, src, ph->p_vaddr, ph->p_offset, ph->p_filesz);
		if (r < 0)
			return r;
	}
	if (m->eh_frame.data.data || ph->p_type != PT_GNU_EH_FRAME ||
	    !source_read(src, ph->p_offset, head, sizeof(head)) || head[0] != 1 || head[1] != 0x1b)
		return 0;
	memcpy(&rel, head + 4, sizeof(rel)); /* pcrel sdata4, as every linker writes it */
	addr = ph->p_vaddr + 4 + (uint64_t)(int64_t)rel;
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];
		uint64_t at = addr - s->vaddr;

		if (at < s->filesz)
			return window_open(&m->eh_frame.data, src, addr, s->offset + at,
					   s->filesz - at);
	}
	return 0;
}

/* Go's table, where a C linker has merged it into another section. */
static int find_go_table(struct unwind_module *m, const struct module_source *src)
{
	for (uint32_t i = 0; i < m->go.n_places && m->go.marked && !m->go.table.data; i++) {
		const struct section_place *p = &m->go.places[i];
		struct window w = {0};
		size_t at;
		int r = p->relocations ? 0 : window_open(&w, src, p->addr, p->offset, p->n);

		if (r < 0)
			return r;
		at = go_table_locate(m, &w);
		if (at < w.n)
			r = window_open(&m->go.table, src, p->addr + at, p->offset + at, p->n - at);
		window_close(&w);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Where the code of Go begins, if the table itself does not say. */
static int find_go_text(struct unwind_module *m, const struct module_source *src)
{
	bool wanted = go_table_init(m);

	for (uint32_t i = 0; i < m->go.n_places && wanted; i++) {
		const struct section_place *p = &m->go.places[i];
		struct window w = {0};
		int r = p->n > MAX_GO_PLACE ? 0 : window_open(&w, src, p->addr, p->offset, p->n);

		if (r < 0)
			return r;
		wanted = !w.data || !go_table_use_module(m, &w, p->relocations);
		window_close(&w);
	}
	return 0;
}

/* Only the vdso has one, and that is an image of a few pages. */
static void find_sigreturn(struct unwind_module *m, const struct module_source *src)
{
	for (uint32_t i = 0; i < m->n_segments && arch_sigreturn_code && src->image; i++) {
		const struct segment *s = &m->segments[i];
		const uint8_t *at;

		if (!s->exec || s->filesz > MAX_VDSO_BYTES ||
		    !source_has(src, s->offset, s->filesz))
			continue;
		at = memmem(src->image + s->offset, (size_t)s->filesz, arch_sigreturn_code,
			    arch_sigreturn_bytes);
		if (at)
			m->sigreturn = (uint32_t)(s->vaddr - m->base) +
				       (uint32_t)(at - src->image - s->offset);
	}
}

/* Only lost-fp.c reads it, a few bytes of a few functions. */
static int find_text(struct unwind_module *m, const struct module_source *src)
{
	for (uint32_t i = 0; i < m->n_segments && !ARCH_HAS_LR; i++) {
		const struct segment *s = &m->segments[i];

		if (s->exec)
			return window_open(&m->text, src, s->vaddr, s->offset, s->filesz);
	}
	return 0;
}

/* Objects */

static int read_module(struct unwind_module *m, const struct module_source *src)
{
	Elf64_Phdr eh_frame = {.p_type = PT_NULL};
	Elf64_Ehdr eh;
	int r;

	if (!source_read(src, 0, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh.e_machine != ARCH_ELF_MACHINE || (eh.e_type != ET_EXEC && eh.e_type != ET_DYN))
		return -ENOEXEC;
	m->entry = eh.e_entry;
	r = read_segments(m, src, &eh, &eh_frame);
	if (r == 0)
		r = read_sections(m, src, &eh);
	if (r == 0)
		r = find_eh_frame(m, src, &eh_frame);
	return r;
}

static uint32_t next_id(struct unwinder *u)
{
	/* After four billion modules the live ones get new numbers. */
	if (u->last_id == UINT32_MAX) {
		u->last_id = 0;
		for (struct unwind_module *m = u->modules; m; m = m->next)
			m->id = ++u->last_id;
		unwinder_forget(u);
	}
	return ++u->last_id;
}

/* An empty module; extra: bytes after it for the caller. */
static struct unwind_module *module_alloc(struct unwinder *u, const char *name, size_t extra)
{
	_cleanup_(unwind_module_freep) struct unwind_module *m = calloc(1, sizeof(*m) + extra);

	if (!m)
		return NULL;
	m->eh_frame.eh = true;
	m->name = strdup(name ? name : "");
	if (!m->name)
		return NULL;
	m->u = u;
	m->id = next_id(u);
	m->next = u->modules;
	if (m->next)
		m->next->prev = m;
	u->modules = m;
	return TAKE_PTR(m);
}

static int module_new(struct unwind_module **ret, struct unwinder *u,
		      const struct module_source *src, const char *name)
{
	_cleanup_(unwind_module_freep) struct unwind_module *m = module_alloc(u, name, 0);
	int r;

	if (!m)
		return -ENOMEM;
	r = read_module(m, src);
	if (r < 0)
		return r;
	entry_use_header(m);
	r = find_go_table(m, src);
	if (r == 0)
		r = find_go_text(m, src);
	if (r == 0)
		r = find_text(m, src);
	if (r < 0)
		return r;
	find_sigreturn(m, src);
	*ret = TAKE_PTR(m);
	return 0;
}

int unwind_module_new_eh_frame(struct unwind_module **ret, struct unwinder *u, const void *eh_frame,
			       size_t n, uint64_t address, const char *name)
{
	struct unwind_module *m;

	if (address > INT64_MAX || n == 0 || n > UINT32_MAX)
		return -ENOEXEC;
	m = module_alloc(u, name, n);
	if (!m)
		return -ENOMEM;
	memcpy(m + 1, eh_frame, n);
	m->eh_frame.data = (struct window){(const uint8_t *)(m + 1), n, address, NULL, 0};
	m->base = address > EITHER_SIDE ? address - EITHER_SIDE : 0;
	m->span = UINT32_MAX;
	m->entry = UINT64_MAX;
	*ret = m;
	return 0;
}

int unwind_module_new_fd(struct unwind_module **ret, struct unwinder *u, int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	return module_new(ret, u, &(struct module_source){fd, NULL, (uint64_t)st.st_size}, name);
}

int unwind_module_new_memory(struct unwind_module **ret, struct unwinder *u, const void *image,
			     size_t n, const char *name)
{
	return module_new(ret, u, &(struct module_source){-EBADF, image, n}, name);
}

struct unwind_module *unwind_module_orphan(struct unwind_module *m)
{
	struct unwind_module *rest = m->next;

	rows_drop(m);
	if (m->prev)
		m->prev->next = m->next;
	else
		m->u->modules = m->next;
	if (m->next)
		m->next->prev = m->prev;
	m->prev = m->next = NULL;
	m->u = NULL;
	return rest;
}

struct unwind_module *unwind_module_free(struct unwind_module *m)
{
	if (!m)
		return NULL;
	if (m->u)
		(void)unwind_module_orphan(m);
	window_close(&m->hdr);
	window_close(&m->eh_frame.data);
	window_close(&m->debug_raw);
	window_close(&m->go.table);
	window_close(&m->text);
	for (uint32_t i = 0; i < m->n_stubs; i++)
		free((void *)(uintptr_t)m->stubs[i].bytes);
	free(m->name);
	free(m);
	return NULL;
}

/* Mappings begin at page boundaries of the processor, not of the linker. */
static bool segment_begins(const struct segment *s, uint64_t offset)
{
	return offset <= s->offset && s->offset - offset < ARCH_MAX_PAGE;
}

static bool segment_covers(const struct segment *s, uint64_t offset)
{
	return offset < s->offset + s->filesz && (offset >= s->offset || segment_begins(s, offset));
}

bool unwind_module_bias(const struct unwind_module *m, uint64_t start, uint64_t file_offset,
			uint64_t *ret_bias)
{
	const struct segment *best = NULL;
	int best_score = 0;

	/*
	 * One page of the file may lie in two segments (the end of the code and the start of the
	 * data). The executable one is meant; if both are, the one that begins in this page.
	 */
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];
		int score = 1 + (segment_begins(s, file_offset) ? 1 : 0) + (s->exec ? 2 : 0);

		if (segment_covers(s, file_offset) && score > best_score) {
			best = s;
			best_score = score;
		}
	}
	if (!best)
		return false;
	*ret_bias = start - (best->vaddr + (file_offset - best->offset));
	return true;
}

void unwind_module_set_owner(struct unwind_module *m, const void *owner)
{
	m->owner = owner;
}

const uint8_t *unwind_module_build_id(const struct unwind_module *m, size_t *ret_n)
{
	*ret_n = m->n_build_id;
	return m->build_id;
}

void unwind_module_text(const struct unwind_module *m, uint64_t *ret_start, uint64_t *ret_limit,
			uint64_t *ret_offset)
{
	*ret_start = *ret_limit = *ret_offset = 0;
	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];

		if (!s->exec)
			continue;
		if (*ret_limit == 0 || s->vaddr < *ret_start) {
			*ret_start = s->vaddr;
			*ret_offset = s->offset;
		}
		if (s->vaddr + s->memsz > *ret_limit)
			*ret_limit = s->vaddr + s->memsz;
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Distances wrap as addresses do, so that no segment can be so odd that they are wrong. */
bool unwind_module_has_text(const struct unwind_module *m, uint64_t bias, uint64_t pc,
			    uint64_t *start, uint64_t *end)
{
	uint64_t text, limit, offset, address = pc - bias, below, above;
	bool inside;

	unwind_module_text(m, &text, &limit, &offset);
	if (text == limit)
		return true;
	inside = address - text < limit - text;
	below = address - (inside ? text : limit);
	above = (inside ? limit : text) - address;
	*start = pc - least(below, pc - *start);
	*end = pc + least(above, *end - pc);
	return inside;
}
