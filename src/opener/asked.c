/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/opener/opener.h"

int opener_asked_file(const struct message *ask)
{
	struct file_identity id;

	switch (ask->type) {
	case MESSAGE_ASK_FILE:
		return opener_mapped_file(ask, &id);
	case MESSAGE_ASK_RECORDED_FILE:
		return opener_recorded_file(ask, &id);
	case MESSAGE_ASK_PERF_MAP:
		return opener_perf_map(ask->ask_pid.pid);
	case MESSAGE_ASK_MEMORY:
		return opener_memory(ask->ask_pid.pid);
	case MESSAGE_ASK_TABLE:
		return opener_library_table(ask->ask_table.pid, ask->ask_table.address);
	case MESSAGE_ASK_DEBUG_FILE:
		return opener_debug_file(ask->ask_debug_file.pid, ask->ask_debug_file.build_id,
					 ask->ask_debug_file.n_build_id, ask->ask_debug_file.path);
	case MESSAGE_ASK_SPLIT_FILE:
		return opener_split_file(ask->ask_split_file.path);
	case MESSAGE_ASK_CONTEXT:
		return opener_context(ask);
	case MESSAGE_ASK_BLOCKED:
		return opener_blocked(ask);
	default:
		return -EOPNOTSUPP;
	}
}
