/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug file has the addresses the kernel was linked for; the running one is moved as a whole
 * (KASLR). Its text begins at the lowest function of kallsyms. The build id shows that the two
 * are one kernel. Each function shows that the distance is right: it must begin at the same
 * place in both, else it gets no lines.
 *
 * Modules get names alone: their debug files are relocatable, and only root can read in
 * /sys/module where each section lies. Nothing shows that a module was loaded where another one
 * has been, so kallsyms is read again now and then while names in modules and of BPF programs
 * are used.
 */
#include "src/symbolizer/kernel-names.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/notes.h"

#define RETRY_NS   (30 * NSEC_PER_SEC)
#define REFRESH_NS (120 * NSEC_PER_SEC) /* the kernel takes 60 ms and more to write it */
#define MAX_NOTES  4096

struct kernel_names {
	const struct symbol_limits *limits;
	kernel_open_fn open_debug;
	void *ctx;
	int kallsyms_fd;
	struct kallsyms *kallsyms;
	uint64_t read_ns; /* of kallsyms; 0: not yet */
	bool modules_told,
		modules_outdated; /* names in modules were given out; by an older table */
	uint8_t build_id[64];
	size_t n_build_id;
	struct symbol_file *file; /* NULL: none, or not tried */
	bool tried;
	bool awaited, late; /* late: not available so far; nobody waits for it, but it may arrive */
};

int kernel_names_new(struct kernel_names **ret, const struct symbol_limits *limits,
		     kernel_open_fn open_debug, void *ctx)
{
	struct kernel_names *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->limits = limits;
	k->open_debug = open_debug;
	k->ctx = ctx;
	k->kallsyms_fd = -EBADF;
	*ret = k;
	return 0;
}

struct kernel_names *kernel_names_free(struct kernel_names *k)
{
	if (k) {
		kallsyms_free(k->kallsyms);
		symbol_file_free(k->file);
		(void)close_fd(k->kallsyms_fd);
		free(k);
	}
	return NULL;
}

void kernel_names_set_kallsyms(struct kernel_names *k, int fd)
{
	(void)close_fd(k->kallsyms_fd);
	k->kallsyms_fd = fd;
	k->kallsyms = kallsyms_free(k->kallsyms);
	k->read_ns = 0;
}

void kernel_names_set_notes(struct kernel_names *k, int fd)
{
	_cleanup_close_ int notes = fd;
	uint8_t bytes[MAX_NOTES];
	ssize_t got = pread(notes, bytes, sizeof(bytes), 0);
	const uint8_t *id;

	kernel_names_forget_file(k);
	k->n_build_id =
		notes_find_build_id(bytes, got > 0 ? (size_t)got : 0, 4, sizeof(k->build_id), &id);
	if (k->n_build_id)
		memcpy(k->build_id, id, k->n_build_id);
}

void kernel_names_forget_file(struct kernel_names *k)
{
	k->file = symbol_file_free(k->file);
	k->tried = false;
}

bool kernel_names_awaits(const struct kernel_names *k)
{
	return k->awaited && !k->late;
}

bool kernel_names_debug_file_came(struct kernel_names *k, const uint8_t *build_id,
				  size_t n_build_id, bool found)
{
	if (!k->awaited || n_build_id != k->n_build_id ||
	    memcmp(build_id, k->build_id, n_build_id) != 0)
		return false;
	k->late = !found;
	return found && kernel_names_ask_again(k, false);
}

bool kernel_names_ask_again(struct kernel_names *k, bool all)
{
	if (!k->awaited && !all)
		return false;
	k->awaited = false;
	kernel_names_forget_file(k);
	return true;
}

