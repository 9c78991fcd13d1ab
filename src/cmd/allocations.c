/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/allocations.h"
#include "util/cleanup.h"

#define LIBRARY	  "libperfwalk-alloc.so"
#define END_STACK 8 /* no stack: the registers alone */

static int find_library(char *path, size_t size)
{
	char program[PATH_MAX], *slash;
	ssize_t n;

	(void)snprintf(path, size, "%s", ALLOC_LIBRARY_DIR "/" LIBRARY);
	if (access(path, R_OK) == 0)
		return 0;
	/* Of a program that was not installed. */
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n <= 0)
		return -ENOENT;
	program[n] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	if (snprintf(path, size, "%s/alloc/" LIBRARY, program) >= (int)size)
		return -ENAMETOOLONG;
	return access(path, R_OK) == 0 ? 0 : -errno;
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
	int r = find_library(library, sizeof(library));

	if (r < 0) {
		(void)snprintf(
			error, n_error,
			"the allocation library is not installed: there is no " ALLOC_LIBRARY_DIR
			"/" LIBRARY);
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

	if (find_library(library, sizeof(library)) < 0 ||
	    asprintf(&both, "%s%s%s", library, before && *before ? ":" : "", before ? before : "") <
		    0)
		return;
	(void)setenv("LD_PRELOAD", both, 1);
}
