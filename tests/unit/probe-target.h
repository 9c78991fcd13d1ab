/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A function and markers in the test program itself, as targets of probes. The oracle of their
 * offsets in the file is the kernel: it says where it has mapped the file.
 */
#include <stdint.h>
#include <stdio.h>

#include "tests/unit/test.h"

void probe_target(void);
void probe_target(void)
{
	__asm__ volatile("" ::: "memory");
}

extern uint16_t probe_watchers; /* who watches the marker */
extern const char probe_site_1[], probe_site_2[];

/* Two places of one marker, as sys/sdt.h makes them; the second watched, the base moved by 0x100 as
 * prelink would have it. */
#define NOTE(site, base, counter, name)                                                            \
	".balign 4\n.4byte 8, 2f - 1f, 3\n.asciz \"stapsdt\"\n"                                    \
	"1: .8byte " site ", " base ", " counter "\n.asciz \"unit\"\n.asciz \"" name               \
	"\"\n.asciz \"\"\n2:\n.balign 4\n"
__asm__(".text\n.globl probe_site_1, probe_site_2\nprobe_site_1: nop\nprobe_site_2: nop\n"
	".data\n.globl probe_watchers\nprobe_watchers: .2byte 0\n"
	".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	"test_base: .space 1\n"
	".section .note.stapsdt,\"\",\"note\"\n" NOTE("probe_site_1", "test_base", "0", "step")
		NOTE("probe_site_2 - 0x100", "test_base - 0x100", "probe_watchers - 0x100", "step")
			NOTE("probe_site_1", "test_base", "0", "other") ".text\n");

/* Where the kernel says that the byte at an address is in the file. */
static inline uint64_t probe_offset_of(const void *p)
{
	uintptr_t address = (uintptr_t)p;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end) {
			(void)fclose(f);
			return offset + (address - start);
		}
	}
	CHECK(!"mapped");
	return 0;
}
