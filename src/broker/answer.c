/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include "src/broker/answer.h"
#include "src/opener/helper.h"
#include "src/opener/opener.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/log.h"

/*
 * ---- What is opened, or found out: a descriptor, 0 or -errno ----
 *
 * The identity of a file goes to ret->opened.file, behind what the child gets. The opener says it,
 * because the broker touches no file of a stranger.
 */

/* Files of strangers, with a deadline. */
static int open_with_help(const struct answer_sources *s, const struct message *ask,
			  struct message *ret)
{
	return opener_helper_open(s->helper, ask, &ret->opened.file);
}

static int open_maps(const struct answer_sources *s, const struct message *ask, struct message *ret)
{
	/* The copy of a long table takes long. */
	return ask->ask_pid.copy ? open_with_help(s, ask, ret)
				 : opener_maps(ask->ask_pid.pid, false);
}

static int open_cgroup(const struct answer_sources *s, const struct message *ask,
		       struct message *ret)
{
	return opener_cgroup(ask->ask_pid.pid);
}

static int open_resident(const struct answer_sources *s, const struct message *ask,
			 struct message *ret)
{
	return opener_resident(ask->ask_pid.pid);
}

static int open_kills(const struct answer_sources *s, const struct message *ask,
		      struct message *ret)
{
	return ask->ask_pid.copy ? opener_kill_lines() : opener_kills();
}

/* Of a process that is gone, only we may know that it had the file mapped. */
static int open_mapped(const struct answer_sources *s, const struct message *ask,
		       struct message *ret)
{
	struct message seen = *ask;
	int fd = open_with_help(s, ask, ret);

	if (fd != -EACCES || !s->was_mapped || !s->was_mapped(s->ctx, &ask->ask_file))
		return fd;
	seen.type = MESSAGE_ASK_SEEN_FILE;
	return open_with_help(s, &seen, ret);
}

static int open_memory(const struct answer_sources *s, const struct message *ask,
		       struct message *ret)
{
	/* For now: a refusal would be for good. */
	return s->may_read && !s->may_read(s->ctx, ask->ask_pid.pid) ? -EUCLEAN
								     : open_with_help(s, ask, ret);
}

static int open_container(const struct answer_sources *s, const struct message *ask,
			  struct message *ret)
{
	return message_text_ok(ask->ask_container.id, sizeof(ask->ask_container.id))
		       ? opener_container_state(ask->ask_container.id)
		       : -EBADMSG;
}

static int open_debug_file(const struct answer_sources *s, const struct message *ask,
			   struct message *ret)
{
	int fd = message_text_ok(ask->ask_debug_file.path, sizeof(ask->ask_debug_file.path))
			 ? open_with_help(s, ask, ret)
			 : -EBADMSG;

	if (fd < 0 && fd != -EBADMSG && fd != -EINVAL && s->debug_file) {
		fd = s->debug_file(s->ctx, ask);
		if (fd >= 0)
			(void)file_identity_get(fd, &ret->opened.file);
	}
	return fd;
}

static int open_split_file(const struct answer_sources *s, const struct message *ask,
			   struct message *ret)
{
	return message_text_ok(ask->ask_split_file.path, sizeof(ask->ask_split_file.path))
		       ? open_with_help(s, ask, ret)
		       : -EBADMSG;
}

static int find_cgroup_path(const struct answer_sources *s, const struct message *ask,
			    struct message *ret)
{
	return opener_cgroup_path(ask->ask_cgroup_path.id, ret->answer_text.text,
				  sizeof(ret->answer_text.text));
}

static int find_process(const struct answer_sources *s, const struct message *ask,
			struct message *ret)
{
	return opener_process(ask->ask_pid.pid, ret);
}

static int find_user(const struct answer_sources *s, const struct message *ask, struct message *ret)
{
	return opener_user(ask->ask_pid.pid, &ret->answer_user.uid);
}

/* ---- How each request is answered ---- */

static const struct request {
	uint32_t answer; /* type of the answer */
	/* A descriptor to hand over, 0, or -errno; ret is of the type above, all else of it 0.
	 * NULL: only the broker itself knows. */
	int (*open)(const struct answer_sources *s, const struct message *ask, struct message *ret);
	bool is_file; /* refused while it is set aside for the child that asks */
	/* What it costs is for a stranger to choose: it takes of the share, or also waits for it. A
	 * file of the second kind is asked for again, one of the first is not. */
	enum { FREE, CHARGED, SHARED } share;
} requests[MESSAGE_N_TYPES] = {
	[MESSAGE_ASK_MAPS] = {MESSAGE_ANSWER, open_maps, false, FREE},
	[MESSAGE_ASK_FILE] = {MESSAGE_ANSWER, open_mapped, true, SHARED},
	[MESSAGE_ASK_CGROUP] = {MESSAGE_ANSWER, open_cgroup, false, FREE},
	[MESSAGE_ASK_CGROUP_PATH] = {MESSAGE_ANSWER_TEXT, find_cgroup_path, false, FREE},
	[MESSAGE_ASK_CONTAINER] = {MESSAGE_ANSWER, open_container, false, FREE},
	[MESSAGE_ASK_PROCESS] = {MESSAGE_ANSWER_PROCESS, find_process, false, FREE},
	[MESSAGE_ASK_USER] = {MESSAGE_ANSWER_USER, find_user, false, FREE},
	[MESSAGE_ASK_PERF_MAP] = {MESSAGE_ANSWER, open_with_help, false, SHARED},
	[MESSAGE_ASK_MEMORY] = {MESSAGE_ANSWER, open_memory, false, SHARED},
	[MESSAGE_ASK_RESIDENT] = {MESSAGE_ANSWER, open_resident, false, FREE},
	[MESSAGE_ASK_KILLS] = {MESSAGE_ANSWER, open_kills, false, FREE},
	[MESSAGE_ASK_RECORDED_FILE] = {MESSAGE_ANSWER, open_with_help, true, CHARGED},
	[MESSAGE_ASK_DEBUG_FILE] = {MESSAGE_ANSWER, open_debug_file, true, CHARGED},
	[MESSAGE_ASK_SPLIT_FILE] = {MESSAGE_ANSWER, open_split_file, false, CHARGED},
	[MESSAGE_ASK_TABLE] = {MESSAGE_ANSWER, open_with_help, false, SHARED},
	[MESSAGE_ASK_BLOCKED] = {MESSAGE_ANSWER, open_with_help, false, SHARED},
	[MESSAGE_ASK_CONTEXT] = {MESSAGE_ANSWER, open_with_help, false, SHARED},
	[MESSAGE_ASK_COPY] = {MESSAGE_ANSWER, NULL, false, FREE},
	[MESSAGE_ASK_ALLOCATOR] = {MESSAGE_ANSWER, NULL, false, FREE},
	[MESSAGE_ASK_STATISTICS] = {MESSAGE_ANSWER, NULL, false, FREE},
	[MESSAGE_ASK_FLUSH] = {MESSAGE_ANSWER, NULL, false, FREE},
};

