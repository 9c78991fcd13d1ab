/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/cmd/cmd.h"

int exit_code_of(int error)
{
	switch (-error) {
	case EPERM:
	case EACCES:
		return EXIT_CODE_NOT_PERMITTED;
	case ENOSYS:
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return EXIT_CODE_NOT_SUPPORTED;
	default:
		return EXIT_CODE_FAILURE;
	}
}
