/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is found of a Go program, which is built here: it looks itself whether the word where its
 * garbage collector should count cycles does so. Skipped where there is no Go.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "src/profiler/go-program.h"
#include "tests/unit/go-builds.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

/* Prints that word and how many cycles there were: it is not position independent. */
static const char source[] =
	"package main\n"
	"import (\"context\"; \"fmt\"; \"os\"; \"runtime\"; \"runtime/pprof\"; \"strconv\"; "
	"\"unsafe\")\n"
	"func main() {\n"
	"	at, _ := strconv.ParseUint(os.Args[1], 10, 64)\n"
	"	var m runtime.MemStats\n"
	"	pprof.Do(context.Background(), pprof.Labels(\"a\", \"b\"), func(context.Context) "
	"{\n"
	"		for i := 0; i < 5; i++ { runtime.GC() }\n"
	"	})\n"
	"	runtime.ReadMemStats(&m)\n"
	"	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))\n"
	"	fmt.Println(*(*uint32)(p), m.NumGC)\n"
	"}\n";

static struct go_program find(const char *name)
{
	int fd = open_file(name);
	struct go_program found = go_program_find(fd);

	(void)close(fd);
	return found;
}

static void check_program(const char *name)
{
	struct go_program found = find(name);

	CHECK_INT(found.version, >=, 18);
#ifdef __x86_64__
	unsigned long word = 0, cycles = 0;
	FILE *said;

	CHECK_INT(found.cycle, !=, 0);
	said = run_read("./%s %" PRIu64, name, found.cycle);
	CHECK_INT(fscanf(said, "%lu %lu", &word, &cycles), ==, 2);
	(void)pclose(said);
	CHECK_INT(cycles, >=, 5);
	CHECK_INT(word, ==, 2 * cycles);
#endif
}

static void test_go(void)
{
	if (!build_go(source, "true", ""))
		return;
	check_program("full");
	check_program("stripped");
}

/* A version that is newer than this program sets labels, but nobody knows where they are. */
static void test_unknown_version(void)
{
	static const char *const versions[] = {"go1.99", "devel "};
	struct go_program known;

	if (!build_go(source, "true", ""))
		return;
	known = find("full");
	CHECK_STR(known.unknown, "");
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct go_program found;

		CHECK_INT(run("LC_ALL=C sed 's/go1\\.%u/%s/g' full > newer", known.version,
			      versions[i]),
			  ==, 0);
		found = find("newer");
		CHECK_INT(found.version, ==, 0);
		CHECK_INT(strncmp(found.unknown, versions[i], 6), ==, 0);
	}
}

static void test_others(void)
{
	CHECK_INT(find("/proc/self/exe").version, ==, 0);
	CHECK_INT(find("/proc/self/exe").cycle, ==, 0);
	CHECK_INT(find("/proc/self/stat").version, ==, 0);
}

int main(void)
{
	test_make_directory(dir);
	RUN(test_go);
	RUN(test_unknown_version);
	RUN(test_others);
	return 0;
}
