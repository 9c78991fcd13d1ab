/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that dies takes nothing with it but its own state: neighbours hold what it had not
 * settled and hand it over again through the new socket. blame.h says what becomes of the file that
 * it was reading.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/sockios.h>

#include "src/broker/answer.h"
#include "src/broker/blame.h"
#include "src/broker/child.h"
#include "src/broker/children.h"
#include "src/broker/limits.h"
#include "src/broker/supervisor.h"
#include "src/broker/undead.h"
#include "src/opener/helper.h"
#include "src/process/status-page.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"
#include "util/time-share.h"

#define OPENER_PERCENT 10 /* of the wall clock, for files of strangers */
#define UNDEAD_LOOKS   3  /* after which a process that was killed is given up */

struct supervisor {
	struct loop *loop;
	struct supervisor_callbacks callbacks;
	int exe_fd, timer;
	struct children children;
	uint32_t leaving; /* kinds, of supervisor_leave() */
	struct blame blame;
	struct time_share opener_share;
	struct opener_helper *helper;
	struct answer_sources sources;
	struct undead undead;
};

static void on_watch(void *ctx);
static void stop_next(struct supervisor *s);

static void tell_child(struct supervisor *s, const struct child *c, const struct strike *k,
		       bool lifted)
{
	struct message m = {.type = MESSAGE_QUARANTINE};

	m.quarantine.file = k->file.identity;
	m.quarantine.for_peer = k->who;
	m.quarantine.lifted = lifted;
	(void)supervisor_send(s, c->id, &m, NULL, 0);
}

/* A child that passes files on must know which ones are set aside. */
static void tell_of_file(void *ctx, const struct strike *k, bool lifted)
{
	struct supervisor *s = ctx;

	for (uint32_t i = 0; i < s->children.n; i++) {
		if (s->children.items[i].row->hears_of_files)
			tell_child(s, &s->children.items[i], k, lifted);
	}
}

int supervisor_new(struct supervisor **ret, struct loop *loop, const struct peer_row *rows,
		   size_t n_rows, const struct supervisor_callbacks *callbacks,
		   uint64_t file_timeout_ns)
{
	_cleanup_(supervisor_freep) struct supervisor *s = calloc(1, sizeof(*s));
	struct privileges opener = {.max_data = 0};
	struct setup_common judge = callbacks->judge;
	int r;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->callbacks = *callbacks;
	s->blame.file_timeout_ns = file_timeout_ns;
	s->opener_share.percent = OPENER_PERCENT;
	s->exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	if (s->exe_fd < 0) {
		r = -errno;
		log_error("/proc/self/exe cannot be opened, and the children are made of it: %s",
			  strerror(-r));
		return r;
	}
	limits_set(&opener, LIMITS_OPENER, NULL);
	limits_set(&judge.privileges, LIMITS_JUDGE, NULL);
	if (opener_helper_new(&s->helper, s->exe_fd, &opener, &judge) < 0)
		return -ENOMEM;
	s->sources = (struct answer_sources){
		.strikes = &s->blame.quarantine.strikes,
		.share = &s->opener_share,
		.helper = s->helper,
		.recording = callbacks->recording,
		.other = callbacks->answer,
		.debug_file = callbacks->debug_file,
		.may_read = callbacks->may_read,
		.was_mapped = callbacks->was_mapped,
		.ctx = callbacks->ctx,
	};
	quarantine_open(&s->blame.quarantine, callbacks->strikes_path, callbacks->set_aside_ns,
			tell_of_file, s);
	r = children_make(&s->children, rows, n_rows, SUPERVISOR_MAX_CHILDREN);
	if (r < 0)
		return r;
	s->timer = loop_add_timer(loop, CHILD_WATCH_NS, CHILD_WATCH_NS, on_watch, s);
	if (s->timer < 0)
		return s->timer;
	*ret = TAKE_PTR(s);
	return 0;
}

void supervisor_set_file_timeout(struct supervisor *s, uint64_t file_timeout_ns)
{
	s->blame.file_timeout_ns = file_timeout_ns;
}

static void disconnect(struct supervisor *s, struct child *c)
{
	loop_remove_fd(s->loop, c->control);
	loop_remove_fd(s->loop, c->ask);
	c->control = close_fd(c->control);
	c->ask = close_fd(c->ask);
}

