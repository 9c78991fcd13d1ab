#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the unwinder's benchmark on a mixed load: unwind.sh PROGRAM [SECONDS [HZ [STACK_BYTES]]]
# The load is whatever of compilers, compressors, interpreters and runtimes this host has. With cargo
# (and its registry in reach, once) framehop is measured beside libdw, else libdw alone.
set -eu

program=$1
seconds=${2:-20}
hz=${3:-199}
stack=${4:-65528}
load=$((seconds + 3))
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
PATH=$PATH:/usr/local/go/bin:$HOME/.cargo/bin

has() {
	command -v "$1" >/dev/null 2>&1
}

adapter=
if has cargo; then
	cp -R "$here/framehop" "$work/framehop"
	if cargo build --release --locked --quiet --manifest-path "$work/framehop/Cargo.toml" \
		--target-dir "${BENCH_CARGO_TARGET:-$work/target}" >"$work/cargo.log" 2>&1; then
		adapter=${BENCH_CARGO_TARGET:-$work/target}/release/libframehop_bench.so
	else
		echo "framehop is left out, cargo could not build it:"
		tail -n 5 "$work/cargo.log"
	fi
else
	echo "framehop is left out: cargo is not installed"
fi

# during COMMAND: again and again while the benchmark records, out of sight.
during() {
	timeout "$load" sh -c "cd $work; while :; do $1 || sleep 1; done" >/dev/null 2>&1 &
}

cat >"$work/x.cc" <<'EOF'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main()
{
	std::map<std::string, int> m;
	std::regex r("a+b");
	for (int i = 0; i < 100; i++)
		m[std::to_string(i)] = i;
	std::vector<std::string> v(10);
	std::sort(v.begin(), v.end());
	std::cout << m.size() << std::regex_match("aab", r);
}
EOF
cat >"$work/x.rs" <<'EOF'
use std::collections::HashMap;
fn main() {
	let mut m: HashMap<String, Vec<u64>> = HashMap::new();
	for i in 0..2000u64 {
		m.entry(format!("{}", i % 97)).or_default().push(i);
	}
	let mut v: Vec<_> = m.iter().map(|(k, v)| (v.iter().sum::<u64>(), k.clone())).collect();
	v.sort();
	println!("{:?}", v);
}
EOF
cat >"$work/x.go" <<'EOF'
package main

import (
	"encoding/json"
	"regexp"
	"sort"
	"strings"
)

type node struct {
	Name string
	Kids []*node
}

func grow(depth int) *node {
	n := &node{Name: strings.Repeat("x", depth)}
	for i := 0; i < 3 && depth > 0; i++ {
		n.Kids = append(n.Kids, grow(depth-1))
	}
	return n
}

func main() {
	word := regexp.MustCompile(`([a-z]+)-(\d+)`)
	for {
		text, _ := json.Marshal(grow(5))
		var n node
		_ = json.Unmarshal(text, &n)
		found := word.FindAllString(strings.Repeat("abc-123 ", 500), -1)
		sort.Strings(found)
	}
}
EOF

has g++ && during 'g++ -O2 -c x.cc -o /dev/null'
has clang && during 'clang++ -O2 -c x.cc -o /dev/null'
has rustc && during 'rustc -O --edition 2021 -o x.rust x.rs; ./x.rust'
has go && (cd "$work" && GOCACHE=$work/gocache HOME=$work go build -o x.gobin x.go) && during ./x.gobin
has xz && during 'cat /usr/bin/* | xz -9 -T1 -c'
has node && during "node -e 'for (;;) JSON.parse(JSON.stringify([...Array(500).keys()].map(String).sort()))'"
has python3 && during "python3 -c '
import json, re
while True:
    json.loads(json.dumps([{str(i): [1, 2, 3] * 5} for i in range(500)]))
    sorted(re.findall(\"([a-z]+)-([0-9]+)\", \"abc-123 \" * 500))
'"
has openssl && during 'openssl speed -seconds 1 rsa2048 sha256'
during 'ls -lR /usr/share/doc; cat /usr/include/*.h | sort | uniq -c | sort -n'

sleep 3
# shellcheck disable=SC2086
"$program" "$seconds" "$hz" "$stack" $adapter
wait || true
