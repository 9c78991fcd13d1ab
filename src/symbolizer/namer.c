/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are named module by module, so that one symbol table is hot at a time and a file that
 * hangs or kills this process is the one the status page points to.
 *
 * Reading the lines of many units takes long, and windows must not wait for it: each file gets a
 * share of time in each window, beyond which its frames get names alone.
 *
 * In a daemon all naming has a quarter of the time, and one file a tenth. Files with the most
 * samples come first; the rest keep their addresses in this window, are counted, and get names when
 * they are sampled again. So an attacker with expensive files can cost no more than that time, and
 * delay the names of others for some windows. A capture wants every name, and has no such limit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/symbolizer/code-names.h"
#include "src/symbolizer/file-names.h"
#include "src/symbolizer/function-rows.h"
#include "src/symbolizer/kernel-names.h"
#include "src/symbolizer/namer.h"
#include "src/symbolizer/wanted.h"
#include "symbolize/symbolize.h"
#include "util/clock.h"
#include "util/file-identity.h"
#include "util/log.h"
#include "util/text.h"
#include "util/time-share.h"

#define VDSO_BYTES 8192
/* After this many windows, frames without a name are tried again: perhaps there was no memory
 * for a file's table, or no answer in time about its debug file. */
#define NAMELESS_WINDOWS 64
#define LINES_NS	 (1 * NSEC_PER_SEC) /* of the 3 s after which a file is set aside */
#define MAX_LINE_BYTES	 (UINT64_C(16) << 20)
#define NAMING_PERCENT	 25
#define SPARING_PERCENT	 1		     /* where CPU time is short */
#define MIN_SAVE_NS	 (10 * NSEC_PER_SEC) /* a first window, and what all have */
#define PUT_OFF_SECONDS	 60		     /* between two messages */

struct namer {
	uint64_t n_windows;
	bool limited; /* in time */
	struct time_share share;
	struct log_ratelimit put_off_told;
	uint64_t n_put_off; /* frames, in this window */
	struct role *role;
	struct ask *ask;
	struct symbol_limits limits;
	uint64_t max_table_bytes;
	bool lines, inlined;
	uint64_t lines_ns; /* taken by the file that is being read */
	struct file_names *files;
	struct code_names *code;
	bool recorded;	       /* the times of samples are not of this host's clock */
	uint64_t *times;       /* of frames, when they are wanted: last seen, CLOCK_MONOTONIC */
	uint32_t first_sample; /* of those to be named now */
	uint64_t time_ns;      /* at which the frame is looked up */
	struct kernel_names *kernel;
	struct file_identity kernel_file; /* all 0: it has none */
	bool kernel_renamed;		  /* its frames are to be named anew */
	struct symbol_file *vdso;
	struct function_rows functions;
	char data_name[512]; /* of the variable that was looked up last */
};

/* It is to blame for what reading it takes. */
static void point_to_kernel(const struct namer *n)
{
	if (n->kernel_file.ino)
		role_job_read(n->role, &n->kernel_file, "the kernel's debug file");
}

static int open_kernel_file(void *ctx, const uint8_t *build_id, size_t n_build_id, const char *path,
			    bool fetch)
{
	struct namer *n = ctx;
	struct message m = {.type = MESSAGE_ASK_DEBUG_FILE};
	int fd;

	m.ask_debug_file.n_build_id = (uint32_t)n_build_id;
	memcpy(m.ask_debug_file.build_id, build_id, n_build_id);
	message_set_text(m.ask_debug_file.path, sizeof(m.ask_debug_file.path), path);
	m.ask_debug_file.fetch = fetch;
	fd = ask_descriptor(n->ask, &m);
	if (fd >= 0 && file_identity_get(fd, &n->kernel_file) == 0)
		point_to_kernel(n);
	return fd;
}

int namer_new(struct namer **ret, struct role *role, struct ask *ask, uint64_t max_table_bytes,
	      uint32_t max_files, bool recorded, file_names_closed_fn closed, void *ctx)
{
	struct namer *n = calloc(1, sizeof(*n));
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (!n)
		return -ENOMEM;
	n->role = role;
	n->ask = ask;
	n->limits = (struct symbol_limits)SYMBOL_LIMITS_DEFAULT;
	n->max_table_bytes = max_table_bytes;
	function_rows_init(&n->functions);
	n->recorded = recorded;
	if (file_names_new(&n->files, role, ask, &n->limits, max_files, closed, ctx) < 0 ||
	    code_names_new(&n->code, role, &n->limits) < 0 ||
	    kernel_names_new(&n->kernel, &n->limits, open_kernel_file, n) < 0) {
		namer_free(n);
		return -ENOMEM;
	}
	if (vdso && symbol_file_new_memory(&n->vdso, vdso, VDSO_BYTES, &n->limits) < 0)
		log_debug("the vdso's symbols cannot be read");
	*ret = n;
	return 0;
}

