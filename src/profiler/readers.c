/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtimes/interp.h"
#include "src/host/host.h"
#include "src/process/frame-record.h"
#include "src/process/frame-ring.h"
#include "src/process/message.h"
#include "src/process/role.h"
#include "src/profiler/chains.h"
#include "src/profiler/readers.h"
#include "util/clock.h"
#include "util/loop.h"
#include "util/log.h"
#include "util/strtab.h"

enum {
	MAX_CPUS = 256,
	MAX_MESSAGES = 64, /* of a reader at a time */
	MAX_UNANSWERED = 32,
};
#define MAX_TEXT_BYTES (UINT64_C(4) << 20)
#define IDLE_NS	       (60 * NSEC_PER_SEC)

struct interpreter {
	uint32_t pid;
	uint64_t start_time_ns, images[CLIENT_MAX_IMAGES];
	uint32_t major, minor; /* the device of their files */
	bool refused;
	bool former; /* another process has its number now */
	bool out;    /* another one has its place */
	bool ended;
	uint64_t used_ns; /* the time of its process's last sample */
	struct client_threads threads;
	struct chain_code codes[CLIENT_MAX_IMAGES];
};

/* The reader of one CPU, as it is seen here. */
struct reader_of_cpu {
	uint32_t cpu;
	int sock;
	struct frame_ring *ring;
	struct strtab texts;
	int peeked; /* bytes of the oldest record, in buf; 0: not looked at yet */
	uint64_t *buf;
	uint32_t n_unanswered;
};

struct readers {
	struct loop *loop;
	struct readers_callbacks callbacks;
	struct reader_of_cpu *cpus[MAX_CPUS]; /* NULL: there is none */
	struct interpreter *interpreters[READERS_MAX_INTERPRETERS];
	struct chains chains;
	struct log_ratelimit broken;
};

_Static_assert((int)FRAME_RECORD_MAX_CHAINS == (int)CLIENT_MAX_IMAGES, "a reader tells of all");
_Static_assert(offsetof(struct frame_record_context, time_ns) ==
			       offsetof(struct frame_record_stack, time_ns) &&
		       offsetof(struct frame_record_context, tid) ==
			       offsetof(struct frame_record_stack, tid),
	       "both begin alike");

/* ---- Readers ---- */

static void leave(struct readers *r, uint32_t cpu)
{
	struct reader_of_cpu *c = r->cpus[cpu];

	if (!c)
		return;
	loop_remove_fd(r->loop, c->sock);
	(void)close_fd(c->sock);
	frame_ring_free(c->ring);
	strtab_deinit(&c->texts);
	free(c->buf);
	free(c);
	r->cpus[cpu] = NULL;
	r->callbacks.joined(r->callbacks.ctx, (int)cpu, false);
}

static void take_ring(struct reader_of_cpu *c, int fd)
{
	c->ring = frame_ring_free(c->ring);
	strtab_clear(&c->texts);
	c->peeked = 0;
	if (!c->buf)
		c->buf = malloc(FRAME_RING_MAX_RECORD);
	if (!c->buf || frame_ring_map(&c->ring, fd) < 0)
		log_warning("the ring of a reader cannot be mapped: on its CPU samples lack "
			    "spans, and functions of interpreters");
}

static struct reader_of_cpu *find_sock(struct readers *r, int sock)
{
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (r->cpus[i] && r->cpus[i]->sock == sock)
			return r->cpus[i];
	}
	return NULL;
}

static void take_context(struct readers *r, struct reader_of_cpu *c, const struct message *m)
{
	const struct blocked_context context = {
		.time_ns = m->context.time_ns,
		.read_ns = m->context.read_ns,
		.pid = m->context.pid,
		.tid = m->context.tid,
		.n = m->context.n,
		.bytes = m->context.bytes,
	};

	c->n_unanswered -= c->n_unanswered > 0;
	if (context.n <= sizeof(m->context.bytes) &&
	    (context.n > 0 || m->context.span == FRAME_RECORD_SPAN_NONE))
		r->callbacks.context(r->callbacks.ctx, &context);
}

