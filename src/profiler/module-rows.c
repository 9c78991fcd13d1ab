/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/marks.h"
#include "src/profiler/attribute-internal.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "util/file-identity.h"
#include "util/log.h"
#include "util/text.h"

#define JIT_UID	   (UINT64_C(1) << 62)
#define UNREAD_UID (UINT64_C(1) << 61)

/* ---- Module rows ---- */

strid attribution_put_clean(struct attribution *a, const char *text)
{
	char clean[1024];
	size_t n = text_clean(clean, sizeof(clean), text, sizeof(clean) - 1);

	return strtab_put_n(&a->profile.strings, clean, n);
}

static uint32_t fixed_row(struct attribution *a, uint32_t *row, enum profile_uid uid,
			  enum profile_module_kind kind, const char *path)
{
	if (*row == PROFILE_NONE) {
		struct profile_module m = {
			.uid = uid,
			.kind = kind,
			.process = PROFILE_NONE,
			.path = strtab_put(&a->profile.strings, path),
		};

		if (uid == PROFILE_UID_VDSO && a->vdso)
			unwind_module_text(a->vdso, &m.memory_start, &m.memory_limit,
					   &m.file_offset);
		*row = profile_add_module(&a->profile, &m);
	}
	return *row;
}

uint32_t attribution_unknown_row(struct attribution *a)
{
	return fixed_row(a, &a->none_row, PROFILE_UID_NONE, PROFILE_MODULE_NONE, "[unknown]");
}

static uint32_t marker_row(struct attribution *a)
{
	return fixed_row(a, &a->marker_row, PROFILE_UID_MARKER, PROFILE_MODULE_MARKER, "[marker]");
}

/*
 * The symbolizer has let it go, or is a new one, and here it was closed because nobody ran in it
 * for a while. Once a window: files may be more than can be open.
 */
static bool is_wanted_again(const struct attribution *a, const struct host_file *file,
			    struct file_state *s)
{
	if (file->fd >= 0 || !s->was_sent || s->sent_generation == a->symbolizer_generation ||
	    s->again_window == a->window)
		return false;
	s->again_window = a->window;
	return true;
}

/* A file of any name may hold a runtime. Only what is walked through is looked at: a program's
 * interpreter is. */
static void look_for_marks(struct attribution *a, struct file_state *s, int fd)
{
	if (!a->runtimes || runtime_file_rank(s->path, strlen(s->path), RUNTIME_ANY))
		return;
	s->marks = runtime_marks_of(fd);
	a->n_marked += s->marks != 0;
}

/* The first time a file is walked through: opened by the broker, its headers read. */
struct file_state *attribution_open_file(struct attribution *a, struct host_mapping *m)
{
	struct file_state *s = m->file->user;
	int fd, r;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		m->file->user = s;
	}
	if (s->tried && !is_wanted_again(a, m->file, s))
		return s;
	fd = host_file_open(a->host, a->process, m);
	/* A process that could not be asked for it may have gone; the next one that maps it is
	 * asked. */
	if (fd < 0 || s->tried)
		return s;
	s->tried = true;
	s->window = 0; /* its row is another one now */
	s->pid = a->process->pid;
	s->path = m->file->path;
	(void)file_identity_get(fd, &s->identity);
	unwinder_tell_reading(a->unwinder, s, true);
	r = unwind_module_new_fd(&s->module, a->unwinder, fd, m->file->path);
	if (r == 0)
		look_for_marks(a, s, fd);
	unwinder_tell_reading(a->unwinder, s, false);
	if (r == 0)
		unwind_module_set_owner(s->module, s);
	else
		log_debug("%s: not an ELF file that can be walked: %s", m->file->path,
			  strerror(-r));
	return s;
}

static void add_item(struct attribution *a, enum message_type type, uint64_t id, uint32_t pid)
{
	struct handover_item *item = array_push(&a->items);

	if (item)
		*item = (struct handover_item){.type = type, .id = id, .pid = pid};
}

/*
 * Until the file is open, its frames are offsets in the file, not addresses of its code. They
 * belong to another module, which has no names. So do frames that are not in its code.
 */
static uint32_t offsets_row(struct attribution *a, const struct host_file *file)
{
	const struct profile_module m = {
		.uid = UNREAD_UID + file->uid,
		.kind = PROFILE_MODULE_FILE,
		.process = PROFILE_NONE,
		.path = attribution_put_clean(a, file->path),
	};

	return profile_add_module(&a->profile, &m);
}

