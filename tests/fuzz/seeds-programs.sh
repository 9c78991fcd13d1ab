#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# seeds-programs.sh DIRECTORY: seeds for the targets programs (DIRECTORY/corpus-programs) and threads
# (DIRECTORY/corpus-threads); made once and kept there. Needs gcc for x86_64.
set -eu

out=$(realpath "$1")
mkdir -p "$out/corpus-programs" "$out/corpus-threads"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
link="-nostdlib -Wl,-z,noseparate-code -Wl,--build-id=none"

keep() # CORPUS NAME FILE
{
	gzip -9n <"$3" >"$out/corpus-$1/$2.gz"
}

# ---- Files: a program with a variable of its threads, a marker, and what a program of Go has ----

cat >program.s <<'END_S'
	.globl _start, f
	.text
_start:
f:	nop
marker:	nop
	ret
	.type f, @function
	.size f, . - f
	.globl _ZN4deep4leafEv
	.type _ZN4deep4leafEv, @function
_ZN4deep4leafEv:
	ret
	.globl otel_thread_ctx_v1
	.section .tdata, "awT", @progbits
	.quad 1
	.type otel_thread_ctx_v1, @object
otel_thread_ctx_v1:
	.quad 0
	.size otel_thread_ctx_v1, 8
	.section .stapsdt.base, "aG", "progbits", .stapsdt.base, comdat
base:	.byte 0
	.data
counter: .quad 0
	.section .note.stapsdt, "", "note"
	.balign 4
	.long 8, 2f - 1f, 3
	.asciz "stapsdt"
1:	.quad marker, base, counter
	.asciz "unit"
	.asciz "step"
	.asciz "8@%rdi"
2:	.balign 4
	.section .go.buildinfo, "aw"
	.ascii "\xff Go buildinf:\010\002"
	.fill 16, 1, 0
	.byte 8
	.ascii "go1.22.1"
	.fill 64, 1, 0
END_S
cat >names.s <<'END_S'
	.section .gopclntab, "a"
	.asciz "\0runtime/pprof.runtime_setProfLabel"
END_S
# shellcheck disable=SC2086
gcc $link -static program.s names.s -o program
keep programs labelled program
# shellcheck disable=SC2086
gcc $link -static-pie program.s -o pie
keep programs pie pie

# A table of Go with the functions of its allocator.
cat >go.s <<'END_S'
	.globl _start
	.text
text:
_start:
	.fill 0x40, 1, 0x90
freed:	.fill 0x40, 1, 0x90
text_end:
	.section .gopclntab, "a"
table:
	.long 0xfffffff1
	.byte 0, 0, 1, 8
	.quad 2, 1, text, names - table, units - table, files - table, programs - table, funcs - table
names:	.asciz "runtime.mProf_Malloc"
name2:	.asciz "runtime.freeSpecial"
	.balign 4
units:	.long 0
files:	.asciz "/src/main.go"
programs:
	.byte 0, 2, 0x40, 0
	.balign 8
funcs:	.long 0, f1 - funcs, freed - text, f2 - funcs, text_end - text
f1:	.long 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0
f2:	.long freed - text, name2 - names, 0, 0, 0, 1, 1, 0, 0, 0, 0
END_S
# shellcheck disable=SC2086
gcc $link -static go.s program.s -Wl,-z,muldefs -o go
keep programs allocator go

# ---- Memory: libraries, whose files are as they are mapped; threads of musl ----

cat >variable.c <<'END_C'
__thread void *otel_thread_ctx_v1;
unsigned _thread_db_sizeof_pthread = 2304;
void *f(void) { return &otel_thread_ctx_v1; }
END_C
for hash in gnu sysv; do
	for dialect in gnu gnu2; do
		# shellcheck disable=SC2086
		gcc -O1 -shared -fPIC -mtls-dialect=$dialect $link -Wl,--hash-style=$hash variable.c -o library
		keep threads library-$hash-$dialect library
	done
done
# Two in a ring, with vectors of one block; the second is number 7.
cat >musl.s <<'END_S'
	.section .data
	.macro thread at, other, number
	.quad \at, vector, \other, \other, 0, 0, \number
	.endm
	.quad 0
	thread 0x10008, 0x10040, 3
	thread 0x10040, 0x10008, 7
	.set vector, 0x10078
	.quad 1, 0x10090, 0, 0, 0
END_S
gcc -c musl.s -o musl.o
objcopy -O binary -j .data musl.o musl
keep threads musl musl
ls -l "$out/corpus-programs" "$out/corpus-threads"
