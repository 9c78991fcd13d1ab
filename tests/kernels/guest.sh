#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# /init of the virtual machine of tests/kernels/run.sh: one line a check on the second serial port, what
# a failed check has seen on the console, then the end. AGAIN names what the kernel's command line has to have besides
# at a second boot.
#
# Which CPU was sampled is told by who ran there: each step pins a fresh copy of the same program, under
# a name of its own, to the CPU in question.

/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev || for node in null:1:3 zero:1:5 random:1:8 urandom:1:9 ttyS0:4:64 ttyS1:4:65; do
	# shellcheck disable=SC2086
	/bin/busybox mknod $(echo /dev/$node | /bin/busybox sed 's/:/ c /; s/:/ /')
done
/bin/busybox mount -t tmpfs -o mode=1777 tmp /tmp
/bin/busybox --install -s /bin
export PATH=/bin
cd /tmp || poweroff -f
ifconfig lo 127.0.0.1 up
# Named on the kernel's command line: that port, and for how long a program runs that has to be sampled.
exec 3>"/dev/$results"

LAST=$(($(nproc) - 1))
ONLINE=/sys/devices/system/cpu/cpu1/online
PARANOID=/proc/sys/kernel/perf_event_paranoid
library=$(ls /usr/local/lib/perfwalk/libperfwalk-alloc.so /usr/lib/perfwalk/libperfwalk-alloc.so 2>/dev/null)
CHAIN="main;chain_one;chain_two;chain_three;chain_four;chain_five;chain_leaf"

note() { echo "NOTE $*" >&3; }
skip() { echo "SKIP $*" >&3; }

check() # STATUS TEXT [FILE...]: 0 passes; the files go to the console when it did not
{
	if [ "$1" -eq 0 ]; then
		echo "PASS $2" >&3
		return
	fi
	echo "FAIL $2" >&3
	shift 2
	for file in "$@"; do
		echo "---- $file"
		head -c 8000 "$file"
	done
}

# pin NAME CPU SECONDS: the known program runs there for so long, under that name.
pin()
{
	[ -e "/tmp/$1" ] || cp /w/chain "/tmp/$1"
	timeout "$3" taskset -c "$2" "/tmp/$1"
}

# Before 4.1 nobody knows the stack pointer of a sample inside the kernel: it says so.
case $(uname -r) in
[23].* | 4.0.*) HONEST=";[no user registers];" ;;
*) HONEST=";_start;" ;;
esac

# Samples of a program in folded stacks: all, those from the entry, those with the whole chain.
samples() # FILE NAME
{
	awk -v name="$2" -v chain="$CHAIN" -v honest="$HONEST" '{
		n = $NF; sub(/ [0-9]+$/, "")
		if (index($0, name ";") != 1) next
		all += n
		if (index($0, name ";_start;") == 1 || index($0, name honest) == 1) entry += n
		if (index($0, chain)) whole += n
	} END { printf "all=%d entry=%d whole=%d\n", all, entry, whole }' "$1"
}

check_stacks() # FILE NAME
{
	eval "$(samples "$1" "$2")"
	# Two of some hundred are no percentage.
	[ "$all" -ge 100 ] && { [ $((entry * 100)) -ge $((all * 99)) ] || [ $((all - entry)) -le 2 ]; } && [ $((whole * 100)) -ge $((all * 80)) ]
	check $? "$3: $all samples of the known program, $entry from _start, $whole with its names in order" "$1" "$4"
}

# The CPU was sampled again while the program ran on it for that long, at 99 Hz.
check_again() # FILE NAME TEXT LOG
{
	eval "$(samples "$1" "$2")"
	late=$(((99 * seconds - all) * 10 / 99))
	[ "$late" -lt 0 ] && late=0
	[ "$all" -ge 99 ] && [ $((whole * 100)) -ge $((all * 80)) ]
	check $? "$3: $all samples in the $seconds s after (away for $((late / 10)).$((late % 10)) s)" "$1" "$4"
}

start_record() # NAME: a capture until stop_record
{
	perfwalk record -a -v -F 99 -o "$1.folded" >"$1.out" 2>"$1.log" &
	record=$!
	for _ in $(seq 100); do
		grep -q "recording the whole host" "$1.log" && return
		sleep 0.1
	done
}

