/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities are those of docs/containers.md. A kernel that does not know one of them wants
 * CAP_SYS_ADMIN in its place, and so does one that refuses it (perf_event_paranoid); who has that
 * needs none of these.
 */
#include "config.h"

#include <ctype.h>
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

/* Of wanted and one more; each is listed in how its manager spells it. */
struct missing {
	const char *names[ARRAY_SIZE(wanted) + 1];
	size_t n;
};

static void find_capabilities(const struct sample_circumstances *c, struct missing *ret)
{
	bool admin = sample_has_capability(c, CAP_SYS_ADMIN), old = false;
	/* What the kernel says below a filter is not known; its setting is. */
	bool wants_admin =
		!admin && (c->paranoid_refusal || (c->seccomp_refusal && c->paranoid > 2));

	ret->n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (sample_has_capability(c, wanted[i].number) ||
		    (wanted[i].of_admin && (admin || wants_admin)))
			continue;
		/* Negative: this kernel does not know it. */
		if (prctl(PR_CAPBSET_READ, wanted[i].number, 0, 0, 0) < 0)
			old = true;
		else
			ret->names[ret->n++] = wanted[i].name;
	}
	if (old || wants_admin)
		ret->names[ret->n++] = "SYS_ADMIN";
}

static void say_of_engine(const struct sample_circumstances *c, const struct missing *m)
{
	bool pid = !sample_sees_all_processes();

	if (!pid && !c->seccomp_refusal && m->n == 0)
		return;
	(void)printf("In a container it needs these options of podman or docker:\n   %s%s",
		     pid ? " --pid=host" : "",
		     c->seccomp_refusal ? " --security-opt=seccomp=unconfined" : "");
	for (size_t i = 0; i < m->n; i++)
		(void)printf(" --cap-add=%s", m->names[i]);
	(void)putchar('\n');
}

static void say_of_nspawn(const struct sample_circumstances *c, const struct missing *m)
{
	if (!c->seccomp_refusal && m->n == 0)
		return;
	(void)printf("In this container (%s) it needs these options of systemd-nspawn:\n   %s",
		     c->manager, c->seccomp_refusal ? " --system-call-filter=perf_event_open" : "");
	for (size_t i = 0; i < m->n; i++)
		(void)printf("%sCAP_%s", i ? "," : " --capability=", m->names[i]);
	(void)putchar('\n');
}

static void say_of_lxc(const struct sample_circumstances *c, const struct missing *m)
{
	if (m->n == 0)
		return;
	(void)printf("In this container (%s) it needs what the container's lxc.cap.drop or "
		     "lxc.cap.keep takes:\n   ",
		     c->manager);
	for (size_t i = 0; i < m->n; i++) {
		(void)putchar(' ');
		for (const char *p = m->names[i]; *p; p++)
			(void)putchar(tolower((unsigned char)*p));
	}
	(void)putchar('\n');
}

void container_options_say(const struct sample_circumstances *c)
{
	struct missing m;

	if (geteuid() != 0)
		return;
	find_capabilities(c, &m);
	if (!c->manager)
		say_of_engine(c, &m);
	else if (strcmp(c->manager, "LXC") == 0)
		say_of_lxc(c, &m);
	else
		say_of_nspawn(c, &m);
}
