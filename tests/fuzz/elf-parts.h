/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For fuzz targets that read ELF files: an input of several files, one behind the other, and a
 * mutator that stays within a section, so that the headers still lead to what it has changed.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ELF_MAX_PARTS 4

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned int seed);

struct elf_part {
	size_t at, n;
};

/* The files: each begins where an ELF header does, at a multiple of 8. There is always one. */
static inline unsigned int elf_parts(const uint8_t *data, size_t n,
				     struct elf_part ret[ELF_MAX_PARTS])
{
	unsigned int n_parts = 1;

	ret[0] = (struct elf_part){0, n};
	for (size_t at = 8; at + 8 <= n && n_parts < ELF_MAX_PARTS; at += 8) {
		if (memcmp(data + at, ELFMAG "\2\1\1", 7) != 0)
			continue;
		ret[n_parts - 1].n = at - ret[n_parts - 1].at;
		ret[n_parts++] = (struct elf_part){at, n - at};
	}
	return n_parts;
}

/* The i-th section that has bytes and no code. */
static inline bool elf_part_section(const uint8_t *data, const struct elf_part *part,
				    unsigned int i, struct elf_part *ret)
{
	Elf64_Ehdr e;
	Elf64_Shdr s;

	if (part->n < sizeof(e))
		return false;
	memcpy(&e, data + part->at, sizeof(e));
	if (e.e_shoff > part->n || i >= e.e_shnum || (part->n - e.e_shoff) / sizeof(s) <= i)
		return false;
	memcpy(&s, data + part->at + e.e_shoff + i * sizeof(s), sizeof(s));
	if (s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS || s.sh_flags & SHF_EXECINSTR ||
	    s.sh_size == 0 || s.sh_offset > part->n || s.sh_size > part->n - s.sh_offset)
		return false;
	*ret = (struct elf_part){part->at + s.sh_offset, s.sh_size};
	return true;
}

/* One change in eight is anywhere. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned int seed)
{
	struct elf_part parts[ELF_MAX_PARTS], found[ELF_MAX_PARTS * 64];
	unsigned int n_parts = elf_parts(data, n, parts), n_found = 0;

	for (unsigned int i = 0; i < n_parts; i++)
		for (unsigned int k = 0; k < 64; k++)
			n_found += elf_part_section(data, &parts[i], k, &found[n_found]);
	if (n_found == 0 || seed % 8 == 0)
		return LLVMFuzzerMutate(data, n, max);
	seed = seed / 8 % n_found;
	(void)LLVMFuzzerMutate(data + found[seed].at, found[seed].n, found[seed].n);
	return n;
}

#ifdef FUZZ_REPLAY
/* Without libFuzzer: some bytes, half of them near the beginning, where the headers are. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	static uint64_t state = 1;

	(void)max;
	for (unsigned int i = 0; n > 0 && i < 3; i++) {
		uint64_t r = state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		size_t range = r >> 63 && n > 64 ? 64 : n;

		data[(r >> 20) % range] =
			r >> 62 & 1 ? values[(r >> 56) % sizeof(values)] : (uint8_t)(r >> 48);
	}
	return n;
}
#endif
