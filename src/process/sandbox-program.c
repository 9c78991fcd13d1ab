/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is a binary search over the numbers of the calls, because the kernel runs it at each
 * system call: seven steps instead of a hundred. A leaf has all rows of one call.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/process/sandbox-internal.h"

#define MAX_ROWS     512
#define LOAD(at)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define NUMBER	     ((uint32_t)offsetof(struct seccomp_data, nr))
#define ARCH	     ((uint32_t)offsetof(struct seccomp_data, arch))
/* Both architectures are little-endian. */
#define ARGUMENT_LOW(i)	 ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (i)))
#define ARGUMENT_HIGH(i) (ARGUMENT_LOW(i) + 4)

struct program {
	struct sock_filter *code;
	size_t n, max;
	uint32_t refusal;
	const struct sandbox_call *rows[MAX_ROWS]; /* of the role, by number */
};

static void put(struct program *p, struct sock_filter instruction)
{
	if (p->n < p->max)
		p->code[p->n] = instruction;
	p->n++;
}

/*
 * Checks half of an argument; jumps out of the row if it differs. Returns the jump, SIZE_MAX: none.
 */
static size_t put_half(struct program *p, uint32_t at, uint32_t mask, uint32_t value)
{
	if (!mask)
		return SIZE_MAX;
	put(p, (struct sock_filter)LOAD(at));
	if (mask != UINT32_MAX)
		put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
	put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0));
	return p->n - 1;
}

static void put_row(struct program *p, const struct sandbox_call *row)
{
	size_t jumps[2 * SANDBOX_MAX_CHECKS], n = 0;

	for (int i = 0; i < SANDBOX_MAX_CHECKS; i++) {
		const struct sandbox_check *c = &row->checks[i];

		jumps[n++] = put_half(p, ARGUMENT_LOW(c->argument), (uint32_t)c->mask,
				      (uint32_t)c->value);
		jumps[n++] = put_half(p, ARGUMENT_HIGH(c->argument), (uint32_t)(c->mask >> 32),
				      (uint32_t)(c->value >> 32));
	}
	put(p, (struct sock_filter)RETURN(row->error ? SECCOMP_RET_ERRNO | (uint32_t)row->error
						     : SECCOMP_RET_ALLOW));
	for (size_t i = 0; i < n; i++) {
		if (jumps[i] < p->max && p->n <= p->max)
			p->code[jumps[i]].jf = (uint8_t)(p->n - jumps[i] - 1);
	}
}

/* Writes the search for the calls of rows[first] to rows[end - 1]. */
static void put_tree(struct program *p, size_t first, size_t end)
{
	size_t middle = first + (end - first) / 2, jump;
	uint32_t number = (uint32_t)p->rows[middle]->number;

	/* Between two calls, not among the rows of one. */
	while (middle > first && (uint32_t)p->rows[middle - 1]->number == number)
		middle--;
	while (middle < end && p->rows[middle]->number == p->rows[first]->number)
		middle++;
	if (middle == end) {
		put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						    (uint32_t)p->rows[first]->number, 1, 0));
		put(p, (struct sock_filter)RETURN(p->refusal));
		for (; first < end; first++)
			put_row(p, p->rows[first]);
		put(p, (struct sock_filter)RETURN(p->refusal));
		return;
	}
	put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
					    (uint32_t)p->rows[middle]->number, 0, 1));
	jump = p->n;
	put(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	put_tree(p, first, middle);
	if (jump < p->max)
		p->code[jump].k = (uint32_t)(p->n - jump - 1);
	put_tree(p, middle, end);
}

/* Rows of one call stay in the order of the table. */
static int compare_rows(const void *a, const void *b)
{
	const struct sandbox_call *x = *(const struct sandbox_call *const *)a;
	const struct sandbox_call *y = *(const struct sandbox_call *const *)b;

	return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
				      : (x > y) - (x < y);
}

int sandbox_program(const struct sandbox_call *calls, size_t n_calls, enum peer who,
		    uint32_t refusal, struct sock_filter *ret, size_t max)
{
	struct program p = {.code = ret, .max = max, .refusal = refusal};
	size_t n = 0;

	for (size_t i = 0; i < n_calls; i++) {
		if (!(calls[i].roles & (1u << who)))
			continue;
		if (n == MAX_ROWS)
			return -E2BIG;
		p.rows[n++] = &calls[i];
	}
	qsort(p.rows, n, sizeof(p.rows[0]), compare_rows);
	put(&p, (struct sock_filter)LOAD(ARCH));
	put(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0));
	put(&p, (struct sock_filter)RETURN(refusal));
	put(&p, (struct sock_filter)LOAD(NUMBER));
	put(&p,
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SANDBOX_FIRST_FOREIGN, 0, 1));
	put(&p, (struct sock_filter)RETURN(refusal));
	put(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SANDBOX_NEWEST_CALL, 0, 1));
	put(&p, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOSYS));
	if (n > 0)
		put_tree(&p, 0, n);
	else
		put(&p, (struct sock_filter)RETURN(refusal));
	return p.n > max ? -E2BIG : (int)p.n;
}
