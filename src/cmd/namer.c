/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are named module by module, so that one symbol table is hot at a time and a file that
 * hangs or kills this process is the one the status page points to. A function's row is remembered
 * by (module, start address, source file): a thousand addresses in one function cost one
 * demangling.
 *
 * Reading the lines of many units takes long, and windows must not wait for it: each file gets a
 * share of time in each window, beyond which its frames get names alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "src/broker/opener.h"
#include "src/cmd/ask.h"
#include "src/cmd/code-names.h"
#include "src/cmd/kernel-names.h"
#include "src/cmd/namer.h"
#include "src/cmd/role.h"
#include "symbolize/symbolize.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#define VDSO_BYTES     8192
#define LINES_NS       (1 * NSEC_PER_SEC) /* of the 3 s after which a file is set aside */
#define MAX_LINE_BYTES (UINT64_C(16) << 20)
#define MAX_AWAITED    1024
#define LINES_EMPTY    4096 /* a file that has let go of its lines keeps less */

struct module {
	uint64_t uid, used;
	uint32_t pid; /* of a process that had it mapped; 0: not known */
	char *path;
	int fd;
	struct symbol_file *file;
	struct symbol_file_id id;
	bool identified, broken, renamed; /* renamed: its frames are to be named anew */
};

/* A debug file that is being fetched. */
struct awaited {
	uint64_t uid; /* of the module that it is for */
	uint32_t n_build_id;
	uint8_t build_id[64];
};

struct function_key {
	uint64_t start;
	uint32_t module, function;
	strid file;
	bool inlined;
};

struct namer {
	struct role *role;
	struct ask *ask;
	struct namer_callbacks callbacks;
	struct symbol_limits limits;
	uint64_t max_table_bytes, turn;
	bool lines, inlined;
	enum symbol_demangling demangling;
	uint64_t lines_ns; /* taken by the file that is being read */
	const struct module *reading;
	ARRAY(struct module) modules;
	struct hash_index module_index;
	struct code_names *code;
	bool recorded;	       /* the times of samples are not of this host's clock */
	uint64_t *times;       /* of frames, when they are wanted: last seen, CLOCK_MONOTONIC */
	uint32_t first_sample; /* of those to be named now */
	uint64_t time_ns;      /* at which the frame is looked up */
	struct kernel_names *kernel;
	struct symbol_file *vdso;
	ARRAY(struct function_key) functions;
	struct hash_index function_index;
	ARRAY(struct awaited) awaited;
};

/* It is to blame for what reading it takes. */
static int open_kernel_file(void *ctx, const uint8_t *build_id, size_t n_build_id, const char *path)
{
	struct namer *n = ctx;
	struct message m = {.type = MESSAGE_ASK_DEBUG_FILE};
	struct file_identity id;
	int fd;

	m.ask_debug_file.n_build_id = (uint32_t)n_build_id;
	memcpy(m.ask_debug_file.build_id, build_id, n_build_id);
	message_set_text(m.ask_debug_file.path, sizeof(m.ask_debug_file.path), path);
	fd = ask_descriptor(n->ask, &m);
	if (fd >= 0 && opener_identify(fd, &id) == 0) {
		role_job_file(n->role, PROFILE_UID_KERNEL, &id, "the kernel's debug file");
		role_job_point(n->role, PROFILE_UID_KERNEL);
	}
	return fd;
}

