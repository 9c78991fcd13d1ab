/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows made without libdw against libdw, all over the files that every process has mapped. With
 * arguments: over those files.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>

#include "tests/unit/test.h"
#include "unwind/internal.h"

struct counts {
	uint64_t rows, compact, differ;
};

/* What the full rule, which libdw always makes, says in the compact form's words. */
static bool says_the_same(const struct row *row, const struct full_rule *f)
{
	const struct reg_rule *pc = &f->regs[ARCH_REG_PC], *fp = &f->regs[ARCH_REG_FP],
			      *sp = &f->regs[ARCH_REG_SP];
	const struct rule *rule = &row->rule;
	struct rule other = {.fp_words = rule->fp_words};

	if (row->start != f->start || row->end != f->end)
		return false;
	if (rule->kind == RULE_END)
		return pc->kind == REG_UNDEFINED;
	if (f->signal_frame || f->cfa.kind != REG_IS_CFA || f->cfa.value != rule->cfa_offset ||
	    f->cfa.reg != (rule->kind == RULE_SP ? ARCH_REG_SP : ARCH_REG_FP))
		return false;
	if (!compact_return_address(pc, &other) || other.ra_words != rule->ra_words ||
	    sp->kind != REG_IS_CFA || sp->value != 0)
		return false;
	return rule->fp_words ? fp->kind == REG_AT_CFA && fp->value == 8 * rule->fp_words
			      : fp->kind == REG_SAME;
}

static bool is_compact(const struct rule *rule)
{
	return rule->kind == RULE_SP || rule->kind == RULE_FP || rule->kind == RULE_END;
}

static void compare_row(struct unwind_module *m, uint64_t vaddr, const char *path, struct row *row,
			struct counts *c)
{
	static struct full_rule f;
	int r;

	cfi_compile_row(m, vaddr, row);
	r = cfi_compile_full(m, vaddr, &f);
	m->u->work = 0;
	if (r == -ENOENT || row->rule.kind == RULE_GUESS_FP)
		return; /* no CFI */
	c->rows++;
	if (r < 0 && row->rule.kind == RULE_BAD)
		return;
	if (!is_compact(&row->rule))
		return;
	c->compact++;
	if (r == 0 && says_the_same(row, &f))
		return;
	if (c->differ++ < 5)
		printf("%s: at %#" PRIx64 " kind %d CFA %d fp %d [%#x, %#x), libdw %d CFA kind %d "
		       "reg %d %d [%#x, %#x)\n",
		       path, vaddr, row->rule.kind, row->rule.cfa_offset, row->rule.fp_words,
		       row->start, row->end, r, f.cfa.kind, f.cfa.reg, f.cfa.value, f.start, f.end);
}

static void compare_file(struct unwinder *u, const char *path, struct counts *c)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(unwind_module_freep) struct unwind_module *m = NULL;
	uint64_t start, limit, offset;

	if (fd < 0 || unwind_module_new_fd(&m, u, fd, path) < 0)
		return;
	unwind_module_text(m, &start, &limit, &offset);
	for (uint64_t at = start; at < limit;) {
		struct row row;

		compare_row(m, at, path, &row, c);
		at = m->base + row.end > at ? m->base + row.end : at + 1;
	}
}

static int compare_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	void **args = arg;

	/* The small and the middling: all of libc, libdw, libelf, libz. */
	if (info->dlpi_name[0] == '/')
		compare_file(args[0], info->dlpi_name, args[1]);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(unwinder_freep) struct unwinder *u = NULL;
	struct counts c = {0};
	void *args[2];

	CHECK_INT(unwinder_new(&u, NULL), ==, 0);
	args[0] = u;
	args[1] = &c;
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			compare_file(u, argv[i], &c);
	} else {
		(void)dl_iterate_phdr(compare_loaded, args);
	}
	printf("%" PRIu64 " rows, %" PRIu64 " compact, %" PRIu64 " differ\n", c.rows, c.compact,
	       c.differ);
	CHECK_INT(c.rows, >, 1000);
	/* Nearly all of compilers' code is as simple as that. */
	CHECK_INT(c.compact, >, c.rows / 10 * 9);
	CHECK_INT(c.differ, ==, 0);
	return 0;
}
