/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulated/qemu.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind/arch.h"

/* ---- The remote protocol ---- */

static void send_packet(struct qemu *q, const char *text)
{
	char packet[256];
	uint8_t sum = 0;
	int n;

	for (const char *t = text; *t; t++)
		sum = (uint8_t)(sum + (uint8_t)*t);
	n = snprintf(packet, sizeof(packet), "$%s#%02x", text, sum);
	if (write(q->fd, packet, (size_t)n) != n)
		fprintf(stderr, "the stub is gone: %s\n", strerror(errno));
}

/* The next packet's text into ret, NUL-terminated; false: the stub is gone. */
static bool receive(struct qemu *q, char *ret, size_t n)
{
	for (;;) {
		char *begin = memchr(q->in, '$', q->n_in);
		char *end = begin ? memchr(begin, '#', q->n_in - (size_t)(begin - q->in)) : NULL;
		ssize_t got;

		if (end && q->n_in - (size_t)(end - q->in) >= 3) {
			size_t length = (size_t)(end - begin - 1), used = (size_t)(end - q->in) + 3;

			if (length >= n)
				return false;
			memcpy(ret, begin + 1, length);
			ret[length] = '\0';
			memmove(q->in, q->in + used, q->n_in - used);
			q->n_in -= used;
			return write(q->fd, "+", 1) == 1;
		}
		got = q->n_in < sizeof(q->in)
			      ? read(q->fd, q->in + q->n_in, sizeof(q->in) - q->n_in)
			      : 0;
		if (got <= 0)
			return false;
		q->n_in += (size_t)got;
	}
}

static bool ask(struct qemu *q, const char *text, char *ret, size_t n)
{
	send_packet(q, text);
	return receive(q, ret, n);
}

static size_t from_hex(const char *text, uint8_t *ret, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned int byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			break;
		ret[i] = (uint8_t)byte;
	}
	return i;
}

/* ---- The program ---- */

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (int tries = 0; fd >= 0 && tries < 500; tries++) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		usleep(20000);
	}
	(void)close_fd(fd);
	return -ETIMEDOUT;
}

int qemu_start(struct qemu *q, const char *emulator, const char *const argv[])
{
	const char *all[16] = {emulator, "-g"};
	char path[96], answer[4096];
	size_t n = 3;

	*q = (struct qemu){.fd = -EBADF};
	(void)snprintf(q->dir, sizeof(q->dir), "/tmp/perfwalk-emulated.XXXXXX");
	if (!mkdtemp(q->dir))
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/stub", q->dir);
	all[2] = path;
	for (size_t i = 0; argv[i] && n < 15; i++)
		all[n++] = argv[i];
	q->pid = fork();
	if (q->pid == 0) {
		execvp(emulator, (char *const *)(uintptr_t)all);
		fprintf(stderr, "%s: %s\n", emulator, strerror(errno));
		_exit(127);
	}
	q->fd = connect_to(path);
	if (q->fd < 0)
		return q->fd;
	return ask(q, "?", answer, sizeof(answer)) ? 0 : -EIO;
}

/* The thread that a stop reply names, and its signal. */
static bool read_stop(struct qemu *q, const char *answer)
{
	const char *thread = strstr(answer, "thread:");
	unsigned int signal;

	if ((answer[0] != 'T' && answer[0] != 'S') || sscanf(answer + 1, "%2x", &signal) != 1)
		return false;
	if (thread && sscanf(thread, "thread:%31[^;]", q->thread) != 1)
		q->thread[0] = '\0';
	q->signal = signal == SIGTRAP ? 0 : (int)signal;
	return true;
}

bool qemu_step(struct qemu *q)
{
	char text[80], what[8] = "s", answer[4096];

	if (q->signal)
		(void)snprintf(what, sizeof(what), "S%02x", (unsigned int)q->signal & 0xff);
	(void)snprintf(text, sizeof(text), "vCont;%s%s%s", what, q->thread[0] ? ":" : "",
		       q->thread);
	return ask(q, text, answer, sizeof(answer)) && read_stop(q, answer);
}

bool qemu_run_to(struct qemu *q, uint64_t addr)
{
	char set[64], clear[64], answer[4096];

	(void)snprintf(set, sizeof(set), "Z0,%" PRIx64 ",4", addr);
	(void)snprintf(clear, sizeof(clear), "z0,%" PRIx64 ",4", addr);
	return ask(q, set, answer, sizeof(answer)) && strcmp(answer, "OK") == 0 &&
	       ask(q, "c", answer, sizeof(answer)) && read_stop(q, answer) &&
	       ask(q, clear, answer, sizeof(answer));
}

int qemu_hold_others(const struct qemu *q)
{
	const char *number = strchr(q->thread, '.');
	unsigned long own = strtoul(number ? number + 1 : q->thread, NULL, 16);
	char path[64];
	struct dirent *d;
	DIR *tasks;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", q->pid);
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks))) {
		pid_t tid = (pid_t)strtoul(d->d_name, NULL, 10);

		if (tid <= 0 || (unsigned long)tid == own)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ||
		    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ||
		    waitpid(tid, NULL, __WALL) != tid)
			n = -1;
		n += n >= 0;
	}
	if (tasks)
		(void)closedir(tasks);
	return n;
}

