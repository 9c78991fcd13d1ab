#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle.sh BINDIR SYSCONFDIR LIBDIR DOCDIR ARCHIVE LIBRARY...: what `make bundle` makes in the build directory:
# what make install installs, with every library that perfwalk needs, the C library among them, in LIBDIR, and their
# licences in DOCDIR/libraries. To be unpacked in / of any Linux of the same processor; nothing of what it brings is
# seen by other programs. The LIBRARYs are loaded at run time: the program does not name them. The default config is in
# DOCDIR, so that one that the host has is not overwritten. Beside the archive goes the list of its parts (SPDX), of the
# version $VERSION, with $LIBIBERTY linked in.
set -eu

umask 022
bindir=$1 sysconfdir=$2 libdir=$3 docdir=$4 archive=$5
licences=$docdir/libraries
shift 5
date=$(sh "$(dirname "$0")/source-date.sh" "$(dirname "$0")/..")
stage=$(mktemp -d)
files=$(mktemp)
trap 'rm -rf "$stage" "$files"' EXIT INT TERM

loader=$(sh "$(dirname "$0")/loader.sh" perfwalk)

# processor and word size
kind_of() { readelf -h "$1" | sed -n 's/^ *\(Class\|Machine\)://p'; }

# the first library of that name that perfwalk can load
find_library()
{
	for candidate in $(PATH=$PATH:/sbin ldconfig -p | awk -v name="$1" '$1 == name { print $NF }'); do
		[ "$(kind_of "$candidate")" != "$kind" ] || { echo "$candidate"; return; }
	done
}

kind=$(kind_of perfwalk)
loaded=
for name; do
	path=$(find_library "$name")
	if [ -z "$path" ]; then
		echo "bundle: $name is not installed, and without it the bundle would lack a part of perfwalk; install its package" >&2
		exit 1
	fi
	loaded="$loaded $path"
done

# soname and path of each, with those that they need in turn
# shellcheck disable=SC2086
needed=$(ldd ./perfwalk $loaded)
if echo "$needed" | grep 'not found' >&2; then
	echo "bundle: these libraries are not there; install their packages" >&2
	exit 1
fi
{
	for path in $loaded; do
		echo "$(basename "$path") $path"
	done
	echo "$(basename "$loader") $loader"
	echo "$needed" | awk '$2 == "=>" { print $1, $3 }'
} | LC_ALL=C sort -u >"$files"

${MAKE:-make} -s install DESTDIR="$stage" >/dev/null
strip -o "$stage$bindir/perfwalk" bundle/perfwalk
mkdir -p "$stage$libdir" "$stage$licences"
mv "$stage$sysconfdir/perfwalk/perfwalk.conf" "$stage$docdir/"
rmdir -p --ignore-fail-on-non-empty "$stage$sysconfdir/perfwalk"
while read -r name path; do
	cp -L "$path" "$stage$libdir/$name"
	# Debian's packages know files by the names from before /lib and /usr/lib became one.
	path=$(realpath "$path")
	package=$(dpkg -S "$path" "${path#/usr}" 2>/dev/null | sed -n '1s/:.*//p') || package=
	licence=/usr/share/doc/$package/copyright
	if [ -n "$package" ] && [ -e "$licence" ]; then
		cp -L "$licence" "$stage$licences/$package"
		echo "$name $package $(dpkg-query -W -f '${Version}' "$package" | head -n 1)"
	else
		echo "$name (of no package)"
	fi
done <"$files" >"$stage$licences/LIST"
# shellcheck disable=SC2046
python3 "$(dirname "$0")/sbom.py" --version "$VERSION" --date "$date" --bundled --static "libiberty.a=$LIBIBERTY" \
	"$stage$bindir/perfwalk" $(tr ' ' = <"$files") >"${archive%.tar.xz}.spdx.json" || {
	echo "bundle: the list of parts, ${archive%.tar.xz}.spdx.json, cannot be made; it needs python3" >&2
	exit 1
}
# Files, and the directories for what the daemon keeps, which are empty: others that the host has keep their owners
# and modes.
(cd "$stage" && find ./* -type f -o -type d -empty | LC_ALL=C sort) |
	tar --format=posix --mtime="@$date" --owner=0 --group=0 --numeric-owner \
		--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f -C "$stage" -T - -cJf "$archive"
echo "$archive: $(du -h "$archive" | cut -f1), perfwalk with $(wc -l <"$files") libraries; unpack it with: tar -xJf $(basename "$archive") -C /"
