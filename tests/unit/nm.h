/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Programs that a test builds in its working directory: commands, and addresses by nm. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

/* Runs a shell command, which must succeed. */
static inline void run(const char *command)
{
	CHECK_INT(system(command), ==, 0);
}

/* The address of an exported function of a program; it must have one. */
static inline uint64_t nm_address(const char *program, const char *function)
{
	char command[128], line[128], name[64];
	uint64_t address = 0;
	FILE *f;

	(void)snprintf(command, sizeof(command), "nm %s", program);
	f = popen(command, "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*x T %63s", name) == 1 && strcmp(name, function) == 0)
			address = strtoull(line, NULL, 16);
	(void)pclose(f);
	CHECK_INT(address, >, 0);
	return address;
}
