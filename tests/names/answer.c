/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What symbolize/ says about addresses: answer FILE [DEBUG-FILE [SUPPLEMENTARY-FILE]] <ADDRESSES
 *
 * One address in hex a line; its chain of functions in the form of llvm-symbolizer, which
 * tests/system/names.py holds it against: a name and FILE:LINE:COLUMN for each, then an empty line.
 * Files that are not named are opened as the broker opens them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/opener/opener.h"
#include "symbolize/symbolize.h"

struct files {
	const char *program, *debug, *supplementary;
	bool asked; /* the second time it is the supplementary one */
};

static int open_debug(void *ctx, const uint8_t *build_id, size_t n, const char *link, uint32_t crc)
{
	struct files *files = ctx;
	const char *given = files->asked ? files->supplementary : files->debug, *dwz;

	files->asked |= files->debug != NULL;
	if (given)
		return open(given, O_RDONLY | O_CLOEXEC);
	dwz = link ? strstr(link, "/.dwz/") : NULL;
	return opener_debug_file(0, build_id, n, dwz ? dwz + 1 : "");
}

static int open_split(void *ctx, const char *path)
{
	const struct files *files = ctx;
	char package[4096];

	(void)snprintf(package, sizeof(package), "%s.dwp", files->program);
	return opener_split_file(path ? path : package);
}

static void answer(struct symbol_file *f, uint64_t address)
{
	struct symbol chain[SYMBOL_MAX_CHAIN];
	size_t n;

	if (symbol_file_lines(f, address, chain, SYMBOL_MAX_CHAIN, &n) != 0) {
		(void)puts("??\n??:0:0\n");
		return;
	}
	for (size_t i = 0; i < n; i++)
		(void)printf("%s\n%s:%u:%u\n", chain[i].name, chain[i].file ? chain[i].file : "??",
			     chain[i].line, chain[i].column);
	(void)putchar('\n');
}

int main(int argc, char **argv)
{
	struct symbol_limits limits = SYMBOL_LIMITS_DEFAULT;
	struct symbol_file *f = NULL;
	struct files files = {.program = argc > 1 ? argv[1] : "",
			      .debug = argc > 2 ? argv[2] : NULL,
			      .supplementary = argc > 3 ? argv[3] : NULL};
	_cleanup_close_ int fd = open(files.program, O_RDONLY | O_CLOEXEC);
	char line[64];
	int r;

	limits.max_line_bytes = UINT64_C(16) << 20;
	r = fd < 0 ? -errno : symbol_file_new_fd(&f, fd, &limits, open_debug, &files);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", files.program, strerror(-r));
		return 1;
	}
	symbol_file_set_open_split(f, open_split, &files);
	while (fgets(line, sizeof(line), stdin))
		answer(f, strtoull(line, NULL, 16));
	(void)fprintf(stderr, "%zu bytes, %zu for lines, %llu refused\n", symbol_file_bytes(f),
		      symbol_file_line_bytes(f), (unsigned long long)symbol_file_refused(f));
	symbol_file_free(f);
	return 0;
}
