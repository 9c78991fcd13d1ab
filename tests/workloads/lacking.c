/* SPDX-License-Identifier: Apache-2.0 */
/* lacking NUMBER[,NUMBER...] COMMAND...: runs it on a kernel that does not have these system calls.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MAX_CALLS = 32 };

int main(int argc, char **argv)
{
	static struct sock_filter code[2 * MAX_CALLS + 2];
	struct sock_fprog filter = {.filter = code};
	char *number;

	if (argc < 3)
		return 125;
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							  offsetof(struct seccomp_data, nr));
	for (number = strtok(argv[1], ","); number && filter.len < 2 * MAX_CALLS;
	     number = strtok(NULL, ",")) {
		code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								  (unsigned int)atoi(number), 0, 1);
		code[filter.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	}
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
		perror("seccomp");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 125;
}
