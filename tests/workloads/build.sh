#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh OUT [NAME...]: builds the workloads (all, or those named) into OUT, optimised and without
# frame pointers. Exit 77 when the compiler of a named workload is not installed, 1 when a build fails.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out" || exit 1
CC=${WORKLOAD_CC:-gcc}
CXX=${WORKLOAD_CXX:-g++}
RUSTC=${WORKLOAD_RUSTC:-rustc}
flags="-O2 -fomit-frame-pointer -fno-optimize-sibling-calls -Wall -I$here ${WORKLOAD_FLAGS:-}"

need()
{
	command -v "$1" >/dev/null 2>&1 && return 0
	echo "$1 is not installed" >&2
	exit 77
}

c() # OUTPUT SOURCE FLAGS...
{
	need "$CC"
	output=$1
	source=$2
	shift 2
	# shellcheck disable=SC2086
	$CC -std=gnu11 $flags -o "$out/$output" "$here/$source" "$@" || exit 1
}

musl() # as c
{
	compiler=$CC
	CC=musl-gcc
	c "$@"
	CC=$compiler
}

build()
{
	case $1 in
	chain | recurse | registers | frames | handler | vdso | stages | deep | growth | secret | sleepers | switches)
		c "$1" "$1.c" ;;
	hangs)
		c "$1" hangs.c -fno-omit-frame-pointer -pthread ;;
	spans)
		c "$1" spans.c "$here/span-slot.c" -D_GNU_SOURCE -DSLOT_IN_PROGRAM -pthread -rdynamic -ldl ;;
	spans-hostile)
		c "$1" spans-hostile.c "$here/span-slot.c" -D_GNU_SOURCE -pthread -rdynamic ;;
	traced)
		c "$1" traced.c "$here/span-slot.c" -D_GNU_SOURCE -pthread -rdynamic ;;
	spans-waits)
		c "$1" spans-waits.c "$here/span-slot.c" -D_GNU_SOURCE -pthread -rdynamic ;;
	spans-waits-musl)
		musl "$1" spans-waits.c "$here/span-slot.c" -D_GNU_SOURCE -rdynamic ;;
	spans-fast)
		c "$1" spans-fast.c "$here/span-slot.c" -D_GNU_SOURCE -pthread -rdynamic ;;
	spans-fast-musl)
		musl "$1" spans-fast.c "$here/span-slot.c" -D_GNU_SOURCE -rdynamic ;;
	spans-static | spans-static-pie)
		c "$1" spans.c "$here/span-slot.c" -D_GNU_SOURCE -DSLOT_IN_PROGRAM -pthread "-${1#spans-}" ;;
	spans-stripped)
		c "$1" spans.c "$here/span-slot.c" -D_GNU_SOURCE -DSLOT_IN_PROGRAM -pthread -static -s ;;
	spans-musl)
		musl "$1" spans.c "$here/span-slot.c" -D_GNU_SOURCE -DSLOT_IN_PROGRAM -rdynamic ;;
	spans-musl-static)
		musl "$1" spans.c "$here/span-slot.c" -D_GNU_SOURCE -DSLOT_IN_PROGRAM -DMORE_VARIABLES -static ;;
	spans-musl-loaded)
		musl libspan-slot-musl.so span-slot.c -shared -fPIC
		musl libspan-slot-musl-gnu2.so span-slot.c -shared -fPIC -mtls-dialect=gnu2
		musl "$1" spans.c -D_GNU_SOURCE ;;
	spans-loaded)
		c libspan-slot.so span-slot.c -shared -fPIC
		case $($CC -dumpmachine) in # on others descriptors are the compiler's way, or it has none
		x86_64*) c libspan-slot-gnu2.so span-slot.c -shared -fPIC -mtls-dialect=gnu2 ;;
		esac
		c "$1" spans.c -D_GNU_SOURCE -pthread -ldl ;;
	asgct)
		need java
		java_home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
		[ -e "$java_home/include/jvmti.h" ] || need jvmti.h
		c libasgct.so asgct.c -shared -fPIC -D_GNU_SOURCE -I"$java_home/include" \
			-I"$java_home/include/linux" -ldl ;;
	published)
		c "$1" published.c -D_GNU_SOURCE -pthread ;;
	chain-static)
		c "$1" chain.c -static ;;
	chain-static-pie)
		c "$1" chain.c -static-pie ;;
	chain-nopie)
		c "$1" chain.c -no-pie ;;
	chain-stripped)
		c "$1" chain.c -s ;;
	chain-dynsym)
		c "$1" chain.c -s -rdynamic ;;
	chain-debugframe)
		# No .eh_frame entries of its own: its rules are in a compressed .debug_frame.
		c "$1" chain.c -g -gz=zlib -fno-asynchronous-unwind-tables -fno-unwind-tables ;;
	chain-fp)
		c "$1" chain.c -fno-omit-frame-pointer ;;
	deep-fp)
		c "$1" deep.c -fno-omit-frame-pointer ;;
	counted)
		c "$1" counted.c -pthread ;;
	liar)
		c "$1" liar.c -ldl ;;
	heap)
		c "$1" heap.c -pthread ;;
	marked)
		c "$1" marked.c -pthread ;;
	waits | locks | pool | leak)
		c "$1" "$1.c" -pthread ;;
	chain-offset)
		# The code is far from where its file offset says it would be.
		c "$1" chain.c -Wl,--section-start=.text=0x3000000 ;;
	host)
		c libtiny.so tiny.c -shared -fPIC
		c plugin.so plugin.c -shared -fPIC
		c host host.c -ldl -L"$out" -ltiny -Wl,-rpath,"$out" -Wl,-z,lazy ;;
	lacking)
		c "$1" lacking.c ;;
	jit)
		c jit jit.c -static ;;
	jitdump)
		c jitdump jitdump.c -static ;;
	unwound)
		c unwound unwound.c -static ;;
	blip)
		c blip blip.c -static ;;
	cxx)
		need "$CXX"
		# shellcheck disable=SC2086
		$CXX -std=c++17 $flags -pthread -o "$out/cxx" "$here/cxx.cc" || exit 1 ;;
	rusty)
		need "${RUSTC%% *}"
		# shellcheck disable=SC2086 # with its options
		$RUSTC --edition 2021 -O -C force-frame-pointers=no -o "$out/rusty" "$here/rusty.rs" ||
			exit 1 ;;
	gopher)
		need go
		GOFLAGS=-buildvcs=false go build -o "$out/gopher" "$here/gopher.go" || exit 1 ;;
	labelled | labelled-stripped | labelled-linked)
		need go
		case $1 in
		labelled) go_flags= ;;
		labelled-stripped) go_flags="-ldflags=-s" ;;
		# Position independent, and with a C library, as programs with cgo are.
		labelled-linked) go_flags="-buildmode=pie -ldflags=-linkmode=external" ;;
		esac
		# shellcheck disable=SC2086
		GOFLAGS=-buildvcs=false go build $go_flags -o "$out/$1" "$here/labelled.go" || exit 1 ;;
	pyloop)
		[ -x /usr/bin/python3 ] || need python3
		cp "$here/pyloop.py" "$out/" || exit 1 ;;
	jsloop)
		need node
		cp "$here/jsloop.js" "$out/" || exit 1 ;;
	*)
		echo "no workload is called $1" >&2
		exit 1 ;;
	esac
}

[ $# -gt 0 ] || set -- chain chain-static chain-static-pie chain-nopie chain-stripped chain-dynsym \
	chain-debugframe chain-offset recurse frames handler vdso stages host jit blip cxx rusty gopher \
	pyloop jsloop
for name in "$@"; do
	build "$name"
done