static void on_reader(void *ctx, int fd, uint32_t events)
{
	struct readers *r = ctx;
	struct reader_of_cpu *c = find_sock(r, fd);
	struct message m;
	int fds[2], e = -EAGAIN;

	for (int i = 0; i < MAX_MESSAGES && (e = message_recv(fd, &m, fds, MSG_DONTWAIT)) > 0;
	     i++) {
		if (m.type == MESSAGE_FRAMES)
			take_ring(c, fds[0]);
		else if (m.type == MESSAGE_CONTEXT)
			take_context(r, c, &m);
		(void)close_fd(fds[0]);
		(void)close_fd(fds[1]);
	}
	if (e <= 0 && e != -EAGAIN)
		leave(r, c->cpu);
}

void readers_join(struct readers *r, uint32_t cpu, int owned_sock)
{
	_cleanup_close_ int sock = owned_sock;
	struct reader_of_cpu *c;

	if (cpu >= MAX_CPUS || sock < 0)
		return;
	leave(r, cpu);
	c = calloc(1, sizeof(*c));
	if (!c || loop_add_fd(r->loop, sock, EPOLLIN, on_reader, r) < 0) {
		free(c);
		return;
	}
	r->cpus[cpu] = c;
	c->cpu = cpu;
	c->sock = TAKE_FD(sock);
	strtab_init(&c->texts, MAX_TEXT_BYTES);
	r->callbacks.joined(r->callbacks.ctx, (int)cpu, true);
}

int readers_new(struct readers **ret, struct loop *loop, const struct readers_callbacks *callbacks)
{
	struct readers *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->callbacks = *callbacks;
	*ret = r;
	return 0;
}

struct readers *readers_free(struct readers *r)
{
	for (uint32_t i = 0; r && i < MAX_CPUS; i++)
		leave(r, i);
	free(r);
	return NULL;
}

/* ---- Interpreters ---- */

