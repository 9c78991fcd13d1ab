# SPDX-License-Identifier: Apache-2.0
#
# What make.sh and make-aarch64.sh share; each sources it with $0 and $1 its own, after it has set $default_data.
# Sets take, here, src, data (CORPUS_DATA, or the default beside it), wanted and failed, and goes to a directory of
# its own, which is removed at the end.
set -u

take=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
src=$here/src
data=${CORPUS_DATA:-$here/$default_data}
mkdir -p "$data" || exit 1
data=$(realpath "$data")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1
PATH=$PATH:/usr/local/go/bin:$HOME/.cargo/bin
wanted=" $* "
failed=0

# is_wanted NAME: is it among those asked for, or are all?
is_wanted()
{
	case "$wanted" in
	"  " | *" $1 "*) return 0 ;;
	esac
	return 1
}

# record NAME ENVIRONMENT TAKE'S OPTIONS -- PROGRAM...: keeps what the recorder made, or says why it made nothing.
record()
{
	name=$1 environment=$2
	shift 2
	# shellcheck disable=SC2086
	env -i HOME=/nonexistent $environment "$take" -l "$name" -o "$name.samples.gz" -e "$name.expect" "$@" >"$name.log" 2>&1
	status=$?
	grep -h "^$name:\|^take:" "$name.log"
	if [ $status -ne 0 ]; then
		tail -n 3 "$name.log"
		failed=1
		return
	fi
	mv "$name.samples.gz" "$name.expect" "$data/"
}

# go_build OUTPUT PACKAGE FLAGS...
go_build()
{
	output=$1 package=$2
	shift 2
	GO111MODULE=off GOFLAGS=-buildvcs=false go build -trimpath "$@" -o "$output" "$package"
}

# strip_go OBJCOPY FILE: all of Go's call-frame information is in a compressed .debug_frame; the other debug
# sections, which libdw would inflate, are taken out.
strip_go()
{
	"$1" -R .debug_info -R .debug_abbrev -R .debug_line -R .debug_loclists -R .debug_rnglists -R .debug_addr \
		-R .debug_str_offsets -R .debug_loc -R .debug_ranges -R .debug_gdb_scripts "$2"
}
