#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# source-date.sh SRCDIR: the date of the sources, in seconds since 1970, which archives give to their files. It is
# $SOURCE_DATE_EPOCH, or that of the commit, or that of the files as they came in an archive.
set -eu
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
	echo "$SOURCE_DATE_EPOCH"
elif [ -e "$1/.git" ] && git -C "$1" log -1 --format=%ct 2>/dev/null; then
	:
else
	stat -c %Y "$1/configure.ac"
fi
