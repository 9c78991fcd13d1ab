/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/profiler/outside.h"
#include "util/cleanup.h"
#include "util/clock.h"

static int open_of_pid(struct outside *o, enum message_type type, uint32_t pid)
{
	struct message m = {.type = type};

	m.ask_pid.pid = pid;
	return ask_descriptor(o->ask, &m);
}

static int ask_maps(struct outside *o, uint32_t pid, bool copy)
{
	struct message m = {.type = MESSAGE_ASK_MAPS};

	m.ask_pid.pid = pid;
	m.ask_pid.copy = copy;
	return ask_descriptor(o->ask, &m);
}

static int open_maps(void *ctx, uint32_t pid)
{
	struct outside *o = ctx;
	int fd = ask_maps(o, pid, o->maps == OUTSIDE_MAPS_COPIED);
	ssize_t n;
	char c;

	if (fd < 0 || o->maps != OUTSIDE_MAPS_UNTRIED)
		return fd;
	n = pread(fd, &c, sizeof(c), 0);
	if (n > 0)
		o->maps = OUTSIDE_MAPS_READABLE;
	if (n >= 0 || (errno != EACCES && errno != EPERM))
		return fd;
	(void)close(fd);
	o->maps = OUTSIDE_MAPS_COPIED;
	return ask_maps(o, pid, true);
}

static int open_cgroup(void *ctx, uint32_t tid)
{
	return open_of_pid(ctx, MESSAGE_ASK_CGROUP, tid);
}

/* What is asked of a mapping's file. */
static void set_file(struct mapped_file_name *f, uint32_t pid, uint64_t start, uint64_t end,
		     const struct host_file_key *key, const char *path)
{
	f->pid = pid;
	f->start = start;
	f->end = end;
	f->major = key->major;
	f->minor = key->minor;
	f->inode = key->inode;
	message_set_text(f->path, sizeof(f->path), path);
}

static int open_file(void *ctx, uint32_t pid, uint32_t alternate_pid, uint64_t start, uint64_t end,
		     const struct host_file_key *key, const char *path)
{
	struct message m = {.type = MESSAGE_ASK_FILE};

	set_file(&m.ask_file, pid, start, end, key, path);
	m.ask_file.alternate_pid = alternate_pid;
	return ask_descriptor(((struct outside *)ctx)->ask, &m);
}

static int cgroup_path(void *ctx, uint64_t id, char *buf, size_t size)
{
	struct message m = {.type = MESSAGE_ASK_CGROUP_PATH};
	int r;

	m.ask_cgroup_path.id = id;
	r = ask_values(((struct outside *)ctx)->ask, &m);
	if (r < 0)
		return r;
	if (!message_text_ok(m.answer_text.text, sizeof(m.answer_text.text)) ||
	    strlen(m.answer_text.text) >= size)
		return -ENAMETOOLONG;
	strcpy(buf, m.answer_text.text);
	return 0;
}

static int open_container(void *ctx, const char *id)
{
	struct message m = {.type = MESSAGE_ASK_CONTAINER};

	message_set_text(m.ask_container.id, sizeof(m.ask_container.id), id);
	return ask_descriptor(((struct outside *)ctx)->ask, &m);
}

static int process_info(void *ctx, uint32_t pid, uint64_t *ret_start_ns, uint32_t *ret_parent,
			char comm[17], char *exe, size_t n_exe, bool *ret_is_kernel)
{
	struct message m = {.type = MESSAGE_ASK_PROCESS};
	int r;

	m.ask_pid.pid = pid;
	r = ask_values(((struct outside *)ctx)->ask, &m);
	if (r < 0)
		return r;
	*ret_start_ns = m.answer_process.start_time_ns;
	*ret_parent = m.answer_process.parent_pid;
	*ret_is_kernel = m.answer_process.is_kernel != 0;
	memcpy(comm, m.answer_process.comm, sizeof(m.answer_process.comm));
	comm[16] = '\0';
	message_set_text(exe, n_exe, m.answer_process.executable_path);
	return 0;
}

static uint64_t now(void *ctx)
{
	return clock_monotonic_ns();
}

