/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A part of a file, mapped to be read. The file's owner can cut it short at any time, and a read
 * of what is gone would end the process (SIGBUS). Here it reads as zeros, from the first page that
 * is gone to the end of the mapping, and mapped_file_n_short() grows: compare it before and after
 * you read a file.
 */
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct mapped_file;

/* n bytes from offset on, which need not be that of a page; fd is not needed any more. 0 or -errno.
 */
int mapped_file_new(struct mapped_file **ret, int fd, uint64_t offset, size_t n);
struct mapped_file *mapped_file_free(struct mapped_file *m);
DEFINE_CLEANUP(struct mapped_file *, mapped_file_free)

const void *mapped_file_bytes(const struct mapped_file *m);
/* Makes the pages present, so that one pass over them takes no faults. */
void mapped_file_populate(const struct mapped_file *m);
/* Gives the pages back; the next access reads them again. */
void mapped_file_forget(const struct mapped_file *m);
/* How many pieces of all files were found to be gone, so far. */
uint64_t mapped_file_n_short(void);
