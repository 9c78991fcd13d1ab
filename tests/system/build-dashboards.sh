#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds dashboards.go with the types of Grafana's schemas, once: kept outside the tree, keyed by the module's version and
# the source. Its path is the only line on standard output. Exit 77 with a reason on standard error where there is no go;
# 1 when the module cannot be had.
set -u

version=0.0.22
go_minor=23
source=$(cd "$(dirname "$0")" && pwd)/dashboards.go
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/dashboards-$version-$(sha256sum <"$source" | cut -c1-12)

if [ -x "$cache/dashboards" ]; then
	echo "$cache/dashboards"
	exit 0
fi
command -v go >/dev/null 2>&1 || {
	echo "go is not installed" >&2
	exit 77
}
work=$cache/build.$$
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export GOFLAGS=-buildvcs=false
. "$(dirname "$0")/newer-go.sh"
{
	need_go "$work" $go_minor && cp "$source" "$work" && cd "$work" && go mod init dashboards &&
		go get "github.com/grafana/grafana-foundation-sdk/go@v$version" &&
		go build -trimpath -o dashboards . && mv dashboards "$cache/dashboards"
} >&2 || exit 1
echo "$cache/dashboards"
