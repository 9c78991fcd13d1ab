/* SPDX-License-Identifier: Apache-2.0 */
/* The unwinder: its caches, its modules, and whom it asks and tells. walk.c walks with it. */
#include "unwind/internal.h"

enum { MIN_CACHE_ENTRIES = 256 };

static const char *const outcome_names[UNWIND_N_OUTCOMES] = {
	[UNWIND_COMPLETE] = "complete",	      [UNWIND_TRUNCATED] = "truncated",
	[UNWIND_NO_MAPPING] = "no mapping",   [UNWIND_NO_FILE] = "no file",
	[UNWIND_NO_CFI] = "no CFI",	      [UNWIND_BAD_CFI] = "bad CFI",
	[UNWIND_NO_PROGRESS] = "no progress", [UNWIND_TOO_DEEP] = "too deep",
};

const char *unwind_outcome_name(enum unwind_outcome outcome)
{
	return (unsigned int)outcome < UNWIND_N_OUTCOMES ? outcome_names[outcome] : "unknown";
}

int unwinder_new(struct unwinder **ret, const struct unwind_limits *limits)
{
	_cleanup_(unwinder_freep) struct unwinder *u = calloc(1, sizeof(*u));
	uint32_t entries = MIN_CACHE_ENTRIES;
	int r;

	if (!u)
		return -ENOMEM;
	u->limits = limits ? *limits : (struct unwind_limits)UNWIND_LIMITS_DEFAULT;
	u->cache_shift = 64 - 8;
	while (entries < u->limits.cache_entries && entries < UINT32_C(1) << 24) {
		entries *= 2;
		u->cache_shift--;
	}
	u->limits.cache_entries = entries;
	u->cache = calloc(entries, sizeof(*u->cache));
	u->full = calloc(FULL_CACHE_ENTRIES, sizeof(*u->full));
	if (!u->cache || !u->full)
		return -ENOMEM;
	r = cfi_init(u);
	if (r == 0)
		r = guard_install();
	if (r < 0)
		return r;
	*ret = TAKE_PTR(u);
	return 0;
}

struct unwinder *unwinder_free(struct unwinder *u)
{
	if (!u)
		return NULL;
	/* Modules that outlive their unwinder must not touch it any more. */
	while (u->modules)
		u->modules = unwind_module_orphan(u->modules);
	cfi_deinit(u);
	free(u->cache);
	free(u->full);
	free(u);
	return NULL;
}

const struct unwind_stats *unwinder_stats(const struct unwinder *u)
{
	return &u->stats;
}

void unwinder_watch(struct unwinder *u, unwind_reading_fn reading, void *ctx)
{
	u->reading = reading;
	u->reading_ctx = ctx;
}

void unwinder_tell_reading(const struct unwinder *u, const void *owner, bool begins)
{
	if (u->reading)
		u->reading(u->reading_ctx, owner, begins);
}

void unwinder_ask_foreign(struct unwinder *u, unwind_foreign_fn foreign, void *ctx)
{
	u->foreign = foreign;
	u->foreign_ctx = ctx;
}
