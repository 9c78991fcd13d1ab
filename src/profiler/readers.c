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
#include "src/profiler/readers.h"
#include "src/sample/sample.h"
#include "util/loop.h"
#include "util/log.h"
#include "util/strtab.h"

enum {
	MAX_CPUS = 256,
	MAX_INTERPRETERS = 256,
	MAX_NATIVE = 2048, /* frames of a stack; those of a longer one stand for themselves */
	MAX_MESSAGES = 16, /* of a reader at a time */
	COMPILED_FRAME_BYTES = 512,
};
#define MAX_TEXT_BYTES (UINT64_C(4) << 20)

struct interpreter {
	uint32_t pid;
	uint64_t image;
	uint32_t major, minor; /* the device of its file */
	bool refused;
	bool former; /* another process has its number now */
	struct client_threads threads;
	enum interp_kind kind;
	uint32_t n_ranges;
	struct frame_record_range ranges[FRAME_RECORD_MAX_RANGES];
};

/* The reader of one CPU, as it is seen here. */
struct reader_of_cpu {
	uint32_t cpu;
	int sock;
	struct frame_ring *ring;
	struct strtab texts;
	int peeked; /* bytes of the oldest record, in buf; 0: not looked at yet */
	uint64_t *buf;
};

struct readers {
	struct loop *loop;
	struct readers_callbacks callbacks;
	struct reader_of_cpu *cpus[MAX_CPUS]; /* NULL: there is none */
	struct interpreter *interpreters[MAX_INTERPRETERS];
	struct runtime_frame frames[FRAME_RECORD_MAX_FRAMES];
	uint64_t functions[MAX_NATIVE]; /* as in struct runtime_frames */
	struct log_ratelimit broken;
};

_Static_assert(offsetof(struct frame_record_context, time_ns) ==
		       offsetof(struct frame_record_stack, time_ns),
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
		log_warning("the ring of a reader cannot be mapped: functions of Python, PHP and "
			    "Ruby lack names on its CPU");
}

static struct reader_of_cpu *find_sock(struct readers *r, int sock)
{
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (r->cpus[i] && r->cpus[i]->sock == sock)
			return r->cpus[i];
	}
	return NULL;
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

int readers_rank(const char *path)
{
	return interp_rank(path);
}

static void tell(const struct interpreter *i, enum message_type type)
{
	struct message m = {.type = type};

	if (i->former)
		return;
	m.client.pid = i->pid;
	m.client.image = i->image;
	m.client.major = i->major;
	m.client.minor = i->minor;
	m.client.threads = i->threads;
	(void)message_send(PROTOCOL_CONTROL_FD, &m, NULL, 0);
}

static struct interpreter **find_place(struct readers *r, uint32_t pid)
{
	for (int k = 0; k < MAX_INTERPRETERS; k++) {
		const struct interpreter *i = r->interpreters[k];

		if (pid ? i && i->pid == pid && !i->former : !i)
			return &r->interpreters[k];
	}
	return NULL;
}

struct interpreter *readers_add_interpreter(struct readers *r, uint32_t pid, uint64_t image,
					    uint32_t major, uint32_t minor)
{
	struct interpreter **place = find_place(r, 0), *i = place ? calloc(1, sizeof(*i)) : NULL;
	struct interpreter **former = find_place(r, pid);

	if (!i)
		return NULL;
	/* Of a process that has ended, and is known for a while yet. */
	if (former)
		(*former)->former = true;
	*i = (struct interpreter){.pid = pid, .image = image, .major = major, .minor = minor};
	*place = i;
	tell(i, MESSAGE_INTERPRETER);
	return i;
}

struct interpreter *readers_free_interpreter(struct readers *r, struct interpreter *i)
{
	for (int k = 0; i && k < MAX_INTERPRETERS; k++) {
		if (r->interpreters[k] == i)
			r->interpreters[k] = NULL;
	}
	if (i && !i->refused)
		tell(i, MESSAGE_CLIENT_GONE);
	free(i);
	return NULL;
}

void interpreter_set_context(struct interpreter *i, const struct thread_variable *v)
{
	i->threads.context_module = v->module;
	i->threads.context_offset = v->offset;
	i->threads.context_musl_thread = v->musl_thread;
	i->threads.context_glibc_bytes = v->glibc_bytes;
	i->threads.context_cpu = v->cpu;
	i->threads.context_node = v->node;
	i->threads.has_context = 1;
	tell(i, MESSAGE_INTERPRETER);
}

