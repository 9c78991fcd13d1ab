/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities are those of docs/containers.md. A kernel that does not know one of them wants
 * CAP_SYS_ADMIN in its place, and so does one that refuses it (perf_event_paranoid); who has that
 * needs none of these.
 */
#include "config.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/cmd/container-options.h"
#include "src/sample/sample.h"
#include "util/cleanup.h"

#define RESTORE 40 /* CAP_CHECKPOINT_RESTORE, which headers older than 5.9 do not name */

static const struct {
	int number;
	const char *name;
	bool of_admin; /* part of CAP_SYS_ADMIN, and once no more than that */
} wanted[] = {
	{SAMPLE_CAP_PERFMON, "PERFMON", true}, {RESTORE, "CHECKPOINT_RESTORE", true},
	{CAP_SYS_PTRACE, "SYS_PTRACE", false}, {CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH", false},
	{CAP_SYSLOG, "SYSLOG", false},	       {CAP_IPC_LOCK, "IPC_LOCK", false},
	{CAP_SETUID, "SETUID", false},	       {CAP_SETGID, "SETGID", false},
	{CAP_SETPCAP, "SETPCAP", false},       {CAP_KILL, "KILL", false},
	{CAP_CHOWN, "CHOWN", false},	       {CAP_SYS_NICE, "SYS_NICE", false},
};

static void add(char *list, size_t size, const char *option, const char *value)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s%s%s", n ? " " : "", option, value);
}

static void add_capabilities(const struct sample_circumstances *c, char *ret, size_t size)
{
	bool admin = sample_has_capability(c, CAP_SYS_ADMIN), old = false;
	/* What the kernel says below a filter is not known; its setting is. */
	bool wants_admin =
		!admin && (c->paranoid_refusal || (c->seccomp_refusal && c->paranoid > 2));

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (sample_has_capability(c, wanted[i].number) ||
		    (wanted[i].of_admin && (admin || wants_admin)))
			continue;
		/* Negative: this kernel does not know it. */
		if (prctl(PR_CAPBSET_READ, wanted[i].number, 0, 0, 0) < 0)
			old = true;
		else
			add(ret, size, "--cap-add=", wanted[i].name);
	}
	if (old || wants_admin)
		add(ret, size, "--cap-add=", "SYS_ADMIN");
}

void container_options_missing(const struct sample_circumstances *c, char *ret, size_t size)
{
	*ret = '\0';
	if (geteuid() != 0)
		return;
	if (!sample_sees_all_processes())
		add(ret, size, "--pid=host", "");
	if (c->seccomp_refusal)
		add(ret, size, "--security-opt=", "seccomp=unconfined");
	add_capabilities(c, ret, size);
}