static void tell(const struct interpreter *i, enum message_type type)
{
	struct message m = {.type = type};

	if (i->former)
		return;
	m.client.pid = i->pid;
	m.client.start_time_ns = i->start_time_ns;
	memcpy(m.client.images, i->images, sizeof(i->images));
	m.client.major = i->major;
	m.client.minor = i->minor;
	m.client.threads = i->threads;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

static struct interpreter **find_place(struct readers *r, uint32_t pid)
{
	for (int k = 0; k < READERS_MAX_INTERPRETERS; k++) {
		const struct interpreter *i = r->interpreters[k];

		if (pid ? i && i->pid == pid && !i->former : !i)
			return &r->interpreters[k];
	}
	return NULL;
}

/* The place of one that has ended, or has been idle for the longest time; NULL: none was for long.
 */
static struct interpreter **put_one_out(struct readers *r, uint64_t time_ns)
{
	struct interpreter **found = NULL;

	for (int k = 0; k < READERS_MAX_INTERPRETERS; k++) {
		struct interpreter **i = &r->interpreters[k];

		if (!found || (*i)->ended > (*found)->ended ||
		    ((*i)->ended == (*found)->ended && (*i)->used_ns < (*found)->used_ns))
			found = i;
	}
	if (!(*found)->ended && (*found)->used_ns + IDLE_NS > time_ns)
		return NULL;
	if (!(*found)->refused)
		tell(*found, MESSAGE_CLIENT_GONE);
	(*found)->out = true;
	*found = NULL;
	return found;
}

struct interpreter *readers_add_interpreter(struct readers *r, const struct host_process *p,
					    const uint64_t images[CLIENT_MAX_IMAGES],
					    uint32_t major, uint32_t minor, uint64_t time_ns)
{
	struct interpreter **place = find_place(r, 0), *i;
	struct interpreter **former = find_place(r, p->pid);

	if (!place)
		place = put_one_out(r, time_ns);
	i = place ? calloc(1, sizeof(*i)) : NULL;
	if (!i)
		return NULL;
	/* Of a process that has ended, and is known for a while yet. */
	if (former)
		(*former)->former = true;
	*i = (struct interpreter){
		.pid = p->pid,
		.start_time_ns = p->start_time_ns,
		.major = major,
		.minor = minor,
		.used_ns = time_ns,
	};
	if (images)
		memcpy(i->images, images, sizeof(i->images));
	*place = i;
	tell(i, MESSAGE_INTERPRETER);
	return i;
}

struct interpreter *readers_free_interpreter(struct readers *r, struct interpreter *i)
{
	for (int k = 0; i && k < READERS_MAX_INTERPRETERS; k++) {
		if (r->interpreters[k] == i)
			r->interpreters[k] = NULL;
	}
	if (i && !i->refused && !i->out)
		tell(i, MESSAGE_CLIENT_GONE);
	free(i);
	return NULL;
}

void interpreter_set_ended(struct interpreter *i)
{
	i->ended = true;
}

void interpreter_set_context(struct interpreter *i, const struct thread_variable *v)
{
	i->threads.context_module = v->module;
	i->threads.context_offset = v->offset;
	i->threads.context_musl_thread = v->musl_thread;
	i->threads.glibc_bytes = v->glibc_bytes;
	i->threads.cpu = v->cpu;
	i->threads.context_node = v->node;
	i->threads.has_context = 1;
	tell(i, MESSAGE_INTERPRETER);
}

void interpreter_set_goroutines(struct interpreter *i, uint32_t go_version, uint64_t go_cycle,
				const struct thread_variable *library)
{
	i->threads.go_version = go_version;
	i->threads.go_cycle = go_cycle;
	i->threads.glibc_bytes = library->glibc_bytes;
	i->threads.cpu = library->cpu;
	tell(i, MESSAGE_INTERPRETER);
}

const uint64_t *interpreter_images(const struct interpreter *i)
{
	return i->images;
}

bool interpreter_has_images(const struct interpreter *i, const uint64_t images[CLIENT_MAX_IMAGES])
{
	return memcmp(i->images, images, sizeof(i->images)) == 0;
}

bool interpreter_is_in(struct interpreter *i, uint64_t time_ns)
{
	i->used_ns = time_ns > i->used_ns ? time_ns : i->used_ns;
	return !i->out;
}

void readers_refuse(struct readers *r, uint32_t pid)
{
	struct interpreter **place = pid ? find_place(r, pid) : NULL;

	if (place)
		(*place)->refused = true;
}

void readers_ask_again(struct readers *r, uint32_t pid)
{
	struct interpreter **place = pid ? find_place(r, pid) : NULL;

	if (!place || !(*place)->refused)
		return;
	(*place)->refused = false;
	tell(*place, MESSAGE_INTERPRETER);
}

/* ---- Records ---- */

static void take_text(struct reader_of_cpu *c, const void *bytes, size_t n)
{
	const struct frame_record_text *t = bytes;
	size_t n_text = n - offsetof(struct frame_record_text, text);

	if (n >= offsetof(struct frame_record_text, text) && t->n <= n_text)
		(void)strtab_put_n(&c->texts, t->text, t->n);
}

/* A reader may have written it before the process had another interpreter. */
static struct chain_code *find_code(struct interpreter *i, uint64_t image)
{
	for (int k = 0; k < CLIENT_MAX_IMAGES && i->images[k]; k++) {
		if (i->images[k] == image)
			return &i->codes[k];
	}
	return NULL;
}

static void take_code(struct readers *r, const void *bytes, size_t n)
{
	const struct frame_record_code *code = bytes;
	struct interpreter **place =
		n == sizeof(*code) && code->pid ? find_place(r, code->pid) : NULL;
	struct chain_code *its = place ? find_code(*place, code->image) : NULL;

	if (!its || code->n > FRAME_RECORD_MAX_RANGES ||
	    !interp_rules((enum runtime_kind)code->kind))
		return;
	its->kind = (enum runtime_kind)code->kind;
	its->n_ranges = code->n;
	memcpy(its->ranges, code->ranges, sizeof(code->ranges));
}

static bool others_are_valid(const struct frame_record_stack *s)
{
	uint32_t n = 0;

	if (s->n_others >= FRAME_RECORD_MAX_CHAINS)
		return false;
	for (uint32_t k = 0; k < s->n_others; k++) {
		if (s->others[k].result >= FRAME_RECORD_N_RESULTS || s->others[k].n > s->n - n)
			return false;
		n += s->others[k].n;
	}
	return true;
}

static bool is_stack(const struct frame_record_stack *s, size_t n)
{
	size_t head = offsetof(struct frame_record_stack, frames);

	return n >= head && s->type == FRAME_RECORD_STACK && s->n <= FRAME_RECORD_MAX_FRAMES &&
	       s->result < FRAME_RECORD_N_RESULTS && s->span < FRAME_RECORD_N_SPANS &&
	       n == head + s->n * sizeof(s->frames[0]) && others_are_valid(s);
}

static bool is_context(const struct frame_record_context *s, size_t n)
{
	size_t head = offsetof(struct frame_record_context, bytes);

	return n >= head && s->n <= THREAD_CONTEXT_MAX_BYTES && n == head + s->n &&
	       ((s->type == FRAME_RECORD_CONTEXT && s->n >= THREAD_CONTEXT_HEAD_BYTES) ||
		(s->type == FRAME_RECORD_LABELS && s->n >= GO_LABELS_HEAD_BYTES));
}

static void drop(struct reader_of_cpu *c)
{
	frame_ring_drop(c->ring);
	c->peeked = 0;
}

/* The oldest stack or context that is in the ring; all before it is dealt with. NULL: there is
 * none. Both begin alike, with the type and the time. */
static const void *next_told(struct readers *r, struct reader_of_cpu *c)
{
	while (c->ring) {
		uint32_t type;

		if (c->peeked == 0)
			c->peeked = frame_ring_peek(c->ring, c->buf);
		if (c->peeked < (int)sizeof(type))
			break;
		memcpy(&type, c->buf, sizeof(type));
		if (is_stack((const void *)c->buf, (size_t)c->peeked) ||
		    is_context((const void *)c->buf, (size_t)c->peeked))
			return (const void *)c->buf;
		if (type == FRAME_RECORD_TEXT)
			take_text(c, c->buf, (size_t)c->peeked);
		else if (type == FRAME_RECORD_CODE)
			take_code(r, c->buf, (size_t)c->peeked);
		else if (type == FRAME_RECORD_FORGET)
			strtab_clear(&c->texts);
		drop(c);
	}
	return NULL;
}

/* That of one sample, until the next call of drop(). Those of samples before it are of no use. */
static const struct frame_record_stack *find_stack(struct readers *r, struct reader_of_cpu *c,
						   const struct frame_key *key, uint32_t pid)
{
	const struct frame_record_stack *s;

	while ((s = next_told(r, c)) &&
	       (s->time_ns < key->time_ns || s->type != FRAME_RECORD_STACK))
		drop(c);
	return s && s->time_ns == key->time_ns && s->tid == key->tid && s->pid == pid ? s : NULL;
}

/* ---- Stacks ---- */

static void take_frames(struct chain_places *places, const struct reader_of_cpu *c,
			enum runtime_kind kind, const struct frame_record_frame *frames, uint32_t n)
{
	places->n = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct frame_record_frame *f = &frames[i];

		places->addresses[i] = f->address;
		places->frames[i] = (struct runtime_frame){
			.runtime = profile_runtime_of(kind),
			.function = strtab_get(&c->texts, f->function),
			.file = strtab_get(&c->texts, f->file),
			.line = f->line,
			.start_line = f->start_line,
		};
	}
}

