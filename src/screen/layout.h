/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lines of a live view as text, limited in columns (LC_CTYPE defines the width of a character),
 * for terminals and pipes. */
#include "src/screen/view.h"

#define TOP_LINE_MAX 4096 /* bytes of a line, with its 0 */

struct top_facts {
	const char *host;  /* clean */
	const char *event; /* the event and its period; NULL: CPU time, at rate_hz */
	uint32_t rate_hz, n_cpus;
	uint64_t window_ns;
	double own_cpu;		/* percent of one CPU, all processes of perfwalk */
	uint64_t own_rss_bytes; /* likewise */
	bool paused;
};

/* Each writes a line to buf (TOP_LINE_MAX bytes), cut to columns. */
void top_layout_title(char *buf, unsigned int columns, const struct top_facts *f,
		      const struct top_table *t);
void top_layout_scope(char *buf, unsigned int columns, const struct top_view *v,
		      const struct top_table *t);
void top_layout_head(char *buf, unsigned int columns, const struct top_view *v,
		     const struct top_table *t);
void top_layout_row(char *buf, unsigned int columns, const struct top_view *v,
		    const struct top_table *t, uint32_t row);
void top_layout_status(char *buf, unsigned int columns, const struct top_facts *f,
		       const struct top_table *t);
/* Copies text to buf (size bytes), cut to columns and ended with a mark, or padded. Returns bytes.
 */
size_t top_layout_fit(char *buf, size_t size, const char *text, unsigned int columns, bool pad);
