#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The flame graph page in a browser. Part of `make check`, which runs it in the build directory; by
# hand: sh flamegraph-page.sh [BUILD].
exec python3 "$(dirname "$0")/flamegraph-page.py" "${1:-.}"
