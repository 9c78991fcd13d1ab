/* SPDX-License-Identifier: Apache-2.0 */
#include "src/profiler/chains.h"

#include <string.h>

#include "src/host/host.h"

const struct host_file *chains_file_at(const struct host_process *p, uint64_t image)
{
	for (uint32_t i = 0; i < p->n_mappings; i++) {
		const struct host_mapping *m = &p->mappings[i];

		if (m->kind == HOST_MAPPING_FILE && m->start - m->file_offset == image)
			return m->file;
	}
	return NULL;
}

static bool has_frame_in(const struct frame_source_sample *sample, const struct host_mapping *m)
{
	for (size_t i = 0; i < sample->n; i++) {
		if (sample->frames[i].address >= m->start && sample->frames[i].address < m->end)
			return true;
	}
	return false;
}

bool chains_pass(const struct frame_source_sample *sample, uint64_t image)
{
	const struct host_process *p = sample->process;
	const struct host_file *file = p ? chains_file_at(p, image) : NULL;

	for (uint32_t i = 0; file && i < p->n_mappings; i++) {
		const struct host_mapping *m = &p->mappings[i];

		if (m->kind == HOST_MAPPING_FILE && m->file == file && has_frame_in(sample, m))
			return true;
	}
	return false;
}

/* Why the stack lacks the frames of this one; NONE: it does not. */
static enum frame_source_answer lack_of(const struct chain_of *c,
					const struct frame_source_sample *sample)
{
	if (c->answer == FRAME_SOURCE_READY ||
	    (c->answer != FRAME_SOURCE_UNPROVEN && !chains_pass(sample, c->image)))
		return FRAME_SOURCE_NONE;
	return c->answer;
}

/* The next frame of each chain; those of the innermost native call come first. */
struct merging {
	struct chains *c;
	uint32_t next[CLIENT_MAX_IMAGES];
};

static uint32_t native_of(const struct merging *m, uint32_t k)
{
	return m->c->of[k].places.natives[m->next[k]];
}

static bool has_next(const struct merging *m, uint32_t k)
{
	return m->c->of[k].answer == FRAME_SOURCE_READY && m->next[k] < m->c->of[k].frames.n;
}

/* CLIENT_MAX_IMAGES: there is none. *ret_known: the stack says that it is the next one. */
static uint32_t find_next(const struct merging *m, bool *ret_known)
{
	uint32_t found = CLIENT_MAX_IMAGES;

	*ret_known = true;
	for (uint32_t k = 0; k < m->c->n; k++) {
		if (!has_next(m, k))
			continue;
		if (found < CLIENT_MAX_IMAGES && native_of(m, k) == native_of(m, found))
			*ret_known = false;
		if (found == CLIENT_MAX_IMAGES || native_of(m, k) < native_of(m, found)) {
			found = k;
			*ret_known = true;
		}
	}
	return found;
}

/* false: from there on, nobody knows in which order they are, so they are left out. */
static bool merge_frames(struct chains *c, struct runtime_frames *ret)
{
	struct merging m = {.c = c};
	bool is_known;
	uint32_t k;

	while ((k = find_next(&m, &is_known)) < CLIENT_MAX_IMAGES) {
		if (!is_known)
			return false;
		if (ret->n == FRAME_SOURCE_MAX_FRAMES) {
			ret->cut = true;
			break;
		}
		c->merged[ret->n++] = c->of[k].frames.items[m.next[k]++];
	}
	return true;
}

static void merge_functions(struct chains *c, const struct frame_source_sample *sample)
{
	memset(c->functions, 0, sizeof(c->functions));
	for (uint32_t k = 0; k < c->n; k++) {
		const uint64_t *its =
			c->of[k].answer == FRAME_SOURCE_READY ? c->of[k].frames.functions : NULL;

		for (size_t i = 0; its && i < sample->n; i++)
			c->functions[i] = its[i] ? its[i] : c->functions[i];
	}
}

enum frame_source_answer chains_merge(struct chains *c, const struct frame_source_sample *sample,
				      struct runtime_frames *ret)
{
	enum frame_source_answer answer = FRAME_SOURCE_NONE, lack;

	if (c->n == 1) {
		*ret = c->of[0].frames;
		return c->of[0].answer;
	}
	*ret = (struct runtime_frames){.items = c->merged};
	for (uint32_t k = 0; k < c->n; k++) {
		lack = lack_of(&c->of[k], sample);
		if (lack > ret->lacks)
			ret->lacks = lack;
		if (c->of[k].answer != FRAME_SOURCE_READY)
			continue;
		answer = FRAME_SOURCE_READY;
		ret->cut |= c->of[k].frames.cut;
	}
	if (answer == FRAME_SOURCE_NONE)
		return ret->lacks;
	if (!merge_frames(c, ret))
		ret->lacks = FRAME_SOURCE_UNPROVEN;
	if (sample->n <= CHAIN_PLACES_MAX_NATIVE) {
		merge_functions(c, sample);
		ret->functions = c->functions;
	}
	return answer;
}