int namer_new(struct namer **ret, struct role *role, struct ask *ask, uint64_t max_table_bytes,
	      uint32_t max_files, bool recorded, const struct namer_callbacks *callbacks)
{
	struct namer *n = calloc(1, sizeof(*n));
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (!n)
		return -ENOMEM;
	n->role = role;
	n->ask = ask;
	n->callbacks = *callbacks;
	n->limits = (struct symbol_limits)SYMBOL_LIMITS_DEFAULT;
	n->max_table_bytes = max_table_bytes;
	n->modules.max = max_files;
	n->functions.max = PROFILE_NONE - 1;
	n->awaited.max = MAX_AWAITED;
	n->recorded = recorded;
	if (code_names_new(&n->code, &n->limits) < 0 ||
	    kernel_names_new(&n->kernel, &n->limits, open_kernel_file, n) < 0) {
		namer_free(n);
		return -ENOMEM;
	}
	if (vdso && symbol_file_new_memory(&n->vdso, vdso, VDSO_BYTES, &n->limits) < 0)
		log_debug("the vdso's symbols cannot be read");
	*ret = n;
	return 0;
}

static void module_clear(struct module *m)
{
	symbol_file_free(m->file);
	(void)close_fd(m->fd);
	free(m->path);
	m->file = NULL;
	m->path = NULL;
	m->fd = -EBADF;
}

struct namer *namer_free(struct namer *n)
{
	if (!n)
		return NULL;
	for (uint32_t i = 0; i < n->modules.n; i++)
		module_clear(&n->modules.items[i]);
	code_names_free(n->code);
	array_deinit(&n->modules);
	array_deinit(&n->functions);
	array_deinit(&n->awaited);
	hash_index_deinit(&n->module_index);
	hash_index_deinit(&n->function_index);
	kernel_names_free(n->kernel);
	symbol_file_free(n->vdso);
	free(n);
	return NULL;
}

/* ---- Sources ---- */

static struct module *find_module(struct namer *n, uint64_t uid)
{
	uint64_t hash = hash_u64(uid);
	uint32_t slot = hash_index_first(&n->module_index, hash), row;

	while ((row = hash_index_row(&n->module_index, slot)) != HASH_INDEX_NONE) {
		if (n->modules.items[row].uid == uid)
			return &n->modules.items[row];
		slot = hash_index_next(&n->module_index, slot);
	}
	return NULL;
}

/* The place of the module that was not used for longest. */
static struct module *evict_module(struct namer *n)
{
	struct module *oldest = NULL;

	for (uint32_t i = 0; i < n->modules.n; i++) {
		if (!oldest || n->modules.items[i].used < oldest->used)
			oldest = &n->modules.items[i];
	}
	if (oldest) {
		n->callbacks.closed(n->callbacks.ctx, oldest->uid);
		(void)hash_index_remove(&n->module_index, hash_u64(oldest->uid),
					(uint32_t)(oldest - n->modules.items));
		module_clear(oldest);
	}
	return oldest;
}

void namer_add_module(struct namer *n, uint64_t uid, uint32_t pid, const char *path, int fd)
{
	struct module *m = find_module(n, uid);
	struct file_identity id;

	if (m) {
		module_clear(m);
	} else {
		m = array_push(&n->modules);
		if (!m)
			m = evict_module(n);
		if (!m || hash_index_add(&n->module_index, hash_u64(uid),
					 (uint32_t)(m - n->modules.items)) < 0) {
			(void)close_fd(fd);
			return;
		}
	}
	*m = (struct module){
		.uid = uid, .used = n->turn, .pid = pid, .fd = fd, .path = strdup(path)};
	if (opener_identify(fd, &id) == 0)
		role_job_file(n->role, uid, &id, path);
}

void namer_add_code(struct namer *n, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd)
{
	code_names_add(n->code, source, pid, start_time_unix_ns, fd);
}

void namer_set_kernel(struct namer *n, int kallsyms_fd, int notes_fd)
{
	kernel_names_set_kallsyms(n->kernel, kallsyms_fd);
	kernel_names_set_notes(n->kernel, notes_fd);
}

