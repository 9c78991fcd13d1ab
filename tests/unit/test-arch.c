/* SPDX-License-Identifier: Apache-2.0 */
/* What src/sample knows of the processor: its loop of system calls, and the registers that the walk
 * starts with. */
#include <stdbool.h>

#include "src/sample/arch.h"
#include "src/sample/sample.h"
#include "tests/unit/test.h"
#include "unwind/unwind.h"

#define N_CALLS 1000

static struct arch_known known;

static void test_loop_ends(void)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);

	known.n_calls = N_CALLS;
	arch_run_known(&known);
	CHECK_INT(known.n_calls, ==, 0);
	CHECK_INT(known.begin, <, known.end);
	CHECK_INT(known.end - known.begin, <, 64);
	CHECK_INT(known.sp, <, here);
	CHECK_INT(here - known.sp, <, 4096);
}

/* Every register that is asked for has a place in the walk's. */
static void test_walk_takes_all(void)
{
	uint64_t values[64] = {0};
	struct unwind_regs regs;

	unwind_regs_from_perf(values, sample_user_regs, &regs);
	CHECK_INT(__builtin_popcountll(regs.valid), ==, __builtin_popcountll(sample_user_regs));
	CHECK(regs.valid & UNWIND_REG_BIT(UNWIND_REG_SP));
	CHECK(regs.valid & UNWIND_REG_BIT(UNWIND_REG_PC));
}

/* A sample without any known value proves nothing right, and one from elsewhere nothing at all. */
static void test_judge(void)
{
	uint64_t values[64] = {0}, valid = arch_checkable();

	CHECK(!arch_judge(&known, sample_user_regs, values, &valid));
	CHECK_INT(valid, ==, arch_checkable());
	for (int i = 0; i < 64; i++)
		values[i] = known.end;
	CHECK(arch_judge(&known, sample_user_regs, values, &valid));
	CHECK_INT(__builtin_popcountll(valid & sample_user_regs), <=, 4);
	CHECK(valid & sample_user_regs);
}

int main(void)
{
	RUN(test_loop_ends);
	RUN(test_walk_takes_all);
	RUN(test_judge);
	return 0;
}
