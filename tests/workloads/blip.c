/* SPDX-License-Identifier: Apache-2.0 */
/* Burns CPU for argv[1] milliseconds (its own time, 2 when not given) and is gone. */
#include <stdlib.h>
#include <time.h>
#include "common.h"

KNOWN void blip_burn(long ms)
{
	struct timespec now;

	do {
		SPIN(SPIN_SHORT);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

int main(int argc, char **argv)
{
	blip_burn(argc > 1 ? atol(argv[1]) : 2);
	return 0;
}
