/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is found of a Go program, which is built here: it looks itself whether the word where its
 * garbage collector should count cycles does so. Skipped where there is no Go.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/profiler/go-program.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"

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

static char dir[] = "/tmp/go-program-XXXXXX";

static struct go_program find(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct go_program found;

	CHECK(fd >= 0);
	found = go_program_find(fd);
	(void)close(fd);
	return found;
}

static void check_program(const char *name)
{
	unsigned long word = 0, cycles = 0;
	struct go_program found;
	char path[64], command[128];
	FILE *said;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	found = find(path);
	CHECK_INT(found.version, >=, 18);
#ifdef __x86_64__
	CHECK_INT(found.cycle, !=, 0);
	(void)snprintf(command, sizeof(command), "%s %" PRIu64, path, found.cycle);
	said = popen(command, "re");
	CHECK(said != NULL);
	CHECK_INT(fscanf(said, "%lu %lu", &word, &cycles), ==, 2);
	(void)pclose(said);
	CHECK_INT(cycles, >=, 5);
	CHECK_INT(word, ==, 2 * cycles);
#endif
}

static void test_go(void)
{
	if (test_compile(dir, "full stripped", "%s",
			 "go build -o full cycles.go && "
			 "go build -ldflags='-s -w' -o stripped cycles.go") != 0) {
		(void)printf("skipped: no go, or it cannot build\n");
		return;
	}
	check_program("full");
	check_program("stripped");
}

static void test_others(void)
{
	CHECK_INT(find("/proc/self/exe").version, ==, 0);
	CHECK_INT(find("/proc/self/exe").cycle, ==, 0);
	CHECK_INT(find("/proc/self/stat").version, ==, 0);
}

int main(void)
{
	char path[64];
	FILE *f;

	CHECK(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/cycles.go", dir);
	f = fopen(path, "we");
	CHECK(f);
	(void)fputs(source, f);
	(void)fclose(f);
	RUN(test_go);
	RUN(test_others);
	(void)test_compile(dir, "", "rm -r %s", dir);
	return 0;
}