static void read_kallsyms(struct kernel_names *k)
{
	_cleanup_(kallsyms_freep) struct kallsyms *fresh = NULL;
	int r = -EBADF;

	k->read_ns = clock_monotonic_ns();
	if (k->kallsyms_fd >= 0 && lseek(k->kallsyms_fd, 0, SEEK_SET) >= 0)
		r = kallsyms_new_fd(&fresh, k->kallsyms_fd, k->limits);
	if (r == 0 && k->kallsyms && kallsyms_equal(fresh, k->kallsyms))
		return;
	k->modules_outdated |= k->modules_told;
	k->modules_told = false;
	if (r == 0) {
		kallsyms_free(k->kallsyms);
		k->kallsyms = TAKE_PTR(fresh);
		log_debug("the kernel's names take %zu bytes; %llu of its functions do not fit",
			  kallsyms_bytes(k->kallsyms),
			  (unsigned long long)kallsyms_refused(k->kallsyms));
	} else {
		log_debug("kernel frames have no names: %s",
			  r > 0 ? "kernel.kptr_restrict hides the addresses" : strerror(-r));
	}
}

bool kernel_names_refresh(struct kernel_names *k, uint64_t now_ns)
{
	bool outdated;

	if (k->modules_told && now_ns >= k->read_ns + REFRESH_NS)
		read_kallsyms(k);
	outdated = k->modules_outdated;
	k->modules_outdated = false;
	return outdated;
}

static int lookup_name(struct kernel_names *k, uint64_t address, struct symbol *ret)
{
	if (!k->read_ns)
		read_kallsyms(k);
	if (k->kallsyms && kallsyms_lookup(k->kallsyms, address, ret) == 0)
		return 0;
	/* A module loaded since: read again, now and then. */
	if (clock_monotonic_ns() - k->read_ns < RETRY_NS)
		return 1;
	read_kallsyms(k);
	/* Names of the old table are not kept anywhere: every name was copied. */
	return k->kallsyms ? kallsyms_lookup(k->kallsyms, address, ret) : 1;
}

/* Takes fd. */
static bool use_file(struct kernel_names *k, int fd)
{
	_cleanup_close_ int file = fd;
	uint8_t id[64];
	size_t n;

	if (file < 0 || symbol_file_build_id(file, id, &n) < 0)
		return false;
	if (n != k->n_build_id || memcmp(id, k->build_id, n) != 0) {
		log_debug("the kernel's debug file is of another kernel than this one");
		return false;
	}
	return symbol_file_new_fd(&k->file, file, k->limits, NULL, NULL) == 0;
}

/* Where Debian puts it below the directory of debug files, and where Fedora does. */
static void open_file(struct kernel_names *k)
{
	struct utsname u;
	char path[256];
	int fd;

	k->tried = true;
	if (!k->n_build_id || uname(&u) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/boot/vmlinux-%s", u.release);
	if (use_file(k, k->open_debug(k->ctx, k->build_id, k->n_build_id, path, false)))
		return;
	(void)snprintf(path, sizeof(path), "/lib/modules/%s/vmlinux", u.release);
	fd = k->open_debug(k->ctx, k->build_id, k->n_build_id, path, true);
	k->awaited = fd == -EINPROGRESS;
	k->late = false;
	(void)use_file(k, fd);
}

int kernel_names_lookup(struct kernel_names *k, uint64_t address, bool lines, struct symbol *chain,
			size_t max, size_t *ret_n)
{
	struct symbol name, *last;
	uint64_t moved;
	size_t n = 0;
	int r = lookup_name(k, address, &name);

	if (r != 0)
		return r;
	*ret_n = 1;
	if (name.module_name) {
		name.start = hash_bytes(name.name, strlen(name.name), name.start);
		name.start = hash_bytes(name.module_name, strlen(name.module_name), name.start);
		k->modules_told = true;
	}
	chain[0] = name;
	if (!lines || name.module_name || !k->limits->max_line_bytes)
		return 0;
	if (!k->tried)
		open_file(k);
	if (!k->file)
		return 0;
	moved = kallsyms_text_start(k->kallsyms) - symbol_file_code_start(k->file);
	last = symbol_file_lines(k->file, address - moved, chain, max, &n) == 0 ? &chain[n - 1]
										: NULL;
	if (!last || last->start + moved != name.start) {
		chain[0] = name;
		return 0;
	}
	last->name = name.name;
	last->start = name.start;
	last->size = name.size;
	*ret_n = n;
	return 0;
}

void kernel_names_trim(struct kernel_names *k)
{
	if (k->file)
		symbol_file_trim(k->file);
}
