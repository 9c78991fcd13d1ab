#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds an OpenTelemetry Collector with the OTLP receiver, the exporters for files, OTLP/HTTP and
# debugging, and queues on disk, from its Go modules, once: the result is kept outside the tree, keyed
# by version and set of parts, and its path is the only line on standard output. Exit 77 with a reason
# on standard error when there is no Go; 1 when the build fails.
#
# The builder writes the sources and then wants to tidy the modules, which needs one that only the
# tests of a dependency use and that not every module proxy serves. That step may fail: the compiler,
# called by hand afterwards, needs no such module.
set -u

version=0.162.0
stable=1.68.0
go_minor=26
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/otelcol-$version-2
binary=$cache/otelcol

if [ -x "$binary" ]; then
	echo "$binary"
	exit 0
fi

if ! command -v go >/dev/null 2>&1; then
	echo "go is not installed" >&2
	exit 77
fi

work=$cache/build.$$
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

cat >"$work/manifest.yaml" <<END
dist:
  name: otelcol
  description: OTLP profiles to a file, for tests
  output_path: $work/src
  version: $version
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$version
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter v$version
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v$version
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
extensions:
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage v$version
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v$stable
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v$stable
  - gomod: go.opentelemetry.io/collector/confmap/provider/yamlprovider v$stable
END

export GOFLAGS=-buildvcs=false
. "$(dirname "$0")/newer-go.sh"
need_go "$work" $go_minor >&2 || exit 1
{
	echo "building OpenTelemetry Collector $version into $cache (some minutes, once)"
	GOBIN=$work go install "go.opentelemetry.io/collector/cmd/builder@v$version" &&
		{ "$work/builder" --skip-compilation --config "$work/manifest.yaml" || true; } &&
		cd "$work/src" &&
		go build -mod=mod -trimpath -ldflags="-s -w" -o "$work/otelcol" . &&
		mv "$work/otelcol" "$binary"
} >&2 || exit 1
echo "$binary"
