/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of perf.data. A file has a table of sections. A pipe has only a magic and a size; all
 * else comes as records among the others, with build ids at the very end. So we go through a pipe's
 * records once before we return any of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/perf-data/internal.h"

#define MAX_EVENTS    1024
#define MAX_IDS	      (1u << 20)
#define MAX_FILES     65536
#define MAX_COUNTERS  (1u << 20)
#define MAX_PENDING   (1u << 23) /* 192 MiB: files without rounds */
#define N_FEATURES    256
#define SECTION_BYTES 16

static const char magic[8] = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};
static const char magic_swapped[8] = {'2', 'E', 'L', 'I', 'F', 'R', 'E', 'P'};
static const char magic_old[8] = {'P', 'E', 'R', 'F', 'F', 'I', 'L', 'E'};

__attribute__((format(printf, 4, 5))) static int refuse(char *error, size_t n_error, int code,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error, n_error, format, args);
	va_end(args);
	return code;
}

/* The bytes of a section {offset, size}, or a failed cursor if some of them are missing. */
static struct cursor section(const struct perf_data *d, struct cursor *table)
{
	uint64_t offset = cursor_u64(table), size = cursor_u64(table);
	struct cursor c;

	if (!cursor_ok(table) || offset > d->n_bytes || size > d->n_bytes - offset) {
		c = cursor_make(d->bytes, 0);
		c.failed = true;
		return c;
	}
	return cursor_make(d->bytes + offset, (size_t)size);
}

