/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of functions (.gopclntab), which every Go program keeps, stripped or not.
 *
 * It says what CFI cannot: which functions are the outermost of their stack (goexit, mstart,
 * rt0_go: above them lies garbage that looks like a return address to CFI), which move to another
 * stack somewhere (systemstack, mcall: behind that place the caller is not in the copy), and which
 * were put in where the program was interrupted (asyncPreempt). And where .debug_frame was
 * stripped, its pc-sp table is as good: the distance from sp to the return address at every pc.
 *
 * Formats of Go 1.18 (magic ..f0) and 1.20 (..f1) on, runtime/symtab.go and runtime2.go. The table
 * holds offsets from runtime.text. Where that is, its head says until 1.25, but not in programs
 * that are position independent. Otherwise it must be proven: in a file that Go alone has linked,
 * .text begins there and the entry is the first byte of a function; where a C linker has put its
 * own code in front (cgo), the runtime's moduledata says it.
 */
#include "unwind/internal.h"
#include "util/go-module.h"

enum {
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	HEADER_BYTES = 72,
	FUNC_FIXED_BYTES = 44,
	FLAG_TOP_FRAME = 1,
	FLAG_SP_WRITE = 2,
	FLAG_ASM = 4,
	MAX_PCSP_STEPS = 4096,
};

struct go_func {
	uint64_t entry, end;
	uint32_t name, pcsp;
	uint8_t flags;
};

static struct cursor at_offset(const struct unwind_module *m, uint64_t offset)
{
	const struct window *w = &m->go.table;

	if (offset > w->n)
		offset = w->n;
	return cursor_make(w->data + offset, w->n - (size_t)offset);
}

static uint32_t table_u32(const struct unwind_module *m, uint64_t offset)
{
	struct cursor c = at_offset(m, offset);

	return cursor_u32(&c);
}

