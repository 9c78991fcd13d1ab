/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "src/process/message.h"
#include "util/cleanup.h"
#include "util/fdmsg.h"

#define BODY(member) (offsetof(struct message, member) + sizeof(((struct message *)NULL)->member))
#define HEADER	     offsetof(struct message, setup)

static const struct {
	size_t size;
	uint8_t min_fds, max_fds;
} types[MESSAGE_N_TYPES] = {
	[MESSAGE_SETUP] = {BODY(setup), 0, 1},
	[MESSAGE_TEXT] = {BODY(text), 0, 0},
	[MESSAGE_FILE] = {BODY(text), 1, 1},
	[MESSAGE_START] = {HEADER, 0, 0},
	[MESSAGE_PEER] = {BODY(peer), 1, 1},
	[MESSAGE_CPU_ADD] = {BODY(cpu), 1, 2},
	[MESSAGE_CPU_EVENT] = {BODY(cpu), 1, 1},
	[MESSAGE_CPU_REMOVE] = {BODY(cpu), 0, 0},
	[MESSAGE_QUARANTINE] = {BODY(quarantine), 0, 0},
	[MESSAGE_FLUSH] = {BODY(flush), 0, 0},
	[MESSAGE_PAUSE] = {BODY(pause), 0, 0},
	[MESSAGE_LOG_LEVEL] = {BODY(log), 0, 0},
	[MESSAGE_LOAD] = {BODY(load), 0, 0},
	[MESSAGE_RESIZE] = {HEADER, 0, 0},
	[MESSAGE_PLACE] = {BODY(place), 0, 0},
	[MESSAGE_LOST] = {BODY(lost), 0, 0},
	[MESSAGE_FETCH] = {BODY(fetch), 0, 0},
	[MESSAGE_CLIENT] = {BODY(client), 2, 2},
	[MESSAGE_INTERPRETER] = {BODY(client), 0, 0},
	[MESSAGE_CLIENT_GONE] = {BODY(client), 0, 0},
	[MESSAGE_THREAD] = {BODY(client), 0, 1},
	[MESSAGE_LOOK] = {BODY(client), 0, 0},
	[MESSAGE_TARGET] = {BODY(client), 0, 0},
	[MESSAGE_STANDS] = {BODY(stands), 0, 0},
	[MESSAGE_CONTEXT] = {BODY(context), 0, 0},
	[MESSAGE_FRAMES] = {HEADER, 1, 1},
	[MESSAGE_FETCHED] = {BODY(fetch), 0, 0},
	[MESSAGE_STOP] = {HEADER, 0, 0},
	[MESSAGE_STOOD_STILL] = {HEADER, 0, 0},
	[MESSAGE_ENOUGH] = {BODY(cpu), 0, 0},
	[MESSAGE_PLACES_KNOWN] = {BODY(places), 0, 0},
	[MESSAGE_STACK_SIZE] = {BODY(stack_size), 0, 0},
	[MESSAGE_RESULT] = {BODY(result), 0, 0},
	[MESSAGE_ASK_MAPS] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_FILE] = {BODY(ask_file), 0, 0},
	[MESSAGE_ASK_CGROUP] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_CGROUP_PATH] = {BODY(ask_cgroup_path), 0, 0},
	[MESSAGE_ASK_CONTAINER] = {BODY(ask_container), 0, 0},
	[MESSAGE_ASK_PROCESS] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_USER] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_PERF_MAP] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_MEMORY] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_RESIDENT] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_KILLS] = {BODY(ask_pid), 0, 0},
	[MESSAGE_ASK_DEBUG_FILE] = {BODY(ask_debug_file), 0, 0},
	[MESSAGE_ASK_SPLIT_FILE] = {BODY(ask_split_file), 0, 0},
	[MESSAGE_ASK_RECORDED_FILE] = {BODY(ask_recorded_file), 0, 0},
	[MESSAGE_ASK_COPY] = {BODY(ask_file), 0, 0},
	[MESSAGE_ASK_ALLOCATOR] = {BODY(ask_allocator), 0, 0},
	[MESSAGE_ASK_TABLE] = {BODY(ask_table), 0, 0},
	[MESSAGE_ASK_CONTEXT] = {BODY(ask_context), 0, 0},
	[MESSAGE_ASK_BLOCKED] = {BODY(ask_blocked), 0, 0},
	[MESSAGE_ASK_STATISTICS] = {HEADER, 0, 0},
	[MESSAGE_ASK_FLUSH] = {HEADER, 0, 0},
	[MESSAGE_ANSWER] = {BODY(answer), 0, 1},
	[MESSAGE_ASK_SEEN_FILE] = {BODY(ask_file), 0, 0},
	[MESSAGE_OPENED] = {BODY(opened), 0, 2},
	[MESSAGE_ANSWER_TEXT] = {BODY(answer_text), 0, 0},
	[MESSAGE_ANSWER_PROCESS] = {BODY(answer_process), 0, 0},
	[MESSAGE_ANSWER_USER] = {BODY(answer_user), 0, 0},
	[MESSAGE_ANSWER_STATISTICS] = {BODY(answer_statistics), 0, 0},
	[MESSAGE_MODULE] = {BODY(module), 1, 1},
	[MESSAGE_PERF_MAP] = {BODY(perf_map), 1, 1},
	[MESSAGE_JITDUMP] = {BODY(perf_map), 1, 1},
	[MESSAGE_KALLSYMS] = {BODY(item), 1, 1},
	[MESSAGE_WINDOW] = {BODY(window), 1, 1},
	[MESSAGE_WINDOW_DONE] = {BODY(item), 0, 0},
	[MESSAGE_MODULE_GONE] = {BODY(item), 0, 0},
	[MESSAGE_TABLE] = {BODY(item), 1, 1},
	[MESSAGE_PAYLOAD] = {BODY(item), 1, 2},
	[MESSAGE_PAYLOAD_DONE] = {BODY(item), 0, 0},
};

