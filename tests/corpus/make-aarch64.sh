#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make-aarch64.sh TAKE [NAME...]: the corpus's part for aarch64, tests/data/unwind/aarch64, as make.sh makes the
# rest. TAKE: make tests/corpus/take-aarch64. The programs run under qemu-aarch64 and are stepped through by its GDB
# stub. Wants qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross; go for Go's.
sysroot=/usr/aarch64-linux-gnu
for program in qemu-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		echo "SKIP: $program is missing (apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
		exit 77
	fi
done
default_data=../data/unwind/aarch64
. "$(dirname "$0")/common.sh"

# trap_is NAME SAMPLES SYMBOL PROGRAM ARGUMENTS...: steps through the function SYMBOL.
trap_is()
{
	name=$1 samples=$2 start=$3
	shift 3
	[ "$start" -ge 0 ] 2>/dev/null || start=0x$(aarch64-linux-gnu-nm "$1" | awk -v s="$start" '$3 == s { print $1; exit }')
	# What is linked for an address begins at its first page.
	base=$(aarch64-linux-gnu-readelf -lW "$1" | awk '$1 == "LOAD" { print $3; exit }')
	start=$(printf %x $((start - base)))
	# shellcheck disable=SC2086
	record "$name" "$environment" $options -n "$samples" -s "$start" -- "$(command -v qemu-aarch64)" -cpu max -L $sysroot "$@"
}

for_trap()
{
	environment= options=
	is_wanted "$1"
}

compile() # OUTPUT SOURCE FLAGS...
{
	program=$1 source=$2
	shift 2
	[ -x "$program" ] || aarch64-linux-gnu-gcc -O2 -fomit-frame-pointer -D_GNU_SOURCE -I"$src" "$@" -o "$program" "$src/$source"
}

# Each instruction of functions with every call-saved register, with alloca, and without a frame.
for_trap prologue && compile lazy traps.c -Wl,-z,lazy && trap_is prologue 24 prologue ./lazy prologue
for_trap tail-call && compile lazy traps.c -Wl,-z,lazy && trap_is tail-call 12 tail ./lazy tail
# The same with return addresses signed (PAC) and landing pads (BTI).
for_trap signed && compile signed traps.c -mbranch-protection=standard && trap_is signed 24 prologue ./signed prologue
for_trap signed-signal && compile signed traps.c -mbranch-protection=standard && trap_is signed-signal 16 main ./signed signals
# Stubs and ld.so's lazy resolver.
for_trap plt && compile lazy traps.c -Wl,-z,lazy && trap_is plt 24 plt ./lazy plt
# ... each instruction of which is a sample.
for_trap resolver && compile lazy traps.c -Wl,-z,lazy && options="-m ld-linux" && trap_is resolver 60 tail ./lazy tail
# Frame pointers, with call-frame information and without any.
for_trap frame-pointer && compile fp traps.c -fno-omit-frame-pointer && trap_is frame-pointer 16 prologue ./fp prologue
for_trap no-cfi-frame-pointer && compile nocfi traps.c -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer &&
	trap_is no-cfi-frame-pointer 16 prologue ./nocfi prologue
# A handler, the trampoline without call-frame information, and what it interrupted.
for_trap signal && compile lazy traps.c -Wl,-z,lazy && environment=LD_BIND_NOW=1 && trap_is signal 20 main ./lazy signals
for_trap signal-altstack && compile lazy traps.c -Wl,-z,lazy && environment=LD_BIND_NOW=1 && trap_is signal-altstack 20 alternate ./lazy alternate
for_trap signal-fault && compile lazy traps.c -Wl,-z,lazy && environment=LD_BIND_NOW=1 && trap_is signal-fault 20 faults ./lazy faults
for_trap longjmp && compile lazy traps.c -Wl,-z,lazy && environment=LD_BIND_NOW=1 && trap_is longjmp 16 jumps ./lazy jumps
for_trap asm-libc && compile now traps.c -Wl,-z,now && trap_is asm-libc 20 assembler ./now assembler
for_trap coroutine && compile context context.c && environment=LD_BIND_NOW=1 && trap_is coroutine 20 main ./context
for_trap static-pie && compile static-pie traps.c -static-pie && trap_is static-pie 16 main ./static-pie signals
for_trap debug-frame && compile debugframe traps.c -g -fno-asynchronous-unwind-tables -fno-unwind-tables &&
	trap_is debug-frame 16 prologue ./debugframe prologue
for_trap truncated && compile lazy traps.c -Wl,-z,lazy && trap_is truncated 6 prologue ./lazy truncated

# Go: .debug_frame, and .gopclntab alone.
go_program() # OUTPUT FLAGS...
(
	export GOARCH=arm64 CGO_ENABLED=0
	output=$1
	shift
	go_build "$output" "$here/../emulated/program.go" "$@"
)
if command -v go >/dev/null; then
	# The scheduler may want the thread at any call; what it does then on its own stack is another trap.
	quiet="GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1"
	for_trap go && go_program go && strip_go aarch64-linux-gnu-objcopy go && environment=$quiet options=-c &&
		trap_is go 24 main.build ./go
	for_trap go-stripped && go_program go && go_program go-stripped -ldflags='-s -w' && environment=$quiet options=-c &&
		trap_is go-stripped 24 $((0x$(aarch64-linux-gnu-nm go | awk '$3 == "main.build" { print $1 }'))) ./go-stripped
else
	echo "go: go is not installed"
fi
exit $failed
