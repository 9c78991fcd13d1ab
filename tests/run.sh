#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All tests: sh tests/run.sh [NAME... | --system | --since COMMIT]
#
# Installs what is missing (Debian, through apt), builds out of the tree, fetches what the system tests need of
# others, once, and runs them: most side by side, the others by two. They wait more than they work, so beside the
# first run gcc's unit tests, the build with sanitizers, and the sanitizers' unit tests. Warnings of gcc, and of clang
# in the test install, are errors. One line when something begins, one per test, with its seconds and those of CPU
# time; then those that took most of it; the last line counts them; exit status 1 when one failed. What failed is
# listed again above it, with the ends of the logs.
# A test that fails is run once more, alone: a neighbour may have taken the machine from it. When it passes then
# it counts as passed, and is listed at the end, for it is to be mended.
# With names, only these system tests run, after the first build; with --system, all of them. With --since, the
# unit and system tests that what changed since the commit can break (tests/select.sh), after the first build;
# or all.
#
# A system test that cannot run here is a skip with its reason. With CI=true a skip is a failure.
# Builds and logs: build-tests/ (or $TEST_BUILD). What is fetched, or compiled for tests: ~/.cache/perfwalk-tests. Each
# system test has a directory of its own for temporary files, which others may enter (a clone may be where they may
# not) and whose name is short (names of sockets are): in /tmp (or $TMPDIR). It is removed.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
out=${TEST_BUILD:-$top/build-tests}
logs=$out/logs
failures=$logs/failures # a line for each, once more for the end: NAME<tab>LOG
unsteady=$logs/unsteady # those that passed at the second time, in the same form
again=$logs/again	# of those that failed beside others: what runs each once more
results=$logs/results	# the line of each
scratch=${TMPDIR:-/tmp}/perfwalk-tests.$$
running= builds= tests=
among_others= second=
step=0 steps=0
cpu=0 begun_cpu=0

# The system tests, a row for each: its name; the seconds it may take (twice as many before it is ended, for a busy
# host); how it runs; and, if it runs once more where memory errors end the program, the seconds it may take there:
# these cover everything a capture does, the daemon's ways, and hostile files.
# "beside": several at once, in this order, which has the longest first. Such a test knows its own processes from
# others' and waits for what these do. "by-two": after them, with one other at most, for its clocks do not bear
# more, or it looks at the whole host.
SYSTEM_TESTS="
	limit         300  beside
	workloads     600  beside
	names         300  beside
	oracle        180  beside
	install       600  beside
	spool         180  beside
	packages      300  beside
	losses        240  beside
	metrics       150  beside
	delivery      240  beside  300
	bombs         240  beside  300
	outage        300  beside
	debuginfod     90  beside
	looks          90  beside
	attributes    240  beside
	spans         180  beside
	traces        180  beside
	goroutines    180  beside
	hostile_spans 120  beside
	tracers       300  beside
	captures      180  beside
	jitdump        90  beside
	java          180  beside
	java_truth    180  beside
	cpython       240  beside
	python        180  beside
	php           120  beside
	ruby          120  beside
	fork_servers  120  beside
	unanswered    120  beside
	node          240  beside
	supervision   180  beside
	badserver     120  beside
	confidence     90  beside
	containers    180  beside
	manual        120  beside
	events         90  beside
	unit          150  beside
	sandbox       120  beside
	bundle        240  beside
	image         240  beside
	kubernetes    240  beside
	fleet         180  beside
	values         60  beside
	hostile       400  beside
	grpc          180  beside
	lines          90  beside
	ctl            90  beside
	store         150  beside
	protocols     120  beside
	interpreters  120  beside
	instants       60  beside
	hostile_interpreters 120 beside
	interpreter_lives 120 beside
	report        120  beside
	native_frames  60  beside
	notify         60  beside
	route          60  beside
	noopen        180  beside
	cgroups        90  beside
	debugfiles     60  beside
	collector     900  beside
	copies         60  beside
	demangle       60  beside
	hardening      60  beside
	policies       60  beside
	offcpu         90  beside
	locks          60  beside
	wall           60  beside
	runtime_waits  60  beside
	hangs          90  beside
	uprobes        90  beside
	allocations    90  beside
	allocators     90  beside
	since          60  beside
	hygiene        60  beside
	completion     60  beside
	memory         60  beside
	debug          90  beside
	config        120  beside
	checker        60  beside
	check          60  beside
	unprivileged   90  beside
	churn         240  by-two
	perfdata      120  by-two
	top            90  by-two
	stack_size    150  by-two
	preloaded     120  by-two
	options       180  by-two  300
	outputs       300  by-two
	oddhosts       60  by-two
	oldkernel      60  by-two
