/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/allocations.h"
#include "util/cleanup.h"

#define LIBRARY	  "libperfwalk-alloc.so"
#define END_STACK 8 /* no stack: the registers alone */

/* path: after the program's directory, beside which others may write: so the library has to have
 * the program's owner. */
static bool find_beside(const char *program, const char *path, char ret[PATH_MAX])
{
	char candidate[PATH_MAX + 64];
	struct stat library, own;

	(void)snprintf(candidate, sizeof(candidate), "%.*s%s",
		       (int)(strrchr(program, '/') - program), program, path);
	return realpath(candidate, ret) && access(ret, R_OK) == 0 && stat(ret, &library) == 0 &&
	       stat("/proc/self/exe", &own) == 0 && library.st_uid == own.st_uid;
}

/*
 * One build makes the packages for /usr and the archive for /usr/local, so the program's own place
 * comes first: PREFIX/bin, or the build directory. Then where configure put it.
 */
static int find_library(char ret[PATH_MAX])
{
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[n > 0 ? n : 0] = '\0';
	if (strchr(program, '/') && (find_beside(program, "/../lib/perfwalk/" LIBRARY, ret) ||
				     find_beside(program, "/alloc/" LIBRARY, ret)))
		return 0;
	(void)snprintf(ret, PATH_MAX, "%s", ALLOC_LIBRARY_DIR "/" LIBRARY);
	return access(ret, R_OK) == 0 ? 0 : -errno;
}

static int parse_marker(const char *library, const char *marker, struct sample_event *ret,
			char *error, size_t n_error)
{
	char text[PATH_MAX + 64];

	(void)snprintf(text, sizeof(text), "uprobe:%s:%s", library, marker);
	return sample_event_parse(text, ret, error, n_error);
}

int allocations_events(struct broker_event ret[ALLOCATIONS_N_EVENTS], char *error, size_t n_error)
{
	char library[PATH_MAX];
	int r = find_library(library);

	if (r < 0) {
		(void)snprintf(
			error, n_error,
			"the allocation library is not installed: there is no " LIBRARY
			" in ../lib/perfwalk of the program's directory, nor in " ALLOC_LIBRARY_DIR
			"; install the whole of perfwalk");
		return r;
	}
	if (!sample_has_arguments()) {
		(void)snprintf(error, n_error, "it is not made for this processor yet");
		return -EOPNOTSUPP;
	}
	ret[0] = (struct broker_event){.use = SAMPLE_USE_PICKED, .period = 1};
	ret[1] = (struct broker_event){
		.use = SAMPLE_USE_ENDED, .period = 1, .stack_bytes = END_STACK};
	r = parse_marker(library, "perfwalk_alloc_sample", &ret[0].event, error, n_error);
	if (r == 0)
		r = parse_marker(library, "perfwalk_free_sample", &ret[1].event, error, n_error);
	return r;
}

void allocations_name(struct broker_event *e)
{
	(void)snprintf(e->event.name, sizeof(e->event.name), "%s",
		       e->use == SAMPLE_USE_PICKED ? "alloc_space" : "inuse_space");
}

void allocations_preload(void)
{
	const char *before = getenv("LD_PRELOAD");
	_cleanup_free_ char *both = NULL;
	char library[PATH_MAX];

	if (find_library(library) < 0 ||
	    asprintf(&both, "%s%s%s", library, before && *before ? ":" : "", before ? before : "") <
		    0)
		return;
	(void)setenv("LD_PRELOAD", both, 1);
}
