/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What only the caller of a container can give: the options of podman and docker for it. */
#include <stddef.h>

struct sample_circumstances;

/*
 * Writes the options that root in a container lacks to record the host, with spaces between. Writes
 * "" if it lacks none, or this is not root. In a user namespace no option helps.
 */
void container_options_missing(const struct sample_circumstances *c, char *ret, size_t size);