void interpreter_set_goroutines(struct interpreter *i, uint32_t go_version, uint64_t go_cycle)
{
	i->threads.go_version = go_version;
	i->threads.go_cycle = go_cycle;
	tell(i, MESSAGE_INTERPRETER);
}

uint64_t interpreter_image(const struct interpreter *i)
{
	return i->image;
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

static void take_code(struct readers *r, const void *bytes, size_t n)
{
	const struct frame_record_code *code = bytes;
	struct interpreter **place =
		n == sizeof(*code) && code->pid ? find_place(r, code->pid) : NULL;

	if (!place || code->n > FRAME_RECORD_MAX_RANGES || code->kind >= INTERP_N_KINDS)
		return;
	(*place)->kind = (enum interp_kind)code->kind;
	(*place)->n_ranges = code->n;
	memcpy((*place)->ranges, code->ranges, sizeof(code->ranges));
}

static bool is_stack(const struct frame_record_stack *s, size_t n)
{
	size_t head = offsetof(struct frame_record_stack, frames);

	return n >= head && s->type == FRAME_RECORD_STACK && s->n <= FRAME_RECORD_MAX_FRAMES &&
	       s->result < FRAME_RECORD_N_RESULTS && n == head + s->n * sizeof(s->frames[0]);
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

/* ---- Places, and proof ---- */

struct placing {
	const struct frame_source_sample *sample;
	const struct interpreter *interpreter;
	const struct frame_record_stack *stack;
	struct runtime_frame *frames;
	uint64_t *functions;
	uint32_t next; /* of the stack's frames */
	size_t from;   /* the native frame behind the last evaluation */
	bool strict;   /* what the copy of the stack lacks proves nothing */
};

/* The rules for the stacks of each interpreter. */
static const struct proof_rules {
	enum profile_runtime runtime;
	/* An evaluation saves the frame of its caller, which those between need not. */
	bool callee_saves;
	/* The chain gets a frame a moment before its native call begins, and loses it a moment
	 * before that ends. */
	bool changes_early;
	/* Which thread the chain is of is not known. */
	bool is_anyones;
	/* It compiles functions into code that a native walk does not lead through. */
	bool compiles;
	/* Such code is called as the evaluation is. */
	bool calls_compiled;
} rules_of[INTERP_N_KINDS] = {
	[INTERP_CPYTHON] = {.runtime = PROFILE_RUNTIME_CPYTHON},
	[INTERP_PHP] = {PROFILE_RUNTIME_PHP, true, true, true, true, false},
	[INTERP_RUBY] = {PROFILE_RUNTIME_RUBY, true, true, false, true, true},
};

/* 0: it is of a function that is not evaluated. */
static uint64_t address_of(const struct frame_record_frame *f)
{
	return f->address & ~UINT64_C(1);
}

/* Of the next frame that is evaluated; 0: there is none. */
static uint64_t next_address(const struct placing *p)
{
	for (uint32_t i = p->next; i < p->stack->n; i++) {
		if (address_of(&p->stack->frames[i]))
			return address_of(&p->stack->frames[i]);
	}
	return 0;
}

static bool is_in_evaluation(const struct placing *p, size_t i)
{
	uint64_t address = p->sample->frames[i].address;

	for (uint32_t k = 0; k < p->interpreter->n_ranges; k++) {
		if (address >= p->interpreter->ranges[k].start &&
		    address < p->interpreter->ranges[k].end)
			return true;
	}
	return false;
}

static bool is_in_no_file(const struct host_process *process, uint64_t address)
{
	for (uint32_t i = 0; process && i < process->n_mappings; i++) {
		const struct host_mapping *m = &process->mappings[i];

		if (address >= m->start && address < m->end)
			return m->kind == HOST_MAPPING_ANON;
	}
	return false;
}

/* Compiled code that is called instead of the evaluation, and not by it. */
static bool is_instead(const struct placing *p, size_t i)
{
	return rules_of[p->interpreter->kind].calls_compiled && i + 1 < p->sample->n &&
	       is_in_no_file(p->sample->process, p->sample->frames[i].address) &&
	       !is_in_evaluation(p, i + 1);
}

static bool is_evaluation(const struct placing *p, size_t i)
{
	return is_in_evaluation(p, i) || is_instead(p, i);
}

static bool is_in_registers(const struct record *r, uint64_t value)
{
	uint32_t n = r->sample.user_regs ? (uint32_t)__builtin_popcountll(sample_user_regs) : 0;

	for (uint32_t i = 0; i < n; i++) {
		if (r->sample.user_regs[i] == value)
			return true;
	}
	return false;
}

/* In the copy of the stack between these addresses; *ret_all: it has all of it. */
static bool is_on_stack(const struct placing *p, uint64_t low, uint64_t high, uint64_t value,
			bool *ret_all)
{
	const struct record *r = p->sample->record;
	uint64_t start = p->sample->frames[0].sp, end = start + r->sample.n_stack, word;

	*ret_all = low >= start && high <= end && high > low;
	low = low < start ? start : (low + 7) & ~UINT64_C(7);
	high = high > end ? end : high;
	for (; low + sizeof(word) <= high; low += sizeof(word)) {
		memcpy(&word, r->sample.stack + (low - start), sizeof(word));
		if (word == value)
			return true;
	}
	return false;
}

/* Native frame i evaluates the next frame of the stack: the evaluation has it somewhere in its own
 * part of the native stack, or its callees have saved it in theirs. */
static bool is_proven(const struct placing *p, size_t i)
{
	const struct unwind_frame *frames = p->sample->frames;
	uint64_t value = next_address(p);
	uint64_t high = i + 1 < p->sample->n ? frames[i + 1].sp : UINT64_MAX;
	size_t from = p->from - (p->from > 0 && rules_of[p->interpreter->kind].callee_saves);
	bool all;

	if (!value)
		return false;
	if (p->from == 0 && is_in_registers(p->sample->record, value))
		return true;
	return is_on_stack(p, frames[from].sp, high, value, &all) || (!all && !p->strict);
}

static void place_call(struct placing *p, uint64_t sp)
{
	bool entry = false;

	while (!entry && p->next < p->stack->n) {
		entry = p->stack->frames[p->next].address & 1;
		p->frames[p->next++].sp = sp;
	}
}

/* Each native call of the evaluation, behind the first n_skip of them, has its frames. */
static bool place_calls(struct placing *p, uint32_t n_skip)
{
	const struct frame_source_sample *s = p->sample;

	for (size_t i = 0; i < s->n; i++) {
		if (!is_evaluation(p, i))
			continue;
		if (i < MAX_NATIVE)
			p->functions[i] = p->interpreter->ranges[0].start;
		if (s->frames[i].sp == 0)
			break;
		if (n_skip > 0) {
			n_skip--;
			continue;
		}
		if (p->next == p->stack->n || !is_proven(p, i))
			return false;
		place_call(p, s->frames[i].sp);
		p->from = i + 1;
		p->strict = false;
	}
	return true;
}

/*
 * The walk has ended before any evaluation: in code that the interpreter has compiled, or in code
 * without unwind information. The innermost frame must be there or, if we know which thread's chain
 * it is, anywhere in the copy; we know nothing of the calls of others.
 */
static bool ends_early(const struct placing *p)
{
	const struct frame_source_sample *s = p->sample;
	const struct proof_rules *rules = &rules_of[p->interpreter->kind];
	uint64_t value = next_address(p), high;
	bool all;

	if (p->from > 0 || s->whole || s->n == 0 || !value || !rules->compiles)
		return false;
	high = rules->is_anyones ? s->frames[s->n - 1].sp + COMPILED_FRAME_BYTES : UINT64_MAX;
	return is_in_registers(s->record, value) ||
	       is_on_stack(p, s->frames[0].sp, high, value, &all);
}

/* Neither the chain nor the native stack has an evaluation: there are functions in C alone. */
static bool has_none(const struct placing *p)
{
	return !rules_of[p->interpreter->kind].is_anyones && !next_address(p);
}

/* Does the native stack have these frames, and no others? */
static enum frame_source_answer place(struct placing *p, uint32_t n_skip)
{
	memset(p->functions, 0, MAX_NATIVE * sizeof(*p->functions));
	if (!place_calls(p, n_skip))
		return FRAME_SOURCE_UNPROVEN;
	if (p->from == 0 && p->stack->n == 0)
		return FRAME_SOURCE_NONE;
	if (p->from == 0 && p->sample->whole && rules_of[p->interpreter->kind].is_anyones)
		return FRAME_SOURCE_NONE;
	if ((p->from == 0 && !has_none(p) && !ends_early(p)) ||
	    (p->sample->whole && next_address(p)))
		return FRAME_SOURCE_UNPROVEN;
	/* The native stack was not followed that far. */
	while (p->next < p->stack->n)
		p->frames[p->next++].sp = UINT64_MAX;
	return FRAME_SOURCE_READY;
}

/*
 * The innermost native call is about to begin, and the chain has its frame; or it has just begun,
 * or is about to end, and the chain has none. All others must be as they should.
 */
static enum frame_source_answer place_change(struct placing *p)
{
	const struct placing start = *p;

	p->strict = true;
	if (p->stack->n > 1 && (p->stack->frames[0].address & 1)) {
		p->frames[p->next++].sp = p->sample->frames[0].sp;
		if (place(p, 0) == FRAME_SOURCE_READY)
			return FRAME_SOURCE_READY;
		*p = start;
		p->strict = true;
	}
	return place(p, 1);
}

static enum frame_source_answer place_all(struct placing *p)
{
	const struct placing start = *p;
	enum frame_source_answer answer = place(p, 0);

	if (answer != FRAME_SOURCE_UNPROVEN || !rules_of[p->interpreter->kind].changes_early)
		return answer;
	*p = start;
	return place_change(p);
}

static void name(const struct reader_of_cpu *c, const struct interpreter *its,
		 const struct frame_record_stack *s, struct runtime_frame *ret)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct frame_record_frame *f = &s->frames[i];

		ret[i] = (struct runtime_frame){
			.runtime = rules_of[its->kind].runtime,
			.function = strtab_get(&c->texts, f->function),
			.file = strtab_get(&c->texts, f->file),
			.line = f->line,
			.start_line = f->start_line,
		};
	}
}

