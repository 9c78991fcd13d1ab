# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/process src/opener src/cmd
"""Without root: a command of one's own can be recorded where the kernel allows it, the whole host
cannot, and each refusal says what is missing in words and by exit status 3. The quota of locked memory
is shared out among the CPUs."""
import os
import signal
import subprocess

import rig

# The quota of locked memory is the user's: that of nobody may be in use by another test, and Linux 6.18 charges a user
# for the second mapping of a ring, for ever.
STRANGER, OTHER = 100000 + os.getpid(), 200000000 + os.getpid()
NOGROUP = 65534


def become(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={NOGROUP}", "--clear-groups", "--inh-caps=-all"]


def as_user(uid, *command):
    out = rig.path("theirs")
    os.chown(out, uid, NOGROUP)
    p = rig.start([*become(uid), *command], cwd=out, stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  env={"PATH": os.environ["PATH"], "HOME": out})
    text, err = p.communicate(timeout=120)
    return p.returncode, text, err


def as_stranger(program, *args):
    return as_user(STRANGER, program, *args)


def hidden(program, directory):
    """Nobody of the same user looks into the memory of the processes, and they leave no core; the command may."""
    p = rig.start([*become(STRANGER), program, "record", "-o", "hidden.folded", "--",
                   os.path.join(directory, "blip"), "4000"], cwd=rig.path("theirs"),
                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def child(name):
        return next((c for c in rig.children_of(p.pid) if rig.comm_of(c) == name), 0)
    rig.wait_for("the capture", lambda: all(map(child, (rig.ROLES["symbolizer"], rig.ROLES["profiler"], "blip"))))

    def limit(pid, name):
        with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
            return next(line[len(name):].split()[0] for line in f if line.startswith(name))
    # The kernel gives /proc/PID of a process that is not dumpable to root.
    for name, pid in (("broker", p.pid), ("profiler", child(rig.ROLES["profiler"]))):
        rig.wait_for(f"{name}: no core, and hidden from its own user", lambda pid=pid:
                     os.stat(f"/proc/{pid}/environ").st_uid == 0 and limit(pid, "Max core file size") == "0")
    rig.check(os.stat(f"/proc/{child('blip')}/environ").st_uid == STRANGER, "the command is not hidden")
    with open("/proc/self/limits", encoding="utf-8") as f:
        ours = next(line.split()[4] for line in f if line.startswith("Max core file size"))
    rig.check(limit(child("blip"), "Max core file size") == ours, f"its limit is what it was: {ours}")
    with open(rig.perfwalk(), "rb") as f:
        if b"__asan_init" not in f.read():
            for role in ("profiler", "symbolizer"):
                rig.wait_for(f"{role}: it can start no process", lambda role=role:
                             limit(child(rig.ROLES[role]), "Max processes") == "0")
    rig.end(p, signal.SIGINT)


def share_quota(program, directory):
    """As with systemd's and the kernel's older default, 64 KiB beside perf_event_mlock_kb."""
    status, text, err = as_user(OTHER, "prlimit", "--memlock=65536:65536", program, "record", "-F", "199", "-o",
                                "quota.folded", "--", os.path.join(directory, "blip"), "1500")
    rig.check(status == 0 and "the kernel allows rings of" in err,
              f"with little locked memory: exit status {status}, {err.strip()[:200]!r}")
    n = rig.total(rig.read_folded(rig.path("theirs", "quota.folded")))
    lost = [line for line in text.splitlines() if line.split()[:1] == ["lost"]]
    rig.check(n >= 100 and lost and lost[0].split()[1] == "0", f"{n} samples, and of lost ones {lost}")


def main():
    rig.need_root()
    rig.need_programs("setpriv", "prlimit")
    directory = rig.build_workloads("chain", "blip")
    os.mkdir(rig.path("theirs"))
    program = rig.perfwalk_for_others()
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        paranoid = int(f.read())

    status, _, err = as_stranger(program, "record", "-a", "-d", "1", "-o", "all.folded")
    if paranoid >= 1:
        rig.check(status == 3 and any(w in err for w in ("root", "CAP_PERFMON", "perf_event_paranoid")),
                  f"record -a: exit status {status}, {err.strip()[-300:]!r}")
        rig.check(not os.path.exists(rig.path("theirs", "all.folded")), "record -a: no file is left behind")

    command = [os.path.join(directory, "blip"), "1500"]
    status, text, err = as_stranger(program, "record", "-F", "499", "-o", "own.folded", "--", *command)
    if paranoid > 2:
        rig.check(status == 125 and "perf_event_paranoid" in err,  # 3 could be the command's own
                  f"record -- CMD with perf_event_paranoid {paranoid}: {status}, {err.strip()[-300:]!r}")
        return
    rig.check(status == 0, f"record -- CMD leaves with {status}" + ("" if status == 0 else f"\n{text}{err}"))
    stacks = [s for s in rig.read_folded(rig.path("theirs", "own.folded")) if s.user]
    n = rig.total(stacks)
    right = rig.total(s for s in stacks if rig.contains_path(s.user, ["_start", "...", "main", "blip_burn"]))
    rig.check(n >= 200 and right >= 0.9 * n, f"{right} of {n} samples run from _start to main > blip_burn")
    if paranoid == 2:
        rig.check(not any(s.kernel for s in stacks), "no kernel frames, as perf_event_paranoid says")
        rig.check("kernel" in text + err, "and the output says that they are missing")

    short = "that the command was in user code have no samples"
    rig.check(short not in err, "its samples stand for all of its time")
    if paranoid >= 1:
        status, text, err = as_stranger(program, "record", "-o", "short.folded", "--", "sh", "-c",
                                        f"for i in $(seq 100); do {directory}/blip 4; done")
        rig.check(status == 0 and short in err and "perf_event_paranoid=0" in err,
                  f"of many that live for less than a period it says so: {err.strip()[-400:]!r}")

    hidden(program, directory)
    share_quota(program, directory)

    chain = rig.start(["./chain", "30"], cwd=directory)  # root's
    status, _, err = as_stranger(program, "record", "-p", str(chain.pid), "-d", "1", "-o", "x.folded")
    rig.check(status == 3, f"record -p of another user's process: exit status {status}, "
                           f"{err.strip()[-300:]!r}")
    conf = rig.write("run.conf", "[export:x]\nendpoint = http://127.0.0.1:4318\n")
    status, _, err = as_stranger(program, "run", "-c", conf)
    rig.check(status == 3 and err.strip(), f"run: exit status {status}, {err.strip()[-300:]!r}")


rig.run(main)
