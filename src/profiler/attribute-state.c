/* SPDX-License-Identifier: Apache-2.0 */
/* Our data of the host's files and processes: made at first sight, freed with them. */
#include <stdlib.h>

#include "src/profiler/attribute-internal.h"

struct process_state *attribution_process_state(struct host_process *p)
{
	if (!p->user) {
		struct process_state *s = calloc(1, sizeof(*s));

		if (s)
			s->row = s->jit_row = PROFILE_NONE;
		p->user = s;
	}
	return p->user;
}

void attribution_free_interpreter(struct attribution *a, struct process_state *s)
{
	if (s->interpreter)
		s->interpreter = readers_free_interpreter(a->readers, s->interpreter);
	s->blocked = blocked_chain_free(s->blocked);
}

void attribution_free_file(void *ctx, struct host_file *file)
{
	struct file_state *s = file->user;

	if (s) {
		unwind_module_free(s->module);
		free(s->allocator);
	}
	free(s);
	file->user = NULL;
}

void attribution_free_process(void *ctx, struct host_process *process)
{
	struct attribution *a = ctx;
	struct process_state *s = process->user;

	process->user = NULL;
	if (!s)
		return;
	process_said_deinit(&s->said, &a->sayings);
	runtimes_free_process(a->runtimes, s->runtime);
	attribution_free_span(a, s);
	attribution_free_interpreter(a, s);
	if (s->jitdump_path) {
		code_unwinding_forget(a->code, process->pid, process->start_unix_ns);
		free(s->jitdump_path);
	}
	free(s);
}