enum frame_source_answer readers_ask(struct readers *r, const struct interpreter *i,
				     const struct frame_source_sample *sample,
				     struct runtime_frames *ret)
{
	struct placing p = {
		.sample = sample,
		.interpreter = i,
		.frames = r->frames,
		.functions = r->functions,
	};
	struct reader_of_cpu *c = sample->key.cpu < MAX_CPUS ? r->cpus[sample->key.cpu] : NULL;
	enum frame_source_answer answer;

	if (i->refused || !i->image)
		return FRAME_SOURCE_NONE;
	p.stack = c ? find_stack(r, c, &sample->key, i->pid) : NULL;
	if (!p.stack || p.stack->result == FRAME_RECORD_LATE)
		return FRAME_SOURCE_MISSED;
	if (p.stack->result == FRAME_RECORD_NONE)
		return FRAME_SOURCE_NONE;
	if (p.stack->result == FRAME_RECORD_UNPROVEN)
		return FRAME_SOURCE_UNPROVEN;
	name(c, i, p.stack, r->frames);
	answer = place_all(&p);
	*ret = (struct runtime_frames){
		.items = r->frames,
		.n = p.stack->n,
		.cut = p.stack->result == FRAME_RECORD_CUT,
		.read_ns = p.stack->read_ns,
		.functions = sample->n <= MAX_NATIVE ? r->functions : NULL,
	};
	drop(c);
	return answer;
}

uint32_t readers_context(struct readers *r, const struct interpreter *i,
			 const struct frame_key *key, uint8_t ret[THREAD_CONTEXT_MAX_BYTES])
{
	struct reader_of_cpu *c = key->cpu < MAX_CPUS ? r->cpus[key->cpu] : NULL;
	const struct frame_record_context *s = NULL;
	uint32_t n;

	while (c && (s = next_told(r, c)) && s->time_ns < key->time_ns)
		drop(c);
	if (!s || i->refused || s->type == FRAME_RECORD_STACK || s->time_ns != key->time_ns ||
	    s->tid != key->tid || s->pid != i->pid)
		return 0;
	n = s->n;
	memcpy(ret, s->bytes, n);
	drop(c);
	return n;
}
