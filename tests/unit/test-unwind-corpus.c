/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corpus: every recorded sample of tests/data/unwind walked by us and by libdw, which sees the
 * same stack and the same slices of the binaries. Our frames must be the expected ones
 * (NAME.expect), and where libdw's are not the same, the bytes must show that libdw is wrong
 * (tests/corpus/judge.h). Where they do not, the file "differences" says what is known of it; there
 * may be few such.
 *
 *	test-unwind-corpus [FILE...]    these only
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/corpus/judge.h"
#include "tests/corpus/oracle.h"
#include "tests/corpus/relation.h"
#include "tests/unit/test.h"
#include "unwind/internal.h"
#include "unwind/recorded.h"

#ifdef UNWIND_AARCH64
#define CORPUS "tests/data/unwind/aarch64"
#else
#define CORPUS "tests/data/unwind"
#endif
enum {
	MAX_FRAMES = 512,
	MAX_TEXT = 1 << 18,
	PAGE = 4096,
	/* Of a thousand samples so many are walked as libdw does, or libdw is shown to be wrong. */
	MIN_RIGHT = ARCH_HAS_LR ? 990 : 999,
};

struct tally {
	uint64_t files, samples, frames, listed, unknown, judged;
	uint64_t verdicts[VERDICT_N];
	struct register_tally registers;
	uint64_t records; /* frame pointers other than libdw's that point at a caller's record */
	/* Samples with sp and pc alone, and how many have the same frames. */
	uint64_t blocked, as_far;
};

struct corpus {
	char name[64]; /* of the file, without its suffixes */
	struct unwinder *u;
	struct recorded *r;
	int fds[RECORDED_MAX_MODULES];
	char expected[MAX_TEXT], differences[MAX_TEXT];
	const char *at; /* in expected: the next line */
};

static struct tally total;
static const char *directory;

/* A file beside `path`. */
static void read_beside(const char *path, const char *name, char *text)
{
	const char *base = strrchr(path, '/');
	_cleanup_free_ char *other = NULL;
	FILE *f;
	size_t n;

	CHECK(asprintf(&other, "%.*s%s", base ? (int)(base + 1 - path) : 0, path, name) > 0);
	f = fopen(other, "re");
	CHECK(f != NULL);
	n = fread(text, 1, MAX_TEXT - 1, f);
	text[n] = '\0';
	(void)fclose(f);
}

/* ---- libdw ---- */

