# SPDX-License-Identifier: Apache-2.0
# Rooms: src/broker src/process src/opener src/cmd
"""The systemd unit and its drop-ins, each under a systemd that was booted for it: what systemd thinks of them, and that
the daemon does there all that it does elsewhere: profiles with names and containers, ctl, reload, a spool over restarts,
children that are killed, also for want of memory, an end in time."""
import atexit
import json
import os
import re
import signal
import stat
import time

import rig
from cgroup_dirs import MemoryLimit
from inside import source, unit
from machine import Machine
from sink import Sink

UNIT = "usr/local/lib/systemd/system/perfwalk.service"
DROP_IN = "/etc/systemd/system/perfwalk.service.d/test.conf"
CONFIG = "/etc/perfwalk/perfwalk.conf"
CONTAINER = "0123456789abcdef" * 4
PATH = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five", "chain_leaf"]
CAP_SYS_ADMIN = 1 << 21
MOST_EXPOSED = 40  # tenths
ROLES = ("profiler", "symbolizer", "exporter")


def config(port, rate=49):
    return f"""[profiler]
samples_per_second = {rate}
reporter_interval = 1s
[limits]
cpu = 100%
[export:sink]
endpoint = http://127.0.0.1:{port}
"""


def boot():
    chain = os.path.join(rig.build_workloads("chain-static"), "chain-static")
    machine = Machine({
        UNIT: unit(), "usr/lib/sysusers.d/perfwalk.conf": source("perfwalk.sysusers"),
        "usr/local/bin/perfwalk": [rig.perfwalk()], "usr/local/bin/burner": [chain],
    }, hidden=["etc/perfwalk", "var/lib/perfwalk", "var/cache/perfwalk", "etc/systemd/system/perfwalk.service*"])
    machine.run("systemd-run", "--scope", "--slice=system.slice", f"--unit=docker-{CONTAINER}.scope", "--no-block", "sh", "-c",
                "burner >/dev/null 2>&1 &")
    return machine


def status(machine):
    code, said = machine.try_run("perfwalk", "ctl", "status", "--json")
    try:
        return json.loads(said) if code == 0 else {}
    except ValueError:
        return {}


def exposure(machine, name):
    said = machine.run("systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSED}",
                       "/" + UNIT)
    rig.check("Overall" in said, f"{name}: " + said.strip().splitlines()[-1])


def settings(machine, name):
    """A kill for want of memory ends one process, and systemd lets the others go on."""
    wanted = {"OOMPolicy": "continue", "MemoryMax": str(2048 << 20), "LimitCORE": "0", "WatchdogUSec": "1min"}
    have = {key: machine.run("systemctl", "show", "-P", key, "perfwalk").strip() for key in wanted}
    rig.check(have == wanted, f"{name}: what systemd will do: {have}")


def main_pid(machine):
    return int(machine.run("systemctl", "show", "-P", "MainPID", "perfwalk").strip())


def journal(machine):
    return machine.try_run("journalctl", "-u", "perfwalk", "-o", "cat")[1]


def start(machine, name, verb="start"):
    """Returns when it has told systemd that it is ready."""
    if machine.try_run("systemctl", verb, "perfwalk")[0]:
        rig.fail(f"{name}: systemctl {verb}:\n" + journal(machine))


def role(machine, name):
    """Its process, as this host numbers it."""
    broker = machine.host_pid(main_pid(machine))
    return next((pid for pid in rig.children_of(broker) if rig.comm_of(pid) == f"pw-{name}"), 0) if broker else 0


def samples_of(sink, begin, key, value):
    return [x for view in sink.views()[begin:] for x in view.samples() if x[0].get(key) == value]


def is_named(x):
    return rig.contains_path(x[2], PATH)


def delivered(machine, sink, name):
    """Stacks with names of what runs in a container."""
    begin = sink.count()

    def come():
        if machine.try_run("systemctl", "is-active", "perfwalk")[0]:
            rig.fail(f"{name}: it does not run:\n" + journal(machine))
        mine = samples_of(sink, begin, "container.id", CONTAINER)
        return sum(x[3] for x in mine if is_named(x)) > 20
    rig.wait_for(f"{name}: samples of the container, with names", come, 60)
    rig.check(True, f"{name}: named stacks of a process in a container")


def killed(machine, sink, name):
    for child in ROLES:
        before = rig.wait_for(f"{name}: the {child} runs", lambda c=child: role(machine, c), 30)
        broker = main_pid(machine)
        os.kill(before, signal.SIGKILL)
        rig.wait_for(f"{name}: a new {child}", lambda c=child, b=before: role(machine, c) not in (0, b), 30)
        rig.check(main_pid(machine) == broker, f"{name}: the {child} was killed, and another one has its place")
    delivered(machine, sink, name)