struct supervisor *supervisor_free(struct supervisor *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->children.n; i++) {
		child_deinit(&s->children.items[i]);
		disconnect(s, &s->children.items[i]);
	}
	opener_helper_free(s->helper);
	free(s->children.items);
	(void)close_fd(s->exe_fd);
	free(s);
	return NULL;
}

static void on_ask(void *ctx, int fd, uint32_t events)
{
	struct supervisor *s = ctx;
	struct child *c = children_with_fd(&s->children, fd);
	int r = answer_ask(&s->sources, &c->asker, fd);

	if (r < 0) {
		(void)child_sent(c, r);
		loop_remove_fd(s->loop, fd); /* its death follows as SIGCHLD */
	}
}

/* One message, if there is one: as message_recv(). */
static int receive_control(struct supervisor *s, const struct child *c)
{
	struct message m;
	int fds[2], r = message_recv(c->control, &m, fds, MSG_DONTWAIT);

	if (r > 0) {
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
		s->callbacks.message(s->callbacks.ctx, c->id, &m);
	}
	return r;
}

static void on_control(void *ctx, int fd, uint32_t events)
{
	struct supervisor *s = ctx;
	int r = receive_control(s, children_with_fd(&s->children, fd));

	if (r <= 0 && r != -EAGAIN)
		loop_remove_fd(s->loop, fd);
}

/* What the set-up of a new child is followed by. */
static void introduce(struct supervisor *s, struct child *c)
{
	const struct strike *k;

	for (uint32_t i = 0;
	     c->row->hears_of_files && (k = strikes_next(&s->blame.quarantine.strikes, &i));)
		tell_child(s, c, k, false);
	children_join(&s->children, c);
}

static int start(struct supervisor *s, struct child *c)
{
	int r = child_start(c, s->exe_fd);

	if (r < 0)
		return r;
	r = loop_add_fd(s->loop, c->control, EPOLLIN, on_control, s);
	if (r == 0 && c->ask >= 0)
		r = loop_add_fd(s->loop, c->ask, EPOLLIN, on_ask, s);
	if (r == 0)
		r = c->row->set_up(s->callbacks.ctx, c->id, c->control, c->status_fd);
	if (r < 0) {
		/* A caller that stopped it meanwhile has logged why. */
		log_write(c->stopping ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			  "the set-up of the %s failed: %s", c->name, strerror(-r));
		(void)kill(c->pid, SIGKILL);
	}
	introduce(s, c);
	if (c->row->may_ask & ASK_BIT(MESSAGE_ASK_FILE))
		opener_helper_prepare(s->helper);
	return 0;
}

int supervisor_start(struct supervisor *s, struct peer_id who)
{
	struct child *c = children_find(&s->children, who);

	return c ? start(s, c) : -EINVAL;
}

static uint32_t n_wanted(const struct supervisor *s, const struct peer_row *row)
{
	uint32_t n = row->count ? row->count(s->callbacks.ctx) : row->max;

	return n < row->max ? n : row->max;
}

bool supervisor_wanted(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c && who.index < n_wanted(s, c->row) && (c->pid || !c->row->is_optional);
}

int supervisor_start_kinds(struct supervisor *s, uint32_t kinds)
{
	int r = 0;

	for (uint32_t i = 0; i < s->children.n && r == 0; i++) {
		struct child *c = &s->children.items[i];

		if ((kinds & PEER_BIT(c->id.kind)) && !c->pid && c->id.index < n_wanted(s, c->row))
			r = start(s, c);
	}
	return r;
}

/* Returns the delay. */
static uint64_t start_later(struct supervisor *s, struct child *c)
{
	uint64_t delay = child_start_later(c);

	loop_set_timer(s->loop, s->timer, delay < CHILD_WATCH_NS ? delay : CHILD_WATCH_NS);
	return delay;
}

/* If there is no process or no descriptor left now, it tries again later. */
static void start_or_later(struct supervisor *s, struct child *c)
{
	int r = start(s, c);
	char delay[32];

	if (r < 0)
		log_error("the %s cannot be started: %s; next attempt in %s", c->name, strerror(-r),
			  text_format_duration(delay, sizeof(delay), start_later(s, c)));
}

int supervisor_send(struct supervisor *s, struct peer_id who, const struct message *m,
		    const int *fds, size_t n_fds)
{
	struct child *c = children_find(&s->children, who);

	return c ? child_send(c, m, fds, n_fds) : -ENOTCONN;
}

