/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/interp.h"
#include "src/host/readable.h"
#include "src/reader/clients.h"
#include "src/reader/constants.h"
#include "src/reader/contexts.h"
#include "src/reader/go-threads.h"
#include "src/reader/own-tids.h"
#include "src/reader/setup.h"
#include "src/reader/teller.h"
#include "util/clock.h"
#include "util/log.h"

/* Of one walk: of a deep stack that was never seen. What is learned is kept. */
#define MAX_READS	  1500
#define MAX_BYTES	  (UINT64_C(1) << 20)
#define MAX_CONTEXT_READS 16
#define MAX_CONTEXT_BYTES 16384
/* They are read in front of everything else on the CPU. */
#define MAX_MAPS_BYTES (1 << 20)
/* A program that begins has more memory all the time. */
#define MIN_MAPS_DELAY_NS NSEC_PER_MSEC
#define MAX_MAPS_DELAY_NS NSEC_PER_SEC
#define MIN_DELAY_NS	  (20 * NSEC_PER_MSEC)
#define MAX_DELAY_NS	  (60 * NSEC_PER_SEC)
/* One that is asked about less often than that has been there for a while: its loader is done. */
#define LOADED_NS   (2 * NSEC_PER_SEC)
#define LOG_SECONDS 600
/* The kernel says on which CPU a thread is, not whether it was on another one since the sample. To
 * go there, run and come back takes it longer than this; also if somebody moves it all the time,
 * which shows in other samples of it. */
#define MAX_AWAY_NS	  (250 * NSEC_PER_USEC)
#define MAX_AWAY_MOVED_NS (100 * NSEC_PER_USEC)

struct reader_client {
	struct clients *all;
	uint32_t pid, own_pid; /* pid 0: free */
	int memory, maps;
	struct readable readable; /* of it */
	struct client_chain {
		uint64_t image;
		struct interp *interp; /* NULL: not understood yet, or not at all */
		uint64_t next_try_ns, delay_ns;
		bool hopeless; /* none is known there, or not understood; it may come yet */
		bool told;
	} chains[CLIENT_MAX_IMAGES];
	uint32_t n_chains;
	struct contexts *contexts;     /* NULL: its threads publish none */
	bool by_stat;		       /* only the kernel says the CPU of its threads */
	struct go_threads *goroutines; /* NULL: their labels are not wanted */
	struct constants *constants;   /* of Go's program; NULL: it is none */
};

struct clients {
	struct clients_callbacks callbacks;
	struct own_tids own_tids;
	const struct client_sample *sample; /* while it is read */
	struct log_ratelimit no_memory;
	uint32_t pids[READERS_MAX_CLIENTS]; /* of items: each sample looks for one */
	struct reader_client items[READERS_MAX_CLIENTS];
	struct chained_frame frames[FRAME_RECORD_MAX_FRAMES];
};

int clients_new(struct clients **ret, const struct clients_callbacks *callbacks)
{
	struct clients *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->callbacks = *callbacks;
	own_tids_init(&c->own_tids, callbacks->ask_thread, callbacks->ctx);
	*ret = c;
	return 0;
}

static void end(struct reader_client *client)
{
	for (uint32_t i = 0; i < client->n_chains; i++)
		interp_free(client->chains[i].interp);
	contexts_free(client->contexts);
	free(client->goroutines);
	free(client->constants);
	if (client->pid) {
		(void)close_fd(client->memory);
		(void)close_fd(client->maps);
		readable_deinit(&client->readable);
	}
	if (client->pid)
		client->all->pids[client - client->all->items] = 0;
	*client = (struct reader_client){.pid = 0};
}

struct clients *clients_free(struct clients *c)
{
	for (int i = 0; c && i < READERS_MAX_CLIENTS; i++)
		end(&c->items[i]);
	if (c)
		own_tids_deinit(&c->own_tids);
	free(c);
	return NULL;
}

struct reader_client *clients_find(const struct clients *c, uint32_t pid)
{
	for (int i = 0; pid && i < READERS_MAX_CLIENTS; i++) {
		if (c->pids[i] == pid)
			return (struct reader_client *)&c->items[i];
	}
	return NULL;
}

static int maps_of(void *ctx)
{
	const struct reader_client *client = ctx;

	return lseek(client->maps, 0, SEEK_SET) < 0 ? -errno
						    : fcntl(client->maps, F_DUPFD_CLOEXEC, 0);
}

static struct go_threads *goroutines_of(const struct client_threads *t)
{
	const struct thread_variable library = {.glibc_bytes = t->glibc_bytes, .cpu = t->cpu};
	struct go_layout layout;

