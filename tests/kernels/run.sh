#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# perfwalk on other kernels: sh tests/kernels/run.sh [--processor aarch64|riscv64] [KERNEL...]
#
# Boots kernels in qemu (emulated, two CPUs, no disk, no network) with an initramfs of busybox, the built
# perfwalk and a program with a known call tree; guest.sh is what runs inside. KERNEL is a series (6.1), a
# package, a .deb (also Ubuntu's: 4.4, 4.15, 5.4, 5.15) or a vmlinuz-*; without one, the newest cloud kernel
# of every series that the configured apt sources offer. Not part of the default run: a kernel takes minutes.
#
# $PERFWALK, else build-tests/gcc/perfwalk or build/perfwalk is tested. Packages are kept in
# ~/.cache/perfwalk-tests/kernels, logs in build-tests/kernels (or $TEST_BUILD/kernels).
#
# For another processor perfwalk is built for it first, unless you name one (tests/foreign/build.sh), and programs in C, C++, Rust and Go
# run besides, whose stacks are judged here by tests/workloads/NAME.expect; on aarch64 also, at boots of their own, programs in Python,
# PHP, Ruby and JavaScript, and in Java, judged as the tests of that name in tests/system do. PARTS="checks interpreters java java-21"
# names the boots: java has Debian 12's, java-21 and java-25 have those of Debian 13.
set -u

top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/perfwalk-tests/kernels
logs=${TEST_BUILD:-$top/build-tests}/kernels
limit=${KERNEL_SECONDS:-1800} # of CPU time, that a boot may take: 100 on this processor, some 400 of another one
passed=0 failed=0 skipped=0
work= machine= sysroot= runner=
processor=$(uname -m)
if [ "${1:-}" = --processor ]; then
	processor=$2
	shift 2
fi
foreign=$top/tests/foreign
logs=$logs/$processor

say() { printf '%s\n' "$*"; }

give_up()
{
	say "$*"
	exit 1
}

cleanup()
{
	[ -z "$machine" ] || kill "$machine" 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

install_missing()
{
	missing=
	for item in $needed cpio:cpio busybox:busybox-static gcc:gcc dpkg-deb:dpkg; do
		command -v "${item%%:*}" >/dev/null 2>&1 || missing="$missing ${item#*:}"
	done
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ] ||
		give_up "missing (as root: apt-get install$missing)"
	say "installing with apt-get:$missing"
	{
		apt-get update
		# shellcheck disable=SC2086
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
	} >"$logs/apt.log" 2>&1 || give_up "apt-get failed; see $logs/apt.log"
}

# What differs: Debian's name of the processor, the programs (command:package), and where Linux finds two serial ports.
choose_processor()
{
	case $processor in
	x86_64)
		debian=amd64 variant=cloud-amd64 needed=qemu-system-x86_64:qemu-system-x86 ;;
	aarch64)
		debian=arm64 variant=cloud-arm64 needed="qemu-system-aarch64:qemu-system-arm qemu-aarch64:qemu-user
			aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-g++:g++-aarch64-linux-gnu" ;;
	riscv64)
		debian=riscv64 variant=riscv64 needed="qemu-system-riscv64:qemu-system-misc qemu-riscv64:qemu-user
			riscv64-linux-gnu-gcc:gcc-riscv64-linux-gnu riscv64-linux-gnu-g++:g++-riscv64-linux-gnu"
		# g++ brings the C library, which gcc only recommends.
		export WORKLOAD_FLAGS=-fasynchronous-unwind-tables ;; # which gcc 12 does not make by itself there
	*)
		give_up "no machine for $processor" ;;
	esac
}

