/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile is a count: k of n samples had the function. Other random samples would have given
 * another k, and the interval says how different: Wilson's score interval, which stays within 0 and
 * 1 and is right for small counts, where p ± 2 standard errors is not.
 *
 * Samples with values of their own (bytes, events, time) say less than as many equal ones: a single
 * large value moves the share. With sums S and sums of squares Q of the part (1) and of the rest
 * (2), the linearized variance of the share p = S1/S is
 *
 *	((1-p)² Q1 + p² Q2) / S²  =  p (1-p) f / S,   f = (1-p) Q1/S1 + p Q2/S2
 *
 * and for equal samples p (1-p) / n. So the share is as certain as that of n = S/f equal samples.
 * If the part is all or nothing, f is not defined: then it is Q/S, and n is S²/Q, the effective
 * size by Kish.
 *
 * Fisher's exact test of the four counts compares two shares, in its mid-p form: with so few
 * possible outcomes the plain exact test would be too conservative. The values of both captures are
 * first scaled to a mean of 1, since their units may differ, and their common f turns them into
 * counts. If the counts are large, the normal distribution gives the same result sooner.
 *
 * None of this covers what is not chance: samples of one thread follow one another, and a clock can
 * run in step with what it samples.
 */
#include "util/confidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "util/cleanup.h"

#define Z 1.959963984540054 /* 2.5% of the normal distribution lie beyond it */
/* Counts with a greater variance (a standard deviation of 1000) are taken as normal, and so are
 * counts of more samples than lgamma() has digits for. */
#define NORMAL_VARIANCE 1e6
#define NORMAL_N	1e12

/* The f of the comment above. */
static double unevenness(struct weight part, struct weight whole)
{
	double share = part.sum / whole.sum, rest = whole.sum - part.sum;
	double rest_squares = fmax(whole.squares - part.squares, 0);

	if (part.sum <= 0 || rest <= 0)
		return whole.squares / whole.sum;
	return (1 - share) * part.squares / part.sum + share * rest_squares / rest;
}

double confidence_effective_n(struct weight part, struct weight whole)
{
	return whole.sum / unevenness(part, whole);
}

double confidence_percent(double variance, double total)
{
	return 100 * Z * sqrt(variance) / total;
}

bool confidence_covers_losses(double percent, uint64_t n_samples, uint64_t n_lost)
{
	return 100 * (double)n_lost <= percent * ((double)n_samples + (double)n_lost);
}

bool confidence_interval(struct weight part, struct weight whole, double *ret_low, double *ret_high)
{
	double n, share, middle, half;

	if (!(whole.sum > 0))
		return false;
	share = fmin(part.sum / whole.sum, 1);
	n = confidence_effective_n(part, whole);
	middle = share + Z * Z / (2 * n);
	half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n));
	*ret_low = share > 0 ? fmax((middle - half) / (1 + Z * Z / n), 0) : 0;
	*ret_high = share < 1 ? fmin((middle + half) / (1 + Z * Z / n), 1) : 1;
	return true;
}

/* ---- Two shares ---- */

/* k[0] + k[1] of n[0] + n[1] samples belong to the part. If they are spread at random, how likely
 * is it that k[1] of them are among the n[1]? All are whole numbers. */
static double spread_probability(const double k[2], const double n[2])
{
	double all = n[0] + n[1], part = k[0] + k[1];

	return exp(lgamma(n[0] + 1) - lgamma(k[0] + 1) - lgamma(n[0] - k[0] + 1) +
		   lgamma(n[1] + 1) - lgamma(k[1] + 1) - lgamma(n[1] - k[1] + 1) - lgamma(all + 1) +
		   lgamma(part + 1) + lgamma(all - part + 1));
}

/* Does any split of the part have a p-value below the level? The two extreme splits have the
 * lowest. */
static bool can_differ(const double k[2], const double n[2])
{
	double part = k[0] + k[1];

	for (int i = 0; i < 2; i++) {
		double most = fmin(part, n[i]), ks[2];

		ks[i] = most;
		ks[!i] = part - most;
		if (spread_probability(ks, n) < CONFIDENCE_ALPHA)
			return true;
	}
	return false;
}

/* Twice the smaller tail; its first term counts half. */
static double exact_p_value(const double k[2], const double n[2])
{
	double part = k[0] + k[1], rest = n[0] + n[1] - part;
	int more = k[1] * n[0] > k[0] * n[1]; /* the side with more than its share */
	double x = k[more], y = k[!more];
	double term = spread_probability(k, n), tail = term / 2;

	/* One more on one side is one less on the other; the terms only become smaller. */
	while (y > 0 && x < n[more] && term > tail * 1e-16) {
		term *= y / (x + 1) * (n[more] - x) / (n[!more] - y + 1);
		x++;
		y--;
		tail += term;
	}
	/* Near the middle the other one may be the smaller. */
	return part > 0 && rest > 0 ? 2 * fmin(tail, fabs(1 - tail)) : 1;
}

static double normal_p_value(const double k[2], const double n[2], double variance)
{
	double all = n[0] + n[1], expected = (k[0] + k[1]) * n[1] / all;

	return erfc(fabs(k[1] - expected) / sqrt(2 * variance));
}

double confidence_p_value(const struct weight part[2], const struct weight whole[2],
			  const double n_samples[2])
{
	struct weight one = {0, 0}, all = {0, 0};
	double k[2], n[2], f, variance, sum;

	if (!(whole[0].sum > 0) || !(whole[1].sum > 0))
		return NAN;
	for (int i = 0; i < 2; i++) {
		double mean = whole[i].sum / n_samples[i];

		k[i] = fmin(part[i].sum, whole[i].sum) / mean;
		n[i] = whole[i].sum / mean;
		weight_add(&one, (struct weight){k[i], part[i].squares / (mean * mean)});
		weight_add(&all, (struct weight){n[i], whole[i].squares / (mean * mean)});
	}
	f = unevenness(one, all);
	for (int i = 0; i < 2; i++) {
		k[i] = round(k[i] / f);
		n[i] = fmax(round(n[i] / f), k[i]);
	}
	sum = n[0] + n[1];
	if (sum < 2)
		return NAN;
	variance = (k[0] + k[1]) * (sum - k[0] - k[1]) / sum * n[0] / sum * n[1] / (sum - 1);
	if (variance > NORMAL_VARIANCE || (sum > NORMAL_N && variance > 0))
		return normal_p_value(k, n, variance);
	return can_differ(k, n) ? exact_p_value(k, n) : NAN;
}

/* ---- Many of them ---- */

static int compare_pointed(const void *a, const void *b)
{
	double x = **(double *const *)a, y = **(double *const *)b;

	return (x > y) - (x < y);
}

int confidence_correct(double *p, uint32_t n)
{
	_cleanup_free_ double **order = malloc(((size_t)n + 1) * sizeof(*order));
	uint32_t m = 0;
	double least = 1;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (isnan(p[i]))
			p[i] = 1;
		else
			order[m++] = &p[i];
	}
	qsort(order, m, sizeof(*order), compare_pointed);
	for (uint32_t i = m; i-- > 0;) {
		least = fmin(least, *order[i] * m / (i + 1));
		*order[i] = least;
	}
	return 0;
}