bool namer_set_lines(struct namer *n, bool lines, bool inlined)
{
	if (n->lines == lines && n->inlined == inlined)
		return false;
	n->lines = lines;
	n->inlined = inlined;
	n->limits.max_line_bytes = !lines && !inlined ? 0
				   : n->max_table_bytes / 2 < MAX_LINE_BYTES
					   ? n->max_table_bytes / 2
					   : MAX_LINE_BYTES;
	n->limits.only_inlined = !lines;
	/* They are opened again when they are needed, and with lines or without. */
	for (uint32_t i = 0; i < n->modules.n; i++)
		n->modules.items[i].file = symbol_file_free(n->modules.items[i].file);
	kernel_names_forget_file(n->kernel);
	return true;
}

bool namer_set_demangling(struct namer *n, enum symbol_demangling style)
{
	bool differs = n->demangling != style;

	n->demangling = style;
	return differs;
}

/*
 * The path below the directory of debug files. A debuglink is a name, of a file in the program's
 * own directory there. The link to a file of dwz is a path as the package was built: absolute, or
 * relative to where the debug file would be; what counts is from .dwz on.
 */
static void debug_path(const struct module *m, const char *link, char *ret, size_t size)
{
	const char *dwz = strstr(link, "/.dwz/"), *slash = m->path ? strrchr(m->path, '/') : NULL;

	ret[0] = '\0';
	if (dwz)
		(void)snprintf(ret, size, "%s", dwz + 1);
	else if (slash && !strchr(link, '/'))
		(void)snprintf(ret, size, "%.*s/%s", (int)(slash - m->path), m->path, link);
}

static int open_debug(void *ctx, const uint8_t *build_id, size_t n_build_id, const char *link,
		      uint32_t crc)
{
	struct namer *n = ctx;
	struct message m = {.type = MESSAGE_ASK_DEBUG_FILE};
	struct awaited *a;
	int fd;

	if (n_build_id > sizeof(m.ask_debug_file.build_id))
		return -1;
	m.ask_debug_file.pid = n->reading->pid;
	m.ask_debug_file.n_build_id = (uint32_t)n_build_id;
	if (n_build_id)
		memcpy(m.ask_debug_file.build_id, build_id, n_build_id);
	if (link)
		debug_path(n->reading, link, m.ask_debug_file.path, sizeof(m.ask_debug_file.path));
	m.ask_debug_file.fetch = n_build_id > 0;
	fd = ask_descriptor(n->ask, &m);
	a = fd == -EINPROGRESS ? array_push(&n->awaited) : NULL;
	if (a) {
		a->uid = n->reading->uid;
		a->n_build_id = (uint32_t)n_build_id;
		memcpy(a->build_id, build_id, n_build_id);
	}
	return fd;
}

/* It is opened again for the next address, and its frames get new names. */
static void reopen_module(struct module *m)
{
	m->file = symbol_file_free(m->file);
	m->renamed = true;
}

void namer_debug_file_came(struct namer *n, const uint8_t *build_id, size_t n_build_id, bool found)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < n->awaited.n; i++) {
		const struct awaited *a = &n->awaited.items[i];
		struct module *m = found ? find_module(n, a->uid) : NULL;

		if (a->n_build_id != n_build_id || memcmp(a->build_id, build_id, n_build_id) != 0)
			n->awaited.items[left++] = *a;
		else if (m)
			reopen_module(m);
	}
	n->awaited.n = left;
}

void namer_ask_again(struct namer *n, bool all)
{
	for (uint32_t i = 0; all && i < n->modules.n; i++)
		reopen_module(&n->modules.items[i]);
	for (uint32_t i = 0; i < n->awaited.n; i++) {
		struct module *m = find_module(n, n->awaited.items[i].uid);

		if (m)
			reopen_module(m);
	}
	array_clear(&n->awaited);
}

uint32_t namer_n_awaited(const struct namer *n)
{
	return n->awaited.n;
}

static int ask_split(struct namer *n, const char *path)
{
	struct message m = {.type = MESSAGE_ASK_SPLIT_FILE};

	message_set_text(m.ask_split_file.path, sizeof(m.ask_split_file.path), path);
	return ask_descriptor(n->ask, &m);
}

