/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of tracepoints, and numbers in their payloads. */
#include <errno.h>

#include "src/sample/sample.h"
#include "src/sample/tracepoint.h"
#include "tests/unit/test.h"
#include "tests/unit/tracefs.h"

/* cat /sys/kernel/tracing/events/sched/sched_switch/format of Linux 6.18, x86_64. */
static const char format[] =
	"name: sched_switch\nID: 372\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
	"\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"prev_comm=%s prev_pid=%d\", REC->prev_comm, REC->prev_pid\n";

static void check_field(const char *name, uint32_t offset, uint32_t size, bool is_signed)
{
	struct tracepoint_field f;

	CHECK(tracepoint_find_field(format, name, &f));
	CHECK_INT(f.offset, ==, offset);
	CHECK_INT(f.size, ==, size);
	CHECK_INT(f.is_signed, ==, is_signed);
}

static void test_fields(void)
{
	struct tracepoint_field f;

	check_field("prev_pid", 24, 4, true);
	check_field("prev_state", 32, 8, true);
	check_field("next_pid", 56, 4, true);
	check_field("prev_comm", 8, 16, false);
	check_field("common_type", 0, 2, false);
	CHECK(!tracepoint_find_field(format, "pid", &f));
	CHECK(!tracepoint_find_field(format, "comm", &f));
	CHECK(!tracepoint_find_field(format, "prev_pid_", &f));
	CHECK(!tracepoint_find_field("", "prev_pid", &f));
}

static void test_damaged_formats(void)
{
	struct tracepoint_field f;
	char cut[sizeof(format)];

	CHECK(!tracepoint_find_field("\tfield:int a;\toffset:99999999999;\tsize:4;\tsigned:1;\n",
				     "a", &f));
	CHECK(!tracepoint_find_field("\tfield:int a;\toffset:8;\tsize:;\n", "a", &f));
	CHECK(!tracepoint_find_field("\tfield:int a", "a", &f));
	/* The numbers of the next line are not its own. */
	CHECK(!tracepoint_find_field("\tfield:int a;\n\tfield:int b;\toffset:8;\tsize:4;\n", "a",
				     &f));
	for (size_t n = 0; n < sizeof(format); n++) {
		memcpy(cut, format, n);
		cut[n] = '\0';
		if (tracepoint_find_field(cut, "next_pid", &f))
			CHECK_INT(f.offset, ==, 56);
	}
}

static void test_numbers(void)
{
	static const uint8_t payload[12] = {0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 1, 0, 0};
	int64_t v;

	CHECK(tracepoint_get(&(struct tracepoint_field){0, 4, true}, payload, 12, &v));
	CHECK_INT(v, ==, -2);
	CHECK(tracepoint_get(&(struct tracepoint_field){0, 4, false}, payload, 12, &v));
	CHECK_INT(v, ==, 0xfffffffe);
	CHECK(tracepoint_get(&(struct tracepoint_field){4, 8, true}, payload, 12, &v));
	CHECK_INT(v, ==, INT64_C(0x10000000001));
	CHECK(!tracepoint_get(&(struct tracepoint_field){4, 8, true}, payload, 11, &v));
	CHECK(!tracepoint_get(&(struct tracepoint_field){13, 4, true}, payload, 12, &v));
	CHECK(!tracepoint_get(&(struct tracepoint_field){0, 2, true}, payload, 12, &v));
}

/* What this kernel says agrees with itself, where this user may read it. */
static void test_here(void)
{
	char text[TRACEPOINT_MAX_FORMAT_BYTES], id[32];
	struct tracepoint_field f;
	int n = tracepoint_read("sched:sched_switch", "format", text, sizeof(text));

	CHECK_INT(tracepoint_read("no-colon", "id", id, sizeof(id)), ==, -EINVAL);
	if (n < 0) {
		fprintf(stderr, "tracefs is not readable here: %s\n", strerror(-n));
		return;
	}
	CHECK(tracepoint_find_field(text, "prev_state", &f));
	CHECK(f.size == 4 || f.size == 8);
	CHECK_INT(tracepoint_read("sched:sched_switch", "id", id, sizeof(id)), >, 0);
	CHECK(strstr(text, "\nID: "));
	CHECK_INT(strtol(strstr(text, "\nID: ") + 5, NULL, 10), ==, strtol(id, NULL, 10));
	CHECK_INT(tracepoint_read("sched:no_such_event", "id", id, sizeof(id)), ==, -ENOENT);
	CHECK_INT(tracepoint_read("sched:sched_switch", "format", id, sizeof(id)), ==, -E2BIG);
}

static void test_names(void)
{
	const char *at =
		"\tfield:char prev_comm[16];\toffset:8;\n\tfield:pid_t prev_pid;\n"
		"\tfield:;\n\tfield:int a_name_that_is_too_long;\n\tfield:const char * s;\n"
		"\tfield:__data_loc char[] filename;\n\tfield:int";
	char name[16];

	CHECK(tracepoint_next_field(&at, name, sizeof(name)));
	CHECK_STR(name, "prev_comm");
	CHECK(tracepoint_next_field(&at, name, sizeof(name)));
	CHECK_STR(name, "prev_pid");
	CHECK(tracepoint_next_field(&at, name, sizeof(name)));
	CHECK_STR(name, "s");
	CHECK(tracepoint_next_field(&at, name, sizeof(name)));
	CHECK_STR(name, "filename");
	CHECK(!tracepoint_next_field(&at, name, sizeof(name)));
}

/* The kernel itself reads filters, and what it refuses is explained. */
static void test_filters(void)
{
	struct sample_event e;
	char error[1024] = "";

	if (sample_event_parse("sched:sched_switch", &e, error, sizeof(error)) < 0)
		SKIP("%s", error);
	if (sample_filter_try(&e, "prev_state == 2", error, sizeof(error)) < 0)
		SKIP("the event may not be opened");
	CHECK_INT(sample_filter_try(&e, "prev_comm ~ \"k*\" && next_pid == 0 || CPU == 1", error,
				    sizeof(error)),
		  ==, 0);
	CHECK_INT(sample_filter_try(&e, "prev_pid > 1 && prev_stat == 2", error, sizeof(error)), ==,
		  -EINVAL);
	CHECK(strstr(error,
		     "no field of sched:sched_switch: prev_stat (did you mean prev_state?)"));
	CHECK(strstr(error, "; its fields are prev_comm, prev_pid, ") != NULL);
	CHECK_INT(sample_filter_try(&e, "prev_state ==", error, sizeof(error)), ==, -EINVAL);
	CHECK(strstr(error, "(Invalid argument): a filter is FIELD OPERATOR VALUE") != NULL);
	CHECK_INT(sample_filter_try(&e, "prev_comm == \"a == b", error, sizeof(error)), ==,
		  -EINVAL);
	CHECK(strstr(error, "names no field") == NULL);
	CHECK_INT(sample_event_parse("cs", &e, error, sizeof(error)), ==, 0);
	CHECK_INT(sample_filter_try(&e, "prev_state == 2", error, sizeof(error)), ==, -EINVAL);
	CHECK_STR(error, "only tracepoints have fields to filter by");
}

int main(void)
{
	mount_tracefs();
	RUN(test_fields);
	RUN(test_damaged_formats);
	RUN(test_numbers);
	RUN(test_here);
	RUN(test_names);
	RUN(test_filters);
	return 0;
}
