/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf.data holds no stacks but what they are made of: the tree of a capture reads it in the place
 * of the live host, and its symbolizer makes what is asked for.
 */
#include "config.h"

#include "src/cmd/view-perf-data.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/cmd.h"
#include "util/log.h"
#include "util/loop.h"

/* Windows are for rings that must not wait; a file is best taken in one. */
#define WINDOW_BYTES (UINT64_C(256) << 20)

struct run {
	struct loop *loop;
	struct tree *tree;
	struct config *config;
	int signal_fd;
	int result;
};

static void on_signal(void *ctx, int fd, uint32_t events)
{
	struct run *r = ctx;
	int number;

	while ((number = signals_next(fd)) != 0) {
		if (number == SIGCHLD)
			tree_reap(r->tree);
		else
			tree_kill(r->tree);
	}
}

static void on_done(void *ctx, int result)
{
	struct run *r = ctx;

	r->result = result;
	loop_exit(r->loop, 0);
}

static int set_up(struct run *r, const struct view_perf_data *v)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	int e = config_load(&r->config, NULL, false, stderr);

	if (e < 0)
		return e;
	r->config->source_lines = v->lines;
	r->config->inline_frames = v->inlined;
	r->config->demangle = v->demangle;
	if (r->config->window_memory_bytes < WINDOW_BYTES)
		r->config->window_memory_bytes = WINDOW_BYTES;
	if ((e = loop_new(&r->loop)) < 0 ||
	    (e = r->signal_fd = signals_open(signals, ARRAY_SIZE(signals))) < 0 ||
	    (e = loop_add_fd(r->loop, r->signal_fd, EPOLLIN, on_signal, r)) < 0)
		return e;
	return 0;
}

int view_perf_data(const struct view_perf_data *v, uint32_t *ret_written)
{
	struct run r = {.signal_fd = -EBADF};
	struct tree_options o = {
		.capture = true,
		.summary_fd = v->print_fd,
		.title = v->path,
		.color = v->view->color,
		.terminal_width = v->view->terminal_width,
		.view = v->view,
		.view_symbol = v->symbol,
		.view_comm = v->comm,
		.view_container = v->container,
		.input_event = v->event,
		.input_path = v->path,
		.input_fd = v->fd,
		.done = on_done,
		.ctx = &r,
	};
	int e = set_up(&r, v);

	for (uint32_t i = 0; i < v->n_outputs; i++)
		o.outputs[o.n_outputs++] = v->outputs[i];
	o.config = r.config;
	if (e == 0)
		e = tree_new(&r.tree, r.loop, &o);
	if (e == 0)
		e = loop_run(r.loop);
	*ret_written = r.tree ? tree_written_outputs(r.tree) : 0;
	tree_free(r.tree);
	loop_free(r.loop);
	(void)close_fd(r.signal_fd);
	config_free(r.config);
	return e < 0 ? e : r.result;
}
