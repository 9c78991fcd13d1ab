/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The statistics in the Prometheus text format 0.0.4. */
#include <stdio.h>

struct statistics;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* names: of the destinations, s->n_destinations. */
void exposition_print(const struct statistics *s, const char *const *names, FILE *out);
