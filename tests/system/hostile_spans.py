# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker proto
"""Processes of another user publish hostile contexts beside a program whose contexts are right: records that are cut
off, too long, loops, nowhere, half-written all the time, and process contexts that change while they are read. The
spans of the good program stay exact, nothing of one process is in another's samples, a half-written record is never
taken for a whole one, and a sample costs no more."""
import os
import resource
import subprocess

import otlp
import rig
import spans

USER = 65534
TORN = {("a1" * 16, "a1" * 8), ("b2" * 16, "b2" * 8)}
MAX_SLOWER = 2  # a hostile process may take all its reads; a busy host counts some more of everything


def start_hostile(kind):
    program = os.path.join(rig.build_workloads("spans-hostile"), "spans-hostile")
    p = rig.start([program, kind], stdout=subprocess.DEVNULL, user=USER)
    rig.check(os.stat(f"/proc/{p.pid}").st_uid == USER or p.poll() == 77, f"hostile {kind} of another user")
    return p


def capture(good, others, seconds):
    """The capture, and the CPU time of perfwalk for each of its samples."""
    out = rig.path("spans.otlp")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = rig.record_cpu(seconds, [good.pid], "-F", "1999", "-p", ",".join(str(p.pid) for p in [good, *others]), "-o", out)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rig.check(r.status == 0, f"a capture beside {len(others)} others")
    with open(out, "rb") as f:
        message = otlp.decode(f.read())
    n = sum(len(s[5]) for s in spans.linked(message))
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return message, used / n


def check_hostile(message, pid, kind, good_ids):
    mine = [s for s in spans.linked(message) if s[0].get("process.pid") == pid]
    rig.check(len(mine) > 10, f"hostile {kind}: {len(mine)} samples")
    rig.check(not {s[3] for s in mine} & good_ids, f"hostile {kind}: none has a span of the good program")
    torn = {(s[4], s[3]) for s in mine if s[2] == "in_torn" and s[3]}
    rig.check(torn <= TORN and (kind == "process" or torn), f"hostile {kind}: half-written records are none: {torn}")
    others = {(s[2], s[3]) for s in mine if s[3] and s[2] not in ("in_torn", "in_loop", None)}
    rig.check(not others, f"hostile {kind}: what is no record has no span: {others}")


def main():
    rig.need_root()
    good, calm = spans.Program("spans"), spans.Program("spans")
    _, cost = capture(good, [calm], 1.2)
    rig.end(calm.process)
    hostile = {kind: start_hostile(kind) for kind in ("threads", "process")}
    message, hostile_cost = capture(good, hostile.values(), 2)
    spans.check_samples(spans.samples_of(message, good), good, "beside hostile programs")
    ids = set(good.spans.values())
    for kind, p in hostile.items():
        rig.check(p.poll() is None, f"hostile {kind} runs")
        check_hostile(message, p.pid, kind, ids)
    rig.check(hostile_cost <= MAX_SLOWER * cost, f"{1e6 * hostile_cost:.0f} us a sample beside them, {1e6 * cost:.0f} before")


if __name__ == "__main__":
    rig.run(main)
