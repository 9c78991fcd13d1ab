/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prometheus text format 0.0.4 of what the tree knows of itself. */
#include <stdio.h>

struct statistics;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* names: of the destinations, s->n_destinations. */
void exposition_print(const struct statistics *s, const char *const *names, FILE *out);
