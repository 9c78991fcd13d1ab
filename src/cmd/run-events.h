/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the daemon samples: CPU time, and the events of the config. */
#include <stdint.h>
#include <stdio.h>

#include "src/broker/broker.h"

/*
 * The events of a config, CPU time first, into events, of SAMPLE_MAX_EVENTS. 0; -EINVAL with a line
 * for each that cannot be sampled in errors: no event is called so, or this host has none of it.
 * place: the file to name there.
 */
int run_events(const struct config *c, const char *place, struct broker_event *events,
	       uint32_t *ret_n, FILE *errors);
