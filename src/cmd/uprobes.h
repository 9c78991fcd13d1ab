/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Events of user code get their places before they can be opened. */
#include <stddef.h>
#include <sys/types.h>

#include "src/sample/sample.h"

/*
 * Finds the places of an event in its file, which a child without privileges reads, and sets the
 * probe. pid: whose file of that path it is, for one in a container; 0: the host's. Nothing for
 * other events. 0; -errno: error says cause and remedy.
 */
int uprobes_place(const struct sample_event *e, pid_t pid, char *error, size_t n_error);