/* Where the compiler wrote it, else beside the program, where it may have been copied to. */
static int open_split(void *ctx, const char *path)
{
	struct namer *n = ctx;
	const char *program = n->reading->path ? n->reading->path : "";
	const char *slash = strrchr(program, '/'), *base = path ? strrchr(path, '/') : NULL;
	int n_dir = slash ? (int)(slash - program) : 0, fd = -1;
	char other[PROTOCOL_PATH_MAX];

	if (!path) {
		(void)snprintf(other, sizeof(other), "%s.dwp", program);
		return ask_split(n, other);
	}
	if (*path == '/') {
		fd = ask_split(n, path);
	} else if (slash) {
		(void)snprintf(other, sizeof(other), "%.*s/%s", n_dir, program, path);
		fd = ask_split(n, other);
	}
	if (fd >= 0 || !slash || !base)
		return fd;
	(void)snprintf(other, sizeof(other), "%.*s%s", n_dir, program, base);
	return ask_split(n, other);
}

static struct symbol_file *module_symbols(struct namer *n, struct module *m)
{
	n->reading = m;
	if (m->file || m->broken)
		return m->file;
	if (symbol_file_new_fd(&m->file, m->fd, &n->limits, open_debug, n) < 0)
		m->broken = true;
	else
		symbol_file_set_open_split(m->file, open_split, n);
	return m->file;
}

static int jit_lookup(struct namer *n, const struct profile *p, const struct profile_module *row,
		      uint64_t address, struct symbol *ret)
{
	const struct profile_process *process =
		row->process == PROFILE_NONE ? NULL : &p->processes.items[row->process];
	int r;

	if (!process)
		return 1;
	r = code_names_lookup(n->code, process->pid, process->start_time_unix_ns, address,
			      n->time_ns, ret);
	if (r == 0 && !n->lines) {
		ret->file = NULL;
		ret->line = ret->column = 0;
	}
	return r;
}

/* ---- Rows ---- */

static strid put_clean(struct profile *p, const char *text)
{
	char clean[4096];
	size_t len = text_clean(clean, sizeof(clean), text, sizeof(clean) - 1);

	return strtab_put_n(&p->strings, clean, len);
}

static uint32_t add_function(const struct namer *n, struct profile *p, const struct symbol *s,
			     strid file)
{
	_cleanup_free_ char *demangled = symbol_demangle(s->name, n->demangling);
	struct profile_function f = {
		.name = put_clean(p, demangled ? demangled : s->name),
		.system_name = put_clean(p, s->name),
		.file = file,
		.start_line = s->start_line,
		.module_name = s->module_name ? put_clean(p, s->module_name) : STRID_EMPTY,
		.language = strtab_put(&p->strings, s->language ? s->language : ""),
	};

	return profile_add_function(p, &f);
}

static uint32_t function_row(struct namer *n, struct profile *p, uint32_t module,
			     const struct symbol *s)
{
	strid file = s->file ? put_clean(p, s->file) : STRID_EMPTY;
	uint64_t hash =
		hash_combine(hash_combine(s->start, module), (uint64_t)file << 1 | s->inlined);
	uint32_t slot = hash_index_first(&n->function_index, hash), row;
	struct function_key *key;

	while ((row = hash_index_row(&n->function_index, slot)) != HASH_INDEX_NONE) {
		key = &n->functions.items[row];
		if (key->start == s->start && key->module == module && key->file == file &&
		    key->inlined == s->inlined)
			return key->function;
		slot = hash_index_next(&n->function_index, slot);
	}
	row = add_function(n, p, s, file);
	key = row == PROFILE_NONE ? NULL : array_push(&n->functions);
	if (key) {
		*key = (struct function_key){s->start, module, row, file, s->inlined};
		if (hash_index_add(&n->function_index, hash, n->functions.n - 1) < 0)
			n->functions.n--;
	}
	return row;
}

