/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks for unit tests: each prints both values and the place, and ends the program at once.
 * A test program lists its cases in main() as RUN(test_case); exit status 77 is a skip.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: check failed: %s\n", __FILE__, __LINE__,       \
				__func__, #cond);                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_INT(a, op, b)                                                                        \
	do {                                                                                       \
		int64_t check_a = (int64_t)(a), check_b = (int64_t)(b);                            \
		if (!(check_a op check_b)) {                                                       \
			fprintf(stderr,                                                            \
				"%s:%d: %s: check failed: %s %s %s: %" PRId64 " (0x%" PRIx64       \
				") against %" PRId64 " (0x%" PRIx64 ")\n",                         \
				__FILE__, __LINE__, __func__, #a, #op, #b, check_a,                \
				(uint64_t)check_a, check_b, (uint64_t)check_b);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_STR(a, b)                                                                            \
	do {                                                                                       \
		const char *check_a = (a), *check_b = (b);                                         \
		if (!check_a || !check_b || strcmp(check_a, check_b) != 0) {                       \
			fprintf(stderr, "%s:%d: %s: check failed: %s is \"%s\", not \"%s\"\n",     \
				__FILE__, __LINE__, __func__, #a, check_a ? check_a : "(null)",    \
				check_b ? check_b : "(null)");                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define RUN(test)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "%s\n", #test);                                                    \
		test();                                                                            \
	} while (0)

#define SKIP(...)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "SKIP: " __VA_ARGS__);                                             \
		fputc('\n', stderr);                                                               \
		exit(77);                                                                          \
	} while (0)

/* For tests of what was made on x86_64: recordings, and code and CFI that are written by hand. */
#ifdef __x86_64__
#define NEED_X86_64() ((void)0)
#else
#define NEED_X86_64() SKIP("what it reads was made on x86_64")
#endif

/* For a shell: the version that the tests install, else the host's own; nothing where there is
 * none. */
#define LLVM_SYMBOLIZER "$(command -v llvm-symbolizer-19 || command -v llvm-symbolizer)"

static char test_directory_name[256]; /* a copy: the template may be gone by then */
static pid_t test_directory_owner;

static inline void test_remove_directory(void)
{
	char command[512];

	if (getpid() != test_directory_owner) /* a child that ends */
		return;
	(void)snprintf(command, sizeof(command), "rm -rf %s", test_directory_name);
	if (system(command) != 0)
		fprintf(stderr, "%s is left behind\n", test_directory_name);
}

/* Makes a directory of a template. It goes with the program, also when a check fails. */
static inline void test_make_directory(char *template)
{
	CHECK(mkdtemp(template) != NULL);
	CHECK(strlen(template) < sizeof(test_directory_name));
	strcpy(test_directory_name, template);
	test_directory_owner = getpid();
	CHECK_INT(atexit(test_remove_directory), ==, 0);
}
