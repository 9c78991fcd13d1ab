/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a process are freed when no window had it for long: most such processes have ended.
 * Beyond the budget more are freed, and read again from the file when they are needed: first those
 * of processes that are not in this window; then, of those in this window, the one that was named
 * last, because the others may be needed again in this window.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/role.h"
#include "src/symbolizer/code-names.h"
#include "src/symbolizer/setup.h"
#include "util/cleanup.h"
#include "util/file-identity.h"
#include "util/hash.h"
#include "util/log.h"

struct process_code {
	uint32_t pid;
	uint64_t start_time_unix_ns;
	uint64_t window, named; /* the last that speaks of it; when it was asked about, in order */
	int fds[N_CODE_SOURCES];
	struct file_identity identities[N_CODE_SOURCES]; /* all 0: not known */
	struct jitdump *dump;
	struct perf_map *map;
	uint64_t dump_read_ns; /* up to this time; 0: not since the last refresh */
	bool map_read;	       /* since the last refresh */
	bool told;	       /* that the jitdump file cannot be used */
};

_Static_assert(CODE_NAMES_MAX_DESCRIPTORS == N_CODE_SOURCES * CODE_NAMES_MAX_PROCESSES,
	       "one a source");

struct code_names {
	struct role *role;
	struct symbol_limits limits;
	uint64_t window, n_lookups;
	bool told; /* that names had to go */
	struct process_code processes[CODE_NAMES_MAX_PROCESSES];
	uint32_t n;
};

int code_names_new(struct code_names **ret, struct role *role, const struct symbol_limits *limits)
{
	struct code_names *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->role = role;
	c->limits = *limits;
	*ret = c;
	return 0;
}

static void process_clear(struct process_code *p)
{
	jitdump_free(p->dump);
	perf_map_free(p->map);
	for (int i = 0; i < N_CODE_SOURCES; i++)
		(void)close_fd(p->fds[i]);
}

struct code_names *code_names_free(struct code_names *c)
{
	if (c) {
		for (uint32_t i = 0; i < c->n; i++)
			process_clear(&c->processes[i]);
		free(c);
	}
	return NULL;
}

static struct process_code *find_process(const struct code_names *c, uint32_t pid,
					 uint64_t start_time_unix_ns)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct process_code *p = &c->processes[i];

		if (p->pid == pid && p->start_time_unix_ns == start_time_unix_ns)
			return (struct process_code *)p;
	}
	return NULL;
}

static struct process_code *add_process(struct code_names *c, uint32_t pid,
					uint64_t start_time_unix_ns)
{
	struct process_code *p = &c->processes[0];

	for (uint32_t i = 1; i < c->n; i++) {
		if (c->processes[i].window < p->window)
			p = &c->processes[i];
	}
	if (c->n < CODE_NAMES_MAX_PROCESSES)
		p = &c->processes[c->n++];
	else
		process_clear(p);
	*p = (struct process_code){.pid = pid, .start_time_unix_ns = start_time_unix_ns};
	for (int i = 0; i < N_CODE_SOURCES; i++)
		p->fds[i] = -EBADF;
	return p;
}

void code_names_add(struct code_names *c, enum code_source source, uint32_t pid,
		    uint64_t start_time_unix_ns, int fd)
{
	struct process_code *p = find_process(c, pid, start_time_unix_ns);

	if (!p)
		p = add_process(c, pid, start_time_unix_ns);
	p->window = c->window + 1;
	(void)close_fd(p->fds[source]);
	p->fds[source] = fd;
	if (file_identity_get(fd, &p->identities[source]) == 0)
		p->identities[source].size = FILE_GROWS;
}

static void forget_names(struct process_code *p)
{
	p->dump = jitdump_free(p->dump);
	p->map = perf_map_free(p->map);
	p->dump_read_ns = 0;
	p->map_read = false;
}

void code_names_refresh(struct code_names *c)
{
	c->window++;
	for (uint32_t i = 0; i < c->n; i++) {
		struct process_code *p = &c->processes[i];

		p->dump_read_ns = 0;
		p->map_read = false;
		if (p->window + CODE_NAMES_KEPT < c->window)
			forget_names(p);
	}
}

bool code_names_have_times(const struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns)
{
	const struct process_code *p = find_process(c, pid, start_time_unix_ns);

	return p && p->fds[CODE_JITDUMP] >= 0;
}

