/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what a process says of itself. By the first byte of the input: the payload of a
 * process context, with the items of its lists, or the value of OTEL_RESOURCE_ATTRIBUTES.
 */
#include "proto/process-context.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = n ? input_text(data + 1, n - 1) : NULL;
	_cleanup_free_ uint8_t *bytes = n > 1 ? malloc(n - 1) : NULL;

	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, n - 1); /* without room for one byte more */
	if (data[0] % 2)
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
