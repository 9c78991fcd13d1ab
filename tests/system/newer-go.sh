# SPDX-License-Identifier: Apache-2.0
# To be read by scripts that build Go modules. From 1.21 on Go fetches the version it needs itself, as a module; one
# that is older (Debian 12 has 1.19) is told to fetch that module here.

# need_go DIRECTORY MINOR: go of that version at least is first in PATH; else 1, with a reason.
need_go()
{
	minor=$(go env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
	[ "${minor:-0}" -lt 21 ] || return 0
	toolchain=$(cd "$1" && go mod download -json \
		"golang.org/toolchain@v0.0.1-go1.$2.0.$(go env GOOS)-$(go env GOARCH)" |
		sed -n 's/.*"Dir": "\(.*\)",*$/\1/p')
	# Modules have no executable files.
	[ -n "$toolchain" ] && chmod -R a+x "$toolchain/bin" "$toolchain/pkg/tool" || {
		echo "go 1.${minor:-?} is too old, and go 1.$2 cannot be fetched" >&2
		return 1
	}
	unset GOROOT
	PATH=$toolchain/bin:$PATH
}
