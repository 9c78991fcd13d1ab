/* SPDX-License-Identifier: Apache-2.0 */
/* The users that the children run as. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/config/config.h"
#include "src/process/setup.h"
#include "util/cleanup.h"
#include "util/log.h"

static bool may_read(const struct privileges *p, const char *path)
{
	struct stat st;

	/* What is wrong with one that is not there, the exporter says. */
	if (!path || stat(path, &st) < 0)
		return true;
	return (st.st_mode & S_IROTH) || (st.st_uid == p->uid && (st.st_mode & S_IRUSR)) ||
	       (st.st_gid == p->gid && (st.st_mode & S_IRGRP));
}

/* They were another user's to read before that one came to exist. */
static void check_files(const struct privileges *p, const struct config_export *x)
{
	const char *const paths[] = {x->certificate, x->client_certificate, x->client_key};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (!may_read(p, paths[i]))
			log_warning("[export:%s] user %u, who sends the profiles, may not read %s: "
				    "chgrp %u and chmod 0640 it",
				    x->name, p->uid, paths[i], p->gid);
	}
}

static const char *with_credentials(const struct config *c)
{
	for (size_t i = 0; i < c->n_exports; i++) {
		if (c->exports[i].n_headers > 0 || c->exports[i].client_key)
			return c->exports[i].name;
	}
	return NULL;
}

/* Not group nogroup: unrelated programs run in it. Nor that of a person who starts a daemon: the
 * user of the config has a group for this. */
static gid_t group_of_sockets(const struct broker *b)
{
	const char *name = b->options.config->user, *found = NULL;
	uint32_t uid, gid;

	if (b->has_user)
		return b->privileges.gid;
	if (b->privileges.uid == (uint32_t)-1 && name &&
	    privileges_find_user(name, &uid, &gid, &found) == 0 && strcmp(name, found) == 0 &&
	    uid == geteuid())
		return gid;
	return (gid_t)-1;
}

/*
 * Other programs run as nobody, too: they could signal our processes, and put data into the spool
 * that would be sent with the operator's credentials.
 */
int broker_choose_users(struct broker *b)
{
	const struct config *c = b->options.config;
	const char *name = with_credentials(c);
	bool has_network_user;

	b->has_user = setup_choose_user(&b->privileges, c->user);
	b->group = group_of_sockets(b);
	has_network_user = setup_choose_network_user(&b->network, &b->privileges, c->network_user);
	/* A capture sends nothing, and is over soon. */
	if (b->privileges.uid == (uint32_t)-1 || b->options.capture || b->options.screen)
		return 0;
	if (name && !b->has_user && !has_network_user) {
		log_error(
			"[export:%s] has credentials, and the process that holds them would run as "
			"nobody, as other programs may: make the user with systemd-sysusers, or "
			"useradd --system %s, or name one in [process] network_user",
			name, c->network_user ? c->network_user : c->user);
		return -EPERM;
	}
	for (size_t i = 0; i < c->n_exports; i++)
		check_files(&b->network, &c->exports[i]);
	if (!b->has_user)
		log_warning(
			"user \"%s\" does not exist: the processes that read stacks and files run "
			"as nobody, as other programs may: make it with systemd-sysusers or "
			"useradd --system %s",
			c->user, c->user);
	return 0;
}
