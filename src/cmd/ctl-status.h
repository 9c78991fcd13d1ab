/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The daemon's status, lines of a name and a value, in other forms. */
#include <stdio.h>
#include <time.h>

/* For a person: some ten lines. now: of the realtime clock. The text is cut at its lines. */
void ctl_status_print(char *text, time_t now, FILE *out);
/* For programs: one JSON object of the same names. */
void ctl_status_print_json(char *text, FILE *out);
