#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The flame graph page in a browser: its script runs under the page's own policy, finds every
# sample, and names that are markup stay text. Skipped where there is no Chromium.
#
# Part of `make check`, which runs it in the build directory; by hand: sh flamegraph-page.sh [BUILD].
set -u

build=${1:-.}
writer=$build/tests/unit/test-render-html
for browser in chromium chromium-browser google-chrome-stable; do
	command -v "$browser" >/dev/null 2>&1 && break
	browser=
done
if [ -z "$browser" ]; then
	echo "SKIP: no chromium here; the page is checked as a file only" >&2
	exit 77
fi
if [ ! -x "$writer" ]; then
	echo "$writer is not there: build the unit tests first" >&2
	exit 99
fi

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' INT TERM HUP
failed=0

fail()
{
	echo "FAIL: $1: $2" >&2
	failed=1
}

# open KIND: writes the page and has the browser load it; the resulting document is in $work/KIND.dom.
open_page()
{
	"$writer" --write "$1" "$work/$1.html" || exit 99
	timeout 90 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking \
		--disable-component-update --disable-sync --no-first-run --enable-logging=stderr \
		--user-data-dir="$work/profile" --virtual-time-budget=5000 --dump-dom \
		"file://$work/$1.html" >"$work/$1.dom" 2>"$work/$1.log" ||
		fail "$1" "the browser ended with status $?"
}

# check KIND SAMPLES TITLE
check()
{
	open_page "$1"
	grep -q "data-ready=\"$2\"" "$work/$1.dom" || fail "$1" "the script did not count $2 samples"
	grep -q "<title>$3 " "$work/$1.dom" || fail "$1" "the title is not ours"
	if grep -E 'CONSOLE|Uncaught|Refused' "$work/$1.log" >&2; then
		fail "$1" "the browser complained"
	fi
	# Our own two script elements and none beside them; no image, no frame.
	[ "$(grep -o '<script' "$work/$1.dom" | wc -l)" -eq 2 ] || fail "$1" "a script of somebody else's"
	grep -qiE '<(img|iframe|svg|object|embed|link|base)\b' "$work/$1.dom" && fail "$1" "a name became markup"
	return 0
}

check small 12 "perfwalk record -a -d 10"
check hostile 266 "perfwalk record -a -d 10"
# The hostile names were there to be seen, as text.
grep -q '&lt;/script&gt;&lt;img src=x' "$work/hostile.dom" || fail hostile "the name is not shown"
[ "$failed" -eq 0 ]
