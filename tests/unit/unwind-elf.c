/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/unit/test.h"
#include "tests/unit/unwind-elf.h"

#define EH_FRAME_ADDR UINT64_C(0x500000)

void bytes_put(struct bytes *b, const void *data, size_t n)
{
	CHECK(n <= sizeof(b->data) - b->n);
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
}

void bytes_u8(struct bytes *b, unsigned int v)
{
	uint8_t byte = (uint8_t)v;

	bytes_put(b, &byte, 1);
}

void bytes_u32(struct bytes *b, uint32_t v)
{
	bytes_put(b, &v, sizeof(v));
}

void bytes_u64(struct bytes *b, uint64_t v)
{
	bytes_put(b, &v, sizeof(v));
}

void bytes_uleb(struct bytes *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		bytes_u8(b, (unsigned int)(v & 0x7f) | 0x80);
	bytes_u8(b, (unsigned int)v);
}

static void set_length(struct bytes *b, size_t at)
{
	uint32_t n;

	while (b->n % 8 != 4)
		bytes_u8(b, 0);
	n = (uint32_t)(b->n - at - 4);
	memcpy(b->data + at, &n, sizeof(n));
}

size_t elf_cie(struct bytes *b, int debug, int signal_frame)
{
	static const uint8_t code[] = {0x0c, 7, 8, 0x90, 1}; /* CFA = rsp + 8; r16 at CFA - 8 */

	return elf_cie_of(b, debug, signal_frame, code, sizeof(code));
}

size_t elf_cie_of(struct bytes *b, int debug, int signal_frame, const void *code, size_t n_code)
{
	size_t at = b->n;

	bytes_u32(b, 0);
	bytes_u32(b, debug ? UINT32_MAX : 0);
	bytes_u8(b, debug ? 3 : 1);
	if (debug)
		bytes_put(b, "", 1);
	else if (signal_frame)
		bytes_put(b, "zRS", 4);
	else
		bytes_put(b, "zR", 3);
	bytes_u8(b, 1);	   /* code alignment */
	bytes_u8(b, 0x78); /* data alignment -8 */
	bytes_u8(b, 16);
	if (!debug) {
		bytes_u8(b, 1);
		bytes_u8(b, 0); /* absolute pointers */
	}
	bytes_put(b, code, n_code);
	set_length(b, at);
	return at;
}

void elf_fde(struct bytes *b, int debug, size_t cie, uint64_t start, uint64_t n, const void *code,
	     size_t n_code)
{
	size_t at = b->n;

	bytes_u32(b, 0);
	bytes_u32(b, debug ? (uint32_t)cie : (uint32_t)(b->n - cie));
	bytes_u64(b, start);
	bytes_u64(b, n);
	if (!debug)
		bytes_u8(b, 0);
	bytes_put(b, code, n_code);
	set_length(b, at);
}

void elf_make(struct bytes *ret, const struct elf_spec *spec)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.zdebug_frame\0.shstrtab";
	Elf64_Ehdr eh = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = spec->entry,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_offset = 0x1000,
			 .p_vaddr = ELF_TEXT,
			 .p_filesz = ELF_TEXT_SIZE,
			 .p_memsz = ELF_TEXT_SIZE,
			 .p_align = 0x1000};
	Elf64_Shdr sh[4] = {
		[1] = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC},
		[2] = {.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_flags = spec->debug_flags},
		[3] = {.sh_name = 38, .sh_type = SHT_STRTAB, .sh_size = sizeof(names)},
	};

	memset(ret->data, 0, 0x1000 + ELF_TEXT_SIZE);
	ret->n = 0x1000 + ELF_TEXT_SIZE;
	sh[1].sh_addr = EH_FRAME_ADDR;
	sh[1].sh_offset = ret->n;
	if (spec->eh_frame) {
		sh[1].sh_size = spec->eh_frame->n;
		bytes_put(ret, spec->eh_frame->data, spec->eh_frame->n);
	}
	if (spec->debug_name && strcmp(spec->debug_name, ".zdebug_frame") == 0)
		sh[2].sh_name = 24;
	sh[2].sh_offset = ret->n;
	if (spec->debug_frame) {
		sh[2].sh_size = spec->debug_frame->n;
		bytes_put(ret, spec->debug_frame->data, spec->debug_frame->n);
	}
	sh[3].sh_offset = ret->n;
	bytes_put(ret, names, sizeof(names));
	while (ret->n % 8)
		bytes_u8(ret, 0);
	eh.e_shoff = ret->n;
	bytes_put(ret, sh, sizeof(sh));
	memcpy(ret->data, &eh, sizeof(eh));
	memcpy(ret->data + sizeof(eh), &ph, sizeof(ph));
}
