/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What our files leave free on a disk for everybody else: a twentieth of it, at most 1 GiB. */
#include <stdint.h>

/* -ENOSPC: with so many bytes more on the disk of fd the reserve would be touched. Else 0, also
 * where nobody can tell. */
int disk_reserve_check(int fd, uint64_t bytes);
