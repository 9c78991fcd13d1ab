#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prometheus's promtool, out of Debian's package, which would install and start the server as well:
# so it is unpacked, once, and kept outside the tree. Its path is the only line on standard output.
# Exit 77 with a reason on standard error where there is no apt-get; 1 when the package cannot be had.
set -u

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/promtool

command -v promtool && exit 0
if [ -x "$cache/promtool" ]; then
	echo "$cache/promtool"
	exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
	echo "promtool is not installed, and there is no apt-get to get it with" >&2
	exit 77
}
work=$cache/unpacked.$$
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
{
	cd "$work" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb . &&
		mv usr/bin/promtool "$cache/promtool"
} >&2 || exit 1
echo "$cache/promtool"
