#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh SRCDIR SECONDS [TARGET...]: gives each fuzz target (all, or those named) so many seconds with
# libFuzzer, ASan and UBSan, one after the other. A line for each says what came of it, the last line counts;
# exit status 1 when something was found, 77 when clang cannot build them. make fuzz and make fuzz-long run this.
#
# A target is a program tests/fuzz/replay-TARGET of make check, built here without its own main(). It starts with
# what is kept for it (tests/fuzz/corpus-TARGET) and what earlier runs found interesting. Builds, inputs, logs
# and findings (TARGET/crash-...) are in $FUZZ_DIR, else in ./fuzz. A finding, once mended, becomes a kept file.
set -eu

src=$(realpath "$1")
seconds=$2
shift 2
out=${FUZZ_DIR:-fuzz}
mkdir -p "$out/build"
out=$(realpath "$out")
clang=${FUZZ_CLANG:-clang}

if ! echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
	$clang -fsanitize=fuzzer,address,undefined -x c - -o "$out/probe" 2>"$out/probe.log"; then
	echo "make fuzz needs clang with libFuzzer, and '$clang' cannot build with it (see $out/probe.log);" \
		"on Debian: apt-get install clang libclang-rt-14-dev; or FUZZ_CLANG=..."
	exit 77
fi
rm -f "$out/probe"

# make that builds the libraries with coverage, and the programs with libFuzzer's main(). What the program
# reads is built by the same rules as for make check.
fuzz_make()
{
	make -C "$out/build" CFLAGS="-g -O1 -fsanitize=fuzzer-no-link" CPPFLAGS=-UFUZZ_REPLAY \
		LDFLAGS=-fsanitize=fuzzer "$@"
}

if [ ! -f "$out/build/Makefile" ] &&
	! (cd "$out/build" && "$src/configure" CC="$clang" --enable-sanitizers >"$out/configure.log" 2>&1); then
	echo "make fuzz cannot configure its build (see $out/configure.log)"
	exit 77
fi
all=$(make -s -C "$out/build" -f Makefile -f "$src/tests/links.mk" links | sed -n 's|^tests/fuzz/replay-\([^ ]*\).*|\1|p')
targets=${*:-$all}
for target in $targets; do
	case " $(echo $all) " in
	*" $target "*) ;;
	*)
		echo "there is no target '$target'; there are:" $all
		exit 2 ;;
	esac
done
# shellcheck disable=SC2046
if ! fuzz_make fuzz-programs FUZZ_PROGRAMS="$(echo $(printf 'tests/fuzz/replay-%s\n' $targets))" >"$out/build.log" 2>&1; then
	tail -n 20 "$out/build.log"
	echo "make fuzz cannot build the targets (see $out/build.log)"
	exit 1
fi

# The directories of what is kept for a target, its own first.
kept() # TARGET
{
	case $1 in
	unwind | programs) echo "tests/fuzz/corpus-$1" tests/fuzz/corpus-symbols ;;
	recorded) echo tests/data/unwind ;;
	recorded-aarch64) echo tests/data/unwind/aarch64 ;;
	hotspot) echo tests/data/runtimes ;;
	v8) echo tests/data/v8 ;;
	cpython) echo tests/data/cpython ;;
	interp) echo tests/data/interp ;;
	walk) ;;
	*) echo "tests/fuzz/corpus-$1" ;;
	esac
}

# Inputs as a target takes them: what is kept compressed is not, here.
seed() # TARGET
{
	rm -rf "$out/$1/seeds"
	mkdir -p "$out/$1/seeds" "$out/$1/corpus"
	head -c 4096 /dev/zero >"$out/$1/seeds/zeros"
	for directory in $(kept "$1"); do
		for file in "$src/$directory"/*; do
			case $file in
			*.gz) gzip -dc "$file" >"$out/$1/seeds/$(basename "$file" .gz)" ;;
			*) [ -d "$file" ] || cp "$file" "$out/$1/seeds" ;;
			esac
		done
	done
	# A larger one is mostly stack, and slow; of a process with Java or JavaScript there are no smaller ones.
	largest=128
	case $1 in
	hotspot | v8) largest=1024 ;;
	esac
	find "$out/$1/seeds" -size +${largest}k -delete
}

n_targets=0 n_findings=0
for target in $targets; do
	seed "$target"
	status=0
	log=$out/$target.log
	(cd "$out/$target" && "$out/build/tests/fuzz/replay-$target" -seed=1 -max_total_time="$seconds" \
		-rss_limit_mb=2048 -timeout=20 -print_final_stats=1 -artifact_prefix="$out/$target/" \
		"$out/$target/corpus" "$out/$target/seeds") >"$log" 2>&1 || status=$?
	n_targets=$((n_targets + 1))
	runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	if [ $status -eq 0 ]; then
		echo "$target: ${runs:-0} executions, ${edges:-0} edges: ok"
		continue
	fi
	n_findings=$((n_findings + 1))
	found=$(sed -n 's/^SUMMARY: //p' "$log" | head -n 1)
	echo "$target: ${runs:-0} executions, ${edges:-0} edges: FOUND ${found:-exit status $status} (see $log)"
done
echo "$n_targets targets, $n_findings findings"
[ "$n_findings" -eq 0 ]
