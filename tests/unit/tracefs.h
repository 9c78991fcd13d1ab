/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * tracefs for a test that runs as root on a host that has it not mounted: in a mount namespace of
 * the test's own. To be called first in main(). Where it cannot be mounted nothing happens.
 */
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

static inline void mount_tracefs(void)
{
	if (access("/sys/kernel/tracing/events", F_OK) == 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return;
	(void)mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
}
