/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A filesystem in a process of its own (FUSE), with one file, whose server may fall silent. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory that the server shares. */
struct fuse_file {
	int fd; /* of a file with the contents, or -EBADF: nobody reads them */
	uint64_t size;
	bool is_silent;		 /* set it, and nothing is answered any more */
	uint32_t n_not_answered; /* then: questions for attributes */
};

/* What it says of the root (node 1) and of its only file. */
static struct fuse_attr fuse_attributes(const struct fuse_file *file, uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .size = node == 1 ? 0 : file->size,
				  .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755,
				  .nlink = 1,
				  .blksize = 4096};
}

/* Answers in *out, which has the header; the bytes that follow that. */
static size_t fuse_answer(const struct fuse_file *file, const struct fuse_in_header *in,
			  struct fuse_out_header *out)
{
	const struct fuse_read_in *wanted = (const void *)(in + 1);
	void *body = out + 1;
	ssize_t n;

	switch (in->opcode) {
	case FUSE_INIT:
		*(struct fuse_init_out *)body =
			(struct fuse_init_out){.major = 7, .minor = 23, .max_write = 4096};
		return sizeof(struct fuse_init_out);
	case FUSE_STATFS:
		*(struct fuse_statfs_out *)body =
			(struct fuse_statfs_out){.st = {.bsize = 4096, .namelen = 255}};
		return sizeof(struct fuse_statfs_out);
	case FUSE_LOOKUP:
		if (strcmp((const char *)(in + 1), "file") != 0) {
			out->error = -ENOENT;
			return 0;
		}
		*(struct fuse_entry_out *)body = (struct fuse_entry_out){
			.nodeid = 2, .entry_valid = 60, .attr = fuse_attributes(file, 2)};
		return sizeof(struct fuse_entry_out);
	case FUSE_GETATTR:
		*(struct fuse_attr_out *)body =
			(struct fuse_attr_out){.attr = fuse_attributes(file, in->nodeid)};
		return sizeof(struct fuse_attr_out);
	case FUSE_OPEN:
		*(struct fuse_open_out *)body = (struct fuse_open_out){.fh = 0};
		return sizeof(struct fuse_open_out);
	case FUSE_READ:
		n = pread(file->fd, body, wanted->size, (off_t)wanted->offset);
		out->error = n < 0 ? -errno : 0;
		return n > 0 ? (size_t)n : 0;
	default:
		out->error = -ENOSYS;
		return 0;
	}
}

/* Answers until it is told to be silent. ctx: struct fuse_file. */
__attribute__((noreturn, unused)) static void fuse_serve_file(int fd, void *ctx)
{
	static _Alignas(8) char request[1 << 18], answer[1 << 18];
	const struct fuse_in_header *in = (const void *)request;
	struct fuse_out_header *out = (void *)answer;
	struct fuse_file *file = ctx;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, request, sizeof(request)) > 0) {
		if (__atomic_load_n(&file->is_silent, __ATOMIC_SEQ_CST)) {
			if (in->opcode == FUSE_GETATTR)
				__atomic_add_fetch(&file->n_not_answered, 1, __ATOMIC_SEQ_CST);
			continue;
		}
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET)
			continue;
		*out = (struct fuse_out_header){.unique = in->unique};
		out->len = (uint32_t)(sizeof(*out) + fuse_answer(file, in, out));
		(void)!write(fd, answer, out->len);
	}
	_exit(0);
}

/* The server; 0: there is none. Both return from fork(), and share memory: who calls this writes
 * there. */
static pid_t fuse_mount(const char *point, void (*serve)(int fd, void *ctx), void *ctx)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];
	pid_t server;

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mkdir(point, 0700) < 0 ||
	    mount("silent", point, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return 0;
	server = fork();
	if (server == 0)
		serve(fd, ctx);
	(void)close(fd);
	return server > 0 ? server : 0;
}
