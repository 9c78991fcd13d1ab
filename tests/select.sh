#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# select.sh BUILD: the tests that changes of the files on standard input (paths from the top, one a line) can
# break, a line each: "unit NAME" or "system NAME"; or "all". BUILD: a configured build directory, which knows
# what links what.
#
# A file of a room selects the unit tests that link the room, or one whose files include it, the two that check
# the rooms, and the system tests whose line "# Rooms:" names it ("any": every room). A file of a test selects the
# tests that use it.
# What is not known here selects all.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=$(cd "${1:?usage: select.sh BUILD}" && pwd) || exit 2
cd "$top" || exit 2
links=$(make -s -C "$build" -f Makefile -f "$top/tests/links.mk" links) && [ -n "$links" ] || exit 2

all() { echo all; exit 0; }

# The programs of make check whose lines in $links have one of these words.
units_with() # WORD...
{
	printf '%s\n' "$links" | awk -v words="$*" 'BEGIN { n = split(words, word, " ") }
		{ for (i = 1; i <= n; i++) if (index(" " $0 " ", " " word[i] " ")) { print "unit " $1; next } }'
}

# Rooms with a file that includes one of the room's.
includers() # ROOM
{
	grep -rl --include='*.[ch]' "^#[[:space:]]*include \"$1/" unwind symbolize runtimes proto src | sed 's|/[^/]*$||' | sort -u
}

named() { sed -n 's|^tests/system/\(.*\)\.py$|system \1|p'; }

room() # ROOM
{
	# shellcheck disable=SC2046
	units_with $(for r in "$1" $(includers "$1"); do echo "$r/"; done)
	[ "$1" != src/render ] || page
	printf 'unit tests/%s\n' check-circles.sh check-layers.sh
	grep -lE "^# Rooms:(.* )?($1|any)( |\$)" tests/system/*.py | named
}

# The flame graph page in a browser, which make check runs.
page()
{
	printf 'unit tests/%s\n' unit/test-render-html system/flamegraph-page.sh
}

# System tests that use a part of others, by its name in the text.
systems_with() # PATTERN
{
	# shellcheck disable=SC2046
	grep -l '^# Rooms:' $(grep -lE "$1" tests/system/*.py) /dev/null | named
}

# A module of the system tests: who imports it, also by way of another. A test: itself.
module() # NAME
{
	grep -q '^# Rooms:' "tests/system/$1.py" 2>/dev/null && echo "system $1"
	for user in $(grep -lE "^(import|from) (.*, )?$1( |,|\$)" tests/system/*.py); do
		module "$(basename "$user" .py)"
	done
}

# A file beside the unit tests: the programs made of it, or that read it.
unit_file() # PATH
{
	found=$(units_with "$1")
	[ -n "$found" ] || all
	printf '%s\n' "$found"
}

select_for() # PATH
{
	case $1 in
	*.md | NEWS | LICENSE | docs/* | .clang-format | .gitignore) ;;
	man/*.[158]) printf 'system %s\n' manual install ;;
	etc/*.mk) all ;;
	etc/kubernetes/*) printf 'system %s\n' kubernetes install ;;
	etc/image/*) printf 'system %s\n' image ;;
	etc/fleet/*) printf 'system %s\n' fleet ;;
	etc/apparmor/* | etc/selinux/*) printf 'system %s\n' policies packages ;;
	etc/bundle* | etc/loader.sh | etc/sbom.py) printf 'system %s\n' bundle packages ;;
	etc/*) printf 'system %s\n' config completion manual install packages unit ;;
	*/*.mk | *.am | *.in) all ;;
	tests/check-*.sh) echo "unit $1" ;;
	tests/fresh.sh | tests/bench/* | tests/emulated/* | tests/kernels/*) ;;
	tests/corpus/*.sh | tests/corpus/src/* | tests/fuzz/*.sh) ;;
	tests/unit/test.h) all ;;
	tests/corpus/* | tests/unit/* | tests/fuzz/*.[ch]) unit_file "$1" ;;
	tests/fuzz/corpus-*) echo "unit tests/fuzz/replay-$(echo "$1" | cut -d/ -f3 | cut -d- -f2-)" ;;
	tests/data/unwind/*)
		# shellcheck disable=SC2046
		units_with $(grep -l data/unwind tests/unit/*.c)
		systems_with 'data/unwind|"data", "unwind"' ;;
	tests/names/*) echo "system names" ;;
	tests/oracle/*) systems_with '"oracle"' ;;
	tests/workloads/*) systems_with 'build_workloads|WORKLOADS' ;;
	tests/system/flamegraph-page.* | tests/system/browser.py) page; module "$(basename "${1%.*}")" ;;
	tests/system/*.py) module "$(basename "$1" .py)" ;;
	tests/system/*.sh) systems_with "$(basename "$1")" ;;
	alloc/*)
		room alloc
		systems_with libperfwalk-alloc ;;
	unwind/* | symbolize/* | runtimes/* | proto/*) room "${1%%/*}" ;;
	src/*/*) room "$(echo "$1" | cut -d/ -f1,2)" ;;
	*) all ;;
	esac
}

# In a substitution all() ends it alone.
selected=$(while IFS= read -r path; do select_for "$path"; done; echo "system hygiene")
case "
$selected
" in
*"
all
"*) echo all ;;
*) printf '%s\n' "$selected" | sed 's|^unit tests/unit/|unit |' | sort -u ;;
esac
