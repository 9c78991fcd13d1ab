/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel reported: did it say that a file was mapped? The profiler asks for the file of a
 * process that is gone right after it read the record of the mapping, which is still in its ring.
 */
#include <stdbool.h>

#include "src/broker/events.h"
#include "src/process/message.h"

/* True: a ring of the events holds a record of a mapping with the file's device, inode and path. */
bool seen_mapped(const struct events *e, const struct mapped_file_name *file);
