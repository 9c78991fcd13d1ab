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

static bool is_sampled(uint32_t reg)
{
	return reg < 64 && (sample_user_regs >> reg & 1);
}

/* Arguments of functions and system calls are known on all processors but the experimental one. */
static void test_arguments(void)
{
#ifdef __riscv
	CHECK(!sample_has_arguments());
#else
	CHECK(sample_has_arguments());
	CHECK(is_sampled(arch_second_argument));
	for (size_t i = 0; i < 4; i++) {
		CHECK(is_sampled(arch_arguments[i]));
		CHECK(is_sampled(arch_go_arguments[i]));
	}
#endif
}

/* The place that a switch tells: each register has its spot. */
static void test_spots(void)
{
	struct sample_spot spot;
	uint64_t regs[64] = {0}, mask;

	CHECK_INT(__builtin_popcountll(sample_place_regs), ==, ARCH_N_SPOT);
	CHECK_INT(ARCH_N_SPOT, >=, SAMPLE_SPOT_REGS - 1);
	CHECK_INT(ARCH_N_SPOT, <=, SAMPLE_SPOT_REGS);
	for (uint64_t i = 0; i < SAMPLE_SPOT_REGS; i++)
		spot.regs[i] = 100 + i;
	mask = sample_spot_to_regs(&spot, regs);
	CHECK_INT(mask, ==, sample_place_regs);
	CHECK_INT(arch_register(sample_user_regs, regs, arch_sp), ==, 100 + ARCH_SPOT_SP);
	CHECK_INT(arch_register(sample_user_regs, regs, arch_ip), ==, 100 + ARCH_SPOT_IP);
	if (sample_has_arguments())
		CHECK_INT(arch_register(sample_user_regs, regs, arch_arguments[0]), ==,
			  100 + ARCH_SPOT_ARGUMENT);
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
	RUN(test_arguments);
	RUN(test_spots);
	RUN(test_judge);
	return 0;
}