void namer_demangle_again(struct namer *n, struct profile *p)
{
	for (uint32_t i = 0; i < p->functions.n; i++) {
		struct profile_function *f = &p->functions.items[i];
		const char *linked = profile_text(p, f->system_name);
		_cleanup_free_ char *name = symbol_demangle(linked, SYMBOL_DEMANGLE_FULL);
		_cleanup_free_ char *wanted = symbol_demangle(linked, n->demangling);

		/* What is not mangled has the name that its recorder gave it. */
		if (name)
			f->name = put_clean(p, wanted ? wanted : linked);
	}
}

void namer_forget_rows(struct namer *n)
{
	array_clear(&n->functions);
	hash_index_clear(&n->function_index);
}

/* Whether lines are wanted, and the file's time lasts. */
static bool lines_allowed(const struct namer *n)
{
	return (n->lines || n->inlined) && n->lines_ns <= LINES_NS;
}

/* Inlined functions may be wanted without lines. */
static void strip_lines(const struct namer *n, struct symbol *chain, size_t n_chain)
{
	for (size_t i = 0; i < n_chain && !n->lines; i++) {
		chain[i].file = NULL;
		chain[i].line = chain[i].column = chain[i].start_line = 0;
	}
}

static int file_lookup(struct namer *n, struct symbol_file *file, uint64_t address,
		       struct symbol *chain, size_t *ret_n)
{
	uint64_t begin;
	int r;

	*ret_n = 1;
	if (!lines_allowed(n))
		return symbol_file_lookup(file, address, chain);
	begin = clock_monotonic_ns();
	r = symbol_file_lines(file, address, chain, n->inlined ? SYMBOL_MAX_CHAIN : 1, ret_n);
	n->lines_ns += clock_monotonic_ns() - begin;
	if (r == 0)
		strip_lines(n, chain, *ret_n);
	return r;
}

static int kernel_lookup(struct namer *n, uint64_t address, struct symbol *chain, size_t *ret_n)
{
	uint64_t begin = clock_monotonic_ns();
	int r;

	role_job_point(n->role, PROFILE_UID_KERNEL);
	r = kernel_names_lookup(n->kernel, address, lines_allowed(n), chain,
				n->inlined ? SYMBOL_MAX_CHAIN : 1, ret_n);
	n->lines_ns += clock_monotonic_ns() - begin;
	if (r == 0)
		strip_lines(n, chain, *ret_n);
	return r;
}

/* The functions at a frame's address, as symbol_file_lines() gives them. */
static int frame_lookup(struct namer *n, const struct profile *p, const struct profile_frame *f,
			struct symbol *chain, size_t *ret_n)
{
	const struct profile_module *row = &p->modules.items[f->module];
	struct symbol_file *file;
	struct module *m;

	*ret_n = 1;
	switch (row->kind) {
	case PROFILE_MODULE_KERNEL:
		return row->uid == PROFILE_UID_KERNEL ? kernel_lookup(n, f->address, chain, ret_n)
						      : 1;
	case PROFILE_MODULE_VDSO:
		return n->vdso && row->uid == PROFILE_UID_VDSO
			       ? symbol_file_lookup(n->vdso, f->address, chain)
			       : 1;
	case PROFILE_MODULE_JIT:
		return jit_lookup(n, p, row, f->address, chain);
	case PROFILE_MODULE_FILE:
		m = find_module(n, row->uid);
		file = m ? module_symbols(n, m) : NULL;
		return file ? file_lookup(n, file, f->address, chain, ret_n) : 1;
	default:
		return 1;
	}
}

static void name_frame(struct namer *n, struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	struct profile_line lines[SYMBOL_MAX_CHAIN];
	struct symbol chain[SYMBOL_MAX_CHAIN] = {0};
	size_t n_chain;

	if (frame_lookup(n, p, f, chain, &n_chain) != 0)
		return;
	for (size_t i = 0; i < n_chain; i++) {
		if (!chain[i].name || !chain[i].name[0])
			return;
		lines[i] =
			(struct profile_line){.function = function_row(n, p, f->module, &chain[i]),
					      .line = chain[i].line,
					      .column = chain[i].column};
		if (lines[i].function == PROFILE_NONE)
			return;
	}
	(void)profile_name_frame(p, frame, lines, (uint32_t)n_chain);
}

