/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the reader of a file, and maps its bytes or inflates them within a limit. */
#include "src/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "src/import/builder.h"
#include "util/cleanup.h"
#include "util/mapped-file.h"

#define FIRST_BYTES (UINT64_C(1) << 20)

static bool has_suffix(const char *path, size_t n, const char *suffix)
{
	size_t m = strlen(suffix);

	return n > m && strncmp(path + n - m, suffix, m) == 0;
}

enum import_kind import_detect(const void *head, size_t n, const char *path)
{
	size_t length = strlen(path);
	bool gzip = n >= 2 && memcmp(head, "\x1f\x8b", 2) == 0;

	if (n >= 8 && memcmp(head, "PERFILE2", 8) == 0)
		return IMPORT_PERF_DATA;
	if (n >= 6 && *(const uint8_t *)head == 0 &&
	    memcmp((const char *)head + 4, "\x1f\x8b", 2) == 0)
		return IMPORT_OTLP; /* as in the local store */
	if (has_suffix(path, length, ".gz"))
		length -= 3;
	if (has_suffix(path, length, ".otlp") || has_suffix(path, length, ".otlp.pb"))
		return IMPORT_OTLP;
	if (has_suffix(path, length, ".folded") || has_suffix(path, length, ".collapsed"))
		return IMPORT_FOLDED;
	if (gzip || has_suffix(path, length, ".pb") || has_suffix(path, length, ".pprof") ||
	    has_suffix(path, length, ".prof"))
		return IMPORT_PPROF;
	/* Does it look like text? */
	for (size_t i = 0; i < n; i++) {
		if (((const uint8_t *)head)[i] < ' ' && !strchr("\t\r\n", ((const char *)head)[i]))
			return IMPORT_UNKNOWN;
	}
	return n ? IMPORT_FOLDED : IMPORT_UNKNOWN;
}

void import_facts_deinit(struct import_facts *f)
{
	free(f->host_name);
	free(f->kernel_release);
	free(f->title);
	free(f->spans);
}

static int failed(struct import *im, int e)
{
	(void)snprintf(im->error, IMPORT_ERROR_MAX, "%s", strerror(-e));
	return e;
}

