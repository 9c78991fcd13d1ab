/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the live unwinder test as a program: PART, the number of one part. */
#include <stdlib.h>

#include "tests/unit/unwind-workload.h"

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	unwind_workload((enum unwind_workload_part)atoi(argv[1]));
	return 0;
}
