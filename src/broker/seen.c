/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the kernel writes into the data of a ring, but a profiler that was taken over moves the
 * tail, so where records begin is not known. We look at each multiple of 8, where alone they begin.
 * What strangers can bring into a ring of mappings are names, and no name holds the zeros of a
 * header and of a device. The size of the path's field is that of the record without its end, which
 * depends on the event; so the path must only be followed by a 0.
 */
#include "src/broker/seen.h"

#include <linux/perf_event.h>
#include <string.h>

/* The beginning of a PERF_RECORD_MMAP2, see perf_event_open(2). */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, page_offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
};

static void copy_out(const struct ring *r, uint64_t at, void *ret, size_t n)
{
	uint64_t from = at & (r->data_bytes - 1), first = r->data_bytes - from;

	first = first < n ? first : n;
	memcpy(ret, r->data + from, first);
	memcpy((uint8_t *)ret + first, r->data, n - first);
}

static bool is_mapping(const struct ring *r, uint64_t at, const struct mapped_file_name *file,
		       size_t n_path)
{
	char path[PROTOCOL_PATH_MAX];
	struct mmap2_record m;

	copy_out(r, at, &m, sizeof(m));
	if (m.header.type != PERF_RECORD_MMAP2 || m.header.size < sizeof(m) + n_path ||
	    (m.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || m.inode != file->inode ||
	    m.major != file->major || m.minor != file->minor)
		return false;
	copy_out(r, at + sizeof(m), path, n_path);
	return memcmp(path, file->path, n_path) == 0;
}

/* How much of it was ever written. */
static uint64_t bytes_of(const struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);

	return head < r->data_bytes ? head : r->data_bytes;
}

bool seen_mapped(const struct events *e, const struct mapped_file_name *file)
{
	size_t n_path = strnlen(file->path, sizeof(file->path)) + 1;

	if (!file->inode || n_path > sizeof(file->path))
		return false;
	for (uint32_t i = 0; i < e->cpus.n; i++) {
		const struct ring *r = &e->cpus.items[i].sideband;
		uint64_t n = r->page ? bytes_of(r) : 0;

		for (uint64_t at = 0; at + 8 <= n; at += 8) {
			/* Most words are no header. */
			uint32_t type;

			memcpy(&type, r->data + at, sizeof(type));
			if (type == PERF_RECORD_MMAP2 && is_mapping(r, at, file, n_path))
				return true;
		}
	}
	return false;
}
