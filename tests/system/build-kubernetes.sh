#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Kubernetes with all that one node needs, once, kept outside the tree, keyed by version: etcd, the API server with its
# controllers and scheduler, the kubelet and kubectl of their Go modules, containerd of Debian. The directory is the only
# line on standard output. Exit 77 with a reason on standard error when a program is missing; 1 when one cannot be had.
#
# Kubernetes' own module replaces its parts by directories that are not in it: here they are the modules of the same
# version. It takes some 40 minutes, and 3 GB of modules and objects.
set -u

kubernetes=34.2
etcd=3.6.4
go_minor=24
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/perfwalk-tests/kubernetes-1.$kubernetes
from_kubernetes="kubelet kubectl kube-apiserver kube-controller-manager kube-scheduler"

if [ -e "$cache/complete" ]; then
	echo "$cache"
	exit 0
fi
for program in go apt-get dpkg-deb; do
	command -v $program >/dev/null 2>&1 || { echo "$program is not installed" >&2; exit 77; }
done
work=$cache/build.$$
mkdir -p "$work/src" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export GOFLAGS="-buildvcs=false -mod=mod" CGO_ENABLED=0
. "$(dirname "$0")/newer-go.sh"

# A module of our own, whose requirements the compiler completes.
module()
{
	main=$(go mod download -json "k8s.io/kubernetes@v1.$kubernetes" | sed -n 's/^\t"GoMod": "\(.*\)",*$/\1/p')
	[ -n "$main" ] || return 1
	{
		printf 'module node\n\ngo 1.%s.0\n\n' $go_minor
		printf 'require %s\n' "k8s.io/kubernetes v1.$kubernetes" "go.etcd.io/etcd/server/v3 v$etcd"
		sed -n "s|^\t\(k8s.io/[^ ]*\) => \./staging/.*|replace \1 => \1 v0.$kubernetes|p" "$main"
	} >go.mod
}

from_modules()
{
	version=k8s.io/component-base/version
	set --
	for name in $from_kubernetes; do
		set -- "$@" "k8s.io/kubernetes/cmd/$name"
	done
	mkdir bin && go build -trimpath -o bin/ -ldflags="-s -w -X $version.gitVersion=v1.$kubernetes -X $version.gitMajor=1
		-X $version.gitMinor=${kubernetes%.*}" "$@" &&
		go build -trimpath -ldflags="-s -w" -o bin/etcd go.etcd.io/etcd/server/v3
}

# Out of the package, which would start a service.
containerd()
{
	apt-get -q -o APT::Sandbox::User=root download containerd && dpkg-deb -x containerd_*.deb unpacked &&
		mv unpacked/usr/bin/* bin/
}

{
	echo "building Kubernetes 1.$kubernetes into $cache (once)"
	cd "$work/src" && need_go "$work" $go_minor && module && from_modules && containerd && mv bin/* "$cache/" &&
		touch "$cache/complete"
} >&2 || exit 1
echo "$cache"