/* The binary as a file, with its holes. */
static int make_file(const struct recorded_module *m)
{
	static const uint8_t zeros[PAGE];
	int fd = memfd_create("module", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(ftruncate(fd, (off_t)m->size), ==, 0);
	for (uint64_t at = 0; at < m->size; at += PAGE) {
		size_t n = m->size - at < PAGE ? (size_t)(m->size - at) : PAGE;

		if (memcmp(m->image + at, zeros, n) != 0)
			CHECK_INT(pwrite(fd, m->image + at, n, (off_t)at), ==, (int64_t)n);
	}
	return fd;
}

static struct oracle *make_oracle(struct corpus *c, uint32_t maps)
{
	static char names[RECORDED_MAX_MODULES][16];
	const struct recorded_maps *of = &c->r->maps.items[maps];
	struct oracle *o = oracle_new();
	uint32_t n = 0;

	for (uint32_t i = of->first; i < of->first + of->n; i++) {
		const struct recorded_mapping *m = &c->r->mappings.items[i];
		bool again = false;

		for (uint32_t k = of->first; k < i; k++)
			again |= c->r->mappings.items[k].module == m->module &&
				 c->r->mappings.items[k].bias == m->bias;
		if (m->module >= c->r->modules.n || again || n == RECORDED_MAX_MODULES)
			continue;
		if (c->fds[m->module] < 0)
			c->fds[m->module] = make_file(&c->r->modules.items[m->module]);
		(void)snprintf(names[n], sizeof(names[n]), "%u", i);
		/* It does not take a file a second time where that would overlap the first. */
		(void)oracle_add(o,
				 &(struct oracle_module){names[n++], c->fds[m->module], m->bias});
	}
	oracle_ready(o);
	return o;
}

/* ---- What the bytes say ---- */

static bool find_mapping(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	const struct corpus *c = ctx;

	return recorded_find(c->r, pc, ret);
}

static bool read_code(void *ctx, uint64_t address, uint8_t *ret, size_t n)
{
	const struct corpus *c = ctx;
	const struct recorded_module *module;
	struct unwind_mapping m;
	uint64_t offset;

	if (!recorded_find(c->r, address, &m) || !m.module)
		return false;
	offset = address - m.start + c->r->mappings.items[m.tag].offset;
	module = &c->r->modules.items[c->r->mappings.items[m.tag].module];
	if (offset > module->size || module->size - offset < n)
		return false;
	memcpy(ret, module->image + offset, n);
	return true;
}

static struct judge make_judge(struct corpus *c, const struct recorded_sample *s)
{
	return (struct judge){&s->regs,	 s->stack, s->n_stack, find_mapping,
			      read_code, c,	   MAX_FRAMES};
}

/* The judge must not take a walk of libdw's, which is right, for wrong where ours is made so. */
static void check_judge(struct corpus *c, const struct recorded_sample *s, const uint64_t *right,
			size_t n)
{
	const struct judge j = make_judge(c, s);
	uint64_t wrong[MAX_FRAMES];

	/* Only where each frame is behind a call, so that it would have been shown to be right. */
	if (n < 2 || judge_walks(&j, right, n, UNWIND_COMPLETE, right, 1) != VERDICT_LOST_CALLERS)
		return;
	memcpy(wrong, right, n * sizeof(*wrong));
	CHECK_INT(judge_walks(&j, wrong, n - 1, UNWIND_COMPLETE, right, n), ==, VERDICT_UNDECIDED);
	wrong[n / 2]++;
	CHECK_INT(judge_walks(&j, wrong, n, UNWIND_COMPLETE, right, n), ==, VERDICT_UNDECIDED);
	total.judged++;
}

/* "NAME SAMPLE ..." in the list of differences. */
static bool is_listed(const struct corpus *c, uint32_t sample)
{
	char key[96];

	(void)snprintf(key, sizeof(key), "\n%s %u ", c->name, sample);
	return strstr(c->differences, key) != NULL;
}

/* ---- What is expected ---- */

static void check_line(struct corpus *c, const char *line)
{
	size_t n = strlen(line);

	/* Behind our text there may be a symbol's name, for people. */
	if (strncmp(c->at, line, n) != 0 || !strchr("\n ", c->at[n])) {
		fprintf(stderr, "%s: expected: %.*s\n%s: is:       %s\n", c->name,
			(int)strcspn(c->at, "\n"), c->at, c->name, line);
		exit(1);
	}
	c->at += strcspn(c->at, "\n");
	c->at += *c->at == '\n';
}

static void check_frame(struct corpus *c, const struct unwind_frame *f)
{
	uint32_t module = f->tag == UINT32_MAX ? 0 : c->r->mappings.items[f->tag].module;
	const char *path, *name;
	char line[512];

	if (f->tag == UINT32_MAX || module >= c->r->modules.n) {
		(void)snprintf(line, sizeof(line), "\t%s+%#" PRIx64,
			       f->tag == UINT32_MAX	      ? "[none]"
			       : module == RECORDED_ANONYMOUS ? "[anonymous]"
							      : "[missing]",
			       f->address);
	} else {
		path = c->r->modules.items[module].path;
		name = strrchr(path, '/');
		(void)snprintf(line, sizeof(line), "\t%s+%#" PRIx64, name ? name + 1 : path,
			       f->address - f->bias);
	}
	check_line(c, line);
}

/* libdw's answer when the sample was taken, for what it cannot be asked again; RELATION_N: ask. */
static enum relation recorded_relation(const struct corpus *c)
{
	char first[128];

	(void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(c->at, "\n"), c->at);
	for (int i = 0; i < RELATION_N && strstr(first, RELATION_OF_WHOLE_FILES); i++) {
		if (strstr(first, relation_names[i]))
			return (enum relation)i;
	}
	return RELATION_N;
}

/*
 * Whether a frame's fp points at { fp, return address } of it or of one of its callers. Go's CFI
 * does not say where rbp is saved, so libdw keeps what the innermost function had in it.
 */
static bool is_record(const struct recorded_sample *s, const struct unwind_frame *frames, size_t k,
		      size_t n)
{
	uint64_t at = frames[k].fp + 8 - s->regs.r[ARCH_REG_SP], ra;

	if (at >= s->n_stack || s->n_stack - at < sizeof(ra))
		return false;
	memcpy(&ra, s->stack + at, sizeof(ra));
	while (++k < n) {
		if (frames[k].address + 1 == (ra & ARCH_CODE_MASK))
			return true;
	}
	return false;
}

/*
 * libdw finds callers of aarch64 by frame records too, and then its registers are those of a frame
 * further out: sp is held against it on x86_64 alone.
 */
static void check_registers(void)
{
	const struct register_tally *t = &total.registers;

	register_tally_print(t);
	fprintf(stderr, "  %" PRIu64 " of the other fp point at a caller's record\n",
		total.records);
	if (!ARCH_HAS_LR)
		CHECK_INT(t->sp_other, ==, 0);
	/* The rest: the outermost frames of stacks that were cut, or that go on elsewhere. */
	CHECK_INT((t->fp_other - total.records) * 100, <=, t->frames * (ARCH_HAS_LR ? 2 : 1));
	CHECK_INT(t->fp_unknown * 100, <=, t->frames);
	CHECK_INT(t->fp_same * 100, >=, (t->frames - t->fp_ours_alone) * (ARCH_HAS_LR ? 75 : 95));
}

/* Of a thread that was blocked before anybody recorded its registers the kernel tells sp and pc.
 * Then the walk has the same frames, or fewer and says so. */
static void check_blocked(struct corpus *c, uint32_t i, const uint64_t *ours, size_t n)
{
	static struct unwind_frame frames[MAX_FRAMES];
	struct unwind_regs *regs = &c->r->samples.items[i].regs;
	const struct unwind_regs all = *regs;
	enum unwind_outcome outcome;
	size_t n_now, same = 0;

	regs->valid &= UNWIND_REG_BIT(ARCH_REG_SP) | UNWIND_REG_BIT(ARCH_REG_PC);
	outcome = recorded_walk(c->r, c->u, i, frames, MAX_FRAMES, &n_now);
	*regs = all;
	while (same < n && same < n_now && frames[same].address == ours[same])
		same++;
	if (same < n_now || (same < n && outcome == UNWIND_COMPLETE)) {
		fprintf(stderr,
			"%s: sample %u with sp and pc alone: %s, %zu of %zu frames are of %zu\n",
			c->name, i, unwind_outcome_name(outcome), same, n_now, n);
		exit(1);
	}
	total.blocked++;
	total.as_far += same == n;
}

static void check_sample(struct corpus *c, uint32_t i)
{
	static struct unwind_frame frames[MAX_FRAMES];
	static uint64_t ours[MAX_FRAMES], theirs[MAX_FRAMES];
	static struct oracle_registers registers[MAX_FRAMES];
	const struct recorded_sample *s = &c->r->samples.items[i];
	enum unwind_outcome outcome;
	enum relation relation, recorded;
	enum verdict verdict;
	struct judge judge;
	struct oracle *o;
	size_t n, n_theirs = 0, same = 0;
	char line[128];

	outcome = recorded_walk(c->r, c->u, i, frames, MAX_FRAMES, &n);
	for (size_t k = 0; k < n; k++)
		ours[k] = frames[k].address;
	check_blocked(c, i, ours, n);
	recorded = recorded_relation(c);
	relation = recorded;
	if (recorded == RELATION_N) {
		o = make_oracle(c, s->maps);
		(void)oracle_keep_registers(o, registers);
		n_theirs = oracle_walk(o, &s->regs, s->stack, s->n_stack, theirs, MAX_FRAMES);
		oracle_free(o);
		while (same < n && same < n_theirs && ours[same] == theirs[same])
			same++;
		register_tally_add(&total.registers, frames, registers, same);
		for (size_t k = 0; k < same; k++)
			total.records += registers[k].has_fp && frames[k].fp &&
					 registers[k].fp != frames[k].fp &&
					 is_record(s, frames, k, n);
		relation = relation_of(ours, n, theirs, n_theirs);
	}
	(void)snprintf(line, sizeof(line), "sample %u: %s, %s", i, unwind_outcome_name(outcome),
		       relation_names[relation]);
	check_line(c, line);
	for (size_t k = 0; k < n; k++)
		check_frame(c, &frames[k]);
	while (strncmp(c->at, "    ", 4) == 0) { /* libdw's, where they are others */
		c->at += strcspn(c->at, "\n");
		c->at += *c->at == '\n';
	}
	judge = make_judge(c, s);
	if (recorded == RELATION_N)
		verdict = judge_walks(&judge, ours, n, outcome, theirs, n_theirs);
	else
		verdict = recorded == RELATION_IDENTICAL ? VERDICT_IDENTICAL : VERDICT_UNDECIDED;
	if (recorded == RELATION_N && verdict == VERDICT_IDENTICAL)
		check_judge(c, s, theirs, n_theirs);
	total.samples++;
	total.frames += n;
	total.verdicts[verdict]++;
	if (verdict == VERDICT_UNDECIDED && is_listed(c, i)) {
		total.listed++;
	} else if (verdict == VERDICT_UNDECIDED) {
		fprintf(stderr, "%s: sample %u: %s, and the bytes do not show that ours is right\n",
			c->name, i, relation_names[relation]);
		total.unknown++;
	} else if (is_listed(c, i)) {
		fprintf(stderr, "%s: sample %u is listed in differences: %s\n", c->name, i,
			verdict_names[verdict]);
		total.unknown++;
	}
}

/* ---- Files ---- */

static void check_file(const char *path)
{
	static struct corpus corpus;
	struct corpus *c = &corpus;
	const char *base = strrchr(path, '/');
	char error[RECORDED_ERROR_MAX], expected[80];
	int fd = open(path, O_RDONLY | O_CLOEXEC), e;

	CHECK_INT(fd, >=, 0);
	base = base ? base + 1 : path;
	(void)snprintf(c->name, sizeof(c->name), "%.*s", (int)strcspn(base, "."), base);
	(void)snprintf(expected, sizeof(expected), "%.63s.expect", c->name);
	read_beside(path, expected, c->expected);
	c->at = c->expected;
	read_beside(path, "differences", c->differences);
	CHECK_INT(unwinder_new(&c->u, NULL), ==, 0);
	e = recorded_read(&c->r, fd, error);
	if (e < 0)
		fprintf(stderr, "%s: %s\n", path, error);
	CHECK_INT(e, ==, 0);
	(void)close(fd);
	CHECK_INT(recorded_open(c->r, c->u), ==, 0);
	for (uint32_t i = 0; i < c->r->modules.n; i++)
		c->fds[i] = -1;
	for (uint32_t i = 0; i < c->r->samples.n; i++)
		check_sample(c, i);
	CHECK_INT(*c->at, ==, '\0');
	for (uint32_t i = 0; i < c->r->modules.n; i++)
		(void)close_fd(c->fds[i]);
	c->r = recorded_free(c->r);
	c->u = unwinder_free(c->u);
	total.files++;
}

static int is_samples(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 11 && strcmp(d->d_name + n - 11, ".samples.gz") == 0;
}

static void check_directory(void)
{
	struct dirent **names;
	int n = scandir(directory, &names, is_samples, alphasort);

	CHECK_INT(n, >, 0);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = NULL;

		CHECK(asprintf(&path, "%s/%s", directory, names[i]->d_name) > 0);
		check_file(path);
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir");
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" CORPUS, srcdir ? srcdir : ".");
	directory = path;
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			check_file(argv[i]);
	} else {
		check_directory();
	}
	fprintf(stderr, "%" PRIu64 " files, %" PRIu64 " samples, %" PRIu64 " frames:\n",
		total.files, total.samples, total.frames);
	for (int i = 0; i < VERDICT_N; i++)
		fprintf(stderr, "%8" PRIu64 " %s\n", total.verdicts[i], verdict_names[i]);
	fprintf(stderr, "%8" PRIu64 " of them listed\n", total.listed);
	fprintf(stderr, "%8" PRIu64 " made wrong, and seen to be\n", total.judged);
	fprintf(stderr, "%8" PRIu64 " of %" PRIu64 " with sp and pc alone have the same frames\n",
		total.as_far, total.blocked);
	if (argc > 1)
		return total.unknown ? 1 : 0;
	CHECK_INT(total.judged * 4, >=, total.verdicts[VERDICT_IDENTICAL]);
	/* The others are in functions that keep a frame pointer, or their return address in lr. */
	CHECK_INT(total.as_far * 5, >=, total.blocked * (ARCH_HAS_LR ? 2 : 3));
	CHECK_INT((total.samples - total.verdicts[VERDICT_UNDECIDED]) * 1000, >=,
		  total.samples * MIN_RIGHT);
	check_registers();
	return total.unknown ? 1 : 0;
}
