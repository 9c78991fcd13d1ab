/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the input is an ELF file; what CFI says all over it is asked for, and walked.
 * tests/fuzz/run.sh builds and runs it.
 *
 * The input may be CFI programs instead, which are put into an otherwise sound file, so that the
 * fuzzer does not have to invent one: "CFI" and an FDE's, or "CIE", a byte with the length of the
 * CIE's, that, and an FDE's.
 *
 * With a main of its own (FUZZ_REPLAY) it reads the files kept there, as make check does, and
 * changes each here and there.
 */
#include "tests/unit/unwind-elf.h"
#include "unwind/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct unwind_module *module;

static bool find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	*ret = (struct unwind_mapping){module->base, module->base + module->span, 0, module, 1,
				       false};
	return pc >= ret->start && pc < ret->end;
}

static void walk_at(struct unwinder *u, uint64_t pc)
{
	static struct full_rule full;
	struct unwind_frame frames[32];
	struct unwind_regs regs = {.valid = UNWIND_ALL_REGS};
	uint64_t stack[64];
	struct row row;
	size_t n_frames;

	for (size_t i = 0; i < ARRAY_SIZE(stack); i++)
		stack[i] = i % 3 ? module->base + (i * 0x119) % module->span : 0x7000 + i * 16;
	for (size_t i = 0; i < UNWIND_N_REGS; i++)
		regs.r[i] = 0x7000 + 8 * i;
	regs.r[ARCH_REG_SP] = 0x7000;
	regs.r[ARCH_REG_PC] = pc;
	(void)unwind_walk(u, &regs, (const uint8_t *)stack, sizeof(stack), find, NULL, frames, 32,
			  &n_frames);
	cfi_compile_row(module, pc, &row);
	(void)cfi_compile_full(module, pc, &full);
}

/* The file around CFI programs; false: the input is none. */
static bool make_elf(const uint8_t *data, size_t n, struct bytes *image)
{
	static struct bytes eh;
	size_t n_cie = n > 4 ? data[3] : 0, cie, at;

	if (n < 3 || n >= 40000)
		return false;
	eh.n = 0;
	if (memcmp(data, "CFI", 3) == 0) {
		at = 3;
		cie = elf_cie(&eh, 0, n & 1);
	} else if (memcmp(data, "CIE", 3) == 0 && n > 4 && n_cie <= n - 4) {
		at = 4 + n_cie;
		cie = elf_cie_of(&eh, 0, 0, data + 4, n_cie);
	} else {
		return false;
	}
	elf_fde(&eh, 0, cie, ELF_TEXT, 0x8000, data + at, n - at);
	elf_make(image, &(struct elf_spec){.eh_frame = &eh});
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct bytes image;
	struct unwind_limits limits = {
		.cache_entries = 256, .max_row_bytes = 65536, .max_inflate_bytes = 65536};
	struct unwinder *u = NULL;
	uint64_t start, limit, offset;

	if (unwinder_new(&u, &limits) < 0)
		return 0;
	if (make_elf(data, n, &image)) {
		data = image.data;
		n = image.n;
	}
	if (unwind_module_new_memory(&module, u, data, n, "fuzz") == 0) {
		unwind_module_text(module, &start, &limit, &offset);
		walk_at(u, module->entry);
		for (unsigned int i = 0; i < 24; i++)
			walk_at(u, start + (limit > start
						    ? (i * UINT64_C(0x9e3779b1)) % (limit - start)
						    : 0));
		for (unsigned int i = 0; i < 8; i++)
			walk_at(u, module->base + i * (module->span / 8));
		unwind_module_free(module);
	}
	unwinder_free(u);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 3, 1, 200);
}
#endif