int supervisor_send_now(struct supervisor *s, struct peer_id who, const struct message *m,
			const int *fds, size_t n_fds)
{
	struct child *c = children_find(&s->children, who);

	return c ? child_send_now(c, m, fds, n_fds) : -ENOTCONN;
}

void supervisor_sent(struct supervisor *s, struct peer_id who, int r)
{
	struct child *c = children_find(&s->children, who);

	if (c)
		(void)child_sent(c, r);
}

int supervisor_try_send(struct supervisor *s, struct peer_id who, const struct message *m,
			const int *fds, size_t n_fds)
{
	const struct child *c = children_find(&s->children, who);

	return !c || c->control < 0 ? -ENOTCONN : message_try_send(c->control, m, fds, n_fds);
}

bool supervisor_has_read(struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);
	int n_bytes = 0;

	return !c || c->control < 0 || ioctl(c->control, SIOCOUTQ, &n_bytes) < 0 || n_bytes == 0;
}

static void child_gone(struct supervisor *s, const struct child *c, bool clean)
{
	s->callbacks.gone(s->callbacks.ctx, c->id, clean || c->row->is_optional);
	stop_next(s);
}

static void stop(struct supervisor *s, struct child *c)
{
	struct message m = {.type = MESSAGE_STOP};
	bool start_first = c->start_at_ns && c->row->is_started_to_finish;

	c->start_at_ns = 0;
	if (!c->pid && (!start_first || start(s, c) < 0)) {
		child_gone(s, c, !start_first);
		return;
	}
	c->stopping = true;
	(void)supervisor_send(s, c->id, &m, NULL, 0);
}

/* Asks those to finish whose turn it is. One that waits for its next start may be gone at once,
 * which comes back to here. */
static void stop_next(struct supervisor *s)
{
	uint32_t kinds;

	for (uint32_t i = 0; i < s->children.n && s->leaving; i++) {
		struct child *c = &s->children.items[i];

		if (child_is_there(c) && !c->stopping && (s->leaving & PEER_BIT(c->id.kind)) &&
		    !children_any_there(&s->children, c->row->stops_after & s->leaving))
			stop(s, c);
	}
	if (!s->leaving || children_any_there(&s->children, s->leaving))
		return;
	kinds = s->leaving;
	s->leaving = 0;
	if (s->callbacks.left)
		s->callbacks.left(s->callbacks.ctx, kinds);
}

void supervisor_leave(struct supervisor *s, uint32_t kinds)
{
	s->leaving |= kinds;
	stop_next(s);
}

void supervisor_kill_all(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->children.n; i++) {
		s->leaving |= PEER_BIT(s->children.items[i].id.kind);
		supervisor_kill(s, s->children.items[i].id);
	}
	stop_next(s);
}

void supervisor_stop(struct supervisor *s, struct peer_id who)
{
	struct child *c = children_find(&s->children, who);

	if (c)
		stop(s, c);
}

void supervisor_kill(struct supervisor *s, struct peer_id who)
{
	struct child *c = children_find(&s->children, who);

	if (!c)
		return;
	c->start_at_ns = 0;
	c->restart = false;
	if (c->pid) {
		c->stopping = c->unwanted = true;
		(void)kill(c->pid, SIGKILL);
	}
}

void supervisor_restart(struct supervisor *s, struct peer_id who)
{
	struct child *c = children_find(&s->children, who);

	if (c && c->pid) {
		c->restart = true;
		c->stopping = false;
		(void)kill(c->pid, SIGKILL);
	} else if (c) {
		start_or_later(s, c);
	}
}

bool supervisor_next(const struct supervisor *s, uint32_t *at, struct peer_id *ret)
{
	if (*at >= s->children.n)
		return false;
	*ret = s->children.items[(*at)++].id;
	return true;
}

const char *supervisor_name(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c ? c->name : peer_name(who.kind);
}

int supervisor_control(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c ? c->control : -EBADF;
}

uint64_t supervisor_starts(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c ? c->n_starts : 0;
}

bool supervisor_stopping(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c && c->pid && c->stopping;
}

uint32_t supervisor_n_set_aside(const struct supervisor *s)
{
	uint32_t n = 0, at = 0;

	while (strikes_next(&s->blame.quarantine.strikes, &at))
		n++;
	return n;
}