# Its two serial ports are files: what the kernel says, and the guest's verdicts.
emulate() # CONSOLE RESULTS QEMU-OPTIONS...
{
	console=$1 results=$2 ports="console=ttyS0 results=ttyS1" seconds=5
	# Time is that of the instructions it has run, 250 a microsecond, so that a busy host makes nothing late in it.
	clock="-icount shift=2,sleep=off"
	shift 2
	case $processor in
	x86_64)
		# Two of its CPUs do not boot by that. By the host's time the kernel would find, where that is busy, that
		# its timer does not tick, and less is sampled in a while.
		ports="$ports no_timer_check" clock= seconds=15
		set -- -smp 2 -cpu max -serial "file:$console" -serial "file:$results" "$@" ;;
	aarch64)
		ports="console=ttyAMA0 results=ttyS0"
		# Pointers are signed by a sum that costs little.
		set -- -smp 2 -M virt -cpu max,pauth-impdef=on -serial "file:$console" \
			-chardev "file,id=results,path=$results" -device pci-serial,chardev=results "$@" ;;
	riscv64)
		# Nor do two of these.
		set -- -smp 1 -M virt -serial "file:$console" \
			-chardev "file,id=results,path=$results" -device pci-serial,chardev=results "$@" ;;
	esac
	ulimit -t "$limit"
	# A machine that stands still uses none.
	# shellcheck disable=SC2086
	exec timeout -k 10 $((limit * 4)) "qemu-system-$processor" -accel tcg $clock "$@" \
		-append "$ports seconds=$seconds quiet panic=-1 rdinit=/init $parameters"
}

find_perfwalk()
{
	if [ "$processor" != "$(uname -m)" ]; then
		sysroot=$(sh "$foreign/sysroot.sh" "$processor") || exit 1
		program=${PERFWALK:-$(sh "$foreign/build.sh" "$processor")}
		[ -x "$program" ] || exit 1
		runner="qemu-$processor -L $sysroot/root"
		export APT_CONFIG="$sysroot/apt.conf"
		return
	fi
	for program in "${PERFWALK:-}" "$top/build-tests/gcc/perfwalk" "$top/build/perfwalk"; do
		[ -n "$program" ] && [ -x "$program" ] && return 0
	done
	give_up "perfwalk is not built: see CONTRIBUTING.md, or set PERFWALK"
}

# The newest kernel of every series on offer, or of one: offered [SERIES]
offered()
{
	apt-cache pkgnames linux-image- |
		sed -nE 's/^linux-image-([0-9]+\.[0-9]+)\..*[0-9]-'$variant'$/\1 &/p' | sort -k1,1V -k2,2V |
		awk -v want="${1:-}" '{ newest[$1] = $2; if (!seen[$1]++) order[++n] = $1 }
			END { for (i = 1; i <= n; i++) if (want == "" || want == order[i]) print newest[order[i]] }'
}

# The unpacked tree of a package or a .deb, in $kernel; false: there is none.
unpack()
{
	deb=$1
	case $1 in
	*/vmlinu[xz]-*)
		kernel=$1
		[ -e "$kernel" ]
		return ;;
	*.deb) ;;
	*)
		deb=$(find "$cache" -name "$1_*_$debian.deb" | head -n 1)
		if [ -z "$deb" ]; then
			(cd "$cache" && apt-get download "$1") >"$logs/apt.log" 2>&1 || return 1
			deb=$(find "$cache" -name "$1_*_$debian.deb" | head -n 1)
		fi ;;
	esac
	name=$(basename "$deb" .deb)
	kernel=$(find "$cache/$name" -name 'vmlinu[xz]-*' 2>/dev/null | head -n 1)
	[ -n "$kernel" ] && return 0
	rm -rf "$work/deb"
	dpkg-deb -x "$deb" "$work/deb" && mkdir -p "$cache/$name" && cp "$work/deb"/boot/vmlinu[xz]-* "$cache/$name/" || return 1
	kernel=$(find "$cache/$name" -name 'vmlinu[xz]-*' | head -n 1)
	[ -n "$kernel" ]
}

# The loader of a program lists what it loads, and libcurl, which the exporter loads by name.
libraries() # FILE
{
	loader=$(sh "$top/etc/loader.sh" "$1" 2>/dev/null) || return 0
	echo "$loader"
	$runner "${sysroot:+$sysroot/root}$loader" --preload libcurl.so.4 --list "$1" |
		sed -nE 's/^.* => (\/.*) \(0x[0-9a-f]+\)$/\1/p'
}