"
# What tests need that no package has, name:seconds:script:tests. It is fetched and built before them, once.
PARTS="collector:1800:build-collector.sh:outputs,protocols,collector,grpc,image,kubernetes,fleet
	viewers:600:build-viewers.sh:outputs promtool:120:fetch-promtool.sh:metrics,fleet
	deploy:1800:fetch-deploy.sh:kubernetes chdb:900:fetch-chdb.sh:fleet selinux:120:fetch-selinux.sh:policies
	alpine:300:fetch-alpine.sh:bundle"

say() { printf '%s\n' "$*"; }

# begin TEXT: says what begins now, and how far the run is.
begin()
{
	step=$((step + 1))
	[ "$steps" -eq 0 ] || printf '[%*d/%d] %s\n' ${#steps} $step "$steps" "$1"
	start_clocks
}

start_clocks()
{
	begun=$(now)
	read_cpu
	begun_cpu=$cpu
}

# Sets cpu to the CPU seconds of all that this shell has run and waited for. (In a substitution, times would tell
# of another shell.)
read_cpu()
{
	times >"$scratch/times.$$"
	cpu=$(tr ms '  ' <"$scratch/times.$$" | awk 'NR == 2 { printf "%.0f", 60 * ($1 + $3) + $2 + $4 }')
}

# line VERDICT SECONDS NAME [REASON [LOG]]: for the results and for the reader, in one piece, as several write. Beside
# the seconds go those of CPU time since start_clocks.
line()
{
	took=-
	if [ "$2" != - ]; then
		read_cpu
		took=$((cpu - begun_cpu))
	fi
	text=$(printf '%-4s %6ss %5ss  %s' "$1" "$2" "$took" "$3${4:+  ($4)}")
	say "$text" >>"$results"
	say "$text${5:+
$(log_end 15 "$5")}"
}

result() # pass|fail|skip SECONDS NAME [REASON [LOG]]
{
	if [ "$1" = skip ] && [ "${CI:-}" = true ]; then
		result fail "$2" "$3" "skipped, which CI does not allow: ${4:-}"
		return
	fi
	[ "$1" != fail ] || printf '%s\t%s\n' "$3${4:+  ($4)}" "${5:-}" >>"$failures"
	verdict=$(echo "$1" | tr a-z A-Z)
	shift
	line "$verdict" "$@"
}

count() { grep -c "^$1 " "$results"; }

# The last lines of a log, set in, so that none is taken for a result.
log_end() # LINES LOG
{
	tail -n "$1" "$2" 2>/dev/null | cut -c 1-200 | sed 's/^/    /'
}

# What failed once more, in 60 lines or so: of a long output one sees perhaps the end alone.
list_failures()
{
	[ -s "$failures" ] || return 0
	n=$(wc -l <"$failures")
	lines=$((60 / n - 1))
	say "Failed:"
	head -n 60 "$failures" | while IFS='	' read -r name log; do
		say "  $name"
		[ -z "$log" ] || [ $lines -le 0 ] || log_end $((lines < 10 ? lines : 10)) "$log"
	done
	[ "$n" -le 60 ] || say "  and $((n - 60)) more"
}

# As most wait for what others do, it is the sum of CPU time that counts.
list_dearest()
{
	read_cpu
	say "In $(($(now) - begun_all)) s they took $cpu s of CPU time; most of it, beside the seconds from begin to end:"
	sed -n 's/^[A-Z]*  *\([0-9][0-9]*s  *[0-9][0-9]*s  .*\)/\1/p' "$results" | sed 's/  (.*//' | sort -k2rn | head -n 10 |
		sed 's/^/  /'
}

