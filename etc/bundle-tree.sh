#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle-tree.sh STAGE PROGRAM BINDIR LIBDIR DOCDIR PARTS LIBRARY...: in the build directory, makes the directory STAGE
# with what make install installs, with every library that perfwalk needs, the C library among them, in LIBDIR, and
# their licences in DOCDIR/libraries. PROGRAM is linked to be started by the C library there; it takes the place of
# the one that is installed. The LIBRARYs are loaded at run time: the program does not name them. PARTS is the list of
# the parts (SPDX), of the version $VERSION, with $LIBIBERTY linked in. What is built for another processor has its
# libraries below $SYSROOT, with the database of dpkg, and $EXE_WRAPPER runs it.
set -eu

command -v python3 >/dev/null 2>&1 || {
	echo "bundle: python3, which lists the parts, is not installed; on Debian: apt-get install python3" >&2
	exit 1
}
umask 022
stage=$1 program=$2 bindir=$3 libdir=$4 docdir=$5 parts=$6
licences=$docdir/libraries root=${SYSROOT:-}
[ -z "$root" ] || export DPKG_ADMINDIR="$root/var/lib/dpkg"
shift 6
files=$(mktemp)
trap 'rm -f "$files"' EXIT INT TERM

loader=$(sh "$(dirname "$0")/loader.sh" perfwalk)

# The loader lists what it loads, those of run time included: soname and path.
needed=$(${EXE_WRAPPER:-} "$root$loader" --preload "$*" --list ./perfwalk 2>/dev/null | awk '$1 !~ "/" && $2 == "=>" { print $1, $3 }')
for name; do
	echo "$needed" | grep -q "^$name " || {
		echo "bundle: $name is not installed, and without it the bundle would lack a part of perfwalk; install its package" >&2
		exit 1
	}
done
if echo "$needed" | grep ' not$' >&2; then
	echo "bundle: these libraries are not there; install their packages" >&2
	exit 1
fi
{
	echo "$(basename "$loader") $loader"
	echo "$needed"
} | LC_ALL=C sort -u >"$files"

${MAKE:-make} -s install DESTDIR="$stage" >/dev/null
${STRIP:-strip} -o "$stage$bindir/perfwalk" "$program"
for library in "$stage$libdir"/*.so; do # ours, for other programs; not every processor has it
	[ ! -e "$library" ] || ${STRIP:-strip} --strip-unneeded "$library"
done
mkdir -p "$stage$libdir" "$stage$licences"
# A library's file, as the host knows it that it is for.
real()
{
	path=$(realpath "$root$1")
	echo "${path#"$root"}"
}
# Debian's packages know files by the names from before /lib and /usr/lib became one. dpkg is slow: it is asked once.
# shellcheck disable=SC2046
owners=$(dpkg -S $(while read -r name path; do real "$path"; done <"$files" | sed 'p; s|^/usr||') 2>/dev/null) || :
while read -r name path; do
	cp -L "$root$path" "$stage$libdir/$name"
	path=$(real "$path")
	package=$(echo "$owners" | awk -v path="$path" '$NF == path || "/usr" $NF == path { sub("[:,].*", ""); print; exit }')
	licence=$root/usr/share/doc/$package/copyright
	if [ -n "$package" ] && [ -e "$licence" ]; then
		cp -L "$licence" "$stage$licences/$package"
		echo "$name $package $(dpkg-query -W -f '${Version}' "$package" | head -n 1)"
	else
		echo "$name (of no package)"
	fi
done <"$files" >"$stage$licences/LIST"
# shellcheck disable=SC2046
python3 "$(dirname "$0")/sbom.py" --version "$VERSION" --date "$(sh "$(dirname "$0")/source-date.sh" "$(dirname "$0")/..")" \
	--bundled --static "libiberty.a=$LIBIBERTY" "$stage$bindir/perfwalk" $(sed "s| |=$root|" "$files") >"$parts" || {
	echo "bundle: the list of parts, $parts, cannot be made" >&2
	exit 1
}
