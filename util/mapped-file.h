/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A part of a file, mapped for reading. The file's owner can truncate it at any time, and then a
 * read beyond its new end would kill the process (SIGBUS). Here the missing pages read as zeros, up
 * to the end of the mapping, and mapped_file_n_short() grows: compare it before and after you read
 * a file.
 */
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct mapped_file;

/* Maps n bytes from any offset on; fd is borrowed for the call. 0 or -errno. */
int mapped_file_new(struct mapped_file **ret, int fd, uint64_t offset, size_t n);
struct mapped_file *mapped_file_free(struct mapped_file *m);
DEFINE_CLEANUP(struct mapped_file *, mapped_file_free)

const void *mapped_file_bytes(const struct mapped_file *m);
/* Makes the pages present, so that one pass over them takes no faults. */
void mapped_file_populate(const struct mapped_file *m);
/* Gives the pages back; the next access reads them again. */
void mapped_file_forget(const struct mapped_file *m);
/* The number of times, so far, that a read of any file met missing pages. */
uint64_t mapped_file_n_short(void);
