/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker leaves out functions that a program does not call. So only programs with labels have
 * the function that sets them, and .gopclntab names the functions of each program, stripped or not.
 * The version is in .go.buildinfo (debug/buildinfo), since 1.18 as a text after a head of 32 bytes.
 *
 * The collector's cycles are counted in runtime.mheap_.sweepgen: prepareForSweep() loads it twice.
 */
#include <stdio.h>
#include <string.h>

#include "runtimes/arch.h"
#include "runtimes/go.h"
#include "src/profiler/go-program.h"
#include "symbolize/elf-image.h"
#include "symbolize/go-table.h"
#include "util/go-module.h"
#include "util/text.h"

enum { MAX_CODE = 128, MAX_LOADS = 8 };
enum { MAX_TABLE = 64 << 20, MAX_INFO = 1 << 20, INFO_HEAD = 32, INFO_FLAGS = 15, INLINE = 2 };

/* The version's text; false: there is none. */
static bool read_version(const uint8_t *info, size_t n, char *ret, size_t size)
{
	static const char magic[] = "\xff Go buildinf:";

	if (n <= INFO_HEAD || memcmp(info, magic, sizeof(magic) - 1) != 0 ||
	    !(info[INFO_FLAGS] & INLINE) || info[INFO_HEAD] >= n - INFO_HEAD)
		return false;
	(void)text_clean(ret, size, (const char *)info + INFO_HEAD + 1, info[INFO_HEAD]);
	return true;
}

static bool version_of(const struct elf_image *im, char *ret, size_t size)
{
	const struct elf_section *s = elf_image_find(im, GO_MODULE_MARK);
	struct elf_bytes b = {0};
	bool found;

	if (!s || elf_image_bytes(im, s, MAX_INFO, &b) < 0)
		return false;
	found = read_version(b.data, b.n, ret, size);
	elf_bytes_release(&b);
	return found;
}

/* The names are in one table, among those of files or of relocated data. */
static bool sets_labels(const struct elf_image *im)
{
	static const char *const sections[] = {".gopclntab", ".data.rel.ro.gopclntab",
					       ".data.rel.ro"};
	static const char name[] = "\0runtime/pprof.runtime_setProfLabel";
	const struct elf_section *s = NULL;
	struct elf_bytes b = {0};
	bool found;

	for (size_t i = 0; i < ARRAY_SIZE(sections) && !s; i++)
		s = elf_image_find(im, sections[i]);
	if (!s || elf_image_bytes(im, s, MAX_TABLE, &b) < 0)
		return false;
	found = memmem(b.data, b.n, name, sizeof(name)) != NULL;
	elf_bytes_release(&b);
	return found;
}

/* The first variable of 4 bytes that the code loads again; 0: there is none. */
static uint64_t loaded_twice(const uint8_t *code, size_t n, uint64_t address)
{
	uint64_t loads[MAX_LOADS];
	int n_loads = 0;

	for (size_t i = 0; i < n && n_loads < MAX_LOADS; i++) {
		int64_t distance;

		if (!arch_load(code, n, i, &distance))
			continue;
		loads[n_loads] = address + (uint64_t)distance;
		for (int k = 0; k < n_loads; k++) {
			if (loads[k] == loads[n_loads])
				return loads[k];
		}
		n_loads++;
	}
	return 0;
}

/* Memory that begins as zeros: the file has none of it. */
static bool is_zeros(const struct elf_image *im, uint64_t address)
{
	for (uint32_t i = 0; i < im->n_segments; i++) {
		const struct elf_segment *s = &im->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_W && address >= s->vaddr &&
		    address - s->vaddr >= s->filesz && address - s->vaddr < s->memsz)
			return true;
	}
	return false;
}

static uint64_t find_cycle(const struct elf_image *im)
{
	uint8_t bytes[MAX_CODE];
	uint64_t address, offset, found = 0;
	struct go_table *t = NULL;

	/* A file of another processor than this host's has no process here. */
	if (go_table_new(&t, im, MAX_TABLE) == 0 &&
	    go_table_address(t, "runtime.(*mcache).prepareForSweep", &address) &&
	    elf_image_offset(im, address, PF_X, &offset) &&
	    elf_image_read(im, offset, bytes, sizeof(bytes)) == 0)
		found = loaded_twice(bytes, sizeof(bytes), address);
	go_table_free(t);
	return found && is_zeros(im, found) ? found : 0;
}

struct go_program go_program_find(int fd)
{
	struct elf_image im = ELF_IMAGE_INIT;
	struct go_program found = {0};
	char version[sizeof(found.unknown)];

	if (elf_image_open_fd(&im, fd) < 0)
		return found;
	if (version_of(&im, version, sizeof(version)) && sets_labels(&im)) {
		found.version = go_version_of(version);
		if (found.version)
			found.cycle = find_cycle(&im);
		else
			(void)snprintf(found.unknown, sizeof(found.unknown), "%s", version);
	}
	elf_image_close(&im);
	return found;
}
