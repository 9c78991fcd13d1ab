/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small just-in-time compiler: writes machine code into anonymous memory, describes it in
 * /tmp/perf-PID.map under the process id it sees itself, and spends its time there. With an
 * argument it writes no map, since somebody else has put something in its place, and takes 20% of a
 * CPU.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common.h"

typedef void (*code)(uint64_t n);

KNOWN void jit_run(code inner, uint64_t n)
{
	inner(n);
	KEEP_FRAME();
}

static int write_map(const unsigned char *code_start, size_t n)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return -1;
	fprintf(map, "%lx %zx jitted_inner_loop\n", (unsigned long)code_start, n);
	return fclose(map);
}

int main(int argc, char **argv)
{
	/* push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret */
	static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
					      0xcf, 0x75, 0xfb, 0x5d, 0xc3};
	unsigned char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 1;
	memcpy(page + 64, bytes, sizeof(bytes));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0)
		return 1;
	if (argc == 1 && write_map(page + 64, sizeof(bytes)) != 0)
		return 1;
	for (;;) {
		jit_run((code)(page + 64), 1000000);
		if (argc > 1)
			rest(20);
	}
}
