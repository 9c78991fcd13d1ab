/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small just-in-time compiler that describes its code in DIRECTORY/jit-PID.dump: it runs
 * jitted_first for a second and a half, puts jitted_second in its place, one byte further on, for
 * as long, and so on: each stands where instructions of the other were. With a second argument the
 * file says it is of a machine of the other byte order.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

#define PERIOD_NS UINT64_C(1500000000)

typedef void (*code)(uint64_t n);

KNOWN void run_first(code inner, uint64_t n)
{
	inner(n);
	KEEP_FRAME();
}

KNOWN void run_second(code inner, uint64_t n)
{
	inner(n);
	KEEP_FRAME();
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, size;
	uint64_t time;
};

struct lines {
	struct record record;
	uint64_t code, n, address;
	uint32_t line, column;
	char file[16];
};

struct load {
	struct record record;
	uint32_t pid, tid;
	uint64_t vma, code, size, index;
	char name[16];
	unsigned char bytes[16];
};

/* The file's lines of the loop: 10 of the first function, 20 of the second. */
static int tell(int fd, const unsigned char *start, size_t n, int turn)
{
	static uint64_t index;
	struct lines l = {{2, sizeof(l), now()}, (uint64_t)start, 1,
			  (uint64_t)start,	 turn ? 20 : 10,  0,
			  "jitted.source"};
	struct load f = {{0, sizeof(f), now()},
			 (uint32_t)getpid(),
			 (uint32_t)getpid(),
			 (uint64_t)start,
			 (uint64_t)start,
			 n,
			 index++,
			 "",
			 {0}};

	strcpy(f.name, turn ? "jitted_second" : "jitted_first");
	return write(fd, &l, sizeof(l)) == sizeof(l) && write(fd, &f, sizeof(f)) == sizeof(f);
}

static int open_dump(const char *directory, int swapped)
{
	struct header h = {0x4A695444, 1, sizeof(h), EM_X86_64, 0, (uint32_t)getpid(), 0, 0};
	char path[4096];
	int fd;

	if (swapped)
		h.magic = __builtin_bswap32(h.magic);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, (int)getpid());
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0 || write(fd, &h, sizeof(h)) != sizeof(h) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	/* push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret */
	static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
					      0xcf, 0x75, 0xfb, 0x5d, 0xc3};
	unsigned char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_dump(argc > 1 ? argv[1] : "/tmp", argc > 2), turn = 0;

	if (page == MAP_FAILED || fd < 0)
		return 1;
	for (;; turn = !turn) {
		unsigned char *start = page + 64 + turn;
		uint64_t end = now() + PERIOD_NS;

		if (mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0)
			return 1;
		memcpy(start, bytes, sizeof(bytes));
		if (mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0 ||
		    !tell(fd, start, sizeof(bytes), turn))
			return 1;
		while (now() < end)
			(turn ? run_second : run_first)((code)start, 1000000);
	}
}
