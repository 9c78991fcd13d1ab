#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# /init of the virtual machine of tests/kernels/run.sh: one line a check on the second serial port, what
# a failed check has seen on the console, then the end.
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

# ---- A capture ----

note "$(uname -r), $(nproc) CPUs, perf_event_paranoid $(cat $PARANOID)"
default=$(cat $PARANOID)
pin chain $LAST 600 & # killed before that
# What runs for the first time is slow in an emulated machine, slow enough to be taken for stuck.
perfwalk record -a -d 1 -o warm.folded >warm.out 2>&1
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

# Every kernel frame has a name, and a read of /dev/zero shows the way in.
check_kernel_frames() # FILE TEXT
{
	frames=$(tr ';' '\n' <"$1" | sed 's/ [0-9]*$//' | grep -c '_\[k\]$')
	unnamed=$(tr ';' '\n' <"$1" | sed 's/ [0-9]*$//' | grep '_\[k\]$' | grep -c '0x\|^\[kernel')
	[ "$frames" -gt 20 ] && [ "$unnamed" -eq 0 ] &&
		grep '^dd;' "$1" | grep -q ';[A-Za-z0-9_]*[sS]y[sS]_read_\[k\];vfs_read_\[k\]'
	set -- $? "$1" "$2"
	{
		grep '0x[0-9a-f]*_\[k\]\|;\[kernel[^;]*_\[k\]' "$2"
		grep '^dd;.*_read_\[k\]' "$2"
	} >kernel.frames
	check "$1" "$3: $frames, $unnamed without a name" kernel.frames
}
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
perfwalk run -c run.conf >run.log 2>&1 &
daemon=$!
count_payloads()
{
	n=0 named=0
	for file in payload.*; do
		[ ! -e "$file" ] || n=$((n + 1))
		gunzip -c "$file" 2>/dev/null | grep -q chain_leaf && named=$((named + 1))
	done
}
for _ in $(seq 60); do
	count_payloads
	[ "$n" -ge 2 ] && [ "$named" -ge 1 ] && break
	sleep 1
done
kill -TERM $daemon
wait $daemon
status=$?
count_payloads
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

# ---- Without root ----

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
else
	skip "perf_event_paranoid 3: this kernel's highest is 2"
fi
echo 2 >$PARANOID
as_nobody "perfwalk record -a -d 1 -o all.folded" >two.log 2>&1
status=$?
[ $status -eq 3 ] && grep -q "perf_event_paranoid is 2" two.log && grep -qE 'CAP_(PERFMON|SYS_ADMIN)' two.log
check $? "nobody's record -a at perf_event_paranoid 2: exit status $status, and the text says why" two.log
as_nobody "perfwalk record -F 499 -o own.folded -- /w/blip $((seconds * 300))" >own.log 2>&1
status=$?
all=$(awk '/^blip;/ { n += $NF } END { print n + 0 }' nobody/own.folded)
n=$(awk '/^blip;_start;.*;main;blip_burn/ { n += $NF } END { print n + 0 }' nobody/own.folded)
[ $status -eq 0 ] && [ "$n" -ge 100 ] && [ $((n * 10)) -ge $((all * 8)) ] && ! grep -q '_\[k\]' nobody/own.folded
check $? "nobody's own command at 2: exit status $status, $n of $all stacks complete, no kernel frames" \
	own.log nobody/own.folded

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

echo END >&3
poweroff -f
