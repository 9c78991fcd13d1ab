# SPDX-License-Identifier: Apache-2.0
#
# What guest.sh runs instead of its other checks where the kernel's command line has part=java, or java-VERSION: Debian's Java
# runs a program of known chains of calls, interpreted and by each compiler; one whose thread stops in a known chain; one that
# says of each sample what it was executing; and one that allocates known sums. All are judged outside.

export HOME=/tmp JAVA_TOOL_OPTIONS=
java=/usr/lib/jvm/default-java/bin/java
mount -t tracefs none /sys/kernel/tracing

# after TEXT FILE: until that is in it, for ten minutes at most
after()
{
	for _ in $(seq 600); do
		grep -q "$1" "$2" 2>/dev/null && return
		sleep 1
	done
}

# The chains of calls, and whether the methods may be put into each other.
chains() # NAME OPTIONS...
{
	name=$1
	shift
	"$java" -Xmx64m -Dsun.reflect.inflationThreshold=2147483647 "$@" -cp /w Calls >"$name.out" 2>&1 &
	program=$!
	sleep $((3 * seconds)) # until what is hot was compiled
	for _ in 1 2 3; do
		perfwalk record -v -F 199 -d $((4 * seconds)) -p $program -o "$name.folded" >"$name.log" 2>&1
		late=$(awk '{ all += $NF } /not read in time/ { late += $NF } END { print (late * 2 > all) + 0 }' "$name.folded")
		[ "$late" -ne 0 ] || break
	done
	[ "$name" != java-interpreted ] || perfwalk debug runtime $program >"$name.runtime" 2>"$name.debug"
	kill $program
	wait $program
	echo "STACKS $name $(gzip -c "$name.folded" | base64 -w 0)" >&3
}

apart="-XX:CompileCommand=quiet -XX:CompileCommand=dontinline,Calls*::*"
chains java-interpreted -Xint
version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$(readlink -f $java | sed 's/bin.java$//')release")
grep -q "^HotSpot ${version:-?}" java-interpreted.runtime
check $? "java: debug runtime says $(grep -m 1 "^HotSpot" java-interpreted.runtime)" java-interpreted.debug java-interpreted.out
# shellcheck disable=SC2086
chains java-c1 -XX:TieredStopAtLevel=1 $apart
# shellcheck disable=SC2086
chains java-c2 -XX:-TieredCompilation $apart
chains java-inlined

# A thread that is stopped at a poll.
polls() # NAME OPTIONS...
{
	name=$1
	shift
	"$java" -Xmx64m -XX:+UseSerialGC "$@" -cp /w Polls >"$name.out" 2>&1 &
	program=$!
	sleep $((4 * seconds))
	perfwalk record -v -d $((4 * seconds)) -p $program --stack-size 65528 -o "$name.folded" \
		-e "uprobe:$(readlink -f "$java" | sed 's/bin.java$//')lib/server/libjvm.so:_ZN20ThreadSafepointState29handle_polling_page_exceptionEv" \
		>"$name.log" 2>&1
	check $? "$name: a capture of stops" "$name.log" "$name.out"
	kill $program
	wait $program
	echo "STACKS $name $(gzip -c "$name.folded" | base64 -w 0)" >&3
}
polls java-polls-c1 -XX:TieredStopAtLevel=1
polls java-polls-c2 -XX:-TieredCompilation

# HotSpot's own word for the samples.
truths() # NAME OPTIONS...
{
	name=$1
	shift
	"$java" -Xmx64m "-agentpath:/w/libasgct.so=/tmp/truths,20011000" "$@" -cp /w Mix >"$name.out" 2>&1 &
	program=$!
	sleep $((3 * seconds))
	perfwalk record -v -d $((4 * seconds)) -p $program --stack-size 65528 -e uprobe:/w/libasgct.so:truth_mark -o truth.perf.txt >"$name.log" 2>&1
	kill $program
	wait $program
	echo "SAID $name $(gzip -c truths | base64 -w 0)" >&3
	echo "STACKS $name $(gzip -c truth.perf.txt | base64 -w 0)" >&3
}
truths truth-mixed
truths truth-c1 -XX:TieredStopAtLevel=1

# Allocations, as sums that the program knows.
mkfifo go
"$java" -XX:+UseSerialGC -Xmx256m -cp /w Heap <go >java-heap.out 2>&1 &
program=$!
exec 4>go
after ready java-heap.out
perfwalk record -v -p $program --alloc -o java-heap.perf.txt >java-heap.log 2>&1 &
record=$!
after "allocator of a Java VM is sampled" java-heap.log
echo >&4
after done java-heap.out
kill -TERM $record
wait $record
check $? "java-heap: record --alloc has ended" java-heap.log java-heap.out
exec 4>&-
wait $program
echo "STACKS java-heap $(gzip -c java-heap.perf.txt | base64 -w 0)" >&3
echo END >&3
poweroff -f
