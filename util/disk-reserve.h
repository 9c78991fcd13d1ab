/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of a disk that we leave free for others: a twentieth of it, at most 1 GiB. */
#include <stdint.h>

/* May we write so many more bytes to the disk of fd? 0, also if the disk's size is unknown;
 * -ENOSPC: they would use the reserve. */
int disk_reserve_check(int fd, uint64_t bytes);