def out_of_memory(machine, sink, name):
    """The kernel kills a child because its control group has no memory left: with a limit of its own, which the next
    windows exceed. Another one has its place, the log says it, and the service is what it was."""
    service = "ActiveState", "MainPID", "NRestarts", "Result"
    before = machine.run("systemctl", "show", "--property=" + ",".join(service), "perfwalk")
    for child in ("symbolizer", "profiler"):
        limit = MemoryLimit(f"perfwalk-unit-{os.getpid()}", 64 << 10)
        if not limit.path:
            rig.leave_out(limit.missing)
            return
        atexit.register(limit.remove)
        victim = rig.wait_for(f"{name}: the {child} runs", lambda c=child: role(machine, c), 30)
        limit.take([victim])
        rig.wait_for(f"{name}: another {child}", lambda c=child, v=victim: role(machine, c) not in (0, v), 60)
        rig.check(limit.killed() == 1, f"{name}: the kernel killed the {child} for want of memory")
        limit.remove()
        said = rig.wait_for("the journal", lambda c=child: re.search(rf"{c} \(pid \d+\) was killed by signal 9.*", journal(machine)))
        rig.check(True, f"{name}: the journal has {said[0]}")
    after = machine.run("systemctl", "show", "--property=" + ",".join(service), "perfwalk")
    rig.check(after == before and "Result=success" in after, f"{name}: to systemd nothing has happened: {' '.join(after.split())}")
    delivered(machine, sink, name)


def reloaded(machine, sink, name):
    broker = main_pid(machine)
    machine.write(CONFIG, config(sink.port, 97))
    machine.run("systemctl", "reload", "perfwalk")
    rig.wait_for(f"{name}: the new rate", lambda: status(machine).get("rate_hz") == 97, 30)
    rig.check(main_pid(machine) == broker, f"{name}: systemctl reload takes the new config")


def spooled(machine, port, name):
    """Profiles that could not be sent stay on disk over a restart, and reach the receiver that is there then."""
    machine.write(CONFIG, config(port))
    start(machine, name, "restart")
    spool = f"/proc/{machine.pid}/root/var/lib/perfwalk/spool"
    rig.wait_for(f"{name}: a profile that nobody takes", lambda: status(machine).get("payloads", 0) > 0)
    begin = time.monotonic()
    machine.run("systemctl", "stop", "perfwalk")
    seconds = time.monotonic() - begin
    result = machine.run("systemctl", "show", "-P", "Result", "perfwalk").strip()
    rig.check(result == "success", f"{name}: systemctl stop, nobody takes the profiles: {result} after {seconds:.1f} s")
    kept = [f for f in os.listdir(spool) if f.endswith(".otlp")]
    rig.check(kept, f"{name}: {len(kept)} profiles are on disk")
    with Sink(port) as sink:
        start(machine, name)
        rig.wait_for(f"{name}: the spool is sent", lambda: not [f for f in kept if os.path.exists(f"{spool}/{f}")], 60)
        rig.check(sink.count() >= len(kept), f"{name}: they come after the start")
        machine.run("systemctl", "stop", "perfwalk")


def handed_back(machine):
    """From rootless.conf to none: systemd gives what is in the directories of the service to root, also the spool."""
    port = rig.free_port()
    machine.write(DROP_IN, source("rootless.conf"))
    machine.run("systemctl", "daemon-reload")
    machine.write(CONFIG, config(port))
    start(machine, "rootless.conf")
    rig.wait_for("rootless.conf: a profile that nobody takes", lambda: status(machine).get("payloads", 0) > 0)
    machine.run("systemctl", "stop", "perfwalk")
    spool = f"/proc/{machine.pid}/root/var/lib/perfwalk/spool"
    kept = [f for f in os.listdir(spool) if f.endswith(".otlp")]
    machine.write(DROP_IN, "")
    machine.run("systemctl", "daemon-reload")
    with Sink(port) as sink:
        start(machine, "without rootless.conf")
        rig.wait_for("without rootless.conf: the spool is sent", lambda: not [f for f in kept if os.path.exists(f"{spool}/{f}")], 60)
        rig.check(kept and sink.count() >= len(kept), f"without rootless.conf: {len(kept)} profiles come that it had kept")
        machine.run("systemctl", "stop", "perfwalk")


def admin(machine):
    return int(rig.status_of(machine.host_pid(main_pid(machine)))["CapBnd"], 16) & CAP_SYS_ADMIN != 0


