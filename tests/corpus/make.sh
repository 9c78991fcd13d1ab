#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make.sh TAKE [NAME...]: records the unwinder's corpus, tests/data/unwind/NAME.samples.gz, and what is
# expected of it, NAME.expect (all, or those named). TAKE is the recorder: make tests/corpus/take.
#
# Each NAME is a trap; how it is made stands below. The programs are built here from src/, with what
# of gcc, g++, clang, musl-gcc, rustc, go, node and java is installed; a trap whose tool is missing
# keeps its old file. Programs run with an empty environment: a stack ends with it.
#
# What is new in the expectations is for a person to read: `git diff tests/data/unwind`.
default_data=../data/unwind
. "$(dirname "$0")/common.sh"
flags="-O2 -fomit-frame-pointer -D_GNU_SOURCE -I$src"

# trap_is NAME TAKE'S OPTIONS -- PROGRAM...
trap_is()
{
	name=$1
	shift
	record "$name" "$environment" "$@"
}

# for_trap NAME TOOL...: is it asked for, and are its tools there?
for_trap()
{
	is_wanted "$1" || return 1
	environment=
	trap_name=$1
	shift
	for tool in "$@"; do
		command -v "$tool" >/dev/null 2>&1 && continue
		echo "$trap_name: $tool is not installed"
		return 1
	done
}

traps() # OUTPUT FLAGS...
{
	program=$1
	shift
	# shellcheck disable=SC2086
	[ -x "$program" ] || gcc $flags "$@" -o "$program" "$src/traps.c"
}

# Stubs of the procedure linkage table and ld.so's lazy resolver, whose CFA is rbx + ...
for_trap plt gcc && traps lazy -Wl,-z,lazy && trap_is plt -n 40 -- ./lazy plt
# The same with Intel's branch tracking: .plt and .plt.sec.
for_trap plt-ibt gcc && traps ibt -Wl,-z,lazy -fcf-protection=full -Wl,-z,ibtplt &&
	trap_is plt-ibt -n 24 -m ibt -- ./ibt plt
# The linker can be told to leave .plt without call-frame information.
for_trap plt-no-cfi gcc && traps nopltcfi -Wl,-z,lazy -Wl,--no-ld-generated-unwind-info &&
	trap_is plt-no-cfi -n 24 -m nopltcfi -- ./nopltcfi plt
# Each instruction of functions with every call-saved register, with alloca, and without a frame.
for_trap prologue gcc && traps lazy -Wl,-z,lazy && trap_is prologue -n 40 -m lazy -- ./lazy prologue
# Functions that end in a jump to another.
for_trap tail-call gcc && traps lazy -Wl,-z,lazy && trap_is tail-call -n 20 -m lazy -- ./lazy tail
# A handler, its trampoline, and what it interrupted; on the same stack, and on another.
for_trap signal gcc && traps lazy -Wl,-z,lazy && trap_is signal -n 24 -- ./lazy signals
for_trap signal-altstack gcc && traps lazy -Wl,-z,lazy && trap_is signal-altstack -n 24 -- ./lazy alternate
# A fault at the first instruction of a function; the handler leaves by siglongjmp.
for_trap signal-fault gcc && traps lazy -Wl,-z,lazy && trap_is signal-fault -n 24 -- ./lazy faults
for_trap longjmp gcc && traps lazy -Wl,-z,lazy && trap_is longjmp -n 24 -- ./lazy jumps
for_trap vdso gcc && traps lazy -Wl,-z,lazy && trap_is vdso -n 16 -m '[vdso]' -- ./lazy vdso
# mprotect() of one page splits the mapping of the code.
for_trap mapping-split gcc && traps lazy -Wl,-z,lazy && trap_is mapping-split -n 16 -m lazy -- ./lazy split
# The copy of the stack ends before the stack does.
for_trap truncated gcc && traps lazy -Wl,-z,lazy && trap_is truncated -n 10 -m lazy -- ./lazy truncated
# Hand-written assembler of libc.
for_trap asm-libc gcc && traps now -Wl,-z,now && trap_is asm-libc -n 30 -m libc -- ./now assembler
# ... of libcrypto
for_trap asm-libcrypto gcc && gcc $flags -o crypto "$src/crypto.c" -ldl &&
	trap_is asm-libcrypto -n 40 -m libcrypto -- ./crypto
# ... of libgcc: the stack goes on elsewhere.
for_trap asm-libgcc gcc && gcc $flags -fsplit-stack -o split-stack "$src/split-stack.c" &&
	trap_is asm-libgcc -n 40 -m split-stack -- ./split-stack
