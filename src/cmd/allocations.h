/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The allocation library and its markers. */
#include <stddef.h>

#include "src/broker/broker.h"

#define ALLOCATIONS_N_EVENTS 2

/* The events of its markers, still to be placed. 0; -errno: error says cause and remedy. */
int allocations_events(struct broker_event ret[ALLOCATIONS_N_EVENTS], char *error, size_t n_error);
/* Its type's name in place of the marker's. */
void allocations_name(struct broker_event *e);
/* In the child that becomes the command: the library is loaded into what it executes. */
void allocations_preload(void);