static uint32_t add_file_row(struct attribution *a, struct host_file *file, struct file_state *s)
{
	struct profile_module m = {
		.uid = PROFILE_UID_FIRST_FILE + file->uid,
		.kind = PROFILE_MODULE_FILE,
		.process = PROFILE_NONE,
		.path = attribution_put_clean(a, file->path),
	};
	uint32_t row;

	if (s->module) {
		size_t n;
		const uint8_t *id = unwind_module_build_id(s->module, &n);

		m.n_build_id = (uint32_t)(n <= PROFILE_MAX_BUILD_ID ? n : 0);
		if (m.n_build_id > 0)
			memcpy(m.build_id, id, m.n_build_id);
		unwind_module_text(s->module, &m.memory_start, &m.memory_limit, &m.file_offset);
	}
	row = profile_add_module(&a->profile, &m);
	if (row != PROFILE_NONE)
		add_item(a, MESSAGE_MODULE, m.uid, 0);
	return row;
}

static uint32_t file_row(struct attribution *a, struct host_file *file, struct file_state *s)
{
	if (s->window != a->window) {
		s->row = s->tried ? add_file_row(a, file, s) : offsets_row(a, file);
		s->window = a->window;
	}
	return s->row;
}

/* A compiler that writes such a file maps it executable, so that the mapping shows it. */
static bool is_jitdump(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t n;

	if (!name || strncmp(name, "/jit-", 5) != 0)
		return false;
	n = strspn(name + 5, "0123456789");
	return n > 0 && strcmp(name + 5 + n, ".dump") == 0;
}

