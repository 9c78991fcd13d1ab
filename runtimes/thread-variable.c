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
	NEAR_MODULES = 62, /* whose blocks one read of the vector finds */
	RSEQ_CPU = 4,	   /* in the struct of rseq(2): the CPU, or what is no number of one */
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

/* Reads the value that the loader wrote at a relocation; 0: it is of another kind. */
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

/* The TLS block of a module, by the vector of a thread of glibc: the number of modules in front,
 * then two words for each. *ret 0, or all bits set: none. */
static bool read_block(struct memory *m, uint64_t vector, uint64_t module, uint64_t *ret)
{
	uint64_t words[2 * (1 + NEAR_MODULES) + 1];

	*ret = 0;
	if (module > NEAR_MODULES)
		return memory_read(m, vector - 16, words, sizeof(words[0])) &&
		       (module > words[0] ||
			memory_read(m, vector + 16 * module, ret, sizeof(*ret)));
	if (!memory_read(m, vector - 16, words, (2 * (1 + module) + 1) * sizeof(words[0])))
		return false;
	*ret = module <= words[0] ? words[2 * (1 + module)] : 0;
	return true;
}

static uint64_t address_in(uint64_t block, const struct thread_variable *v)
{
	return block && block != UINT64_MAX ? block + (uint64_t)v->offset : 0;
}

bool thread_variable_musl_address(struct memory *m, const struct thread_variable *v,
				  uint64_t thread, uint64_t *ret)
{
	*ret = v->module ? address_in(musl_thread_block(m, thread, v->module), v)
			 : thread + (uint64_t)v->offset;
	/* It gives a module's block to all threads at once. */
	return *ret != 0;
}

/* glibc publishes the size for debuggers (nptl_db). */
uint32_t thread_struct_bytes(const struct image *image)
{
	uint64_t at = image_symbol(image, "_thread_db_sizeof_pthread");
	uint32_t bytes;

	return at && memory_read(image->memory, at, &bytes, sizeof(bytes)) ? bytes : 0;
}

int32_t thread_struct_cpu(const struct image *image)
{
	uint64_t offset_at = image_symbol(image, "__rseq_offset");
	uint64_t size_at = image_symbol(image, "__rseq_size");
	int64_t offset;
	uint32_t size;

	if (!offset_at || !size_at ||
	    !memory_read(image->memory, offset_at, &offset, sizeof(offset)) ||
	    !memory_read(image->memory, size_at, &size, sizeof(size)) ||
	    size < RSEQ_CPU + sizeof(uint32_t) || offset <= -NEAR_BYTES || offset >= NEAR_BYTES)
		return 0;
	return (int32_t)offset + RSEQ_CPU;
}

/* A part of a thread's struct, and what lies around it. */
struct near_part {
	uint64_t thread, number_at, start, end;
	uint8_t bytes[NEAR_BYTES];
};

static void add_to_part(struct near_part *p, uint64_t at, size_t n)
{
	p->start = at < p->start ? at : p->start;
	p->end = at + n > p->end ? at + n : p->end;
}

/* With the thread's number, at first alone. */
static bool begin_part(struct near_part *p, const struct thread_variable *v, uint64_t robust_list)
{
	p->thread = !v->musl_thread && robust_list > NUMBER
			    ? arch_thread_of_list(robust_list, v->glibc_bytes)
			    : 0;
	p->number_at = p->start = robust_list - NUMBER;
	p->end = p->start + sizeof(uint32_t);
	return p->thread != 0;
}

static bool read_part(struct near_part *p, struct memory *m, uint32_t own_tid)
{
	return p->end - p->start <= sizeof(p->bytes) &&
	       memory_read(m, p->start, p->bytes, p->end - p->start) &&
	       memory_u32_of(p->bytes, (int32_t)(p->number_at - p->start)) == own_tid;
}

/* Unless it is too far from the rest. */
static bool add_cpu(struct near_part *p, const struct thread_variable *v)
{
	struct near_part with_cpu = {.start = p->start, .end = p->end};

	if (!v->cpu)
		return false;
	add_to_part(&with_cpu, p->thread + (uint64_t)(int64_t)v->cpu, sizeof(uint32_t));
	if (with_cpu.end - with_cpu.start > sizeof(p->bytes))
		return false;
	p->start = with_cpu.start;
	p->end = with_cpu.end;
	return true;
}

static uint32_t cpu_of_part(const struct near_part *p, const struct thread_variable *v)
{
	uint64_t at = p->thread + (uint64_t)(int64_t)v->cpu;

	return memory_u32_of(p->bytes, (int32_t)(at - p->start));
}

bool thread_variable_read_near(struct memory *m, const struct thread_variable *v,
			       uint64_t robust_list, uint32_t own_tid, size_t n_words,
			       struct thread_near *ret)
{
	struct near_part p;
	bool has_cpu;

	if (v->module || !begin_part(&p, v, robust_list))
		return false;
	ret->address = p.thread + (uint64_t)v->offset;
	add_to_part(&p, ret->address, n_words * sizeof(ret->words[0]));
	has_cpu = add_cpu(&p, v);
	if (!read_part(&p, m, own_tid))
		return false;
	memcpy(ret->words, p.bytes + (ret->address - p.start), n_words * sizeof(ret->words[0]));
	ret->cpu = has_cpu ? cpu_of_part(&p, v) : THREAD_NO_CPU;
	return true;
}

bool thread_variable_address(struct memory *m, const struct thread_variable *v,
			     uint64_t robust_list, uint32_t own_tid, uint64_t *ret)
{
	struct near_part p;
	uint64_t vector, block;

	if (!begin_part(&p, v, robust_list))
		return false;
	if (v->module)
		add_to_part(&p, p.thread + arch_thread_vector, sizeof(vector));
	if (!read_part(&p, m, own_tid))
		return false;
	*ret = p.thread + (uint64_t)v->offset;
	if (!v->module)
		return true;
	vector = memory_u64_of(p.bytes, (int32_t)(p.thread + arch_thread_vector - p.start));
	if (!read_block(m, vector, v->module, &block))
		return false;
	*ret = address_in(block, v);
	return true;
}

uint32_t thread_cpu(struct memory *m, const struct thread_variable *v, uint64_t robust_list,
		    uint32_t own_tid)
{
	struct near_part p;

	if (!begin_part(&p, v, robust_list) || !add_cpu(&p, v))
		return THREAD_NO_CPU;
	return read_part(&p, m, own_tid) ? cpu_of_part(&p, v) : THREAD_NO_CPU;
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