/* Inflates all of it into a buffer that doubles. */
static int gunzip(struct import *im, const uint8_t *bytes, size_t n, uint64_t max_bytes,
		  uint8_t **ret, size_t *ret_n)
{
	_cleanup_free_ uint8_t *out = NULL;
	size_t room = 0;
	z_stream z = {0};
	int r;

	if (n > UINT32_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return failed(im, -ENOMEM);
	z.next_in = (Bytef *)bytes;
	z.avail_in = (uInt)n;
	do {
		if (z.avail_out == 0) {
			size_t more = room ? room : FIRST_BYTES;
			uint8_t *bigger;

			if (room >= max_bytes || more > UINT32_MAX / 2) {
				(void)inflateEnd(&z);
				(void)snprintf(im->error, IMPORT_ERROR_MAX,
					       "it inflates to more than %llu MiB",
					       (unsigned long long)max_bytes >> 20);
				return -EFBIG;
			}
			bigger = realloc(out, room + more);
			if (!bigger) {
				(void)inflateEnd(&z);
				return failed(im, -ENOMEM);
			}
			out = bigger;
			z.next_out = out + room;
			z.avail_out = (uInt)more;
			room += more;
		}
		r = inflate(&z, Z_NO_FLUSH);
		/* Some writers append gzip members. */
		if (r == Z_STREAM_END && z.avail_in > 0)
			r = inflateReset(&z);
	} while (r == Z_OK);
	*ret_n = room - z.avail_out;
	(void)inflateEnd(&z);
	if (r != Z_STREAM_END)
		return import_damaged(im, "its compressed data (gzip) is damaged or truncated");
	*ret = TAKE_PTR(out);
	return 0;
}

/* Replaces gzipped bytes by what they hold, which is in *owned. */
static int undo_gzip(struct import *im, const uint8_t **bytes, size_t *n, uint64_t max_bytes,
		     uint8_t **owned)
{
	int r;

	if (*n < 2 || (*bytes)[0] != 0x1f || (*bytes)[1] != 0x8b)
		return 0;
	r = gunzip(im, *bytes, *n, max_bytes, owned, n);
	if (r == 0)
		*bytes = *owned;
	return r;
}

static int read_message(struct import *im, const uint8_t *bytes, size_t n, uint64_t max_bytes)
{
	_cleanup_free_ uint8_t *inflated = NULL;
	int r = undo_gzip(im, &bytes, &n, max_bytes, &inflated);

	return r < 0 ? r : import_read_otlp(im, bytes, n);
}

/* A message begins with the tag of one of its two fields; a length hardly begins with these. */
static int read_messages(struct import *im, const uint8_t *bytes, size_t n, uint64_t max_bytes)
{
	size_t at = 0;
	int r = 0;

	if (n && (bytes[0] == 0x0a || bytes[0] == 0x12))
		return import_read_otlp(im, bytes, n);
	while (r == 0 && at < n) {
		uint32_t length;

		if (n - at < 4)
			return import_damaged(im, "it is truncated at byte %zu", at);
		length = (uint32_t)bytes[at] << 24 | (uint32_t)bytes[at + 1] << 16 |
			 (uint32_t)bytes[at + 2] << 8 | bytes[at + 3];
		at += 4;
		if (length > n - at)
			return import_damaged(
				im, "it is truncated: a message of %u bytes begins at byte %zu",
				length, at);
		r = read_message(im, bytes + at, length, max_bytes);
		at += length;
	}
	return r;
}

static int read_bytes(struct import *im, enum import_kind kind, const uint8_t *bytes, size_t n,
		      uint64_t max_bytes)
{
	switch (kind) {
	case IMPORT_FOLDED:
		return import_read_folded(im, bytes, n);
	case IMPORT_PPROF:
		/* Those of viewers, which no message begins with. */
		if (n && (*bytes == '{' || *bytes == '<'))
			break;
		return import_read_pprof(im, bytes, n);
	case IMPORT_OTLP:
		return read_messages(im, bytes, n, max_bytes);
	case IMPORT_PERF_DATA:
	case IMPORT_UNKNOWN:
		break;
	}
	return import_damaged(im, "its format is unknown. " IMPORT_FORMATS);
}

/* Reports profiles of kinds other than the wanted one. */
static int say_left_out(struct import *im)
{
	char kinds[256], others[256];

	(void)import_list_text(im, &im->kinds, kinds, sizeof(kinds));
	(void)import_list_text(im, &im->others, others, sizeof(others));
	if (!im->n_event && im->facts->measure.what == STRID_EMPTY && im->facts->like_what) {
		if (!im->facts->like_only)
			return import_damaged(
				im,
				"its values are %s, the other file's are %s:%s; choose "
				"one that both have with --event",
				kinds, im->facts->like_what, im->facts->like_unit);
		import_note(im, IMPORT_LEFT_OUT,
			    "it has no values of %s:%s, only %s: choose with --event",
			    im->facts->like_what, im->facts->like_unit, kinds);
		return 0;
	}
	if (im->event && !im->n_event)
		return import_damaged(im, "it has no values called \"%s\"; there are %s", im->event,
				      *kinds ? kinds : "none");
	if (!im->event && !im->n_event && *kinds)
		import_note(im, IMPORT_LEFT_OUT,
			    "it is left out: its values are %s, the files before it have %s:%s; "
			    "choose with --event",
			    kinds, profile_text(im->p, im->facts->measure.what),
			    profile_text(im->p, im->facts->measure.unit));
	else if (im->n_others && *others)
		import_note(im, IMPORT_LEFT_OUT,
			    "%llu profiles of other values than %s:%s are left out (%s): choose "
			    "with --event",
			    (unsigned long long)im->n_others,
			    profile_text(im->p, im->facts->measure.what),
			    profile_text(im->p, im->facts->measure.unit), others);
	return 0;
}

static int import_bytes(struct import *im, enum import_kind kind, const uint8_t *bytes, size_t n,
			uint64_t max_bytes)
{
	_cleanup_free_ uint8_t *inflated = NULL;
	uint64_t known = im->p->counters[PROFILE_SAMPLES];
	int r = undo_gzip(im, &bytes, &n, max_bytes, &inflated);

	if (r < 0)
		return r;
	im->error[0] = '\0';
	r = read_bytes(im, kind, bytes, n, max_bytes);
	if (r == 0 && kind != IMPORT_FOLDED)
		r = say_left_out(im);
	if (r == 0 && im->n_cut)
		import_note(im, IMPORT_LEFT_OUT,
			    "%llu samples have stacks of more than %d frames, or %d functions at "
			    "one place: frames beyond are left out, and marked %s",
			    (unsigned long long)im->n_cut, IMPORT_MAX_FRAMES, IMPORT_MAX_CHAIN,
			    profile_marker_text(PROFILE_MARKER_TRUNCATED));
	if (r == -ENOMEM && !im->error[0])
		(void)snprintf(im->error, IMPORT_ERROR_MAX,
			       "it does not fit into the memory for it (%llu MiB)",
			       (unsigned long long)im->p->max_bytes >> 20);
	/* Some files do not count their samples, or not all of them. */
	known += im->n_uncounted;
	im->p->counters[PROFILE_SAMPLES] += im->n_uncounted;
	if (im->p->counters[PROFILE_SAMPLES] - known < im->n_samples - im->n_uncounted)
		im->p->counters[PROFILE_SAMPLES] = known + im->n_samples - im->n_uncounted;
	return r < 0 ? r : im->outcome;
}

int import_fd(struct profile *p, struct import_facts *facts, int fd, enum import_kind kind,
	      const char *event, uint64_t max_bytes, char *error)
{
	struct import im = {.p = p,
			    .facts = facts,
			    .event = event,
			    .cut_function = PROFILE_NONE,
			    .error = error};
	_cleanup_(mapped_file_freep) struct mapped_file *file = NULL;
	uint64_t n_short = mapped_file_n_short();
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return failed(&im, -errno);
	if (st.st_size == 0)
		return import_damaged(&im, "it is empty");
	if ((uint64_t)st.st_size > max_bytes) {
		(void)snprintf(error, IMPORT_ERROR_MAX, "it is larger than %llu MiB",
			       (unsigned long long)max_bytes >> 20);
		return -EFBIG;
	}
	r = mapped_file_new(&file, fd, 0, (size_t)st.st_size);
	if (r < 0)
		return failed(&im, r);
	im.stack.max = UINT32_MAX / 2;
	r = import_bytes(&im, kind, mapped_file_bytes(file), (size_t)st.st_size, max_bytes);
	array_deinit(&im.stack);
	return mapped_file_n_short() == n_short
		       ? r
		       : import_damaged(&im, "it was cut short while it was read");
}
