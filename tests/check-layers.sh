#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The rooms and what they may include: util at the bottom, unwind, symbolize, runtimes and proto beside
# each other above it, src on top, and inside src what the table below says. Fails on any other edge, on
# a cycle among headers, on a header that does not compile alone, and on a processor that is named
# outside of arch-*.c.
#
# Part of `make check`, which runs it in the build directory with srcdir set; works by hand as well.
set -u

build=$(pwd) # generated headers are here
top=${srcdir:-$(dirname "$0")/..}
[ -f "$top/configure.ac" ] || top=$(dirname "$0")/..
cd "$top" || exit 99
failed=0

# room: the rooms it may include besides itself, proto/*.pb-c.h counts as proto.
allowed()
{
	case $1 in
	util | alloc) echo "" ;;
	unwind | symbolize | proto | runtimes) echo "util" ;;
	src/process) echo "util" ;;
	src/opener) echo "util src/process" ;;
	src/judge) echo "util runtimes src/process" ;;
	src/sample | src/host | src/profile | src/config) echo "util" ;;
	src/perf-data) echo "util src/sample" ;;
	src/http) echo "util" ;;
	src/store) echo "util" ;;
	src/render) echo "util proto src/profile" ;;
	src/import) echo "util proto src/profile" ;;
	src/broker) echo "util src/process src/opener src/sample src/config src/profile" ;;
	src/profiler)
		echo util unwind symbolize runtimes proto src/process src/sample src/perf-data \
			src/host src/profile ;;
	src/symbolizer)
		echo util unwind symbolize runtimes src/process src/profile src/render src/import \
			src/screen ;;
	src/reader) echo "util runtimes src/process src/sample src/host" ;;
	src/exporter) echo "util proto src/process src/http src/store" ;;
	src/fetcher) echo "util symbolize src/process src/http" ;;
	src/metrics) echo "util src/process src/http src/profile src/render src/import" ;;
	src/screen) echo "util src/process" ;;
	src/cmd)
		echo util proto src/process src/opener src/broker src/config src/sample src/host \
			src/store src/render src/screen ;;
	*) return 1 ;;
	esac
}

# Sets found to the room of a file: a process for each of thousands of includes would take seconds.
room_of()
{
	found=${1%%/*}
	case $1 in
	src/*/*)
		found=${1#src/}
		found=src/${found%%/*} ;;
	esac
}

sources=$(find alloc util unwind symbolize runtimes proto src -name '*.[ch]' ! -name '*.pb-c.[ch]' | sort)
[ -n "$sources" ] || { echo "no sources below $(pwd)"; exit 99; }

n_edges=0
for file in $sources; do
	room_of "$file"
	room=$found
	if ! may=$(allowed "$room"); then
		echo "$file: the room $room is not in the table of $0"
		failed=1
		continue
	fi
	for included in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
		n_edges=$((n_edges + 1))
		case $included in
		config.h) continue ;;
		*/*) ;;
		*)
			echo "$file: \"$included\" is not written from the top"
			failed=1
			continue ;;
		esac
		room_of "$included"
		target=$found
		[ "$target" = "$room" ] && continue
		case $room:$included in
		src/broker:src/*/setup.h | src/cmd:src/*/setup.h) continue ;;
		esac
		case " $may " in
		*" $target "*) ;;
		*)
			echo "$file: $room may not include $target ($included)"
			failed=1 ;;
		esac
	done
done

# Cycles among headers: remove headers that include no header that is left, until nothing changes.
left=$(mktemp) || exit 99
trap 'rm -f "$left" "$left.new"' EXIT
for file in $(find alloc util unwind symbolize runtimes proto src -name '*.h' ! -name '*.pb-c.h'); do
	echo "$file $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file" | tr '\n' ' ')"
done >"$left"
while :; do
	awk 'NR == FNR { there[$1] = 1; next }
	     { for (i = 2; i <= NF; i++) if (there[$i]) { print; next } }' "$left" "$left" >"$left.new"
	cmp -s "$left" "$left.new" && break
	mv "$left.new" "$left"
done
if [ -s "$left" ]; then
	echo "headers that include each other:"
	cut -d' ' -f1 "$left"
	failed=1
fi

n_headers=0
for file in $(find alloc util unwind symbolize runtimes proto src -name '*.h' ! -name '*.pb-c.h' | sort); do
	n_headers=$((n_headers + 1))
	# shellcheck disable=SC2086
	if ! echo "#include \"$file\"" | ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -I. -I"$build" \
		${CPPFLAGS:-} -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only -x c - ; then
		echo "$file does not compile alone"
		failed=1
	fi
done

# What knows processors besides arch-*.c and arch.h, which may have them in comments only. Whoever adds
# a file says why.
knows_processors()
{
	# The same code for tests of the other processor's stacks, and the name that recordings have.
	echo unwind/unwind.h unwind/explain.c unwind/recorded.c
	# Its linkers mark data in code by symbols.
	echo symbolize/symbol-file.c
	# Names and numbers of system calls, and their registers.
	echo src/process/sandbox-calls.c src/process/sandbox-internal.h src/process/sandbox-trap.c
	# The first instructions of allocators, in files of each.
	echo src/opener/allocators.c
	# OpenTelemetry has names of its own for them.
	echo src/render/otlp-resource.c
}

known=" $(echo $(knows_processors)) "
# shellcheck disable=SC2086
awk '/^[[:space:]]*(\/\*|\*|#[[:space:]]|#$)/ { next }
	{ sub(/\/\*.*/, "") }
	tolower($0) ~ /x86[_-]64|amd64|aarch64|arm64/ && !(FILENAME in named) { named[FILENAME]; print FILENAME " " FNR ":" $0 }
	' $sources src/cmd/local.mk etc/*.sh >"$left"
for file in $sources src/cmd/local.mk etc/*.sh; do
	case $file in
	*/arch.[ch] | */arch-*.[ch]) continue ;;
	esac
	named=
	while read -r name line; do
		[ "$name" != "$file" ] || named=$line
	done <"$left"
	case "$known" in
	*" $file "*)
		[ -n "$named" ] || { echo "$file names no processor: take it off the list in $0"; failed=1; } ;;
	*)
		[ -z "$named" ] || { echo "$file names a processor, which is for arch-*.c to do: $named"; failed=1; } ;;
	esac
done

echo "$n_edges includes and $n_headers headers looked at"
exit $failed
