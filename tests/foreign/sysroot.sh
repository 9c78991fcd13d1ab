#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# sysroot.sh aarch64|riscv64 [interpreters|java|java-VERSION|python|native]: what a build for another processor needs of Debian,
# unpacked once and kept outside the tree; or its interpreters, its Java, the Python or a Java of Debian 13, or all that a build
# on such a host needs (native). Nothing of this host changes. The directory is the only line on standard output.
# It holds
#   root/      libraries with their headers, and busybox; dpkg-query --admindir tells which package a file is of
#   rust/      aarch64: a rustc for this host with a library for both processors
#   apt.conf   for APT_CONFIG: apt commands that know the other processor
# Debian 12 has no riscv64, so that comes of its successor. Exit 77 with a reason on standard error where there is no
# apt-get; 1 when a package cannot be had.
set -u

processor=${1:-}
packages="libelf-dev libdw-dev libprotobuf-c-dev libcurl4-openssl-dev libinih-dev zlib1g-dev nettle-dev liblzma-dev
	libzstd-dev libdeflate-dev libncurses-dev libmicrohttpd-dev libiberty-dev libc6-dev busybox-static"
case $processor in
aarch64) debian=arm64 suite= packages="$packages libstdc++-12-dev libstd-rust-dev" ;;
riscv64) debian=riscv64 suite=trixie ;;
*)
	echo "usage: sysroot.sh aarch64|riscv64 [interpreters|java|java-VERSION|python|native]" >&2
	exit 1 ;;
esac
case ${2:-} in
interpreters) packages="busybox-static python3 php-cli ruby nodejs" ;;
java) packages="busybox-static default-jre-headless" ;;
java-*) suite=trixie packages="busybox-static openjdk-${2#java-}-jre-headless" ;;
python) suite=trixie packages=python3 ;;
native) packages="?essential g++ $(sed -n '/^needed="/,/"$/p' "$(dirname "$0")/../../etc/quickstart.sh" | sed 's/needed=//; s/"//g')" ;;
esac
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/sysroot-$processor${2:+-$2}
archives=$cache/apt/cache/archives

if [ -e "$cache/complete" ]; then
	echo "$cache"
	exit 0
fi
for program in apt-get dpkg-deb; do
	command -v $program >/dev/null 2>&1 || { echo "$program is not installed" >&2; exit 77; }
done

# Lists and packages of its own, from the mirrors of this host.
configure_apt()
{
	mkdir -p "$cache/apt/state/lists/partial" "$archives/partial" || return 1
	: >"$cache/apt/status"
	cat >"$cache/apt.conf" <<-END
		APT::Architecture "$debian";
		APT::Architectures { "$debian"; };
		APT::Install-Recommends "0";
		APT::Sandbox::User "root";
		Dir::State "$cache/apt/state";
		Dir::State::status "$cache/apt/status";
		Dir::Cache "$cache/apt/cache";
	END
	[ -n "$suite" ] || return 0
	mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
		awk '/^Debian / { print $2; exit }') && [ -n "$mirror" ] || return 1
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$cache/apt/sources.list"
	cat >>"$cache/apt.conf" <<-END
		Dir::Etc::sourcelist "$cache/apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
	END
}

download()
{
	export APT_CONFIG="$cache/apt.conf"
	apt-get -q update || return 1
	# shellcheck disable=SC2086
	apt-get -qy install --download-only $packages
	status=$?
	unset APT_CONFIG
	return $status
}

# As dpkg would have them, but for their scripts.
unpack() # PACKAGE
{
	info=$cache/root/var/lib/dpkg/info/$(dpkg-deb -f "$1" Package)
	dpkg-deb --fsys-tarfile "$1" | tar -xvf - --keep-directory-symlink -C "$cache/root" |
		sed -n 's|/$||; s|^\./|/|p' >"$info.list" || return 1
	{
		dpkg-deb -f "$1" | sed '1a Status: install ok installed'
		echo
	} >>"$cache/root/var/lib/dpkg/status"
}

unpack_all()
{
	rm -rf "$cache/root" && mkdir -p "$cache/root/var/lib/dpkg/info" "$cache/root/usr/lib" \
		"$cache/root/usr/bin" "$cache/root/usr/sbin" || return 1
	ln -s usr/lib usr/bin usr/sbin "$cache/root/"
	for package in "$archives"/*.deb; do
		unpack "$package" || return 1
	done
}

rust()
{
	[ $processor = aarch64 ] || return 0
	version=$(sed -n 's/^Package: libstd-rust-\([0-9]\..*\)/\1/p' "$cache/root/var/lib/dpkg/status")
	mkdir -p "$cache/rust" && cd "$cache/rust" && apt-get -q -o APT::Sandbox::User=root download rustc "libstd-rust-$version" || return 1
	for package in *.deb; do
		dpkg-deb -x "$package" . || return 1
	done
	rm -f ./*.deb
	ln -sf "$cache/root/usr/lib/rustlib/aarch64-unknown-linux-gnu" usr/lib/rustlib/
}

{
	configure_apt && download && unpack_all && { [ $# -gt 1 ] || (rust); } && rm -rf "$archives" && touch "$cache/complete"
} >&2 || exit 1
echo "$cache"
