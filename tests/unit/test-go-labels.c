/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of goroutines in structs as two eras of the Go runtime have them, sound and hostile. */
#include "runtimes/go.h"
#include "tests/unit/test.h"

enum { NUMBER = 4711, GOROUTINE = 18 };

static uint8_t thread[512] __attribute__((aligned(8))), goroutine[512] __attribute__((aligned(8)));
static uint64_t labels[4], pairs[40][4];
static struct {
	uint8_t tops[8];
	uint64_t keys[8][2], values[8][2], overflow;
} buckets[4];
static uint64_t map[6];

static bool read_own(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (address < 4096 || address > INT64_MAX)
		return false;
	memcpy(ret, (const void *)(uintptr_t)address, n);
	return true;
}

static struct memory own_memory(void)
{
	return (struct memory){
		.read = read_own, .reads_left = GO_LABELS_MAX_READS, .bytes_left = 65536};
}

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void set_text(uint64_t *string, const char *text)
{
	string[0] = (uintptr_t)text;
	string[1] = strlen(text);
}

static void set_structs(const struct go_layout *l)
{
	memset(thread, 0x55, sizeof(thread));
	memset(goroutine, 0x55, sizeof(goroutine));
	put(thread + l->number, NUMBER);
	put(thread + l->current, (uintptr_t)goroutine);
	put(goroutine + 48, (uintptr_t)thread);
	put(goroutine + l->labels, (uintptr_t)labels);
	put(goroutine + l->goroutine, GOROUTINE);
}

static void set_list(uint64_t n, uint64_t capacity)
{
	labels[0] = (uintptr_t)pairs;
	labels[1] = n;
	labels[2] = capacity;
	for (int i = 0; i < 40; i++) {
		set_text(&pairs[i][0], "span_id");
		set_text(&pairs[i][2], "0123456789abcdef");
	}
}

/* Of the thread's goroutine; *ret_n changes only if it has some. */
static enum go_answer read_labels(const struct go_layout *l, uint8_t *bytes, uint32_t *ret_n)
{
	struct memory m = own_memory();
	struct go_goroutine g;
	enum go_answer answer = go_goroutine_of(&m, l, (uintptr_t)thread, NUMBER, &g);
	uint32_t n = answer == GO_FOUND ? go_labels_read(&m, l, &g, bytes) : 0;

	if (n)
		*ret_n = n;
	return answer == GO_FOUND && !n ? GO_NONE : answer;
}

static void check_label(const uint8_t *bytes, uint32_t n, uint32_t *at, const char *key,
			const char *value)
{
	struct go_label label;

	CHECK(go_label_next(bytes, n, at, &label));
	CHECK(label.n_key == strlen(key) && memcmp(label.key, key, label.n_key) == 0);
	CHECK(label.n_value == strlen(value) && memcmp(label.value, value, label.n_value) == 0);
}

static void test_versions(void)
{
	struct go_layout l;

	CHECK(go_layout_find(go_version_of("go1.19.8"), &l) && l.labels == 360 && !l.listed);
	CHECK(go_layout_find(go_version_of("go1.23.4"), &l) && l.labels == 352 && !l.listed);
	CHECK(go_layout_find(go_version_of("go1.24rc1 X:boringcrypto"), &l) && l.listed);
	CHECK(go_layout_find(go_version_of("go1.26.8"), &l) && l.current == 184);
	CHECK_INT(go_version_of("go1.99"), ==, 0);
	CHECK_INT(go_version_of("go1.16.1"), ==, 0);
	CHECK_INT(go_version_of("devel go1.27-abc"), ==, 0);
	CHECK(!go_layout_find(0, &l));
}

static void test_list(void)
{
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	uint32_t n = 0, at = 0;
	struct go_layout l;
	struct go_label label;

	CHECK(go_layout_find(26, &l));
	set_structs(&l);
	set_list(2, 2);
	set_text(&pairs[1][0], "route");
	set_text(&pairs[1][2], "");
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(go_labels_goroutine(bytes), ==, GOROUTINE);
	check_label(bytes, n, &at, "span_id", "0123456789abcdef");
	check_label(bytes, n, &at, "route", "");
	CHECK(!go_label_next(bytes, n, &at, &label));
	CHECK_INT(go_labels_left_out(bytes), ==, 0);
}

/* What does not fit is counted: labels after the first 16, long texts, and all after 640 bytes. */
static void check_left_out(const struct go_layout *l, uint64_t n_labels, uint32_t expected)
{
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	uint32_t n = 0, at = 0, n_kept = 0;
	struct go_label label;

	labels[1] = labels[2] = n_labels;
	CHECK_INT(read_labels(l, bytes, &n), ==, GO_FOUND);
	while (go_label_next(bytes, n, &at, &label))
		n_kept++;
	CHECK_INT(go_labels_left_out(bytes), ==, expected);
	CHECK_INT(n_kept, ==, n_labels - expected);
}

