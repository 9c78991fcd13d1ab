/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of the files of the local store: TIME-SUM.otlp.gz, in the order of time. */
#include <stdbool.h>
#include <stdint.h>

#define STORE_SUFFIX   ".otlp.gz"
#define STORE_NAME_MAX 48 /* of a file, with its 0 */

/* false: not such a name. */
bool store_parse_name(const char *name, uint64_t *ret_time_unix_ns, uint32_t *ret_sum);
/* Returns name. */
const char *store_format_name(char name[STORE_NAME_MAX], uint64_t time_unix_ns, uint32_t sum);
