/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of functions (.gopclntab), which every Go program keeps, stripped or not.
 *
 * It says what CFI cannot: which functions are the outermost of their stack (goexit, mstart,
 * rt0_go: CFI takes the garbage above them for a return address), which switch to another stack
 * somewhere (systemstack, mcall: after the switch the caller is not in the copy), and which the
 * runtime injected where the program was interrupted (asyncPreempt). Where .debug_frame was
 * stripped, its pc-sp table replaces it: the distance from sp to the return address at every pc.
 *
 * Addresses in the table (util/go-functions.h) are relative to the start of the code. Its header
 * gives that start up to Go 1.25, except in position-independent programs. Otherwise it must be
 * proven: in a file that only Go linked, .text begins there and the entry is the first byte of a
 * function; where a C linker has put its own code first (cgo), the runtime's moduledata gives it.
 */
#include "unwind/internal.h"
#include "util/go-functions.h"
#include "util/go-module.h"

enum {
	FLAG_TOP_FRAME = 1,
	FLAG_SP_WRITE = 2,
	FLAG_ASM = 4,
	MAX_PCSP_STEPS = 4096,
};

static bool is_named(const struct unwind_module *m, const struct go_function *f, const char *wanted)
{
	const struct go_functions *g = &m->go.functions;

	return strcmp(go_functions_string(g, g->names + f->name), wanted) == 0;
}

/* The runtime injects calls to these where a signal stopped the program (sigctxt.pushCall). */
static bool is_injected(const struct unwind_module *m, const struct go_function *f)
{
	return is_named(m, f, "runtime.asyncPreempt") || is_named(m, f, "runtime.sigpanic");
}

/* A signal handler returns to these. They leave the signal stack, which the table does not say.
 * Older runtimes use the first name. */
static bool is_sigreturn(const struct unwind_module *m, const struct go_function *f)
{
	return is_named(m, f, "runtime.sigreturn") ||
	       is_named(m, f, "runtime.sigreturn__sigaction");
}

/* How far sp is below its value at entry, and the range of pcs for which that holds. */
static bool run_pcsp(const struct unwind_module *m, const struct go_function *f, uint64_t vaddr,
		     struct go_value *ret)
{
	return go_functions_run(&m->go.functions, f, f->sp_program, vaddr, MAX_PCSP_STEPS, ret) &&
	       ret->value >= 0 && ret->value < INT32_MAX - 8;
}

/* sp: how far it is below its value at entry. */
static bool set_rule(struct rule *rule, const struct go_function *f, int32_t sp)
{
	rule->kind = RULE_SP;
	rule->ra_words = ARCH_RA_WORDS;
	rule->cfa_offset = ARCH_HAS_LR ? sp : sp + 8;
	if (!ARCH_HAS_LR && sp >= 8 && !(f->flags & FLAG_ASM)) {
		/* The compiler first pushes fp and points it there (cmd/internal/obj/x86); assembly
		 * may not. */
		rule->ra_words = RULE_RA_BEHIND_FP;
		rule->fp_words = -2;
	}
	if (ARCH_HAS_LR && sp > 0) {
		/* lr is saved at sp, and fp below it (cmd/internal/obj/arm64). */
		if (sp % 8 != 0 || sp / 8 >= INT16_MAX)
			return false;
		rule->ra_words = RULE_RA_BEHIND_FP;
		rule->fp_words = (int16_t)(-sp / 8 - 1);
	}
	if (ARCH_HAS_LR && !ARCH_GO_HAS_FP && sp > 0) {
		rule->ra_words = (int16_t)(-sp / 8);
		rule->fp_words = 0;
	}
	return true;
}

struct lookup {
	struct unwind_module *m;
	uint64_t vaddr;
	struct go_rule *ret;
};