static enum frame_source_answer answer_of(const struct reader_of_cpu *c,
					  const struct frame_source_sample *sample,
					  const struct chain_code *code, uint32_t result,
					  const struct frame_record_frame *frames, uint32_t n,
					  struct chain_of *ret)
{
	enum frame_source_answer answer;

	switch (result) {
	case FRAME_RECORD_WHOLE:
	case FRAME_RECORD_CUT:
		break;
	case FRAME_RECORD_NONE:
		return FRAME_SOURCE_NONE;
	case FRAME_RECORD_UNREAD:
		return FRAME_SOURCE_UNREAD;
	case FRAME_RECORD_UNPROVEN:
		return FRAME_SOURCE_UNPROVEN;
	default:
		return FRAME_SOURCE_MISSED;
	}
	/* Whose frames they are is not known yet. */
	if (code->n_ranges == 0)
		return n > 0 ? FRAME_SOURCE_UNPROVEN : FRAME_SOURCE_NONE;
	take_frames(&ret->places, c, code->kind, frames, n);
	answer = chain_places_find(&ret->places, code, sample, false, &ret->frames);
	ret->frames.cut = result == FRAME_RECORD_CUT;
	return answer;
}

/* The frames of the first one are in front of those of the others. A stack that is late, or from
 * before an interpreter was told, has none of the others. */
