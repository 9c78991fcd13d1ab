/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>

#include "runtimes/arch.h"
#include "runtimes/musl.h"
#include "runtimes/thread-variable.h"

enum {
	MAX_RELOCATIONS = 1 << 17,
	CHUNK = 128, /* read at a time */
	NUMBER = 16, /* of a thread of glibc, in front of its list of robust locks */
	NEAR_BYTES = 4096,
};
#define UNRESOLVED 4096 /* less is no address */

/* Does it concern the variable of that name, at value in its module? */
static bool is_of_variable(const struct image *i, const Elf64_Rela *r, const char *name,
			   uint64_t value)
{
	uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);

	if (symbol)
		return image_symbol_is(i, symbol, name);
	/* The linker bound it in the library; the number of the module is the same for all. */
	return (uint64_t)r->r_addend == value ||
	       arch_thread_relocation((uint32_t)ELF64_R_TYPE(r->r_info)) == ARCH_THREAD_MODULE;
}

/* A descriptor's argument is the offset itself, or where module and offset are. */
static int read_descriptor(struct memory *m, uint64_t at, struct thread_variable *ret)
{
	int64_t argument = (int64_t)memory_u64(m, at + 8);
	uint64_t index[2];

	if (arch_is_thread_offset(argument)) {
		*ret = (struct thread_variable){.offset = argument};
		return 1;
	}
	if (argument < UNRESOLVED || !memory_read(m, (uint64_t)argument, index, sizeof(index)))
		return -EAGAIN;
	*ret = (struct thread_variable){.module = index[0], .offset = (int64_t)index[1]};
	return ret->module ? 1 : -EAGAIN;
}

/* What the loader wrote for a relocation; 0: it is of another kind. */
static int read_place(const struct image *i, const Elf64_Rela *r, uint64_t value,
		      struct thread_variable *ret)
{
	uint64_t at = i->bias + r->r_offset, word = memory_u64(i->memory, at);

	switch (arch_thread_relocation((uint32_t)ELF64_R_TYPE(r->r_info))) {
	case ARCH_THREAD_OFFSET:
		*ret = (struct thread_variable){.offset = (int64_t)word};
		return arch_is_thread_offset((int64_t)word) ? 1 : -EAGAIN;
	case ARCH_THREAD_MODULE:
		*ret = (struct thread_variable){.module = word, .offset = (int64_t)value};
		return word && word < UNRESOLVED ? 1 : -EAGAIN;
	case ARCH_THREAD_DESCRIPTOR:
		return read_descriptor(i->memory, at, ret);
	case ARCH_THREAD_NONE:
		break;
	}
	return 0;
}

static int find_among(const struct image *i, uint64_t table, uint64_t bytes, const char *name,
		      uint64_t value, struct thread_variable *ret)
{
	uint64_t n = bytes / sizeof(Elf64_Rela);
	Elf64_Rela relocations[CHUNK];

	for (uint64_t at = 0; table && at < n && at < MAX_RELOCATIONS; at += CHUNK) {
		uint64_t count = n - at < CHUNK ? n - at : CHUNK;

		if (!memory_read(i->memory, table + at * sizeof(relocations[0]), relocations,
				 count * sizeof(relocations[0])))
			return 0;
		for (uint64_t k = 0; k < count; k++) {
			uint32_t type = (uint32_t)ELF64_R_TYPE(relocations[k].r_info);
			int r;

			if (arch_thread_relocation(type) == ARCH_THREAD_NONE ||
			    !is_of_variable(i, &relocations[k], name, value))
				continue;
			r = read_place(i, &relocations[k], value, ret);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

struct thread_variable thread_variable_of_program(uint64_t bytes, uint64_t align, uint64_t value)
{
	return (struct thread_variable){
		.offset = arch_program_offset(bytes, align ? align : 1, value)};
}

int thread_variable_find(const struct image *i, const char *name, struct thread_variable *ret)
{
	uint64_t value;
	int r;

	if (!image_thread_symbol(i, name, &value))
		return 0;
	r = find_among(i, i->relocations, i->n_relocations, name, value, ret);
	if (r == 0)
		r = find_among(i, i->plt_relocations, i->n_plt_relocations, name, value, ret);
	if (r != 0 || !i->is_program)
		return r;
	/* The linker knew its place. */
	*ret = thread_variable_of_program(i->thread_bytes, i->thread_align, value);
	return 1;
}

/* Of glibc; 0, or all bits: it has none. */
static uint64_t block_of(struct memory *m, uint64_t thread, uint64_t module)
{
	uint64_t vector = memory_u64(m, thread + arch_thread_vector);
	uint64_t n = vector ? memory_u64(m, vector - 16) : 0;

	return module <= n ? memory_u64(m, vector + 16 * module) : 0;
}

uint64_t thread_variable_address(struct memory *m, const struct thread_variable *v, uint64_t thread)
{
	uint64_t block;

	if (!v->module)
		return thread + (uint64_t)v->offset;
	block = v->musl_thread ? musl_thread_block(m, thread, v->module)
			       : block_of(m, thread, v->module);
	return block && block != UINT64_MAX ? block + (uint64_t)v->offset : 0;
}

/* What glibc tells debuggers (nptl_db). */
uint32_t thread_struct_bytes(const struct image *image)
{
	uint64_t at = image_symbol(image, "_thread_db_sizeof_pthread");
	uint32_t bytes;

	return at && memory_read(image->memory, at, &bytes, sizeof(bytes)) ? bytes : 0;
}

bool thread_variable_read_near(struct memory *m, const struct thread_variable *v,
			       uint64_t robust_list, uint32_t own_tid, uint64_t *ret_address,
			       uint64_t *ret_value)
{
	uint64_t thread =
		robust_list > NUMBER ? arch_thread_of_list(robust_list, v->glibc_bytes) : 0;
	uint64_t number_at = robust_list - NUMBER, at = thread + (uint64_t)v->offset;
	uint64_t start = at < number_at ? at : number_at;
	uint64_t end = at < number_at ? number_at + sizeof(own_tid) : at + sizeof(*ret_value);
	uint8_t bytes[NEAR_BYTES];

	if (v->module || v->musl_thread || !thread || end - start > sizeof(bytes) ||
	    !memory_read(m, start, bytes, end - start) ||
	    memory_u32_of(bytes, (int32_t)(number_at - start)) != own_tid)
		return false;
	*ret_address = at;
	*ret_value = memory_u64_of(bytes, (int32_t)(at - start));
	return true;
}

uint64_t thread_pointer_of(struct memory *m, uint64_t robust_list, uint32_t own_tid,
			   uint32_t glibc_bytes)
{
	uint64_t thread = robust_list > NUMBER ? arch_thread_of_list(robust_list, glibc_bytes) : 0;
	uint32_t number;

	return thread && memory_read(m, robust_list - NUMBER, &number, sizeof(number)) &&
			       number == own_tid
		       ? thread
		       : 0;
}
