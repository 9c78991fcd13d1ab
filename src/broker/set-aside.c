/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a process of the tree does not read for now, as lines for perfwalk ctl. */
#include <stdio.h>
#include <string.h>

#include "src/broker/internal.h"
#include "util/clock.h"
#include "util/text.h"

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
}

uint32_t broker_clear_set_aside(struct broker *b)
{
	return supervisor_forget_strikes(b->supervisor);
}
