/* SPDX-License-Identifier: Apache-2.0 */
/* Feature sections of perf.data: names of events, build ids, facts of the host. */
#include <errno.h>
#include <stdio.h>

#include "src/perf-data/internal.h"
#include "util/text.h"

/* tools/perf/util/header.h */
enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCK_DATA = 29,
};

#define BUILD_ID_FIELD	   24	  /* 20 bytes, padded */
#define MISC_BUILD_ID_SIZE 0x8000 /* the byte after the 20 says how many count */
#define MAX_EVENTS	   1024

/* Reads a length, which includes padding, and so many bytes with a 0 among them. */
static const char *read_string(struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	const char *s = cursor_take(c, n);

	if (!s || !memchr(s, 0, n)) {
		c->failed = true;
		return NULL;
	}
	return s;
}

static void read_text(struct cursor *c, char *field, size_t size)
{
	const char *s = read_string(c);

	if (s)
		(void)text_clean(field, size, s, strlen(s));
}

/* ---- Build ids ---- */

static struct perf_data_file_id *find_file(const struct perf_data *d, const char *path)
{
	uint64_t hash = hash_bytes(path, strlen(path), 0);
	uint32_t slot = hash_index_first(&d->file_index, hash), row;

	for (; (row = hash_index_row(&d->file_index, slot)) != HASH_INDEX_NONE;
	     slot = hash_index_next(&d->file_index, slot)) {
		if (hash_index_match(&d->file_index, slot, hash) &&
		    strcmp(d->files.items[row].path, path) == 0)
			return &d->files.items[row];
	}
	return NULL;
}

const struct perf_data_build_id *perf_data_build_id(const struct perf_data *d, const char *path)
{
	const struct perf_data_file_id *f = find_file(d, path);

	return f ? &f->id : NULL;
}

static int add_file(struct perf_data *d, const char *path, const struct perf_data_build_id *id)
{
	struct perf_data_file_id *f;

	if (strcmp(path, "[kernel.kallsyms]") == 0)
		d->host.kernel_build_id = *id;
	else if (strcmp(path, "[vdso]") == 0)
		d->host.vdso_build_id = *id;
	if (path[0] != '/' || find_file(d, path))
		return 0;
	f = array_push(&d->files);
	if (!f)
		return d->files.n == d->files.max ? 0 : -ENOMEM;
	*f = (struct perf_data_file_id){path, *id};
	return hash_index_add(&d->file_index, hash_bytes(path, strlen(path), 0), d->files.n - 1);
}

int perf_data_add_build_id(struct perf_data *d, struct cursor c)
{
	struct perf_data_build_id id = {.n = PERF_DATA_MAX_BUILD_ID};
	struct perf_event_header h;
	const uint8_t *bytes;
	const char *path;

	cursor_read(&c, &h, sizeof(h));
	(void)cursor_u32(&c); /* pid of a guest */
	bytes = cursor_take(&c, BUILD_ID_FIELD);
	path = cursor_string(&c);
	if (!cursor_ok(&c))
		return 0;
	if (h.misc & MISC_BUILD_ID_SIZE)
		id.n = bytes[PERF_DATA_MAX_BUILD_ID];
	if (id.n == 0 || id.n > PERF_DATA_MAX_BUILD_ID)
		return 0;
	memcpy(id.bytes, bytes, id.n);
	return add_file(d, path, &id);
}

static int read_build_ids(struct perf_data *d, struct cursor *c)
{
	while (cursor_left(c) >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		const uint8_t *at = c->cur;
		int r;

		memcpy(&h, at, sizeof(h));
		if (h.size < sizeof(h) || !cursor_take(c, h.size))
			break;
		r = perf_data_add_build_id(d, cursor_make(at, h.size));
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- Events ---- */

static const struct {
	uint32_t type;
	uint64_t config;
	const char *name;
} known_events[] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses"},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock"},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock"},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults"},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches"},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, "dummy"},
};

void perf_data_name_attr(const struct perf_event_attr *attr, char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_events); i++) {
		if (known_events[i].type == attr->type && known_events[i].config == attr->config) {
			(void)snprintf(name, size, "%s", known_events[i].name);
			return;
		}
	}
	(void)snprintf(name, size, "event %u:%#llx", attr->type, (unsigned long long)attr->config);
}

/* Reads the list of the same events, in the same order, with their names. */
static void read_event_desc(struct perf_data *d, struct cursor *c)
{
	uint32_t n = cursor_u32(c), attr_size = cursor_u32(c);

	for (uint32_t i = 0; i < n && i < MAX_EVENTS && cursor_ok(c); i++) {
		const struct perf_event_attr *attr = cursor_take(c, attr_size);
		uint32_t n_ids = cursor_u32(c);
		char name[64] = "";

		read_text(c, name, sizeof(name));
		if (!attr || n_ids > cursor_left(c) / 8)
			return;
		(void)cursor_take(c, 8 * (size_t)n_ids);
		if (cursor_ok(c) && i < d->attrs.n && name[0])
			memcpy(d->attrs.items[i].name, name, sizeof(name));
	}
}

int perf_data_feature(struct perf_data *d, uint32_t feature, struct cursor c)
{
	uint64_t wall, clock;

	switch (feature) {
	case FEATURE_BUILD_ID:
		return read_build_ids(d, &c);
	case FEATURE_HOSTNAME:
		read_text(&c, d->host.name, sizeof(d->host.name));
		return 0;
	case FEATURE_OSRELEASE:
		read_text(&c, d->host.release, sizeof(d->host.release));
		return 0;
	case FEATURE_ARCH:
		read_text(&c, d->host.arch, sizeof(d->host.arch));
		return 0;
	case FEATURE_NRCPUS:
		(void)cursor_u32(&c); /* number of configured CPUs; then of online ones */
		d->host.n_cpus = cursor_u32(&c);
		return 0;
	case FEATURE_EVENT_DESC:
		read_event_desc(d, &c);
		return 0;
	case FEATURE_SAMPLE_TIME:
		(void)cursor_u64(&c);
		d->host.last_time_ns = cursor_u64(&c);
		return 0;
	case FEATURE_CLOCK_DATA:
		(void)cursor_u64(&c); /* version, clock id */
		wall = cursor_u64(&c);
		clock = cursor_u64(&c);
		if (cursor_ok(&c) && wall > clock)
			d->host.clock_offset_ns = wall - clock;
		return 0;
	default:
		return 0;
	}
}