stop_record()
{
	kill -TERM $record
	wait $record
}

ID=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
check_container() # HIERARCHY TEXT: a program in a group as docker's has the container's id
{
	mkdir -p "$1/docker/$ID" && cp /w/chain /tmp/contained || return
	sh -c "echo \$\$ >$1/docker/$ID/cgroup.procs && exec /tmp/contained" &
	contained=$!
	# Nothing is sampled where a busy host lets this one stand still.
	for _ in 1 2 3; do
		perfwalk record -a -d $seconds -F 99 -o contained.ndjson >contained.log 2>&1
		all=$(grep -c '"process":"contained"' contained.ndjson)
		[ "$all" -eq 0 ] || break
	done
	known=$(grep '"process":"contained"' contained.ndjson | grep -c "\"container\":\"$ID\"")
	tr '\n' ' ' </proc/$contained/cgroup >contained.groups
	kill $contained
	wait $contained
	# The shell that becomes it begins elsewhere.
	[ "$known" -gt 0 ] && [ "$known" -eq "$all" ]
	check $? "$2: $known of $all stacks of a container's program have its id: $(cat contained.groups)" contained.log contained.ndjson
}

# The only part at this boot; see run.sh.
[ -z "${part:-}" ] || . "/w/$part"

older_than() # MAJOR MINOR
{
	version=$(uname -r)
	minor=${version#*.}
	[ "${version%%.*}" -lt "$1" ] || { [ "${version%%.*}" -eq "$1" ] && [ "${minor%%[.-]*}" -lt "$2" ]; }
}

# Every kernel frame has a name, and a read of /dev/zero shows the way in.
check_kernel_frames() # FILE TEXT
{
	# The kernel does not list the code of seccomp filters, which our own processes have.
	sed 's/;\([^;]*\(seccomp\|syscall_trace_enter\)[^;]*_\[k\]\);\[kernel\]_\[k\]/;\1/' "$1" >kernel.stacks
	frames=$(tr ';' '\n' <kernel.stacks | sed 's/ [0-9]*$//' | grep -c '_\[k\]$')
	unnamed=$(tr ';' '\n' <kernel.stacks | sed 's/ [0-9]*$//' | grep '_\[k\]$' | grep -c '0x\|^\[kernel')
	[ "$frames" -gt 20 ] && [ "$unnamed" -eq 0 ] &&
		grep '^dd;' "$1" | grep -q ';[A-Za-z0-9_]*[sS]y[sS]_read_\[k\];vfs_read_\[k\]'
	set -- $? "$1" "$2"
	{
		grep '0x[0-9a-f]*_\[k\]\|;\[kernel[^;]*_\[k\]' kernel.stacks
		grep '^dd;.*_read_\[k\]' "$2"
	} >kernel.frames
	check "$1" "$3: $frames, $unnamed without a name" kernel.frames
}

# ---- The second boot: the kernel is locked down, and has control groups v2 alone ----

LOCKDOWN=/sys/kernel/security/lockdown
MORE="lockdown=confidentiality cgroup_no_v1=all"
booted_again()
{
	perfwalk record -a -d 1 -o warm.folded >warm.out 2>&1
	mkdir groups
	if mount -t cgroup2 groups groups; then
		check_container groups "control groups v2 alone"
	else
		skip "control groups v2: this kernel has none"
	fi
	mount -t securityfs securityfs /sys/kernel/security
	if ! grep -q '\[confidentiality\]' $LOCKDOWN; then
		skip "lockdown: this kernel has none"
		return
	fi
	pin locked $LAST 600 &
	dd if=/dev/zero of=/dev/null bs=64k 2>/dev/null &
	writer=$!
	perfwalk record -a -d $seconds -F 99 -o locked.folded >locked.log 2>&1
	status=$?
	kill $writer
	check $status "record -a under lockdown=confidentiality leaves with $status" locked.log
	check_stacks locked.folded locked "lockdown=confidentiality" locked.log
	check_kernel_frames locked.folded "kernel frames under lockdown=confidentiality"
	mount -t tracefs none /sys/kernel/tracing
	perfwalk record -a -e sched:sched_switch -d 1 -o locked2.folded >locked.log 2>&1
	status=$?
	[ $status -ne 0 ] && grep -q "locked down (confidentiality), which forbids tracefs" locked.log
	check $? "no tracepoint under lockdown=confidentiality: exit status $status, and the text says why" locked.log
	perfwalk check >locked.check 2>&1
	status=$?
	[ $status -eq 0 ] && grep -q "^note  *lockdown .*tracefs" locked.check && ! grep -q "mount -t tracefs" locked.check
	check $? "check under lockdown=confidentiality: exit status $status, no tracefs, and no mount that brings it" locked.check
	killall locked
}
case $(cat /proc/cmdline) in
*"$MORE"*)
	booted_again
	echo END >&3
	poweroff -f ;;
