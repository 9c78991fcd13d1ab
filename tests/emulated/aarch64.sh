#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# aarch64.sh DIR SRCDIR: with the test programs of DIR, compares rows of aarch64's C library with libdw's, builds the
# stepping workload for aarch64 in several ways and steps through it under qemu-aarch64. Needs qemu-user,
# gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
set -eu
test=$1/test-aarch64 compact=$1/test-compact src=$2
sysroot=/usr/aarch64-linux-gnu
for program in qemu-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		echo "SKIP: $program is missing (apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
		exit 77
	fi
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo "rows of the C library"
"$compact" $sysroot/lib/*.so.*

# name, LD_BIND_NOW, compiler options
step() {
	name=$1 now=$2
	shift 2
	aarch64-linux-gnu-gcc -O2 -g "$@" -I "$src" "$src/tests/emulated/program.c" \
		"$src/tests/unit/unwind-workload.c" -o "$dir/$name" -ldl
	start=$(nm "$dir/$name" | awk '$3 == "unwind_workload" { print $1 }')
	# part, every, at most: libc, signals, deep recursion, the loader
	for part in "0 5 12000" "1 5 12000" "2 41 40000" "3 97 200000"; do
		echo "$name, part $part"
		# shellcheck disable=SC2086
		LD_BIND_NOW=$now timeout 300 "$test" qemu-aarch64 $sysroot "$dir/$name" "$start" $part
	done
}

step plain 1 -fomit-frame-pointer
step frame-pointers 1 -fno-omit-frame-pointer
step lazy "" -fomit-frame-pointer -Wl,-z,lazy
step signed 1 -fomit-frame-pointer -mbranch-protection=standard
step static 1 -static-pie

# Go: by .debug_frame, and by .gopclntab alone.
if command -v go >/dev/null; then
	cp "$src/tests/emulated/program.go" "$dir"
	export GOARCH=arm64 CGO_ENABLED=0 GOFLAGS=-mod=mod GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1
	(cd "$dir" && go build -o go program.go && go build -ldflags "-s -w" -o go-stripped program.go)
	start=$(nm "$dir/go" | awk '$3 == "main.work" { print $1 }')
	start=$(printf %x $((0x$start - 0x10000)))
	for name in go go-stripped; do
		echo "$name"
		timeout 300 "$test" qemu-aarch64 / "$dir/$name" "$start" 0 5 12000 alone
	done
else
	echo "SKIP: Go on aarch64: go is missing"
fi
echo "aarch64: all steps agree"
