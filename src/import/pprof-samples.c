/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the samples of a pprof file. */
#include <string.h>

#include "src/import/pprof-internal.h"

#define F_SAMPLE 2 /* of message Profile */

int pprof_damaged_at(struct pprof_file *pp, const struct cursor *c)
{
	return import_damaged(pp->im, "it is not a pprof file, or truncated at byte %zu",
			      (size_t)(c->cur - c->start));
}

int pprof_each_sample(struct pprof_file *pp,
		      int (*fn)(struct pprof_file *pp, void *ctx, const struct wire_field *sample),
		      void *ctx)
{
	struct cursor c = cursor_make(pp->bytes, pp->n);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read_field(&c, &f))
		if (f.number == F_SAMPLE && f.type == WIRE_BYTES)
			r = fn(pp, ctx, &f);
	return r == 0 && !cursor_ok(&c) ? pprof_damaged_at(pp, &c) : r;
}

void pprof_read_values(const struct pprof_file *pp, const struct wire_field *sample,
		       int64_t values[PPROF_MAX_TYPES])
{
	struct cursor c = cursor_make(sample->bytes, sample->n);
	struct wire_field f;
	uint32_t n = 0;

	memset(values, 0, pp->n_types * sizeof(*values));
	while (wire_read_field(&c, &f)) {
		struct cursor list = cursor_make(f.bytes, f.n);

		if (f.number != 2)
			continue;
		if (f.type == WIRE_VARINT && n < pp->n_types)
			values[n++] = (int64_t)f.value;
		while (f.type == WIRE_BYTES && n < pp->n_types && cursor_left(&list) > 0)
			values[n++] = (int64_t)wire_read_varint(&list);
	}
}
