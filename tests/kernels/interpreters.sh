# SPDX-License-Identifier: Apache-2.0
#
# What guest.sh runs instead of its other checks where the kernel's command line has part=interpreters: Debian's
# interpreters run programs of known chains of calls, whose stacks are judged outside.

# interpreter NAME RELEASE LENGTH SAYS COMMAND...: a capture of LENGTH seconds. SAYS is what makes it say its chains of
# calls; empty: they are known.
interpreter()
{
	name=$1 release=$2 length=$3 says=$4
	shift 4
	[ -z "$says" ] || echo "SAID $name $("$@" "$says" 2>"$name.said" | gzip -c | base64 -w 0)" >&3
	"$@" >"$name.out" 2>&1 &
	program=$!
	sleep "$seconds"
	# A reader of a slow machine may not begin in time: once more.
	for _ in 1 2 3; do
		perfwalk record -v -F 199 -d "$length" -p $program -o "$name.folded" >"$name.log" 2>&1
		late=$(awk '{ all += $NF } /not read in time/ { late += $NF } END { print (late * 2 > all) + 0 }' "$name.folded")
		[ "$late" -ne 0 ] || break
	done
	perfwalk debug runtime $program >"$name.runtime" 2>"$name.debug"
	kill $program
	wait $program
	grep -q "^$release" "$name.runtime"
	check $? "$name: debug runtime says $(grep -m 1 "^$release" "$name.runtime")" "$name.debug" "$name.out"
	echo "STACKS $name $(gzip -c "$name.folded" | base64 -w 0)" >&3
	note "$name: $(grep -c 'CPU time limit exceeded' "$name.log") readers ended because they ran too long without a pause"
}

export HOME=/tmp
interpreter python "CPython 3.11" $((2 * seconds)) "" python3 /w/calls.py 1
interpreter python-perf "CPython 3.13" $((2 * seconds)) "" chroot /python python3 -X perf /calls.py 1
interpreter php "PHP 8.2" $((2 * seconds)) once php8.2 -n -d display_errors=0 /w/calls.php
interpreter ruby "Ruby 3.1" $((2 * seconds)) once ruby3.1 --disable-gems /w/calls.rb
# On a slow machine what it takes to know V8 is all of the profiler's share for a while.
interpreter node "V8 10.2" 60 "" node /w/calls.js 1
echo END >&3
poweroff -f
