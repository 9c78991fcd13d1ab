# SPDX-License-Identifier: Apache-2.0
# Rooms: src/process src/opener src/profiler src/symbolizer
"""The profiler and the symbolizer open no file and no socket after start-up: strace watches both
for several windows, while processes and files come and go that they have to learn about. And what the broker asks of
perf events all the time is nothing that is known to hang a kernel."""
import os
import re
import subprocess
import time

import rig
from sink import Sink

FORBIDDEN = ("open openat openat2 open_by_handle_at creat socket socketpair connect bind listen accept "
             "accept4 execve execveat fork vfork ptrace perf_event_open process_vm_readv mount bpf "
             "link linkat symlink symlinkat rename renameat renameat2 unlink unlinkat mkdir mkdirat "
             "mknod mknodat truncate chmod fchmodat chown fchownat readlink readlinkat pidfd_open "
             "pidfd_getfd kill tkill tgkill").split()


# What may be asked of any event that is open. Linux 6.16 and 6.17 hang where a clock stops itself, within its own timer: so
# do REFRESH, and a rate near the one at which the kernel throttles. An event with a budget, which is no clock, may be asked
# to REFRESH, and to start again by PERIOD. PERIOD sets a clock anew from outside of its timer, which is no stop within it;
# but not to so little that the kernel throttles. A program of BPF is not needed.
ALLOWED = {"PERF_EVENT_IOC_ENABLE", "PERF_EVENT_IOC_DISABLE", "PERF_EVENT_IOC_ID", "PERF_EVENT_IOC_SET_OUTPUT",
           "PERF_EVENT_IOC_SET_FILTER"}
OF_BUDGETS = {"PERF_EVENT_IOC_REFRESH", "PERF_EVENT_IOC_PERIOD"}
CLOCKS = re.compile("PERF_COUNT_SW_(CPU|TASK)_CLOCK")


def most_samples():
    """A second: above that the kernel throttles. It may lower this by itself."""
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as f:
        return int(f.read())


def check_ioctls(lines, most):
    """perf_event_open() and ioctl() of the broker, in their order."""
    opened, asked, rates, bad = {}, {}, set(), []
    for line in lines:
        m = re.match(r"(\w+)\((.*)\) += (\d+)", line)
        if m and m[1] == "perf_event_open":
            opened[m[3]] = m[2]
            rates |= {int(x) for x in re.findall(r"sample_freq=(\d+)", m[2])}
        elif m and m[1] == "ioctl" and m[2].split(",")[0] in opened:
            fd, request = re.match(r"(\d+), ([^,]+)", m[2]).groups()
            attr = opened[fd]
            asked[request] = asked.get(request, 0) + 1
            has_budget = "sample_period" in attr and not CLOCKS.search(attr)
            period = re.search(r"PERF_EVENT_IOC_PERIOD, \[(\d+)\]", line)
            is_slow = period and int(period[1]) >= 2e9 / most
            if request not in ALLOWED and not (has_budget and request in OF_BUDGETS) and not is_slow:
                bad.append(line)
    said = ", ".join(f"{n} {request}" for request, n in sorted(asked.items()))
    rig.check(not bad, f"nothing that hangs a kernel is asked of {len(opened)} events: {said}"
              + "".join("\n    " + x for x in bad[:5]))
    rig.check({"PERF_EVENT_IOC_ENABLE", "PERF_EVENT_IOC_REFRESH"} <= set(asked), "an event with a budget is among them")
    rig.check(rates and max(rates) <= most / 2, f"rates of {sorted(rates)} Hz, where the kernel throttles above {most}")


