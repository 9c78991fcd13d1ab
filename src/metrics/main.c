/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics process: serves metrics, health and profiles of the next seconds over HTTP. It is a
 * separate child, so that it can report trouble of the exporter. It holds no credentials, and sees
 * only the samples that leave the host anyway.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/http/serve.h"
#include "src/metrics/exposition.h"
#include "src/metrics/health.h"
#include "src/metrics/pulls.h"
#include "src/metrics/setup.h"
#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/text.h"

/* The shortest time between two requests to the broker, however many clients ask. */
#define FRESH_NS (50 * NSEC_PER_MSEC)

struct metrics {
	struct role role;
	struct setup_metrics setup;
	struct ask ask;
	struct serve *serve;
	struct pulls *pulls;
	struct render_info info;
	char *listen, *host_name, *host_id, *kernel_release;
	char *names[STATUS_MAX_DESTINATIONS];
	uint32_t n_names;
	int listen_fd, symbolizer_sock;
	uint64_t last_payload; /* 0: none from this symbolizer yet */
	struct statistics statistics;
	uint64_t statistics_ns; /* when they were read; 0: not read */
};

/* ---- Answers ---- */

static const struct statistics *ask_statistics(struct metrics *m)
{
	uint64_t now = clock_monotonic_ns();

	if (m->statistics_ns && now - m->statistics_ns < FRESH_NS)
		return &m->statistics;
	m->statistics_ns = 0;
	if (statistics_ask(&m->ask, &m->statistics) < 0)
		return NULL;
	/* During a reload there may be more destinations than names. */
	if (m->statistics.n_destinations > m->n_names)
		m->statistics.n_destinations = m->n_names;
	m->statistics_ns = now;
	return &m->statistics;
}

static void answer_metrics(struct metrics *m, struct serve_exchange *x, const struct statistics *s)
{
	static const struct serve_answer a = {.status = 200,
					      .content_type = EXPOSITION_CONTENT_TYPE};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (f)
		exposition_print(s, (const char *const *)m->names, f);
	if (!f || fclose(f) != 0) {
		free(text);
		serve_answer_text(x, 503, "not enough memory");
		return;
	}
	serve_answer(x, &a, text, n);
}

static void on_request(void *ctx, struct serve_exchange *x, const char *path)
{
	struct metrics *m = ctx;
	const struct statistics *s;
	char why[1024];
	bool good;

	if (strcmp(path, "/debug/pprof/profile") == 0) {
		pulls_begin(m->pulls, x, serve_query(x, "seconds"));
		return;
	}
	if (strcmp(path, "/metrics") != 0 && strcmp(path, "/healthz") != 0 &&
	    strcmp(path, "/readyz") != 0) {
		serve_answer_text(x, strcmp(path, "/") == 0 ? 200 : 404,
				  "perfwalk " PACKAGE_VERSION
				  "\n/metrics\n/healthz\n/readyz\n/debug/pprof/profile?seconds=%d",
				  PULLS_SECONDS);
		return;
	}
	s = ask_statistics(m);
	if (!s) {
		serve_answer_text(x, 503, "the broker does not answer");
		return;
	}
	if (strcmp(path, "/metrics") == 0) {
		answer_metrics(m, x, s);
		return;
	}
	good = strcmp(path, "/healthz") == 0
		       ? health_is_alive(s, why, sizeof(why))
		       : health_is_ready(s, (const char *const *)m->names, why, sizeof(why));
	serve_answer_text(x, good ? 200 : 503, "%s", why);
}

static void on_done(void *ctx, struct serve_exchange *x)
{
	const struct metrics *m = ctx;

	pulls_end(m->pulls, x);
}

/* ---- What comes from the symbolizer ---- */

