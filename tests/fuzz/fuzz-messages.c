/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: messages of a process that was taken over, over real sockets. The first byte
 * says to whom: requests of a child to the broker, with all that it opens for them; answers of the
 * broker to a child; what the symbolizer sends the profiler. Then each message is a type, a byte of
 * flags (two bits: how many descriptors; two: whether its size is the type's; 0x10: an empty body
 * in place of a sound one; 0x20: another sequence number) and a number of changes: a place (2
 * bytes), a length, and so many bytes.
 *
 * No descriptor is left over, every request gets one answer in its order, and what is handed out
 * is a regular file that is open to be read, or one in memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "src/broker/answer.h"
#include "src/opener/helper.h"
#include "src/opener/opener.h"
#include "src/process/ask.h"
#include "src/profiler/handover.h"
#include "tests/fuzz/input.h"
#include "util/fdmsg.h"
#include "util/loop.h"

#define MAX_MESSAGES 6

struct input {
	const uint8_t *p, *end;
};

static char own_path[PROTOCOL_PATH_MAX];
static uint64_t own_start, own_end, own_inode;
static unsigned int own_major, own_minor;
static bool sent_nothing; /* a message of no bytes, which is taken for the end */

static unsigned int take(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

/* In the place of the process that opens with a deadline: nothing here waits for ever. */
int opener_helper_open(struct opener_helper *h, const struct message *ask,
		       struct file_identity *ret)
{
	int file, fd = opener_asked_file(ask, ret, &file);

	if (file < 0)
		return fd;
	/* As if a judge had said no. */
	(void)close(file);
	(void)close(fd);
	return -ENOENT;
}

uint64_t opener_helper_cost_ns(const struct opener_helper *h)
{
	return 0;
}

/* ---- What is sent ---- */

/* The first mapping of a file: a sanitizer's memory may come before it. */
static void find_own(void)
{
	char line[PROTOCOL_PATH_MAX + 128];
	unsigned long start, end, inode = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !inode && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %*s %x:%x %lu %4095s", &start, &end, &own_major,
			   &own_minor, &inode, own_path) != 6)
			inode = 0;
	}
	if (!inode)
		abort();
	own_start = start;
	own_end = end;
	own_inode = inode;
	(void)fclose(f);
}

static void fill_file(struct message *m)
{
	m->ask_file.pid = (uint32_t)getpid();
	m->ask_file.start = own_start;
	m->ask_file.end = own_end;
	m->ask_file.inode = own_inode;
	m->ask_file.major = own_major;
	m->ask_file.minor = own_minor;
	(void)strcpy(m->ask_file.path, own_path);
}

/* A sound one of its type. */
static void fill(struct message *m)
{
	switch (m->type) {
	case MESSAGE_ASK_FILE:
	case MESSAGE_ASK_COPY:
		fill_file(m);
		break;
	case MESSAGE_ASK_MAPS:
	case MESSAGE_ASK_CGROUP:
	case MESSAGE_ASK_PROCESS:
	case MESSAGE_ASK_USER:
	case MESSAGE_ASK_PERF_MAP:
	case MESSAGE_ASK_MEMORY:
	case MESSAGE_ASK_RESIDENT:
	case MESSAGE_ASK_TABLE:
		m->ask_pid.pid = (uint32_t)getpid();
		break;
	case MESSAGE_ASK_CONTAINER:
		memset(m->ask_container.id, 'a', sizeof(m->ask_container.id) - 1);
		break;
	case MESSAGE_ASK_DEBUG_FILE:
		m->ask_debug_file.pid = (uint32_t)getpid();
		m->ask_debug_file.n_build_id = 20;
		(void)strcpy(m->ask_debug_file.path, own_path);
		break;
	case MESSAGE_ASK_SPLIT_FILE:
		(void)strcpy(m->ask_split_file.path, "/tmp/some.dwo");
		break;
	case MESSAGE_ASK_RECORDED_FILE:
		m->ask_recorded_file.place = RECORDED_PATH;
		m->ask_recorded_file.n_build_id = 20;
		(void)strcpy(m->ask_recorded_file.path, own_path);
		break;
	case MESSAGE_WINDOW_DONE:
	case MESSAGE_MODULE_GONE:
		m->item.id = 1;
		break;
	default:
		break;
	}
}

/* 1: it was sent; 0: there is no room for it. */
static int send_one(struct input *in, int sock, uint32_t seq)
{
	static struct message m; /* and what it had before */
	int fds[3] = {STDIN_FILENO, STDIN_FILENO, STDIN_FILENO};
	unsigned int type = take(in) % (MESSAGE_N_TYPES + 1), flags = take(in), n = take(in);
	size_t size = message_size(type);

	memset(&m, 0, sizeof(m));
	m.type = type;
	m.seq = flags & 0x20 ? seq + 1 : seq;
	if (!(flags & 0x10))
		fill(&m);
	for (; n && in->p < in->end; n--) {
		size_t at = take(in), length;

		at = (at | (size_t)take(in) << 8) % (sizeof(m) - 256);
		for (length = take(in); length && in->p < in->end; length--)
			((uint8_t *)&m)[at++] = (uint8_t)take(in);
	}
	size = flags & 4 ? size - 1 : flags & 8 ? size + 1 : size;
	size = size > sizeof(m) ? sizeof(m) : size;
	sent_nothing |= size == 0;
	return fdmsg_send(sock, &m, size, fds, flags & 3, MSG_DONTWAIT) == 0;
}

static unsigned int send_all(struct input *in, int sock, uint32_t seq)
{
	unsigned int n = 0;

	sent_nothing = false;
	while (in->p < in->end && n < MAX_MESSAGES && send_one(in, sock, seq))
		n++;
	(void)shutdown(sock, SHUT_WR);
	return n;
}