	return go_layout_find(t->go_version, &layout)
		       ? go_threads_new(&layout, t->go_cycle, &library)
		       : NULL;
}

static struct contexts *contexts_of(const struct client_threads *t)
{
	const struct thread_variable variable = {
		.module = t->context_module,
		.offset = t->context_offset,
		.glibc_bytes = t->glibc_bytes,
		.cpu = t->cpu,
		.musl_thread = t->context_musl_thread,
		.node = t->context_node != 0,
	};

	return t->has_context ? contexts_new(&variable) : NULL;
}

int clients_add(struct clients *c, const struct message *m, int owned_memory, int owned_maps)
{
	struct reader_client *client = clients_find(c, m->client.pid);

	for (int i = 0; !client && i < READERS_MAX_CLIENTS; i++) {
		if (!c->pids[i])
			client = &c->items[i];
	}
	if (!client || !m->client.pid) {
		(void)close_fd(owned_memory);
		(void)close_fd(owned_maps);
		return -ENOSPC;
	}
	end(client);
	c->pids[client - c->items] = m->client.pid;
	*client = (struct reader_client){
		.all = c,
		.pid = m->client.pid,
		.own_pid = m->client.own_pid,
		.memory = owned_memory,
		.maps = owned_maps,
		.contexts = contexts_of(&m->client.threads),
		.by_stat = !m->client.threads.cpu,
		.goroutines = goroutines_of(&m->client.threads),
		.constants =
			m->client.threads.go_version ? calloc(1, sizeof(struct constants)) : NULL,
		.readable = {.open_maps = maps_of,
			     .ctx = client,
			     .major = m->client.major,
			     .minor = m->client.minor,
			     .max_bytes = MAX_MAPS_BYTES,
			     .min_delay_ns = MIN_MAPS_DELAY_NS,
			     .max_delay_ns = MAX_MAPS_DELAY_NS},
	};
	for (int i = 0; i < CLIENT_MAX_IMAGES && m->client.images[i]; i++)
		client->chains[client->n_chains++] = (struct client_chain){
			.image = m->client.images[i], .delay_ns = MIN_DELAY_NS};
	return 0;
}

void clients_remove(struct clients *c, uint32_t pid)
{
	struct reader_client *client = clients_find(c, pid);

	if (client)
		end(client);
}

void clients_tell_thread(struct clients *c, uint32_t tid, const struct own_thread *thread)
{
	own_tids_put(&c->own_tids, tid, thread);
}

void clients_forget_told(struct clients *c)
{
	for (int i = 0; i < READERS_MAX_CLIENTS; i++) {
		for (uint32_t k = 0; k < c->items[i].n_chains; k++)
			c->items[i].chains[k].told = false;
	}
}

/* ---- Reading ---- */

/* The thread stands still: its stack is as the sample has it. */
static bool is_copied(const struct client_sample *s, uint64_t address, size_t n)
{
	return s && address >= s->start && n <= s->n_stack && address - s->start <= s->n_stack - n;
}

static bool read_now(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct reader_client *client = ctx;
	const uint8_t *constant =
		client->constants ? constants_find(client->constants, address, n) : NULL;

	if (constant) {
		memcpy(ret, constant, n);
		return true;
	}
	if (address > INT64_MAX || !readable_has(&client->readable, address, n) ||
	    pread(client->memory, ret, n, (off_t)address) != (ssize_t)n)
		return false;
	if (client->constants && readable_is_constant(&client->readable, address, n))
		constants_put(client->constants, address, ret, n);
	return true;
}

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct reader_client *client = ctx;
	const struct client_sample *s = client->all->sample;

	if (!is_copied(s, address, n))
		return read_now(ctx, address, ret, n);
	memcpy(ret, s->stack + (address - s->start), n);
	return true;
}

/* While a loader maps a library, other bytes stand in its place, so the answer is not final. */
static void find_none(const struct reader_client *client, struct client_chain *chain,
		      const char *why)
{
	if (chain->hopeless || chain->delay_ns < LOADED_NS)
		return;
	chain->hopeless = true;
	log_debug("process %u: its frames are not read: %s", client->pid, why);
}

