/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libdw's own unwinder over a copied stack, and given files or those of a process: what ours is
 * held against.
 */
#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include "unwind/unwind.h"

struct oracle_module {
	const char *name; /* unique: libdwfl loses a module whose name comes twice */
	int fd;		  /* of the file; stays the caller's */
	uint64_t bias;
};
struct oracle;

struct oracle *oracle_new(void);
/* What the process has mapped, or what the text, in the form of /proc/PID/maps, says it has. */
struct oracle *oracle_new_process(pid_t pid, const char *maps_text);
struct oracle *oracle_free(struct oracle *o);
DEFINE_CLEANUP(struct oracle *, oracle_free)
/* Of oracle_new(): all modules, then oracle_ready(). false: libdw does not want it at that place.
 */
bool oracle_add(struct oracle *o, const struct oracle_module *m);
void oracle_ready(struct oracle *o);
/* Opens every module's file and CFI now. */
void oracle_preload(struct oracle *o);
/* Opens what covers address; the bytes that libdw has mapped of that file, NULL: none. */
const uint8_t *oracle_image(struct oracle *o, uint64_t address, size_t *ret_n);
/* "name+0x1f", or "" */
const char *oracle_symbol(struct oracle *o, uint64_t address, char *buf, size_t n);

/* Addresses as in struct unwind_frame; how many. */
size_t oracle_walk(struct oracle *o, const struct unwind_regs *regs, const uint8_t *stack,
		   size_t n_stack, uint64_t *addresses, size_t max);

/* The registers of a frame. */
struct oracle_registers {
	uint64_t sp, fp;
	bool has_sp, has_fp;
};
/* Walks from now on write here too, as many as addresses; NULL: no more. false: this libdw cannot
 * tell. */
bool oracle_keep_registers(struct oracle *o, struct oracle_registers *registers);

/* Of frames that both have, up to where they part. */
struct register_tally {
	uint64_t frames;
	uint64_t sp_same, sp_other, fp_same, fp_other;
	uint64_t fp_unknown;	/* to us alone */
	uint64_t fp_ours_alone; /* to libdw alone */
};
/* n frames of ours, and libdw's registers of them. */
void register_tally_add(struct register_tally *t, const struct unwind_frame *ours,
			const struct oracle_registers *theirs, size_t n);
void register_tally_print(const struct register_tally *t);
