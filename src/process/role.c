/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/process/role.h"
#include "src/process/status-page.h"
#include "util/heap.h"
#include "util/log.h"
#include "util/loop.h"

#define MAX_MESSAGES_A_TURN 256

void role_ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,	 SIGPIPE,
				      SIGQUIT, SIGUSR1, SIGUSR2, SIGXFSZ /* EFBIG is enough */};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
}

static int take_setup(struct role *r, void *setup, size_t n)
{
	_cleanup_close_ int status_fd = -EBADF;
	const struct setup_common *common = setup;
	struct message m;
	int fds[2], e;

	e = message_recv(PROTOCOL_CONTROL_FD, &m, fds, 0);
	if (e <= 0)
		return e == 0 ? -ECONNRESET : e;
	status_fd = fds[0];
	(void)close_fd(fds[1]);
	if (m.type != MESSAGE_SETUP || m.setup.n != n || status_fd < 0)
		return -EBADMSG;
	memcpy(setup, m.setup.bytes, n);
	log_set_level((enum log_level)common->log_level);
	r->seccomp = common->seccomp < SANDBOX_N_MODES ? (enum sandbox_mode)common->seccomp
						       : SANDBOX_ERRNO;
	e = status_page_map(status_fd, &r->status);
	/* Without root there is no empty network; a role without socket() does not need one. */
	if (e == 0 && common->privileges.uid != (uint32_t)-1 && !sandbox_uses_network(r->who))
		r->no_network = privileges_leave_network() == 0;
	if (e == 0)
		e = privileges_drop(&common->privileges);
	if (e == 0 && common->landlock)
		r->files = sandbox_files_new(r->who);
	return e;
}

void role_use_file(const struct role *r, const char *path)
{
	int e = sandbox_files_read(r->files, path);

	if (e < 0)
		log_debug("%s cannot be made readable: %s", path, strerror(-e));
}

void role_use_directory(const struct role *r, int fd)
{
	int e = sandbox_files_keep(r->files, fd);

	if (e < 0)
		log_warning("landlock: a directory cannot be used: %s", strerror(-e));
}

void role_use_port(const struct role *r, uint16_t port)
{
	int e = sandbox_files_connect(r->files, port);

	if (e < 0)
		log_warning("landlock: port %u cannot be used: %s", port, strerror(-e));
}

void role_use_server(const struct role *r, const char *url)
{
	role_use_port(r, sandbox_server_port(url));
}

void role_use_proxy(const struct role *r, const char *url)
{
	role_use_port(r, sandbox_proxy_port(url));
}

/* It stays where it is: not on the stack. */
static int set_variable(const char *text)
{
	char *variable = strdup(text);

	return variable && putenv(variable) == 0 ? 0 : -ENOMEM;
}

static int take_texts(const struct role *r, role_text_fn text, void *ctx)
{
	/* Some are credentials, and samples copy the stack. */
	_cleanup_free_ struct message *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	for (;;) {
		int fds[2], e = message_recv(PROTOCOL_CONTROL_FD, m, fds, 0);

		if (e <= 0)
			return e == 0 ? -ECONNRESET : e;
		if (m->type == MESSAGE_START)
			return 0;
		if ((m->type != MESSAGE_TEXT && m->type != MESSAGE_FILE) ||
		    !message_text_ok(m->text.text, sizeof(m->text.text)))
			e = -EBADMSG;
		else if (m->text.kind == TEXT_VARIABLE && sandbox_uses_network(r->who))
			e = set_variable(m->text.text);
		else
			e = text(ctx, m, TAKE_FD(fds[0]));
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		if (e < 0)
			return e;
	}
}

