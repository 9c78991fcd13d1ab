/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The config's lists of [filter] as rules in the form of src/process/filter-rule.h. */
#include <stdbool.h>

struct config;

/*
 * Calls fn with the text of each rule, borrowed for the call. cgroups: also with the rules that
 * include control groups. CPUs have no rules, because the broker opens no events on unwanted CPUs.
 * 0, or the first error of fn.
 */
int filter_texts_each(const struct config *c, bool cgroups, int (*fn)(void *ctx, const char *text),
		      void *ctx);
/* Do two configs want the same? */
bool filter_texts_equal(const struct config *a, const struct config *b);
