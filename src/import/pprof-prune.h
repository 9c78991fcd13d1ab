/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pprof may name functions whose callees are not to be seen (drop_frames), and exceptions
 * (keep_frames): allocators below their entry, say. Applied as go tool pprof applies them.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct pprof_prune {
	bool on, has_keep;
	regex_t drop, keep;
};

/*
 * NULL or "": there is no such expression. 0, -ENOMEM, or -EINVAL: *ret_bad is an expression that
 * cannot be applied, for it means something else here than there.
 */
int pprof_prune_init(struct pprof_prune *p, const char *drop, const char *keep,
		     const char **ret_bad);
void pprof_prune_deinit(struct pprof_prune *p);
/* Is a function of that name dropped, with what it calls? */
bool pprof_prune_drops(const struct pprof_prune *p, const char *name);