static const char *source_name(enum code_source source)
{
	return source == CODE_JITDUMP ? "jitdump file" : "perf map";
}

/* It is to blame for what reading it takes, and for its names. */
static void point_to(const struct code_names *c, const struct process_code *p,
		     enum code_source source)
{
	char what[64];

	if (!p->identities[source].ino)
		return;
	(void)snprintf(what, sizeof(what), "the %s of process %u", source_name(source), p->pid);
	role_job_read(c->role, &p->identities[source], what);
}

static void tell_refused(const struct process_code *p, enum code_source source, uint64_t n)
{
	if (n)
		log_debug("the %s of process %u: %llu functions are left out: too many, or damaged",
			  source_name(source), p->pid, (unsigned long long)n);
}

static int lookup_dump(const struct code_names *c, struct process_code *p, uint64_t address,
		       uint64_t time_ns, struct symbol *ret)
{
	int r = 0;

	/* Without memory for it the process just has no names. */
	if (p->fds[CODE_JITDUMP] < 0 ||
	    (!p->dump && jitdump_new(&p->dump, &c->limits, JITDUMP_NAMES) < 0))
		return 1;
	if (time_ns > p->dump_read_ns) {
		uint64_t refused = jitdump_refused(p->dump);

		p->dump_read_ns = time_ns;
		point_to(c, p, CODE_JITDUMP);
		r = jitdump_update(p->dump, p->fds[CODE_JITDUMP], time_ns);
		tell_refused(p, CODE_JITDUMP, jitdump_refused(p->dump) - refused);
	}
	if (r == -ENOEXEC && !p->told) {
		p->told = true;
		log_warning(
			"the jitdump file of process %u %s: its compiled code lacks those names",
			p->pid, jitdump_problem(p->dump));
	}
	return jitdump_lookup(p->dump, address, ret);
}

static int lookup_map(const struct code_names *c, struct process_code *p, uint64_t address,
		      struct symbol *ret)
{
	if (p->fds[CODE_PERF_MAP] < 0 || (!p->map && perf_map_new(&p->map, &c->limits) < 0))
		return 1;
	if (!p->map_read) {
		uint64_t refused = perf_map_refused(p->map);

		point_to(c, p, CODE_PERF_MAP);
		(void)perf_map_update(p->map, p->fds[CODE_PERF_MAP]);
		tell_refused(p, CODE_PERF_MAP, perf_map_refused(p->map) - refused);
		p->map_read = true;
	}
	return perf_map_lookup(p->map, address, ret);
}

int code_names_lookup(struct code_names *c, uint32_t pid, uint64_t start_time_unix_ns,
		      uint64_t address, uint64_t time_ns, struct symbol *ret)
{
	struct process_code *p = find_process(c, pid, start_time_unix_ns);

	if (!p)
		return 1;
	p->window = c->window;
	p->named = ++c->n_lookups;
	if (lookup_dump(c, p, address, time_ns, ret) != 0 && lookup_map(c, p, address, ret) != 0)
		return 1;
	ret->start = hash_bytes(ret->name, strlen(ret->name), ret->start);
	return 0;
}

static uint64_t process_bytes(const struct process_code *p)
{
	return (p->dump ? jitdump_bytes(p->dump) : 0) + (p->map ? perf_map_bytes(p->map) : 0);
}

uint64_t code_names_bytes(const struct code_names *c)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < c->n; i++)
		total += process_bytes(&c->processes[i]);
	return total;
}

/* NULL: one process at the most has names. */
static struct process_code *find_coldest(struct code_names *c)
{
	struct process_code *coldest = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct process_code *p = &c->processes[i];

		if (!process_bytes(p))
			continue;
		n++;
		if (!coldest || p->window < coldest->window ||
		    (p->window == coldest->window && p->named > coldest->named))
			coldest = p;
	}
	return n > 1 ? coldest : NULL;
}

void code_names_trim(struct code_names *c, uint64_t max_bytes)
{
	struct process_code *p;

	while (code_names_bytes(c) > max_bytes && (p = find_coldest(c))) {
		forget_names(p);
		if (!c->told)
			log_info("names of compiled code take more memory than symbols in "
				 "[limits] allows: some files are read again in each interval");
		c->told = true;
	}
}
