/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/process/ask.h"
#include "src/process/statistics.h"
#include "util/cleanup.h"

const char *statistics_role(int process)
{
	return process == STATISTICS_BROKER ? "broker" : peer_name((enum peer)process);
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
	return 0;
}
