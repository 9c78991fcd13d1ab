/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker leaves out functions that a program does not call. So only programs with labels have
 * the function that sets them, and .gopclntab names the functions of each program, stripped or not.
 * The version is in .go.buildinfo (debug/buildinfo), since 1.18 as a text after a head of 32 bytes.
 */
#include <stdio.h>
#include <string.h>

#include "runtimes/go.h"
#include "src/profiler/go-program.h"
#include "symbolize/elf-image.h"
#include "util/go-module.h"

enum { MAX_TABLE = 64 << 20, MAX_INFO = 1 << 20, INFO_HEAD = 32, INFO_FLAGS = 15, INLINE = 2 };

static uint32_t read_version(const uint8_t *info, size_t n)
{
	static const char magic[] = "\xff Go buildinf:";
	char text[32];

	if (n <= INFO_HEAD || memcmp(info, magic, sizeof(magic) - 1) != 0 ||
	    !(info[INFO_FLAGS] & INLINE) || info[INFO_HEAD] >= n - INFO_HEAD)
		return 0;
	(void)snprintf(text, sizeof(text), "%.*s", (int)info[INFO_HEAD],
		       (const char *)info + INFO_HEAD + 1);
	return go_version_of(text);
}

static uint32_t version_of(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find(im, GO_MODULE_MARK);
	struct elf_bytes b = {0};
	uint32_t version;

	if (!s || elf_image_bytes(im, s, MAX_INFO, &b) < 0)
		return 0;
	version = read_version(b.data, b.n);
	elf_bytes_release(&b);
	return version;
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

uint32_t go_program_labels(int fd)
{
	struct elf_image im = ELF_IMAGE_INIT;
	uint32_t version = 0;

	if (elf_image_open_fd(&im, fd) < 0)
		return 0;
	version = version_of(&im);
	if (version && !sets_labels(&im))
		version = 0;
	elf_image_close(&im);
	return version;
}
