/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How sure a share of samples is: its 95% interval, and whether two shares differ by more than
 * chance. The essay is in confidence.c.
 */
#include <stdbool.h>
#include <stdint.h>

#define CONFIDENCE_ALPHA 0.05 /* 1 less the confidence of 95% */

/* Values of samples, added up, and their squares. Of samples that count 1 each, both are their
 * number. */
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

/* The number of equal samples that would tell as much of the share that part has of whole; whole is
 * not empty. */
double confidence_effective_n(struct weight part, struct weight whole);

/* Wilson's 95% interval for the share that part has of whole, as numbers from 0 to 1. false: there
 * is no sample in whole. */
bool confidence_interval(struct weight part, struct weight whole, double *ret_low,
			 double *ret_high);

/*
 * The probability that chance alone makes two shares differ as much as part has of whole in the
 * first and in the second capture, of n_samples: Fisher's exact test, two-sided, mid-p. NAN: there
 * are too few samples for any difference to be more than chance.
 */
double confidence_p_value(const struct weight part[2], const struct weight whole[2],
			  const double n_samples[2]);

/* Corrects n p-values for their number (Benjamini and Hochberg): of those that are then below
 * CONFIDENCE_ALPHA that part is expected to be chance. NAN becomes 1, and does not count. 0 or
 * -ENOMEM. */
int confidence_correct(double *p, uint32_t n);
