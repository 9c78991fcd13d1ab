/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from elsewhere, as the broker sees them. The symbolizer asks for a debug file as
 * for any other. If this host does not have it, the broker looks in the fetcher's cache by its
 * build id; if it is not there either, the fetcher downloads it while the symbolizer continues
 * without. When it has come, the symbolizer gets a message, and asks again.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/broker/internal.h"
#include "src/opener/opener.h"

/* Users other than root have caches of their own. */
static char *default_path(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	if (cache && *cache == '/')
		n = asprintf(&path, "%s/perfwalk/debuginfod", cache);
	else if (geteuid() != 0 && home && *home == '/')
		n = asprintf(&path, "%s/.cache/perfwalk/debuginfod", home);
	else
		n = asprintf(&path, "%s", LOCALSTATEDIR "/cache/perfwalk/debuginfod");
	return n < 0 ? NULL : path;
}

int broker_open_debug_cache(struct broker *b)
{
	const struct config *c = b->options.config;
	_cleanup_free_ char *found =
		c->debuginfod_urls && !c->debuginfod_cache_path ? default_path() : NULL;
	const char *path = found ? found : c->debuginfod_cache_path;

	return broker_open_state_dir(b, &b->debug_cache, c->debuginfod_urls && path ? path : "",
				     true, "debuginfod", "no debug files are fetched");
}

/* The symbolizer gets what was fetched before; what was not is fetched for the next time. */
int broker_debug_file(void *ctx, const struct message *ask)
{
	const struct broker *b = ctx;
	struct message m = {.type = MESSAGE_FETCH};
	uint32_t n = ask->ask_debug_file.n_build_id;
	int fd;

	if (b->debug_cache.fd < 0)
		return -ENOENT;
	fd = opener_cached_debug_file(b->debug_cache.fd, ask->ask_debug_file.build_id, n);
	if (fd >= 0 || fd == -EINVAL || !ask->ask_debug_file.fetch)
		return fd;
	m.fetch.n = n;
	memcpy(m.fetch.build_id, ask->ask_debug_file.build_id, n);
	return supervisor_try_send(b->supervisor, peer_only(PEER_FETCHER), &m, NULL, 0) == 0
		       ? -EINPROGRESS
		       : -ENOENT;
}

void broker_tell_fetched(struct broker *b, const struct message *from)
{
	struct message m = {.type = MESSAGE_FETCHED};

	if (from && (from->fetch.n < 1 || from->fetch.n > sizeof(m.fetch.build_id)))
		return;
	m.fetch.error = -ECONNRESET;
	if (from)
		m.fetch = from->fetch;
	(void)supervisor_try_send(b->supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL, 0);
}

void broker_reload_fetcher(struct broker *b)
{
	const struct message m = {.type = MESSAGE_FETCHED};
	bool runs = supervisor_running(b->supervisor, peer_only(PEER_FETCHER));

	if (broker_open_debug_cache(b) >= 0)
		supervisor_restart(b->supervisor, peer_only(PEER_FETCHER));
	else if (runs)
		supervisor_stop(b->supervisor, peer_only(PEER_FETCHER));
	if (b->debug_cache.fd >= 0 && !runs)
		(void)supervisor_try_send(b->supervisor, peer_only(PEER_SYMBOLIZER), &m, NULL, 0);
}
