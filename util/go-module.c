/* SPDX-License-Identifier: Apache-2.0 */
#include "util/go-module.h"

#include <elf.h>
#include <string.h>

const char *const go_module_data_sections[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro",
					       NULL};
const char *const go_module_relocation_sections[] = {".rela.dyn", ".rela", NULL};

size_t go_module_find_table(const uint8_t *bytes, size_t n, uint64_t address)
{
	static const uint8_t magic[] = {0xff, 0xff, 0xff, 0, 0}; /* after f0 (1.18) or f1 (1.20) */

	for (size_t at = -address & 7; n >= 8 && at <= n - 8; at += 8) {
		const uint8_t *head = bytes + at;

		/* Then the size of an instruction, which callers check, and that of a pointer */
		if ((head[0] & 0xfe) == 0xf0 && memcmp(head + 1, magic, sizeof(magic)) == 0 &&
		    head[7] == 8)
			return at;
	}
	return n;
}

/* Are these words a moduledata, as far as they can be checked? */
static bool is_module(const struct go_module_key *key, const struct go_module *m)
{
	return m->words[0] == key->table && m->words[GO_MODULE_NAMES] == key->names &&
	       m->words[GO_MODULE_MIN_PC] == m->words[GO_MODULE_TEXT] + key->first_function;
}

bool go_module_find(const struct go_module_key *key, const uint8_t *bytes, size_t n,
		    uint64_t address, struct go_module *ret)
{
	for (size_t at = -address & 7; n >= sizeof(*ret) && at <= n - sizeof(*ret); at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		if (word != key->table)
			continue;
		memcpy(ret, bytes + at, sizeof(*ret));
		if (is_module(key, ret))
			return true;
	}
	return false;
}

static bool relocation_read(const uint8_t *bytes, size_t i, uint32_t relative, Elf64_Rela *ret)
{
	memcpy(ret, bytes + i * sizeof(*ret), sizeof(*ret));
	return ELF64_R_TYPE(ret->r_info) == relative;
}

/* Linkers sort relocations by address. */
bool go_module_find_relocated(const struct go_module_key *key, const uint8_t *bytes, size_t n,
			      uint32_t relative, struct go_module *ret)
{
	n /= sizeof(Elf64_Rela);
	for (size_t i = 0; i < n; i++) {
		uint64_t base;
		Elf64_Rela r;

		if (!relocation_read(bytes, i, relative, &r) || (uint64_t)r.r_addend != key->table)
			continue;
		base = r.r_offset;
		memset(ret, 0, sizeof(*ret));
		for (size_t k = i; k < n && k < i + GO_MODULE_WORDS; k++) {
			if (relocation_read(bytes, k, relative, &r) && r.r_offset >= base &&
			    r.r_offset - base < sizeof(*ret))
				ret->words[(r.r_offset - base) / 8] = (uint64_t)r.r_addend;
		}
		if (is_module(key, ret))
			return true;
	}
	return false;
}
