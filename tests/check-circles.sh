#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Circles of links inside a room: files of which each needs a function or variable of the next, and
# the last one of the first. Such files cannot be understood, tested or moved one by one. Headers do
# not show them, so this looks at the symbols of the objects of each library.
#
# Fails on a circle that is not in the list below, and on an entry of the list that has gone.
#
# Part of `make check`, which runs it in the build directory; works by hand there as well.
set -u

# Files that are one idea in several files, which may need each other: the room's library and the
# files. Whoever adds a line says why.
known()
{
	# A process is its life, what /proc says of it, its cgroup, mappings and threads (internal.h).
	echo "libhost cgroup info mapping process thread"
}

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
symbols=$scratch/symbols list=$scratch/list new=$scratch/new

# ROOM FILE TYPE SYMBOL of each symbol. An archive is a room.
print_symbols()
{
	for archive in lib*.a; do
		"${NM:-nm}" -A "$archive" | sed -n \
			's/^\(lib[^:]*\)\.a:\([^:]*\)\.o:[0-9a-f ]* \([A-Za-z]\) \(.*\)$/\1 \2 \3 \4/p'
	done
}

[ -f libutil.a ] || { echo "no libraries in $(pwd): run make, and this in the build directory"; exit 99; }
print_symbols >"$symbols"

circles=$(awk '
	$3 ~ /^[TDBRCVWuG]$/ { home[$1, $4] = $2 }
	{ files[$1, $2] = 1; rooms[$1] = 1; line[NR] = $0 }
	END {
		for (i = 1; i <= NR; i++) {
			split(line[i], s)
			if (s[3] != "U" || !((s[1], s[4]) in home))
				continue
			if (home[s[1], s[4]] != s[2])
				needs[s[1], s[2], home[s[1], s[4]]] = 1
		}
		for (room in rooms) {
			n = 0
			for (f in files) {
				split(f, part, SUBSEP)
				if (part[1] == room)
					name[++n] = part[2]
			}
			close_over(room, n)
			print_circles(room, n)
		}
	}
	# Whoever needs b needs what b needs.
	function close_over(room, n,   a, b, c)
	{
		for (b = 1; b <= n; b++)
			for (a = 1; a <= n; a++)
				for (c = 1; (room, name[a], name[b]) in needs && c <= n; c++)
					if ((room, name[b], name[c]) in needs)
						needs[room, name[a], name[c]] = 1
	}
	function print_circles(room, n,   a, b, text, seen)
	{
		for (a = 1; a < n; a++)
			for (b = a + 1; b <= n; b++)
				if (name[b] < name[a]) {
					text = name[a]
					name[a] = name[b]
					name[b] = text
				}
		for (a = 1; a <= n; a++) {
			if (a in seen || !((room, name[a], name[a]) in needs))
				continue
			text = room
			for (b = a; b <= n; b++)
				if ((room, name[a], name[b]) in needs && (room, name[b], name[a]) in needs) {
					text = text " " name[b]
					seen[b] = 1
				}
			print text
		}
	}' "$symbols" | sort)

# What is known may become smaller, but not larger.
echo "$circles" | while read -r room files; do
	[ -n "$room" ] || continue
	known | grep "^$room " >"$list"
	found=
	while read -r _ allowed; do
		outside=
		for file in $files; do
			case " $allowed " in *" $file "*) ;; *) outside=$file ;; esac
		done
		[ -n "$outside" ] || found=yes
	done <"$list"
	[ -n "$found" ] || echo "$room: these files need each other: $files"
done >"$new"
# A line of the list without a circle hides the next one.
known | while read -r room allowed; do
	echo "$circles" | while read -r where files; do
		[ "$where" = "$room" ] || continue
		case " $allowed " in *" ${files%% *} "*) echo yes ;; esac
	done | grep -q yes || echo "$room: no circle any more, take it off the list: $allowed"
done >>"$new"

cat "$new"
echo "$(wc -l <"$symbols") symbols looked at"
[ ! -s "$new" ]
