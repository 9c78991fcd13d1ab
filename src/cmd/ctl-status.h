/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The daemon's status, lines of a name and a value, in other forms. */
#include <stdio.h>
#include <time.h>

/* Prints about ten lines for a person. now: CLOCK_REALTIME. Changes text. */
void ctl_status_print(char *text, time_t now, FILE *out);
/* Prints one JSON object with the same names, for programs. Changes text. */
void ctl_status_print_json(char *text, FILE *out);