def main():
    rig.need_root()
    rig.need_programs("strace")
    directory = rig.build_workloads("chain", "host", "cxx", "blip", "jit", "unwound")
    with Sink() as sink:
        most = most_samples()
        asked = rig.path("broker.strace")  # by a tracer (-D) that is not in its place, nor of the others
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 99
reporter_interval = 1s
[event:page-faults]
budget = 10
[export:sink]
endpoint = {sink.endpoint}
""", argv_prefix=["strace", "-D", "-q", "-v", "-e", "trace=perf_event_open,ioctl", "-o", asked])
        roles = daemon.wait_up()
        sink.wait_for(1)
        traces = {}
        for name in ("profiler", "symbolizer"):
            out = rig.path(f"{name}.strace")
            p = rig.start(["strace", "-f", "-qq", "-e", "trace=all", "-o", out, "-p", str(roles[name])],
                          stderr=subprocess.DEVNULL)
            traces[name] = (p, out)
            rig.wait_for(f"strace watches the {name}", lambda pid=roles[name]:
                         rig.status_of(pid).get("TracerPid", "0") != "0", 10)
        n = sink.count()
        for argv in (["./chain"], ["./host", "./plugin.so"], ["./cxx"], ["./jit"],
                     ["./unwound", rig.workdir(), "behind"]):
            rig.start(argv, cwd=directory)
        for _ in range(20):
            subprocess.run(["./blip", "20"], cwd=directory, check=True)
        sink.wait_for(n + 5, 60)
        time.sleep(0.2)
        rig.check(daemon.roles() == roles, "all processes are the same as before")
        for name, (p, out) in traces.items():
            rig.end(p)
            with open(out, encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
            calls = [m[1] for m in (re.match(r"\d+ +([a-z0-9_]+)\(", line) for line in lines) if m]
            rig.check(len(calls) > 50, f"{name}: {len(calls)} system calls seen, of the kinds "
                      + " ".join(sorted(set(calls))))
            bad = [line for line in lines
                   if (m := re.match(r"\d+ +([a-z0-9_]+)\(", line)) and m[1] in FORBIDDEN]
            rig.check(not bad, f"{name}: opens no file and no socket" + "".join("\n    " + b for b in bad[:10]))
        stacks = [x[2] for v in sink.views() for x in v.samples()]
        names = {x[-1] for x in stacks}
        rig.check({"chain_leaf", "host_callback", "jitted_inner_loop"} <= names,
                  "and yet names what started meanwhile")
        rig.check(any(rig.contains_path(x, ["main", "run_outer", "jitted_outer", "jitted_inner"]) for x in stacks),
                  "and walks compiled code by what its jitdump file says")
        for name in ("profiler", "symbolizer"):
            status = rig.status_of(roles[name])
            rig.check(status.get("NoNewPrivs") == "1", f"{name}: NO_NEW_PRIVS")
            rig.check(all(int(status[f"Cap{x}"], 16) == 0 for x in ("Eff", "Prm", "Inh", "Amb")), f"{name}: no capability ({status.get('CapEff')})")
            rig.check("0" not in status.get("Uid", "0").split(), f"{name}: no root ({status.get('Uid')})")
        status = rig.status_of(roles["exporter"])
        rig.check(int(status["CapEff"], 16) == 0 and "0" not in status["Uid"].split()
                  and status["NoNewPrivs"] == "1", "exporter: no root, no capability, NO_NEW_PRIVS")
        sockets = [os.readlink(f"/proc/{roles[name]}/fd/{fd}") for name in ("profiler", "symbolizer")
                   for fd in os.listdir(f"/proc/{roles[name]}/fd")]
        with open("/proc/net/unix", encoding="utf-8") as f:
            unix = {line.split()[6] for line in f}
        foreign = [s for s in sockets if s.startswith("socket:") and s[8:-1] not in unix]
        rig.check(not foreign, "their sockets are the tree's own")
        daemon.stop()

        def traced():
            """All of it: the tracer writes the end after the daemon has left."""
            with open(asked, encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
            return lines if lines and lines[-1].startswith("+++ exited") else None
        check_ioctls(rig.wait_for("what strace has seen", traced), most)


rig.run(main)