size_t message_size(uint32_t type)
{
	return type < MESSAGE_N_TYPES ? types[type].size : 0;
}

int message_send(int sock, const struct message *m, const int *fds, size_t n_fds)
{
	return fdmsg_send(sock, m, message_size(m->type), fds, n_fds, 0);
}

int message_try_send(int sock, const struct message *m, const int *fds, size_t n_fds)
{
	return fdmsg_send(sock, m, message_size(m->type), fds, n_fds, MSG_DONTWAIT);
}

static int refuse(const int *fds, size_t n_fds, int r)
{
	for (size_t i = 0; i < n_fds; i++)
		(void)close_fd(fds[i]);
	return r;
}

int message_recv(int sock, struct message *m, int ret_fds[2], int flags)
{
	int fds[FDMSG_MAX_FDS];
	size_t n_fds = 0;
	ssize_t n = fdmsg_recv(sock, m, sizeof(*m), fds, &n_fds, flags);

	if (n == -ECONNRESET)
		return 0;
	if (n < 0)
		return (int)n;
	if (n == 0) /* or an empty message, which may have descriptors */
		return refuse(fds, n_fds, 0);
	if ((size_t)n < HEADER || m->type >= MESSAGE_N_TYPES || (size_t)n != types[m->type].size ||
	    n_fds < types[m->type].min_fds || n_fds > types[m->type].max_fds)
		return refuse(fds, n_fds, -EBADMSG);
	ret_fds[0] = n_fds > 0 ? fds[0] : -1;
	ret_fds[1] = n_fds > 1 ? fds[1] : -1;
	return 1;
}

void message_set_text(char *field, size_t size, const char *text)
{
	size_t n = strnlen(text, size - 1);

	memset(field, 0, size);
	memcpy(field, text, n);
}

bool message_text_ok(const char *field, size_t size)
{
	return memchr(field, 0, size) != NULL;
}

const char *peer_name(enum peer who)
{
	static const char *const names[PEER_N] = {
		[PEER_PROFILER] = "profiler", [PEER_SYMBOLIZER] = "symbolizer",
		[PEER_EXPORTER] = "exporter", [PEER_SCREEN] = "screen",
		[PEER_METRICS] = "metrics",   [PEER_FETCHER] = "fetcher",
		[PEER_READER] = "reader",
	};

	return names[who];
}
