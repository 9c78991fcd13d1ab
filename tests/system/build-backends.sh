#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# sh build-backends.sh pyroscope|parca: builds that server from its sources, once. The result is kept
# outside the tree, keyed by version; its path is the only line on standard output. A binary of your
# own goes before it: PYROSCOPE=/path, PARCA=/path. Exit 77 with a reason on standard error when it
# cannot be had; 1 when the build fails. It takes some minutes and 3 GB of modules and objects.
#
# Neither has its page in it. Parca comes from its Go module, without the service discoveries of all
# the clouds, which are most of what there is to compile and which nothing here uses. Pyroscope is the
# newest whose modules can all be had: it comes from its module, with a published version of the
# module that lies beside it in its repository.
set -u

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests
go_minor=25
name=${1:-}
case $name in
pyroscope) version=1.21.1 api=1.5.0 own=${PYROSCOPE:-} ;;
parca) version=0.28.0 own=${PARCA:-} ;;
*)
	echo "usage: build-backends.sh pyroscope|parca" >&2
	exit 1
	;;
esac
binary=$cache/$name-$version/$name

for found in "$own" "$binary"; do
	if [ -n "$found" ] && [ -x "$found" ]; then
		echo "$found"
		exit 0
	fi
done
if ! command -v go >/dev/null 2>&1; then
	echo "go is not installed (go 1.$go_minor or newer builds $name)" >&2
	exit 77
fi
minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ "${minor:-0}" -lt 21 ]; then
	echo "go 1.${minor:-?} is too old: 1.$go_minor, or 1.21 that can fetch it, builds $name" >&2
	exit 77
fi

work=$cache/$name-$version/build.$$
mkdir -p "$work" || exit 1
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# A copy of a module that can be changed: module PATH
module()
{
	dir=$(go mod download -json "$1@v$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	[ -n "$dir" ] && cp -R "$dir" "$work/src" && chmod -R u+w "$work/src"
}

sources_of_parca()
{
	module github.com/parca-dev/parca &&
		sed -i '/prometheus\/discovery\/install"/d' "$work/src/pkg/config/config.go"
}

sources_of_pyroscope()
{
	module github.com/grafana/pyroscope && cd "$work/src" && rm -f go.work go.work.sum &&
		go mod edit -replace "github.com/grafana/pyroscope/api=github.com/grafana/pyroscope/api@v$api" &&
		go list -mod=mod -deps ./cmd/pyroscope >/dev/null
}

"sources_of_$name" >&2 || {
	echo "the sources of $name $version cannot be had from here (a binary can: $(echo $name | tr a-z A-Z)=/path)" >&2
	exit 77
}
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -mod=mod"
{
	echo "building $name $version into $cache (some minutes, once)"
	cd "$work/src" && go build -trimpath -ldflags="-s -w" -o "$work/$name" "./cmd/$name" && mv "$work/$name" "$binary"
} >&2 || exit 1
echo "$binary"
