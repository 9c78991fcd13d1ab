/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: texts of /proc and of container engines, by the first byte of the input: lines
 * of maps (as the profiler and the opener read them), a cgroup file, paths of control groups, what
 * an engine wrote down of a container, any JSON, lines of mountinfo, and of the kernel's log.
 */
#include "src/host/host.h"
#include "src/opener/internal.h"
#include "src/opener/mount-line.h"
#include "src/profiler/victims.h"
#include "tests/fuzz/input.h"
#include "util/json-read.h"
#include "util/runtime-files.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What the opener looks for, in a line that a newline ends. */
static void look_at_map(const uint8_t *text, size_t n)
{
	char *line = malloc(n + 1);
	uint64_t address = 0;

	if (!line)
		abort();
	memcpy(line, text, n);
	line[n] = '\n';
	input_sink += (unsigned int)runtime_file_rank(line, n, RUNTIME_ANY);
	if (opener_is_context(line, n, &address))
		input_sink += (unsigned int)address;
	free(line);
}

static void read_maps(uint8_t *text, size_t n)
{
	struct host_maps_line m;

	while (n > 0) {
		const uint8_t *end = memchr(text, '\n', n);
		size_t length = end ? (size_t)(end - text) : n;
		char *line = malloc(length); /* without room for one byte more */

		if (length && !line)
			abort();
		if (length)
			memcpy(line, text, length);
		if (host_parse_maps_line(line, length, &m))
			input_touch_text(m.path);
		free(line);
		look_at_map(text, length);
		text += length + (end != NULL);
		n -= length + (end != NULL);
	}
}

static void read_cgroup_path(const char *path)
{
	struct host_cgroup c = {0};

	host_parse_cgroup_path(path, &c);
	input_touch_text(c.container_id);
	input_touch_text(c.pod_uid);
	input_touch_text(c.unit);
	input_touch_text(c.runtime);
}

static void read_json(const void *text, size_t n)
{
	struct json_reader j = json_reader_make(text, n);

	for (size_t values = 0; json_reader_next(&j); values++) {
		if (values > n || j.depth > JSON_MAX_DEPTH)
			abort();
		input_touch_text(j.value);
		for (unsigned int i = 0; i <= JSON_MAX_KEYS; i++)
			input_touch_text(j.keys[i]);
	}
}

static void read_mounts(char *text)
{
	for (const char *line; (line = strsep(&text, "\n"));) {
		struct mount_line l;
		char *point;

		if (!mount_line_parse(line, &l))
			continue;
		input_sink += l.major + l.minor;
		input_touch_text(l.type);
		point = strndup(l.point, l.n_point);
		if (!point)
			abort();
		mount_line_unescape(point);
		if (strlen(point) > l.n_point)
			abort();
		free(point);
	}
}

static void read_log(char *text)
{
	for (char *line; (line = strsep(&text, "\n"));) {
		char *exact = strdup(line);
		struct victim v;

		if (!exact)
			abort();
		if (victims_parse_line(exact, &v)) {
			if (v.pid == 0)
				abort();
			input_touch_text(v.comm);
		}
		free(exact);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = n ? input_text(data + 1, n - 1) : NULL;
	_cleanup_free_ uint8_t *bytes = malloc(n);
	char path[256];

	if (n < 2 || !bytes)
		return 0;
	memcpy(bytes, data + 1, n - 1);
	switch (data[0] % 7) {
	case 0:
		read_maps(bytes, n - 1);
		break;
	case 1:
		if (host_parse_cgroup_file(text, n - 1, path, sizeof(path)))
			read_cgroup_path(path);
		break;
	case 2:
		read_cgroup_path(text);
		break;
	case 3:
		if (host_parse_container_state((const char *)data + 1, n - 1, ID, path,
					       sizeof(path)))
			input_touch_text(path);
		break;
	case 4:
		read_json(data + 1, n - 1);
		break;
	case 5:
		read_mounts(text);
		break;
	default:
		read_log(text);
	}
	return 0;
}

#ifdef FUZZ_REPLAY
#include "tests/fuzz/replay.h"

int main(void)
{
	return replay_directory(FUZZ_REPLAY, 1 /* the kind stays */, 64, 200);
}
#endif
