#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What off-CPU time costs a context switch, at 10,000, 50,000 and 300,000 of them a second of a CPU.

    python3 tests/bench/offcpu.py [--pairs 20] [--slice 0.5] [--more locks] [--without]     # as root, with tracefs
    python3 tests/bench/offcpu.py --limit 1% [--seconds 10]                     # what the governor does instead
    python3 tests/bench/offcpu.py --beside OLD/perfwalk [--pairs 8]             # the daemons' own part, of two builds

Two processes wake each other by pipes on one CPU all the time, while the daemon is paused and resumed: a pair is a slice of
time without its events and one with them, in any order. All times are CPU times from schedstat. Of each pair there is the
ratio of what a switch takes the two processes, with and without; printed are the medians of all pairs, and between which
values half of the pairs lie. perfwalk's own processes take what they take beyond a paused slice, for as many switches as the
whole host makes meanwhile: so what else runs here is in neither. The share of a CPU is that of both at the wanted rate. What
perfwalk takes for CPU time alone is in that; --without says how much it is.

With a limit, the same loads run for as long as it takes the daemon to settle, and for some seconds more: printed are the
host's switches a second, the part of the time in which the daemon follows them, and its own CPU time.

Beside another build, three daemons run at the same time, as what else a host does decides most of what each takes: this
build without [off_cpu], the other one, and this one. Printed are the medians of slices of four seconds.
"""
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import pauses  # noqa: E402
import rig  # noqa: E402

SWITCHES = "/proc/stat", "ctxt"

# Switches a second of a CPU, and nanoseconds of work between two of them, for about so many.
LOADS = ((10_000, 97_000), (50_000, 17_000), (300_000, 0))
CONFIG = """[profiler]
reporter_interval = 10s
[off_cpu]
enabled = {enabled}
{more}
[limits]
cpu = {limit}
[filter]
include_comm = switches
[store]
path = {store}
max_bytes = 1M
"""


def switches_of(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
    return total


def slice_of(load, seconds):
    """ns of CPU time a switch, and its switches."""
    before = pauses.cpu_ns(load), switches_of(load)
    time.sleep(seconds)
    ns, n = pauses.grown(before[0], pauses.cpu_ns(load)), switches_of(load) - before[1]
    return ns / n, n


def measure(d, program, work_ns, pairs, seconds):
    p = rig.start([program, str(1 << 40), str(work_ns)], stdout=subprocess.DEVNULL)
    rig.wait_for("both processes", lambda: rig.children_of(p.pid))
    load = [p.pid, *rig.children_of(p.pid)]
    found = pauses.measure(d, SWITCHES, lambda: slice_of(load, seconds), pairs)
    rig.end(p)
    return found


def followed(d):
    """Which part of the time switches are followed: 1, 2 for the half of it, 4 ..."""
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "status", "--all"], check=True, stdout=subprocess.PIPE, text=True)
    m = re.search(r"switches/(\d+)", p.stdout)
    return int(m[1]) if m else 1


def settle(d):
    """Waits until the daemon has followed the same part for ten of its looks, which it takes each second."""
    part, since = followed(d), time.monotonic()
    while time.monotonic() - since < 10:
        time.sleep(0.5)
        now = followed(d)
        part, since = now, since if now == part else time.monotonic()
    return part


def govern(d, program, wanted, work_ns, seconds):
    p = rig.start([program, str(1 << 40), str(work_ns)], stdout=subprocess.DEVNULL)
    part = settle(d)
    own, host, begin = pauses.cpu_ns(pauses.own_of(d)), pauses.of_host(*SWITCHES), time.monotonic_ns()
    time.sleep(seconds)
    own_ns = pauses.grown(own, pauses.cpu_ns(pauses.own_of(d)))
    host, wall = pauses.of_host(*SWITCHES) - host, time.monotonic_ns() - begin
    rig.end(p)
    print(f"{wanted:6}/s wanted: {host / wall * 1e9:.0f}/s of the host, followed 1/{part} of the time; the daemon takes "
          f"{100 * own_ns / wall:.2f}% of a CPU", flush=True)


def beside(other, program, slices):
    begun = {}
    for name, build, enabled in (("without", rig.perfwalk(), "no"), ("the other build", other, "yes"), ("this build", rig.perfwalk(), "yes")):
        os.environ["PERFWALK"] = build
        config = CONFIG.format(enabled=enabled, more="", store=rig.path(f"store{len(begun)}"), limit="100%")
        begun[name] = rig.Daemon(config, name=f"daemon{len(begun)}")
        begun[name].wait_up()
    for load in (None, LOADS[0]):
        p = rig.start([program, str(1 << 40), str(load[1])], stdout=subprocess.DEVNULL) if load else None
        time.sleep(15)
        shares, rates = {name: [] for name in begun}, []
        for _ in range(slices):
            own, host, begin = {n: pauses.cpu_ns(pauses.own_of(d)) for n, d in begun.items()}, pauses.of_host(*SWITCHES), time.monotonic_ns()
            time.sleep(4)
            wall = time.monotonic_ns() - begin
            rates.append((pauses.of_host(*SWITCHES) - host) / wall * 1e9)
            for name, d in begun.items():
                shares[name].append(100 * pauses.grown(own[name], pauses.cpu_ns(pauses.own_of(d))) / wall)
        found = ", ".join(f"{name} {pauses.middle(x)}" for name, x in shares.items())
        print(f"{statistics.median(rates):.0f} switches/s of the host; % of a CPU: {found}", flush=True)
        if p:
            rig.end(p)
    for d in begun.values():
        d.stop()


def main():
    parser = pauses.arguments(__doc__, 0.5)
    parser.add_argument("--more", action="append", default=[], help="another key of [off_cpu] to switch on: locks, wall")
    parser.add_argument("--limit", help="[limits] cpu: what the daemon does to keep it")
    parser.add_argument("--without", action="store_true", help="without [off_cpu]: what the daemon takes for CPU time alone")
    parser.add_argument("--beside", metavar="PERFWALK", help="another build")
    parser.add_argument("--seconds", type=int, default=10, help="of each load, once the daemon has settled")
    args = parser.parse_args()
    rig.need_root()
    rig.need_tracefs()
    program = os.path.join(rig.build_workloads("switches"), "switches")
    if args.beside:
        beside(args.beside, program, args.pairs)
        return
    d = rig.Daemon(CONFIG.format(enabled="no" if args.without else "yes", more="\n".join(f"{x} = yes" for x in args.more),
                                 store=rig.path("store"), limit=args.limit or "100%"))
    d.wait_up()
    if args.limit:
        for wanted, work_ns in LOADS:
            govern(d, program, wanted, work_ns, args.seconds)
        return
    print(f"off_cpu {' '.join(args.more)}: CPU time a switch, medians of {args.pairs} pairs; in brackets half of the pairs")
    for wanted, work_ns in LOADS:
        pairs = measure(d, program, work_ns, args.pairs, args.slice)
        extra, own = pauses.extra_ns(pairs), pauses.own_ns(pairs)
        share = (max(statistics.median(extra), 0) + max(statistics.median(own), 0)) * wanted / 1e7
        had, plain = (statistics.median(x) for x in zip(*((off.load / off.seconds, off.load_ns) for off, _ in pairs)))
        print(f"{wanted:6}/s wanted, {had:.0f}/s had: {plain:.0f} ns without, ratio {pauses.middle(pauses.ratios(pairs))}, "
              f"{pauses.middle(extra)} ns more; perfwalk {pauses.middle(own)} ns; {share:.2f}% of a CPU", flush=True)
    d.stop()


rig.run(main)