finish()
{
	if [ -s "$unsteady" ]; then
		say "Failed at first, and passed alone:"
		head -n 20 "$unsteady" | while IFS='	' read -r name log; do
			say "  $name  (see $log)"
			log_end 5 "$log"
		done
	fi
	[ "$(count PASS)" -le 10 ] || list_dearest
	list_failures
	say "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
	[ "$(count FAIL)" -eq 0 ] && [ "$(count PASS)" -gt 0 ]
	exit $?
}

# Ends what is running, by its process groups, before leaving.
interrupted()
{
	for signal in TERM KILL; do
		for group in $running $builds; do
			kill -"$signal" "-$group" 2>/dev/null
		done
		[ $signal = KILL ] || [ -z "$running$builds" ] || sleep 2
	done
	result fail 0 "interrupted"
	finish
}
trap interrupted INT TERM HUP
trap 'rm -rf "$scratch"' EXIT

# What runs that were killed have left.
remove_left_over()
{
	cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests
	for directory in "${TMPDIR:-/tmp}"/perfwalk-tests.* "$cache"/*/build.* "$cache"/*/unpacked.* \
		"$cache"/compiled-*/*.*; do
		[ ! -d "$directory" ] || [ -d "/proc/${directory##*.}" ] || rm -rf "$directory"
	done
}

# run SECONDS LOG COMMAND...: a command in a session of its own; what is left of it afterwards is ended.
run()
{
	limit=$1 log=$2
	shift 2
	setsid timeout -k 20 "$limit" "$@" >"$log" 2>&1 </dev/null &
	running=$!
	wait "$running"
	status=$?
	end_session "$running"
	running=
	return $status
}

# Ends what has the session still, whatever its process group.
end_session() # ID
{
	kill -KILL "-$1" 2>/dev/null
	left=$(sed -n "s/^\([0-9]*\) (.*) . [0-9]* [0-9]* $1 .*/\1/p" /proc/[0-9]*/stat 2>/dev/null)
	# shellcheck disable=SC2086
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
}

# How a command ended that had so much time.
ending() # STATUS SECONDS LIMIT
{
	if [ "$1" -eq 124 ] || { [ "$1" -eq 137 ] && [ "$2" -ge "$3" ]; }; then
		echo "not done within $3 s"
	elif [ "$1" -gt 128 ]; then
		echo "killed by signal $(($1 - 128))"
	else
		echo "exit status $1"
	fi
}

now() { date +%s; }

# ---- What the tests need ----

# What has to be there, as command:package (a|b:package where either command will do), or =package for
# what brings no command.
NEEDED="gcc:gcc groff:groff-base capsh:libcap2-bin g++:g++ clang:clang make:make autoreconf:autoconf automake:automake pkg-config:pkg-config
	protoc-c:protobuf-c-compiler protoc:protobuf-compiler python3:python3 strace:strace readelf:binutils perf:linux-perf
	setsid:util-linux busybox:busybox-static podman:podman runc:runc lxc-execute:lxc systemd-nspawn:systemd-container dbus-daemon:dbus catatonit:catatonit apparmor_parser:apparmor checkmodule:checkpolicy semodule_link:semodule-utils sesearch:setools bunzip2:bzip2 xz:xz-utils debugfs:e2fsprogs git:git
	rustc:rustc go:golang-go node:nodejs npm:npm javac:default-jdk-headless mvn:maven chromium|chromium-headless-shell:chromium-headless-shell zsh:zsh tmux:tmux script:bsdutils pdftotext:poppler-utils systemd-analyze:systemd
	=ca-certificates =libdw-dev =libelf-dev =libprotobuf-c-dev =libcurl4-openssl-dev =libinih-dev =zlib1g-dev
	openssl:openssl rpmbuild:rpm =python3-h2 =python3-prometheus-client =python3-yaml =python3-venv
	php:php-cli php-fpm7.4|php-fpm8.2|php-fpm8.4:php-fpm ruby:ruby llvm-symbolizer-19:llvm-19 dwz:dwz debuginfod:debuginfod qemu-$(uname -m):qemu-user
	=liblzma-dev =libzstd-dev =libdeflate-dev =nettle-dev musl-gcc:musl-tools =libiberty-dev =libncurses-dev =libmicrohttpd-dev =libc6-dev"

has_one_of() # COMMANDS
{
	for command in $1; do
		command -v "$command" >/dev/null 2>&1 && return 0
	done
	return 1
}

