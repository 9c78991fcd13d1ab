/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Strikes in a file, so that a daemon which was restarted does not meet the same files again. It is
 * the broker's alone: what another user may write to is not read. Damage is found by a checksum.
 */
#include "src/broker/strikes.h"

/* Replaces the file as a whole. 0 or -errno. now: CLOCK_MONOTONIC, as the times of strikes. */
int strikes_save(const struct strikes *s, const char *path, uint64_t now);
/*
 * Takes in what is saved there; until then s is empty. 0, also where there is no file;
 * -EPERM: it is not ours alone; -EBADMSG: it is damaged, or of another version; -errno.
 */
int strikes_load(struct strikes *s, const char *path, uint64_t now);