# A program with every library it loads, at the paths it looks for them.
add_program() # FILE PATH-INSIDE
{
	mkdir -p "$root$(dirname "$2")"
	cp "$1" "$root$2" || exit 1
	libraries "$1" | while read -r library; do
		[ -e "$root$library" ] || case $library in
		"$root"/* | "$work"/* | "${sysroot:-$work}"/*) ;;
		*) mkdir -p "$root$(dirname "$library")" && cp -L "${sysroot:+$sysroot/root}$library" "$root$library" ;;
		esac
	done
}

workloads() # DIRECTORY NAME...
{
	sh "$top/tests/workloads/build.sh" "$@" >>"$logs/workloads.log" 2>&1 ||
		give_up "the workloads do not build; see $logs/workloads.log"
}

# Programs whose stacks are judged outside, each in the ways that make a stack of this processor different: with return
# addresses that are signed and with landing pads, and with frame records alone.
build_judged()
{
	records="-fno-omit-frame-pointer -fno-asynchronous-unwind-tables"
	case $processor in
	aarch64)
		export WORKLOAD_CXX="$processor-linux-gnu-g++" GOARCH="$debian" CGO_ENABLED=0
		rust=$sysroot/rust/usr
		export WORKLOAD_RUSTC="env LD_LIBRARY_PATH=$rust/lib/$(uname -m)-linux-gnu $rust/bin/rustc
			--target $processor-unknown-linux-gnu -C linker=$WORKLOAD_CC"
		workloads "$work/plain" chain recurse frames handler vdso host cxx rusty gopher
		WORKLOAD_FLAGS="-mbranch-protection=standard" workloads "$work/signed" chain frames handler cxx
		WORKLOAD_FLAGS="$records -mno-omit-leaf-frame-pointer" workloads "$work/records" chain ;;
	riscv64)
		workloads "$work/plain" chain recurse frames handler host
		WORKLOAD_FLAGS="$records" workloads "$work/records" chain recurse frames
		known=$work/plain/chain ;; # the C library that the compiler links statically has no CFI
	esac
}

add_judged()
{
	build_judged
	for file in "$work"/plain/* "$work"/signed/* "$work"/records/*; do
		[ -e "$file" ] || continue
		flavour=$(basename "$(dirname "$file")")
		name=/j/$(basename "$file")
		[ "$flavour" = plain ] || name=$name-$flavour
		add_program "$file" "$name"
	done
}

# Programs that publish their spans, in a variable of the program, and of a library that is loaded later.
add_spans()
{
	workloads "$work/spans" spans spans-loaded
	for file in "$work"/spans/*; do
		add_program "$file" "/s/${file##*/}"
	done
}

# The capabilities of the unit, as numbers.
unit_capabilities()
{
	for name in $(sed -n 's/^CapabilityBoundingSet=//p' "$top/etc/perfwalk.service.in"); do
		sed -nE "s/^#define $name[[:space:]]+([0-9]+)$/\1/p" /usr/include/linux/capability.h
	done
}

# What the types of profiles besides CPU time are tried with.
add_types()
{
	workloads "$work/workloads" waits locks growth heap marked
	WORKLOAD_FLAGS=-mno-omit-leaf-frame-pointer workloads "$work/workloads" hangs
	for name in waits locks growth heap marked hangs; do
		add_program "$work/workloads/$name" "/w/$name"
	done
	add_library
}

add_library()
{
	library=$(dirname "$program")/alloc/libperfwalk-alloc.so
	prefix=/usr/local # as the two are built
	[ -z "$sysroot" ] || prefix=/usr
	[ ! -e "$library" ] || add_program "$library" $prefix/lib/perfwalk/libperfwalk-alloc.so
}

# As the kernel takes it. A host whose kernel has no AppArmor is told what others can do by Debian's file.
add_apparmor()
{
	features=/usr/share/apparmor-features/features
	command -v apparmor_parser >/dev/null 2>&1 && [ -e $features ] || return 0
	apparmor_parser -Q -K -S --policy-features=$features --kernel-features=$features "$top/etc/apparmor/perfwalk" >"$root/w/apparmor"
}

