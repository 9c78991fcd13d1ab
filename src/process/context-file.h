/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the file of opener_context(): its bytes are a stranger's, its head may be. */
#include <stdbool.h>

#include "src/process/message.h"

/* true: ret_bytes has the variables, each with its 0, and behind them the payload; free(). false:
 * it is no such file, or there is no memory. */
bool context_file_read(int fd, struct context_file *ret_head, char **ret_bytes);
