/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first thread's struct is in the variables of musl, or where its allocator put it at the
 * start; those of others are at the ends of their stacks. All is memory of the process's own that
 * it may write, and the first struct that is found there leads to the first thread.
 */
#include <stdlib.h>
#include <string.h>

#include "runtimes/musl.h"
#include "runtimes/thread-variable.h"
#include "src/host/host.h"
#include "src/profiler/c-library.h"
#include "util/cleanup.h"

enum {
	MAX_LINES = 65536, /* of maps */
	CHUNK_BYTES = 65536,
	MAX_MAPPING_BYTES = 2 << 20,
	MAX_READS = 65536,
};
#define MAX_BYTES (UINT64_C(16) << 20)

static bool is_glibc(const char *name)
{
	return strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2.", 7) == 0;
}

static bool is_loader(const char *name)
{
	return strncmp(name, "ld-linux-", 9) == 0;
}

/* Its code. */
static const struct host_mapping *find_library(const struct host_process *p,
					       bool (*is)(const char *name))
{
	for (uint32_t i = 0; i < p->n_mappings; i++) {
		const struct host_mapping *m = &p->mappings[i];
		const char *path = m->kind == HOST_MAPPING_FILE ? m->file->path : "";
		const char *slash = strrchr(path, '/');

		if (is(slash ? slash + 1 : path))
			return m;
	}
	return NULL;
}

static bool open_library(const struct host_process *p, bool (*is)(const char *name),
			 struct memory *memory, struct image *ret)
{
	const struct host_mapping *m = find_library(p, is);

	return m && m->start >= m->file_offset &&
	       image_open(ret, memory, m->start - m->file_offset);
}

bool c_library_is_glibc(const struct host_process *p)
{
	return find_library(p, is_glibc) != NULL;
}

uint32_t c_library_glibc_bytes(const struct host_process *p, struct memory *memory)
{
	struct image image;

	return open_library(p, is_glibc, memory, &image) ? thread_struct_bytes(&image) : 0;
}

int32_t c_library_glibc_cpu(const struct host_process *p, struct memory *memory)
{
	struct image image;

	return open_library(p, is_loader, memory, &image) ? thread_struct_cpu(&image) : 0;
}

/* "START-END rw-p ...": to be written, and shared with nobody. */
static bool is_own(const char *line)
{
	const char *permissions = strchr(line, ' ');

	return permissions && strncmp(permissions + 1, "rw", 2) == 0 && permissions[3] &&
	       permissions[4] == 'p';
}

static uint64_t find_in_mapping(struct memory *m, const struct host_maps_line *line, uint8_t *chunk)
{
	uint64_t end = line->end, found = 0;

	if (end - line->start > MAX_MAPPING_BYTES)
		end = line->start + MAX_MAPPING_BYTES;
	for (uint64_t at = line->start; at < end && !found && m->bytes_left; at += CHUNK_BYTES) {
		size_t n = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;

		if (!memory_read(m, at, chunk, n))
			break;
		found = musl_thread_find(m, at, chunk, n);
	}
	return found;
}

uint64_t c_library_musl_thread(const struct host_process *p, FILE *maps,
			       const struct memory *memory)
{
	struct memory m = *memory;
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);
	_cleanup_free_ char *text = NULL;
	uint64_t found = 0;
	size_t size = 0;
	ssize_t n;

	if (!chunk || c_library_is_glibc(p))
		return 0;
	m.reads_left = MAX_READS;
	m.bytes_left = MAX_BYTES;
	for (uint32_t i = 0; i < MAX_LINES && !found && (n = getline(&text, &size, maps)) > 1;
	     i++) {
		struct host_maps_line line;

		if (is_own(text) && host_parse_maps_line(text, (size_t)n - 1, &line))
			found = find_in_mapping(&m, &line, chunk);
	}
	return found ? musl_thread_find_first(&m, found, p->pid) : 0;
}
