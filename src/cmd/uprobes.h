/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The places of events of user code, which must be known before the events can be opened. */
#include <stddef.h>
#include <sys/types.h>

#include "src/sample/sample.h"

/*
 * Finds the places of an event in its file, which a child without privileges reads, and sets the
 * probe. pid: the process whose file of that path it is, for a container; 0: the host's. Does
 * nothing for other events. 0; -errno: error says cause and remedy.
 */
int uprobes_place(const struct sample_event *e, pid_t pid, char *error, size_t n_error);
