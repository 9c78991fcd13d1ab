#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone on Debian 12 to a flame graph of this host: sh etc/quickstart.sh [SECONDS]
#
# Installs what the build and make deb bundle need (through apt, only what is missing), builds in build/, captures the
# whole host as it is for some seconds, and shows the summary and where the files are.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=${BUILD:-$top/build}
seconds=${1:-10}
log=$build/quickstart.log
output=${OUTPUT:-$build/capture}
needed="gcc make autoconf automake pkg-config protobuf-c-compiler libc6-dev libdw-dev libelf-dev
	libprotobuf-c-dev libcurl4-openssl-dev libinih-dev zlib1g-dev liblzma-dev libzstd-dev libdeflate-dev
	nettle-dev libiberty-dev libncurses-dev libmicrohttpd-dev python3 xz-utils"

say() { printf '%s\n' "$*"; }
die()
{
	say "$*" >&2
	exit 1
}

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null 2>&1; then
		as_root=sudo
	else
		say "not root and no sudo: the whole host can only be captured as root" >&2
	fi
fi

install_missing()
{
	command -v dpkg-query >/dev/null 2>&1 || {
		say "This is no Debian; the build needs what these packages hold:" $needed
		return 0
	}
	missing=
	for package in $needed; do
		case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
		*" installed") ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	[ "$(id -u)" -eq 0 ] || [ -n "$as_root" ] || die "run as root: apt-get install$missing"
	say "Installing what the build needs:$missing"
	step "  apt-get update" $as_root apt-get update
	# shellcheck disable=SC2086
	step "  apt-get install" $as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends $missing
}

# step TEXT COMMAND...: runs a command quietly; its output is shown when it fails.
step()
{
	say "$1"
	shift
	"$@" >"$log" 2>&1 || {
		tail -n 30 "$log" >&2
		die "failed; all of it is in $log"
	}
}

# Busy CPUs, in hundredths, over half a second.
busy_percent()
{
	{
		head -n 1 /proc/stat
		sleep 0.5
		head -n 1 /proc/stat
	} | awk '{ idle[NR] = $5 + $6; all[NR] = 0; for (i = 2; i <= 9; i++) all[NR] += $i }
		END { d = all[2] - all[1]; print d ? int(100 * (1 - (idle[2] - idle[1]) / d)) : 0 }'
}

mkdir -p "$build" || exit 1
install_missing
[ -x "$top/configure" ] || step "Preparing the build (autoreconf)" autoreconf -fi "$top"
cd "$build" || exit 1
[ -f config.status ] || step "Configuring in $build" "$top/configure"
step "Compiling" make -j"$(nproc)"

busy=$(busy_percent)
[ "$busy" -ge 5 ] || say "This host is idle (${busy}% busy): there will be little to see. Start something and run this again."
say "Capturing the whole host for $seconds seconds"
$as_root "$build/perfwalk" record -a -d "$seconds" -o "$output.html" -o "$output.folded" -o "$output.pb.gz"
status=$?
[ $status -eq 0 ] || die "perfwalk record left with status $status"
[ -z "$as_root" ] || $as_root chown "$(id -u):$(id -g)" "$output.html" "$output.folded" "$output.pb.gz"
say
say "Flame graph: $output.html (open it in a browser)"
