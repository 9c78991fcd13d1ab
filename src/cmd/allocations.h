/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The events of the allocation library (alloc/): its two USDT markers. */
#include <stddef.h>

#include "src/broker/broker.h"

#define ALLOCATIONS_N_EVENTS 2
#define ALLOCATIONS_STACK    (16u << 10) /* bytes to copy by default */

/* Makes the events of its markers, without their places (uprobes.h). 0; -errno: error says cause
 * and remedy. */
int allocations_events(struct broker_event ret[ALLOCATIONS_N_EVENTS], char *error, size_t n_error);
/* Gives an event the name of its profile type instead of the marker's. */
void allocations_name(struct broker_event *e);
/* Call it in the child that becomes the command: the programs that it executes load the library. */
void allocations_preload(void);
