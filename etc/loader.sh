#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# loader.sh PROGRAM: the path of what loads its libraries, which has another name on each processor.
set -eu

path=$(LC_ALL=C readelf -lW "$1" | sed -n 's/.*interpreter: \(.*\)\]$/\1/p')
[ -n "$path" ] || { echo "loader: $1 names no loader: it is linked statically" >&2; exit 1; }
echo "$path"
