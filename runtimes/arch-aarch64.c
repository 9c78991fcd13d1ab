/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>

#include "runtimes/arch-aarch64.h"
#include "runtimes/arch.h"

/* struct user_regs_struct: x0 to x30, sp, pc. */
bool runtime_regs_from_ptrace(const void *prstatus, size_t n, struct runtime_regs *ret)
{
	if (n < RUNTIME_N_REGS * sizeof(ret->r[0]))
		return false;
	*ret = (struct runtime_regs){.innermost = true};
	memcpy(ret->r, prstatus, sizeof(ret->r));
	ret->pc = ret->r[32];
	ret->sp = ret->r[31];
	ret->fp = ret->r[29];
	return true;
}

/* ---- CPython ---- */

/* As asm_trampoline.S has them, behind hints: it may sign its return address, and be a place to
 * jump to. The number of words in *ret. */
static bool is_trampoline(const uint8_t *code, size_t n, size_t *ret)
{
	/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x3; ldp x29, x30, [sp], 16; and maybe a hint;
	 * ret */
	static const uint32_t words[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd};
	size_t i = ARRAY_SIZE(words);

	if (n < (i + 2) * WORD || memcmp(code, words, sizeof(words)) != 0)
		return false;
	if (is_hint(word_at(code, i)))
		i++;
	*ret = i + 1;
	return word_at(code, i) == 0xd65f03c0;
}

bool arch_trampoline_shape(const uint8_t *code, size_t n_before, size_t n, enum frame_shape *ret)
{
	enum { MAX_BEFORE = 5, FIRST_FRAMED = 1, LAST_FRAMED = 3, MAX_HINTS = 2 };
	const uint8_t *at = code + n_before;
	size_t n_words;

	*ret = SHAPE_NONE;
	for (size_t i = 0; i <= MAX_BEFORE && i * WORD <= n_before; i++) {
		if (!is_trampoline(at - i * WORD, n + i * WORD, &n_words) || i >= n_words)
			continue;
		if (i >= FIRST_FRAMED && i <= LAST_FRAMED)
			*ret = SHAPE_PUSHED;
		return true;
	}
	for (size_t i = 0; i < MAX_HINTS && (i + 1) * WORD < n && is_hint(word_at(at, i)); i++) {
		if (is_trampoline(at + (i + 1) * WORD, n - (i + 1) * WORD, &n_words))
			return true;
	}
	return false;
}

bool arch_thread_number(struct memory *m, uint64_t thread, uint32_t *ret)
{
	enum { GLIBC_TID = 0xd0 };

	return thread && thread % 8 == 0 && memory_read(m, thread + GLIBC_TID, ret, sizeof(*ret));
}

/* adrp: the address of a page of 4 KiB, from that of the instruction. */
static bool is_page(uint32_t word)
{
	return (word & 0x9f000000) == 0x90000000;
}

static uint64_t page_of(uint32_t word, uint64_t at)
{
	uint64_t pages = (word >> 29 & 3) | (word >> 5 & 0x7ffff) << 2;

	if (pages & 0x100000)
		pages |= ~UINT64_C(0x1fffff);
	return (at & ~UINT64_C(0xfff)) + (pages << 12);
}

/* ldr x, [x, offset] */
static bool is_load(uint32_t word)
{
	return (word & 0xffc00000) == 0xf9400000;
}

static uint64_t load_offset(uint32_t word)
{
	return (uint64_t)(word >> 10 & 0xfff) * 8;
}

static bool is_return(uint32_t word)
{
	return word == 0xd65f03c0;
}

enum { N_KEPT = 31, FIRST_KEPT = 19 }; /* x0 to x30; a call keeps those from x19 on */

/* What the registers have; 0: not known. */
struct traced {
	uint64_t x[N_KEPT + 1]; /* the last one is sp or zero */
};

/* An instruction other than those that are followed writes no register but the one of its lowest
 * bits; loads of two write another one, and calls all that they need not keep. */
