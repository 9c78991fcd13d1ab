#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What judges the files that start perfwalk in containers, once, kept outside the tree, keyed by versions: helm and
# compose (the parser of docker compose) of their Go modules, the schemas of Kubernetes of PyPI, podman's quadlet of a
# newer Debian. The directory is the only line on standard output: helm, compose, quadlet, and python with the module
# kubernetes_validate. Exit 77 with a reason on standard error when a program is missing; 1 when one cannot be had.
set -u

helm=3.22.0
compose=2.16.2
validate=1.37.0
suite=trixie
go_minor=26
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/deploy-$helm-$compose-$validate-$suite

if [ -e "$cache/complete" ]; then
	echo "$cache"
	exit 0
fi
for program in go python3 apt-get dpkg-deb; do
	command -v $program >/dev/null 2>&1 || { echo "$program is not installed" >&2; exit 77; }
done
work=$cache/build.$$
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export GOFLAGS=-buildvcs=false
. "$(dirname "$0")/newer-go.sh"

from_go() # NAME MODULE@VERSION
{
	[ ! -x "$cache/$1" ] || return 0
	echo "building $1 into $cache (some minutes, once)"
	GOBIN=$work go install -trimpath -ldflags="-s -w" "$2" && module=${2%@*} && mv "$work/${module##*/}" "$cache/$1"
}

schemas()
{
	[ ! -x "$cache/python/bin/kubernetes-validate" ] || return 0
	python3 -m venv "$cache/python" && "$cache/python/bin/pip" install -q "kubernetes-validate==$validate"
}

# Of Debian's mirror that apt has, out of the package, which would install all of a newer podman. It is linked with
# libc alone.
quadlet()
{
	[ ! -x "$cache/quadlet" ] || return 0
	mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
		awk '/^Debian / { print $2; exit }') && [ -n "$mirror" ] || return 1
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" && cd "$work" || return 1
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >sources.list
	set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root
	apt-get "$@" -q update && apt-get "$@" -q download podman && dpkg-deb -x podman_*.deb . &&
		mv usr/libexec/podman/quadlet "$cache/quadlet"
}

{
	need_go "$work" $go_minor && from_go helm "helm.sh/helm/v3/cmd/helm@v$helm" &&
		from_go compose "github.com/compose-spec/compose-go/v2/cmd@v$compose" && schemas && (quadlet) &&
		touch "$cache/complete"
} >&2 || exit 1
echo "$cache"