def users(machine, name, root):
    """Who the processes are, and with which capabilities."""
    broker = machine.host_pid(main_pid(machine))
    facts = {rig.comm_of(pid): rig.status_of(pid) for pid in [broker, *rig.children_of(broker)]}
    uids = {comm: int(f["Uid"].split()[0]) for comm, f in facts.items()}
    for child in ROLES:
        comm = rig.ROLES[child]
        rig.check(int(facts[comm]["CapEff"], 16) == 0 and uids[comm] != 0,
                  f"{name}: the {child} is uid {uids[comm]}, without capabilities")
    rig.check((uids[rig.comm_of(broker)] == 0) == root, f"{name}: the broker is uid {uids[rig.comm_of(broker)]}")


def variant(machine, name, drop_in, root=True, graded=True):
    machine.write(DROP_IN, drop_in)
    machine.run("systemctl", "daemon-reload")
    if graded:
        exposure(machine, name)
    with Sink() as sink:
        machine.write(CONFIG, config(sink.port))
        start(machine, name)
        rig.check(True, f"{name}: it tells systemd that it is ready")
        delivered(machine, sink, name)
        users(machine, name, root)
        settings(machine, name)
        rig.check(admin(machine) != graded, f"{name}: {'without' if graded else 'with'} CAP_SYS_ADMIN")
        nets = {os.readlink(f"/proc/{pid}/ns/net") for pid in (machine.host_pid(main_pid(machine)), role(machine, "profiler"))}
        rig.check(len(nets) == (1 if graded else 2), f"{name}: the profiler has {'the' if graded else 'a'} network{'' if graded else ' of its own'}")
        now = rig.wait_for(f"{name}: perfwalk ctl status", lambda: status(machine), 60)
        rig.check(now.get("rate_hz") == 49, f"{name}: perfwalk ctl status: {now.get('samples')} samples")
        own = rig.status_of(role(machine, "symbolizer"))
        socket = rig.wait_for(f"{name}: the control socket is for a group", lambda: (lambda s: s if stat.S_IMODE(s.st_mode) == 0o660
                                                                                    else None)(
            os.stat(f"/proc/{machine.pid}/root/run/perfwalk/control")))
        rig.check(socket.st_gid == int(own["Gid"].split()[0]), f"{name}: the control socket is for perfwalk's group")
        rig.wait_for(f"{name}: systemctl status counts them", lambda: "samples" in machine.run(
            "systemctl", "show", "-P", "StatusText", "perfwalk"), 60)
        rig.check(True, f"{name}: systemctl status counts them")
        if graded:
            out_of_memory(machine, sink, name)
            killed(machine, sink, name)
            reloaded(machine, sink, name)
        else:
            machine.run("systemctl", "stop", "perfwalk")
        port = sink.port
    if graded:
        spooled(machine, port, name)
    said = journal(machine)
    rig.check("profiling the whole host" in said, f"{name}: the journal has the start")
    refused = re.search(r".*(?:Operation not permitted|Permission denied|Read-only|is not used).*", said)
    rig.check(not refused, f"{name}: the journal has no refusal" + (f": {refused[0]}" if refused else ""))


def given_up(machine):
    """What another start does not change does not start again: systemd has failed it for good."""
    causes = [("config", "an error in the config", "", 2)]
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        if int(f.read()) > 0:
            causes.append((config(1), "no capability", "[Service]\nCapabilityBoundingSet=\nCapabilityBoundingSet=CAP_KILL\n", 3))
        else:
            rig.leave_out("perf_event_paranoid is 0 or less here: everybody may sample")
    for text, what, drop_in, code in causes:
        machine.write(CONFIG, text)
        machine.write(DROP_IN, drop_in)
        machine.run("systemctl", "daemon-reload")
        machine.try_run("systemctl", "start", "perfwalk")
        state = machine.run("systemctl", "show", "--property=ActiveState,SubState,NRestarts,ExecMainStatus", "perfwalk").split()
        rig.check(sorted(state) == ["ActiveState=failed", f"ExecMainStatus={code}", "NRestarts=0", "SubState=failed"],
                  f"{what}: {state}")


def main():
    machine = boot()
    variant(machine, "unit", "")
    variant(machine, "rootless.conf", source("rootless.conf"), root=False)
    handed_back(machine)
    variant(machine, "old-kernel.conf", source("old-kernel.conf"), graded=False)
    variant(machine, "paranoid.conf", source("paranoid.conf"), graded=False)
    given_up(machine)
    machine.halt()


rig.run(main)
