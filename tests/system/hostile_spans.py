# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker proto
"""Processes of another user publish hostile contexts beside a program whose contexts are right: records that are cut
off, too long, loops, nowhere, half-written all the time, with attributes whose names are ours, repeated or long, and
process contexts that change while they are read. The spans of the good program stay exact, nothing of one process is
in another's samples, a half-written record is never taken for a whole one, and a sample costs no more."""
import os
import resource
import subprocess

import otlp
import otlp_check
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
    out, table = rig.path("spans.otlp"), rig.path("spans.pb.gz")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = rig.record_cpu(seconds, [good.pid], "-F", "1999", "-p", ",".join(str(p.pid) for p in [good, *others]), "-o", out, "-o", table)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rig.check(r.status == 0, f"a capture beside {len(others)} others")
    with open(out, "rb") as f:
        data = f.read()
    message, problems = otlp.decode(data), otlp_check.check(data, file=True)
    rig.check(not problems, f"the file is right: {problems[:3]}")
    n = sum(len(s[5]) for s in spans.linked(message))
    if len(others) > 1:
        rig.check("samples lack some labels" in r.err, "it is said that some labels were left out")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return message, used / n


def check_names(message, pid):
    """The samples of a record with 200 attributes: their keys are those of a list in which they mean harm."""
    view, found = otlp.View(message), []
    for rp in message.resource_profiles:
        if otlp.attributes(rp.resource, view.strings).get("process.pid") == pid:
            found += [(view.dictionary.link_table[s.link_index].span_id.hex(), view.table_attributes(s.attribute_indices))
                      for sp in rp.scope_profiles for p in sp.profiles for s in p.samples
                      if s.link_index and "in_names" in view.frames(s.stack_index)]
    rig.check(found and {span for span, _ in found} == {"c3" * 8}, f"{len(found)} kinds of samples with a list of names")
    own = {"thread.id", "thread.name", "cpu.logical_number"}
    for _, a in found:
        others = {k: v for k, v in a.items() if k not in own}
        harm = [k for k in others if k != "route" and not k.isdigit()]
        n_bytes = sum(len(k) + len(v) for k, v in others.items())
        if a["thread.id"] != pid or a.get("thread.name") == "7" or harm or "route" not in a or len(others) > 32 or n_bytes > 4096:
            rig.check(False, f"labels with names that are ours or repeated: {a}")
    rig.say(f"{len(others)} labels of {n_bytes} bytes are left of 200")
    r = subprocess.run([rig.perfwalk(), "report", "--csv", "--by", "comm,thread,container,service", rig.path("spans.pb.gz")],
                       stdout=subprocess.PIPE, text=True, check=True)
    whose = {tuple(line.split("\t")[3:]) for line in r.stdout.splitlines()[1:]}
    rig.check({w[0] for w in whose} <= {"spans", "spans-hostile"} and not any("7" in w for w in whose),
              f"in pprof each sample is its own program's: {whose}")


def check_hostile(message, pid, kind, good_ids):
    mine = [s for s in spans.linked(message) if s[0].get("process.pid") == pid]
    rig.check(len(mine) > 10, f"hostile {kind}: {len(mine)} samples")
    rig.check(not {s[3] for s in mine} & good_ids, f"hostile {kind}: none has a span of the good program")
    torn = {(s[4], s[3]) for s in mine if s[2] == "in_torn" and s[3]}
    rig.check(torn <= TORN and (kind == "process" or torn), f"hostile {kind}: half-written records are none: {torn}")
    others = {(s[2], s[3]) for s in mine if s[3] and s[2] not in ("in_torn", "in_loop", "in_names", None)}
    rig.check(not others, f"hostile {kind}: what is no record has no span: {others}")


def main():
    rig.need_root()
    good, calm = spans.Program("spans"), spans.Program("spans")
    _, cost = capture(good, [calm], 1.2)
    rig.end(calm.process)
    hostile = {kind: start_hostile(kind) for kind in ("threads", "process")}
    message, hostile_cost = capture(good, hostile.values(), 2)
    spans.check_samples(message, good, "beside hostile programs")
    ids = set(good.spans.values())
    for kind, p in hostile.items():
        rig.check(p.poll() is None, f"hostile {kind} runs")
        check_hostile(message, p.pid, kind, ids)
    check_names(message, hostile["threads"].pid)
    rig.check(hostile_cost <= MAX_SLOWER * cost, f"{1e6 * hostile_cost:.0f} us a sample beside them, {1e6 * cost:.0f} before")


if __name__ == "__main__":
    rig.run(main)