static void identify_module(struct namer *n, struct profile *p, uint32_t module)
{
	struct profile_module *row = &p->modules.items[module];
	struct module *m = row->kind == PROFILE_MODULE_FILE ? find_module(n, row->uid) : NULL;

	if (!m)
		return;
	m->used = n->turn;
	if (!m->identified) {
		m->identified = true;
		if (symbol_file_identify(m->fd, &m->id) < 0)
			m->id = (struct symbol_file_id){0};
	}
	if (row->htlhash != STRID_EMPTY)
		return;
	row->htlhash = strtab_put(&p->strings, m->id.htlhash);
	row->go_build_id = put_clean(p, m->id.go);
	row->language = strtab_put(&p->strings, m->id.language ? m->id.language : "");
	if (row->n_build_id == 0 && m->id.n_gnu <= PROFILE_MAX_BUILD_ID) {
		row->n_build_id = (uint32_t)m->id.n_gnu;
		memcpy(row->build_id, m->id.gnu, m->id.n_gnu);
	}
}

/* Tables beyond the budget go, the least recently used first; of a file, its lines first. */
static void trim_tables(struct namer *n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < n->modules.n; i++) {
		if (n->modules.items[i].file)
			total += symbol_file_bytes(n->modules.items[i].file);
	}
	for (int names = 0; names < 2; names++) {
		while (total > n->max_table_bytes) {
			struct module *oldest = NULL;

			for (uint32_t i = 0; i < n->modules.n; i++) {
				struct module *m = &n->modules.items[i];

				if (m->file &&
				    (names || symbol_file_line_bytes(m->file) > LINES_EMPTY) &&
				    (!oldest || m->used < oldest->used))
					oldest = m;
			}
			if (!oldest)
				break;
			total -= symbol_file_bytes(oldest->file);
			if (names) {
				oldest->file = symbol_file_free(oldest->file);
			} else {
				symbol_file_forget_lines(oldest->file);
				total += symbol_file_bytes(oldest->file);
			}
		}
	}
}

/* Frames without a name, grouped by module by counting: order[first[m] .. first[m + 1]). */
static uint32_t *group_by_module(const struct profile *p, uint32_t **ret_first)
{
	uint32_t *first = calloc((size_t)p->modules.n + 2, sizeof(*first));
	uint32_t *order = calloc((size_t)p->frames.n + 1, sizeof(*order));

	if (!first || !order) {
		free(first);
		free(order);
		return NULL;
	}
	for (uint32_t i = 0; i < p->frames.n; i++)
		first[p->frames.items[i].module + 2] += p->frames.items[i].n_lines == 0;
	for (uint32_t m = 2; m <= p->modules.n + 1; m++)
		first[m] += first[m - 1];
	/* Shifted by one: filling moves each start to where the next one began. */
	for (uint32_t i = 0; i < p->frames.n; i++) {
		if (p->frames.items[i].n_lines == 0)
			order[first[p->frames.items[i].module + 1]++] = i;
	}
	*ret_first = first;
	return order;
}

/* ---- Compiled code ---- */

/*
 * Memory of compiled code is used again, so what is at an address depends on the time. A window has
 * an address once: the function of its last sample there is taken.
 */
static bool find_times(struct namer *n, const struct profile *p)
{
	uint64_t unix_offset = clock_realtime_ns() - clock_monotonic_ns();

	if (n->times)
		return true;
	n->times = calloc((size_t)p->frames.n + 1, sizeof(*n->times));
	for (uint32_t i = n->first_sample; n->times && i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.items[i];
		uint64_t time_ns = s->time_unix_ns - unix_offset;
		const uint32_t *frames;
		uint32_t n_frames;

		frames = profile_stack_frames(p, s->stack, &n_frames);
		for (uint32_t k = 0; k < n_frames; k++) {
			if (n->times[frames[k]] < time_ns)
				n->times[frames[k]] = time_ns;
		}
	}
	return n->times;
}

