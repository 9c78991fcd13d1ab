/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes in files of any name: by what they export, however damaged they are. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtimes/marks.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define MAX_MILLISECONDS 500 /* of CPU time, for the worst file: a real one takes one */

static const char php[] = "int executor_globals[99]; void execute_ex(void) {}\n"
			  "const char *get_zend_version(void) { return \"Zend Engine v4.2.31\"; }\n"
			  "int main(void) { return executor_globals[0]; }\n";
/* What a program has that is linked to such a library. */
static const char user[] = "extern int executor_globals[99]; void execute_ex(void);\n"
			   "const char *get_zend_version(void);\n"
			   "int main(void) { execute_ex(); return executor_globals[0] + "
			   "*get_zend_version(); }\n";

/* CPython has its state in a section of that name, and may export nothing. */
static const char python[] = "__attribute__((section(\".PyRuntime\"))) int state = 1; int "
			     "main(void) { return state; }\n";

static char directory[] = "/tmp/test-marks-XXXXXX";

static void write_source(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int open_made(const char *name)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	return fd;
}

static unsigned int marks_of(const char *name)
{
	int fd = open_made(name);
	unsigned int marks = runtime_marks_of(fd);

	(void)close(fd);
	return marks;
}

static void test_links(void)
{
	write_source("php.c", php);
	write_source("user.c", user);
	write_source("python.c", python);
	CHECK_INT(test_compile(directory, "app sysv fixed plain stripped lib.so user python static",
			       "cc=${CC:-gcc}; $cc -rdynamic -o app php.c && "
			       "$cc -rdynamic -Wl,--hash-style=sysv -o sysv php.c && "
			       "$cc -rdynamic -no-pie -o fixed php.c && $cc -o plain php.c && "
			       "$cc -rdynamic -s -o stripped php.c && "
			       "$cc -shared -fPIC -o lib.so php.c && "
			       "$cc -rdynamic -o user user.c ./lib.so && "
			       "$cc -s -o python python.c && $cc -static -s -o static python.c"),
		  ==, 0);
	CHECK_INT(marks_of("app"), ==, RUNTIME_CHAINS);
	CHECK_INT(marks_of("sysv"), ==, RUNTIME_CHAINS);
	CHECK_INT(marks_of("fixed"), ==, RUNTIME_CHAINS);
	CHECK_INT(marks_of("stripped"), ==, RUNTIME_CHAINS);
	CHECK_INT(marks_of("lib.so"), ==, RUNTIME_CHAINS);
	/* It exports nothing, and it only wants them. */
	CHECK_INT(marks_of("plain"), ==, 0);
	CHECK_INT(marks_of("user"), ==, 0);
	CHECK_INT(marks_of("php.c"), ==, 0);
	CHECK_INT(marks_of("python"), ==, RUNTIME_HIDDEN);
	CHECK_INT(marks_of("static"), ==, RUNTIME_HIDDEN);
}

static int file_of(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("test-marks", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, bytes, n), ==, (ssize_t)n);
	return fd;
}

/* Each byte of its headers and tables gets the values that mean the most. */
static void damage(const char *name, unsigned int marks)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	int fd = open_made(name), copy;
	uint64_t most_ns = 0;
	struct stat st;
	uint8_t *bytes;

	CHECK_INT(fstat(fd, &st), ==, 0);
	bytes = malloc((size_t)st.st_size);
	CHECK_INT(pread(fd, bytes, (size_t)st.st_size, 0), ==, st.st_size);
	copy = file_of(bytes, (size_t)st.st_size);
	CHECK_INT(runtime_marks_of(copy), ==, marks);
	for (off_t at = 0; at < 0x800 && at < st.st_size; at++) {
		for (size_t k = 0; k < sizeof(values); k++) {
			uint64_t began_ns = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID), took_ns;

			CHECK_INT(pwrite(copy, &values[k], 1, at), ==, 1);
			(void)runtime_marks_of(copy);
			took_ns = clock_get_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
			most_ns = took_ns > most_ns ? took_ns : most_ns;
		}
		CHECK_INT(pwrite(copy, &bytes[at], 1, at), ==, 1);
	}
	for (off_t n = 0; n < st.st_size; n += 61) {
		CHECK_INT(ftruncate(copy, n), ==, 0);
		(void)runtime_marks_of(copy);
	}
	CHECK_INT(most_ns, <, MAX_MILLISECONDS * NSEC_PER_MSEC);
	(void)close(copy);
	(void)close(fd);
	free(bytes);
}

static void test_damaged(void)
{
	damage("app", RUNTIME_CHAINS);
	damage("python", RUNTIME_HIDDEN);
}

/* The largest numbers, where a file says how much of it there is. */
static void test_lies(void)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p[3];
		Elf64_Dyn d[8];
		uint32_t hash[64];
	} f = {.e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
		     .e_type = ET_DYN,
		     .e_phoff = sizeof(Elf64_Ehdr),
		     .e_phentsize = sizeof(Elf64_Phdr),
		     .e_phnum = 3},
	       .p = {{.p_type = PT_LOAD,
		      .p_filesz = UINT64_C(1) << 31,
		      .p_memsz = UINT64_C(1) << 31},
		     {.p_type = PT_LOAD,
		      .p_offset = UINT64_C(1) << 62,
		      .p_vaddr = UINT64_MAX - 0xffff,
		      .p_filesz = UINT64_MAX},
		     {.p_type = PT_DYNAMIC, .p_memsz = UINT64_MAX}}};
	int fd;

	f.p[2].p_vaddr = offsetof(__typeof__(f), d);
	f.d[0] = (Elf64_Dyn){DT_SYMTAB, {UINT64_C(1) << 30}};
	f.d[1] = (Elf64_Dyn){DT_STRTAB, {UINT64_MAX - 1}};
	f.d[2] = (Elf64_Dyn){DT_STRSZ, {UINT64_MAX}};
	f.d[3] = (Elf64_Dyn){DT_GNU_HASH, {offsetof(__typeof__(f), hash)}};
	f.hash[0] = 1;
	f.hash[2] = UINT32_MAX;
	fd = file_of((const uint8_t *)&f, sizeof(f));
	CHECK_INT(runtime_marks_of(fd), ==, 0);
	(void)close(fd);
	f.e.e_phoff = UINT64_MAX - 8;
	fd = file_of((const uint8_t *)&f, sizeof(f));
	CHECK_INT(runtime_marks_of(fd), ==, 0);
	(void)close(fd);
	CHECK_INT(runtime_marks_of(-1), ==, 0);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(directory) != NULL);
	RUN(test_links);
	RUN(test_damaged);
	RUN(test_lies);
	(void)snprintf(command, sizeof(command), "rm -r %s", directory);
	CHECK_INT(system(command), ==, 0);
	return 0;
}