struct namer *namer_free(struct namer *n)
{
	if (!n)
		return NULL;
	file_names_free(n->files);
	code_names_free(n->code);
	function_rows_deinit(&n->functions);
	kernel_names_free(n->kernel);
	symbol_file_free(n->vdso);
	free(n);
	return NULL;
}

/* ---- Sources ---- */

struct file_names *namer_files(struct namer *n)
{
	return n->files;
}

void namer_debug_file_came(struct namer *n, const uint8_t *build_id, size_t n_build_id, bool found)
{
	file_names_debug_file_came(n->files, build_id, n_build_id, found);
	n->kernel_renamed |= kernel_names_debug_file_came(n->kernel, build_id, n_build_id, found);
}

void namer_ask_again(struct namer *n, bool all)
{
	file_names_ask_again(n->files, all);
	n->kernel_renamed |= kernel_names_ask_again(n->kernel, all);
}

uint32_t namer_n_awaited(const struct namer *n)
{
	return file_names_n_awaited(n->files) + kernel_names_awaits(n->kernel);
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
	file_names_close(n->files);
	kernel_names_forget_file(n->kernel);
	return true;
}

bool namer_set_demangling(struct namer *n, enum symbol_demangling style)
{
	bool differs = n->functions.demangling != style;

	n->functions.demangling = style;
	return differs;
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

void namer_demangle_again(struct namer *n, struct profile *p)
{
	function_rows_demangle_again(&n->functions, p);
}

void namer_forget_rows(struct namer *n)
{
	function_rows_clear(&n->functions);
}

/* ---- Frames ---- */

/* Are lines wanted, and is there time left for the file? */
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
		return symbol_file_find(file, address, chain);
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

	r = kernel_names_lookup(n->kernel, address, lines_allowed(n), chain,
				n->inlined ? SYMBOL_MAX_CHAIN : 1, ret_n);
	n->lines_ns += clock_monotonic_ns() - begin;
	if (r == 0)
		strip_lines(n, chain, *ret_n);
	return r;
}

/* "[lock NAME+0x8]"; the tables of variables are read for each anew, for locks are few. */
static int data_lookup(struct namer *n, const struct profile_module *row, uint64_t address,
		       struct symbol *ret)
{
	char name[256];
	uint64_t start;
	int r = file_names_data(n->files, row->uid & ~PROFILE_UID_DATA, address, name, sizeof(name),
				&start);
	_cleanup_free_ char *demangled =
		r == 0 ? symbol_demangle(name, n->functions.demangling) : NULL;

	if (r != 0)
		return 1;
	(void)snprintf(n->data_name, sizeof(n->data_name),
		       address > start ? "[lock %s+0x%llx]" : "[lock %s]",
		       demangled ? demangled : name, (unsigned long long)(address - start));
	*ret = (struct symbol){.name = n->data_name, .start = address};
	return 0;
}

/* The functions at a frame's address, as symbol_file_lines() gives them. */
static int frame_lookup(struct namer *n, const struct profile *p, const struct profile_frame *f,
			struct symbol *chain, size_t *ret_n)
{
	const struct profile_module *row = &p->modules.items[f->module];
	struct symbol_file *file;

	*ret_n = 1;
	switch (row->kind) {
	case PROFILE_MODULE_KERNEL:
		return row->uid == PROFILE_UID_KERNEL ? kernel_lookup(n, f->address, chain, ret_n)
						      : 1;
	case PROFILE_MODULE_VDSO:
		return n->vdso && row->uid == PROFILE_UID_VDSO
			       ? symbol_file_find(n->vdso, f->address, chain)
			       : 1;
	case PROFILE_MODULE_JIT:
		return jit_lookup(n, p, row, f->address, chain);
	case PROFILE_MODULE_FILE:
		file = file_names_symbols(n->files, row->uid);
		return file ? file_lookup(n, file, f->address, chain, ret_n) : 1;
	case PROFILE_MODULE_DATA:
		return data_lookup(n, row, f->address, chain);
	default:
		return 1;
	}
}

