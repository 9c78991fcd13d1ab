/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "src/process/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/process/credentials.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* A child that reads one message now and then must not keep the broker for each of them. */
#define SETUP_NS (20 * NSEC_PER_SEC)

int setup_send(int control, const void *setup, size_t n, int status_fd)
{
	struct message m = {.type = MESSAGE_SETUP};

	m.setup.n = (uint32_t)n;
	memcpy(m.setup.bytes, setup, n);
	return message_send(control, &m, &status_fd, status_fd >= 0 ? 1 : 0);
}

int setup_send_start(int control)
{
	const struct message m = {.type = MESSAGE_START};

	return message_send(control, &m, NULL, 0);
}

int setup_send_text(int control, enum text_kind kind, const char *text, int fd)
{
	/* Some are credentials, and samples copy the stack. */
	_cleanup_free_ struct message *m = calloc(1, sizeof(*m));

	if (!text)
		return 0;
	if (!m)
		return -ENOMEM;
	if (strlen(text) >= sizeof(m->text.text))
		return -E2BIG;
	m->type = fd >= 0 ? MESSAGE_FILE : MESSAGE_TEXT;
	m->text.kind = kind;
	m->text.n = (uint32_t)strlen(text);
	message_set_text(m->text.text, sizeof(m->text.text), text);
	return message_send(control, m, &fd, fd >= 0 ? 1 : 0);
}

struct setup_sender setup_begin(int control, const void *setup, size_t n, int status_fd)
{
	uint64_t deadline = clock_monotonic_ns() + SETUP_NS;

	return (struct setup_sender){control, setup_send(control, setup, n, status_fd), deadline};
}

bool setup_may_send(struct setup_sender *to)
{
	if (to->result == 0 && clock_monotonic_ns() >= to->deadline_ns)
		to->result = -ETIMEDOUT;
	return to->result == 0;
}

void setup_put_file(struct setup_sender *to, enum text_kind kind, const char *text, int fd)
{
	if (setup_may_send(to))
		to->result = setup_send_text(to->control, kind, text, fd);
}

void setup_put_message(struct setup_sender *to, const struct message *m, const int *fds,
		       size_t n_fds)
{
	if (setup_may_send(to))
		to->result = message_send(to->control, m, fds, n_fds);
}

void setup_put_text(struct setup_sender *to, enum text_kind kind, const char *text)
{
	setup_put_file(to, kind, text, -1);
}

void setup_put_proxies(struct setup_sender *to)
{
	for (char **v = environ; v && *v && to->result == 0; v++) {
		if (!credentials_of_proxy(*v))
			continue;
		setup_put_text(to, TEXT_VARIABLE, *v);
		if (to->result == -E2BIG) {
			log_warning("the environment variable %.*s is too long and is ignored",
				    (int)strcspn(*v, "="), *v);
			to->result = 0;
		}
	}
}

int setup_finish(struct setup_sender *to)
{
	if (setup_may_send(to))
		to->result = setup_send_start(to->control);
	return to->result;
}

bool setup_choose_user(struct privileges *ret, const char *name)
{
	const char *found = NULL;

	*ret = (struct privileges){
		.uid = (uint32_t)-1, .gid = (uint32_t)-1, .parent_pid = (uint32_t)getpid()};
	if (geteuid() != 0)
		return false;
	if (privileges_find_user(name, &ret->uid, &ret->gid, &found) < 0) {
		log_warning(
			"neither user \"%s\" nor \"nobody\" exists: the children run as uid 65534",
			name ? name : "");
		ret->uid = ret->gid = 65534;
	} else if (!name || strcmp(name, found) != 0) {
		log_debug("user \"%s\" does not exist: the children run as \"%s\"",
			  name ? name : "", found);
	} else {
		return true;
	}
	return false;
}

bool setup_choose_network_user(struct privileges *ret, const struct privileges *user,
			       const char *name)
{
	const char *found = NULL;
	uint32_t uid, gid;

	*ret = *user;
	if (user->uid == (uint32_t)-1 || !name)
		return false;
	if (privileges_find_user(name, &uid, &gid, &found) < 0 || strcmp(name, found) != 0) {
		log_debug("user \"%s\" does not exist: those with the network run as uid %u", name,
			  user->uid);
		return false;
	}
	ret->uid = uid;
	ret->gid = gid;
	return true;
}
