/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tests/unit/unwind-proc.h"
#include "unwind/arch.h"

static int read_text(const char *path, char **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = malloc(1 << 20);
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || !text)
		return fd < 0 ? -errno : -ENOMEM;
	while (n < (1 << 20) - 1 && (got = read(fd, text + n, (1 << 20) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

/* Modules */

static struct unwind_module *find_vdso(struct proc_modules *ms, uint64_t start, uint64_t end)
{
	/* Every process of the host has the same one; ours is at hand. */
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (!ms->vdso_module && image) {
		ms->vdso = malloc(end - start);
		memcpy(ms->vdso, image, end - start);
		ms->n_vdso = end - start;
		(void)unwind_module_new_memory(&ms->vdso_module, ms->u, ms->vdso, end - start,
					       "vdso");
	}
	return ms->vdso_module;
}

static struct proc_module *find_module(struct proc_modules *ms, pid_t pid, const char *path,
				       uint64_t start, uint64_t end)
{
	char link[64 + 4096];
	struct proc_module *m;
	struct stat st;
	_cleanup_close_ int fd = -EBADF;

	(void)snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		       start, end);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		(void)snprintf(link, sizeof(link), "/proc/%d/root%s", (int)pid, path);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	for (m = ms->list; m; m = m->next) {
		if (m->dev == st.st_dev && m->ino == st.st_ino && strcmp(m->path, path) == 0)
			return m;
	}
	m = calloc(1, sizeof(*m));
	m->path = strdup(path);
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	m->size = (uint64_t)st.st_size;
	m->fd = TAKE_FD(fd);
	(void)unwind_module_new_fd(&m->module, ms->u, m->fd, path);
	m->next = ms->list;
	ms->list = m;
	return m;
}

void proc_modules_deinit(struct proc_modules *ms)
{
	while (ms->list) {
		struct proc_module *m = ms->list;

		ms->list = m->next;
		unwind_module_free(m->module);
		(void)close_fd(m->fd);
		free(m->path);
		free(m);
	}
	unwind_module_free(ms->vdso_module);
	free(ms->vdso);
}

void proc_modules_renew(struct proc_modules *ms, struct unwinder *u)
{
	ms->u = u;
	for (struct proc_module *m = ms->list; m; m = m->next) {
		m->module = unwind_module_free(m->module);
		(void)unwind_module_new_fd(&m->module, u, m->fd, m->path);
	}
	if (ms->vdso_module) {
		ms->vdso_module = unwind_module_free(ms->vdso_module);
		(void)unwind_module_new_memory(&ms->vdso_module, u, ms->vdso, ms->n_vdso, "vdso");
	}
}

/* Maps */

static void add_line(struct proc_maps *maps, struct proc_modules *ms, pid_t pid, const char *line)
{
	uint64_t start, end, offset;
	char perms[8], path[4096] = "";
	struct proc_mapping *m;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
		   perms, &offset, path) < 4 ||
	    perms[2] != 'x')
		return;
	maps->items = realloc(maps->items, (maps->n + 1) * sizeof(*maps->items));
	m = &maps->items[maps->n++];
	*m = (struct proc_mapping){.start = start, .end = end, .offset = offset};
	if (strcmp(path, "[vdso]") == 0) {
		m->module = find_vdso(ms, start, end);
		m->image = ms->vdso;
		m->n_image = ms->n_vdso;
	} else if (path[0] == '/') {
		m->file = find_module(ms, pid, path, start, end);
		m->module = m->file ? m->file->module : NULL;
		m->missing = !m->module;
	}
	if (m->module && !unwind_module_bias(m->module, start, offset, &m->bias)) {
		m->module = NULL;
		m->file = NULL;
		m->missing = true;
	}
}

void proc_maps_renew(struct proc_maps *maps, const struct proc_modules *ms)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct proc_mapping *m = &maps->items[i];

		if (m->module)
			m->module = m->file ? m->file->module : ms->vdso_module;
	}
}

int proc_maps_load(struct proc_maps *maps, struct proc_modules *ms, pid_t pid, const char *text)
{
	_cleanup_free_ char *own = NULL;
	char path[64];
	int r;

	*maps = (struct proc_maps){.n = 0};
	if (!text) {
		(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
		r = read_text(path, &own);
		if (r < 0)
			return r;
		text = own;
	}
	while (text && *text) {
		add_line(maps, ms, pid, text);
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return 0;
}

void proc_maps_deinit(struct proc_maps *maps)
{
	free(maps->items);
	*maps = (struct proc_maps){.n = 0};
}

bool proc_find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	struct proc_maps *maps = ctx;
	size_t low = 0, high = maps->n;

	maps->finds++;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (maps->items[mid].end <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == maps->n || pc < maps->items[low].start)
		return false;
	*ret = (struct unwind_mapping){
		.start = maps->items[low].start,
		.end = maps->items[low].end,
		.bias = maps->items[low].bias,
		.module = maps->items[low].module,
		.tag = (uint32_t)low,
		.file_missing = maps->items[low].missing,
	};
	return true;
}

bool proc_read(void *ctx, uint64_t address, uint8_t *ret, size_t n)
{
	const struct proc_maps *maps = ctx;
	const struct proc_mapping *m;
	struct unwind_mapping found;
	uint64_t offset;

	if (!proc_find(ctx, address, &found))
		return false;
	m = &maps->items[found.tag];
	offset = address - m->start + m->offset;
	if (m->image && offset < m->n_image && m->n_image - offset >= n) {
		memcpy(ret, m->image + offset, n);
		return true;
	}
	return m->file && pread(m->file->fd, ret, n, (off_t)offset) == (ssize_t)n;
}

/* Samples */

static void put_registers(const struct user_regs_struct *u, struct unwind_regs *ret)
{
#if defined(__x86_64__)
	const uint64_t r[UNWIND_N_REGS] = {u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
					   u->rbp, u->rsp, u->r8,  u->r9,  u->r10, u->r11,
					   u->r12, u->r13, u->r14, u->r15, u->rip};

	memcpy(ret->r, r, sizeof(r));
#elif defined(__aarch64__)
	memcpy(ret->r, u->regs, sizeof(u->regs));
	ret->r[UNWIND_REG_SP] = u->sp;
	ret->r[UNWIND_REG_PC] = u->pc;
#else /* riscv64: pc, where the register that is always 0 would be, and the others */
	memcpy(ret->r, u, sizeof(*u));
	ret->r[UNWIND_REG_PC] = ret->r[0];
	ret->r[0] = 0;
#endif
	ret->valid = UNWIND_ALL_REGS;
}

int proc_sample_take(pid_t tid, struct proc_sample *ret, uint8_t *stack, size_t n)
{
	struct user_regs_struct u;
	struct iovec registers = {&u, sizeof(u)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &registers) < 0)
		return -errno;
	put_registers(&u, &ret->regs);
	ret->stack = stack;
	ret->n_stack = 0;
	/* Page by page, for the stack may end before the buffer does. */
	while (ret->n_stack < n) {
		uint64_t at = ret->regs.r[UNWIND_REG_SP] + ret->n_stack,
			 page_left = 4096 - at % 4096;
		struct iovec local = {stack + ret->n_stack, n - ret->n_stack}, remote;
		ssize_t got;

		if (local.iov_len > page_left)
			local.iov_len = page_left;
		remote = (struct iovec){(void *)at, local.iov_len};
		got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
		if (got <= 0)
			break;
		ret->n_stack += (size_t)got;
	}
	return 0;
}