static int read_attrs(struct perf_data *d, struct cursor attrs, uint64_t attr_size, char *error,
		      size_t n_error)
{
	int r;

	if (!cursor_ok(&attrs) || attr_size < PERF_ATTR_SIZE_VER0 + SECTION_BYTES ||
	    attr_size > 4096)
		return refuse(error, n_error, -EBADMSG,
			      "its header is damaged: the table of events is outside of the "
			      "file; record it again");
	while (cursor_left(&attrs) >= attr_size) {
		const uint8_t *attr = cursor_take(&attrs, (size_t)attr_size);
		struct cursor where = cursor_make(attr + attr_size - SECTION_BYTES, SECTION_BYTES);
		struct cursor ids = section(d, &where);

		r = perf_data_add_attr(d, attr, (size_t)attr_size - SECTION_BYTES, ids.start,
				       cursor_left(&ids) / 8);
		if (r == -E2BIG)
			return refuse(error, n_error, -EBADMSG,
				      "more than %u events, or %u ids of them", MAX_EVENTS,
				      MAX_IDS);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Feature sections follow the data, one for each bit in the header, in their order. */
static int read_features(struct perf_data *d, uint64_t at, const uint64_t bits[N_FEATURES / 64])
{
	struct cursor table = cursor_make(d->bytes, (size_t)d->n_bytes);

	if (!cursor_take(&table, (size_t)at))
		return 0;
	for (uint32_t i = 0; i < N_FEATURES; i++) {
		struct cursor c;
		int r;

		if (!(bits[i / 64] >> (i % 64) & 1))
			continue;
		c = section(d, &table);
		r = cursor_ok(&c) ? perf_data_feature(d, i, c) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_file_header(struct perf_data *d, struct cursor c, char *error, size_t n_error)
{
	uint64_t attr_size = cursor_u64(&c), bits[N_FEATURES / 64], size;
	struct cursor attrs = section(d, &c);
	int r;

	d->data_start = cursor_u64(&c);
	size = cursor_u64(&c);
	(void)cursor_u64(&c); /* event types: no longer written */
	(void)cursor_u64(&c);
	cursor_read(&c, bits, sizeof(bits));
	if (!cursor_ok(&c))
		return refuse(error, n_error, -EBADMSG,
			      "it ends within its header: perf record was interrupted, or the copy "
			      "is incomplete");
	r = read_attrs(d, attrs, attr_size, error, n_error);
	if (r < 0)
		return r;
	if (!d->attrs.n || d->data_start > d->n_bytes)
		return refuse(
			error, n_error, -EBADMSG, "its header is damaged: %s; record it again",
			d->attrs.n ? "the records are outside of the file" : "it lists no event");
	d->data_end = d->n_bytes;
	/*
	 * perf writes the size when it ends: if it was killed, the size is 0, and there are no
	 * features.
	 */
	if (size && size <= d->n_bytes - d->data_start)
		d->data_end = d->data_start + size;
	else if (size)
		d->stats.cut_bytes = size - (d->n_bytes - d->data_start);
	if (size && !d->stats.cut_bytes)
		r = read_features(d, d->data_end, bits);
	return r;
}

/* ---- A pipe ---- */

static int read_attr_record(struct perf_data *d, const uint8_t *record, size_t n)
{
	uint32_t size = 0;
	size_t left = n - sizeof(struct perf_event_header);

	record += sizeof(struct perf_event_header);
	if (left < PERF_ATTR_SIZE_VER0)
		return 0;
	memcpy(&size, record + offsetof(struct perf_event_attr, size), sizeof(size));
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size > left || size < PERF_ATTR_SIZE_VER0)
		return 0;
	return perf_data_add_attr(d, record, size, record + size, (left - size) / 8);
}

static int read_meta_record(struct perf_data *d, uint32_t type, const uint8_t *record, size_t n)
{
	struct cursor c = cursor_make(record, n);
	uint64_t feature;

	switch (type) {
	case PERF_DATA_HEADER_ATTR:
		return read_attr_record(d, record, n);
	case PERF_DATA_BUILD_ID:
		return perf_data_add_build_id(d, c);
	case PERF_DATA_FEATURE:
		(void)cursor_take(&c, sizeof(struct perf_event_header));
		feature = cursor_u64(&c);
		return cursor_ok(&c) && feature < N_FEATURES
			       ? perf_data_feature(d, (uint32_t)feature,
						   cursor_make(c.cur, cursor_left(&c)))
			       : 0;
	default:
		return 0;
	}
}

static int read_pipe(struct perf_data *d, char *error, size_t n_error)
{
	d->data_start = PERF_DATA_PIPE_HEADER;
	d->data_end = d->n_bytes;
	for (uint64_t at = d->data_start, size; (size = perf_data_step(d, at)) != 0; at += size) {
		struct perf_event_header h;
		int r;

		memcpy(&h, d->bytes + at, sizeof(h));
		r = read_meta_record(d, h.type, d->bytes + at, h.size);
		if (r < 0)
			return r == -E2BIG ? refuse(error, n_error, -EBADMSG,
						    "more than %u events, or %u ids of them",
						    MAX_EVENTS, MAX_IDS)
					   : r;
	}
	if (!d->attrs.n)
		return refuse(error, n_error, -EBADMSG,
			      "it holds no event: perf record was interrupted before its first "
			      "record");
	return 0;
}

/* ---- Both ---- */

static int check_magic(const uint8_t *bytes, size_t n, char *error, size_t n_error)
{
	if (n == 0)
		return refuse(error, n_error, -EBADMSG,
			      "it is empty: perf record was interrupted before it wrote anything");
	if (n >= 8 && memcmp(bytes, magic_swapped, 8) == 0)
		return refuse(error, n_error, -EOPNOTSUPP,
			      "it was recorded on a big-endian host, which is not supported; "
			      "convert it there by perf script");
	if (n >= 8 && memcmp(bytes, magic_old, 8) == 0)
		return refuse(error, n_error, -EOPNOTSUPP,
			      "it has the form of perf before Linux 3.0; record it with a newer "
			      "perf");
	if (n < PERF_DATA_PIPE_HEADER || memcmp(bytes, magic, 8) != 0)
		return refuse(error, n_error, -EBADMSG, "it is not a file of perf record");
	return 0;
}

static int check_arch(const struct perf_data *d, char *error, size_t n_error)
{
	const char *here = sample_arch_name;

	if (d->host.arch[0] && strcmp(d->host.arch, here) != 0 && d->event.regs_mask)
		return refuse(error, n_error, -EOPNOTSUPP,
			      "it was recorded on %s, and its stacks cannot be walked on %s: "
			      "convert it on such a host",
			      d->host.arch, here);
	return 0;
}

static int read_all(struct perf_data *d, char *error, size_t n_error)
{
	struct cursor c = cursor_make(d->bytes, (size_t)d->n_bytes);
	uint64_t header_size;
	int r;

	(void)cursor_take(&c, sizeof(magic));
	header_size = cursor_u64(&c);
	d->pipe = header_size == PERF_DATA_PIPE_HEADER;
	r = d->pipe ? read_pipe(d, error, n_error) : read_file_header(d, c, error, n_error);
	if (r == 0)
		r = perf_data_choose(d, error, n_error);
	if (r == 0)
		r = check_arch(d, error, n_error);
	d->at = d->data_start;
	return r;
}

int perf_data_new(struct perf_data **ret, const void *bytes, size_t n, const char *event,
		  char *error, size_t n_error)
{
	_cleanup_(perf_data_freep) struct perf_data *d = NULL;
	int r = check_magic(bytes, n, error, n_error);

	if (r < 0)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->bytes = d->records = bytes;
	d->n_bytes = n;
	d->attrs.max = MAX_EVENTS;
	d->ids.max = MAX_IDS;
	d->files.max = MAX_FILES;
	d->counters.max = MAX_COUNTERS;
	d->pending.max = MAX_PENDING;
	d->wanted_event = event;
	r = read_all(d, error, n_error);
	d->wanted_event = NULL;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}

struct perf_data *perf_data_free(struct perf_data *d)
{
	if (d) {
		array_deinit(&d->attrs);
		array_deinit(&d->ids);
		array_deinit(&d->files);
		array_deinit(&d->pending);
		array_deinit(&d->counters);
		hash_index_deinit(&d->counter_index);
		hash_index_deinit(&d->file_index);
		free(d->inflated);
		free(d);
	}
	return NULL;
}

const struct perf_data_event *perf_data_event(const struct perf_data *d)
{
	return &d->event;
}

const struct perf_data_host *perf_data_host(const struct perf_data *d)
{
	return &d->host;
}