static void take_chains(struct readers *r, const struct interpreter *i,
			const struct reader_of_cpu *c, const struct frame_source_sample *sample,
			const struct frame_record_stack *s)
{
	const struct frame_record_frame *frames = s->frames;
	struct frame_record_chain its = {s->result, s->n};

	for (uint32_t k = 0; k < s->n_others; k++)
		its.n -= s->others[k].n;
	r->chains.n = 0;
	for (uint32_t k = 0; k < CLIENT_MAX_IMAGES && i->images[k]; k++) {
		struct chain_of *chain = &r->chains.of[r->chains.n++];

		if (k > 0)
			its = k <= s->n_others ? s->others[k - 1]
					       : (struct frame_record_chain){FRAME_RECORD_LATE, 0};
		chain->image = i->images[k];
		chain->answer =
			answer_of(c, sample, &i->codes[k], its.result, frames, its.n, chain);
		frames += its.n;
	}
}

enum frame_source_answer readers_ask(struct readers *r, const struct interpreter *i,
				     const struct frame_source_sample *sample,
				     struct runtime_frames *ret)
{
	struct reader_of_cpu *c = sample->key.cpu < MAX_CPUS ? r->cpus[sample->key.cpu] : NULL;
	const struct frame_record_stack *s;
	enum frame_source_answer answer;

	if (!i->images[0])
		return FRAME_SOURCE_NONE;
	if (i->refused || i->out)
		return FRAME_SOURCE_UNREAD;
	s = c ? find_stack(r, c, &sample->key, i->pid) : NULL;
	if (!s)
		return FRAME_SOURCE_MISSED;
	take_chains(r, i, c, sample, s);
	answer = chains_merge(&r->chains, sample, ret);
	ret->read_ns = s->read_ns;
	drop(c);
	return answer;
}

bool readers_ask_blocked(struct readers *r, uint32_t pid, uint32_t tid, uint32_t cpu,
			 uint64_t time_ns)
{
	struct reader_of_cpu *c = cpu < MAX_CPUS ? r->cpus[cpu] : NULL;
	struct message m = {.type = MESSAGE_CONTEXT};

	if (!c || c->n_unanswered == MAX_UNANSWERED)
		return false;
	m.context.time_ns = time_ns;
	m.context.pid = pid;
	m.context.tid = tid;
	m.context.cpu = cpu;
	if (message_try_send(c->sock, &m, NULL, 0) < 0)
		return false;
	c->n_unanswered++;
	return true;
}

void readers_take_answers(struct readers *r)
{
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (r->cpus[i] && r->cpus[i]->n_unanswered)
			on_reader(r, r->cpus[i]->sock, EPOLLIN);
	}
}

/* A stack without a context before it: what it says, unless the context had no room in the ring. */
static enum frame_record_span span_of_stack(const void *told, uint64_t *ret_read_ns)
{
	const struct frame_record_stack *s = told;

	*ret_read_ns = s->read_ns;
	return s->span == FRAME_RECORD_SPAN_READ ? FRAME_RECORD_SPAN_UNREAD
						 : (enum frame_record_span)s->span;
}

enum frame_record_span readers_context(struct readers *r, const struct interpreter *i,
				       const struct frame_key *key,
				       uint8_t ret[THREAD_CONTEXT_MAX_BYTES], uint32_t *ret_n,
				       uint64_t *ret_read_ns)
{
	struct reader_of_cpu *c = key->cpu < MAX_CPUS ? r->cpus[key->cpu] : NULL;
	const struct frame_record_context *s = NULL;

	*ret_n = 0;
	while (c && (s = next_told(r, c)) && s->time_ns < key->time_ns)
		drop(c);
	if (!s || i->refused || i->out || s->time_ns != key->time_ns || s->tid != key->tid ||
	    s->pid != i->pid)
		return FRAME_RECORD_SPAN_UNREAD;
	if (s->type == FRAME_RECORD_STACK)
		return span_of_stack(s, ret_read_ns);
	*ret_n = s->n;
	*ret_read_ns = s->read_ns;
	memcpy(ret, s->bytes, s->n);
	drop(c);
	return FRAME_RECORD_SPAN_READ;
}
