#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the viewers that read our files, speedscope and the command line of the Firefox Profiler,
# from the npm registry, once: kept outside the tree, keyed by version. The directory with
# node_modules in it is the only line on standard output. Exit 77 with a reason on standard error
# when Node or npm is missing; 1 when the packages cannot be had.
set -u

speedscope=1.25.0
firefox=0.10.0
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/viewers-$speedscope-$firefox

if [ -e "$cache/complete" ]; then
	echo "$cache"
	exit 0
fi
for program in node npm; do
	if ! command -v "$program" >/dev/null 2>&1; then
		echo "$program is not installed" >&2
		exit 77
	fi
done
mkdir -p "$cache" || exit 1
{
	cd "$cache" && echo '{"private": true}' >package.json &&
		npm install --no-audit --no-fund --ignore-scripts \
			"speedscope@$speedscope" "@firefox-devtools/profiler-cli@$firefox" &&
		touch complete
} >&2 || exit 1
echo "$cache"
