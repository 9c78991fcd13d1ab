/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that gcc makes. What they say of themselves while they run is the measure: the distance
 * of the variable from the thread pointer, and this process's own glibc, which is of the same
 * version as the static one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/profiler/program-variable.h"
#include "tests/unit/compile.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/perfwalk-variable.XXXXXX";

static const char source[] = "#include <pthread.h>\n"
			     "#include <stdio.h>\n"
			     "__thread char other[40] = {1};\n"
			     "__thread long variable __attribute__((aligned(64))) = 1;\n"
			     "static void *work(void *arg) { return arg; }\n"
			     "int main(void)\n"
			     "{\n"
			     "	pthread_t t;\n"
			     "	char *pointer;\n"
			     "#ifdef __x86_64__\n"
			     "	__asm__(\"mov %%fs:0, %0\" : \"=r\"(pointer));\n"
			     "#else\n"
			     "	pointer = __builtin_thread_pointer();\n"
			     "#endif\n"
			     "	pthread_create(&t, NULL, work, other);\n"
			     "	printf(\"%ld\\n\", (long)((char *)&variable - pointer));\n"
			     "	return 0;\n"
			     "}\n";

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* Where the running program has its variable. */
static long told_by(const char *name)
{
	FILE *f = popen(path_of(name), "r");
	long offset = 0;

	CHECK(f != NULL);
	CHECK_INT(fscanf(f, "%ld", &offset), ==, 1);
	CHECK_INT(pclose(f), ==, 0);
	return offset;
}

static int find(const char *name, struct thread_variable *ret)
{
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC), r;

	CHECK(fd >= 0);
	r = program_variable_find(fd, "variable", ret);
	(void)close(fd);
	return r;
}

static uint32_t own_struct_bytes(void)
{
	const uint32_t *bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");

	return bytes ? *bytes : 0;
}

static void check(const char *name, const char *flags, uint32_t glibc_bytes)
{
	struct thread_variable v = {0};

	if (test_compile(dir, name, "gcc -O1 -pthread %s -o %s a.c", flags, name) != 0)
		SKIP("gcc, or its static C library, is not installed");
	CHECK_INT(find(name, &v), ==, 1);
	CHECK_INT(v.module, ==, 0);
	CHECK_INT(v.offset, ==, told_by(name));
	CHECK_INT(v.glibc_bytes, ==, glibc_bytes);
}

static void test_linked(void)
{
	check("linked", "-fpie -pie", 0);
}

/* The size of its threads' structs is in the program itself. */
static void test_static(void)
{
	check("static", "-static", own_struct_bytes());
	check("static-pie", "-static-pie", own_struct_bytes());
	CHECK_INT(own_struct_bytes(), >, 512);
}

static void test_stripped(void)
{
	struct thread_variable v = {.glibc_bytes = 7};

	CHECK_INT(test_compile(dir, "stripped", "gcc -O1 -pthread -static -s -o stripped a.c"), ==,
		  0);
	CHECK_INT(find("stripped", &v), ==, -ENODATA);
	CHECK_INT(v.glibc_bytes, ==, 7);
}

int main(void)
{
	char command[64];
	FILE *f;

	CHECK(mkdtemp(dir) != NULL);
	f = fopen(path_of("a.c"), "w");
	CHECK(f != NULL);
	CHECK_INT(fputs(source, f), >=, 0);
	CHECK_INT(fclose(f), ==, 0);
	RUN(test_linked);
	RUN(test_static);
	RUN(test_stripped);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) != 0;
}