size_t qemu_read(struct qemu *q, uint64_t addr, void *ret, size_t n)
{
	uint8_t *to = ret;
	size_t done = 0;

	while (done < n) {
		/* Pages may end; the stub's packets do, at 4 KiB of text. */
		size_t part = 1024 - (addr + done) % 1024, got;
		char text[64], answer[4096];

		if (part > n - done)
			part = n - done;
		(void)snprintf(text, sizeof(text), "m%" PRIx64 ",%zx", addr + done, part);
		if (!ask(q, text, answer, sizeof(answer)) || answer[0] == 'E')
			break;
		got = from_hex(answer, to + done, part);
		done += got;
		if (got < part)
			break;
	}
	return done;
}

int qemu_sample_take(struct qemu *q, struct proc_sample *ret, uint8_t *stack, size_t n)
{
	uint8_t bytes[UNWIND_N_REGS * 8];
	char answer[4096];

	/* The stub's order is DWARF's: x0 .. x30, sp, pc. */
	if (!ask(q, "g", answer, sizeof(answer)) ||
	    from_hex(answer, bytes, sizeof(bytes)) != sizeof(bytes))
		return -EIO;
	ret->regs.valid = UNWIND_ALL_REGS;
	memcpy(ret->regs.r, bytes, sizeof(bytes));
	ret->stack = stack;
	ret->n_stack = qemu_read(q, ret->regs.r[ARCH_REG_SP], stack, n);
	return 0;
}

void qemu_end(struct qemu *q)
{
	char path[96];
	pid_t ended;

	(void)kill(q->pid, SIGKILL);
	/* The threads that were held are ours to reap, and come before the process. */
	do
		ended = waitpid(-1, NULL, __WALL);
	while (ended > 0 && ended != q->pid);
	(void)close_fd(q->fd);
	(void)snprintf(path, sizeof(path), "%s/stub", q->dir);
	(void)unlink(path);
	(void)rmdir(q->dir);
}

/* ---- Mappings ---- */

/* -1: no file of this machine; else whether the byte at the offset belongs to code. */
static int offset_is_code(const char *path, uint64_t offset)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Phdr ph[64];
	Elf64_Ehdr eh;

	if (fd < 0 || read(fd, &eh, sizeof(eh)) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_machine != ARCH_ELF_MACHINE ||
	    eh.e_phnum > 64 ||
	    pread(fd, ph, eh.e_phnum * sizeof(*ph), (off_t)eh.e_phoff) !=
		    (ssize_t)(eh.e_phnum * sizeof(*ph)))
		return -1;
	for (int i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X &&
		    offset >= (ph[i].p_offset & ~UINT64_C(4095)) &&
		    offset < ph[i].p_offset + ph[i].p_filesz)
			return 1;
	}
	return 0;
}

char *qemu_maps(const struct qemu *q)
{
	char path[64], line[8192], *text = NULL;
	size_t n;
	FILE *in, *out = open_memstream(&text, &n);

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)q->pid);
	in = fopen(path, "re");
	while (in && out && fgets(line, sizeof(line), in)) {
		char *name = strchr(line, '/'), *perms = strchr(line, ' ');
		uint64_t start, end, offset;
		int code;

		if (!name || sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end,
				    &offset) != 3)
			continue;
		name[strcspn(name, "\n")] = '\0';
		code = offset_is_code(name, offset);
		/* The emulator reads code, it does not run it: the host's mapping has no x. */
		if (code == 1)
			memcpy(perms + 1, "r-x", 3);
		if (code >= 0)
			(void)fprintf(out, "%s\n", line);
	}
	if (in)
		(void)fclose(in);
	if (out)
		(void)fclose(out);
	return text;
}

/* ---- The vdso ---- */

/*
 * The trampoline that signal handlers return to. qemu's is an anonymous page; a kernel's lies in
 * the vdso, with a nop before it: here it becomes such a vdso.
 */
static const struct {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	uint8_t nop[4], code[8];
} vdso_image = {
	.eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	       .e_type = ET_DYN,
	       .e_machine = EM_AARCH64,
	       .e_version = EV_CURRENT,
	       .e_phoff = sizeof(Elf64_Ehdr),
	       .e_ehsize = sizeof(Elf64_Ehdr),
	       .e_phentsize = sizeof(Elf64_Phdr),
	       .e_phnum = 1},
	.ph = {.p_type = PT_LOAD,
	       .p_flags = PF_R | PF_X,
	       .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
	       .p_vaddr = 0xffc,
	       .p_filesz = 12,
	       .p_memsz = 12,
	       .p_align = 1},
	.nop = {0x1f, 0x20, 0x03, 0xd5},
	.code = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
};

/* Where these bytes begin a page of anonymous memory of the program; 0: nowhere. */
static uint64_t find_page(const struct qemu *q, const uint8_t *bytes, size_t n)
{
	_cleanup_close_ int mem = -EBADF;
	char path[64], line[8192];
	uint64_t start, end, found = 0;
	uint8_t at_start[64];
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)q->pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)q->pid);
	maps = fopen(path, "re");
	while (maps && !found && n <= sizeof(at_start) && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && !strchr(line, '/') &&
		    pread(mem, at_start, n, (off_t)start) == (ssize_t)n &&
		    memcmp(at_start, bytes, n) == 0)
			found = start;
	}
	if (maps)
		(void)fclose(maps);
	return found;
}

bool qemu_find_vdso(const struct qemu *q, struct qemu_vdso *ret)
{
	uint64_t page = find_page(q, vdso_image.code, sizeof(vdso_image.code));

	*ret = (struct qemu_vdso){
		.image = (const uint8_t *)&vdso_image,
		.n = sizeof(vdso_image),
		.start = page - sizeof(vdso_image.nop),
		.end = page + sizeof(vdso_image.code),
		.offset = vdso_image.ph.p_offset,
	};
	return page != 0;
}
