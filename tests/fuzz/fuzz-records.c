/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: records of a ring. The first 8 bytes choose the shape that the event gives
 * them; then one stands behind the other, each with its size in its header.
 */
#include "src/sample/decode.h"
#include "tests/fuzz/input.h"

#define MAX_BYTES (64 << 10) /* a size is 16 bits */

static void touch(const struct record_layout *layout, const struct record *r)
{
	switch (r->type) {
	case RECORD_SAMPLE:
		if (r->sample.user_abi)
			input_touch(r->sample.user_regs,
				    (size_t)__builtin_popcountll(layout->regs_mask) * 8);
		if (r->sample.read)
			input_touch(r->sample.read, r->sample.n_read * r->sample.read_words * 8);
		input_touch(r->sample.kernel, r->sample.n_kernel * 8);
		input_touch(r->sample.user_chain, r->sample.n_user_chain * 8);
		input_touch(r->sample.stack, r->sample.n_stack);
		break;
	case RECORD_SWITCH:
		input_sink += (uint64_t)r->sw.prev_state + r->sw.prev_id + r->sw.next_id;
		input_touch(&r->sw.spot, sizeof(r->sw.spot));
		break;
	case RECORD_MMAP:
		input_touch_text(r->mmap.path);
		input_touch(r->mmap.build_id, r->mmap.n_build_id);
		break;
	case RECORD_COMM:
		input_touch_text(r->comm.comm);
		break;
	case RECORD_CGROUP:
		input_touch_text(r->cgroup.path);
		break;
	default:
		break;
	}
}

/* In memory of its size, 8-aligned. */
static void decode(const struct record_layout *layout, const uint8_t *bytes, size_t n)
{
	void *copy = malloc(n);
	struct record r;
	size_t at;

	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	if (record_decode(layout, copy, n, &r))
		touch(layout, &r);
	at = record_time_offset(layout, ((const struct perf_event_header *)copy)->type, n);
	if (at > n - 8)
		abort();
	input_sink += at;
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sample_options switches = {.use = SAMPLE_USE_SWITCHES,
					  .switch_fields = {.prev_pid = {24, 4, true},
							    .prev_state = {32, 8, true},
							    .next_pid = {56, 4, true}}};
	struct record_layout layout = {.sample_id_all = true};
	uint32_t sample_type = 0;
	size_t at = 8;

	if (n < 8)
		return 0;
	memcpy(&sample_type, data, 3);
	layout.sample_type = sample_type;
	layout.read_format = data[3];
	layout.regs_mask = data[4] | (uint64_t)data[5] << 16;
	layout.branch_type = data[6];
	layout.sample_id_all = data[7] & 1;
	layout.kernel_regs_valid = data[7] & 2 ? UINT64_MAX : 0x5;
	switches.regs_mask = layout.regs_mask;
	switch_layout(&switches, layout.sample_type, &layout.switches);
	while (n - at >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		size_t size;

		memcpy(&h, data + at, sizeof(h));
		size = h.size < sizeof(h) || h.size > n - at ? n - at : h.size;
		decode(&layout, data + at, size < MAX_BYTES ? size : MAX_BYTES - 8);
		at += size;
	}
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 8 /* the shape stays */, 64, 500);
}
#endif