# The system, its shell, its users, and perfwalk.
begin_root()
{
	mkdir -p "$root/bin" "$root/dev" "$root/etc" "$root/proc" "$root/sys" "$root/tmp" "$root/w" "$root/www/cgi-bin"
	busybox=$(command -v busybox)
	[ -z "$sysroot" ] || busybox=$sysroot/root/bin/busybox
	cp "$busybox" "$root/bin/busybox"
	add_program "$program" /bin/perfwalk
	cp "$top/tests/kernels/guest.sh" "$root/init"
	printf '%s\n' 'root:x:0:0::/:/bin/sh' 'nobody:x:65534:65534::/tmp:/bin/sh' >"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' >"$root/etc/group"
	chmod 755 "$root/init" "$root" && chmod 1777 "$root/tmp"
}

pack() # FILE
{
	(cd "$root" && find . | cpio -o -H newc -R 0:0 2>/dev/null) >"$1"
}

make_initramfs()
{
	root=$work/root
	begin_root
	$runner "$root/bin/busybox" --list | grep -qx httpd || give_up "this busybox has no httpd: install busybox-static"
	if [ -n "$sysroot" ]; then
		export WORKLOAD_CC="$processor-linux-gnu-gcc"
		add_judged
		[ "$processor" != aarch64 ] || add_spans
	fi
	workloads "$work/workloads" chain-static blip
	add_program "${known:-$work/workloads/chain-static}" /w/chain
	cp "$work/workloads/blip" "$root/w/blip"
	${WORKLOAD_CC:-gcc} -O2 -o "$work/bounded" "$top/tests/kernels/bounded.c" || give_up "bounded.c does not compile"
	add_program "$work/bounded" /w/bounded
	unit_capabilities >"$root/w/unit"
	[ "$processor" = riscv64 ] || add_types
	add_apparmor
	pack "$work/checks"
}

# Debian's Java; the programs are the same for each processor, and the host's compiler makes them.
make_java() # PART
{
	root=$work/$1-root
	command -v javac >/dev/null 2>&1 || give_up "missing (as root: apt-get install default-jdk-headless)"
	from=$(sh "$foreign/sysroot.sh" "$processor" "$1") || give_up "Debian's $1 for $processor cannot be had"
	mkdir -p "$root" && cp -a "$from/root/." "$root/" && rm -rf "$root/var" "$root/usr/share" || exit 1
	rm -rf "$root"/usr/lib/*/gconv "$root"/usr/lib/*/perl*
	[ -e "$root/usr/lib/jvm/default-java" ] || ln -s "$1-openjdk-$debian" "$root/usr/lib/jvm/default-java"
	begin_root
	add_library
	export WORKLOAD_CC="$processor-linux-gnu-gcc"
	workloads "$work/java-workloads" asgct
	add_program "$work/java-workloads/libasgct.so" /w/libasgct.so
	javac --release 11 -d "$root/w" "$top/tests/workloads/Calls.java" "$top/tests/workloads/Polls.java" \
		"$top/tests/workloads/Heap.java" "$top/tests/runtimes/Mix.java" >"$logs/javac.log" 2>&1 || give_up "the Java programs do not compile; see $logs/javac.log"
	cp "$top/tests/kernels/java.sh" "$root/w/$1"
	pack "$work/$1"
	rm -rf "$root" # some hundred MiB
}

# Debian's interpreters, without what only people and compilers read; nothing is compressed, as that takes an emulated
# processor long to undo.
make_interpreters()
{
	root=$work/interpreters-root
	from=$(sh "$foreign/sysroot.sh" "$processor" interpreters) || give_up "Debian's interpreters for $processor cannot be had"
	mkdir -p "$root/usr" && cp -a "$from/root/." "$root/" && rm -rf "$root/var" || exit 1
	(cd "$root/usr/share" && find . -mindepth 1 -maxdepth 1 ! -name nodejs -exec rm -rf {} +)
	rm -rf "$root"/usr/lib/*/gconv "$root"/usr/lib/python3*/test "$root"/usr/lib/ruby/gems
	begin_root
	from=$(sh "$foreign/sysroot.sh" "$processor" python) || give_up "Debian 13's Python for $processor cannot be had"
	mkdir -p "$root/python" && cp -a "$from/root/." "$root/python/" && rm -rf "$root/python/var" "$root/python/usr/share" || exit 1
	rm -rf "$root"/python/usr/lib/*/gconv "$root"/python/usr/lib/python3*/test
	mkdir -m 1777 "$root/python/tmp"
	cp "$top/tests/workloads/calls.py" "$root/python/"
	cp "$top"/tests/workloads/calls* "$root/w/"
	cp "$top/tests/kernels/interpreters.sh" "$root/w/interpreters"
	pack "$work/interpreters"
}

