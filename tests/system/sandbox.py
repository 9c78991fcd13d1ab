# SPDX-License-Identifier: Apache-2.0
# Rooms: src/process
"""What the kernel refuses to the processes of perfwalk: each but the broker has its filter of system calls,
in every mode of the config, and samples arrive all the same."""
import os

import rig
from sink import Sink

FILTER = "2"  # /proc/PID/status, Seccomp: SECCOMP_MODE_FILTER


def config(sink, extra=""):
    return f"""
[profiler]
samples_per_second = 99
reporter_interval = 1s
[debuginfod]
urls = http://127.0.0.1:1
cache_path = {rig.path("cache")}
[metrics]
listen = unix:{rig.path("metrics")}
[process]
{extra}
[export:sink]
endpoint = {sink.endpoint}
"""


def roles_of(daemon):
    rig.ROLES.update(fetcher="pw-fetcher", metrics="pw-metrics")
    return daemon.wait_up()


def wait_filter(pid, want):
    rig.wait_for(f"Seccomp: {want} of {rig.comm_of(pid)}", lambda: rig.status_of(pid).get("Seccomp") == want)


def check_modes():
    for mode in ("errno", "kill", "no"):
        with Sink() as sink:
            daemon = rig.Daemon(config(sink, f"seccomp = {mode}"), f"mode-{mode}", env={**os.environ, "PERFWALK_SECCOMP": ""})
            roles = roles_of(daemon)
            want = "0" if mode == "no" else FILTER
            for pid in roles.values():
                wait_filter(pid, want)
            sink.wait_for(2, 20)
            rig.check(daemon.roles() == roles, f"seccomp = {mode}: {', '.join(roles)} have "
                      + ("no filter" if mode == "no" else "a filter of the kernel's") + ", and work")
            rig.check(rig.status_of(daemon.pid)["Seccomp"] == "0", "and the broker, which opens what they need, has none")
            daemon.stop()


def check_environment():
    with Sink() as sink:
        daemon = rig.Daemon(config(sink), "environment", env={**os.environ, "PERFWALK_SECCOMP": "no"})
        for pid in roles_of(daemon).values():
            wait_filter(pid, "0")
        rig.check(True, "PERFWALK_SECCOMP=no in the environment takes precedence")
        daemon.stop()
        daemon = rig.Daemon(config(sink, "seccomp = no"), "word", env={**os.environ, "PERFWALK_SECCOMP": "eror"})
        for pid in roles_of(daemon).values():
            wait_filter(pid, "0")
        rig.check(daemon.log().count('PERFWALK_SECCOMP is "eror": expected errno, kill or no') == 1,
                  "another word there is told of once, and ignored")
        daemon.stop()


def main():
    rig.need_root()
    if "Seccomp" not in rig.status_of(os.getpid()):
        rig.skip("this kernel has no seccomp")
    check_modes()
    check_environment()


rig.run(main)
