/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corpus: every recorded sample of tests/data/unwind walked by us and by libdw, which sees the
 * same stack and the same slices of the binaries. Our frames must be the expected ones
 *(NAME.expect), and where libdw's are not the same, either the bytes show that ours are right, or
 *the file "differences" says what is known of it.
 *
 *	test-unwind-corpus [FILE...]    these only
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
enum { MAX_FRAMES = 512, MAX_TEXT = 1 << 18, PAGE = 4096 };

struct tally {
	uint64_t files, samples, frames, listed, proven, unknown;
	uint64_t relations[RELATION_N];
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

/* Is the instruction that ends just behind `last` a call? */
static bool is_call(struct corpus *c, uint64_t last)
{
	const struct recorded_module *module;
	struct unwind_mapping m;
	const uint8_t *end;
	uint64_t offset;

	if (!recorded_find(c->r, last, &m) || !m.module)
		return false;
	offset = last - m.start + c->r->mappings.items[m.tag].offset + 1;
	module = &c->r->modules.items[c->r->mappings.items[m.tag].module];
	if (offset < 8 || offset > module->size)
		return false;
	end = module->image + offset;
#ifdef UNWIND_AARCH64
	uint32_t insn;

	memcpy(&insn, end - sizeof(insn), sizeof(insn));
	/* bl; blr, and blraa, blrab and their forms without a modifier */
	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfefff800) == 0xd63f0800;
#else
	if (end[-5] == 0xe8) /* call rel32 */
		return true;
	/* call *r/m (ff /2) with and without displacement and SIB byte */
	for (int n = 2; n <= 7; n++) {
		if (end[-n] == 0xff && (end[-n + 1] & 0x38) == 0x10)
			return true;
	}
	return false;
#endif
}

/*
 * aarch64's trampoline for signal handlers, which nobody calls, and behind it what was interrupted:
 * no calls to be seen.
 */
static bool is_trampoline(const struct corpus *c, const struct unwind_frame *f)
{
	uint32_t module = f->tag == UINT32_MAX ? UINT32_MAX : c->r->mappings.items[f->tag].module;

	return ARCH_HAS_LR && module < c->r->modules.n &&
	       c->r->modules.items[module].flags & RECORDED_VDSO;
}

/*
 * Ours goes on behind libdw's end, or libdw has lost callers (of stubs, and of leaf functions
 * without call-frame information): its frames, less those that are behind no call, are among ours,
 * in order. Proven when each frame that is ours alone, up to the entry or to where the copy ends,
 * lies behind a call.
 */
static bool is_proven(struct corpus *c, const struct unwind_frame *frames, size_t n,
		      const uint64_t *theirs, size_t n_theirs, enum unwind_outcome outcome)
{
	size_t at = 0;

	if (outcome != UNWIND_COMPLETE && outcome != UNWIND_TRUNCATED)
		return false;
	for (size_t i = 0; i < n; i++) {
		while (i > 0 && at < n_theirs && theirs[at] != frames[i].address &&
		       !is_call(c, theirs[at]))
			at++;
		if (at < n_theirs && frames[i].address == theirs[at])
			at++;
		else if (i == 0 ||
			 (!is_call(c, frames[i].address) && !is_trampoline(c, &frames[i]) &&
			  !is_trampoline(c, &frames[i - 1])))
			return false;
	}
	while (at < n_theirs && !is_call(c, theirs[at]))
		at++;
	return at == n_theirs;
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

static void check_sample(struct corpus *c, uint32_t i)
{
	static struct unwind_frame frames[MAX_FRAMES];
	static uint64_t ours[MAX_FRAMES], theirs[MAX_FRAMES];
	const struct recorded_sample *s = &c->r->samples.items[i];
	enum unwind_outcome outcome;
	enum relation relation, recorded;
	struct oracle *o;
	size_t n, n_theirs = 0;
	char line[128];

	outcome = recorded_walk(c->r, c->u, i, frames, MAX_FRAMES, &n);
	for (size_t k = 0; k < n; k++)
		ours[k] = frames[k].address;
	recorded = recorded_relation(c);
	relation = recorded;
	if (recorded == RELATION_N) {
		o = make_oracle(c, s->maps);
		n_theirs = oracle_walk(o, &s->regs, s->stack, s->n_stack, theirs, MAX_FRAMES);
		oracle_free(o);
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
	total.samples++;
	total.frames += n;
	total.relations[relation]++;
	if (relation == RELATION_IDENTICAL)
		return;
	/* What libdw adds at the end has to be looked at. */
	if (relation != RELATION_OURS_SHORTER &&
	    is_proven(c, frames, n, theirs, n_theirs, outcome)) {
		total.proven++;
	} else if (is_listed(c, i)) {
		total.listed++;
	} else {
		fprintf(stderr,
			"%s: sample %u: %s is neither proven by the bytes nor listed in "
			"differences\n",
			c->name, i, relation_names[relation]);
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
	fprintf(stderr,
		"%" PRIu64 " files, %" PRIu64 " samples, %" PRIu64 " frames: identical %" PRIu64
		", libdw shorter %" PRIu64 " (%" PRIu64
		" proven by the bytes), libdw longer %" PRIu64 ", different %" PRIu64 "; %" PRIu64
		" listed\n",
		total.files, total.samples, total.frames, total.relations[RELATION_IDENTICAL],
		total.relations[RELATION_OURS_LONGER], total.proven,
		total.relations[RELATION_OURS_SHORTER], total.relations[RELATION_DIFFERENT],
		total.listed);
	return total.unknown ? 1 : 0;
}