/* The error stands at the same place of all answers. */
_Static_assert(offsetof(struct message, answer.error) ==
		       offsetof(struct message, answer_text.error),
	       "text");
_Static_assert(offsetof(struct message, answer.error) == offsetof(struct message, opened.error),
	       "opened");
_Static_assert(offsetof(struct message, answer.error) ==
		       offsetof(struct message, answer_process.error),
	       "process");
_Static_assert(offsetof(struct message, answer.error) ==
		       offsetof(struct message, answer_user.error),
	       "user");

/* No child of ours asks for what it may not have, unless somebody else speaks through it. */
static bool is_refused(const struct answer_sources *s, struct asker *asker,
		       const struct message *ask)
{
	if (is_ask(ask->type) && (asker->row->may_ask & ASK_BIT(ask->type)) &&
	    (ask->type != MESSAGE_ASK_RECORDED_FILE || s->recording))
		return false;
	if (!asker->refused)
		log_warning("the %s (pid %d) has no right to its request %u: refused; it may have "
			    "been taken over",
			    asker->name, (int)asker->pid, ask->type);
	asker->refused = true;
	return true;
}

/* The descriptor or error itself; or it is closed and -EUCLEAN. */
static int unless_set_aside(const struct strikes *strikes, enum peer who,
			    const struct file_identity *id, int owned_fd)
{
	_cleanup_close_ int fd = owned_fd;

	if (fd >= 0 && id->ino && strikes_find(strikes, who, id))
		return -EUCLEAN;
	return TAKE_FD(fd);
}

/* What only the broker knows. */
static void answer_other(const struct answer_sources *s, struct peer_id who,
			 const struct message *ask, struct message *a)
{
	int r = s->other ? s->other(s->ctx, who, ask, a) : -EOPNOTSUPP;

	if (r < 0)
		a->type = MESSAGE_ANSWER;
	if (a->type == MESSAGE_ANSWER)
		a->answer.error = r;
}

/*
 * Strangers decide how long it takes to open their files, and all children wait meanwhile. A file
 * that is put off (-EAGAIN) is asked for again at a later sample.
 */
static int open_within_share(const struct answer_sources *s, const struct request *q,
			     const struct message *ask, struct message *a)
{
	uint64_t cost;
	int r;

	if (q->share == FREE)
		return q->open(s, ask, a);
	cost = s->helper ? opener_helper_cost_ns(s->helper) : 0;
	if (!time_share_begin(s->share, clock_monotonic_ns()) && q->share == SHARED)
		return -EAGAIN;
	r = q->open(s, ask, a);
	if (s->helper)
		cost = opener_helper_cost_ns(s->helper) - cost;
	time_share_end_with(s->share, clock_monotonic_ns(), cost);
	return r;
}

/* Returns the descriptor that goes with the answer; negative without one. */
static int answer_by_table(const struct answer_sources *s, enum peer who, const struct message *ask,
			   struct message *a)
{
	const struct request *q = &requests[ask->type];
	int r = open_within_share(s, q, ask, a);

	if (q->is_file)
		r = unless_set_aside(s->strikes, who, &a->opened.file, r);
	a->answer.error = r < 0 ? r : 0;
	return a->type == MESSAGE_ANSWER ? r : -EBADF;
}

static int answer_one(const struct answer_sources *s, struct asker *asker,
		      const struct message *ask, int sock)
{
	struct message a = {.type = MESSAGE_ANSWER, .seq = ask->seq};
	_cleanup_close_ int fd = -EBADF;

	if (is_refused(s, asker, ask)) {
		a.answer.error = -EPERM;
	} else if (requests[ask->type].open) {
		a.type = requests[ask->type].answer;
		fd = answer_by_table(s, asker->row->kind, ask, &a);
	} else {
		answer_other(s, asker->id, ask, &a);
	}
	return message_try_send(sock, &a, &fd, fd >= 0 ? 1 : 0);
}

int answer_ask(const struct answer_sources *s, struct asker *asker, int sock)
{
	struct message ask;
	int fds[2], r = message_recv(sock, &ask, fds, MSG_DONTWAIT);

	if (r == -EAGAIN)
		return 0;
	if (r <= 0)
		return r < 0 ? r : -ECONNRESET;
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	return answer_one(s, asker, &ask, sock) == -EAGAIN ? -EAGAIN : 0;
}
