#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What naming costs, here and with addr2line and blazesym (built by cargo the first time), in turns:
# symbolize.sh PROGRAM [N]. Addresses are drawn from all over the code of each file; each program asks
# for the first one of a file just opened, then for all of them, for all again, and reads their names
# to the end.
set -eu

program=$1
n=${2:-10000}
top=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/perfwalk-bench}
peers=$target/release/symbolize-peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

if command -v cargo >/dev/null 2>&1; then
	mkdir -p "$target/source" && cp -r "$top/tests/bench/symbolize/." "$target/source/"
	CARGO_TARGET_DIR=$target cargo build --release --quiet --manifest-path "$target/source/Cargo.toml" || peers=
else
	echo "no cargo: no figures of others"
	peers=
fi

# addresses FILE: N of them, where functions are, in no order
addresses()
{
	python3 - "$1" "$n" <<'END'
import random, subprocess, sys
spans = []
for line in subprocess.run(["readelf", "-sW", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines():
    f = line.split()
    if len(f) > 7 and f[3] == "FUNC" and f[6] != "UND" and int(f[2], 0):
        spans.append((int(f[1], 16), int(f[2], 0)))
r = random.Random(1)
for start, size in r.choices(spans, [size for _, size in spans], k=int(sys.argv[2])):
    print(hex(start + r.randrange(size)))
END
}

ask() # names|lines FILE [DEBUG-FILE]
{
	echo "$1 of $2 ($(($(stat -L -c %s "$2") >> 20)) MiB): open and first, each first, again, and read; memory, found"
	addresses "${3:-$2}" >"$work/addresses"
	for round in 1 2 3; do
		"$program" "$@" <"$work/addresses"
		[ -z "$peers" ] || for peer in addr2line blazesym; do
			"$peers" "$peer" "$1" "${3:-$2}" <"$work/addresses"
		done
	done
}

debug_file() # of a program, by its build id
{
	id=$(readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p')
	echo "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
}

for file in $(command -v node || true) /usr/lib/*/libLLVM-1?.so.1 "$HOME"/.rustup/toolchains/stable*/lib/librustc_driver-*.so /usr/lib/*/libpython3.*.so.1.0; do
	[ -e "$file" ] && ask names "$file"
done
for file in /usr/lib/x86_64-linux-gnu/libc.so.6 /usr/bin/python3.[0-9]*[0-9]; do
	debug=$(debug_file "$file")
	[ -e "$debug" ] && ask lines "$file" "$debug"
done
exit 0
