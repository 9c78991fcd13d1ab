/* SPDX-License-Identifier: Apache-2.0 */
/* Files and processes that one of the tree does not read for now, as lines for perfwalk ctl. */
#include <stdio.h>
#include <string.h>

#include "src/broker/internal.h"
#include "util/clock.h"
#include "util/text.h"

static void print_processes(const struct broker *b, FILE *out)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(b->readers.set_aside); i++) {
		const struct broker_aside *a = &b->readers.set_aside[i];

		if (broker_is_aside(a))
			(void)fprintf(out,
				      "the memory of process %u: the %s ended while reading it; "
				      "it is not read again\n",
				      a->pid, peer_name(a->who));
	}
}

void broker_print_set_aside(const struct broker *b, FILE *out)
{
	const struct strikes *strikes = supervisor_strikes(b->supervisor);
	uint64_t now = clock_monotonic_ns();
	const struct strike *k;

	for (uint32_t at = 0; (k = strikes_next(strikes, &at));) {
		char path[sizeof(k->file.path)], time[32];

		/* The path is untrusted, and goes to a terminal. */
		(void)text_clean(path, sizeof(path), k->file.path, sizeof(path) - 1);
		(void)fprintf(out, "%s: the %s %s while reading it; it will read it again in %s\n",
			      path[0] ? path : "a file", peer_name(k->who),
			      k->took_too_long ? "took too long" : "died",
			      text_format_duration(time, sizeof(time),
						   k->until_ns > now ? k->until_ns - now : 0));
	}
	print_processes(b, out);
}

void broker_clear_set_aside(struct broker *b, FILE *out)
{
	(void)fprintf(out, "files_read_again %u\nprocesses_read_again %u\n",
		      supervisor_forget_strikes(b->supervisor), broker_read_processes_again(b));
}