static void on_payload(void *ctx, const struct message *msg, int fds[2])
{
	struct metrics *m = ctx;

	if (msg->type == MESSAGE_PAYLOAD) {
		if (m->last_payload && msg->item.id != m->last_payload + 1)
			pulls_fail(m->pulls, "a window was missed; try again");
		m->last_payload = msg->item.id;
		pulls_payload(m->pulls, fds[0]);
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static void disconnect(struct metrics *m)
{
	loop_remove_fd(m->role.loop, m->symbolizer_sock);
	m->symbolizer_sock = close_fd(m->symbolizer_sock);
	m->last_payload = 0;
}

static void on_symbolizer(void *ctx, int fd, uint32_t events)
{
	struct metrics *m = ctx;

	if (role_drain_socket(fd, on_payload, m) == 0)
		return;
	disconnect(m);
	/* The new symbolizer repeats the current window, and we may already have payloads of it. */
	pulls_fail(m->pulls, "the symbolizer ended meanwhile; try again");
}

static void drain(void *ctx)
{
	struct metrics *m = ctx;

	if (m->symbolizer_sock >= 0)
		on_symbolizer(m, m->symbolizer_sock, EPOLLIN);
}

/* ---- Life ---- */

static void on_control(void *ctx, const struct message *msg, int fds[2])
{
	struct metrics *m = ctx;

	if (msg->type == MESSAGE_PEER) {
		if (m->symbolizer_sock >= 0)
			pulls_fail(m->pulls, "the symbolizer ended meanwhile; try again");
		disconnect(m);
		m->symbolizer_sock = TAKE_FD(fds[0]);
		(void)loop_add_fd(m->role.loop, m->symbolizer_sock, EPOLLIN, on_symbolizer, m);
	} else if (msg->type == MESSAGE_STOP) {
		loop_exit(m->role.loop, 0);
	}
	(void)close_fd(fds[0]);
	(void)close_fd(fds[1]);
}

static int on_text(void *ctx, const struct message *msg, int fd)
{
	struct metrics *m = ctx;
	const char *text = msg->text.text;

	if (msg->text.kind == TEXT_LISTEN && m->listen_fd < 0) {
		m->listen_fd = fd;
		return text_set(&m->listen, text);
	}
	(void)close_fd(fd);
	switch (msg->text.kind) {
	case TEXT_HOST_NAME:
		return text_set(&m->host_name, text);
	case TEXT_HOST_ID:
		return text_set(&m->host_id, text);
	case TEXT_KERNEL_RELEASE:
		return text_set(&m->kernel_release, text);
	case TEXT_EXPORT_NAME:
		return m->n_names < STATUS_MAX_DESTINATIONS
			       ? text_set(&m->names[m->n_names++], text)
			       : -E2BIG;
	default:
		return -EBADMSG;
	}
}

/* All else works without this process: the broker lets it exit. */
static int give_up(struct metrics *m, int error, const char *why)
{
	struct message msg = {.type = MESSAGE_RESULT};

	log_error("cannot serve at %s: %s", m->listen, *why ? why : strerror(-error));
	msg.result.code = error;
	(void)message_send(PROTOCOL_CONTROL_FD, &msg, NULL, 0);
	return role_listen(&m->role, on_control, m);
}

static int set_up(struct metrics *m)
{
	const struct serve_callbacks callbacks = {.request = on_request, .done = on_done, .ctx = m};
	struct pulls_options options = {.loop = m->role.loop,
					.ask = &m->ask,
					.info = &m->info,
					.profile_bytes = m->setup.profile_bytes,
					.drain = drain,
					.ctx = m};
	char error[256] = "";
	int r;

	if (m->listen_fd < 0)
		return -EBADMSG;
	m->ask.sock = PROTOCOL_ASK_FD;
	m->info = (struct render_info){.host_name = m->host_name,
				       .host_id = m->host_id,
				       .kernel_release = m->kernel_release,
				       .version = PACKAGE_VERSION,
				       .n_cpus = m->setup.n_cpus};
	if ((r = pulls_new(&m->pulls, &options)) < 0)
		return r;
	r = serve_new(&m->serve, m->role.loop, TAKE_FD(m->listen_fd), &callbacks, error,
		      sizeof(error));
	return r < 0 ? give_up(m, r, error) : role_listen(&m->role, on_control, m);
}

static void deinit(struct metrics *m)
{
	serve_free(m->serve);
	pulls_free(m->pulls);
	disconnect(m);
	(void)close_fd(m->listen_fd);
	for (uint32_t i = 0; i < m->n_names; i++)
		free(m->names[i]);
	free(m->listen);
	free(m->host_name);
	free(m->host_id);
	free(m->kernel_release);
	loop_free(m->role.loop);
}

/* The state is not on the stack, so that small copies of it are whole. */
int role_metrics_main(void)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return 1;
	m->listen_fd = m->symbolizer_sock = -EBADF;
	r = role_start(&m->role, PEER_METRICS, &m->setup, sizeof(m->setup), on_text, m);
	if (r == 0)
		r = set_up(m);
	if (r == 0)
		r = loop_run(m->role.loop);
	deinit(m);
	free(m);
	return r == 0 ? 0 : 1;
}