for_trap static-pie gcc && traps static-pie -static-pie && trap_is static-pie -n 20 -- ./static-pie signals
for_trap static gcc && traps static -static && trap_is static -n 20 -- ./static assembler
# No call-frame information at all, but frame pointers.
for_trap no-cfi-frame-pointer gcc &&
	traps nocfi -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer &&
	trap_is no-cfi-frame-pointer -n 20 -- ./nocfi signals
# .debug_frame only, plain and compressed.
for_trap debug-frame gcc &&
	traps debugframe -g -fno-asynchronous-unwind-tables -fno-unwind-tables &&
	trap_is debug-frame -n 20 -m debugframe -- ./debugframe prologue
for_trap debug-frame-zlib gcc &&
	traps debugframez -g -gz=zlib -fno-asynchronous-unwind-tables -fno-unwind-tables &&
	trap_is debug-frame-zlib -n 20 -m debugframez -- ./debugframez prologue
# Program headers only.
for_trap no-sections gcc llvm-strip && traps nosections -Wl,-z,lazy && llvm-strip --strip-sections nosections &&
	trap_is no-sections -n 20 -- ./nosections signals
# A library linked for an address, with segments whose offset is not their address.
for_trap prelinked gcc &&
	gcc $flags -fPIC -shared -Wl,-Ttext-segment=0x3000000000 -Wl,-z,max-page-size=0x200000 -o libprelinked.so "$src/library.c" &&
	gcc $flags -o twice "$src/twice.c" -ldl && trap_is prelinked -n 16 -- ./twice ./libprelinked.so
# One file mapped twice, both in one stack.
for_trap mapped-twice gcc && gcc $flags -fPIC -shared -o libtwice.so "$src/library.c" &&
	gcc $flags -o twice "$src/twice.c" -ldl && trap_is mapped-twice -n 16 -m libtwice -- ./twice ./libtwice.so
for_trap coroutine gcc && gcc $flags -o context "$src/context.c" && trap_is coroutine -n 30 -- ./context
for_trap cxx-exception g++ && g++ $flags -o exception "$src/exception.cc" &&
	trap_is cxx-exception -n 40 -- ./exception
for_trap cxx-clang clang++ && clang++ $flags -o exception-clang "$src/exception.cc" &&
	trap_is cxx-clang -n 16 -m exception -- ./exception-clang
for_trap rust-panic rustc && rustc --edition 2021 -O -C strip=debuginfo -o panic "$src/panic.rs" &&
	trap_is rust-panic -n 40 -- ./panic
for_trap musl musl-gcc && musl-gcc $flags -o musl "$src/traps.c" && trap_is musl -n 20 -- ./musl signals
for_trap musl-static musl-gcc && musl-gcc $flags -static -o musl-static "$src/traps.c" &&
	trap_is musl-static -n 20 -- ./musl-static assembler

go_program() # OUTPUT PACKAGE FLAGS...
{
	go_build "$@" && strip_go objcopy "$1"
}
# Without signals of the scheduler, which come as they like; go-morestack has them.
quiet=GODEBUG=asyncpreemptoff=1
for_trap go go objcopy && go_program gotraps "$src/gotraps.go" && environment=$quiet && trap_is go -n 30 -- ./gotraps
for_trap go-morestack go objcopy && go_program gotraps "$src/gotraps.go" &&
	trap_is go-morestack -n 30 -- ./gotraps morestack
for_trap go-stripped go && go_program gostripped "$src/gotraps.go" -ldflags='-s -w' &&
	environment=$quiet && trap_is go-stripped -n 30 -- ./gostripped
for_trap go-cgo go gcc objcopy && cp -r "$src/cgo" . && (cd cgo && go_program ../cgotraps .) &&
	trap_is go-cgo -n 30 -- ./cgotraps

# Huge programs, and code made at run time, which no file has, in the middle.
for_trap node node && trap_is node -n 16 -i 7 -m node -- "$(command -v node)" --single-threaded "$src/hot.js"
for_trap node-jit node &&
	trap_is node-jit -n 12 -i 7 -w '[anonymous]' -- "$(command -v node)" --single-threaded "$src/hot.js"
for_trap java-jit java javac && javac -d . "$src/Hot.java" &&
	trap_is java-jit -n 16 -i 5 -w '[anonymous]' -- "$(realpath "$(command -v java)")" -Xshare:off -XX:+UseSerialGC -cp . Hot
for_trap llvm clang && trap_is llvm -r -n 16 -i 1 -m libLLVM -- "$(realpath "$(command -v clang)")" -cc1 -emit-obj \
	-O3 -o llvm.o -x c++ "$src/many.cc"
for_trap rustc rustc && trap_is rustc -r -n 5 -i 3 -m librustc_driver -- \
	"$(rustc --print sysroot)/bin/rustc" --edition 2021 -O -o panic2 "$src/panic.rs"
exit $failed
