/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The frames of the interpreters of one process for one sample: Ruby in a program of Python, say.
 * Each has a chain of its own, and the native stack proves each alone (chain-places.h). It also
 * says how they are nested: their frames stand in the order of the native calls that have them.
 */
#include <stdint.h>

#include "src/process/message.h"
#include "src/profiler/chain-places.h"

struct host_file;
struct host_process;

struct chains {
	uint32_t n;
	struct chain_of {
		uint64_t image; /* the first byte of its file */
		enum frame_source_answer answer;
		struct runtime_frames frames; /* READY: of places */
		struct chain_places places;
	} of[CLIENT_MAX_IMAGES];
	/* Of several. */
	struct runtime_frame merged[FRAME_SOURCE_MAX_FRAMES];
	uint64_t functions[CHAIN_PLACES_MAX_NATIVE];
};

/*
 * What all n together answer, which the caller has filled in. READY: *ret is set, except read_ns,
 * borrowed from c. An interpreter whose frames are not there is none of the stack's if no native
 * frame is in its file, unless its frames were read and do not explain the stack.
 */
enum frame_source_answer chains_merge(struct chains *c, const struct frame_source_sample *sample,
				      struct runtime_frames *ret);
/* The file whose first byte is, or would be, mapped at image; NULL: there is none by now. */
const struct host_file *chains_file_at(const struct host_process *p, uint64_t image);
/* Is a native frame of the sample in the file whose first byte is mapped at image? */
bool chains_pass(const struct frame_source_sample *sample, uint64_t image);
