/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small just-in-time compiler of code without frame pointers: jitted_outer puts 0 into rbp and
 * calls jitted_inner, which runs. How they are unwound is in DIRECTORY/jit-PID.dump, as another
 * compiler would say it:
 *
 *	unwound DIRECTORY behind	V8: a record a function, as if it stood behind the code. And
 *					jitted_inner moves twice a second.
 *	unwound DIRECTORY apart		LLVM: one record for both, which tells its own address
 *	unwound DIRECTORY untold	there is no such record
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

#define PERIOD_NS UINT64_C(500000000)

typedef void (*code)(uint64_t n, const void *inner);

KNOWN void run_outer(code outer, uint64_t n, const void *inner)
{
	outer(n, inner);
	KEEP_FRAME();
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* push rbp; sub rsp, 32; xor ebp, ebp; call rsi; add rsp, 32; pop rbp; ret */
static const unsigned char outer_code[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0x31, 0xed, 0xff,
					   0xd6, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};
/* push rbx; sub rsp, 64; again: dec rdi; jnz again; add rsp, 64; pop rbx; ret */
static const unsigned char inner_code[] = {0x53, 0x48, 0x83, 0xec, 0x40, 0x48, 0xff, 0xcf,
					   0x75, 0xfb, 0x48, 0x83, 0xc4, 0x40, 0x5b, 0xc3};
/* The CFA is rsp + 8, then 16 behind the push, 48 or 80 behind the sub, and back. */
static const unsigned char outer_cfi[] = {0x41, 0x0e, 0x10, 0x86, 0x02, 0x44, 0x0e, 0x30,
					  0x48, 0x0e, 0x10, 0x41, 0x0e, 0x08, 0,    0};
static const unsigned char inner_cfi[] = {0x41, 0x0e, 0x10, 0x83, 0x02, 0x44, 0x0e, 0x50,
					  0x49, 0x0e, 0x10, 0x41, 0x0e, 0x08, 0,    0};

struct cie {
	uint32_t length, id;
	unsigned char body[16];
};

struct fde {
	uint32_t length, cie;
	int32_t start;
	uint32_t size;
	unsigned char no_augmentation, cfi[16], padding[3];
};

/* CFA = rsp + 8, the return address at CFA - 8; addresses are relative, 4 bytes. */
static const struct cie cie = {
	20, 0, {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0}};

struct record {
	uint32_t id, size;
	uint64_t time;
};

struct load {
	struct record record;
	uint32_t pid, tid;
	uint64_t vma, code, size, index;
	char name[16];
	unsigned char bytes[16];
};

struct move {
	struct record record;
	uint32_t pid, tid;
	uint64_t vma, old, new, size, index;
};

/* fde.start is relative to its own place, which at is the address of. */
static struct fde fde_of(const void *start, uint32_t size, const unsigned char *cfi,
			 uint32_t offset, uint64_t at)
{
	struct fde f = {.length = sizeof(f) - 4, .cie = offset + 4, .size = size};

	f.start = (int32_t)((uint64_t)start - (at + offset + 8));
	memcpy(f.cfi, cfi, sizeof(f.cfi));
	return f;
}

static int tell_load(int fd, const void *start, const char *name, const void *bytes, size_t n)
{
	static uint64_t index;
	struct load l = {.record = {0, sizeof(l), now()},
			 .pid = (uint32_t)getpid(),
			 .tid = (uint32_t)getpid(),
			 .vma = (uint64_t)start,
			 .code = (uint64_t)start,
			 .size = n,
			 .index = index++};

	strcpy(l.name, name);
	memcpy(l.bytes, bytes, n);
	return write(fd, &l, sizeof(l)) == sizeof(l);
}

static int tell_move(int fd, const void *old, const void *new, size_t n)
{
	struct move m = {.record = {1, sizeof(m), now()},
			 .pid = (uint32_t)getpid(),
			 .tid = (uint32_t)getpid(),
			 .vma = (uint64_t) new,
			 .old = (uint64_t)old,
			 .new = (uint64_t) new,
			 .size = n};

	return write(fd, &m, sizeof(m)) == sizeof(m);
}

/* The header comes last, with a search table of one entry. */
static int tell_behind(int fd, const void *start, size_t n, const unsigned char *cfi)
{
	struct {
		struct record record;
		uint64_t size, header_size, mapped;
		struct cie cie;
		struct fde fde;
		uint32_t end;
		unsigned char header[20];
	} u = {.record = {4, sizeof(u), now()}, .header_size = sizeof(u.header), .cie = cie};
	const size_t n_frames = sizeof(u.cie) + sizeof(u.fde) + sizeof(u.end),
		     n_code = (n + 7) & ~(size_t)7;
	const uint64_t at = (uint64_t)start + n_code;
	const int32_t header[4] = {-(int32_t)(n_frames + 4), 1, -(int32_t)(n_code + n_frames),
				   -(int32_t)(n_frames - sizeof(u.cie))};

	u.size = u.mapped = n_frames + sizeof(u.header);
	u.fde = fde_of(start, (uint32_t)n, cfi, sizeof(cie), at);
	memcpy(u.header, "\x01\x1b\x03\x3b", 4);
	memcpy(u.header + 4, header, sizeof(header));
	return write(fd, &u, sizeof(u)) == sizeof(u);
}

/* The header comes first, with an address and nothing else. */
static int tell_apart(int fd, const void *outer, const void *inner)
{
	static struct {
		struct cie cie;
		struct fde outer, inner;
		uint32_t end;
	} frames;
	struct {
		struct record record;
		uint64_t size, header_size, mapped;
		unsigned char header[4];
		uint32_t address[2];
		unsigned char frames[sizeof(frames)];
	} u = {.record = {4, sizeof(u), now()}, .header = {1, 0x0c, 0xff, 0xff}};
	uint64_t at = (uint64_t)&frames;

	frames.cie = cie;
	frames.outer = fde_of(outer, sizeof(outer_code), outer_cfi, sizeof(cie), at);
	frames.inner =
		fde_of(inner, sizeof(inner_code), inner_cfi, sizeof(cie) + sizeof(struct fde), at);
	u.header_size = sizeof(u.header) + sizeof(u.address);
	u.size = u.header_size + sizeof(frames);
	memcpy(u.address, &at, sizeof(at));
	memcpy(u.frames, &frames, sizeof(frames));
	return write(fd, &u, sizeof(u)) == sizeof(u);
}

static int tell(int fd, const char *how, const void *outer, const void *inner)
{
	int behind = strcmp(how, "behind") == 0, ok = 1;

	if (behind)
		ok = tell_behind(fd, outer, sizeof(outer_code), outer_cfi);
	else if (strcmp(how, "apart") == 0)
		ok = tell_apart(fd, outer, inner);
	ok = ok && tell_load(fd, outer, "jitted_outer", outer_code, sizeof(outer_code));
	if (behind)
		ok = ok && tell_behind(fd, inner, sizeof(inner_code), inner_cfi);
	return ok && tell_load(fd, inner, "jitted_inner", inner_code, sizeof(inner_code));
}

static int open_dump(const char *directory)
{
	struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} h = {0x4A695444, 1, sizeof(h), EM_X86_64, 0, (uint32_t)getpid(), 0, 0};
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, (int)getpid());
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0 || write(fd, &h, sizeof(h)) != sizeof(h) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	/* Within reach of relative addresses of 4 bytes. */
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	unsigned char *outer = page + 64, *inner = page + 128, *moved;
	const char *how = argc > 2 ? argv[2] : "behind";
	int fd = open_dump(argc > 1 ? argv[1] : "/tmp");

	if (page == MAP_FAILED || fd < 0)
		return 1;
	memcpy(outer, outer_code, sizeof(outer_code));
	memcpy(inner, inner_code, sizeof(inner_code));
	if (!tell(fd, how, outer, inner))
		return 1;
	for (;;) {
		uint64_t end = now() + PERIOD_NS;

		if (mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0)
			return 1;
		while (now() < end)
			run_outer((code)outer, 1000000, inner);
		if (strcmp(how, "behind") != 0)
			continue;
		moved = inner == page + 128 ? page + 257 : page + 128;
		if (mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0)
			return 1;
		memcpy(moved, inner, sizeof(inner_code));
		memset(inner, 0xcc, sizeof(inner_code));
		if (!tell_move(fd, inner, moved, sizeof(inner_code)))
			return 1;
		inner = moved;
	}
}