esac

# ---- A capture ----

note "$(uname -r), $(nproc) CPUs, perf_event_paranoid $(cat $PARANOID)"
default=$(cat $PARANOID)
pin chain $LAST 600 & # killed before that
# What runs for the first time is slow in an emulated machine, slow enough to be taken for stuck.
perfwalk record -a -d 1 -o warm.folded >warm.out 2>&1
cpu_event=$(sed -n 's/^\([a-z-]*\) at [0-9]* Hz for .*/\1/p' warm.out) # cycles where there is a PMU
dd if=/dev/zero of=/dev/null bs=64k 2>/dev/null &
writer=$!
perfwalk record -a -v -d $seconds -F 99 -o a.folded -o a.html -o a.pb.gz >a.out 2>a.log
status=$?
kill $writer
check $status "record -a -d $seconds leaves with $status" a.log a.out
note "kernel has:$(sed -nE 's/.*perf feature (.*): yes/ \1,/p' a.log | tr -d '\n')"
note "$(grep -iE 'samples.*lost|lost' a.out | head -n 1)"
check_stacks a.folded chain "record -a" a.log
[ -s a.html ] && gunzip -c a.pb.gz | grep -q chain_leaf
check $? "flame graph page and pprof file are there" a.log

if [ -e /proc/kallsyms ]; then
	check_kernel_frames a.folded "kernel frames are named"
	echo 1 >/proc/sys/kernel/kptr_restrict
	dd if=/dev/zero of=/dev/null bs=64k 2>/dev/null &
	writer=$!
	perfwalk record -a -d 2 -F 99 -o k.folded >k.out 2>&1
	kill $writer
	check_kernel_frames k.folded "kernel frames are named with kptr_restrict 1, too"
else
	skip "names of kernel frames: this kernel has no kallsyms"
fi

# ---- The daemon ----

cat >/www/cgi-bin/profiles <<'CGI'
#!/bin/sh
cat >/tmp/body.$$ && mv /tmp/body.$$ /tmp/payload.$$
printf 'Content-Type: application/x-protobuf\r\n\r\n'
CGI
chmod 755 /www/cgi-bin/profiles
httpd -p 127.0.0.1:4318 -h /www
cat >run.conf <<'CONF'
[profiler]
reporter_interval = 2s
[limits]
symbolizer_file_timeout = 60s
cpu = 100%
[export:test]
endpoint = http://127.0.0.1:4318
profiles_endpoint = http://127.0.0.1:4318/cgi-bin/profiles
CONF
count_payloads()
{
	n=0 named=0 allocated=0
	for file in payload.*; do
		[ ! -e "$file" ] || n=$((n + 1))
		gunzip -c "$file" 2>/dev/null | grep -q chain_leaf && named=$((named + 1))
		gunzip -c "$file" 2>/dev/null | grep -q allocate_large && allocated=$((allocated + 1))
	done
}
allocations= # "wanted": until it has sent some, too
run_daemon() # COMMAND...: that is the daemon, until it has sent enough
{
	rm -f payload.*
	"$@" >run.log 2>&1 &
	daemon=$!
	for _ in $(seq 60); do
		count_payloads
		[ "$n" -ge 2 ] && [ "$named" -ge 1 ] && { [ -z "$allocations" ] || [ "$allocated" -ge 1 ]; } && break
		kill -0 $daemon || break
		sleep 1
	done
	profile=$(cat /proc/$daemon/attr/current)
	kill -TERM $daemon
	wait $daemon
	status=$?
	count_payloads
}
# On a slow machine a child may not end in time: once more.
for _ in 1 2 3; do
	run_daemon perfwalk run -c run.conf
	[ $status -ne 0 ] || break
