#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh aarch64|riscv64 [TARGET...]: builds all of perfwalk for another processor with Debian's cross compiler and
# the libraries of sysroot.sh, in build-tests/PROCESSOR (or $TEST_BUILD/PROCESSOR), for /usr as packages are. The
# program's path is the only line on standard output. TARGETs are made besides.
set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
processor=$1
shift
out=${TEST_BUILD:-$top/build-tests}/$processor
compiler=$processor-linux-gnu-gcc

for program in "$compiler" "qemu-$processor" pkg-config; do
	command -v "$program" >/dev/null 2>&1 || { echo "$program is not installed" >&2; exit 77; }
done
root=$(sh "$here/sysroot.sh" "$processor")/root || exit
! command -v ccache >/dev/null 2>&1 || compiler="ccache $compiler"
werror=--enable-werror
[ "$processor" != riscv64 ] || werror= # its gcc 12 warns of what no code does (stringop-overflow)
mkdir -p "$out" || exit 1
{
	cd "$out" || exit 1
	[ -x "$top/configure" ] || (cd "$top" && autoreconf -fi) || exit 1
	export PKG_CONFIG_LIBDIR="$root/usr/lib/$processor-linux-gnu/pkgconfig:$root/usr/share/pkgconfig"
	export PKG_CONFIG_SYSROOT_DIR="$root"
	[ -e Makefile ] || "$top/configure" --host="$processor-linux-gnu" --prefix=/usr $werror PKG_CONFIG=pkg-config \
		CC="$compiler --sysroot=$root" LDFLAGS="-L$root/usr/lib/$processor-linux-gnu" EXE_WRAPPER="qemu-$processor -L $root" || exit 1
	make -j"${JOBS:-2}" all || exit 1
	# all is made by a make of its own, which must not make the same files at the same time.
	[ $# -eq 0 ] || make -j"${JOBS:-2}" "$@" || exit 1
} >"$out.log" 2>&1 || {
	tail -n 20 "$out.log" >&2
	exit 1
}
echo "$out/perfwalk"