static int look_up(void *arg)
{
	/* The caller is on another stack, and nothing says where. */
	static const struct rule nowhere = {.kind = RULE_OTHER_STACK, .cfa_offset = INT32_MIN};
	const struct lookup *l = arg;
	struct go_rule *ret = l->ret;
	struct go_function f;
	struct go_value sp;

	if (!go_functions_find(&l->m->go.functions, l->vaddr, &f))
		return -ENOENT;
	*ret = (struct go_rule){.start = f.start, .end = f.end};
	if (f.flags & FLAG_TOP_FRAME) {
		ret->rule.kind = RULE_END;
	} else if (is_sigreturn(l->m, &f)) {
		ret->rule = nowhere;
	} else if (!run_pcsp(l->m, &f, l->vaddr, &sp) || !set_rule(&ret->rule, &f, sp.value)) {
		if (!(f.flags & FLAG_SP_WRITE))
			return -ENOENT;
		ret->rule = nowhere;
	} else {
		ret->start = sp.start;
		ret->end = sp.end;
		if (f.flags & FLAG_SP_WRITE)
			ret->rule.kind = RULE_OTHER_STACK;
		else if (!ARCH_HAS_LR && is_injected(l->m, &f))
			ret->rule.kind = RULE_SP_TRAP;
	}
	return 0;
}

int go_table_find(struct unwind_module *m, uint64_t vaddr, struct go_rule *ret)
{
	struct lookup l = {m, vaddr, ret};
	int r;

	if (!m->go.usable)
		return -ENOENT;
	r = guard_run(look_up, &l);
	m->broken |= r == -EIO;
	return r;
}

/* Is [text, end of the last function) code of the file? */
static bool text_is_code(const struct unwind_module *m, uint64_t text)
{
	uint64_t first = go_functions_begin(&m->go.functions, 0);
	uint64_t end = go_functions_begin(&m->go.functions, m->go.functions.n_funcs);

	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];

		if (s->exec && text + first - s->vaddr < s->memsz && end > first &&
		    end - first <= s->memsz - (text + first - s->vaddr))
			return true;
	}
	return false;
}

/* With the code at `text`, is the program's entry the first byte of a function? */
static bool entry_is_function(const struct unwind_module *m, uint64_t text)
{
	uint64_t entry = m->entry - text;
	const struct go_functions *g = &m->go.functions;
	uint32_t i = entry < m->span ? go_functions_row(g, entry) : g->n_funcs;

	return i < g->n_funcs && go_functions_begin(g, i) == entry;
}

static int use_text(struct unwind_module *m, uint64_t text)
{
	if (!text_is_code(m, text))
		return -EBADMSG;
	m->go.functions.text = text;
	m->go.usable = true;
	return 0;
}

/* -ENOENT: nothing found yet says where the code begins. */
static int init(void *arg)
{
	struct unwind_module *m = arg;
	uint64_t text;

	if (!go_functions_read(&m->go.functions, m->go.table.data, m->go.table.n) ||
	    m->go.functions.quantum != ARCH_GO_QUANTUM)
		return -EBADMSG;
	text = m->go.functions.text;
	/* Only a C linker would have added .eh_frame. */
	if (text == 0 && !m->eh_frame.data.data && entry_is_function(m, m->go.section_text))
		text = m->go.section_text;
	return text ? use_text(m, text) : -ENOENT;
}

bool go_table_init(struct unwind_module *m)
{
	return m->go.table.data && guard_run(init, m) == -ENOENT;
}

struct table_search {
	const struct window *section;
	size_t at;
};

static int locate(void *arg)
{
	struct table_search *q = arg;

	q->at = go_module_find_table(q->section->data, q->section->n, q->section->addr);
	return 0;
}

size_t go_table_locate(struct unwind_module *m, const struct window *section)
{
	struct table_search q = {section, section->n};

	m->broken |= guard_run(locate, &q) == -EIO;
	return q.at;
}

struct module_search {
	struct unwind_module *m;
	const struct window *section;
	bool relocations;
};

static int use_module(void *arg)
{
	const struct module_search *q = arg;
	struct unwind_module *m = q->m;
	const struct window *w = q->section;
	const struct go_module_key key = {m->go.table.addr,
					  m->go.table.addr + m->go.functions.names,
					  go_functions_begin(&m->go.functions, 0)};
	struct go_module found;

	if (!(q->relocations
		      ? go_module_find_relocated(&key, w->data, w->n, ARCH_R_RELATIVE, &found)
		      : go_module_find(&key, w->data, w->n, w->addr, &found)))
		return -ENOENT;
	return use_text(m, found.words[GO_MODULE_TEXT]);
}

bool go_table_use_module(struct unwind_module *m, const struct window *section, bool relocations)
{
	struct module_search q = {m, section, relocations};

	return guard_run(use_module, &q) == 0;
}
