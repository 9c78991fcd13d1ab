/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/corpus/oracle.h"

#include <elfutils/version.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/arch.h"

#define NO_PROCESS 1 /* the pid of a process that is none */

struct oracle {
	Dwfl *dwfl;
	pid_t pid;
	const struct unwind_regs *regs;
	const uint8_t *stack;
	size_t n_stack;
	uint64_t *addresses;
	struct oracle_registers *registers; /* NULL: not wanted */
	size_t n, max;
};

static int no_debuginfo(Dwfl_Module *m, void **u, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **ret)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	const struct oracle *o = arg;

	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return o->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	const struct oracle *o = arg;
	uint64_t at = addr - o->regs->r[ARCH_REG_SP];

	if (at >= o->n_stack || o->n_stack - at < sizeof(*ret))
		return false;
	memcpy(ret, o->stack + at, sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct oracle *o = arg;
	/* Where the pc is no register of CFI, it is told besides. */
	unsigned int n = ARCH_REG_PC == ARCH_REG_RA ? UNWIND_N_REGS : ARCH_REG_PC;
	Dwarf_Word words[UNWIND_N_REGS];

	for (unsigned int i = 0; i < n; i++)
		words[i] = o->regs->r[i];
	if (n < UNWIND_N_REGS)
		dwfl_thread_state_register_pc(thread, o->regs->r[ARCH_REG_PC]);
	return dwfl_thread_state_registers(thread, 0, n, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* A program may map a relocatable file, and libdw then asks where its sections are: nowhere. */
static int no_section_address(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			      const char *section, GElf_Word index, const GElf_Shdr *header,
			      Dwarf_Addr *ret)
{
	(void)module, (void)user, (void)name, (void)base;
	(void)section, (void)index, (void)header;
	*ret = (Dwarf_Addr)-1;
	return DWARF_CB_OK;
}

static const Dwfl_Callbacks given_files = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = no_debuginfo,
	.section_address = no_section_address,
};

static const Dwfl_Callbacks files_of_process = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
	.section_address = no_section_address,
};

static struct oracle *begin(pid_t pid, const Dwfl_Callbacks *callbacks)
{
	struct oracle *o = calloc(1, sizeof(*o));

	o->pid = pid;
	o->dwfl = dwfl_begin(callbacks);
	dwfl_report_begin(o->dwfl);
	return o;
}

struct oracle *oracle_new(void)
{
	return begin(NO_PROCESS, &given_files);
}

struct oracle *oracle_new_process(pid_t pid, const char *maps_text)
{
	struct oracle *o = begin(pid, &files_of_process);

	if (maps_text) {
		FILE *f = fmemopen((void *)(uintptr_t)maps_text, strlen(maps_text), "r");

		(void)dwfl_linux_proc_maps_report(o->dwfl, f);
		(void)fclose(f);
	} else {
		(void)dwfl_linux_proc_report(o->dwfl, pid);
	}
	oracle_ready(o);
	return o;
}

struct oracle *oracle_free(struct oracle *o)
{
	if (o) {
		dwfl_end(o->dwfl);
		free(o);
	}
	return NULL;
}

bool oracle_add(struct oracle *o, const struct oracle_module *m)
{
	/* libdwfl takes the descriptor. */
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	Dwfl_Module *module = dwfl_report_elf(o->dwfl, m->name, m->name, fd, m->bias, true);
	GElf_Addr bias = 0;

	if (!module) {
		(void)close(fd);
		return false;
	}
	return dwfl_module_getelf(module, &bias) && bias == m->bias;
}

void oracle_ready(struct oracle *o)
{
	dwfl_report_end(o->dwfl, NULL, NULL);
}

static int preload(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	GElf_Addr bias;

	(void)dwfl_module_getelf(m, &bias);
	(void)dwfl_module_eh_cfi(m, &bias);
	return DWARF_CB_OK;
}

