/* SPDX-License-Identifier: Apache-2.0 */
/* How files of runtimes are called, and what texts say of the rows (util/runtime-rows.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"
#include "util/cleanup.h"
#include "util/runtime-files.h"
#include "util/runtime-rows.h"

static int rank_of(const char *path, enum runtime_use use)
{
	return runtime_file_rank(path, strlen(path), use);
}

/* "A, B and C" */
static const char *join_names(char names[][32], size_t n)
{
	static char joined[200];

	joined[0] = '\0';
	for (size_t i = 0; i < n; i++)
		(void)snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s",
			       i == 0	    ? ""
			       : i == n - 1 ? " and "
					    : ", ",
			       names[i]);
	return joined;
}

/* What texts say is what the rows have: those with a chain first. */
static void test_runtime_names(void)
{
	char *known = NULL, names[RUNTIME_N_KINDS][32];
	size_t n_known, n_chains = 0, n = 0;
	FILE *f = open_memstream(&known, &n_known);
	enum runtime_use use;

	CHECK(f != NULL);
	runtime_files_print(f);
	CHECK_INT(fclose(f), ==, 0);
	for (bool others = false;; others = true) {
		const char *name = known;

		for (size_t i = 0; runtime_file_symbols(i, &use); i++) {
			if (((use & RUNTIME_CHAINS) == 0) == others)
				CHECK_INT(sscanf(name, "%31[^ (]", names[n++]), ==, 1);
			name += strcspn(name, ";");
			name += strspn(name, "; ");
		}
		if (others)
			break;
		n_chains = n;
	}
	free(known);
	CHECK_INT(n, ==, RUNTIME_N_KINDS);
	CHECK_STR(join_names(names, n_chains), RUNTIME_NAMES_WITH_CHAIN);
	CHECK_STR(join_names(names, n), RUNTIME_NAMES);
}

static void test_runtime_files(void)
{
	static const struct {
		const char *path;
		int steps, chains;
	} files[] = {
		{"/usr/bin/php8.2", 0, 1},
		{"/usr/bin/php", 0, 1},
		{"/usr/sbin/php-fpm8.2", 0, 1},
		{"/usr/bin/php8.2-cgi", 0, 1},
		{"/usr/local/sbin/php-fpm", 0, 1},
		{"/usr/lib/apache2/modules/libphp8.2.so", 0, 2},
		{"/usr/lib/libphp.so", 0, 2},
		{"/usr/bin/phpstorm", 0, 0},
		{"/usr/bin/php-config", 0, 0},
		{"/usr/lib/libphpx.so", 0, 0},
		{"php", 0, 0},
		{"/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", 0, 2},
		{"/opt/ruby/lib/libruby.so.3.4", 0, 2},
		{"/usr/bin/ruby", 0, 1},
		{"/usr/bin/ruby3.1", 0, 1},
		{"/usr/bin/rubyfmt", 0, 0},
		{"/usr/lib/librubygems.so", 0, 0},
		{"/usr/lib/libpython3.11.so.1.0", 2, 2},
		{"/a/libpython3.6m.so", 2, 2},
		{"/usr/bin/python3.12", 1, 1},
		{"/x/libpython3.13t.so.1.0", 2, 2},
		{"/x/python3.7m", 1, 1},
		{"/usr/lib/libpython3.so", 0, 0},
		{"/usr/bin/python3", 0, 0},
		{"/usr/lib/libpython2.7.so", 0, 0},
		{"python3.11", 0, 0},
		{"/usr/bin/python3.11-config", 0, 0},
		{"/usr/bin/python3.", 0, 0},
		{"/usr/lib/libpython3.11.a", 0, 0},
		{"/usr/lib/libjvm.so", 3, 0},
		{"/usr/lib/libjvm.so.1", 0, 0},
		{"/usr/lib/libnode.so.108", 2, 0},
		{"/usr/bin/node", 1, 0},
		{"/usr/bin/nodejs", 1, 0},
		{"/usr/bin/nodemon", 0, 0},
		{"/usr/bin/python3.12 (deleted)", 1, 1},
		{"/usr/lib/libjvm.so (deleted)", 3, 0},
		{"/ (deleted)", 0, 0},
		{"/", 0, 0},
		{"", 0, 0},
	};
	char *known = NULL;
	size_t n_known;
	FILE *f = open_memstream(&known, &n_known);

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		CHECK_INT(rank_of(files[i].path, RUNTIME_STEPS), ==, files[i].steps);
		CHECK_INT(rank_of(files[i].path, RUNTIME_CHAINS), ==, files[i].chains);
	}
	CHECK(f != NULL);
	runtime_files_print(f);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(strstr(known, "; Python (libpython3.N.so*, python3.N); PHP (") != NULL);
	free(known);
	CHECK(runtime_files_are_alike("/usr/bin/python3.11", "/x/libpython3.11.so.1.0",
				      RUNTIME_CHAINS));
	CHECK(!runtime_files_are_alike("/usr/bin/python3.11", "/x/libruby-3.1.so.3.1",
				       RUNTIME_CHAINS));
	CHECK(!runtime_files_are_alike("/usr/bin/node", "/usr/bin/node", RUNTIME_CHAINS));
	CHECK(!runtime_files_are_alike("/usr/bin/sh", "/usr/bin/sh", RUNTIME_ANY));
	CHECK(runtime_file_may_chain("/usr/bin/uwsgi-core"));
	CHECK(runtime_file_may_chain("/usr/sbin/apache2"));
	CHECK(runtime_file_may_chain("/usr/bin/ruby3.1"));
	CHECK(!runtime_file_may_chain("/usr/bin/python2.7"));
	CHECK(!runtime_file_may_chain("/usr/bin/node"));
}

int main(void)
{
	RUN(test_runtime_files);
	RUN(test_runtime_names);
	return 0;
}
