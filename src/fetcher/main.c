/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher: downloads debug files from debuginfod servers into a directory, from which the
 * broker opens them for the symbolizer. It has the network and that directory, and sees neither
 * profiles nor credentials, only build ids.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/fetcher/debuginfod.h"
#include "src/fetcher/setup.h"
#include "src/process/role.h"
#include "src/process/status-page.h"
#include "symbolize/symbolize.h"
#include "util/log.h"
#include "util/loop.h"

struct fetcher {
	struct role role;
	struct setup_fetcher setup;
	const char *urls[SETUP_MAX_URLS];
	size_t n_urls;
	char *cache_path;
	int cache_fd;
	struct debuginfod *client;
};

static int on_text(void *ctx, const struct message *m, int fd)
{
	struct fetcher *f = ctx;
	char *text = strdup(m->text.text);

	if (text && m->text.kind == TEXT_DEBUG_CACHE && f->cache_fd < 0) {
		role_use_directory(&f->role, fd);
		f->cache_fd = fd;
		f->cache_path = text;
		return 0;
	}
	(void)close_fd(fd);
	if (text && m->text.kind == TEXT_DEBUGINFOD && f->n_urls < ARRAY_SIZE(f->urls)) {
		role_use_server(&f->role, text);
		f->urls[f->n_urls++] = text;
		return 0;
	}
	free(text);
	return text ? -EBADMSG : -ENOMEM;
}

static void publish(const struct fetcher *f)
{
	const struct debuginfod_stats *s = debuginfod_stats(f->client);

	f->role.status->counts.debuginfod = (struct status_debuginfod){
		.fetched = s->fetched,
		.bytes = s->bytes,
		.missing = s->missing,
		.failures = s->failures,
		.refused = s->refused,
		.evicted = s->evicted,
	};
}

static bool on_belongs(int fd, const struct debug_id *id)
{
	uint8_t found[64];
	size_t n;

	return symbol_file_build_id(fd, found, &n) == 0 && n == id->n &&
	       memcmp(found, id->bytes, n) == 0;
}

static void on_done(void *ctx, const struct debug_id *id, bool found)
{
	struct fetcher *f = ctx;
	struct message m = {.type = MESSAGE_FETCHED};

	m.fetch.error = found ? 0 : -ENOENT;
	m.fetch.n = id->n;
	memcpy(m.fetch.build_id, id->bytes, id->n);
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
	publish(f);
}

static void on_control(void *ctx, const struct message *m, int fds[2])
{
	struct fetcher *f = ctx;
	struct debug_id id;

	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
	if (m->type == MESSAGE_STOP) {
		loop_exit(f->role.loop, 0);
	} else if (m->type == MESSAGE_FETCH && f->client && m->fetch.n >= 1 &&
		   m->fetch.n <= sizeof(id.bytes)) {
		id.n = m->fetch.n;
		memcpy(id.bytes, m->fetch.build_id, sizeof(id.bytes));
		debuginfod_request(f->client, &id);
		publish(f);
	}
}

/* All else works without the fetcher: the broker lets it exit. */
static void give_up(int error, const char *why)
{
	struct message m = {.type = MESSAGE_RESULT};

	log_error("debuginfod: debug files cannot be fetched: %s", *why ? why : strerror(-error));
	m.result.code = error;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

static int set_up(struct fetcher *f)
{
	const struct debuginfod_options options = {
		.urls = f->urls,
		.n_urls = f->n_urls,
		.cache_fd = f->cache_fd,
		.cache_path = f->cache_path,
		.max_cache_bytes = f->setup.cache_bytes,
		.max_file_bytes = f->setup.max_file_bytes,
		.timeout_ns = f->setup.timeout_ns,
		.belongs = on_belongs,
		.done = on_done,
		.ctx = f,
	};
	char error[256] = "";
	int r;

	if (f->cache_fd < 0 || f->n_urls == 0)
		return -EBADMSG;
	/* The usual ports of redirects. */
	role_use_port(&f->role, 80);
	role_use_port(&f->role, 443);
	r = debuginfod_new(&f->client, f->role.loop, &options, PACKAGE_VERSION, error,
			   sizeof(error));
	if (r < 0)
		give_up(r, error);
	return role_listen(&f->role, on_control, f);
}

int role_fetcher_main(void)
{
	struct fetcher f = {.cache_fd = -EBADF};
	int r;

	r = role_start(&f.role, PEER_FETCHER, &f.setup, sizeof(f.setup), on_text, &f);
	if (r == 0)
		r = set_up(&f);
	if (r == 0)
		r = loop_run(f.role.loop);
	debuginfod_free(f.client);
	for (size_t i = 0; i < f.n_urls; i++)
		free((void *)f.urls[i]);
	free(f.cache_path);
	(void)close_fd(f.cache_fd);
	loop_free(f.role.loop);
	return r == 0 ? 0 : 1;
}