install_missing()
{
	missing=
	for item in $NEEDED; do
		case $item in
		=*) dpkg -s "${item#=}" >/dev/null 2>&1 || missing="$missing ${item#=}" ;;
		*) has_one_of "$(echo "${item%%:*}" | tr '|' ' ')" || missing="$missing ${item#*:}" ;;
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
	say "Missing packages:$missing"
	log=$logs/apt.log
	{
		$as_root apt-get update &&
			# shellcheck disable=SC2086
			say "With what they need: $($as_root apt-get install -s --no-install-recommends $missing | grep -c ^Inst) packages, $(
				$as_root apt-get install -qq -y --print-uris --no-install-recommends $missing |
					awk '{ n += $3 } END { printf "%.0f", n / 1e6 }') MB to fetch" >&3 &&
			$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
	} 3>&1 >"$log" 2>&1 || {
		tail -n 5 "$log"
		say "apt-get failed; all of it is in $log"
		return 1
	}
}

# ---- Builds and their unit tests ----

# What unit tests compile, which takes most of their time, is there for the next build's and for the next run's, as long
# as the same compilers make it. What was not used for a month goes.
keep_compiled()
{
	versions=$({ for command in gcc g++ clang ld dwz; do $command --version; done; go version; } 2>&1 | cksum)
	cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests
	TEST_COMPILED=$cache/compiled-${versions% *}
	export TEST_COMPILED
	for other in "$cache"/compiled-*; do
		[ "$other" = "$TEST_COMPILED" ] || rm -rf "$other"
	done
	mkdir -p "$TEST_COMPILED" && find "$TEST_COMPILED" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf '{}' +
}

# build NAME SECONDS CONFIGURE-OPTIONS...: configures, and compiles in $out/NAME; where $unit has CFLAGS for them, the
# unit tests too, which need not be as fast as what they test.
build()
{
	name=$1 limit=$2
	shift 2
	begin "build with $name"
	mkdir -p "$out/$name"
	if run "$limit" "$logs/build-$name.log" sh -c 'cd "$1" && top=$2 && shift 2 &&
		{ [ config.status -nt "$top/configure" ] || "$top/configure" -C "$@" ||
			{ rm -f config.cache && "$top/configure" -C "$@"; }; } && # the cache of other options
		make -j"$(nproc)" && { [ -z "$unit" ] ||
			{ make -j"$(nproc)" check-libraries && make -j"$(nproc)" check TESTS= CFLAGS="$unit"; }; }' \
		sh "$out/$name" "$top" --enable-werror "$@"; then
		result pass $(($(now) - begun)) "build with $name"
		return 0
	fi
	result fail $(($(now) - begun)) "build with $name" "see $logs/build-$name.log" "$logs/build-$name.log"
	return 1
}

# check NAME SECONDS [PROGRAM...]: make check, of these programs alone, or of $tests; each of them counts. Some wait
# more than they work. Each has a limit of its own, and a process group: one that hangs, or that ends its whole group, is
# one failure with a log.
check()
{
	begin "unit tests ($1)"
	name=$1 limit=$2 log=$logs/check-$1.log
	shift 2
	[ $# -eq 0 ] || log=$logs/check-$name-some.log
	touch "$scratch/check.begun"
	set -- LOG_COMPILER="timeout -k 5 $((limit * 2 / 3))" "$@"
	if [ $# -eq 1 ]; then
		run "$limit" "$log" env TMPDIR="$scratch" make -C "$out/$name" -j$(($(nproc) + 1)) -k check "$1" \
			${tests:+"TESTS=$tests"}
	else
		run "$limit" "$log" env TMPDIR="$scratch" sh -c 'cd "$1" && jobs=$2 compiler=$3 && shift 3 &&
			make -j"$jobs" "$@" && make -j"$jobs" -k check-TESTS "$compiler" TESTS="$*"' \
			sh "$out/$name" $(($(nproc) + 1)) "$@"
	fi
	status=$?
	seconds=$(($(now) - begun))
	while read -r verdict test; do
		case $verdict in
		PASS:) result pass - "unit ($name) $test" ;;
		SKIP:) result skip - "unit ($name) $test" "$(grep -h SKIP "$out/$name/$test.log" 2>/dev/null | head -n 1)" ;;
		*)
			if [ -n "$among_others" ]; then
				once_more "unit ($name) $test" - check_again "$name" "$limit" "$test" "${verdict%:}"
			else
				check_again "$name" "$limit" "$test" "${verdict%:}"
			fi ;;
		esac
	done <<-END
		$(grep -hE '^(PASS|FAIL|SKIP|XPASS|XFAIL|ERROR): ' "$log")
	END
	line ALL $seconds "unit tests ($name)"
	if [ "$status" -ne 0 ] && ! grep -qE '^(FAIL|ERROR): ' "$log"; then
		result fail $seconds "make check ($name)" "$(ending $status $seconds "$limit"); see $log" "$log"
		unended "$name"
	fi
}

