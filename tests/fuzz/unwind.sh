#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# unwind.sh SRCDIR SECONDS [TARGET...]: fuzzes the unwinder with libFuzzer, ASan and UBSan, one target after the
# other (unwind: what is in an ELF file; recorded, recorded-aarch64: what is in a file of samples; walk: registers,
# stack and mappings). Needs clang and its compiler-rt.
#
# Inputs, logs and what was found (TARGET/crash-...) are kept in $FUZZ_DIR, else in ./fuzz-unwind. A finding
# becomes a file in tests/fuzz/corpus-unwind or tests/data/unwind, which make check reads.
set -eu

src=$(realpath "$1")
seconds=$2
shift 2
[ $# -gt 0 ] || set -- unwind recorded recorded-aarch64 walk
out=${FUZZ_DIR:-fuzz-unwind}
mkdir -p "$out"
out=$(realpath "$out")
clang=${FUZZ_CLANG:-clang}
if ! echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
	"$clang" -fsanitize=fuzzer,address,undefined -x c - -o "$out/probe" 2>"$out/probe.log"; then
	echo "SKIP: $clang cannot build with -fsanitize=fuzzer (apt-get install clang libclang-rt-dev)"
	exit 77
fi
rm -f "$out/probe"

build() # TARGET
{
	source=tests/fuzz/fuzz-$1.c other=aarch64 define=
	case $1 in
	*-aarch64) source=tests/fuzz/fuzz-${1%-aarch64}.c other=x86_64 define=-DUNWIND_FOR_AARCH64 ;;
	esac
	# No configure here: the sources need nothing of config.h.
	# shellcheck disable=SC2046,SC2086
	(cd "$src" && "$clang" -std=gnu11 -D_GNU_SOURCE $define -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I. "$source" tests/unit/unwind-elf.c \
		$(ls unwind/[a-z]*.c | grep -v "arch-$other") util/text.c util/hash.c util/go-module.c -ldw -lelf -lz -o "$out/$1/fuzz")
}

seeds_of_unwind()
{
	cp "$src"/tests/fuzz/corpus-unwind/* "$seeds"
	cat >"$out/seed.c" <<'END'
int f(int n, int *p);
int g(int n);
int g(int n) { volatile char a[n + 1]; a[n] = 1; return f(n, (int *)a) + f(n / 2, 0); }
int f(int n, int *p) { return n > 0 ? g(n - 1) * 3 + g(n - 2) : (int)(long)p; }
void _start(void);
void _start(void) { f(3, 0); for (;;) ; }
END
	for kind in "-shared -fPIC" "-static -fno-pie -no-pie" "-static -fno-asynchronous-unwind-tables -g" \
		"-shared -fPIC -fno-asynchronous-unwind-tables -g -gz" "-shared -fPIC -Wl,--no-eh-frame-hdr"; do
		# shellcheck disable=SC2086
		"$clang" -Os -nostdlib -Wl,-z,noseparate-code $kind "$out/seed.c" \
			-o "$seeds/elf$(echo "$kind" | tr -c 'a-z\n' _)" 2>/dev/null
	done
}

seeds_of_recorded() # [DIRECTORY]
{
	for f in "$src/tests/data/unwind${1:-}"/*.gz; do
		gzip -dc "$f" >"$seeds/$(basename "$f" .gz)"
	done
	# What is larger is mostly stack, and slow.
	find "$seeds" -size +128k -delete
}

seeds_of_walk()
{
	head -c 4096 /dev/zero >"$seeds/zeros"
}

for target; do
	seeds=$out/$target/seeds
	mkdir -p "$seeds" "$out/$target/corpus"
	build "$target"
	case $target in
	recorded-aarch64) seeds_of_recorded /aarch64 ;;
	*) "seeds_of_$target" ;;
	esac
	echo "$target: $seconds s"
	status=0
	"$out/$target/fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
		-artifact_prefix="$out/$target/" "$out/$target/corpus" "$seeds" >"$out/$target.log" 2>&1 || status=$?
	grep -h 'number_of_executed_units\|average_exec\|peak_rss\|^SUMMARY' "$out/$target.log" | sed "s/^/$target: /"
	if [ $status -ne 0 ]; then
		echo "$target: found something; see $out/$target.log"
		exit 1
	fi
done
