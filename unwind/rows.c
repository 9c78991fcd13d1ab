/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of each module: an append-only array, found through a hash of 256-byte pages. A row that
 * spans several pages is entered again for each page in which it is met; so there is no sorting, no
 * moving and no search of what was never asked for.
 *
 * One byte budget covers the rows of all modules, the FDE indexes and the inflated .debug_frame
 * sections. When it is spent, whoever was used longest ago loses all of its rows at once (used is
 * also who is walked through without a look at its rows, because the cache knows them): what is
 * in the per-pc cache stays valid (entries are copies), and the rest can be made again.
 */
#include "unwind/internal.h"

enum {
	MIN_ROWS = 32,
	MAX_ROWS = 128 * 1024, /* per module; 3 MiB */
};

#define ROW_COST (sizeof(struct row) + sizeof(uint32_t))

static uint32_t *head_of(const struct unwind_module *m, uint32_t rel)
{
	uint32_t hash = (rel >> 8) * UINT32_C(0x9e3779b1);

	return &m->heads[(hash >> 8) & (m->cap_rows - 1)];
}

const struct row *rows_find(const struct unwind_module *m, uint32_t rel)
{
	if (!m->rows)
		return NULL;
	for (uint32_t i = *head_of(m, rel); i != 0; i = m->rows[i - 1].next) {
		const struct row *row = &m->rows[i - 1];

		if (rel >= row->start && rel < row->end)
			return row;
	}
	return NULL;
}

void rows_release(struct unwind_module *m, uint64_t bytes)
{
	m->u->stats.row_bytes -= bytes;
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

static void drop_rows_only(struct unwind_module *m)
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
	drop_rows_only(m);
	entry_drop_index(m, &m->eh_frame);
	debug_frame_drop(m);
}

/* Doubles the table; chains are rebuilt from the page each row was met in. */
static bool grow(struct unwind_module *m)
{
	uint32_t cap = m->cap_rows ? m->cap_rows * 2 : MIN_ROWS;
	struct row *rows;
	uint32_t *heads;

	/* No more than half of the budget, lest one file throws out all others'. */
	if (cap > MAX_ROWS || cap * ROW_COST > m->u->limits.max_row_bytes / 2 ||
	    !rows_reserve(m, (cap - m->cap_rows) * ROW_COST))
		return false;
	heads = calloc(cap, sizeof(*heads));
	rows = heads ? realloc(m->rows, cap * sizeof(*rows)) : NULL;
	if (!rows) {
		free(heads);
		rows_release(m, (cap - m->cap_rows) * ROW_COST);
		return false;
	}
	free(m->heads);
	m->rows = rows;
	m->heads = heads;
	m->cap_rows = cap;
	for (uint32_t i = 0; i < m->n_rows; i++) {
		uint32_t *head = head_of(m, rows[i].page << 8);

		rows[i].next = *head;
		*head = i + 1;
	}
	return true;
}

void rows_add(struct unwind_module *m, uint32_t rel, const struct row *row)
{
	uint32_t *head;

	if (m->n_rows == m->cap_rows && !grow(m)) {
		/* At its own limit, or alone over the budget: begin again. */
		m->u->stats.rows_evicted += m->n_rows;
		drop_rows_only(m);
		if (!grow(m))
			return;
	}
	head = head_of(m, rel);
	m->rows[m->n_rows] = *row;
	m->rows[m->n_rows].page = rel >> 8;
	m->rows[m->n_rows].next = *head;
	*head = ++m->n_rows;
}
