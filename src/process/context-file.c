/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "src/process/context-file.h"

bool context_file_read(int fd, struct context_file *ret_head, char **ret_bytes)
{
	struct context_file head;
	char *bytes;
	size_t n;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    head.n_environment > CONTEXT_MAX_ENVIRONMENT || head.n_payload > CONTEXT_MAX_PAYLOAD)
		return false;
	n = (size_t)head.n_environment + head.n_payload;
	bytes = malloc(n + 1);
	if (!bytes || pread(fd, bytes, n, sizeof(head)) != (ssize_t)n ||
	    (head.n_environment && bytes[head.n_environment - 1] != '\0')) {
		free(bytes);
		return false;
	}
	*ret_head = head;
	*ret_bytes = bytes;
	return true;
}
