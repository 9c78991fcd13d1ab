/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the daemon samples: CPU time, and the events of the config. */
#include <stdint.h>
#include <stdio.h>

#include "src/broker/broker.h"

/*
 * Makes the events of a config, CPU time first, in events, which has SAMPLE_MAX_EVENTS. 0; -EINVAL:
 * errors has a line for each event that is unknown or that this host lacks. place: the file that
 * these lines name.
 */
int run_events(const struct config *c, const char *place, struct broker_event *events,
	       uint32_t *ret_n, FILE *errors);
