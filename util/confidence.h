/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How certain a share of samples is: its 95% interval, and whether two shares differ by more than
 * chance. confidence.c explains the methods.
 */
#include <stdbool.h>
#include <stdint.h>

#define CONFIDENCE_ALPHA 0.05 /* 1 less the confidence of 95% */

/* The sum of the values of samples, and the sum of their squares. If each sample counts 1, both are
 * the number of samples. */
struct weight {
	double sum, squares;
};

static inline struct weight weight_of_count(uint64_t n)
{
	return (struct weight){(double)n, (double)n};
}

static inline void weight_add(struct weight *to, struct weight w)
{
	to->sum += w.sum;
	to->squares += w.squares;
}

/* The number of samples of equal value that would give the share of part in whole with the same
 * precision. whole must not be empty. */
double confidence_effective_n(struct weight part, struct weight whole);

/* By how many percent of a total that is an estimate, of that variance, it may be off. */
double confidence_percent(double variance, double total);

/* Whether that says all: the samples that were lost of n_samples + n_lost are no larger a part. */
bool confidence_covers_losses(double percent, uint64_t n_samples, uint64_t n_lost);

/* Wilson's 95% interval for the share of part in whole, as numbers from 0 to 1. false: whole has no
 * sample. */
bool confidence_interval(struct weight part, struct weight whole, double *ret_low,
			 double *ret_high);

/*
 * The probability that chance alone makes the shares of part in whole differ as much as they do in
 * two captures of n_samples: Fisher's exact test, two-sided, mid-p. NAN: with so few samples no
 * difference can be more than chance.
 */
double confidence_p_value(const struct weight part[2], const struct weight whole[2],
			  const double n_samples[2]);

/* Corrects n p-values for their number (Benjamini and Hochberg): of those that are below
 * CONFIDENCE_ALPHA afterwards, that part is expected to be false. NAN becomes 1, and does not
 * count. 0 or -ENOMEM. */
int confidence_correct(double *p, uint32_t n);
