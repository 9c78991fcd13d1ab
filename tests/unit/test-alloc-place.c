/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of allocators in a Go program, which is built here and asks its own runtime where these
 * functions are. Skipped where there is no Go. That what is no such program has none.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "symbolize/alloc-place.h"
#include "tests/unit/go-builds.h"
#include "tests/unit/test.h"
#include "util/cleanup.h"

/* Its code begins at the address that its ELF file says: it is not position independent. The
 * offsets of the two functions, and of one that is not the runtime's, and where its rate is from
 * the beginning of the file, as far as code is from there. */
static const char source[] =
	"package main\n"
	"import (\"debug/elf\"; \"fmt\"; \"os\")\n"
	"func main() {\n"
	"	f, err := elf.Open(os.Args[1])\n"
	"	if err != nil { panic(err) }\n"
	"	at := map[string]uint64{}\n"
	"	symbols, _ := f.Symbols()\n"
	"	address := map[string]uint64{}\n"
	"	for _, s := range symbols {\n"
	"		address[s.Name] = s.Value\n"
	"		for _, p := range f.Progs {\n"
	"			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < "
	"p.Vaddr + "
	"p.Filesz { at[s.Name] = s.Value - p.Vaddr + p.Off }\n"
	"		}\n"
	"	}\n"
	"	fmt.Println(at[\"runtime.mProf_Malloc\"], at[\"runtime.freeSpecial\"], "
	"at[\"runtime.mallocgc\"], at[\"main.main\"], "
	"address[\"runtime.MemProfileRate\"] - address[\"runtime.mProf_Malloc\"] + "
	"at[\"runtime.mProf_Malloc\"])\n"
	"}\n";

/* said: what the program has said of the first of two; the other one has no symbols. */
static void check_go(const char *said, const char *const names[2])
{
	struct alloc_places p = {.n_picked = 0};
	unsigned long picked = 0, ended = 0, inside = 0, outside = 0, rate = 0;
	FILE *f;

	f = run_read("cat %s", said);
	CHECK_INT(fscanf(f, "%lu %lu %lu %lu %lu", &picked, &ended, &inside, &outside, &rate), ==,
		  5);
	(void)pclose(f);
	for (int stripped = 0; stripped < 2; stripped++) {
		const char *name = names[stripped];
		int fd = open_file(name);

		CHECK_INT(alloc_places_find(fd, name, &p), ==, 0);
		CHECK_INT(p.runtime, ==, ALLOC_RUNTIME_GO);
		CHECK_INT(p.n_picked, ==, 1);
		if (!stripped) { /* the linker may place the other's code elsewhere */
			CHECK_INT(p.picked[0], ==, picked);
			CHECK_INT(p.ended, ==, ended);
			CHECK_INT(p.rate, ==, rate);
			CHECK(alloc_places_have(&p, inside));
			CHECK(!alloc_places_have(&p, outside));
		}
		CHECK(p.rate > p.picked[0]);
		CHECK(alloc_places_have(&p, p.picked[0]));
		/* Of another name it is what it was. */
		CHECK_INT(alloc_places_find(fd, "/x/libjvm.so", &p), ==, -ENOENT);
		(void)close(fd);
	}
}

/* Any host reads the files of both processors. */
static void test_go(void)
{
	static const char *const names[][2] = {
		{"full", "stripped"}, {"amd64", "amd64-stripped"}, {"arm64", "arm64-stripped"}};
	static const char *const said[] = {"said", "amd64-said", "arm64-said"};

	if (!build_go(
		    source,
		    "./full full > said; for a in amd64 arm64; do export GOARCH=$a CGO_ENABLED=0; "
		    "go build -o $a main.go && go build -ldflags='-s -w' -o $a-stripped main.go && "
		    "./full $a > $a-said || exit 1; done",
		    "said amd64 amd64-stripped amd64-said arm64 arm64-stripped arm64-said"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check_go(said[i], names[i]);
}

static void test_others(void)
{
	struct alloc_places p;
	int fd = open_file("/proc/self/exe");

	CHECK_INT(alloc_places_find(fd, "/x/program", &p), ==, -ENOENT);
	(void)close(fd);
	fd = open_file("/proc/self/stat");
	CHECK(alloc_places_find(fd, "/x/program", &p) < 0);
	(void)close(fd);
}

int main(void)
{
	test_make_directory(dir);
	RUN(test_go);
	RUN(test_others);
	return 0;
}
