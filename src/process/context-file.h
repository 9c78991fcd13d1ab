/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the file of opener_context(), whose bytes come from an untrusted process. */
#include <stdbool.h>

#include "src/process/message.h"

/* true: *ret_bytes, which the caller frees, has the variables, each with its 0, and then the
 * payload. false: it is no such file, or there is no memory. fd stays the caller's. */
bool context_file_read(int fd, struct context_file *ret_head, char **ret_bytes);