static int open_jitdump(struct attribution *a, struct host_process *p, struct process_state *s)
{
	for (uint32_t i = 0; i < p->n_mappings; i++) {
		struct host_mapping *m = &p->mappings[i];
		int fd;

		if (m->kind != HOST_MAPPING_FILE || !is_jitdump(m->file->path))
			continue;
		fd = host_file_open(a->host, p, m);
		if (fd < 0)
			return -1;
		free(s->jitdump_path);
		s->jitdump_path = strdup(m->file->path);
		s->jitdump.ino = 0;
		(void)file_identity_get(fd, &s->jitdump);
		s->jitdump.size = FILE_GROWS;
		/* The host may close its own. */
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	return -1;
}

static int open_perf_map(struct attribution *a, const struct host_process *p)
{
	int fd = a->replay ? replay_open_perf_map(a->replay, p->pid)
			   : outside_open_perf_map(&a->outside, p->pid);

	return fd < 0 ? -2 : fd;
}

/* Code that belongs to no file: what its compiler writes down may name it. */
static uint32_t jit_row(struct attribution *a, struct host_process *p)
{
	struct process_state *s = attribution_process_state(p);

	if (!s)
		return attribution_unknown_row(a);
	if (s->jit_row == PROFILE_NONE) {
		struct profile_module m = {
			.uid = JIT_UID + a->next_jit_uid++,
			.kind = PROFILE_MODULE_JIT,
			.process = s->row,
			.path = strtab_put(&a->profile.strings, "[anon]"),
		};

		s->jit_row = profile_add_module(&a->profile, &m);
		/* Either may appear later than the first frame of the code: looked for once a
		 * window. */
		if (p->jitdump_fd < 0)
			p->jitdump_fd = open_jitdump(a, p, s);
		if (p->jitdump_fd >= 0)
			add_item(a, MESSAGE_JITDUMP, p->start_unix_ns, p->pid);
		if (p->perf_map_fd < 0 && (a->replay || !p->exited))
			p->perf_map_fd = open_perf_map(a, p);
		if (p->perf_map_fd >= 0)
			add_item(a, MESSAGE_PERF_MAP, p->start_unix_ns, p->pid);
	}
	return s->jit_row;
}

/* ---- Mappings ---- */

/* Its compiler may have written down how it is unwound. */
static void find_jit_rows(struct attribution *a, uint64_t pc, struct unwind_mapping *mapping)
{
	const struct host_process *p = a->process;
	const struct process_state *s = p->user;

	if (p->jitdump_fd < 0 || !s || a->frame_pointers)
		return;
	code_unwinding_find(a->code, p->pid, p->start_unix_ns, p->jitdump_fd,
			    a->other_clock ? UINT64_MAX : a->time_ns, pc, mapping);
}

static bool find_vdso(struct attribution *a, const struct host_mapping *m,
		      struct unwind_mapping *ret)
{
	ret->module = a->foreign_vdso ? NULL : a->vdso;
	ret->tag = fixed_row(a, &a->vdso_row,
			     a->foreign_vdso ? PROFILE_UID_FOREIGN_VDSO : PROFILE_UID_VDSO,
			     PROFILE_MODULE_VDSO, "[vdso]");
	if (!ret->module || !unwind_module_bias(a->vdso, m->start, 0, &ret->bias))
		ret->bias = m->start;
	return true;
}

/* What belongs to the mapping, as far as the file's headers tell the truth. */
static struct file_state *find_file(struct attribution *a, struct host_mapping *m,
				    struct unwind_mapping *ret)
{
	struct file_state *s = attribution_open_file(a, m);

	if (!s)
		return NULL;
	ret->module = s->module;
	ret->tag = file_row(a, m->file, s);
	if (m->bias_state == 0 && s->tried) {
		m->bias_state = 1;
		if (!s->module ||
		    !unwind_module_bias(s->module, m->start, m->file_offset, &m->bias))
			m->bias_state = 2;
	}
	/* Without program headers the file offset is the address that says most. */
	ret->bias = m->bias_state == 1 ? m->bias : m->start - m->file_offset;
	ret->file_missing = !s->module;
	return s;
}

/*
 * Headers may lie. Where they have no code for pc, its address would be a wrong one, and outside
 * the range that the module's row promises.
 */
static bool find_code(struct attribution *a, struct host_mapping *m, uint64_t pc,
		      struct unwind_mapping *ret)
{
	const struct file_state *s = find_file(a, m, ret);

	if (!s)
		return false;
	if (!s->module || (m->bias_state == 1 &&
			   unwind_module_has_text(s->module, m->bias, pc, &ret->start, &ret->end)))
		return true;
	ret->module = NULL;
	ret->bias = m->start - m->file_offset;
	ret->tag = offsets_row(a, m->file);
	return true;
}

bool attribution_find_mapping(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	struct attribution *a = ctx;
	struct host_mapping *m = host_mapping_find(a->host, a->process, pc, a->time_ns);

	if (!m)
		return false;
	*ret = (struct unwind_mapping){.start = m->start, .end = m->end};
	switch (m->kind) {
	case HOST_MAPPING_VDSO:
		return find_vdso(a, m, ret);
	case HOST_MAPPING_ANON:
		ret->tag = jit_row(a, a->process);
		find_jit_rows(a, pc, ret);
		return true;
	default:
		return find_code(a, m, pc, ret);
	}
}

bool attribution_code_row(struct attribution *a, uint64_t start, uint32_t *ret_row,
			  uint64_t *ret_bias)
{
	struct host_mapping *m =
		a->process ? host_mapping_find(a->host, a->process, start, a->time_ns) : NULL;
	struct unwind_mapping found;

	if (!m || m->kind != HOST_MAPPING_FILE || !find_file(a, m, &found) ||
	    found.tag == PROFILE_NONE)
		return false;
	*ret_row = found.tag;
	*ret_bias = found.bias;
	return true;
}

uint32_t attribution_marker(struct attribution *a, enum profile_marker marker)
{
	return profile_add_frame(&a->profile, marker_row(a), marker);
}

uint32_t attribution_last_marker(const struct attribution *a, uint32_t n)
{
	const struct profile_frame *f;

	if (n == 0 || a->frames[n - 1] == PROFILE_NONE)
		return PROFILE_N_MARKERS;
	f = &a->profile.frames.items[a->frames[n - 1]];
	return f->module == a->marker_row ? (uint32_t)f->address : PROFILE_N_MARKERS;
}

uint32_t attribution_kernel_row(struct attribution *a)
{
	bool known = !a->replay || replay_kernel_is_known(a->replay);

	if (a->kernel_row == PROFILE_NONE && a->replay && replay_kallsyms_copy(a->replay) >= 0)
		add_item(a, MESSAGE_KALLSYMS, 0, 0);
	return fixed_row(a, &a->kernel_row, known ? PROFILE_UID_KERNEL : PROFILE_UID_FOREIGN_KERNEL,
			 PROFILE_MODULE_KERNEL, "[kernel.kallsyms]");
}
