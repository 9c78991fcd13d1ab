/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Strikes in a file, so that a restarted daemon does not read the same files again. The file is the
 * broker's alone: one that another user may write to is not read. A checksum finds damage.
 */
#include "src/broker/strikes.h"

/* Replaces the file as a whole. now: CLOCK_MONOTONIC, as the times of strikes. 0 or -errno. */
int strikes_save(const struct strikes *s, const char *path, uint64_t now);
/*
 * Adds the strikes of the file to s, which must be empty. 0, also if there is no file; -EPERM: it
 * is not ours alone; -EBADMSG: it is damaged, or of another version; another -errno.
 */
int strikes_load(struct strikes *s, const char *path, uint64_t now);
