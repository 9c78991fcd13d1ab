/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte budget covers the rows of all modules, the FDE indexes and the inflated .debug_frame
 * sections. When it is spent, the least recently used module loses all of its rows at once. (A walk
 * that finds everything in the per-pc cache uses the module too.) Entries of the per-pc cache are
 * copies and stay valid; the rest can be made again.
 */
#include "unwind/internal.h"

void rows_release(struct unwind_module *m, uint64_t bytes)
{
	m->u->stats.row_bytes -= bytes;
}

static void drop_index(struct unwind_module *m, struct cfi_section *s)
{
	if (!s->index)
		return;
	rows_release(m, s->n_index_reserved * sizeof(*s->index));
	free(s->index);
	s->index = NULL;
	s->n_index = s->n_index_reserved = 0;
}

static void drop_debug_frame(struct unwind_module *m)
{
	struct cfi_section *s = &m->debug_frame;

	drop_index(m, s);
	if (s->data.data && m->debug_compression != DEBUG_PLAIN) {
		rows_release(m, s->data.n);
		free((void *)(uintptr_t)s->data.data);
	}
	s->data = (struct window){NULL, 0, 0, NULL, 0};
}

void rows_drop_table(struct unwind_module *m)
{
	if (m->rows)
		rows_release(m, m->cap_rows * ROW_COST);
	free(m->rows);
	free(m->heads);
	m->rows = NULL;
	m->heads = NULL;
	m->n_rows = m->cap_rows = 0;
}

void rows_drop(struct unwind_module *m)
{
	rows_drop_table(m);
	drop_index(m, &m->eh_frame);
	drop_debug_frame(m);
}

static bool holds_anything(const struct unwind_module *m)
{
	return m->rows || m->debug_frame.data.data || m->debug_frame.index || m->eh_frame.index;
}

static bool evict_coldest(struct unwinder *u, const struct unwind_module *but)
{
	struct unwind_module *coldest = NULL;

	for (struct unwind_module *m = u->modules; m; m = m->next) {
		if (m != but && holds_anything(m) &&
		    (!coldest || m->last_used < coldest->last_used))
			coldest = m;
	}
	if (!coldest)
		return false;
	u->stats.rows_evicted += coldest->n_rows;
	rows_drop(coldest);
	return true;
}

bool rows_reserve(struct unwind_module *m, uint64_t bytes)
{
	struct unwinder *u = m->u;

	if (bytes > u->limits.max_row_bytes)
		return false;
	while (u->stats.row_bytes + bytes > u->limits.max_row_bytes) {
		if (!evict_coldest(u, m))
			return false;
	}
	u->stats.row_bytes += bytes;
	return true;
}