void oracle_preload(struct oracle *o)
{
	(void)dwfl_getmodules(o->dwfl, preload, NULL, 0);
}

const uint8_t *oracle_image(struct oracle *o, uint64_t address, size_t *ret_n)
{
	Dwfl_Module *m = dwfl_addrmodule(o->dwfl, address);
	GElf_Addr bias;
	Elf *elf = m ? dwfl_module_getelf(m, &bias) : NULL;

	return elf ? (const uint8_t *)elf_rawfile(elf, ret_n) : NULL;
}

const char *oracle_symbol(struct oracle *o, uint64_t address, char *buf, size_t n)
{
	Dwfl_Module *m = dwfl_addrmodule(o->dwfl, address);
	const char *name;
	GElf_Off offset;
	GElf_Sym sym;

	buf[0] = '\0';
	name = m ? dwfl_module_addrinfo(m, address, &offset, &sym, NULL, NULL, NULL) : NULL;
	if (name)
		(void)snprintf(buf, n, "%s+%#" PRIx64, name, (uint64_t)offset);
	return buf;
}

static bool read_register(Dwfl_Frame *frame, unsigned int reg, uint64_t *ret)
{
#if _ELFUTILS_PREREQ(0, 188)
	Dwarf_Word value;

	if (dwfl_frame_reg(frame, reg, &value) == 0) {
		*ret = value;
		return true;
	}
#endif
	return false;
}

bool oracle_keep_registers(struct oracle *o, struct oracle_registers *registers)
{
	o->registers = registers;
	return _ELFUTILS_PREREQ(0, 188);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct oracle *o = arg;
	bool activation;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &activation) || o->n == o->max)
		return DWARF_CB_ABORT;
	if (o->registers) {
		struct oracle_registers *r = &o->registers[o->n];

		r->has_sp = read_register(frame, ARCH_REG_SP, &r->sp);
		r->has_fp = read_register(frame, ARCH_REG_FP, &r->fp);
	}
	o->addresses[o->n++] = pc - (activation ? 0 : 1);
	return DWARF_CB_OK;
}

size_t oracle_walk(struct oracle *o, const struct unwind_regs *regs, const uint8_t *stack,
		   size_t n_stack, uint64_t *addresses, size_t max)
{
	o->regs = regs;
	o->stack = stack;
	o->n_stack = n_stack;
	o->addresses = addresses;
	o->n = 0;
	o->max = max;
	/* The state is attached once; which backend is asked of any module's ELF file. */
	if (dwfl_pid(o->dwfl) < 0 &&
	    !dwfl_attach_state(o->dwfl, NULL, o->pid, &thread_callbacks, o))
		return 0;
	(void)dwfl_getthread_frames(o->dwfl, o->pid, on_frame, o);
	return o->n;
}

void register_tally_add(struct register_tally *t, const struct unwind_frame *ours,
			const struct oracle_registers *theirs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct unwind_frame *f = &ours[i];
		const struct oracle_registers *r = &theirs[i];

		t->frames++;
		t->sp_same += r->has_sp && r->sp == f->sp;
		t->sp_other += r->has_sp && r->sp != f->sp;
		t->fp_same += r->has_fp && r->fp == f->fp;
		t->fp_other += r->has_fp && r->fp != f->fp && f->fp;
		t->fp_unknown += r->has_fp && r->fp && !f->fp;
		t->fp_ours_alone += !r->has_fp && f->fp;
	}
}

void register_tally_print(const struct register_tally *t)
{
	fprintf(stderr,
		"  registers of %" PRIu64 " frames: sp the same %" PRIu64 ", other %" PRIu64
		"; fp the same %" PRIu64 ", other %" PRIu64 ", not known to us %" PRIu64
		", to libdw %" PRIu64 "\n",
		t->frames, t->sp_same, t->sp_other, t->fp_same, t->fp_other, t->fp_unknown,
		t->fp_ours_alone);
}