struct host_source outside_source(struct outside *o, bool records_are_monotonic)
{
	return (struct host_source){
		.ctx = o,
		.now = records_are_monotonic ? now : NULL,
		.open_maps = open_maps,
		.open_file = open_file,
		.open_cgroup = open_cgroup,
		.cgroup_path = cgroup_path,
		.open_container = open_container,
		.process_info = process_info,
	};
}

int outside_open_perf_map(struct outside *o, uint32_t pid)
{
	return open_of_pid(o, MESSAGE_ASK_PERF_MAP, pid);
}

int outside_user(struct outside *o, uint32_t pid, uint32_t *ret_uid)
{
	struct message m = {.type = MESSAGE_ASK_USER};
	int r;

	m.ask_pid.pid = pid;
	r = ask_values(o->ask, &m);
	if (r < 0)
		return r;
	*ret_uid = m.answer_user.uid;
	return 0;
}

bool outside_has_ended(struct outside *o, uint32_t pid)
{
	struct message m = {.type = MESSAGE_ASK_PROCESS};
	int r;

	m.ask_pid.pid = pid;
	r = ask_values(o->ask, &m);
	return r == -ENOENT || r == -ESRCH || (r == 0 && m.answer_process.has_ended);
}

int outside_open_memory(struct outside *o, uint32_t pid, uint64_t image)
{
	struct message m = {.type = MESSAGE_ASK_MEMORY};

	m.ask_pid.pid = pid;
	m.ask_pid.image = image;
	return ask_descriptor(o->ask, &m);
}

int outside_open_resident(struct outside *o, uint32_t pid)
{
	return open_of_pid(o, MESSAGE_ASK_RESIDENT, pid);
}

int outside_open_kills(struct outside *o)
{
	struct message m = {.type = MESSAGE_ASK_KILLS};

	return ask_descriptor(o->ask, &m);
}

int outside_open_kill_lines(struct outside *o)
{
	struct message m = {.type = MESSAGE_ASK_KILLS};

	m.ask_pid.copy = 1;
	return ask_descriptor(o->ask, &m);
}

int outside_open_maps(struct outside *o, uint32_t pid)
{
	return open_maps(o, pid);
}

int outside_open_blocked(struct outside *o, uint32_t pid, uint32_t tid, uint64_t sp, uint64_t ip,
			 uint32_t n_bytes)
{
	struct message m = {.type = MESSAGE_ASK_BLOCKED};

	m.ask_blocked.pid = pid;
	m.ask_blocked.tid = tid;
	m.ask_blocked.sp = sp;
	m.ask_blocked.ip = ip;
	m.ask_blocked.n_bytes = n_bytes;
	return ask_descriptor(o->ask, &m);
}

int outside_library_copy(struct outside *o, uint32_t pid, uint64_t start, uint64_t end,
			 const struct host_file_key *key, const char *path)
{
	struct message m = {.type = MESSAGE_ASK_COPY};

	set_file(&m.ask_file, pid, start, end, key, path);
	return ask_values(o->ask, &m);
}

int outside_allocator(struct outside *o, uint32_t pid, const struct host_mapping *mapping,
		      const struct alloc_places *places)
{
	struct message m = {.type = MESSAGE_ASK_ALLOCATOR};

	set_file(&m.ask_allocator.file, pid, mapping->start, mapping->end, &mapping->file->key,
		 mapping->file->path);
	m.ask_allocator.n_picked = places->n_picked;
	for (uint32_t i = 0; i < places->n_picked; i++)
		m.ask_allocator.picked[i] = places->picked[i];
	m.ask_allocator.ended = places->ended;
	m.ask_allocator.fetched = places->rate;
	return ask_values(o->ask, &m);
}

int outside_open_table(struct outside *o, uint32_t pid, uint64_t address)
{
	struct message m = {.type = MESSAGE_ASK_TABLE};

	m.ask_table.pid = pid;
	m.ask_table.address = address;
	return ask_descriptor(o->ask, &m);
}

int outside_open_context(struct outside *o, const struct host_process *p, uint64_t published_ns,
			 bool environment)
{
	struct message m = {.type = MESSAGE_ASK_CONTEXT};

	m.ask_context.pid = p->pid;
	m.ask_context.start_time_ns = p->start_time_ns;
	m.ask_context.published_ns = published_ns;
	m.ask_context.environment = environment;
	return ask_descriptor(o->ask, &m);
}