count()
{
	case $1 in
	PASS) passed=$((passed + 1)) ;;
	FAIL) failed=$((failed + 1)) ;;
	SKIP) skipped=$((skipped + 1)) ;;
	esac
	printf '%s\n' "$*"
}

# What a program says of itself, and what the guest has recorded of it, in one line each.
keep() # SUFFIX NAME BASE64
{
	name=${2%% *}
	file=$logs/$label.$name.$1
	echo "${2#* }" | base64 -d | gunzip >"$file"
}

judge() # NAME BASE64
{
	keep recorded "$1"
	verdict=$(PYTHONPATH=$top/tests/system python3 "$top/tests/kernels/judge.py" "$name" "$file" "$logs/$label.$name.said" 2>&1) ||
		verdict="FAIL $verdict"
	count "${verdict%% *}" "$label: $name: ${verdict#* }"
}

# The guest writes its verdicts to the second serial port, clear of what the kernel says on the first.
boot() # INITRAMFS MIB PARAMETER...: more for the kernel, as the guest has asked for; none the first time
{
	initramfs=$1 mib=$2
	shift 2
	parameters=$* again=
	label=${kernel##*/vmlinu[xz]-}
	case $parameters in
	part=*) label=$label-${parameters#part=} ;;
	?*) label=$label-again ;;
	esac
	results=$logs/$label.results
	begin=$(date +%s)
	: >"$results"
	# In the background, as a shell that waits for it can be interrupted.
	emulate "$logs/$label.console" "$results" -m "$mib" -display none -no-reboot -nic none -monitor none \
		-kernel "$kernel" -initrd "$work/$initramfs" </dev/null >"$logs/$label.qemu" 2>&1 &
	machine=$!
	wait "$machine"
	machine=
	while read -r verdict text; do
		case $verdict in
		PASS | FAIL | SKIP) count "$verdict" "$label: $text" ;;
		NOTE) say "     $label: $text" ;;
		SAID) keep said "$text" ;;
		STACKS) judge "$text" ;;
		AGAIN) again=$text ;;
		esac
	done <<-END
		$(tr -d '\r' <"$results")
	END
	if grep -q '^END' "$results"; then
		say "     $label: $(($(date +%s) - begin)) s"
	else
		count FAIL "$label: did not come to its end in $(($(date +%s) - begin)) s; see $logs/$label.console"
		tail -n 15 "$logs/$label.console"
	fi
	# shellcheck disable=SC2086
	[ -z "$again" ] || boot "$initramfs" "$mib" $again
}

mkdir -p "$cache" "$logs" || exit 1
: >"$logs/workloads.log"
choose_processor
install_missing
find_perfwalk
work=$(mktemp -d "${TMPDIR:-/tmp}/perfwalk-kernels.XXXXXX") || exit 1
parts=checks
[ "$processor" != aarch64 ] || parts="checks interpreters java"
parts=${PARTS:-$parts}
for part in $parts; do
	case $part in
	checks) make_initramfs ;;
	interpreters) make_interpreters ;;
	java | java-[1-9]*) make_java "$part" ;;
	*) give_up "no part $part: checks, interpreters, java, java-VERSION" ;;
	esac
done

[ -n "$(offered)" ] || [ $# -gt 0 ] || apt-get update >"$logs/apt.log" 2>&1
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(offered)
[ $# -gt 0 ] || give_up "apt offers no linux-image-*-$variant; name a .deb"
for item in "$@"; do
	case $item in
	[0-9]*) item=$(offered "$item") ;;
	esac
	if [ -n "$item" ] && unpack "$item"; then
		for part in $parts; do
			case $part in
			checks) boot checks 1024 ;;
			interpreters) boot interpreters 2048 part=interpreters ;;
			java*) boot "$part" 2560 "part=$part" ;;
			esac
		done
	else
		count SKIP "${item:-no such series}: no such kernel on offer (see $logs/apt.log)"
	fi
done
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
