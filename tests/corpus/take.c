/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records samples of a program for the unwinder's corpus (make.sh runs it):
 *
 *	take [-n SAMPLES] [-i MS] [-m MODULE] [-w MODULE] [-l LABEL] [-r] [-c] -o FILE -e EXPECTED
 *-- CMD...
 *
 * The program is run under ptrace. Between two `int3` instructions of a thread that thread is
 * stepped instruction by instruction; with -i all threads are stopped every so often instead. A
 * stop becomes a sample when its shape is new: the row of call-frame information that its pc is in,
 * and how the walk ended. -m: only with the pc in a module whose name begins so; -w: only with such
 * a module among the callers' ("[anonymous]" for code without a file). -r: what only libdw reads is
 * left out, for files without a search table, which it reads from end to end. -c: only stacks that
 * reach their entry.
 *
 * take-aarch64 does it with a program under qemu (take-qemu.c); -s: the address of the function
 * that is stepped through, hexadecimal, relative to where the program begins.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/corpus/take.h"
#include "util/clock.h"
#include "util/hash.h"

enum { MAX_SHAPES = 4096 };

/* ---- Is it worth keeping? ---- */

static bool is_module(struct take *t, uint64_t address, const char *prefix)
{
	struct unwind_mapping m;
	const char *name;

	if (!take_find(t, address, &m))
		return false;
	if (!m.module)
		return strcmp(prefix, "[anonymous]") == 0;
	name = strrchr(m.module->name, '/');
	return strncmp(name ? name + 1 : m.module->name, prefix, strlen(prefix)) == 0;
}

static bool is_wanted(struct take *t, const struct unwind_frame *frames, size_t n)
{
	bool among = !t->among, in_file = false;

	for (size_t i = 0; i < n && !in_file; i++)
		in_file = !is_module(t, frames[i].address, "[anonymous]");
	if (!in_file)
		return false;
	if (t->innermost && !is_module(t, frames[0].address, t->innermost))
		return false;
	for (size_t i = 1; i < n && !among; i++)
		among = is_module(t, frames[i].address, t->among);
	return among;
}

static void describe(struct take *t, struct take_sample *s)
{
	uint64_t pc = s->regs.r[ARCH_REG_PC];
	struct unwind_mapping m;
	static struct full_rule full;
	struct row row = {.start = 0};

	s->key = (uint64_t)s->outcome;
	s->special = true;
	if (!take_find(t, pc, &m) || !m.module || pc - m.bias - m.module->base >= m.module->span)
		return;
	t->u->work = 0;
	cfi_compile_row(m.module, pc - m.bias, &row);
	s->key ^= (uint64_t)m.module->id << 40 ^ (uint64_t)row.start << 8;
	/* Not from call-frame information, or not in a row's compact form. */
	s->special = (row.rule.kind != RULE_SP && row.rule.kind != RULE_FP) ||
		     cfi_compile_full(m.module, pc - m.bias, &full) != 0;
	/* Of stubs and the like each instruction is another case; an outermost function is one. */
	if (s->special && row.rule.kind != RULE_END)
		s->key ^= hash_u64(pc);
}

static bool is_known(const struct take *t, uint64_t key)
{
	for (uint32_t i = 0; i < t->samples.n; i++) {
		if (t->samples.items[i]->key == key)
			return true;
	}
	return false;
}