done
[ $status -eq 0 ] && [ "$n" -ge 2 ] && [ "$named" -ge 1 ]
check $? "run: $n payloads came over HTTP, $named with the known program; left with $status" run.log
killall chain

# ---- Programs of other languages: their stacks are judged outside ----

export LD_LIBRARY_PATH=/j
for program in /j/*; do
	name=${program##*/}
	argument=
	case $name in
	*.so | "*") continue ;;
	host) argument=/j/plugin.so ;;
	esac
	# On a slow machine a file may not be opened in time: once more.
	for _ in 1 2 3; do
		perfwalk record -F 499 -o "$name.folded" -- timeout 8 "$program" $argument >"$name.out" 2>&1
		grep -q 'file not readable' "$name.folded" || break
	done
	echo "STACKS $name $(gzip -c "$name.folded" | base64 -w 0)" >&3
done
unset LD_LIBRARY_PATH

# ---- Spans: a program tells the one of each thread and function ----

# span_samples TOLD ROWS: samples in spans, those with their own, and with another's.
span_samples()
{
	awk 'NR == FNR { told[$1, $2] = $3; next }
		{ sub(/.*\//, "", $4); own = told[$4, $NF]; if (own == "") own = told[0, $NF] }
		own != "" { all += $3; right += ($5 == own) * $3; wrong += (NF == 6 && $5 != own) * $3 }
		END { printf "all=%d right=%d wrong=%d\n", all, right, wrong }' "$1" "$2"
}

for program in /s/spans*; do
	[ -x "$program" ] || continue
	name=${program##*/}
	loaded=
	[ "$name" != spans-loaded ] || loaded=/s/libspan-slot.so
	"$program" $loaded >"$name.told" &
	told=$!
	perfwalk record -v -F 499 -d $((2 * seconds)) -p $told -o "$name.pb.gz" >"$name.log" 2>&1
	kill $told
	perfwalk report --csv --by thread,span,symbol --percent-limit 0 "$name.pb.gz" >"$name.rows" 2>>"$name.log"
	eval "$(span_samples "$name.told" "$name.rows")"
	# The first ones came before it was known where the program has its variable.
	[ "$wrong" -eq 0 ] && [ "$all" -ge 200 ] && [ $((right * 2)) -ge "$all" ]
	check $? "$name: $right of $all samples in spans have their own, $wrong another's" "$name.log" "$name.told" "$name.rows"
done

# ---- CPU hotplug ----

if [ -w $ONLINE ]; then
	start_record hot
	sleep 2
	echo 0 >$ONLINE
	sleep 3
	grep -q "CPU 1 went offline" hot.log
	check $? "the log says that CPU 1 went offline" hot.log
	echo 1 >$ONLINE
	pin again 1 $seconds
	grep -q "CPU 1 came online" hot.log
	check $? "the log says that CPU 1 came online" hot.log
	begin=$(date +%s)
	echo 0 >$ONLINE && echo 1 >$ONLINE
	note "off and on at once: within $(($(date +%s) - begin)) s"
	pin quick 1 $seconds
	stop_record
	status=$?
	check $status "record over offline and online leaves with $status" hot.log
	check_again hot.folded again "CPU 1 off for 3 s, then on" hot.log
	check_again hot.folded quick "CPU 1 off and on at once" hot.log
	note "the log:$(sed -n 's/.*\(CPU 1 .*\)/ \1;/p' hot.log | tr -d '\n')"

	echo 0 >$ONLINE
	start_record missing
	grep -q "on 1 CPUs" missing.log
	check $? "a start with CPU 1 offline" missing.log
	pin zero 0 $seconds
	echo 1 >$ONLINE
	pin late 1 $seconds
	stop_record
	status=$?
	check $status "record begun with CPU 1 offline leaves with $status" missing.log
	check_stacks missing.folded zero "CPU 0 with CPU 1 offline" missing.log
	check_again missing.folded late "CPU 1 on for the first time" missing.log

	# Events of tasks: those of a CPU that goes and comes, and of one that comes for the first time.
	for when in back new; do
		[ $when = new ] && echo 0 >$ONLINE
		cp /w/chain "/tmp/$when"
		perfwalk record -F 99 -o task.folded -- sh -c "sleep 6; timeout $seconds taskset -c 1 /tmp/$when" >task.log 2>&1 &
		record=$!
		sleep 2
		[ $when = back ] && echo 0 >$ONLINE && sleep 1
		echo 1 >$ONLINE
		wait $record
		check_again task.folded $when "a command, and CPU 1 is $when" task.log
	done
else
	skip "CPU hotplug: this kernel cannot"
fi

# ---- Without root, and with few of its capabilities ----

as_unit() # MORE COMMAND...: root with the unit's capabilities, and these
{
	more=$1
	shift
	/w/bounded "$(cat /w/unit) $more" "$@"
}
as_nobody() { su nobody -s /bin/sh -c "cd /tmp/nobody && $1"; }

mkdir nobody && chown nobody nobody
if [ "$default" -ge 3 ]; then
	as_nobody "perfwalk record -F 499 -o own.folded -- /w/blip 1000" >three.log 2>&1
	status=$?
	# 3 could be the command's own.
	[ $status -eq 125 ] && grep -q "perf_event_paranoid is $default" three.log &&
		grep -q CAP_SYS_ADMIN three.log
	check $? "nobody at perf_event_paranoid $default: exit status $status, and the text says why" three.log
	as_nobody "perfwalk record -a -d 1 -o all.folded" >three.log 2>&1
	status=$?
	[ $status -eq 3 ] && grep -q "perf_event_paranoid is $default" three.log && [ ! -e nobody/all.folded ]
	check $? "nobody's record -a at perf_event_paranoid $default: exit status $status, and the text says why" three.log
	as_unit "" perfwalk record -a -d 1 -o three.folded >three.log 2>&1
	status=$?
	[ $status -eq 3 ] && grep -q "give it CAP_SYS_ADMIN" three.log && grep -q "sysctl kernel.perf_event_paranoid=2" three.log
	check $? "the unit's capabilities at perf_event_paranoid $default: exit status $status, and what else is needed" three.log
	as_unit "" perfwalk check >three.check 2>&1
	sed -n '/^What is missing comes with:/,$p' three.check >three.end
	grep -qx "    sysctl kernel.perf_event_paranoid=2" three.end && grep -q "^    .*--cap-add=SYS_ADMIN" three.end
	check $? "and check there ends with the commands" three.check
	as_unit 21 perfwalk record -a -d 1 -o three.folded >three.log 2>&1
	status=$?
	check $status "the unit's capabilities and CAP_SYS_ADMIN at perf_event_paranoid $default: exit status $status" three.log
else
	skip "perf_event_paranoid 3: this kernel's highest is 2"
fi
echo 2 >$PARANOID
if [ "$(cat /proc/sys/kernel/cap_last_cap)" -ge 38 ]; then
	as_unit "" perfwalk record -a -d 1 -o two.folded >two.log 2>&1
	status=$?
	check $status "the unit's capabilities at perf_event_paranoid 2: exit status $status" two.log
else
	skip "CAP_PERFMON: this kernel does not know it"
fi
as_nobody "perfwalk record -a -d 1 -o all.folded" >two.log 2>&1
status=$?
[ $status -eq 3 ] && grep -q "perf_event_paranoid is 2" two.log && grep -qE 'CAP_(PERFMON|SYS_ADMIN)' two.log
check $? "nobody's record -a at perf_event_paranoid 2: exit status $status, and the text says why" two.log
for _ in 1 2 3; do
	as_nobody "perfwalk record -F 499 -o own.folded -- /w/blip $((seconds * 300))" >own.log 2>&1
	status=$?
	all=$(awk '/^blip;/ { n += $NF } END { print n + 0 }' nobody/own.folded)
	n=$(awk '/^blip;_start;.*;main;blip_burn/ { n += $NF } END { print n + 0 }' nobody/own.folded)
	[ "$n" -lt 50 ] || break
done
# A host of its own gives some 2,000. A busy one lets this one stand still while the small buffers are full.
[ $status -eq 0 ] && [ "$n" -ge 50 ] && [ $((n * 10)) -ge $((all * 8)) ] && ! grep -q '_\[k\]' nobody/own.folded
check $? "nobody's own command at 2: exit status $status, $n of $all stacks complete, no kernel frames" \
	own.log nobody/own.folded

as_nobody "ulimit -l 0; perfwalk check" >quota.log 2>&1
kb=$(sed -n 's/^    sudo sysctl kernel.perf_event_mlock_kb=//p' quota.log)
[ -n "$kb" ] && echo "$kb" >/proc/sys/kernel/perf_event_mlock_kb && as_nobody "ulimit -l 0; perfwalk check" >quota.log 2>&1
grep -q '^ok  *rings  *2.0 MiB for each' quota.log
check $? "the quota that check asks for nobody, $kb KiB, is enough for all rings" quota.log

# ---- The daemon under its AppArmor profile, with the unit's capabilities and all that it can do ----

POLICY=/sys/kernel/security/apparmor
[ -d $POLICY ] || mount -t securityfs securityfs /sys/kernel/security
if [ ! -e $POLICY/.load ]; then
	skip "AppArmor: not in this kernel"
elif [ ! -s /w/apparmor ]; then
	skip "AppArmor: nothing has compiled the profile (apt-get install apparmor)"
elif [ ! -e $POLICY/features/network_v8 ]; then
	skip "AppArmor: this kernel is older than those that the profile is compiled for here"
else
	# The kernel takes a policy as one piece.
	dd if=/w/apparmor of=$POLICY/.load bs=1M 2>/dev/null
	mkdir -p /run /var/lib/perfwalk /var/cache/perfwalk
	mount -t tracefs none /sys/kernel/tracing
	printf '%s\n' '[off_cpu]' 'enabled = yes' 'locks = yes' '[metrics]' 'listen = 127.0.0.1:9464' '[store]' 'enabled = yes' |
		cat run.conf - >confined.conf
	if [ -n "$library" ]; then
		allocations=wanted
		printf '%s\n' '[alloc]' 'enabled = yes' >>confined.conf
		while :; do
			LD_PRELOAD=$library /w/heap >/dev/null
		done &
		heaps=$!
	fi
	# shellcheck disable=SC2016
	set -- /w/bounded "$(cat /w/unit)" sh -c 'echo "exec perfwalk" >/proc/self/attr/exec && exec "$@"' sh perfwalk
	pin chain $LAST 600 &
	for _ in 1 2 3; do
		run_daemon "$@" run -c confined.conf
		[ $status -ne 0 ] || break
	done
	killall chain
	[ -z "$library" ] || kill $heaps
	umount /sys/kernel/tracing
	dmesg | grep 'apparmor="DENIED".*profile="perfwalk"' >denied
	[ $status -eq 0 ] && [ "$n" -ge 2 ] && [ "$named" -ge 1 ] && { [ -z "$library" ] || [ "$allocated" -ge 1 ]; } &&
		[ "$profile" = "perfwalk (enforce)" ] && [ ! -s denied ]
	check $? "AppArmor: $n payloads, $named with the known program, $allocated with allocations; left with $status; $profile refused $(wc -l <denied) times" run.log denied
	"$@" record -a -d 1 -o refused.folded >refused.log 2>&1
	status=$?
	[ $status -ne 0 ] && [ ! -e refused.folded ]
	check $? "AppArmor: a file elsewhere is refused: exit status $status" refused.log
fi

# ---- Every type of profile: what the list says of each is what happens ----

# listed TYPE: in $here where it can be recorded, in $why why not everywhere.
listed()
{
	row=$(grep "^$1  *-" types)
	here=$(echo "$row" | sed -nE 's/^[^;]* (the whole host, not of commands|the whole host|own processes and commands|not here)(; .*)?$/\1/p')
	why=${row#*; }
}

# What a capture wrote has this in its stacks: seen FILE EVENT PATTERN
seen()
{
	perfwalk convert -e "$2" "$1" -o seen.folded >/dev/null 2>&1 && grep -qE "$3" seen.folded
}

# tried WHO TYPE OPTIONS EVENT PATTERN COMMAND...: a capture of each type that can be had, with stacks of the command, or
# the refusal, with the reason that the list has. On a slow machine names may not be read in time, and buffers get full:
# once more.
tried()
{
	listed "$2"
	text="$1: $2: $here, and so does record $3${row##*"$here"}"
	for _ in 1 2 3 4 5 6; do
		try_type "$@"
		status=$?
		[ $status -ne 0 ] || break
	done
	check $status "$text" t.log seen.folded types
}

try_type()
{
	who=$1 options=$3 event=$4 pattern=$5
	shift 5
	case $here in
	"the whole host, not of commands") set -- -a ;;
	esac
	rm -f t.pb.gz
	# shellcheck disable=SC2086
	if [ "$who" = nobody ]; then
		as_nobody "perfwalk record $options -o t.pb.gz -- $*" >t.log 2>&1
		status=$?
		[ ! -e nobody/t.pb.gz ] || mv nobody/t.pb.gz .
	elif [ "$1" = -a ]; then
		perfwalk record $options -o t.pb.gz -a -d 1 >t.log 2>&1
		status=$?
	else
		perfwalk record $options -o t.pb.gz -- "$@" >t.log 2>&1
		status=$?
	fi
	case $here in
	"the whole host" | "own processes and commands")
		[ $status -eq 0 ] && seen t.pb.gz "$event" "$pattern" ;;
	"the whole host, not of commands") [ $status -eq 0 ] ;;
	"not here") [ $status -ne 0 ] && [ ! -e t.pb.gz ] && grep -qF "$why" t.log ;;
	*) false ;;
	esac
}

