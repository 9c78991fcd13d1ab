/* SPDX-License-Identifier: Apache-2.0 */
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