/* ---- A child asks the broker ---- */

static void check_file(int fd)
{
	struct stat st;

	/* A copy of maps is in memory, and nobody else's. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && st.st_nlink))
		abort();
}

static unsigned int read_answers(int sock)
{
	unsigned int n = 0;
	struct message m;
	int fds[2];

	while (message_recv(sock, &m, fds, MSG_DONTWAIT) > 0) {
		if (m.type < MESSAGE_ANSWER || m.type > MESSAGE_ANSWER_STATISTICS ||
		    (fds[0] >= 0 && m.answer.error))
			abort();
		if (fds[0] >= 0)
			check_file(fds[0]);
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		n++;
	}
	return n;
}

static int answer_other(void *ctx, struct peer_id who, const struct message *ask,
			struct message *ret)
{
	if (ask->type != MESSAGE_ASK_STATISTICS && ask->type != MESSAGE_ASK_FLUSH &&
	    ask->type != MESSAGE_ASK_COPY && ask->type != MESSAGE_ASK_ALLOCATOR)
		abort();
	return 0;
}

static void to_broker(struct input *in, int pair[2])
{
	static struct strikes strikes;
	struct time_share share = {.percent = 100};
	/* All requests that there are. */
	const struct peer_row row = {.kind = PEER_PROFILER,
				     .may_ask = 2 * ASK_BIT(MESSAGE_ASK_FLUSH) -
						ASK_BIT(MESSAGE_ASK_MAPS)};
	const struct peer_row less = {.kind = PEER_METRICS, .may_ask = 0};
	const struct answer_sources s = {
		.strikes = &strikes, .share = &share, .recording = true, .other = answer_other};
	struct asker asker = {.row = take(in) & 1 ? &less : &row, .name = "child"};
	unsigned int n, n_answers;
	int r = 0;

	asker.refused = true; /* said once */
	n = send_all(in, pair[0], 1);
	for (unsigned int i = 0; i <= n && r == 0; i++)
		r = answer_ask(&s, &asker, pair[1]);
	n_answers = read_answers(pair[0]);
	/* It goes on to the end, unless one is no message. */
	if (n_answers > n || (r == -ECONNRESET && !sent_nothing && n_answers != n))
		abort();
}

/* ---- The broker answers a child ---- */

static void to_child(struct input *in, int pair[2])
{
	static const uint32_t asks[] = {MESSAGE_ASK_MAPS,    MESSAGE_ASK_CGROUP_PATH,
					MESSAGE_ASK_PROCESS, MESSAGE_ASK_USER,
					MESSAGE_ASK_FLUSH,   MESSAGE_ASK_STATISTICS};
	struct message m = {.type = asks[take(in) % ARRAY_SIZE(asks)]};
	struct ask a = {.sock = pair[1]};
	bool values = m.type != MESSAGE_ASK_MAPS;
	int r;

	(void)send_all(in, pair[0], 1);
	r = values ? ask_values(&a, &m) : ask_descriptor(&a, &m);
	if (!values && r >= 0)
		(void)close(r);
	else if (values && r > 0)
		abort();
}

/* ---- The symbolizer tells the profiler ---- */

struct profiler {
	struct loop *loop;
	struct handover *handover;
	int other; /* the symbolizer's end */
};

static int get_descriptor(void *ctx, const struct handover_item *item, struct message *m)
{
	return STDIN_FILENO;
}

static bool mark(void *ctx, const struct handover_item *item, uint32_t generation, bool sent)
{
	if (item->type != MESSAGE_MODULE)
		abort();
	return true;
}

/* What has been handed over, so that there is room; the sender has sent all before. */
static void on_timer(void *ctx)
{
	struct profiler *p = ctx;
	struct message m;
	int fds[2];

	while (message_recv(p->other, &m, fds, MSG_DONTWAIT) > 0) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
	}
	loop_exit(p->loop, 0);
}

static void push_window(struct handover *h, unsigned int i)
{
	struct handover_item *items = calloc(1, sizeof(*items));
	struct handover_window w = {.fd = input_fd("window", 6), .n_samples = i};

	if (!items)
		abort();
	items->type = MESSAGE_MODULE;
	items->id = i;
	handover_push(h, &w, items, 1);
}

static void to_profiler(struct input *in, int pair[2])
{
	struct profiler p = {.other = pair[0]};
	struct handover_callbacks callbacks = {
		.descriptor = get_descriptor, .mark = mark, .ctx = &p};

	callbacks.keep_settled = take(in) & 1;
	if (loop_new(&p.loop) < 0 || handover_new(&p.handover, p.loop, &callbacks) < 0)
		abort();
	for (unsigned int i = 0; i < 3; i++)
		push_window(p.handover, i);
	(void)send_all(in, pair[0], 0);
	handover_connect(p.handover, pair[1]);
	pair[1] = -EBADF;
	if (loop_add_timer(p.loop, 200 * 1000, 0, on_timer, &p) < 0)
		abort();
	(void)loop_run(p.loop);
	(void)handover_settled(p.handover);
	handover_free(p.handover);
	loop_free(p.loop);
}

static unsigned int n_descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static void (*const receivers[])(struct input * in, int pair[2]) = {to_broker, to_child,
									    to_profiler};
	struct input in = {data, data + n};
	unsigned int n_before;
	int pair[2];

	if (n < 4)
		return 0;
	if (!own_inode)
		find_own();
	n_before = n_descriptors();
	if (fdmsg_pair(pair, 0) < 0)
		abort();
	receivers[take(&in) % ARRAY_SIZE(receivers)](&in, pair);
	(void)close_fd(pair[0]);
	(void)close_fd(pair[1]);
	if (n_descriptors() != n_before)
		abort();
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 0, 8, 200);
}
#endif
