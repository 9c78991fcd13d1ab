/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/opener/allocators.h"
#include "src/opener/internal.h"
#include "util/cleanup.h"

static int open_identified(const struct message *ask, struct file_identity *ret)
{
	int fd = opener_debug_file(ask->ask_debug_file.pid, ask->ask_debug_file.build_id,
				   ask->ask_debug_file.n_build_id, ask->ask_debug_file.path);
	int r = fd < 0 ? fd : file_identity_get(fd, ret);

	if (fd >= 0 && r < 0)
		(void)close_fd(fd);
	return r < 0 ? r : fd;
}

/* A file for probes. */
static int open_local(const struct message *ask, struct file_identity *ret)
{
	int fd = opener_mapped_file(ask, ret);

	if (fd < 0 || !opener_has_server(fd))
		return fd;
	(void)close_fd(fd);
	return -ENOTSUP;
}

/* The same, of a runtime with an allocator of its own. */
static int open_allocator(const struct message *ask, struct file_identity *ret)
{
	struct message file = {.type = MESSAGE_ASK_COPY};
	int fd;

	file.ask_file = ask->ask_allocator.file;
	fd = open_local(&file, ret);
	if (fd < 0 || allocator_of_file(fd, file.ask_file.pid) != ALLOCATOR_NONE)
		return fd;
	(void)close_fd(fd);
	return -ESTALE;
}

int opener_asked_file(const struct message *ask, struct file_identity *ret, int *ret_file)
{
	*ret_file = -EBADF;
	*ret = (struct file_identity){0};
	switch (ask->type) {
	case MESSAGE_ASK_FILE:
	case MESSAGE_ASK_SEEN_FILE:
		return opener_mapped_file(ask, ret);
	case MESSAGE_ASK_COPY:
		return open_local(ask, ret);
	case MESSAGE_ASK_ALLOCATOR:
		return open_allocator(ask, ret);
	case MESSAGE_ASK_RECORDED_FILE:
		return opener_recorded_file(ask, ret);
	case MESSAGE_ASK_MAPS:
		return opener_maps(ask->ask_pid.pid, true);
	case MESSAGE_ASK_PERF_MAP:
		return opener_perf_map(ask->ask_pid.pid);
	case MESSAGE_ASK_MEMORY:
		return opener_memory(ask->ask_pid.pid, ask->ask_pid.image, ret_file, ret);
	case MESSAGE_ASK_TABLE:
		return opener_library_table(ask->ask_table.pid, ask->ask_table.address);
	case MESSAGE_ASK_DEBUG_FILE:
		return open_identified(ask, ret);
	case MESSAGE_ASK_SPLIT_FILE:
		return opener_split_file(ask->ask_split_file.path);
	case MESSAGE_ASK_CONTEXT:
		return opener_context(ask);
	case MESSAGE_ASK_BLOCKED:
		return opener_blocked(ask);
	default:
		return -EOPNOTSUPP;
	}
}