/* An interpreter that has just begun is tried again, with back-off. */
static bool is_open(struct reader_client *client, struct client_chain *chain)
{
	const struct memory memory = {.read = read_memory, .ctx = client};
	const char *why = "";
	uint64_t now;
	int r;

	if (chain->interp)
		return true;
	now = clock_monotonic_ns();
	if (now < chain->next_try_ns)
		return false;
	chain->next_try_ns = now + chain->delay_ns;
	if (chain->delay_ns < MAX_DELAY_NS)
		chain->delay_ns *= 2;
	r = interp_new(&chain->interp, &memory, chain->image, &why);
	if (r == -ENOTSUP)
		find_none(client, chain, why);
	else if (r == -ENOENT)
		find_none(client, chain, "there is no interpreter in it");
	else if (r == -ENOMEM && log_ratelimit(&client->all->no_memory, LOG_SECONDS))
		log_warning("process %u: its functions have no names: this reader has no memory "
			    "left for its interpreter",
			    client->pid);
	else if (r == 0)
		log_debug("process %u: %s %s%s", client->pid, interp_name(chain->interp),
			  interp_release(chain->interp),
			  interp_is_tried(chain->interp) ? "" : ", an untested version");
	return r == 0;
}

static void tell_code(const struct reader_client *client, struct client_chain *chain,
		      struct teller *t)
{
	struct frame_record_code code = {
		.type = FRAME_RECORD_CODE,
		.pid = client->pid,
		.kind = interp_kind(chain->interp),
		.image = chain->image,
	};

	while (code.n < FRAME_RECORD_MAX_RANGES &&
	       interp_eval_range(chain->interp, code.n, &code.ranges[code.n].start,
				 &code.ranges[code.n].end))
		code.n++;
	chain->told = teller_code(t, &code);
}

/* Behind the frames of others. */
static void add_frames(const struct clients *c, const struct client_chain *chain, struct teller *t,
		       size_t n, struct frame_record_stack *ret)
{
	const struct chained_frame *f = c->frames;

	for (size_t i = 0; i < n; i++, f++) {
		ret->frames[ret->n++] = (struct frame_record_frame){
			.function = teller_text(t, interp_text(chain->interp, f->function)),
			.file = teller_text(t, interp_text(chain->interp, f->file)),
			.line = f->line,
			.start_line = f->start_line,
			.address = f->address | f->entry,
		};
	}
}

static const uint32_t results[CHAIN_N_RESULTS] = {
	[CHAIN_WHOLE] = FRAME_RECORD_WHOLE,    [CHAIN_CUT] = FRAME_RECORD_CUT,
	[CHAIN_NO_THREAD] = FRAME_RECORD_NONE, [CHAIN_UNPROVEN] = FRAME_RECORD_UNPROVEN,
	[CHAIN_SPENT] = FRAME_RECORD_LATE,
};

/* What is to be said of a sample of which nothing was read. */
static uint32_t unread(const struct client_chain *chain)
{
	return chain->hopeless && !chain->interp ? FRAME_RECORD_UNREAD : FRAME_RECORD_LATE;
}

/* 0: not known yet. In our pid namespace threads have the numbers that we see. */
static uint32_t own_tid(const struct reader_client *client, uint32_t tid)
{
	if (tid == client->pid || client->own_pid == client->pid)
		return tid == client->pid ? client->own_pid : tid;
	return own_tids_find(&client->all->own_tids, tid, false, clock_monotonic_ns()).number;
}

/* Returns the result, and adds its frames to ret. */
static uint32_t read_chain(struct reader_client *client, struct client_chain *chain,
			   const struct chained_thread *thread, struct teller *t,
			   struct frame_record_stack *ret)
{
	struct clients *c = client->all;
	uint64_t start, end;
	uint32_t result;
	size_t n = 0;

	if (!is_open(client, chain))
		return unread(chain);
	if (ret->n == FRAME_RECORD_MAX_FRAMES)
		return FRAME_RECORD_LATE;
	interp_begin(chain->interp, MAX_READS, MAX_BYTES);
	result = results[interp_walk(chain->interp, thread, c->frames,
				     FRAME_RECORD_MAX_FRAMES - ret->n, &n)];
	/* Its number may be known at the next sample. */
	if (!thread->tid && (result == FRAME_RECORD_NONE || result == FRAME_RECORD_UNPROVEN))
		result = FRAME_RECORD_LATE;
	/* Where the evaluation is may be known only once it was seen. */
	if (!chain->told && interp_eval_range(chain->interp, 0, &start, &end))
		tell_code(client, chain, t);
	if (result == FRAME_RECORD_WHOLE || result == FRAME_RECORD_CUT)
		add_frames(c, chain, t, n, ret);
	return result;
}

void client_read(struct reader_client *client, const struct client_sample *sample, struct teller *t,
		 struct frame_record_stack *ret)
{
	struct clients *c = client->all;
	const struct chained_thread thread = {
		.tid = own_tid(client, sample->tid),
		.n_registers = sample->n_registers,
		.registers = sample->registers,
		.stack = sample->n_stack ? sample->start : 0,
	};

