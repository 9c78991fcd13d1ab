/* SPDX-License-Identifier: Apache-2.0 */
/* perfwalk debug in the child without privileges: bytes that a stranger may have written. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/process/file-identity.h"
#include "src/process/role.h"
#include "src/symbolizer/debug-show.h"
#include "src/symbolizer/setup.h"
#include "unwind/explain.h"
#include "unwind/recorded.h"
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

int debug_show(struct role *role, enum view_mode mode, const char *path, int fd,
	       const uint64_t *which, FILE *out)
{
	_cleanup_(unwinder_freep) struct unwinder *u = NULL;
	struct file_identity id;
	int r = unwinder_new(&u, NULL);

	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	role_job_begin(role);
	if (file_identity_get(fd, &id) == 0)
		role_job_read(role, &id, path);
	r = mode == VIEW_DEBUG_SAMPLE ? show_samples(u, path, fd, which, out)
				      : show_rows(u, path, fd, which, out);
	role_job_end(role);
	return r;
}
