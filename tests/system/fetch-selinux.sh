#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The base policy of SELinux out of Debian's package, which would install it: so it is unpacked, once, and kept outside
# the tree. Its path is the only line on standard output. Exit 77 with a reason on standard error where there is no
# apt-get; 1 when the package cannot be had.
set -u

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/selinux

if [ -e "$cache/base.pp" ]; then
	echo "$cache/base.pp"
	exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "there is no apt-get to get a policy with" >&2; exit 77; }
work=$cache/unpacked.$$
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
{
	cd "$work" && apt-get -o APT::Sandbox::User=root download selinux-policy-default &&
		dpkg-deb -x selinux-policy-default_*.deb . && bunzip2 usr/share/selinux/default/base.pp.bz2 &&
		mv usr/share/selinux/default/base.pp "$cache/base.pp"
} >&2 || exit 1
echo "$cache/base.pp"
