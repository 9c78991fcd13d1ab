/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What only the caller of a container can give. */

struct sample_circumstances;

/*
 * Prints what root in a container lacks to record the host, in the words of who manages it: options
 * of podman and docker or of systemd-nspawn, keys of LXC. Prints nothing if it lacks none, or this
 * is not root. In a user namespace none helps.
 */
void container_options_say(const struct sample_circumstances *c);
