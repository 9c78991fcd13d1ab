/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the tree as lines of a name and a value, from the children's status pages. */
#include <stdio.h>
#include <unistd.h>

#include "src/cmd/tree-internal.h"
#include "src/profile/profile.h"
#include "util/cleanup.h"
#include "util/clock.h"

static void print_count(FILE *out, const char *name, uint64_t n)
{
	(void)fprintf(out, "%s %llu\n", name, (unsigned long long)n);
}

/* CPU time since its start, and resident memory. false: it is gone. */
static bool read_load(pid_t pid, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	unsigned long long size, resident;
	clockid_t clock;
	char path[32];
	FILE *f;
	int n;

	if (clock_getcpuclockid(pid, &clock) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fscanf(f, "%llu %llu", &size, &resident);
	(void)fclose(f);
	if (n != 2)
		return false;
	*ret_cpu_ns = clock_get_ns(clock);
	*ret_rss_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

void tree_load(const struct tree *t, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	uint64_t cpu_ns, rss_bytes;

	*ret_cpu_ns = *ret_rss_bytes = 0;
	for (int i = -1; i < PEER_N; i++) {
		pid_t pid = i < 0 ? getpid() : supervisor_pid(t->supervisor, (enum peer)i);

		if (pid <= 0 || !read_load(pid, &cpu_ns, &rss_bytes))
			continue;
		*ret_cpu_ns += cpu_ns;
		*ret_rss_bytes += rss_bytes;
	}
}

static void print_process(FILE *out, const char *name, pid_t pid)
{
	uint64_t cpu_ns, rss_bytes;

	(void)fprintf(out, "%s.pid %d\n", name, (int)pid);
	if (!read_load(pid, &cpu_ns, &rss_bytes))
		return;
	(void)fprintf(out, "%s.memory_bytes %llu\n%s.cpu_seconds %.2f\n", name,
		      (unsigned long long)rss_bytes, name, (double)cpu_ns / 1e9);
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
	static const char *const names[PEER_N] = {"profiler", "symbolizer", "exporter", "screen"};
	const struct status_page *p = supervisor_status(t->supervisor, PEER_PROFILER);

	(void)fprintf(out, "event %s\n", sample_event_name(&t->events.sample, &t->events.features));
	print_count(out, "rate_hz", t->events.sample.rate_hz);
	print_count(out, "stack_size",
		    t->events.features.frame_pointers ? 0 : t->events.sample.stack_bytes);
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
