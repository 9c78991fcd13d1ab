/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cut stacks, continued: each recorded sample is cut at many places, walked, and continued by the
 * callchain that the kernel would have made of the whole. What comes out must be the beginning of
 * the walk over the whole, and all of it when it says that it is complete.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "unwind/internal.h"
#include "unwind/recorded.h"

#define CORPUS "tests/data/unwind"
enum { MAX_FRAMES = 512, MAX_CHAIN = 127, CUTS = 64 };

static struct tally {
	uint64_t cut, continued, frames, complete;
} total;

/* As arch/x86/events/core.c follows it. */
static size_t make_chain(const struct recorded_sample *s, uint64_t chain[MAX_CHAIN])
{
	const struct stack_copy stack = {s->stack, s->regs.r[ARCH_REG_SP], s->n_stack, NULL};
	uint64_t fp = s->regs.r[ARCH_REG_FP];
	size_t n = 0;

	chain[n++] = s->regs.r[ARCH_REG_PC];
	while (n < MAX_CHAIN && stack_read(&stack, fp + 8, &chain[n]) &&
	       stack_read(&stack, fp, &fp))
		n++;
	return n;
}

/* A chain that says something else in the part that can be looked at is not believed. */
static void check_liar(struct recorded *r, struct unwinder *u, uint64_t *chain, size_t n_chain,
		       struct unwind_frame *frames, size_t n)
{
	size_t before = n;

	if (n_chain < 2 || u->cut.first.r[ARCH_REG_FP] == u->cut.last.r[ARCH_REG_FP])
		return;
	chain[1] ^= 0x40;
	CHECK_INT(unwind_continue(u, chain, n_chain, recorded_find, r, frames, MAX_FRAMES, &n), ==,
		  UNWIND_TRUNCATED);
	CHECK_INT(n, ==, before);
	chain[1] ^= 0x40;
}

static void check_cut(struct recorded *r, struct unwinder *u, const struct recorded_sample *s,
		      size_t n_stack, const struct unwind_frame *whole, size_t n_whole,
		      enum unwind_outcome outcome_whole)
{
	static struct unwind_frame frames[MAX_FRAMES];
	uint64_t chain[MAX_CHAIN];
	size_t n, n_copied, n_chain = make_chain(s, chain);
	enum unwind_outcome outcome = unwind_walk(u, &s->regs, s->stack, n_stack, recorded_find, r,
						  frames, MAX_FRAMES, &n);

	if (outcome != UNWIND_TRUNCATED)
		return;
	total.cut++;
	n_copied = n;
	check_liar(r, u, chain, n_chain, frames, n);
	outcome = unwind_continue(u, chain, n_chain, recorded_find, r, frames, MAX_FRAMES, &n);
	total.continued += n > n_copied;
	total.frames += n - n_copied;
	total.complete += outcome == UNWIND_COMPLETE;
	CHECK_INT(n, <=, n_whole);
	for (size_t i = n_copied; i < n; i++)
		CHECK_INT(frames[i].address, ==, whole[i].address);
	if (outcome == UNWIND_COMPLETE) {
		CHECK_INT(n, ==, n_whole);
		CHECK_INT(outcome_whole, ==, UNWIND_COMPLETE);
	} else {
		CHECK_INT(outcome, ==, UNWIND_TRUNCATED);
	}
}

static void check_sample(struct recorded *r, struct unwinder *u, uint32_t i)
{
	static struct unwind_frame whole[MAX_FRAMES];
	const struct recorded_sample *s = &r->samples.items[i];
	enum unwind_outcome outcome;
	size_t n;

	outcome = recorded_walk(r, u, i, whole, MAX_FRAMES, &n);
	for (size_t k = 0; k < CUTS; k++)
		check_cut(r, u, s, s->n_stack * k / CUTS & ~(size_t)7, whole, n, outcome);
}

static void check_file(const char *path)
{
	_cleanup_(unwinder_freep) struct unwinder *u = NULL;
	_cleanup_(recorded_freep) struct recorded *r = NULL;
	char error[RECORDED_ERROR_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(unwinder_new(&u, NULL), ==, 0);
	CHECK_INT(recorded_read(&r, fd, error), ==, 0);
	(void)close(fd);
	CHECK_INT(recorded_open(r, u), ==, 0);
	for (uint32_t i = 0; i < r->samples.n; i++)
		check_sample(r, u, i);
	r = recorded_free(r); /* before its unwinder */
}

static int is_samples(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 11 && strcmp(d->d_name + n - 11, ".samples.gz") == 0;
}

int main(void)
{
	const char *srcdir = getenv("srcdir");
	struct dirent **names;
	char path[4096];
	int n;

	NEED_X86_64();
	(void)snprintf(path, sizeof(path), "%s/" CORPUS, srcdir ? srcdir : ".");
	n = scandir(path, &names, is_samples, alphasort);
	CHECK_INT(n, >, 0);
	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%s/" CORPUS "/%s", srcdir ? srcdir : ".",
			       names[i]->d_name);
		check_file(path);
		free(names[i]);
	}
	free(names);
	fprintf(stderr,
		"%" PRIu64 " cut, %" PRIu64 " continued by %" PRIu64 " frames, %" PRIu64
		" to their entry\n",
		total.cut, total.continued, total.frames, total.complete);
	CHECK_INT(total.continued, >=, 100);
	return 0;
}