int role_start(struct role *r, enum peer who, void *setup, size_t n, role_text_fn text, void *ctx)
{
	char comm[16] = "pw-";
	int e;

	heap_return_large_blocks();
	log_open(peer_name(who));
	(void)prctl(PR_SET_NAME, strncat(comm, peer_name(who), sizeof(comm) - 4), 0, 0, 0);
	role_ignore_signals();
	*r = (struct role){.who = who, .files = -EBADF};
	e = take_setup(r, setup, n);
	if (e == 0)
		e = take_texts(r, text, ctx);
	if (e == 0 && sandbox_uses_network(who))
		sandbox_files_use_proxies(r->files);
	if (e == 0)
		e = loop_new(&r->loop);
	if (e < 0)
		log_error("cannot start: %s", strerror(-e));
	return e;
}

int role_read_messages(int sock, int max, role_message_fn fn, void *ctx)
{
	for (int i = 0; i < max; i++) {
		struct message m;
		int fds[2], r = message_recv(sock, &m, fds, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return 0;
		if (r <= 0)
			return r < 0 ? r : -EPIPE;
		fn(ctx, &m, fds);
	}
	return 0;
}

const char *role_receive_error(int r)
{
	return strerror(r == -EMSGSIZE ? EMFILE : -r);
}

int role_drain_socket(int sock, role_message_fn fn, void *ctx)
{
	return role_read_messages(sock, MAX_MESSAGES_A_TURN, fn, ctx);
}

static void on_control(void *ctx, int fd, uint32_t events)
{
	struct role *r = ctx;
	int e = role_drain_socket(fd, r->message, r->ctx);

	if (e == 0)
		return;
	/* Without the broker there is nothing to do. */
	if (e == -EPIPE)
		log_warning("the broker has ended; exiting");
	else
		log_error("messages of the broker cannot be received: %s; exiting",
			  role_receive_error(e));
	loop_exit(r->loop, 1);
}

/* Without a filter the other restrictions of a child still hold. */
static void confine_calls(struct role *r)
{
	int e;

	r->status->sandbox.no_network = r->no_network;
	r->status->sandbox.uid = (uint32_t)geteuid();
	(void)privileges_read_limits(0, &r->status->limits);
	e = sandbox_filter_calls(r->who, r->seccomp);

	if (e < 0)
		log_warning("no seccomp filter: %s; the kernel or the container does not allow one",
			    strerror(-e));
	else
		r->status->sandbox.seccomp = (uint8_t)r->seccomp;
}

/* Kernels before 5.13 have no Landlock, and many are built without it: only the status says so. */
static void confine_files(struct role *r)
{
	int e = sandbox_files_enforce(r->files);

	if (e < 0)
		log_debug("no Landlock: %s", strerror(-e));
	else
		r->status->sandbox.landlock = (uint8_t)e;
	r->files = close_fd(r->files);
}

void role_confine(struct role *r)
{
	if (r->confined)
		return;
	tzset(); /* printing the first date would open /etc/localtime */
	confine_files(r);
	confine_calls(r);
	r->confined = true;
}

int role_listen(struct role *r, role_message_fn message, void *ctx)
{
	int e;

	r->message = message;
	r->ctx = ctx;
	e = loop_add_fd(r->loop, PROTOCOL_CONTROL_FD, EPOLLIN, on_control, r);
	if (e < 0)
		return e;
	role_confine(r);
	r->status->ready = 1;
	return 0;
}

void role_job_begin(struct role *r)
{
	uint64_t job = r->status->job;

	__atomic_store_n(&r->status->reading, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&r->status->job, job + 1 + (job & 1), __ATOMIC_RELEASE);
}

void role_job_read(struct role *r, const struct file_identity *id, const char *path)
{
	/* If the process dies right here, it has read neither the previous file nor this one. */
	__atomic_store_n(&r->status->reading, 0, __ATOMIC_SEQ_CST);
	r->status->file.identity = *id;
	message_set_text(r->status->file.path, sizeof(r->status->file.path), path);
	__atomic_store_n(&r->status->reading, 1, __ATOMIC_RELEASE);
}

void role_job_end(struct role *r)
{
	uint64_t job = r->status->job;

	__atomic_store_n(&r->status->reading, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&r->status->job, job + (job & 1), __ATOMIC_RELEASE);
}
