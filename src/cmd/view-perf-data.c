/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf.data holds no stacks but what they are made of: the tree of a capture reads it in the place
 * of the live host, and its symbolizer makes what is asked for.
 */
#include "config.h"

#include "src/cmd/view-perf-data.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/session.h"

/* Windows are for rings that must not wait; a file is best taken in one. */
#define WINDOW_BYTES (UINT64_C(256) << 20)

struct perf_data_run {
	struct session session;
	struct broker *broker;
	struct config *config;
};

static void on_signal(void *ctx, const struct signalfd_siginfo *s)
{
	struct perf_data_run *r = ctx;

	if (s->ssi_signo == SIGCHLD)
		broker_reap(r->broker);
	else
		broker_kill(r->broker);
}

static int set_up(struct perf_data_run *r, const struct view_perf_data *v)
{
	int e = config_load(&r->config, NULL, false, stderr);

	if (e < 0)
		return e;
	r->config->source_lines = v->lines;
	r->config->inline_frames = v->inlined;
	r->config->demangle = v->demangle;
	if (r->config->window_memory_bytes < WINDOW_BYTES)
		r->config->window_memory_bytes = WINDOW_BYTES;
	return session_open(&r->session, NULL, on_signal, r);
}

int view_perf_data(const struct view_perf_data *v, uint32_t *ret_written)
{
	struct perf_data_run r = {.session = SESSION_INIT};
	struct broker_options o = {
		.capture = true,
		.summary_fd = v->print_fd,
		.title = v->path,
		.color = v->view->color,
		.terminal_width = v->view->terminal_width,
		.view = v->view,
		.view_symbol = v->symbol,
		.view_comm = v->comm,
		.view_container = v->container,
		.view_service = v->service,
		.input_event = v->event,
		.input_path = v->path,
		.input_fd = v->fd,
		.done = session_end,
		.ctx = &r.session,
	};
	int e = set_up(&r, v);

	memcpy(o.outputs, v->outputs->items, sizeof(o.outputs));
	o.n_outputs = v->outputs->n;
	o.config = r.config;
	if (e == 0)
		e = broker_new(&r.broker, r.session.loop, &o);
	if (e == 0)
		e = session_run(&r.session);
	*ret_written = r.broker ? broker_written_outputs(r.broker) : 0;
	broker_free(r.broker);
	session_close(&r.session);
	config_free(r.config);
	return e;
}
