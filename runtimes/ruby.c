/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/arch.h"
#include "runtimes/ruby-internal.h"

enum {
	OPEN_READS = 20000, /* real ones: 200 */
	OPEN_BYTES = 4 << 20,
};

/* ---- Recognising ---- */

int ruby_rank(const char *path)
{
	static const char library[] = "libruby", program[] = "ruby";
	const char *name = strrchr(path, '/');

	if (!name)
		return 0;
	name++;
	if (strncmp(name, library, sizeof(library) - 1) == 0) {
		name += sizeof(library) - 1;
		name += strspn(name, "-0123456789.");
		/* The dot in front of "so" counts as one of the version. */
		return strncmp(name - 1, ".so", 3) == 0 ? 2 : 0;
	}
	if (strncmp(name, program, sizeof(program) - 1) != 0)
		return 0;
	name += sizeof(program) - 1;
	return name[strspn(name, "0123456789.")] == '\0' ? 1 : 0;
}

/* ---- What is learned of a process once ---- */

/* Its pointer to the VM; since 3.3 it is not exported, but a function that is begins with it. */
static bool find_vm(struct ruby *p)
{
	p->vm_variable = image_symbol(&p->image, "ruby_current_vm_ptr");
	if (!p->vm_variable)
		p->vm_variable = arch_loaded_variable(
			&p->memory, image_symbol(&p->image, "ruby_vm_at_exit"), 0);
	return p->vm_variable >= p->image.start && p->vm_variable < p->image.end;
}

static int read_image(struct ruby *p, uint64_t image, const char **ret_why)
{
	int r;

	if (!image_open(&p->image, &p->memory, image))
		return -ENOENT;
	r = ruby_tables_read(&p->tables, &p->image, ret_why);
	if (r < 0)
		return r;
	(void)snprintf(p->release, sizeof(p->release), "%u.%u.%u", p->tables.major, p->tables.minor,
		       p->tables.micro);
	if (!find_vm(p)) {
		*ret_why = "where its virtual machine is cannot be found";
		return -ENOTSUP;
	}
	if (!memory_u64(&p->memory, p->vm_variable))
		return -EAGAIN;
	ruby_find_symbols(p);
	return 0;
}

int ruby_new(struct ruby **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	_cleanup_(ruby_freep) struct ruby *p = calloc(1, sizeof(*p));
	int r;

	*ret_why = "";
	if (!p)
		return -ENOMEM;
	p->memory = *memory;
	strtab_init(&p->texts, RUBY_MAX_TEXT);
	ruby_begin(p, OPEN_READS, OPEN_BYTES);
	r = read_image(p, image, ret_why);
	if (r < 0)
		return r;
	p->codes = calloc(RUBY_N_CODES, sizeof(*p->codes));
	p->strings = calloc(RUBY_N_STRINGS, sizeof(*p->strings));
	p->lines = calloc(RUBY_N_LINES, sizeof(*p->lines));
	p->frames = malloc(RUBY_FRAMES_BYTES);
	if (!p->codes || !p->strings || !p->lines || !p->frames)
		return -ENOMEM;
	*ret = TAKE_PTR(p);
	return 0;
}

struct ruby *ruby_free(struct ruby *p)
{
	if (p) {
		strtab_deinit(&p->texts);
		free(p->codes);
		free(p->strings);
		free(p->lines);
		free(p->frames);
		free(p);
	}
	return NULL;
}

/* ---- For its user ---- */

const char *ruby_release(const struct ruby *p)
{
	return p->release;
}

bool ruby_is_tried(const struct ruby *p)
{
	return p->tables.major == 2 || p->tables.minor == 1 || p->tables.minor == 3;
}

const char *ruby_text(const struct ruby *p, strid id)
{
	return strtab_get(&p->texts, id);
}

const struct ruby_stats *ruby_stats(const struct ruby *p)
{
	return &p->stats;
}

void ruby_begin(struct ruby *p, uint32_t reads, uint64_t bytes)
{
	p->memory.reads_left = reads;
	p->memory.bytes_left = bytes;
	/* Frames of a walk refer to it: room is made between walks. */
	if (p->codes &&
	    (strtab_bytes(&p->texts) > RUBY_MAX_TEXT * 3 / 4 || p->texts.n_refused > 0)) {
		memset(p->codes, 0, RUBY_N_CODES * sizeof(*p->codes));
		memset(p->strings, 0, RUBY_N_STRINGS * sizeof(*p->strings));
		strtab_clear(&p->texts);
		p->texts.n_refused = 0;
	}
}

enum chain_result ruby_walk(struct ruby *p, const struct chained_thread *thread,
			    struct chained_frame *frames, size_t max, size_t *ret_n)
{
	uint32_t reads = p->memory.reads_left;
	uint64_t bytes = p->memory.bytes_left, context;
	enum chain_result r = CHAIN_NO_THREAD;

	*ret_n = 0;
	p->walk++;
	context = ruby_find_context(p, thread->tid);
	if (context)
		r = ruby_follow(p, context, frames, max < CHAIN_MAX_FRAMES ? max : CHAIN_MAX_FRAMES,
				ret_n);
	if (r == CHAIN_WHOLE && *ret_n == 0)
		r = CHAIN_NO_THREAD;
	if (r != CHAIN_WHOLE && r != CHAIN_CUT &&
	    (p->memory.reads_left == 0 || p->memory.bytes_left < RUBY_FRAMES_BYTES))
		r = CHAIN_SPENT;
	p->stats.walks++;
	p->stats.results[r]++;
	p->stats.reads += reads - p->memory.reads_left;
	p->stats.bytes += bytes - p->memory.bytes_left;
	return r;
}

bool ruby_eval_range(const struct ruby *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return eval_code_range(&p->eval, i, ret_start, ret_end);
}

void ruby_explain(const struct ruby *p, FILE *out)
{
	(void)fprintf(out, "Ruby %s%s\n", p->release,
		      ruby_is_tried(p) ? "" : " (untested version)");
	(void)fprintf(out, "its image at %#" PRIx64 "\n", p->image.base);
	eval_code_explain(&p->eval, &p->image, out);
	(void)fprintf(out, "its virtual machine by %s\n",
		      image_symbol(&p->image, "ruby_current_vm_ptr")
			      ? "ruby_current_vm_ptr"
			      : "what ruby_vm_at_exit() loads");
	(void)fprintf(out, "names of methods that are written in C: %s\n",
		      p->symbols ? "by what rb_sym_all_symbols() loads" : "not found");
	(void)fprintf(out, "from the table for this minor version:\n");
	for (unsigned int i = 0; i < RB_N_VALUES; i++) {
		if (rb(p, i) >= 0)
			(void)fprintf(out, "  %-34s %d\n", ruby_value_name(i), rb(p, i));
		else
			(void)fprintf(out, "  %-34s not in this version\n", ruby_value_name(i));
	}
}
