#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All tests: sh tests/run.sh [NAME...]
#
# Installs what is missing (Debian, through apt), builds three times out of the tree (gcc, clang,
# gcc with sanitizers; warnings are errors), runs the unit tests of gcc's builds and then the system
# tests one after the other. One line per test; the last line counts them; exit status 1 when one failed.
# With names, only these system tests run, after the first build.
#
# A system test that cannot run here is a skip with its reason. With CI=true a skip is a failure.
# Builds and logs: build-tests/ (or $TEST_BUILD).
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
out=${TEST_BUILD:-$top/build-tests}
logs=$out/logs
passed=0 failed=0 skipped=0
running=

# name:seconds it may take; in the order in which a failure tells most.
SYSTEM_TESTS="checker:60 hygiene:60 manual:120 config:120 options:180 completion:60 outputs:180 check:60 captures:180
	top:90 ctl:60 stack_size:150 lines:90 demangle:60 jitdump:90 debugfiles:60 debuginfod:90 report:120 values:60 debug:90 workloads:600
	perfdata:120 unprivileged:90 oldkernel:60
	delivery:240 badserver:120 protocols:120 route:60 names:300
	metrics:150 spool:180 outage:300 store:150 supervision:180 notify:60 noopen:180 collector:900 grpc:180 containers:180 cgroups:90 churn:240 bombs:240 install:600 bundle:240"
# And once more where memory errors end the program: everything a capture does, the daemon's ways,
# and hostile files.
SANITIZED_TESTS="options:300 delivery:300 bombs:300"

say() { printf '%s\n' "$*"; }

result() # pass|fail|skip SECONDS NAME [REASON]
{
	case $1 in
	skip)
		if [ "${CI:-}" = true ]; then
			result fail "$2" "$3" "skipped, which CI does not allow: ${4:-}"
			return
		fi
		skipped=$((skipped + 1)) ;;
	pass) passed=$((passed + 1)) ;;
	fail) failed=$((failed + 1)) ;;
	esac
	printf '%s %6ss  %s%s\n' "$(echo "$1" | tr a-z A-Z)" "$2" "$3" "${4:+  ($4)}"
}

finish()
{
	say "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit $?
}

# Ends what is running, by its process group, before leaving.
interrupted()
{
	[ -n "$running" ] && kill -TERM "-$running" 2>/dev/null && sleep 2 && kill -KILL "-$running" 2>/dev/null
	result fail 0 "interrupted"
	finish
}
trap interrupted INT TERM HUP

# run SECONDS LOG COMMAND...: a command in a session of its own; what is left of it afterwards is ended.
run()
{
	limit=$1 log=$2
	shift 2
	setsid timeout -k 20 "$limit" "$@" >"$log" 2>&1 </dev/null &
	running=$!
	wait "$running"
	status=$?
	kill -KILL "-$running" 2>/dev/null
	running=
	return $status
}

now() { date +%s; }

# ---- What the tests need ----

# What has to be there, as command:package, or =package for what brings no command.
NEEDED="gcc:gcc groff:groff-base capsh:libcap2-bin g++:g++ clang:clang make:make autoreconf:autoconf automake:automake pkg-config:pkg-config
	protoc-c:protobuf-c-compiler protoc:protobuf-compiler python3:python3 strace:strace readelf:binutils perf:linux-perf
	setsid:util-linux busybox:busybox-static podman:podman runc:runc xz:xz-utils git:git
	rustc:rustc go:golang-go node:nodejs npm:npm chromium:chromium zsh:zsh tmux:tmux script:bsdutils pdftotext:poppler-utils systemd-analyze:systemd
	=libdw-dev =libelf-dev =libprotobuf-c-dev =libcurl4-openssl-dev =libinih-dev =zlib1g-dev
	openssl:openssl =python3-h2 =python3-prometheus-client
	llvm-symbolizer-19:llvm-19 dwz:dwz debuginfod:debuginfod
	=liblzma-dev =libzstd-dev =libdeflate-dev =nettle-dev =libiberty-dev =libncurses-dev =libmicrohttpd-dev =libc6-dev"

install_missing()
{
	missing=
	for item in $NEEDED; do
		case $item in
		=*) dpkg -s "${item#=}" >/dev/null 2>&1 || missing="$missing ${item#=}" ;;
		*)
			PATH=$PATH:/usr/local/go/bin:$HOME/.cargo/bin:/usr/sbin:/sbin command -v "${item%%:*}" >/dev/null 2>&1 ||
				missing="$missing ${item#*:}" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	if ! command -v apt-get >/dev/null 2>&1; then
		say "missing, and there is no apt-get to install it:$missing"
		return 1
	fi
	as_root=
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null 2>&1 || {
			say "missing (as root: apt-get install$missing)"
			return 1
		}
		as_root=sudo
	fi
	say "installing with apt-get:$missing"
	log=$logs/apt.log
	{
		$as_root apt-get update
		# shellcheck disable=SC2086
		DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends $missing
	} >"$log" 2>&1 || {
		tail -n 5 "$log"
		say "apt-get failed; all of it is in $log"
		return 1
	}
}