	ret->n = ret->n_others = 0;
	ret->result = client->n_chains ? unread(&client->chains[0]) : FRAME_RECORD_NONE;
	if (!client->n_chains || (!thread.tid && !thread.stack))
		return;
	c->callbacks.reading(c->callbacks.ctx, client->pid, true);
	c->sample = sample;
	ret->result = read_chain(client, &client->chains[0], &thread, t, ret);
	for (uint32_t k = 1; k < client->n_chains; k++) {
		struct frame_record_chain *other = &ret->others[ret->n_others++];
		uint32_t n = ret->n;

		other->result = read_chain(client, &client->chains[k], &thread, t, ret);
		other->n = ret->n - n;
	}
	c->sample = NULL;
	c->callbacks.reading(c->callbacks.ctx, client->pid, false);
}

bool client_has_interpreter(const struct reader_client *client)
{
	for (uint32_t k = 0; k < client->n_chains; k++) {
		if (client->chains[k].interp || !client->chains[k].hopeless)
			return true;
	}
	return false;
}

/* ---- Thread contexts, and labels of goroutines ---- */

bool client_tells_spans(const struct reader_client *client)
{
	return client->contexts || client->goroutines;
}

_Static_assert((int)FRAME_RECORD_MAX_CONTEXT == (int)THREAD_CONTEXT_MAX_BYTES &&
		       (int)FRAME_RECORD_MAX_CONTEXT == (int)GO_LABELS_MAX_BYTES,
	       "both fit");

static struct memory memory_of(struct reader_client *client, uint32_t n_reads,
			       bool (*read)(void *ctx, uint64_t address, void *ret, size_t n))
{
	return (struct memory){.read = read,
			       .ctx = client,
			       .reads_left = n_reads,
			       .bytes_left = MAX_CONTEXT_BYTES};
}

static enum frame_record_span read_context(struct reader_client *client,
					   const struct context_sample *s,
					   struct frame_record_context *ret)
{
	struct memory sampled = memory_of(client, MAX_CONTEXT_READS, read_memory);
	struct memory now = memory_of(client, MAX_CONTEXT_READS, read_now);

	return contexts_read(client->contexts, &sampled, &now, s, ret->bytes, &ret->n);
}

static enum frame_record_span read_labels(struct reader_client *client, const struct go_sample *s,
					  struct frame_record_context *ret)
{
	struct memory sampled = memory_of(client, GO_LABELS_MAX_READS, read_memory);
	struct memory now = memory_of(client, GO_LABELS_MAX_READS, read_now);

	ret->type = FRAME_RECORD_LABELS;
	return go_threads_read(client->goroutines, &sampled, &now, s, ret->bytes, &ret->n);
}

/* If the thread had been away since the sample, it could not be back by now. */
static bool is_back_too_soon(struct clients *c, const struct client_sample *sample,
			     enum frame_record_span span)
{
	uint64_t now = clock_monotonic_ns();

	if (span == FRAME_RECORD_SPAN_MOVED)
		own_tids_note_left(&c->own_tids, sample->tid, now);
	return span == FRAME_RECORD_SPAN_MOVED ||
	       now - sample->time_ns <= (own_tids_leaves(&c->own_tids, sample->tid, now)
						 ? MAX_AWAY_MOVED_NS
						 : MAX_AWAY_NS);
}

enum frame_record_span client_read_context(struct reader_client *client,
					   const struct client_sample *sample,
					   struct frame_record_context *ret)
{
	struct clients *c = client->all;
	struct context_sample s = {.cpu = sample->cpu, .now_ns = clock_monotonic_ns()};
	enum frame_record_span span;
	struct own_thread thread;

	ret->n = 0;
	if (!client_tells_spans(client))
		return FRAME_RECORD_SPAN_UNREAD;
	thread = own_tids_find(&c->own_tids, sample->tid, client->by_stat, s.now_ns);
	if (!thread.number || (client->by_stat && thread.stat < 0))
		return FRAME_RECORD_SPAN_UNREAD;
	if (thread.in_front)
		return FRAME_RECORD_SPAN_LATE;
	s.number = thread.number;
	s.robust_list = thread.robust_list;
	s.stat = thread.stat;
	c->callbacks.reading(c->callbacks.ctx, client->pid, true);
	c->sample = sample;
	span = client->contexts ? read_context(client, &s, ret)
				: read_labels(client,
					      &(struct go_sample){s.number, s.cpu, s.stat,
								  sample->goroutine, s.robust_list},
					      ret);
	c->sample = NULL;
	c->callbacks.reading(c->callbacks.ctx, client->pid, false);
	if (!client->by_stat || is_back_too_soon(c, sample, span))
		return span;
	ret->n = 0;
	return FRAME_RECORD_SPAN_LATE;
}