static void name_frame(struct namer *n, struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.items[frame];
	struct profile_line lines[SYMBOL_MAX_CHAIN];
	struct symbol chain[SYMBOL_MAX_CHAIN];
	size_t n_chain;

	if (frame_lookup(n, p, f, chain, &n_chain) != 0) {
		/* Compiled code and the kernel's modules grow; a file does not. */
		if (p->modules.items[f->module].kind == PROFILE_MODULE_FILE &&
		    file_names_symbols(n->files, p->modules.items[f->module].uid))
			profile_set_nameless(p, frame);
		return;
	}
	for (size_t i = 0; i < n_chain; i++) {
		lines[i] = (struct profile_line){
			.function = function_rows_put(&n->functions, p, f->module, &chain[i]),
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
	const struct symbol_file_id *id =
		row->kind == PROFILE_MODULE_FILE ? file_names_identify(n->files, row->uid) : NULL;

	if (!id || row->htlhash != STRID_EMPTY)
		return;
	row->htlhash = strtab_put(&p->strings, id->htlhash);
	row->go_build_id = function_rows_clean(p, id->go);
	row->language = strtab_put(&p->strings, id->language ? id->language : "");
	if (row->n_build_id == 0 && id->n_gnu <= PROFILE_MAX_BUILD_ID) {
		row->n_build_id = (uint32_t)id->n_gnu;
		memcpy(row->build_id, id->gnu, id->n_gnu);
	}
}

/* ---- Compiled code ---- */

/*
 * JIT compilers reuse memory, so what is at an address depends on the time. A window has each
 * address once: it gets the function of its last sample there.
 */
static void note_time(struct namer *n, const struct profile *p, const struct profile_sample *s,
		      uint64_t unix_offset)
{
	uint64_t time_ns = s->time_unix_ns - unix_offset;
	uint32_t n_frames;
	const uint32_t *frames = profile_stack_frames(p, s->stack, &n_frames);

	for (uint32_t k = 0; k < n_frames; k++) {
		if (n->times[frames[k]] < time_ns)
			n->times[frames[k]] = time_ns;
	}
}

static bool find_times(struct namer *n, const struct profile *p)
{
	uint64_t unix_offset = clock_realtime_ns() - clock_monotonic_ns();

	if (n->times)
		return true;
	n->times = calloc((size_t)p->frames.n + 1, sizeof(*n->times));
	for (uint32_t type = 0; n->times && type < p->n_types; type++) {
		const struct profile_type *t = &p->types[type];

		for (uint32_t i = type == 0 ? n->first_sample : 0; i < t->samples.n; i++)
			note_time(n, p, &t->samples.items[i], unix_offset);
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

static bool is_outdated(struct namer *n, const struct profile_module *row)
{
	if (row->kind == PROFILE_MODULE_KERNEL)
		return n->kernel_renamed && row->uid == PROFILE_UID_KERNEL;
	return row->kind == PROFILE_MODULE_FILE && file_names_take_renamed(n->files, row->uid);
}

/* Another kernel module or BPF program may lie where one was before. Where there is nothing now,
 * samples keep the name they had. */
static void rename_kernel_modules(struct namer *n, struct profile *p)
{
	for (uint32_t i = 0; i < p->frames.n; i++) {
		const struct profile_frame *f = &p->frames.items[i];
		const struct profile_module *m = &p->modules.items[f->module];
		struct profile_line *line = f->n_lines ? &p->lines.items[f->first_line] : NULL;
		struct symbol s;
		uint32_t function;
		size_t n_chain;

		if (!line || m->kind != PROFILE_MODULE_KERNEL || m->uid != PROFILE_UID_KERNEL ||
		    p->functions.items[line->function].module_name == STRID_EMPTY ||
		    kernel_names_lookup(n->kernel, f->address, false, &s, 1, &n_chain) != 0)
			continue;
		function = function_rows_put(&n->functions, p, f->module, &s);
		if (function != PROFILE_NONE)
			line->function = function;
	}
}

/* What was named before its debug file came. */
static void forget_outdated(struct namer *n, struct profile *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct profile_module *row = &p->modules.items[i];

		if (!is_outdated(n, row))
			continue;
		profile_forget_names(p, i);
		any = true;
	}
	n->kernel_renamed = false;
	if (any)
		namer_forget_rows(n);
}

/* They keep their addresses: somebody wrote to the file while its names were read. */
static void unname(struct profile *p, const uint32_t *frames, uint32_t n_frames)
{
	for (uint32_t i = 0; i < n_frames; i++)
		p->frames.items[frames[i]].n_lines = p->frames.items[frames[i]].first_line = 0;
}

/*
 * Gives memory back at once where the file can be read again: the next file may be as large, and
 * the daemon would hold on to it for seconds.
 */
static void name_module(struct namer *n, struct profile *p, uint32_t module, uint32_t *frames,
			uint32_t n_frames)
{
	const struct profile_module *m = &p->modules.items[module];
	uint64_t refused = file_names_refused(n->files, m->uid);

	if (m->kind == PROFILE_MODULE_JIT) {
		name_code(n, p, module, frames, n_frames);
		if (n_frames)
			code_names_trim(n->code, n->max_table_bytes);
		return;
	}
	n->lines_ns = 0;
	for (uint32_t i = 0; i < n_frames; i++)
		name_frame(n, p, frames[i]);
	if (n_frames && m->kind == PROFILE_MODULE_FILE && file_names_changed(n->files, m->uid))
		unname(p, frames, n_frames);
	if (n->lines_ns > LINES_NS)
		log_debug("%s: reading its source lines takes too long; some frames lack them",
			  m->kind == PROFILE_MODULE_FILE ? file_names_path(n->files, m->uid)
							 : "the kernel's debug file");
	refused = file_names_refused(n->files, m->uid) - refused;
	if (refused)
		log_debug("%s: %llu of its symbols, tables or units are left out: too many, too "
			  "large or damaged",
			  file_names_path(n->files, m->uid), (unsigned long long)refused);
	/* The inflated names of one file may take as much as all tables together may, so they
	 * must not pile up until the window ends. */
	if (n_frames && m->kind == PROFILE_MODULE_FILE) {
		file_names_trim_file(n->files, m->uid);
		file_names_trim(n->files, 2 * n->max_table_bytes);
	}
	if (n_frames && m->kind == PROFILE_MODULE_KERNEL)
		kernel_names_trim(n->kernel);
}

static void begin_module(struct namer *n, const struct profile_module *m)
{
	role_job_begin(n->role);
	if (m->kind == PROFILE_MODULE_FILE || m->kind == PROFILE_MODULE_DATA)
		file_names_point(n->files, m->uid & ~PROFILE_UID_DATA);
	else if (m->kind == PROFILE_MODULE_KERNEL)
		point_to_kernel(n);
}

/* A module with many samples that is very expensive to name must not keep the others from being
 * named. */
static bool begin_share(struct namer *n, const struct profile_module *m)
{
	uint64_t now = clock_monotonic_ns();
	struct time_share *cost =
		m->kind == PROFILE_MODULE_FILE ? file_names_cost(n->files, m->uid) : NULL;

	return !n->limited ||
	       ((!cost || time_share_begin(cost, now)) && time_share_begin(&n->share, now));
}

static void end_share(struct namer *n, const struct profile_module *m)
{
	uint64_t now = clock_monotonic_ns();
	struct time_share *cost =
		m->kind == PROFILE_MODULE_FILE ? file_names_cost(n->files, m->uid) : NULL;

	if (n->limited && cost)
		time_share_end(cost, now);
	if (n->limited)
		time_share_end(&n->share, now);
}

static void put_off(struct namer *n, const struct profile_module *m, uint32_t n_frames)
{
	n->n_put_off += n_frames;
	if (log_ratelimit(&n->put_off_told, PUT_OFF_SECONDS))
		log_info("%s: reading its symbols takes too long; %u of its addresses and maybe "
			 "those of other files get their names in a later window",
			 m->kind == PROFILE_MODULE_FILE ? file_names_path(n->files, m->uid)
							: "compiled code or the kernel",
			 n_frames);
}

static void name_in_time(struct namer *n, struct profile *p, uint32_t module, uint32_t *frames,
			 uint32_t n_frames)
{
	const struct profile_module *m = &p->modules.items[module];

	begin_module(n, m);
	identify_module(n, p, module);
	if (n_frames && begin_share(n, m)) {
		name_module(n, p, module, frames, n_frames);
		end_share(n, m);
	} else if (n_frames) {
		put_off(n, m, n_frames);
	}
	role_job_end(n->role);
}

void namer_set_window(struct namer *n, uint64_t window_ns, bool sparing)
{
	n->limited = window_ns > 0;
	n->limits.keep_text = !n->limited;
	n->share.percent = sparing ? SPARING_PERCENT : NAMING_PERCENT;
	n->share.save_ns = window_ns > MIN_SAVE_NS ? window_ns : MIN_SAVE_NS;
}

uint64_t namer_n_put_off(const struct namer *n)
{
	return n->n_put_off;
}

void namer_name(struct namer *n, struct profile *p, uint32_t first_sample)
{
	_cleanup_(wanted_free) struct wanted w = {.n_modules = 0};

	forget_outdated(n, p);
	/* With samples of earlier windows the names of their time stay. */
	if (kernel_names_refresh(n->kernel, clock_monotonic_ns()) && first_sample == 0)
		rename_kernel_modules(n, p);
	if (++n->n_windows % NAMELESS_WINDOWS == 0)
		profile_retry_nameless(p);
	n->first_sample = first_sample;
	n->n_put_off = 0;
	if (!wanted_find(&w, p, n->first_sample, n->limited))
		return;
	file_names_begin(n->files);
	code_names_refresh(n->code);
	for (uint32_t i = 0; i < w.n_modules; i++) {
		uint32_t m = w.modules[i];

		name_in_time(n, p, m, w.frames + w.first[m], w.first[m + 1] - w.first[m]);
	}
	free(n->times);
	n->times = NULL;
	file_names_trim(n->files, n->max_table_bytes);
}