# What failed beside others, for the time when none is there: once_more NAME SECONDS FUNCTION ARGUMENT...
once_more()
{
	line AGAIN "$2" "$1" "failed beside others"
	shift 2
	echo "$*" >>"$again"
}

# A unit test that failed, alone.
check_again() # NAME SECONDS TEST VERDICT
{
	first=$logs/check-$1-$(basename "$3").first.log of_all=$log
	cp "$out/$1/$3.log" "$first" 2>/dev/null
	if run "$2" "$logs/check-again.log" env TMPDIR="$scratch" make -C "$out/$1" check-TESTS TESTS="$3" \
		LOG_COMPILER="timeout -k 5 $(($2 * 2 / 3))"; then
		printf '%s\t%s\n' "unit ($1) $3" "$first" >>"$unsteady"
		result pass - "unit ($1) $3" "failed at first"
	else
		result fail - "unit ($1) $3" "$4" "$out/$1/$3.log"
	fi
	limit=$2 log=$of_all
}

# The unit tests that had begun, and have not ended.
unended() # NAME
{
	find "$out/$1/tests" -name '*.log' -newer "$scratch/check.begun" | sort | while read -r log; do
		[ -e "${log%.log}.trs" ] || echo "$log"
	done >"$scratch/unended"
	while read -r log; do
		test=${log#"$out/$1/"}
		result fail - "unit ($1) ${test%.log}" "was running" "$log"
	done <"$scratch/unended"
}

# ---- System tests ----

test_names() { echo "$SYSTEM_TESTS" | awk 'NF { print $1 }'; }

# rows HOW BUILD [NAME...]: the tests that run so with this build, each as NAME:SECONDS:BUILD; of these names alone.
rows()
{
	how=$1 with=$2
	shift 2
	echo "$SYSTEM_TESTS" | awk -v how="$how" -v with="$with" -v names=" $* " '
		{ seconds = with == "gcc" ? $2 : $4 }
		NF && $3 == how && seconds && (names == "  " || index(names, " " $1 " ")) { print $1 ":" seconds ":" with }'
}

# Is the system test among those that were asked for?
is_chosen() # NAME NAMES-ASKED-FOR...
{
	name=$1
	shift
	[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) return 1 ;; esac
}

# The parts that the chosen tests need, as in PARTS.
parts() # NAMES-ASKED-FOR...
{
	for part in $PARTS; do
		for user in $(echo "${part##*:}" | tr , ' '); do
			is_chosen "$user" "$@" && echo "$part" && break
		done
	done
}

fetch() # NAME:SECONDS:SCRIPT:TESTS
{
	name=${1%%:*} rest=${1#*:}
	limit=${rest%%:*} rest=${rest#*:}
	log=$logs/fetch-$name.log
	begin "fetch or build $name, unless it is there"
	run "$limit" "$log" sh "$top/tests/system/${rest%%:*}"
	case $? in
	0) result pass $(($(now) - begun)) "$name" ;;
	77) result skip $(($(now) - begun)) "$name" "$(tail -n 1 "$log")" ;;
	*) result fail $(($(now) - begun)) "$name" "see $log" "$log" ;;
	esac
}

