/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of a disk that our files leave free for others: a twentieth of it, at most 1 GiB. */
#include <stdint.h>

/* -ENOSPC: that many more bytes on the disk of fd would use the reserve. Else 0, also if the disk's
 * size is unknown. */
int disk_reserve_check(int fd, uint64_t bytes);
