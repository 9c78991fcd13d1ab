/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of each module: an append-only array, found through a hash of 256-byte pages. A row that
 * spans several pages is added again for each page in which a walk meets it. So nothing is sorted
 * or moved, and no row is made that no walk needs.
 */
#include "unwind/internal.h"

enum {
	MIN_ROWS = 32,
	MAX_ROWS = 128 * 1024, /* per module; 3 MiB */
};

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

/* Doubles the table and rebuilds the chains from the page in which each row was met. */
static bool grow(struct unwind_module *m)
{
	uint32_t cap = m->cap_rows ? m->cap_rows * 2 : MIN_ROWS;
	struct row *rows;
	uint32_t *heads;

	/* At most half of the budget, so that one file does not evict the rows of all others. */
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
		/* At its own limit, or over the budget alone: drop all rows and start again. */
		m->u->stats.rows_evicted += m->n_rows;
		rows_drop_table(m);
		if (!grow(m))
			return;
	}
	head = head_of(m, rel);
	m->rows[m->n_rows] = *row;
	m->rows[m->n_rows].page = rel >> 8;
	m->rows[m->n_rows].next = *head;
	*head = ++m->n_rows;
}
