/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk debug in the child without privileges, because the bytes are untrusted. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/symbolizer/debug-show.h"
#include "src/symbolizer/setup.h"
#include "symbolize/probe-place.h"
#include "unwind/explain.h"
#include "unwind/recorded.h"
#include "util/file-identity.h"
#include "util/log.h"

static int show_samples(struct unwinder *u, const char *path, int fd, const uint64_t *which,
			FILE *out)
{
	_cleanup_(recorded_freep) struct recorded *r = NULL;
	char error[RECORDED_ERROR_MAX];
	int e = recorded_read(&r, fd, error);

	if (e == 0)
		e = recorded_open(r, u);
	if (e < 0) {
		log_error("%s cannot be read: %s", path, *error ? error : strerror(-e));
		return e;
	}
	if (which && *which >= r->samples.n) {
		log_error("%s has no sample %" PRIu64 ": it has %u, and the first is 0", path,
			  *which, r->samples.n);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < r->samples.n; i++) {
		if (which && i != *which)
			continue;
		if (i > 0 && !which)
			(void)fputc('\n', out);
		explain_sample(out, u, r, i);
	}
	return 0;
}

static int show_rows(struct unwinder *u, const char *path, int fd, const uint64_t *which, FILE *out)
{
	_cleanup_(unwind_module_freep) struct unwind_module *m = NULL;
	int e = unwind_module_new_fd(&m, u, fd, path);

	if (e == -ENOEXEC) {
		log_error("%s is not an ELF program or library of this architecture, or it is "
			  "damaged",
			  path);
		return e;
	}
	if (e < 0) {
		log_error("%s cannot be read: %s", path, strerror(-e));
		return e;
	}
	e = explain_module(out, u, m, which);
	if (e == -ENOENT)
		log_error("%s has no code at %#" PRIx64
			  ": addresses are the file's own, as readelf prints them",
			  path, *which);
	else if (e == -E2BIG)
		log_error("%s: much of it is damaged; the rest was left out", path);
	return e;
}

static int open_debug(void *ctx, const uint8_t *build_id, size_t n_build_id, const char *link,
		      uint32_t crc)
{
	const struct debug_request *q = ctx;
	struct message m = {.type = MESSAGE_ASK_DEBUG_FILE};

	if (n_build_id > sizeof(m.ask_debug_file.build_id))
		return -1;
	m.ask_debug_file.n_build_id = (uint32_t)n_build_id;
	if (n_build_id)
		memcpy(m.ask_debug_file.build_id, build_id, n_build_id);
	if (link)
		message_set_text(m.ask_debug_file.path, sizeof(m.ask_debug_file.path), link);
	return ask_descriptor(q->ask, &m);
}

static int show_markers(const struct debug_request *q, FILE *out)
{
	int r = probe_list_markers(q->fd, out);

	if (r < 0)
		log_error("%s is not an ELF program or library, or it is damaged", q->path);
	else if (r == 0)
		log_info("%s has no USDT markers", q->path);
	return r < 0 ? r : 0;
}

/* perfwalk reads these lines itself, too (src/cmd/uprobes.c). */
static int show_places(const struct debug_request *q, FILE *out)
{
	struct probe_place places[PROBE_PLACES_MAX];
	char error[1024] = "";
	int n;

	if (!q->what)
		return show_markers(q, out);
	n = probe_find_places(q->fd, q->what, q->mode == VIEW_DEBUG_MARKER, open_debug, (void *)q,
			      places, error, sizeof(error));
	if (n < 0 && q->errors_too)
		(void)fprintf(out, "error: %s\n", error);
	else if (n < 0)
		log_error("%s: %s", q->path, error);
	for (int i = 0; i < n; i++)
		(void)fprintf(out, "%#" PRIx64 " %#" PRIx64 "\n", places[i].offset,
			      places[i].counter);
	return n < 0 ? n : 0;
}

static int show(const struct debug_request *q, FILE *out)
{
	_cleanup_(unwinder_freep) struct unwinder *u = NULL;
	int r = unwinder_new(&u, NULL);

	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	return q->mode == VIEW_DEBUG_SAMPLE ? show_samples(u, q->path, q->fd, q->which, out)
					    : show_rows(u, q->path, q->fd, q->which, out);
}

int debug_show(struct role *role, const struct debug_request *q, FILE *out)
{
	bool places = q->mode == VIEW_DEBUG_FUNCTION || q->mode == VIEW_DEBUG_MARKER;
	struct file_identity id;
	int r;

	role_job_begin(role);
	if (file_identity_get(q->fd, &id) == 0)
		role_job_read(role, &id, q->path);
	r = places ? show_places(q, out) : show(q, out);
	role_job_end(role);
	return r;
}
