#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The README's two commands on a bare Debian 12: sh tests/fresh.sh [TEST...], or make check-fresh. As root.
#
# Makes a root file system with debootstrap and nothing in it but the essential packages, clones HEAD
# into it and runs etc/quickstart.sh and tests/run.sh there (with the names of tests, these only),
# both to their ends, and make deb bundle between them. Passes when nothing fails and nothing is skipped. The mirror, and what apt, Go, npm,
# pip and cargo are told on this host, are carried over, with its certificates. Everything
# else is as Debian makes it, and all caches are cold. Takes 5 GB and an hour or more; all of it is removed.
#
# FRESH_DIR=DIR is where the clone is in the new root: perfwalk in root's home, which others may not enter.
# FRESH_WORK=DIR is where the root is made: /var/tmp. Logs: build-tests/fresh (or $TEST_BUILD/fresh).
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
logs=${TEST_BUILD:-$top/build-tests}/fresh
home=$(getent passwd 0 | cut -d: -f6)
clone=${FRESH_DIR:-$home/perfwalk}
suite=bookworm
work= namespace=

say() { printf '%s\n' "$*"; }
die()
{
	say "$*" >&2
	exit 1
}

# Ends what still runs in the root, process by process, and removes it. Its mounts end with them.
cleanup()
{
	if [ -n "$namespace" ] && [ -s "$namespace" ]; then
		for process in /proc/[0-9]*; do
			[ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$(cat "$namespace")" ] ||
				kill -KILL "${process#/proc/}" 2>/dev/null
		done
		sleep 1
	fi
	[ -z "$work" ] || rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# What apt has on this host of the suite: address, release and component of each archive.
archives()
{
	# shellcheck disable=SC2016 # names that apt replaces
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -n "s/^Debian \\(.* $suite[a-z-]* .*\\)/\\1/p"
}

make_root()
{
	mirror=$(archives | awk -v suite=$suite '$2 == suite { print $1; exit }')
	[ -n "$mirror" ] || die "apt on this host has no archive of Debian's $suite: add one to its sources, and run apt-get update"
	say "Making a bare root with debootstrap"
	debootstrap --variant=minbase $suite "$work/root" "$mirror" >"$logs/debootstrap.log" 2>&1 || {
		tail -n 5 "$logs/debootstrap.log" >&2
		die "debootstrap failed; all of it is in $logs/debootstrap.log"
	}
	archives | sed 's/^/deb /' >"$work/root/etc/apt/sources.list"
	# A root that is thrown away need not survive a power cut.
	echo force-unsafe-io >"$work/root/etc/dpkg/dpkg.cfg.d/fresh"
}

# What the ordinary clients are told on this host: proxies, registries and certificates.
carry_settings()
{
	apt-config dump | grep -iE '^Acquire::(https?|ftp|retries|forceipv)' >"$work/root/etc/apt/apt.conf.d/99host"
	cp /etc/hosts /etc/resolv.conf "$work/root/etc/"
	for file in /etc/pip.conf /etc/npmrc /usr/local/share/ca-certificates "$HOME/.npmrc" "$HOME/.config/go/env" \
		"$HOME/.config/pip/pip.conf" "$HOME/.cargo/config.toml"; do
		[ -e "$file" ] || continue
		to=$file
		case $file in
		"$HOME"/*) to=$home${file#"$HOME"} ;;
		esac
		mkdir -p "$work/root${to%/*}" && cp -Rp "$file" "$work/root$to"
	done
	env | grep -iE '^((https?|ftp|all|no)_proxy|go(proxy|noproxy|private|sumdb|nosumdb|insecure)|npm_config_[a-z_]*|ssl_cert_(file|dir)|node_extra_ca_certs|git_ssl_cainfo)=' >"$work/environment"
}

# in_root COMMAND...: in the clone, with a mount namespace of its own whose root is the new one, and with
# the processes, the devices and the kernel of this host.
in_root()
{
	# shellcheck disable=SC2016 # for the inner shell
	setsid unshare -m --propagation private sh -c '
		root=$1 namespace=$2 environment=$3 clone=$4 home=$5
		shift 5
		while read -r setting; do
			set -- "$setting" "$@"
		done <"$environment"
		readlink /proc/self/ns/mnt >"$namespace" &&
			mount --bind "$root" "$root" && cd "$root" &&
			mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev &&
			mount -t tmpfs -o mode=1777 tmpfs dev/shm && mount -t tmpfs -o mode=755 tmpfs run || exit 125
		[ -e sys/kernel/tracing/events ] || mount -t tracefs tracefs sys/kernel/tracing 2>/dev/null
		pivot_root . mnt && umount -l /mnt || exit 125
		exec env -i -C "$clone" HOME="$home" TERM=dumb LANG=C.UTF-8 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
		sh "$work/root" "$namespace" "$work/environment" "$clone" "$home" "$@" </dev/null
}

# timed LOG COMMAND...: in the root, shown while it runs; sets seconds.
timed()
{
	log=$1
	shift
	begin=$(date +%s)
	say
	say "\$ $*"
	{
		in_root "$@"
		echo $? >"$work/status"
	} 2>&1 | tee "$log" &
	wait $! # which a signal ends at once
	seconds=$(($(date +%s) - begin))
	return "$(cat "$work/status")"
}

minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Read to its end before it runs: this file may change within the hour.
main()
{
	[ "$(id -u)" -eq 0 ] || die "needs root: for debootstrap, and for mounts"
	for program in debootstrap git unshare; do
		command -v $program >/dev/null 2>&1 || die "$program is not installed (apt-get install debootstrap git util-linux)"
	done
	git -C "$top" rev-parse --quiet --verify HEAD >/dev/null || die "$top is no clone of the repository"
	mkdir -p "$logs" || exit 1
	work=$(mktemp -d "${FRESH_WORK:-/var/tmp}/perfwalk-fresh.XXXXXX") || exit 1
	chmod 755 "$work"
	namespace=$work/namespace
	[ -z "$(git -C "$top" status --porcelain)" ] || say "What is not committed is not tried: HEAD is."
	make_root
	carry_settings
	mkdir -p "$work/root${clone%/*}" && git clone --quiet --no-hardlinks "$top" "$work/root$clone" || exit 1
commit=$(git -C "$work/root$clone" rev-parse --short HEAD) || exit 1

	first=failed second=failed
	timed "$logs/quickstart.log" sh etc/quickstart.sh && first=passed
	first_seconds=$seconds
	# As the README says, with what that has installed.
	timed "$logs/packages.log" make -C build deb bundle PACKAGE_XZ=0 || first=failed
	timed "$logs/run.log" sh tests/run.sh "$@" && second=passed
	second_seconds=$seconds
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/run.log" | tail -n 1)
	case $counts in
	*' 0 skipped') ;;
	*) second=failed ;;
	esac

	model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	say
	say "etc/quickstart.sh $first, tests/run.sh $second: ${counts:-not to its end}; logs: $logs"
	[ $# -gt 0 ] || say "For docs/hosts.md:
| $(date +%F) | $commit | $model, $(nproc) CPUs | $(uname -r) | $first, $(minutes "$first_seconds") | ${counts:-failed}, $(minutes "$second_seconds") |"
	[ "$first$second" = passedpassed ]
}
main "$@"; exit $?