# Programs with compiled code have their maps in /tmp, wherever temporary files are. Not while other tests run: they
# read those of programs that have ended.
remove_perf_maps() # newer than FILE
{
	for map in $(find /tmp -maxdepth 1 -name 'perf-*.map' -newer "$1"); do
		pid=${map#/tmp/perf-}
		[ -d "/proc/${pid%.map}" ] || rm -f "$map"
	done
}

shown() # NAME BUILD
{
	[ "$2" = gcc ] && echo "$1" || echo "$1 ($2)"
}

system_test() # NAME SECONDS BUILD
{
	test=$(shown "$1" "$3") limit=$((2 * $2))
	[ -z "$second" ] || say "once more: system $test"
	start_clocks
	PERFWALK=$out/$3/perfwalk
	export PERFWALK
	log=$logs/system-$1-$3.log
	own=$scratch/$1
	[ "$3" = gcc ] || own=$own+
	mkdir -p "$own"
	touch "$own.begun"
	run "$limit" "$log" env TMPDIR="$own" python3 "$top/tests/system/$1.py"
	status=$?
	seconds=$(($(now) - begun))
	[ -n "$among_others" ] || remove_perf_maps "$own.begun"
	rm -rf "$own" "$own.begun"
	if [ $status -ne 0 ] && [ $status -ne 77 ] && [ -z "$second" ]; then
		mv "$log" "${log%.log}.first.log"
		once_more "system $test" $seconds system_test "$@"
		return
	fi
	case $status in
	0)
		[ -z "$second" ] || printf '%s\t%s\n' "system $test" "${log%.log}.first.log" >>"$unsteady"
		result pass $seconds "system $test" "${second:+failed at first}" ;;
	77) result skip $seconds "system $test" "$(sed -n 's/^SKIP: //p' "$log" | tail -n 1)" ;;
	*)
		[ $status -eq 1 ] && how= || how="$(ending $status $seconds "$limit"); "
		result fail $seconds "system $test" "${how}see $log" "$log" ;;
	esac
}

# What needs no more of the machine than the system tests leave.
other_builds()
{
	# The page of the flame graph has its time by the clock: it is tried when nothing else runs, and once. What
	# writes it is under sanitizers in test-render-html.
	tests='$(check_PROGRAMS) $(dist_check_SCRIPTS)'
	check gcc 1200
	# A report has the lines of its functions with -g1 too. Compiling takes as long as -g -O2 without sanitizers. Of code
	# that -Og and the sanitizers leave longer gcc warns without need, as its manual says.
	unit="-Og -g1 -Wno-error"
	build sanitizers 1800 CC=gcc CFLAGS="$unit" --enable-sanitizers || return 0
	# They wait, so beside the unit tests, to whose CPU time theirs counts.
	rows beside sanitizers | xargs -I '{}' sh "$top/tests/run.sh" --beside '{}' &
	beside=$!
	tests='$(check_PROGRAMS)' # the scripts look at sources
	check sanitizers 1800
	wait "$beside"
}

