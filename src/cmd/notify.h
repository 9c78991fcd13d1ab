/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the service manager wants to be told (sd_notify(3)); without one, all of it is nothing. */
#include <stdbool.h>
#include <stdint.h>

bool notify_wanted(void);
/* One datagram of VARIABLE=VALUE lines; nothing waits for it to be read. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How long the manager waits for WATCHDOG=1 before it acts; 0: it does not. */
uint64_t notify_watchdog_ns(void);
