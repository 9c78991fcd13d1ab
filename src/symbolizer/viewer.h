/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recorded files in the symbolizer: they are read at the end, and rendered like a capture. */
#include <stdio.h>

#include "src/import/import.h"
#include "src/profile/profile.h"
#include "src/symbolizer/setup.h"

struct role;

struct viewer {
	struct {
		char *path;
		int fd;
	} inputs[VIEW_MAX_INPUTS];
	uint32_t n;
	char *symbol, *comm, *container, *service, *trace, *span, *event;
	char *sum; /* how the files were added up; NULL: as they are */
	struct import_facts facts;
	/* VIEW_DIFF */
	struct profile before;
	struct import_facts before_facts;
	struct render_info before_info;
};

void viewer_deinit(struct viewer *v);
/* Takes a text of the set-up, and fd, if it is the viewer's. 0; 1: it is not; -errno. */
int viewer_text(struct viewer *v, uint32_t kind, const char *text, int fd);
/* Reads all inputs into p (the first of a diff into v->before). 0 or -errno, logged with cause. */
int viewer_read(struct viewer *v, struct role *role, enum view_mode mode, struct profile *p);
/* Prints a row for each input that has samples which the options choose. Goes on after one that
 * cannot be read. 0 or -errno of the first that failed, logged with its cause. max_bytes: of a
 * profile. */
int viewer_list_windows(struct viewer *v, struct role *role,
			const struct render_report_options *options, uint64_t max_bytes, FILE *out);
/* Fills info with the facts in the files. They are borrowed from v. */
void viewer_info(struct viewer *v, const struct profile *p, struct render_info *info);
