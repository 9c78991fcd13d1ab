/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a process says of itself. By the first byte of the input: the payload of a
 * process context, with the items of its lists, the value of OTEL_RESOURCE_ATTRIBUTES, or the
 * record of a thread.
 */
#include "proto/process-context.h"
#include "runtimes/go.h"
#include "runtimes/thread-context.h"
#include "src/host/host.h"
#include "tests/fuzz/input.h"

static int touch_bytes(void *ctx, const uint8_t *text, size_t n)
{
	for (size_t i = 0; text && i < n; i++)
		input_sink += text[i];
	return 0;
}

static int touch_attribute(void *ctx, const struct process_context_attribute *a)
{
	input_sink += (size_t)a->number;
	(void)touch_bytes(NULL, a->key, a->n_key);
	if (a->kind == PROCESS_CONTEXT_TEXT)
		(void)touch_bytes(NULL, a->bytes, a->n);
	else if (a->kind == PROCESS_CONTEXT_LIST)
		(void)process_context_each_text(a->bytes, a->n, touch_bytes, NULL);
	else if (a->kind == PROCESS_CONTEXT_BOOL && a->number != 0 && a->number != 1)
		abort();
	return 0;
}

static void touch_pair(void *ctx, const char *key, const char *value)
{
	if (!*key)
		abort();
	input_touch_text(key);
	input_touch_text(value);
}

struct record {
	const uint8_t *bytes;
	size_t n;
};

static bool read_record(void *ctx, uint64_t address, void *ret, size_t n)
{
	const struct record *r = ctx;

	if (address < 2 || address - 2 > r->n || n > r->n - (address - 2))
		return false;
	memcpy(ret, r->bytes + address - 2, n);
	return true;
}

/* A record lies in whole pages. */
static bool read_padded(void *ctx, uint64_t address, void *ret, size_t n)
{
	const struct record *r = ctx;
	size_t left = address >= 2 && address - 2 < r->n ? r->n - (address - 2) : 0;

	memset(ret, 0, n);
	return left && read_record(ctx, address, ret, n < left ? n : left);
}

/* The record that begins the input. */
static void touch_record(const uint8_t *bytes, size_t size)
{
	struct record r = {bytes, size};
	struct memory m = {
		.read = read_padded, .ctx = &r, .reads_left = 8, .bytes_left = UINT32_MAX};
	uint8_t copy[THREAD_CONTEXT_MAX_BYTES], *whole;
	int got = thread_context_read(&m, 2, copy);
	uint32_t at = 0, n = got > 0 ? (uint32_t)got : 0;
	struct thread_context_attribute a;
	const uint8_t *trace, *span;

	whole = malloc(n + 1);
	if (!whole)
		abort();
	memcpy(whole, copy, n);
	if (thread_context_ids(whole, n, &trace, &span))
		input_touch(trace, THREAD_CONTEXT_TRACE_BYTES + THREAD_CONTEXT_SPAN_BYTES);
	input_sink += thread_context_is_cut(whole, n);
	while (thread_context_next(whole, n, &at, &a))
		input_touch(a.text, a.n);
	free(whole);
}

/* The structs of a thread and its goroutine, wherever the input has them. */
static void touch_labels(const uint8_t *bytes, size_t size)
{
	struct record r = {bytes, size};
	struct memory m = {.read = read_record,
			   .ctx = &r,
			   .reads_left = GO_LABELS_MAX_READS,
			   .bytes_left = UINT32_MAX};
	uint8_t copy[GO_LABELS_MAX_BYTES];
	struct go_layout layout;
	struct go_label label;
	struct go_goroutine goroutine;
	uint32_t n, at = 0;
	bool known = go_layout_find(size % 2 ? 22 : 26, &layout);

	if (!known || go_goroutine_of(&m, &layout, 2, 1, &goroutine) != GO_FOUND)
		return;
	n = go_labels_read(&m, &layout, &goroutine, copy);
	input_sink += n ? go_labels_left_out(copy) : 0;
	while (go_label_next(copy, n, &at, &label)) {
		input_touch(label.key, label.n_key);
		input_touch(label.value, label.n_value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = n ? input_text(data + 1, n - 1) : NULL;
	_cleanup_free_ uint8_t *bytes = n > 1 ? malloc(n - 1) : NULL;

	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, n - 1); /* without room for one byte more */
	if (data[0] == 'g')
		touch_labels(bytes, n - 1);
	else if (data[0] % 3 == 2)
		touch_record(bytes, n - 1);
	else if (data[0] % 3 == 1)
		(void)host_parse_resource_variable(text, touch_pair, NULL);
	else
		(void)process_context_read(bytes, n - 1, touch_attribute, NULL);
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 1 /* the kind stays */, 64, 200);
}
#endif
