/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/arch.h"
#include "runtimes/ruby-internal.h"

/* ---- Facts that are read once for each process ---- */

static struct ruby *own(struct interp *p)
{
	return (struct ruby *)p;
}

/* Its pointer to the VM; since 3.3 it is not exported, but a function that is begins with it. */
static bool find_vm(struct ruby *p)
{
	p->vm_variable = image_symbol(&p->base.image, "ruby_current_vm_ptr");
	if (!p->vm_variable)
		p->vm_variable = arch_loaded_variable(
			&p->base.memory, image_symbol(&p->base.image, "ruby_vm_at_exit"), 0);
	return p->vm_variable >= p->base.image.start && p->vm_variable < p->base.image.end;
}

static int read_image(struct ruby *p, const char **ret_why)
{
	int r = ruby_tables_read(&p->tables, &p->base.image, ret_why);

	if (r < 0)
		return r;
	(void)snprintf(p->base.release, sizeof(p->base.release), "%u.%u.%u", p->tables.major,
		       p->tables.minor, p->tables.micro);
	if (!find_vm(p)) {
		*ret_why = "its virtual machine cannot be found";
		return -ENOTSUP;
	}
	if (!memory_u64(&p->base.memory, p->vm_variable))
		return -EAGAIN;
	/* It walks over all names, and begins with a look at their table. */
	p->reads_it = image_symbol(&p->base.image, "rb_sym_all_symbols");
	return 0;
}

static struct memo *memo;

static int open_ruby(struct interp *i, const char **ret_why)
{
	struct ruby *p = own(i);
	int r = read_image(p, ret_why);

	if (r == 0)
		r = memo_join(&memo, sizeof(*p->memo), RUBY_MAX_TEXT, &p->owner);
	if (r < 0)
		return r;
	p->memo = (struct ruby_memo *)memo;
	i->texts = &memo->texts;
	return 0;
}

static void close_ruby(struct interp *i)
{
	if (own(i)->memo)
		memo_leave(&memo);
}

/* ---- For its user ---- */

static bool is_tried(const struct interp *i)
{
	return ((const struct ruby *)i)->tables.tried;
}

static void forget(struct interp *i)
{
	struct ruby_memo *m = own(i)->memo;

	memset(m->codes, 0, sizeof(m->codes));
	memset(m->strings, 0, sizeof(m->strings));
	memset(m->names, 0, sizeof(m->names));
	memset(m->paths, 0, sizeof(m->paths));
}

static enum chain_result walk(struct interp *i, const struct chained_thread *thread,
			      struct chained_frame *frames, size_t max, size_t *ret_n)
{
	uint64_t context = ruby_find_context(own(i), thread->tid, false);
	enum chain_result r;

	if (!context)
		return CHAIN_NO_THREAD;
	r = ruby_follow(own(i), context, frames, max, ret_n);
	if (r != CHAIN_NO_THREAD)
		return r;
	/* Ruby's thread has ended, and libc's serves the next one. */
	context = ruby_find_context(own(i), thread->tid, true);
	if (context)
		r = ruby_follow(own(i), context, frames, max, ret_n);
	return context && r == CHAIN_NO_THREAD ? CHAIN_UNPROVEN : r;
}

static void explain(const struct interp *i, FILE *out)
{
	const struct ruby *p = (const struct ruby *)i;

	(void)fprintf(out, "its virtual machine by %s\n",
		      image_symbol(&i->image, "ruby_current_vm_ptr")
			      ? "ruby_current_vm_ptr"
			      : "what ruby_vm_at_exit() loads");
	(void)fprintf(out, "names of methods that are written in C: %s\n",
		      p->symbols ? "by what rb_sym_all_symbols() loads" : "not found");
	(void)fprintf(out, "from the table for this minor version:\n");
	for (unsigned int v = 0; v < RB_N_VALUES; v++) {
		if (rb(p, v) >= 0)
			(void)fprintf(out, "  %-34s %d\n", ruby_value_name(v), rb(p, v));
		else
			(void)fprintf(out, "  %-34s not in this version\n", ruby_value_name(v));
	}
}

const struct interp_type ruby_type = {
	.name = "Ruby",
	.kind = RUNTIME_KIND_RUBY,
	.rules = {.callee_saves = true,
		  .changes_early = true,
		  .compiles = true,
		  .calls_compiled = true},
	.size = sizeof(struct ruby),
	.read_bytes = RUBY_FRAMES_BYTES,
	.open = open_ruby,
	.close = close_ruby,
	.is_tried = is_tried,
	.forget = forget,
	.walk = walk,
	.explain = explain,
};