/* Index of the last function that begins at or before offset; n_funcs: none. */
static uint32_t find_index(const struct unwind_module *m, uint32_t offset)
{
	uint32_t low = 0, high = m->go.n_funcs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (table_u32(m, m->go.funcs + (uint64_t)mid * 8) <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? m->go.n_funcs : low - 1;
}

static bool find_func(const struct unwind_module *m, uint64_t vaddr, struct go_func *ret)
{
	uint64_t offset = vaddr - m->go.text, at;
	uint32_t i, entry, end;

	if (offset >= m->span)
		return false;
	i = find_index(m, (uint32_t)offset);
	if (i == m->go.n_funcs)
		return false;
	entry = table_u32(m, m->go.funcs + (uint64_t)i * 8);
	end = table_u32(m, m->go.funcs + (uint64_t)(i + 1) * 8);
	at = m->go.funcs + table_u32(m, m->go.funcs + (uint64_t)i * 8 + 4);
	if (offset >= end || table_u32(m, at) != entry || at + FUNC_FIXED_BYTES > m->go.table.n)
		return false;
	*ret = (struct go_func){
		.entry = m->go.text + entry,
		.end = m->go.text + end,
		.name = table_u32(m, at + 4),
		.pcsp = table_u32(m, at + 16),
		.flags = m->go.table.data[at + (m->go.magic == MAGIC_118 ? 37 : 41)]};
	return true;
}

static bool is_named(const struct unwind_module *m, const struct go_func *f, const char *wanted)
{
	struct cursor c = at_offset(m, (uint64_t)m->go.names + f->name);
	const char *name = cursor_string(&c);

	return name && strcmp(name, wanted) == 0;
}

/* The runtime puts calls of these in where a signal stopped the program (sigctxt.pushCall). */
static bool is_injected(const struct unwind_module *m, const struct go_func *f)
{
	return is_named(m, f, "runtime.asyncPreempt") || is_named(m, f, "runtime.sigpanic");
}

/* What a signal handler returns to: it leaves the signal stack, and the table does not say so. The
 * first name is that of older runtimes. */
static bool is_sigreturn(const struct unwind_module *m, const struct go_func *f)
{
	return is_named(m, f, "runtime.sigreturn") ||
	       is_named(m, f, "runtime.sigreturn__sigaction");
}

/* Runs the pc-sp table: sp's distance from where it was at entry, and the pcs it holds for. */
static bool run_pcsp(const struct unwind_module *m, const struct go_func *f, uint64_t vaddr,
		     int32_t *ret, uint64_t *start, uint64_t *end)
{
	struct cursor c = at_offset(m, (uint64_t)m->go.pctab + f->pcsp);
	uint64_t pc = f->entry, delta, value;
	int64_t sp = -1;

	if (f->pcsp == 0)
		return false;
	for (unsigned int i = 0; i < MAX_PCSP_STEPS; i++) {
		if (!leb_read_u(&c, &value) || (value == 0 && i > 0) || !leb_read_u(&c, &delta) ||
		    value > UINT32_MAX || delta > UINT32_MAX)
			return false;
		sp += value & 1 ? -(int64_t)(value >> 1) - 1 : (int64_t)(value >> 1);
		*start = pc;
		pc += delta * ARCH_GO_QUANTUM;
		if (vaddr < pc) {
			*end = pc < f->end ? pc : f->end;
			*ret = (int32_t)sp;
			return sp >= 0 && sp < INT32_MAX - 8;
		}
	}
	return false;
}

/* sp: how far it is below where it was at entry. */
static bool set_rule(struct rule *rule, const struct go_func *f, int32_t sp)
{
	rule->kind = RULE_SP;
	rule->ra_words = ARCH_RA_WORDS;
	rule->cfa_offset = ARCH_HAS_LR ? sp : sp + 8;
	if (!ARCH_HAS_LR && sp >= 8 && !(f->flags & FLAG_ASM)) {
		/* First of all the compiler pushes fp, and lets it point there
		 * (cmd/internal/obj/x86); what is written by hand may not. */
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
	return true;
}

struct lookup {
	struct unwind_module *m;
	uint64_t vaddr;
	struct go_rule *ret;
};

static int look_up(void *arg)
{
	/* On another stack, and no way there. */
	static const struct rule nowhere = {.kind = RULE_OTHER_STACK, .cfa_offset = INT32_MIN};
	const struct lookup *l = arg;
	struct go_rule *ret = l->ret;
	struct go_func f;
	int32_t sp;

	if (!find_func(l->m, l->vaddr, &f))
		return -ENOENT;
	*ret = (struct go_rule){.start = f.entry, .end = f.end};
	if (f.flags & FLAG_TOP_FRAME) {
		ret->rule.kind = RULE_END;
	} else if (is_sigreturn(l->m, &f)) {
		ret->rule = nowhere;
	} else if (!run_pcsp(l->m, &f, l->vaddr, &sp, &ret->start, &ret->end) ||
		   !set_rule(&ret->rule, &f, sp)) {
		if (!(f.flags & FLAG_SP_WRITE))
			return -ENOENT;
		*ret = (struct go_rule){f.entry, f.end, nowhere};
	} else if (f.flags & FLAG_SP_WRITE) {
		ret->rule.kind = RULE_OTHER_STACK;
	} else if (!ARCH_HAS_LR && is_injected(l->m, &f)) {
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

/* *ret_text: 0: it does not say. */
static int read_header(struct unwind_module *m, uint64_t *ret_text)
{
	struct cursor c = at_offset(m, 0);
	uint64_t n_funcs, names, pctab, funcs;

	m->go.magic = cursor_u32(&c);
	if ((m->go.magic != MAGIC_118 && m->go.magic != MAGIC_120) || cursor_u16(&c) != 0 ||
	    cursor_u8(&c) != ARCH_GO_QUANTUM || cursor_u8(&c) != 8)
		return -EBADMSG;
	n_funcs = cursor_u64(&c);
	(void)cursor_u64(&c); /* files */
	*ret_text = cursor_u64(&c);
	names = cursor_u64(&c);
	(void)cursor_take(&c, 2 * 8); /* compile units, files */
	pctab = cursor_u64(&c);
	funcs = cursor_u64(&c);
	if (!cursor_ok(&c) || names >= m->go.table.n || pctab >= m->go.table.n ||
	    funcs >= m->go.table.n || n_funcs == 0 || n_funcs >= (m->go.table.n - funcs) / 8)
		return -EBADMSG;
	m->go.names = (uint32_t)names;
	m->go.pctab = (uint32_t)pctab;
	m->go.funcs = (uint32_t)funcs;
	m->go.n_funcs = (uint32_t)n_funcs;
	return 0;
}

/* Code between here and there: from the first function's begin to the last one's end. */
static bool text_is_code(const struct unwind_module *m, uint64_t text)
{
	uint64_t first = table_u32(m, m->go.funcs);
	uint64_t end = table_u32(m, m->go.funcs + (uint64_t)m->go.n_funcs * 8);

	for (uint32_t i = 0; i < m->n_segments; i++) {
		const struct segment *s = &m->segments[i];

		if (s->exec && text + first - s->vaddr < s->memsz && end > first &&
		    end - first <= s->memsz - (text + first - s->vaddr))
			return true;
	}
	return false;
}

/* The entry is the first byte of a function there. */
static bool entry_is_function(const struct unwind_module *m, uint64_t text)
{
	uint64_t entry = m->entry - text;
	uint32_t i = entry < m->span ? find_index(m, (uint32_t)entry) : m->go.n_funcs;

	return i < m->go.n_funcs && table_u32(m, m->go.funcs + (uint64_t)i * 8) == entry;
}

static int use_text(struct unwind_module *m, uint64_t text)
{
	if (!text_is_code(m, text))
		return -EBADMSG;
	m->go.text = text;
	m->go.usable = true;
	return 0;
}

/* -ENOENT: what is here does not say where the code begins. */
static int init(void *arg)
{
	struct unwind_module *m = arg;
	uint64_t text;
	int r = read_header(m, &text);

	if (r < 0)
		return r;
	/* A C linker brings .eh_frame into the file. */
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
	const struct go_module_key key = {m->go.table.addr, m->go.table.addr + m->go.names,
					  table_u32(m, m->go.funcs)};
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