static int compare_times(const void *a, const void *b, void *ctx)
{
	const uint64_t *times = ctx;
	uint64_t x = times[*(const uint32_t *)a], y = times[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static void name_code(struct namer *n, struct profile *p, uint32_t module, uint32_t *frames,
		      uint32_t n_frames)
{
	const struct profile_module *m = &p->modules.items[module];
	const struct profile_process *process =
		m->process == PROFILE_NONE ? NULL : &p->processes.items[m->process];

	if (n_frames && process && !n->recorded &&
	    code_names_have_times(n->code, process->pid, process->start_time_unix_ns) &&
	    find_times(n, p)) {
		qsort_r(frames, n_frames, sizeof(*frames), compare_times, n->times);
		for (uint32_t i = 0; i < n_frames; i++) {
			n->time_ns = n->times[frames[i]];
			name_frame(n, p, frames[i]);
		}
	}
	/* What was written down a moment after it had run, and code without times. */
	n->time_ns = UINT64_MAX;
	for (uint32_t i = 0; i < n_frames; i++) {
		if (p->frames.items[frames[i]].n_lines == 0)
			name_frame(n, p, frames[i]);
	}
}

/* ---- All of it ---- */

/* What was named before its debug file came. */
static void forget_outdated(struct namer *n, struct profile *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct profile_module *row = &p->modules.items[i];
		struct module *m =
			row->kind == PROFILE_MODULE_FILE ? find_module(n, row->uid) : NULL;

		if (!m || !m->renamed)
			continue;
		m->renamed = false;
		profile_forget_names(p, i);
		any = true;
	}
	if (any)
		namer_forget_rows(n);
}

/*
 * What can be read from the file again goes at once: the next file may be as large, and a daemon
 * waits for seconds with it otherwise.
 */
static void name_module(struct namer *n, struct profile *p, uint32_t module, uint32_t *frames,
			uint32_t n_frames)
{
	struct module *m;

	if (p->modules.items[module].kind == PROFILE_MODULE_JIT) {
		name_code(n, p, module, frames, n_frames);
		return;
	}
	n->lines_ns = 0;
	for (uint32_t i = 0; i < n_frames; i++)
		name_frame(n, p, frames[i]);
	m = n_frames && p->modules.items[module].kind == PROFILE_MODULE_FILE
		    ? find_module(n, p->modules.items[module].uid)
		    : NULL;
	if (n->lines_ns > LINES_NS)
		log_debug("%s: reading its source lines takes too long, some frames go without",
			  m && m->path ? m->path : "the kernel's debug file");
	if (m && m->file)
		symbol_file_trim(m->file);
	if (n_frames && p->modules.items[module].kind == PROFILE_MODULE_KERNEL)
		kernel_names_trim(n->kernel);
}

void namer_name(struct namer *n, struct profile *p, uint32_t first_sample)
{
	_cleanup_free_ uint32_t *first = NULL, *order = NULL;

	forget_outdated(n, p);
	order = group_by_module(p, &first);
	if (!order)
		return;
	n->turn++;
	n->first_sample = first_sample;
	code_names_refresh(n->code);
	for (uint32_t m = 0; m < p->modules.n; m++) {
		role_job_begin(n->role);
		if (p->modules.items[m].kind == PROFILE_MODULE_FILE)
			role_job_point(n->role, p->modules.items[m].uid);
		identify_module(n, p, m);
		name_module(n, p, m, order + first[m], first[m + 1] - first[m]);
		role_job_end(n->role);
	}
	free(n->times);
	n->times = NULL;
	trim_tables(n);
}
