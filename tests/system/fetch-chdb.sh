#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ClickHouse's engine as a module of Python (chdb), of PyPI, once, kept outside the tree, keyed by version: 180 MB. The
# Python that has it is the only line on standard output. Exit 77 with a reason on standard error without Python; 1 when
# it cannot be had.
set -u

version=4.4.0
core=26.9.0
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/chdb-$version-$core

if [ -e "$cache/complete" ]; then
	echo "$cache/bin/python3"
	exit 0
fi
command -v python3 >/dev/null 2>&1 || { echo "python3 is not installed" >&2; exit 77; }
# Of what else it wants, queries need nothing.
{
	rm -rf "$cache" && python3 -m venv "$cache" &&
		"$cache/bin/pip" install -q --no-deps "chdb==$version" "chdb-core==$core" && touch "$cache/complete"
} >&2 || exit 1
echo "$cache/bin/python3"
