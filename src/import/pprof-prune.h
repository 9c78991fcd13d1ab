/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pprof may name functions to hide with their callees (drop_frames), such as allocators, and
 * exceptions (keep_frames). They are applied as in go tool pprof.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct pprof_prune {
	bool on, has_keep;
	regex_t drop, keep;
};

/*
 * NULL or "": no such expression. 0, -ENOMEM, or -EINVAL: *ret_bad is an expression that cannot be
 * translated.
 */
int pprof_prune_init(struct pprof_prune *p, const char *drop, const char *keep,
		     const char **ret_bad);
void pprof_prune_deinit(struct pprof_prune *p);
/* Is a function with that name dropped with its callees? */
bool pprof_prune_drops(const struct pprof_prune *p, const char *name);