void take_look(struct take *t, pid_t pid, const struct proc_sample *taken)
{
	static struct unwind_frame frames[TAKE_MAX_FRAMES];
	static struct take_sample s;
	struct take_sample **kept;
	struct unwind_mapping m;
	size_t n;

	if (t->samples.n == MAX_SHAPES)
		return;
	if (t->last_maps >= 0)
		t->current = &t->maps.items[t->last_maps];
	/* The mappings change seldom; new code is noticed by its pc. */
	if (t->last_maps < 0 || t->interval_ns || !take_find(t, taken->regs.r[ARCH_REG_PC], &m))
		t->last_maps = take_maps_load(t, pid);
	if (t->last_maps < 0)
		return;
	t->current = &t->maps.items[t->last_maps];
	s = (struct take_sample){.regs = taken->regs, .n_copied = taken->n_stack};
	s.maps = (uint32_t)t->last_maps;
	s.outcome = unwind_walk(t->u, &s.regs, taken->stack, taken->n_stack, take_find, t, frames,
				TAKE_MAX_FRAMES, &n);
	if (n == 0 || !is_wanted(t, frames, n) ||
	    (t->complete_only && s.outcome != UNWIND_COMPLETE))
		return;
	describe(t, &s);
	if (is_known(t, s.key))
		return;
	s.stack = mmap(NULL, TAKE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	kept = array_push(&t->samples);
	if (!kept || s.stack == MAP_FAILED)
		abort();
	memcpy(s.stack, taken->stack, taken->n_stack);
	*kept = malloc(sizeof(s));
	**kept = s;
}

/* ---- The choice ---- */

/* All special rows before the plain ones, of either an even choice. */
static void choose(struct take *t)
{
	uint32_t n_special = 0, n = t->samples.n, max = t->max_samples, kept = 0;
	uint32_t quota[2], seen[2] = {0, 0}, taken[2] = {0, 0}, total[2];

	for (uint32_t i = 0; i < n; i++)
		n_special += t->samples.items[i]->special;
	total[1] = n_special;
	total[0] = n - n_special;
	quota[1] = n_special < max * 2 / 3 || total[0] == 0 ? n_special : max * 2 / 3;
	if (quota[1] > max)
		quota[1] = max;
	quota[0] = total[0] < max - quota[1] ? total[0] : max - quota[1];
	for (uint32_t i = 0; i < n; i++) {
		struct take_sample *s = t->samples.items[i];
		int k = s->special;

		/* The next one is due when its share of those seen is. */
		seen[k]++;
		if ((uint64_t)seen[k] * quota[k] >= (uint64_t)(taken[k] + 1) * total[k]) {
			taken[k]++;
			t->samples.items[kept++] = s;
		}
	}
	t->samples.n = kept;
}

static int usage(void)
{
	fprintf(stderr,
		"take [-n SAMPLES] [-i MS] [-m MODULE] [-w MODULE] [-l LABEL] [-s START] -o "
		"FILE -e EXPECTED -- CMD...\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct take t = {.max_samples = 20, .last_maps = -1};
	const char *out = NULL, *expect = NULL, *label = "";
	int option, e;

	while ((option = getopt(argc, argv, "+n:i:m:w:l:s:cro:e:")) != -1) {
		switch (option) {
		case 'n':
			t.max_samples = (uint32_t)atoi(optarg);
			break;
		case 'i':
			t.interval_ns = (uint64_t)atoi(optarg) * NSEC_PER_MSEC;
			break;
		case 'm':
			t.innermost = optarg;
			break;
		case 'w':
			t.among = optarg;
			break;
		case 'l':
			label = optarg;
			break;
		case 's':
			t.begin = strtoull(optarg, NULL, 16);
			break;
		case 'c':
			t.complete_only = true;
			break;
		case 'r':
			t.ours_only = true;
			break;
		case 'o':
			out = optarg;
			break;
		case 'e':
			expect = optarg;
			break;
		default:
			return usage();
		}
	}
	if (optind >= argc || !out || !expect)
		return usage();
	t.files.max = TOUCH_MAX_RANGES - 1;
	t.maps.max = MAX_SHAPES;
	t.samples.max = MAX_SHAPES;
	e = unwinder_new(&t.u, NULL);
	if (e == 0)
		e = take_run(&t, argv + optind);
	if (e < 0) {
		fprintf(stderr, "take: %s cannot be started: %s\n", argv[optind], strerror(-e));
		return 1;
	}
	e = (int)t.samples.n;
	choose(&t);
	fprintf(stderr, "%s: %" PRIu64 " instructions stepped, %d shapes, %u kept\n", label,
		t.steps, e, t.samples.n);
	if (t.samples.n == 0)
		return 1;
	/* So far mappings were looked at for the choice; now what the walks need counts. */
	for (uint32_t i = 0; i < t.maps.n; i++) {
		for (uint32_t k = 0; k < t.maps.items[i].lines.n; k++)
			t.maps.items[i].lines.items[k].wanted = false;
	}
	for (uint32_t i = 0; i < t.samples.n; i++)
		(void)take_cut(&t, t.samples.items[i]);
	e = take_write(&t, out, expect, label);
	if (e < 0)
		fprintf(stderr, "take: %s cannot be written\n", out);
	return e < 0;
}
