/* SPDX-License-Identifier: Apache-2.0 */
/* bounded "NUMBER..." COMMAND...: runs it with these capabilities at most, as a unit of systemd
 * does. Busybox cannot. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long long keep = 0;
	char *p = argv[1], *end;

	if (argc < 3)
		return 125;
	for (long n = strtol(p, &end, 10); end != p; p = end, n = strtol(p, &end, 10))
		keep |= 1ULL << n;
	/* The first that this kernel does not know ends it. */
	for (unsigned int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i) >= 0; i++) {
		if (!(keep >> i & 1) && prctl(PR_CAPBSET_DROP, i) < 0) {
			perror("PR_CAPBSET_DROP");
			return 125;
		}
	}
	(void)execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