every_type() # WHO
{
	if [ "$1" = nobody ]; then
		as_nobody "perfwalk list types" >types
	else
		perfwalk list types >types
	fi
	# What nobody cannot see of a block has no stack, but its time.
	blocked='wait_sleep|\[not seen\]' wall='wait_sleep|\[not seen\]|waits'
	[ "$1" = nobody ] || blocked='^waits;\[wait: sleep\].*;wait_sleep'
	tried "$1" "CPU time" "" "$cpu_event" '^blip;.*;blip_burn' /w/blip 2000
	tried "$1" "off-CPU time" --off-cpu off_cpu "$blocked" /w/waits 20
	tried "$1" "off-CPU time" --wall wall "$wall" /w/waits 20
	# Its name is read from the process, which may have ended before on a slow machine.
	tried "$1" locks --locks off_cpu '\[lock [^;]*\];.*;take_pool;' /w/locks 50
	tried "$1" "memory growth" --memory memory_growth '^growth;.*growth_small' /w/growth 64 0
	[ -z "$library" ] || tried "$1" allocations --alloc alloc_space '^heap;.*allocate_large' /w/heap
}

# Each wait of the workload has its reason, whatever this kernel calls its functions. Its forks lock the memory of all
# threads, which may wait for that, too.
reasons()
{
	for _ in 1 2 3; do
		perfwalk record --off-cpu -o r.pb.gz -- /w/waits 40 >r.log 2>&1 && perfwalk convert -e off_cpu r.pb.gz -o r.folded >>r.log 2>&1
		status=$?
		[ $status -eq 0 ] && grep -q ';wait_lock;' r.folded && break
	done
	for pair in "lock:lock" "condition:condition lock" sleep:sleep poll:poll epoll:poll pipe:pipe network:network \
		"file_lock:file lock" signal:signal child:child; do
		kind=${pair%%:*}
		eval "$(awk -v kind="wait_$kind" -v reasons="${pair#*:}" '
			index($0, ";" kind ";") || index($0, ";" kind " ") {
				n = $NF; all += n
				r = $0; sub(/^[^[]*\[wait: /, "", r); sub(/\].*/, "", r)
				if (r == "kernel lock") { all -= n; next }
				if (r == reasons || index(" " reasons " ", " " r " ")) right += n
			} END { printf "all=%d right=%d\n", all, right }' r.folded)"
		[ $status -eq 0 ] && [ "$all" -gt 0 ] && [ $((right * 100)) -ge $((all * 95)) ]
		check $? "reason of a block: ${pair#*:}: $((right / 1000)) of $((all / 1000)) ms in wait_$kind" r.log r.folded
	done
}

# Threads that are blocked since before the capture, of which the kernel tells neither a frame pointer nor a return address.
hanging()
{
	/w/hangs >hangs.out &
	program=$!
	for _ in $(seq 100); do
		[ "$(wc -l <hangs.out)" -lt 6 ] || break
		sleep 0.1
	done
	sleep 1
	perfwalk record --off-cpu --idle -d 2 -p $program -o h.pb.gz >h.log 2>&1 && perfwalk convert -e off_cpu h.pb.gz -o h.folded >>h.log 2>&1
	kill $program
	wait $program
	lacking=$(grep -v '^?' hangs.out | while read -r chain; do
		grep -v "unwind information\|truncated\|broken" h.folded | grep -q ";$chain[; ]" || printf ' %s' "$chain"
	done)
	[ -s h.folded ] && [ -z "$lacking" ]
	check $? "threads that hang: $(grep -cv '^?' hangs.out) chains${lacking:+, but not$lacking}" h.log h.folded hangs.out
}

# Sums of known allocations, which are judged outside.
estimate()
{
	PERFWALK_ALLOC_BYTES=65536 perfwalk record --alloc -o heap.perf.txt -- /w/heap >heap.out 2>&1
	echo >>heap.out
	echo "STACKS heap $(cat heap.out heap.perf.txt | gzip -c | base64 -w 0)" >&3
}

probes()
{
	marker="-e usdt:/w/marked:marked:pass/name=pass/"
	if older_than 4 20; then
		# shellcheck disable=SC2086
		perfwalk record $marker -o u.pb.gz -- /w/marked >u.log 2>&1
		status=$?
		[ $status -ne 0 ] && grep -q "need Linux 4.20" u.log
		check $? "a marker that counts who watches it: exit status $status, and the text says why" u.log
		marker=
	fi
	# shellcheck disable=SC2086
	perfwalk record -e uprobe:/w/marked:work $marker -o u.pb.gz -- /w/marked >u.log 2>&1
	status=$?
	eval "$(sed -nE 's/^work ([0-9]+) marker ([0-9]+) watched ([0-9]+)$/calls=\1 passes=$((\2 + \3))/p' u.log)"
	# One event alone has no line of its own.
	[ $status -eq 0 ] && grep -qE "^(  marked:work|Samples) +$(echo "$calls" | sed -E 's/([0-9])([0-9]{3})$/\1,\2/')( |\$)" u.log &&
		{ [ -z "$marker" ] || grep -qE "^  pass +$passes( |\$)" u.log; }
	check $? "probes of user code: $calls calls of a function${marker:+ and $passes passes of a marker}" u.log
}

if [ -e /w/waits ]; then
	every_type root
	if mount -t tracefs none /sys/kernel/tracing 2>/dev/null || mount -t debugfs none /sys/kernel/debug 2>/dev/null; then
		every_type "root with tracefs"
		reasons
		hanging
		if grep -q "^allocations .*the whole host" types; then
			probes
			estimate
		fi
		umount /sys/kernel/tracing 2>/dev/null || umount /sys/kernel/debug
	else
		skip "tracepoints: this kernel has neither tracefs nor debugfs"
	fi
	every_type nobody
else
	skip "types of profiles besides CPU time: not on this processor"
fi

# ---- Suspend: all CPUs but the first go and come, and perfwalk is frozen meanwhile ----

if grep -q mem /sys/power/state 2>/dev/null && [ -w /sys/class/rtc/rtc0/wakealarm ]; then
	start_record sleepy
	echo +3 >/sys/class/rtc/rtc0/wakealarm && echo mem >/sys/power/state
	check $? "suspended and woken by the clock" sleepy.log
	for _ in $(seq 100); do
		grep -q "CPU $LAST came online" sleepy.log && break
		sleep 0.1
	done
	pin woken $LAST $seconds
	stop_record
	check_again sleepy.folded woken "CPU $LAST after a suspend" sleepy.log
	note "the log:$(sed -n 's/.*\(CPU 1 .*\)/ \1;/p' sleepy.log | tr -d '\n')"
else
	skip "suspend: this kernel cannot"
fi

# ---- Control groups v1 alone ----

if mkdir groups && mount -t tmpfs groups groups && mkdir groups/cpu groups/memory && mount -t cgroup -o cpu cpu groups/cpu; then
	mount -t cgroup -o memory memory groups/memory # of some kernels only by a parameter
	check_container groups/cpu "control groups v1 alone"
else
	skip "control groups v1: this kernel has none"
fi

echo "AGAIN $MORE" >&3
echo END >&3
poweroff -f
