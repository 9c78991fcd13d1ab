#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unwinder's benchmark on a mixed load: unwind.sh PROGRAM [SECONDS [HZ]]
# The load is whatever of compilers, compressors and interpreters this host has.
set -eu

program=$1
seconds=${2:-20}
hz=${3:-199}
load=$((seconds + 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

has() {
	command -v "$1" >/dev/null 2>&1
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

has g++ && timeout "$load" sh -c "while :; do g++ -O2 -c $work/x.cc -o /dev/null; done" &
has xz && timeout "$load" sh -c 'cat /usr/bin/* | xz -9 -T1 -c >/dev/null' 2>/dev/null &
has python3 && timeout "$load" python3 -c '
import json, re
while True:
    json.loads(json.dumps([{"a": i, "b": [1, 2, 3] * 5} for i in range(500)]))
    sorted(re.findall(r"(\w+)-(\d+)", "abc-123 " * 500))
' &
has openssl && timeout "$load" openssl speed -seconds 1 rsa2048 sha256 >/dev/null 2>&1 &
timeout "$load" sh -c 'while :; do
	ls -lR /usr/share/doc >/dev/null
	cat /usr/include/*.h | sort | uniq -c | sort -n >/dev/null
done' &

sleep 1
"$program" "$seconds" "$hz"
wait || true