test_beside() # NAME:SECONDS:BUILD
{
	item=${1#*:}
	system_test "${1%%:*}" $((2 * ${item%:*})) "${item#*:}" # twice the time: it has a part of the machine
}

# Several at once, each by a run of this script.
side_by_side() # AT-ONCE NAME:SECONDS:BUILD...
{
	at_once=$1
	shift
	begin "$# system tests, $at_once at a time${builds:+; beside them the unit tests, and the build with sanitizers}"
	touch "$scratch/beside.begun"
	printf '%s\n' "$@" >"$scratch/beside"
	setsid xargs -P "$at_once" -I '{}' sh "$top/tests/run.sh" --beside '{}' <"$scratch/beside" &
	running=$!
	wait "$running"
	running=
	for item in "$@"; do
		name="system $(shown "${item%%:*}" "${item##*:}")"
		sed 's/^[A-Z]*  *[0-9]*s  *[0-9]*s  //; s/  (.*//' "$results" | grep -qxF "$name" ||
			result fail $(($(now) - begun)) "$name" "did not end"
	done
	[ -z "$builds" ] || wait "$builds" || result fail $(($(now) - begun)) "unit tests and builds" "did not end"
	builds=
	remove_perf_maps "$scratch/beside.begun"
	second=yes
	while read -r call; do
		$call
	done <"$again"
	: >"$again"
	second=
}

# ---- The run ----

case ${1:-} in
--beside | --builds)
	among_others=yes
	scratch=$TEST_SCRATCH # the caller's, which removes it, and says that it was interrupted
	trap - EXIT
	trap '[ -z "$running" ] || kill -TERM "-$running"; exit 1' INT TERM HUP
	if [ "$1" = --builds ]; then
		other_builds
	else
		test_beside "$2"
	fi
	exit 0 ;;
esac

since=
if [ "${1:-}" = --since ]; then
	since=$(git -C "$top" rev-parse --verify --quiet "${2:-}^{commit}") && [ $# -eq 2 ] || {
		say "--since ${2:-}: expected one commit of this clone" >&2
		exit 2
	}
	shift 2
fi
if [ "${1:-}" = --system ] && [ $# -eq 1 ]; then
	# shellcheck disable=SC2046
	set -- $(test_names)
fi
for name in "$@"; do
	test_names | grep -qxFe "$name" || {
		say "$name: no such system test; there are:" $(test_names) >&2
		exit 2
	}
done
mkdir -p "$logs" && : >"$failures" && : >"$unsteady" && : >"$results" && : >"$again" && remove_left_over && mkdir "$scratch" && chmod 755 "$scratch" || exit 1
PATH=$PATH:/usr/local/go/bin:$HOME/.cargo/bin:/usr/sbin:/sbin
TEST_LOGS=$logs TEST_SCRATCH=$scratch
export PATH TEST_LOGS TEST_SCRATCH
all=
[ $# -gt 0 ] || [ -n "$since" ] || all=yes

start_clocks
begun_all=$begun
install_missing || result fail 0 "install what is missing"
keep_compiled
start_clocks
if [ "$top/configure" -nt "$top/configure.ac" ] && [ "$top/configure" -nt "$top/Makefile.am" ]; then
	:
elif run 300 "$logs/autoreconf.log" autoreconf -fi "$top"; then
	result pass $(($(now) - begun)) "autoreconf"
else
	result fail $(($(now) - begun)) "autoreconf" "see $logs/autoreconf.log" "$logs/autoreconf.log"
	finish
fi

# The first build knows what links what.
units=
unit=
export unit
if [ -n "$since" ]; then
	build gcc 900 CC=gcc || finish
	selected=$(cd "$top" && { git -c core.quotePath=off diff --name-only "$since" &&
		git -c core.quotePath=off ls-files --others --exclude-standard; } | sh tests/select.sh "$out/gcc") || {
		result fail 0 "select tests"
		finish
	}
	if [ "$selected" = all ]; then
		say "What changed since $since can break any test."
		rm -rf "$scratch"
		exec sh "$0"
	fi
	units=$(echo "$selected" | sed -n 's|^unit \(tests/.*\)|\1|p; s|^unit \([^/]*\)$|tests/unit/\1|p')
	# shellcheck disable=SC2046
	set -- $(echo "$selected" | sed -n 's/^system //p')
	say "Selected:" $(echo "$selected" | sed 's/^[a-z]* //')
fi

parts=$(parts "$@")
together=$(rows beside gcc "$@")
by_two=$(rows by-two gcc "$@"; [ -z "$all" ] || rows by-two sanitizers)
# shellcheck disable=SC2086
steps=$(($(printf '%s\n' $parts | grep -c .) + 0${together:+1} + 0${by_two:+1}))
if [ -n "$all" ]; then
	steps=$((steps + 2))
	cpus=$(nproc)
	say "All tests: on $cpus CPUs about $((2 + 36 / cpus)) minutes; the first time $((2 + 16 / cpus)) more, for packages and modules."
elif [ -n "$since" ]; then
	steps=$((steps + 0${units:+1}))
else
	steps=$((steps + 1))
fi

unit=${all:+-O1 -g1}
[ -n "$since" ] || build gcc 900 CC=gcc || finish
# shellcheck disable=SC2086
[ -z "$units" ] || check gcc 600 $units

for part in $parts; do
	fetch "$part"
done
if [ -n "$all" ]; then
	setsid sh "$top/tests/run.sh" --builds &
	builds=$!
fi
# shellcheck disable=SC2086
[ -z "$together" ] || side_by_side $(($(nproc) + 2)) $together
# shellcheck disable=SC2086
[ -z "$by_two" ] || side_by_side 2 $by_two
[ -z "$all" ] || check gcc 600 tests/system/flamegraph-page.sh
finish
