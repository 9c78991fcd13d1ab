/* SPDX-License-Identifier: Apache-2.0 */
/* Which locks are known: more of them than there is room for, and of a process that executes
 * another program. The broker, which reads their maps, is a thread here. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/process/filter.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/lock-places.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

enum { ROOM = 8, HEAP = 0x10000, CALL = 0x401000 };

static struct status_page status;
static struct role role = {.status = &status};
static struct ask ask;
static struct filter filter;

static void *answer(void *ctx)
{
	static const char maps[] = "00010000-7f0000000000 rw-p 00000000 00:00 0   [heap]\n";
	const int *sock = ctx;
	struct message m, a;
	int fds[2];

	while (message_recv(*sock, &m, fds, 0) > 0) {
		_cleanup_close_ int fd = -EBADF;

		a = (struct message){.type = MESSAGE_ANSWER, .seq = m.seq};
		if (m.type == MESSAGE_ASK_PROCESS)
			a.type = MESSAGE_ANSWER_PROCESS;
		a.answer.error = m.type == MESSAGE_ASK_MAPS ? 0 : -ENOENT;
		if (m.type == MESSAGE_ASK_MAPS) {
			fd = memory_file_new("maps");
			CHECK_INT(write(fd, maps, sizeof(maps) - 1), ==, sizeof(maps) - 1);
			CHECK_INT(lseek(fd, 0, SEEK_SET), ==, 0);
		}
		CHECK_INT(message_send(*sock, &a, &fd, fd >= 0), ==, 0);
	}
	return NULL;
}

static void start_broker(void)
{
	static int sock;
	pthread_t thread;
	int socks[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), ==, 0);
	ask.sock = socks[0];
	sock = socks[1];
	CHECK_INT(pthread_create(&thread, NULL, answer, &sock), ==, 0);
}

struct bench {
	struct attribution *a;
	struct lock_places *l;
};

static void begin(struct bench *b)
{
	static struct setup_profiler setup;

	setup = (struct setup_profiler){.n_events = 1,
					.window_memory_bytes = 1 << 20,
					.unwind_rows_bytes = 1 << 20,
					.max_processes = 100,
					.max_open_files = 10,
					.max_frames = 64};
	setup.events[0].options.rate_hz = 100;
	setup.events[0].features.clockid = setup.events[0].features.comm_exec = true;
	CHECK_INT(attribution_new(&b->a, &role, &ask, &setup, &filter, NULL), ==, 0);
	CHECK_INT(lock_places_new(&b->l, b->a, ROOM), ==, 0);
}

static void end(struct bench *b)
{
	lock_places_free(b->l);
	attribution_free(b->a);
}

static struct host_process *start(struct bench *b, uint32_t pid)
{
	host_on_fork(b->a->host, pid, pid, 1, 1, 100 + pid);
	host_on_comm(b->a->host, pid, pid, "made-up", true, 100 + pid);
	return host_process_peek(b->a->host, pid);
}

static void see(struct bench *b, const struct host_process *p, uint32_t lock)
{
	lock_places_see(b->l, p, HEAP + lock * 8, CALL);
}

static bool knows(struct bench *b, struct host_process *p, uint32_t lock)
{
	uint64_t address = HEAP + lock * 8;
	bool known = lock_places_knows(b->l, p, address, CALL);
	uint32_t frame = lock_places_frame(b->l, p, address);
	const struct profile_frame *f = &b->a->profile.frames.items[frame];

	CHECK_STR(profile_text(&b->a->profile, b->a->profile.modules.items[f->module].path),
		  known ? "[heap]" : "[anon]");
	return known;
}

/* Those that are waited for stay, and new ones come in place of the others. */
static void test_more_than_there_is_room_for(void)
{
	struct host_process *p;
	struct bench b;
	uint32_t n = 0;

	begin(&b);
	p = start(&b, 50);
	for (uint32_t i = 0; i < 4 * ROOM; i++) {
		see(&b, p, i);
		CHECK(knows(&b, p, i));
		CHECK(knows(&b, p, 0));
	}
	for (uint32_t i = 0; i < 4 * ROOM; i++)
		n += lock_places_knows(b.l, p, HEAP + i * 8, CALL);
	CHECK_INT(n, ==, ROOM);
	end(&b);
}

/* The new program may have anything at the address. */
static void test_of_a_program_before(void)
{
	struct host_process *p;
	struct bench b;

	begin(&b);
	p = start(&b, 50);
	see(&b, p, 1);
	CHECK(knows(&b, p, 1));
	host_on_comm(b.a->host, 50, 50, "other", true, 300);
	CHECK(!knows(&b, p, 1));
	see(&b, p, 1);
	CHECK(knows(&b, p, 1));
	end(&b);
}

int main(void)
{
	start_broker();
	RUN(test_more_than_there_is_room_for);
	RUN(test_of_a_program_before);
	return 0;
}