# ---- Builds and their unit tests ----

# build NAME SECONDS CONFIGURE-OPTIONS...: configures, and compiles in $out/NAME; with $unit the unit tests too.
build()
{
	name=$1 limit=$2
	shift 2
	begin=$(now)
	mkdir -p "$out/$name"
	if run "$limit" "$logs/build-$name.log" sh -c 'cd "$1" && top=$2 && shift 2 &&
		{ [ config.status -nt "$top/configure" ] || "$top/configure" -C "$@"; } &&
		make -j"$(nproc)" && { [ -z "$unit" ] || make -j"$(nproc)" check TESTS=; }' \
		sh "$out/$name" "$top" --enable-werror "$@"; then
		result pass $(($(now) - begin)) "build with $name"
		return 0
	fi
	result fail $(($(now) - begin)) "build with $name" "see $logs/build-$name.log"
	tail -n 15 "$logs/build-$name.log"
	return 1
}

# check NAME SECONDS: make check; each test program counts. Some of them wait more than they work.
check()
{
	begin=$(now)
	run "$2" "$logs/check-$1.log" make -C "$out/$1" -j$(($(nproc) + 1)) -k check
	status=$?
	n=0
	while read -r verdict test; do
		n=$((n + 1))
		case $verdict in
		PASS:) result pass - "unit ($1) $test" ;;
		SKIP:) result skip - "unit ($1) $test" "$(grep -h SKIP "$out/$1/$test.log" 2>/dev/null | head -n 1)" ;;
		*)
			result fail - "unit ($1) $test" "${verdict%:}"
			tail -n 10 "$out/$1/$test.log" ;;
		esac
	done <<-END
		$(grep -hE '^(PASS|FAIL|SKIP|XPASS|XFAIL|ERROR): ' "$logs/check-$1.log")
	END
	if [ "$status" -ne 0 ] && ! grep -qE '^(FAIL|ERROR): ' "$logs/check-$1.log"; then
		result fail $(($(now) - begin)) "make check ($1)" "see $logs/check-$1.log"
		tail -n 15 "$logs/check-$1.log"
	fi
}

# ---- System tests ----

system_test() # NAME SECONDS BUILD
{
	begin=$(now)
	PERFWALK=$out/$3/perfwalk
	export PERFWALK
	test=$1
	[ "$3" = gcc ] || test="$1 ($3)"
	log=$logs/system-$1-$3.log
	run "$2" "$log" python3 "$top/tests/system/$1.py"
	status=$?
	seconds=$(($(now) - begin))
	case $status in
	0) result pass $seconds "system $test" ;;
	77) result skip $seconds "system $test" "$(sed -n 's/^SKIP: //p' "$log" | tail -n 1)" ;;
	*)
		[ $status -ne 124 ] && [ $status -ne 137 ] || say "not done within $2 s:"
		result fail $seconds "system $test" "see $log"
		tail -n 15 "$log" ;;
	esac
}

for name in "$@"; do
	known=$(for item in $SYSTEM_TESTS; do echo "${item%:*}"; done)
	echo "$known" | grep -qxFe "$name" || {
		say "$name: no such system test; there are:" $known >&2
		exit 2
	}
done
mkdir -p "$logs" || exit 1
PATH=$PATH:/usr/local/go/bin:$HOME/.cargo/bin:/usr/sbin:/sbin
export PATH

install_missing || result fail 0 "install what is missing"
begin=$(now)
if [ "$top/configure" -nt "$top/configure.ac" ] && [ "$top/configure" -nt "$top/Makefile.am" ]; then
	:
elif run 300 "$logs/autoreconf.log" autoreconf -fi "$top"; then
	result pass $(($(now) - begin)) "autoreconf"
else
	result fail $(($(now) - begin)) "autoreconf" "see $logs/autoreconf.log"
	tail -n 15 "$logs/autoreconf.log"
	finish
fi

unit=
[ $# -gt 0 ] || unit=yes
export unit
build gcc 600 CC=gcc || finish
if [ $# -eq 0 ]; then
	check gcc 300
	build clang 600 CC=clang # for its warnings
	build sanitizers 600 CC=gcc --enable-sanitizers && check sanitizers 600
fi

for item in $SYSTEM_TESTS; do
	name=${item%:*}
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	fi
	system_test "$name" "${item#*:}" gcc
done
if [ $# -eq 0 ] && [ -x "$out/sanitizers/perfwalk" ]; then
	for item in $SANITIZED_TESTS; do
		system_test "${item%:*}" "${item#*:}" sanitizers
	done
fi
finish
