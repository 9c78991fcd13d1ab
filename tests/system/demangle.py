# SPDX-License-Identifier: Apache-2.0
# Rooms: symbolize src/symbolizer
"""How mangled names are shown: --demangle of record, report and convert, and the daemon's key; what
the linker calls a function is in pprof and OTLP whatever the style."""
import gzip
import os
import subprocess

import rig
from sink import Sink

SOURCE = r"""
#include <vector>
namespace shop {
template <class T> __attribute__((noipa)) unsigned long add(const std::vector<T> &v, unsigned long n)
{
	for (unsigned i = 0; i < 1000000; i++)
		n = n * 31 + v[i % v.size()];
	return n;
}
}
volatile unsigned long total;
int main()
{
	std::vector<int> v{1, 2, 3};
	for (;;)
		total = shop::add(v, total);
}
"""
LINKED = "_ZN4shop3addIiEEmRKSt6vectorIT_SaIS2_EEm"
NAMES = {
    "full": "shop::add<int>(std::vector<int, std::allocator<int> > const&, unsigned long)",
    "simple": "shop::add",
    "none": LINKED,
}


def leaf_is(stacks, want):
    n = sum(s.n for s in stacks if want in s.user)
    return n > 0.8 * rig.total(stacks) and n > 20, f"{n} of {rig.total(stacks)} samples hold {want}"


def main():
    rig.need_root()
    rig.need_programs("g++")
    program = rig.path("shop")
    subprocess.run(["g++", "-O2", "-o", program, rig.write("shop.cc", SOURCE)], check=True)
    burner = rig.start([program])
    for style, want in NAMES.items():
        folded, pprof = rig.path(f"{style}.folded"), rig.path(f"{style}.pb.gz")
        r = rig.record_cpu(0.5, [burner.pid], "-p", burner.pid, "-F", 199, "--demangle", style, "-o", folded, "-o", pprof)
        rig.check(r.status == 0, f"record --demangle {style}" + ("" if r.status == 0 else r.text()))
        rig.check(*leaf_is(rig.read_folded(folded), want))
        with gzip.open(pprof) as f:
            bytes_ = f.read()
        rig.check(LINKED.encode() in bytes_ and want.encode() in bytes_, f"{style}: pprof has both names")

    for style, want in NAMES.items():
        p = subprocess.run([rig.perfwalk(), "report", "--demangle", style, "--sort", "symbol", rig.path("simple.pb.gz")],
                           stdout=subprocess.PIPE, text=True, check=True)
        rig.check(any(line.rstrip().endswith(" " + want) for line in p.stdout.splitlines()),
                  f"report --demangle {style} of a simple pprof file says {want}" +
                  ("" if want in p.stdout else "\n" + p.stdout))
        converted = rig.path("converted.folded")
        subprocess.run([rig.perfwalk(), "convert", "--demangle", style, rig.path("none.pb.gz"), "-o", converted],
                       check=True)
        rig.check(*leaf_is(rig.read_folded(converted), want))
    r = rig.record("--demangle", "short", "-d", "1")
    rig.check(r.status == 2 and "full, simple or none" in r.err, "another style is refused with the reason")

    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 99
reporter_interval = 1s
[symbolizer]
demangle = simple
[export:sink]
endpoint = {sink.endpoint}
""")
        daemon.wait_up()
        sink.wait_for(3)
        status, _ = daemon.stop()
        rig.check(status == 0, "the daemon leaves with 0")
        mine = [x for v in sink.views() for x in v.samples() if x[0].get("process.pid") == burner.pid]
    named = sum(x[3] for x in mine if "shop::add" in x[2])
    rig.check(mine and named > 0.8 * sum(x[3] for x in mine), f"the daemon: {named} samples hold shop::add")


rig.run(main)
