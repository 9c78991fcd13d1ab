/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/import/builder.h"

int import_damaged(struct import *im, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(im->error, IMPORT_ERROR_MAX, format, ap);
	va_end(ap);
	return -EBADMSG;
}
