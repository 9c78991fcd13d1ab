/* SPDX-License-Identifier: Apache-2.0 */
/* Files and processes that one of the tree does not read for now, as lines for perfwalk ctl. */
#include <stdio.h>
#include <string.h>

#include "src/broker/internal.h"
#include "util/clock.h"
#include "util/text.h"

static const char *time_left(char *buf, size_t size, const struct strike *k)
{
	uint64_t now = clock_monotonic_ns();

	return text_format_duration(buf, size, k->until_ns > now ? k->until_ns - now : 0);
}

static void print_processes(const struct broker *b, FILE *out)
{
	const struct strike *k;

	for (uint32_t at = 0; (k = strikes_next(&b->readers.aside, &at));) {
		uint32_t pid = broker_process_of(k);
		char time[32];

		if (pid)
			(void)fprintf(out,
				      "the memory of process %u: the %s ended while reading it; "
				      "it is read again in %s\n",
				      pid, peer_name(k->who), time_left(time, sizeof(time), k));
	}
}

void broker_print_set_aside(const struct broker *b, FILE *out)
{
	const struct strikes *strikes = supervisor_strikes(b->supervisor);
	const struct strike *k;

	for (uint32_t at = 0; (k = strikes_next(strikes, &at));) {
		char path[sizeof(k->file.path)], time[32];

		/* The path is untrusted, and goes to a terminal. */
		(void)text_clean(path, sizeof(path), k->file.path, sizeof(path) - 1);
		(void)fprintf(out, "%s: the %s %s while reading it; it will read it again in %s\n",
			      path[0] ? path : "a file", peer_name(k->who),
			      k->took_too_long ? "took too long" : "died",
			      time_left(time, sizeof(time), k));
	}
	print_processes(b, out);
}

void broker_clear_set_aside(struct broker *b, FILE *out)
{
	(void)fprintf(out, "files_read_again %u\nprocesses_read_again %u\n",
		      supervisor_forget_strikes(b->supervisor),
		      broker_read_processes_again(b, UINT64_MAX));
}
