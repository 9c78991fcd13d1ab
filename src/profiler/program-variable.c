/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "src/profiler/program-variable.h"
#include "symbolize/elf-image.h"

enum { MAX_TABLE = 64 << 20, MAX_DYNAMIC = 1 << 16 };

static const struct elf_segment *find_segment(const struct elf_image *im, uint32_t type)
{
	for (uint32_t i = 0; i < im->n_segments; i++) {
		if (im->segments[i].type == type)
			return &im->segments[i];
	}
	return NULL;
}

/* Libraries are of the same type as position independent programs. */
static bool is_marked(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find_type(im, SHT_DYNAMIC);
	struct elf_bytes b = {0};
	bool marked = false;

	if (!s || elf_image_bytes(im, s, MAX_DYNAMIC, &b) < 0)
		return false;
	for (size_t at = 0; b.n - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, b.data + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		marked |= d.d_tag == DT_FLAGS_1 && (d.d_un.d_val & DF_1_PIE);
	}
	elf_bytes_release(&b);
	return marked;
}

static bool is_program(const struct elf_image *im)
{
	return im->is64 && (im->type == ET_EXEC || (im->type == ET_DYN && is_marked(im)));
}

static bool search(const struct elf_bytes *symbols, const struct elf_bytes *names,
		   unsigned int type, const char *name, uint64_t *ret)
{
	size_t n_name = strlen(name) + 1;

	for (size_t at = 0; symbols->n - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym s = elf_symbol(symbols->data + at, true);

		if (ELF64_ST_TYPE(s.st_info) != type || s.st_shndx == SHN_UNDEF ||
		    s.st_name >= names->n || names->n - s.st_name < n_name ||
		    memcmp(names->data + s.st_name, name, n_name) != 0)
			continue;
		*ret = s.st_value;
		return true;
	}
	return false;
}

static bool search_table(const struct elf_image *im, uint32_t table, unsigned int type,
			 const char *name, uint64_t *ret)
{
	const struct elf_section *s = elf_image_find_type(im, table);
	struct elf_bytes symbols = {0}, names = {0};
	bool found;

	if (!s || s->link >= im->n_sections)
		return false;
	found = elf_image_bytes(im, s, MAX_TABLE, &symbols) == 0 &&
		elf_image_bytes(im, &im->sections[s->link], MAX_TABLE, &names) == 0 &&
		!symbols.compressed && !names.compressed &&
		search(&symbols, &names, type, name, ret);
	elf_bytes_release(&symbols);
	elf_bytes_release(&names);
	return found;
}

/* As thread_struct_bytes(): such a program has glibc in itself. */
static uint32_t struct_bytes(const struct elf_image *im)
{
	uint64_t address, at;
	uint32_t bytes;

	return search_table(im, SHT_SYMTAB, STT_OBJECT, "_thread_db_sizeof_pthread", &address) &&
			       elf_image_offset(im, address, PF_R, &at) &&
			       elf_image_read(im, at, &bytes, sizeof(bytes)) == 0
		       ? bytes
		       : 0;
}

static int find(const struct elf_image *im, const char *name, struct thread_variable *ret)
{
	const struct elf_segment *threads = find_segment(im, PT_TLS);
	uint64_t value;
	bool is_static;

	if (!threads || !is_program(im))
		return 0;
	is_static = !find_segment(im, PT_INTERP);
	if (search_table(im, SHT_SYMTAB, STT_TLS, name, &value) ||
	    search_table(im, SHT_DYNSYM, STT_TLS, name, &value)) {
		*ret = thread_variable_of_program(threads->memsz, threads->align, value);
		ret->glibc_bytes = is_static ? struct_bytes(im) : 0;
		return 1;
	}
	return !is_static || elf_image_find_type(im, SHT_SYMTAB) ? 0 : -ENODATA;
}

int program_variable_find(int fd, const char *name, struct thread_variable *ret)
{
	struct elf_image im = ELF_IMAGE_INIT;
	int r;

	if (elf_image_open_fd(&im, fd) < 0)
		return 0;
	r = find(&im, name, ret);
	elf_image_close(&im);
	return r;
}
