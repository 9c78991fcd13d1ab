#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle.sh BINDIR SYSCONFDIR LIBDIR DOCDIR ARCHIVE LIBRARY...: what `make bundle` makes in the build directory, of the
# tree that bundle-tree.sh makes. To be unpacked in / of any Linux of the same processor; nothing of what it brings is
# seen by other programs. The default config is in DOCDIR, so that one that the host has is not overwritten. Beside the
# archive goes the list of its parts (SPDX).
set -eu

command -v xz >/dev/null 2>&1 || {
	echo "make bundle: xz is not installed; on Debian: apt-get install xz-utils" >&2
	exit 1
}
umask 022
bindir=$1 sysconfdir=$2 libdir=$3 docdir=$4 archive=$5
shift 5
date=$(sh "$(dirname "$0")/source-date.sh" "$(dirname "$0")/..")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM

sh "$(dirname "$0")/bundle-tree.sh" "$stage" bundle/perfwalk "$bindir" "$libdir" "$docdir" "${archive%.tar.xz}.spdx.json" "$@"
mv "$stage$sysconfdir/perfwalk/perfwalk.conf" "$stage$docdir/"
rmdir -p --ignore-fail-on-non-empty "$stage$sysconfdir/perfwalk"
# Files, and the directories for what the daemon keeps, which are empty: others that the host has keep their owners
# and modes.
(cd "$stage" && find ./* -type f -o -type d -empty | LC_ALL=C sort) |
	tar --format=posix --mtime="@$date" --owner=0 --group=0 --numeric-owner \
		--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f -C "$stage" -T - -cJf "$archive"
libraries=$(find "$stage$libdir" -type f | wc -l)
echo "$archive: $(du -h "$archive" | cut -f1), perfwalk with $libraries libraries; unpack it with: tar -xJf $(basename "$archive") -C /"
