# SPDX-License-Identifier: Apache-2.0
"""Without root: a command of one's own can be recorded where the kernel allows it, the whole host
cannot, and each refusal says what is missing in words and by exit status 3."""
import os
import shutil
import subprocess

import rig

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]


def as_nobody(program, *args):
    out = rig.path("nobody")
    p = rig.start([*NOBODY, program, *args], cwd=out, stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  env={"PATH": os.environ["PATH"], "HOME": out})
    text, err = p.communicate(timeout=60)
    return p.returncode, text, err


def main():
    rig.need_root()
    rig.need_programs("setpriv")
    directory = rig.build_workloads("chain", "blip")
    os.mkdir(rig.path("nobody"))
    os.chown(rig.path("nobody"), 65534, 65534)
    program = shutil.copy(rig.perfwalk(), rig.path("perfwalk"))  # where nobody may read it
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        paranoid = int(f.read())

    status, _, err = as_nobody(program, "record", "-a", "-d", "1", "-o", "all.folded")
    if paranoid >= 1:
        rig.check(status == 3 and any(w in err for w in ("root", "CAP_PERFMON", "perf_event_paranoid")),
                  f"record -a: exit status {status}, {err.strip()[-300:]!r}")
        rig.check(not os.path.exists(rig.path("nobody", "all.folded")), "record -a: no file is left behind")

    command = [os.path.join(directory, "blip"), "1500"]
    status, text, err = as_nobody(program, "record", "-F", "499", "-o", "own.folded", "--", *command)
    if paranoid > 2:
        rig.check(status == 125 and "perf_event_paranoid" in err,  # 3 could be the command's own
                  f"record -- CMD with perf_event_paranoid {paranoid}: {status}, {err.strip()[-300:]!r}")
        return
    rig.check(status == 0, f"record -- CMD leaves with {status}" + ("" if status == 0 else f"\n{text}{err}"))
    stacks = [s for s in rig.read_folded(rig.path("nobody", "own.folded")) if s.user]
    n = rig.total(stacks)
    right = rig.total(s for s in stacks if rig.contains_path(s.user, ["_start", "...", "main", "blip_burn"]))
    rig.check(n >= 200 and right >= 0.9 * n, f"{right} of {n} samples run from _start to main > blip_burn")
    if paranoid == 2:
        rig.check(not any(s.kernel for s in stacks), "no kernel frames, as perf_event_paranoid says")
        rig.check("kernel" in text + err, "and the output says that they are missing")

    chain = rig.start(["./chain"], cwd=directory)  # root's
    status, _, err = as_nobody(program, "record", "-p", str(chain.pid), "-d", "1", "-o", "x.folded")
    rig.check(status == 3, f"record -p of another user's process: exit status {status}, "
                           f"{err.strip()[-300:]!r}")
    conf = rig.write("run.conf", "[export:x]\nendpoint = http://127.0.0.1:4318\n")
    status, _, err = as_nobody(program, "run", "-c", conf)
    rig.check(status == 3 and err.strip(), f"run: exit status {status}, {err.strip()[-300:]!r}")


rig.run(main)