const struct strikes *supervisor_strikes(const struct supervisor *s)
{
	return &s->blame.quarantine.strikes;
}

uint32_t supervisor_forget_strikes(struct supervisor *s)
{
	return quarantine_forget(&s->blame.quarantine);
}

struct opener_helper *supervisor_opener(const struct supervisor *s)
{
	return s->helper;
}

pid_t supervisor_pid(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c ? c->pid : 0;
}

bool supervisor_running(const struct supervisor *s, struct peer_id who)
{
	return supervisor_pid(s, who) != 0;
}

bool supervisor_is_there(const struct supervisor *s, struct peer_id who)
{
	const struct child *c = children_find(&s->children, who);

	return c && child_is_there(c);
}

static void on_death(struct supervisor *s, struct child *c, int status)
{
	char how[96], delay[32];
	pid_t pid = c->pid;
	bool clean;

	/* Its last words may wait still: SIGCHLD does not queue behind them. */
	while (c->control >= 0 && receive_control(s, c) > 0)
		;
	clean = c->stopping && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!c->restart && !c->deaf && !s->callbacks.once)
		blame_death(&s->blame, c, status);
	if (s->callbacks.died)
		s->callbacks.died(s->callbacks.ctx, c->id);
	child_clear_page(c);
	c->pid = 0;
	disconnect(s, c);
	if (c->stopping && !c->restart) {
		if (!clean) {
			child_describe_death(status, how, sizeof(how));
			log_write(s->callbacks.once || c->unwanted ? LOG_LEVEL_DEBUG
								   : LOG_LEVEL_WARNING,
				  "%s (pid %d) %s while stopping", c->name, (int)pid, how);
		}
		child_gone(s, c, clean);
		return;
	}
	if (c->restart) {
		bool stops = c->stopping; /* said since: what is under way is the next one's */

		start_or_later(s, c);
		if (stops)
			stop(s, c);
		return;
	}

	child_describe_death(status, how, sizeof(how));
	log_warning("%s (pid %d) %s; a new one starts in %s", c->name, (int)pid, how,
		    text_format_duration(delay, sizeof(delay), start_later(s, c)));
}

/* Gives its place to another process, unless there are too many like that. */
static void give_up(struct supervisor *s, struct child *c)
{
	if (undead_add(&s->undead, c->pid))
		on_death(s, c, SIGKILL);
}

static void watch(struct supervisor *s, struct child *c, uint64_t now)
{
	blame_watch(&s->blame, c, now);
	if (c->took_too_long && ++c->n_undead == UNDEAD_LOOKS)
		give_up(s, c);
}

void supervisor_reap(struct supervisor *s)
{
	undead_reap(&s->undead);
	for (uint32_t i = 0; i < s->children.n; i++) {
		struct child *c = &s->children.items[i];
		int status;

		if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) > 0)
			on_death(s, c, status);
	}
}

/* Of a child that is to be started, is being killed, or is at work that may not last. */
static bool needs_watching(const struct child *c)
{
	return c->pid ? c->took_too_long || (__atomic_load_n(&c->status->job, __ATOMIC_RELAXED) & 1)
		      : c->start_at_ns != 0;
}

/* Starts what has waited long enough, kills what is stuck at one file. A wake-up costs more than
 * the look itself: there are fewer while no child needs it. */
static void on_watch(void *ctx)
{
	bool needed = false;
	struct supervisor *s = ctx;
	uint64_t now = clock_monotonic_ns();

	(void)quarantine_take_back(&s->blame.quarantine, now);
	for (uint32_t i = 0; i < s->children.n; i++) {
		struct child *c = &s->children.items[i];

		if (!c->pid && c->start_at_ns && now >= c->start_at_ns)
			start_or_later(s, c);
		else if (c->pid)
			watch(s, c, now);
		needed |= needs_watching(c);
	}
	if (!needed)
		loop_set_timer(s->loop, s->timer, CHILD_IDLE_WATCH_NS);
	if (s->callbacks.watched)
		s->callbacks.watched(s->callbacks.ctx);
}

const struct status_page *supervisor_status(const struct supervisor *s, struct peer_id who)
{
	static const struct status_page never_started;
	const struct child *c = children_find(&s->children, who);

	return c && c->status ? c->status : &never_started;
}
