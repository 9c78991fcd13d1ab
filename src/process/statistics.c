/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/process/ask.h"
#include "src/process/statistics.h"
#include "util/cleanup.h"

bool statistics_has(const struct statistics *s, uint32_t kind)
{
	for (uint32_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].kind == kind && s->processes[i].starts)
			return true;
	}
	return false;
}

const char *statistics_reduced(uint32_t reduced, char *buf, size_t size)
{
	static const char *const names[] = {[REDUCED_LINES] = "lines",
					    [REDUCED_INLINES] = "inlines",
					    [REDUCED_NAMES] = "names",
					    [REDUCED_STACKS] = "stacks"};
	unsigned int rate = 1u << __builtin_popcount(reduced & REDUCED_RATE_BITS);
	unsigned int turns = 1u << __builtin_popcount(reduced & REDUCED_SWITCHES_BITS);
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names) && n < size; i++) {
		if (reduced & REDUCED_BIT(i))
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "", names[i]);
	}
	if (rate > 1 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "%srate/%u", n ? "," : "", rate);
	if (turns > 1 && n < size)
		(void)snprintf(buf + n, size - n, "%sswitches/%u", n ? "," : "", turns);
	return buf;
}

int statistics_ask(struct ask *ask, struct statistics *ret)
{
	struct message m = {.type = MESSAGE_ASK_STATISTICS};
	int r = ask_values(ask, &m);

	if (r < 0)
		return r;
	if (m.answer_statistics.n != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, m.answer_statistics.bytes, sizeof(*ret));
	return ret->n_processes <= STATISTICS_MAX_PROCESSES ? 0 : -EBADMSG;
}
