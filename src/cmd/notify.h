/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages to the service manager (sd_notify(3)); without one, these functions do nothing. */
#include <stdbool.h>
#include <stdint.h>

bool notify_wanted(void);
/* Sends one datagram of VARIABLE=VALUE lines, without waiting. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How long the manager waits for WATCHDOG=1 before it acts; 0: it does not. */
uint64_t notify_watchdog_ns(void);
