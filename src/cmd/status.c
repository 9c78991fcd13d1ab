/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the tree as lines of a name and a value, from the children's status pages. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/tree-internal.h"
#include "src/profile/profile.h"
#include "util/cleanup.h"

static void print_count(FILE *out, const char *name, uint64_t n)
{
	(void)fprintf(out, "%s %llu\n", name, (unsigned long long)n);
}

/* Resident memory, and CPU time from user and system ticks. */
static void print_process(FILE *out, const char *name, pid_t pid)
{
	unsigned long user = 0, system = 0, pages = 0;
	char path[32], text[1024], *end;
	size_t n;
	FILE *f;

	(void)fprintf(out, "%s.pid %d\n", name, (int)pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	/* proc(5): fields 14, 15 and 24, from the third on behind the name. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
			   "%*d %*d %*u %*u %lu",
			   &user, &system, &pages) != 3)
		return;
	(void)fprintf(out, "%s.memory_bytes %llu\n%s.cpu_seconds %.2f\n", name,
		      (unsigned long long)pages * (unsigned long long)sysconf(_SC_PAGESIZE), name,
		      (double)(user + system) / (double)sysconf(_SC_CLK_TCK));
}

static void print_destinations(const struct tree *t, FILE *out)
{
	const struct config *c = t->options.config;
	const struct status_page *p = supervisor_status(t->supervisor, PEER_EXPORTER);
	uint64_t spool_bytes = 0;

	for (size_t i = 0; i < c->n_exports && i < STATUS_MAX_DESTINATIONS; i++) {
		const struct status_destination *d = &p->destinations[i];
		const struct {
			const char *name;
			uint64_t n;
		} lines[] = {
			{"payloads_sent", d->sent},	 {"payloads_dropped", d->dropped},
			{"failures", d->failures},	 {"queue_payloads", d->queue_payloads},
			{"queue_bytes", d->queue_bytes}, {"spool_payloads", d->spool_payloads},
		};

		spool_bytes += d->spool_bytes;
		for (size_t j = 0; j < ARRAY_SIZE(lines); j++)
			(void)fprintf(out, "export.%s.%s %llu\n", c->exports[i].name, lines[j].name,
				      (unsigned long long)lines[j].n);
	}
	print_count(out, "spool_bytes", spool_bytes);
}

void tree_print_status(const struct tree *t, FILE *out)
{
	static const char *const names[PEER_N] = {"profiler", "symbolizer", "exporter"};
	const struct status_page *p = supervisor_status(t->supervisor, PEER_PROFILER);

	(void)fprintf(out, "event %s\n", sample_event_name(&t->events.sample, &t->events.features));
	print_count(out, "rate_hz", t->events.sample.rate_hz);
	print_count(out, "cpus", t->events.cpus.n);
	(void)fprintf(out, "paused %s\n", t->paused ? "yes" : "no");
	print_count(out, "samples", p->samples);
	print_count(out, "windows", p->windows);
	/* Of windows that are closed; since the start of the profiler that runs now. */
	for (int c = PROFILE_SAMPLES + 1; c < PROFILE_N_COUNTERS; c++) {
		/* The symbolizer's to count. */
		if (c != PROFILE_FRAMES_UNNAMED && c != PROFILE_WINDOWS_DEGRADED)
			print_count(out, profile_counter_name((enum profile_counter)c),
				    p->counters[c]);
	}
	print_process(out, "broker", getpid());
	for (int i = 0; i < PEER_N; i++) {
		pid_t pid = supervisor_pid(t->supervisor, (enum peer)i);

		if (pid > 0)
			print_process(out, names[i], pid);
	}
	print_destinations(t, out);
}