/* Values that are close are read at once, wherever they are in the list; no others. */
static void test_close_values(void)
{
	static char texts[200];
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	struct go_goroutine g = {.number = GOROUTINE, .labels = (uintptr_t)labels};
	struct memory m = own_memory();
	uint32_t n, at = 0;
	struct go_layout l;

	CHECK(go_layout_find(26, &l));
	set_list(4, 4);
	memset(texts, 'x', sizeof(texts));
	memcpy(texts + 60, "first", 5);
	memcpy(texts + 10, "third", 5);
	memcpy(texts + 110, "far", 3); /* from the third by 100 bytes to its end */
	pairs[0][2] = (uintptr_t)texts + 60;
	pairs[0][3] = 5;
	pairs[1][3] = 0;
	pairs[2][2] = (uintptr_t)texts + 10;
	pairs[2][3] = 5;
	pairs[3][2] = (uintptr_t)texts + 110;
	pairs[3][3] = 3;
	n = go_labels_read(&m, &l, &g, bytes);
	check_label(bytes, n, &at, "span_id", "first");
	check_label(bytes, n, &at, "span_id", "");
	check_label(bytes, n, &at, "span_id", "third");
	check_label(bytes, n, &at, "span_id", "far");
	/* The set, its list, four keys, two of the values together, and one. */
	CHECK_INT(GO_LABELS_MAX_READS - m.reads_left, ==, 2 + 4 + 1 + 1);
	/* Lengths and addresses that wrap. */
	pairs[2][2] = UINT64_MAX - 2;
	pairs[3][2] = (uintptr_t)texts + 62;
	pairs[3][3] = UINT64_MAX;
	at = 0;
	n = go_labels_read(&m, &l, &g, bytes);
	check_label(bytes, n, &at, "span_id", "first");
	check_label(bytes, n, &at, "span_id", "");
	CHECK_INT(go_labels_left_out(bytes), ==, 2);
}

static void test_left_out(void)
{
	static char text[300];
	struct go_layout l;

	memset(text, 'x', sizeof(text) - 1);
	CHECK(go_layout_find(26, &l));
	set_structs(&l);
	set_list(16, 16);
	check_left_out(&l, 16, 0);
	check_left_out(&l, 19, 3);
	set_text(&pairs[2][2], text);
	check_left_out(&l, 16, 1);
	pairs[2][3] = 255;
	pairs[3][2] = pairs[2][2];
	pairs[3][3] = 255;
	/* 9 + 2 * 25 + 2 * 264, and 2 of 25 bytes more */
	check_left_out(&l, 16, 10);
}

static void test_map(void)
{
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	uint32_t n = 0, at = 0;
	struct go_layout l;

	CHECK(go_layout_find(22, &l));
	set_structs(&l);
	labels[0] = (uintptr_t)map;
	map[0] = 2;
	map[1] = 1 << 8; /* two buckets */
	map[2] = (uintptr_t)buckets;
	buckets[0].tops[3] = 77;
	set_text(buckets[0].keys[3], "a");
	set_text(buckets[0].values[3], "b");
	buckets[0].tops[4] = 1; /* empty */
	buckets[1].tops[0] = 5;
	set_text(buckets[1].keys[0], "c");
	set_text(buckets[1].values[0], "d");
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	check_label(bytes, n, &at, "a", "b");
	check_label(bytes, n, &at, "c", "d");
	map[1] = 31 << 8;
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(go_labels_left_out(bytes), ==, 0);
	/* In an overflow bucket, say. */
	map[0] = 5;
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(go_labels_left_out(bytes), ==, 3);
	map[0] = UINT64_MAX;
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
}

static void test_threads(void)
{
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	struct memory m = own_memory();
	struct go_layout l;
	uint32_t n;

	CHECK(go_layout_find(26, &l));
	set_structs(&l);
	set_list(1, 1);
	CHECK(go_thread_of(&m, &l, (uintptr_t)goroutine, NUMBER) == (uintptr_t)thread);
	CHECK(!go_thread_of(&m, &l, (uintptr_t)goroutine, NUMBER + 1));
	CHECK(!go_thread_of(&m, &l, 17, NUMBER) && !go_thread_of(&m, &l, 0, NUMBER));
	put(thread + l.number, NUMBER + 1);
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_OTHER_THREAD);
	put(thread + l.number, NUMBER);
	put(thread + l.current, 0);
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
	put(thread + l.current, (uintptr_t)goroutine);
	put(goroutine + 48, (uintptr_t)goroutine); /* another thread's */
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
	put(goroutine + 48, (uintptr_t)thread);
	put(goroutine + l.goroutine, 0); /* the runtime's own */
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
}

static void test_hostile(void)
{
	uint8_t bytes[GO_LABELS_MAX_BYTES];
	struct go_layout l;
	uint32_t n = 0;

	CHECK(go_layout_find(26, &l));
	set_structs(&l);
	set_list(UINT64_C(1) << 40, UINT64_C(1) << 40);
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
	set_list(2, 1);
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
	set_list(32, 40); /* more than fits */
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(n, <=, GO_LABELS_MAX_BYTES);
	set_list(2, 2);
	pairs[0][1] = UINT64_MAX;
	pairs[1][3] = UINT64_C(1) << 40;
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(n, ==, GO_LABELS_HEAD_BYTES);
	CHECK_INT(go_labels_left_out(bytes), ==, 2);
	labels[0] = (uintptr_t)labels; /* itself */
	labels[1] = 1;
	labels[3] = UINT64_C(1) << 40;
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_FOUND);
	CHECK_INT(n, ==, GO_LABELS_HEAD_BYTES);
	put(goroutine + l.labels, 8);
	CHECK_INT(read_labels(&l, bytes, &n), ==, GO_NONE);
}

int main(void)
{
	test_versions();
	test_list();
	test_close_values();
	test_left_out();
	test_map();
	test_threads();
	test_hostile();
	return 0;
}
