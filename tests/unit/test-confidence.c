/* SPDX-License-Identifier: Apache-2.0 */
/* Expected numbers are Wilson's formula, and the exact test added up in fractions, both in Python
 * (tests/system/confidence.py has them too, and simulates). */
#include "util/confidence.h"

#include <math.h>

#include "tests/unit/test.h"

#define CHECK_NEAR(a, b)                                                                           \
	do {                                                                                       \
		double check_a = (a), check_b = (b);                                               \
		if (!(fabs(check_a - check_b) <= 1e-9 + 1e-7 * fabs(check_b))) {                   \
			fprintf(stderr, "%s:%d: %s is %.12g, not %.12g\n", __FILE__, __LINE__, #a, \
				check_a, check_b);                                                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void test_interval_of_counts(void)
{
	static const struct {
		uint64_t k, n;
		double low, high;
	} cases[] = {
		{0, 10, 0, 0.2775327998628892},
		{1, 10, 0.017876213095072868, 0.4041500267952385},
		{5, 10, 0.236593090512564, 0.7634069094874361},
		{10, 10, 0.7224672001371107, 1},
		{37, 4980, 0.005395197057403602, 0.010223570004884415},
		{612, 4980, 0.11406266463076822, 0.13230180521960963},
	};
	double low, high;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(confidence_interval(weight_of_count(cases[i].k), weight_of_count(cases[i].n),
					  &low, &high));
		CHECK_NEAR(low, cases[i].low);
		CHECK_NEAR(high, cases[i].high);
	}
	CHECK(!confidence_interval(weight_of_count(0), weight_of_count(0), &low, &high));
}

/* 100 equal values are 100 samples whatever their unit; one of them that is as large as all the
 * others is not. */
static void test_effective_number(void)
{
	struct weight equal = {100 * 4096.0, 100 * 4096.0 * 4096.0};
	struct weight tenth = {10 * 4096.0, 10 * 4096.0 * 4096.0};
	struct weight large = {99, 99 * 99}, with_large = {99 + 99, 99 * 99 + 99};
	struct weight all = {300, 20 * 100 + 100};

	CHECK_NEAR(confidence_effective_n(tenth, equal), 100);
	CHECK_NEAR(confidence_effective_n(equal, equal), 100);
	/* Of the one large value there is one: a share of a half, of two samples. */
	CHECK_NEAR(confidence_effective_n(large, with_large), 198 / (0.5 * 99 + 0.5));
	/* A third of 300 in values of 1, the rest in 20 values of 10. */
	CHECK_NEAR(confidence_effective_n((struct weight){100, 100}, all),
		   300 / (2 / 3.0 * 1 + 1 / 3.0 * 10));
}

static double p_value(struct weight part_before, struct weight before, struct weight part_after,
		      struct weight after, double n_before, double n_after)
{
	return confidence_p_value((struct weight[]){part_before, part_after},
				  (struct weight[]){before, after}, (double[]){n_before, n_after});
}

static double p_of_counts(uint64_t k0, uint64_t n0, uint64_t k1, uint64_t n1)
{
	return p_value(weight_of_count(k0), weight_of_count(n0), weight_of_count(k1),
		       weight_of_count(n1), (double)n0, (double)n1);
}

/* So many bytes a sample. */
static struct weight equal_values(uint64_t n, double value)
{
	return (struct weight){value * (double)n, value * value * (double)n};
}

static void test_two_shares(void)
{
	static const struct {
		uint64_t k0, n0, k1, n1;
		double p;
	} cases[] = {
		{0, 100, 5, 100, 0.029691605234293292},
		{3, 100, 12, 100, 0.017060934910433378},
		{50, 100, 70, 100, 0.004138365107750661},
		{100, 1000, 7, 20, 0.0033020022111941378},
		{1, 5000, 9, 4000, 0.004341790200592528},
		{480, 1000, 520, 1000, 0.0739001384544151},
		{60, 100, 20, 200, 1.3682412110726522e-19},
		{2, 10, 8, 10, 0.012053735737946264},
		{0, 1000, 1, 10, 0.009900990099009901},
		{20, 100, 20, 100, 1},
		{3000, 10000, 3100, 10000, 0.12462125858503978},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t k0 = cases[i].k0, n0 = cases[i].n0, k1 = cases[i].k1, n1 = cases[i].n1;

		CHECK_NEAR(p_of_counts(k0, n0, k1, n1), cases[i].p);
		CHECK_NEAR(p_value(equal_values(k0, 4096), equal_values(n0, 4096),
				   equal_values(k1, 8), equal_values(n1, 8), (double)n0,
				   (double)n1),
			   cases[i].p);
	}
}

static void test_too_few_to_differ(void)
{
	const struct weight none = {0, 0}, large = {500, 500 * 500}, all = {1000, 500 + 500 * 500};

	/* Four that are all on one side are chance at 1 : 1, and so is a part of all samples. */
	CHECK(isnan(p_of_counts(0, 1000, 4, 1000)));
	CHECK(isnan(p_of_counts(0, 1000, 0, 1000)));
	CHECK(isnan(p_of_counts(1000, 1000, 900, 900)));
	CHECK(isnan(p_of_counts(0, 1000, 0, 0)));
	/* One sample is one sample, though half of all bytes are its. */
	CHECK(isnan(p_value(none, weight_of_count(1000), large, all, 1000, 501)));
}

/* Both ways to compute it meet where one ends and the other begins. */
static void test_large_counts(void)
{
	for (uint64_t n = 7900000; n <= 8100000; n += 200000) {
		double z = 1500 / sqrt((double)n / 8);

		CHECK(fabs(p_of_counts(n / 2, n, n / 2 + 3000, n) - erfc(z / sqrt(2))) < 1e-5);
	}
	CHECK(p_of_counts(0, UINT64_C(1) << 50, 1u << 20, UINT64_C(1) << 50) < 1e-9);
}

static void test_correction(void)
{
	/* As R's p.adjust(p, "BH"). */
	double p[] = {0.039, 0.008, NAN, 0.205, 0.001, 0.042, 0.074, 0.041, 0.06};
	static const double expected[] = {0.0672, 0.032,     1,	     0.205, 0.008,
					  0.0672, 0.592 / 7, 0.0672, 0.08};

	CHECK_INT(confidence_correct(p, 9), ==, 0);
	for (int i = 0; i < 9; i++)
		CHECK_NEAR(p[i], expected[i]);
	CHECK_INT(confidence_correct(NULL, 0), ==, 0);
}

int main(void)
{
	RUN(test_interval_of_counts);
	RUN(test_effective_number);
	RUN(test_two_shares);
	RUN(test_too_few_to_differ);
	RUN(test_large_counts);
	RUN(test_correction);
	return 0;
}
