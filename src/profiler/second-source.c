/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that a second source has for the stack that a walk has left in the attribution. */
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/process-runtimes.h"
#include "src/profiler/second-source.h"
#include "src/profiler/walk.h"

static bool is_whole(const struct attribution *a, uint32_t n)
{
	return attribution_last_marker(a, n) == PROFILE_N_MARKERS;
}

enum frame_source_answer attribution_ask_source(struct attribution *a,
						const struct frame_source *source,
						const struct record *r, uint32_t n,
						uint32_t n_kernel, struct runtime_frames *ret)
{
	const struct frame_source_sample sample = {
		.key = {r->time_ns, r->cpu, r->tid},
		.process = a->process,
		.record = r,
		.frames = a->walked,
		.n = a->n_walked,
		.whole = is_whole(a, n),
	};
	enum frame_source_answer answer = source->ask(source->ctx, &sample, ret);

	/* Java's inlined frames stand there, too, so nobody can tell the places of others. */
	if (answer == FRAME_SOURCE_READY && n - n_kernel - !sample.whole != a->n_walked)
		answer = FRAME_SOURCE_UNPROVEN;
	if (answer == FRAME_SOURCE_NONE && attribution_passes_second(a))
		answer = FRAME_SOURCE_UNREAD;
	if (answer == FRAME_SOURCE_READY && ret->lacks == FRAME_SOURCE_NONE &&
	    attribution_passes_second(a))
		ret->lacks = FRAME_SOURCE_UNREAD;
	for (uint32_t i = 0; i < a->n_walked; i++)
		a->sps[i] = a->walked[i].sp;
	return answer;
}

enum profile_marker attribution_source_marker(enum frame_source_answer answer)
{
	return answer == FRAME_SOURCE_MISSED	 ? PROFILE_MARKER_RUNTIME_LATE
	       : answer == FRAME_SOURCE_UNREAD	 ? PROFILE_MARKER_RUNTIME_UNREAD
	       : answer == FRAME_SOURCE_UNPROVEN ? PROFILE_MARKER_RUNTIME_UNPROVEN
						 : PROFILE_N_MARKERS;
}

bool attribution_ask_to_keep(struct attribution *a, const struct frame_source *source,
			     const struct record *r, uint32_t n, struct runtime_frames *ret,
			     enum profile_marker *ret_marker)
{
	uint32_t n_kernel = (uint32_t)r->sample.n_kernel;
	enum frame_source_answer answer = FRAME_SOURCE_NONE;

	*ret = (struct runtime_frames){.n = 0};
	if (a->readers && a->process && n > n_kernel) {
		attribution_look_for_interpreter(a);
		answer = attribution_ask_source(a, source, r, n, n_kernel, ret);
	}
	*ret_marker = !is_whole(a, n)		     ? attribution_last_marker(a, n)
		      : answer == FRAME_SOURCE_READY ? PROFILE_MARKER_RUNTIME_LATE
						     : attribution_source_marker(answer);
	for (uint32_t i = 0; answer == FRAME_SOURCE_READY && ret->functions && i < a->n_kept; i++)
		a->kept[i] = ret->functions[i] ? ret->functions[i] : a->kept[i];
	return answer == FRAME_SOURCE_READY;
}

enum profile_marker attribution_join_kept(struct attribution *a,
					  const struct runtime_frames *frames,
					  enum profile_marker marker)
{
	uint32_t n = join_order(a->sps, a->n_kept, frames, a->joiner.items);

	/* Their stack pointers have served. */
	memcpy(a->sps, a->kept, a->n_kept * sizeof(*a->sps));
	for (uint32_t i = 0; i < n; i++) {
		const struct join_item *item = &a->joiner.items[i];

		a->kept[i] = item->runtime
				     ? known_frames_put(a->known_frames, &frames->items[item->i])
				     : a->sps[item->i];
	}
	a->n_kept = n;
	if (frames->cut)
		return PROFILE_MARKER_TOO_DEEP;
	return marker == PROFILE_MARKER_RUNTIME_LATE ? attribution_source_marker(frames->lacks)
						     : marker;
}
