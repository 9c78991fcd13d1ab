#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# seeds-symbols.sh DIRECTORY: small ELF files with every kind of names and lines that symbolize/ reads, and of
# rules that unwind/ reads; made once and kept in tests/fuzz/corpus-symbols. Where several files belong together
# (a program, its debug file, what was split off it), they stand one behind the other, each at a multiple of 8.
# Needs gcc, clang, go's format from hand, dwz, dwp and xz.
# shellcheck disable=SC2086
set -eu

out=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >a.cc <<'END_CC'
namespace deep {
template <typename T> struct pair { T a, b; };
template <typename T> static inline __attribute__((always_inline)) T twice(pair<T> p, int n)
{
	T sum = 0;
	for (int i = 0; i < n; i++)
		sum += p.a * p.b + (T)i;
	return sum;
}
static inline __attribute__((always_inline)) long leaf(long v)
{
	return twice(pair<long>{v, v + 1}, 3) ^ twice(pair<int>{(int)v, 2}, 5);
}
}
extern "C" {
int other(int n);
long volatile sink;
__attribute__((noinline)) long f(long n)
{
	if (n > 3)
		sink += deep::leaf(n);
	return other((int)n) + deep::leaf(sink);
}
void _start(void) { for (;;) sink += f(sink); }
}
END_CC
cat >b.c <<'END_C'
int other(int n);
static inline __attribute__((always_inline)) int square(int n) { return n * n; }
static int cold(int n) { return square(n) / 3; }
#line 70 "dir/generated.y"
int other(int n) { volatile char a[n + 1]; a[n] = 1; return a[n] + square(n) + cold(n - 1); }
END_C
compile="-O2 -fno-stack-protector"
link="-nostdlib -Wl,-z,noseparate-code -Wl,--build-id=sha1"

pad() # FILE...: one behind the other
{
	for file; do
		cat "$file"
		head -c $(((8 - $(stat -c %s "$file") % 8) % 8)) /dev/zero
	done
}
keep() # NAME FILE...
{
	name=$1
	shift
	pad "$@" | gzip -9n >"$out/$name.gz"
}
program() # OUTPUT COMPILER FLAG...
{
	to=$1 cc=$2
	shift 2
	"$cc" $compile -c "$@" a.cc -o a.o
	"$cc" $compile -c "$@" b.c -o b.o
	"$cc" $link "$@" a.o b.o -o "$to"
}
program dwarf5 gcc -gdwarf-5 -static
keep dwarf5 dwarf5
program dwarf4 gcc -gdwarf-4 -shared -fPIC
keep dwarf4-shared dwarf4
program dwarf3 gcc -gdwarf-3 -gstrict-dwarf -static -fno-asynchronous-unwind-tables
keep dwarf3-debug-frame dwarf3
program llvm clang -gdwarf-5 -static
keep dwarf5-clang llvm
program types gcc -gdwarf-4 -fdebug-types-section -gz -static
keep dwarf4-types-zlib types
program aranges clang -gdwarf-5 -gdwarf-aranges -ffunction-sections -static -gz
keep dwarf5-clang-zlib aranges

# Split: the program and one file of DWARF, as a unit's file and in a package of all.
program split clang -gdwarf-5 -gsplit-dwarf -static
keep split5 split a.dwo
llvm-dwp a.dwo b.dwo -o split.dwp
keep package5 split split.dwp
program split4 gcc -gdwarf-4 -gsplit-dwarf -static
keep split4 split4 a.dwo
dwp -e split4 -o split4.dwp
keep package4 split4 split4.dwp

# A separate debug file, by build id and by a link with a sum; one that dwz has shared out.
objcopy --only-keep-debug dwarf5 dwarf5.debug
objcopy --strip-all dwarf5 stripped
keep separate stripped dwarf5.debug
objcopy --remove-section .note.gnu.build-id --add-gnu-debuglink=dwarf5.debug stripped linked
keep separate-link linked dwarf5.debug
program dwz1 gcc -gdwarf-4 -static
program dwz2 gcc -gdwarf-4 -static -fno-inline-small-functions
dwz -m shared.debug -l 1 -L 1000000 dwz1 dwz2 2>/dev/null || dwz -m shared.debug dwz1 dwz2
keep dwz dwz1 shared.debug

# MiniDebugInfo: a symbol table in xz, with a small dictionary: a fuzzer takes a quarter of its time to clear a
# large one.
nm dwarf4 --defined-only --format=posix | cut -d' ' -f1 | sort >keep
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep --only-keep-debug dwarf4 mini
xz --check=none --lzma2=preset=9,dict=4KiB mini
objcopy --strip-all dwarf4 mini-stripped
objcopy --add-section .gnu_debugdata=mini.xz mini-stripped minidebug
keep minidebug minidebug

# Stubs, with relocations.
cat >plt.c <<'END_C'
#include <stdlib.h>
#include <string.h>
int f(int n);
int f(int n) { return atoi("3") + (int)strlen(getenv("x")) + n; }
END_C
gcc -O2 -shared -fPIC -nostdlib -Wl,-z,noseparate-code,-z,lazy -fcf-protection=full plt.c -lc -o plt
keep plt plt

# Go: its table, by hand. Two functions, one with an inlined call.
cat >go.s <<'END_S'
	.globl _start
	.text
text:
_start:
	.fill 0x40, 1, 0x90
second:
	.fill 0x40, 1, 0x90
text_end:
	.section .gopclntab, "a"
table:
	.long 0xfffffff1
	.byte 0, 0, 1, 8
	.quad 2, 1, text, names - table, units - table, files - table, programs - table, funcs - table
names:
	.asciz "main.main"
name2:	.asciz "main.(*T[...]).second"
name3:	.asciz "strings.inlined"
	.balign 4
units:	.long 0, file2 - files
files:	.asciz "/src/main.go"
file2:	.asciz "strings/strings.go"
programs:
	.byte 0
file_program:
	.byte 2, 0x20, 2, 0x20, 0
line_program:
	.byte 22, 8, 4, 8, 3, 0x10, 2, 0x20, 0
inline_program:
	.byte 0, 0x20, 2, 0x10, 1, 0x10, 0
	.balign 8
funcs:	.long 0, f1 - funcs, second - text, f2 - funcs, text_end - text
f1:	.long 0, 0, 0, 0, 0, file_program - programs, line_program - programs, 3, 0, 9
	.byte 0, 0, 0, 4
	.long 0, 0, inline_program - programs
	.long -1, -1, -1, 0
f2:	.long second - text, name2 - names, 0, 0, 0, file_program - programs, line_program - programs, 0, 0, 30
	.byte 0, 0, 0, 0
	.section .rodata, "a"
trees:	.byte 0, 0, 0, 0
	.long name3 - names, 0x10, 77
	.section .go.buildinfo, "aw"
	.asciz "\xff Go buildinf:"
	.section .noptrdata, "aw"
	.balign 8
	.quad table, names
	.fill 18, 8, 0
	.quad text, text_end, text, text_end
	.fill 16, 8, 0
	.quad trees
	.section .note.go.buildid, "a", @note
	.long 4, 8, 4
	.asciz "Go\0"
	.asciz "abc/def"
END_S
gcc -nostdlib -static -Wl,-z,noseparate-code -Wl,--build-id=none go.s -o go
objcopy --strip-all go go.stripped
keep go go.stripped
ls -l "$out"