static void forget_written(struct traced *t, uint32_t word)
{
	bool calls = (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;

	for (size_t i = 0; calls && i < FIRST_KEPT; i++)
		t->x[i] = 0;
	if (calls)
		return;
	t->x[word & 31] = 0;
	if ((word & 0x3a000000) == 0x28000000)
		t->x[word >> 10 & 31] = 0;
}

/* Follows an instruction. The address of the variable that it loads; 0: it loads none. */
static uint64_t trace(struct traced *t, struct memory *m, uint64_t at, uint32_t word)
{
	uint64_t from = t->x[word >> 5 & 31];

	if (is_page(word)) {
		t->x[word & 31] = page_of(word, at);
	} else if ((word & 0xffc00000) == 0x91000000 && from) { /* add x, x, number */
		t->x[word & 31] = from + (word >> 10 & 0xfff);
	} else if (is_load(word) && from) {
		t->x[word & 31] = memory_u64(m, from + load_offset(word));
		return from + load_offset(word);
	} else {
		forget_written(t, word);
	}
	return 0;
}

/* A variable of another library, or that another library may have, is behind a table of addresses:
 * what is loaded there is one, and what is loaded from the address another one. */
uint64_t arch_loaded_variable(struct memory *m, uint64_t function, size_t i)
{
	enum { N_WORDS = 40 };
	uint32_t code[N_WORDS];
	struct traced t = {0};

	if (!function || !memory_read(m, function, code, sizeof(code)))
		return 0;
	for (size_t k = 0; k < N_WORDS && !is_return(code[k]); k++) {
		uint64_t variable = trace(&t, m, function + k * sizeof(code[0]), code[k]);

		t.x[N_KEPT] = 0;
		if (variable && i-- == 0)
			return variable;
	}
	return 0;
}

const uint32_t arch_lock_bytes = 48;

/* adrp x0, page; ldr x0, [x0, offset]; ret. In front may stand a landing pad (bti). */
uint64_t arch_returned_variable(struct memory *m, uint64_t function)
{
	uint32_t words[4], *code = words;

	if (!function || !memory_read(m, function, words, sizeof(words)))
		return 0;
	if ((words[0] & 0xffffff3f) == 0xd503241f)
		code++;
	if (!is_page(code[0]) || (code[0] & 31) != 0 || !is_load(code[1]) ||
	    (code[1] & 0x3ff) != 0 || !is_return(code[2]))
		return 0;
	return page_of(code[0], function + (uint64_t)(code - words) * sizeof(words[0])) +
	       load_offset(code[1]);
}

/* b; b.cond */
bool arch_jump(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	uint32_t word;
	int64_t distance;

	if (at % 4 != 0 || n - at < 4)
		return false;
	memcpy(&word, code + at, sizeof(word));
	if ((word & 0xfc000000) == 0x14000000)
		distance = (int32_t)(word << 6) >> 6;
	else if ((word & 0xff000010) == 0x54000000)
		distance = (int32_t)(word << 8) >> 13;
	else
		return false;
	*ret = (int64_t)at + distance * 4;
	return true;
}

bool arch_load(const uint8_t *code, size_t n, size_t at, int64_t *ret)
{
	return false;
}

const uint64_t arch_thread_vector = 0;
/* Of musl 1.2.3, compared with what a static program says of its threads under qemu-user. */
const struct arch_musl arch_musl = {
	.previous = 8, .next = 16, .number = 32, .pointer = 200, .vector = -8};
const int arch_go_register = 28;
const int arch_go_near = 16;

enum arch_thread_relocation arch_thread_relocation(uint32_t type)
{
	return type == R_AARCH64_TLS_TPREL    ? ARCH_THREAD_OFFSET
	       : type == R_AARCH64_TLS_DTPMOD ? ARCH_THREAD_MODULE
	       : type == R_AARCH64_TLSDESC    ? ARCH_THREAD_DESCRIPTOR
					      : ARCH_THREAD_NONE;
}

/* They are behind it. */
bool arch_is_thread_offset(int64_t offset)
{
	return offset >= 16 && offset < (INT64_C(1) << 32);
}

int64_t arch_program_offset(uint64_t bytes, uint64_t align, uint64_t value)
{
	return (int64_t)((16 + align - 1) / align * align + value);
}

/* The struct ends at the thread pointer, and its size depends on the version. Tried with glibc 2.36
 * (tests/kernels). */
uint64_t arch_thread_of_list(uint64_t robust_list, uint32_t bytes)
{
	enum { LIST = 0xe0 };

	return bytes > LIST && robust_list > LIST ? robust_list - LIST + bytes : 0;
}
