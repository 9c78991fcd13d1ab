#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What is built from the same sources is the same, to the byte: sh tests/reproducible.sh, or make check-reproducible.
#
# Clones HEAD twice and builds each clone whole, in ways that differ in what a build must not depend on: where the
# sources and the build are and how one finds the other, umask, locale, time zone (the local dates differ, whatever the
# hour), home, and how many jobs there are. Compares what make install puts into DESTDIR, the program that it is
# made of, and the archives of make archives: the sources, the bundle, the packages, and the lists of their parts.
# Takes as long as four builds; $CC is the compiler, without ccache.
#
# REPRODUCIBLE_WORK=DIR is where the clones are: /var/tmp. They are removed, but for those that differ.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
jobs=$(nproc 2>/dev/null || echo 1)
work=

say() { printf '%s\n' "$*"; }
die()
{
	say "$*" >&2
	exit 1
}

trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# Any that is not the C locale.
other_locale() { locale -a 2>/dev/null | grep -vixE 'C|POSIX' | LC_ALL=C sort -r | head -n 1; }

# build UMASK TIMEZONE LOCALE JOBS SRCDIR-AS-THE-BUILD-SEES-IT BUILD DESTDIR: what make install and make archives make.
build()
{
	umask "$1"
	export TZ="$2" LC_ALL="$3" HOME="$6" CCACHE_DISABLE=1 MAKEFLAGS=
	unset SOURCE_DATE_EPOCH LANG
	cd "$6" &&
		"$5/configure" --prefix=/usr --sysconfdir=/etc --localstatedir=/var CC="${CC:-gcc}" &&
		make -j"$4" && make install DESTDIR="$7" && make archives
}

# attempt NAME LOG: says it, runs the rest of the line; the end of its output where it fails.
attempt()
{
	say "$1"
	log=$2
	shift 2
	("$@") >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "failed"
	}
}

prepare() # UMASK SRCDIR BUILD
{
	umask "$1"
	git -c advice.detachedHead=false clone -q --no-hardlinks "$top" "$2" && cd "$2" && autoreconf -fi && mkdir -p "$3"
}

# Name, mode and sum of each file that is to be the same. Modes of directories are those of umask.
list() # BUILD DESTDIR
{
	(cd "$2" && find . -type f -printf 'installed %P %m\n' && find . -type l -printf 'installed %P -> %l\n')
	(cd "$2" && find . -type f -exec sha256sum {} + | sed 's/^/sum of installed /')
	(cd "$1" && sha256sum perfwalk bundle/perfwalk perfwalk*.tar.xz perfwalk*.spdx.json perfwalk*.deb perfwalk*.rpm)
}

work=$(mktemp -d "${REPRODUCIBLE_WORK:-/var/tmp}/perfwalk-reproducible.XXXXXX") || exit 1
git -C "$top" rev-parse -q --verify HEAD >/dev/null || die "$top is no clone: there is nothing to clone from"
one=$work/one other=$work/a/longer/path/to/the/other
mkdir -p "$other"

attempt "Cloning HEAD once" "$work/clone-one.log" prepare 022 "$one/src" "$one/src/build"
attempt "Cloning HEAD again" "$work/clone-other.log" prepare 077 "$other/perfwalk" "$other/objects"
attempt "Building once" "$work/build-one.log" build 022 UTC+12 C "$jobs" .. "$one/src/build" "$one/installed"
locale=$(other_locale)
attempt "Building again, elsewhere, with locale ${locale:=C.UTF-8}" "$work/build-other.log" \
	build 077 UTC-14 "$locale" 1 "$other/perfwalk" "$other/objects" "$other/installed"

list "$one/src/build" "$one/installed" | LC_ALL=C sort >"$work/list-one"
list "$other/objects" "$other/installed" | LC_ALL=C sort >"$work/list-other"
n=$(grep -c '^installed' "$work/list-one")
[ "$n" -gt 0 ] || die "nothing was installed"
if ! diff "$work/list-one" "$work/list-other"; then
	say "these differ; both are in $work"
	work=
	exit 1
fi
say "the same: $n installed files, the programs before they are stripped, and the archives:"
(cd "$one/src/build" && cat SHA256SUMS)
