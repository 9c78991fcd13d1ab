# SPDX-License-Identifier: Apache-2.0
# Rooms: src/perf-data src/sample src/host src/profiler src/opener
"""What perf recorded, converted: names and callers as a capture of our own has them, from files and
pipes, with every kind of call graph, of one program and of the whole host; only from the files that
were recorded; and clear words about files that cannot be read."""
import os
import random
import re
import shutil
import struct
import subprocess

import rig
from cgroup_dirs import Cgroups, digits, mount_point, start_in
from expect import Expectation

RATE = "499"
MUTANTS = 40


def perf(name, *args, **options):
    """perf record; its file. Build ids in the file, no copies of programs in ~/.debug."""
    out = rig.path(name)
    r = subprocess.run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-F", RATE, "-o", out, *args],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False, timeout=120, **options)
    rig.check(os.path.getsize(out) > 0, f"perf record {' '.join(args)}"[:100] +
              ("" if os.path.getsize(out) else r.stdout))
    return out


def convert(source, *args, env=None):
    """perfwalk convert to folded stacks: the run, and its stacks if it was one."""
    out = rig.path("out.folded")
    r = rig.Record([rig.perfwalk(), "convert", source, "-o", out, *args], 60, env=env)
    return r, rig.read_folded(out) if r.status == 0 else []


def converted(source, what, **options):
    r, stacks = convert(source, **options)
    rig.check(r.status == 0 and "warning" not in r.err, what + ("" if r.status == 0 else r.text()))
    return stacks, r


def judge(stacks, name, comm=None):
    for holds, text in Expectation(os.path.join(rig.WORKLOADS, f"{name}.expect")).judge(
            [s for s in stacks if s.comm == (comm or name) and s.user]):
        rig.check(holds, text)


def timed(seconds, *argv):
    return ["timeout", str(seconds), *argv]


def check_call_graphs(programs):
    dwarf = perf("dwarf.data", "--call-graph", "dwarf,16384", "--", *timed(2, f"{programs}/chain"))
    stacks, _ = converted(dwarf, "a file with copies of the stack")
    judge(stacks, "chain")

    pipe = rig.path("pipe.data")
    with open(pipe, "wb") as f:
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", RATE, "--call-graph",
                        "dwarf,16384", "-o", "-", "--", *timed(1.5, f"{programs}/chain")],
                       stdout=f, stderr=subprocess.DEVNULL, check=False)
    stacks, _ = converted(pipe, "the form of a pipe")
    judge(stacks, "chain")

    packed = perf("zstd.data", "-z", "--call-graph", "dwarf,16384", "--", *timed(1, f"{programs}/chain"))
    rig.check(os.path.getsize(packed) < os.path.getsize(dwarf) // 4, "compressed records")
    stacks, _ = converted(packed, "compressed records are read")
    judge(stacks, "chain")

    stacks, _ = converted(perf("fp.data", "--call-graph", "fp", "--", *timed(1, f"{programs}/chain-fp")),
                          "a file with chains by frame pointers")
    mine = [s for s in stacks if s.comm == "chain-fp" and s.user]
    # The leaf makes no frame of its own: a chain by frame pointers has no chain_five.
    path = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "...", "chain_leaf"]
    right = rig.total(s for s in mine if rig.contains_path(s.user, path))
    rig.check(right >= 0.8 * rig.total(mine) > 0, f"{right} of {rig.total(mine)} chains are right")

    stacks, r = converted(perf("flat.data", "--", *timed(1, f"{programs}/chain")), "a file without any")
    leaf = rig.total(s for s in stacks if s.user == ["chain_leaf"])
    rig.check(leaf >= 0.8 * rig.total(stacks), f"{leaf} of {rig.total(stacks)} samples name the leaf alone")
    rig.check("--call-graph dwarf" in r.err, "and how to have call graphs is said")
    return dwarf


def check_events(programs):
    """Of several events the one asked for; where there is none such, which there are."""
    source = rig.path("events.data")
    subprocess.run(["perf", "record", "-q", "-N", "-e", "cpu-clock,page-faults/period=1/", "-o", source,
                    "--call-graph", "dwarf,8192", "--", f"{programs}/counted", "faults", "3000"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    r, clock = convert(source)
    rig.check(r.status == 0 and "--event" in r.err, f"the first, and how to have others: {r.err.strip()!r}")
    r, faults = convert(source, "--event", "page-faults")
    rig.check(r.status == 0 and rig.total(faults) >= 100 and rig.total(faults) > 4 * rig.total(clock),
              f"--event page-faults: {rig.total(faults)}, of cpu-clock {rig.total(clock)}")
    r, _ = convert(source, "--event", "cycles")
    rig.check(r.status == 1 and "cpu-clock" in r.err and "page-faults" in r.err, f"none such: {r.err.strip()!r}")
    p = subprocess.run([rig.perfwalk(), "report", source, "--event", "cycles"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=False)
    rig.check(p.returncode == 1 and not p.stdout, "and no empty table of it")


def check_containers(programs):
    """Known by the records of control groups, as perf record --all-cgroups writes them."""
    # With version 1 the ids of samples are those of a hierarchy of its own.
    own = "/sys/fs/cgroup/perf_event"
    with Cgroups(own if os.path.isdir(own) else mount_point()) as cgroups:
        number = digits("5b")
        p = start_in(cgroups.make(f"docker/{number}"), [f"{programs}/chain"])
        other = rig.start([f"{programs}/recurse"])
        source = perf("containers.data", "-a", "--all-cgroups", "--call-graph", "dwarf,8192", "--", "sleep", "1")
        rig.end(p)
        rig.end(other)
    out = subprocess.run([rig.perfwalk(), "report", source, "--csv", "--sort", "container,comm", "--container",
                          number[:12]], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split("\t")[-2:] for line in out.splitlines()[1:]]
    rig.check(rows == [[number[:12], "chain"]], f"report --container: {rows}")


def check_host(programs):
    """Known before the recording, forked and executed during it, gone after it."""
    own, shell = f"chain-{os.getpid()}", f"sh-{os.getpid()}"  # the host may run others
    shutil.copy(f"{programs}/chain", f"{programs}/{own}")
    shutil.copy("/bin/sh", f"{programs}/{shell}")
    chain = rig.start([f"{programs}/{own}"])
    script = f"i=0; while [ $i -lt 25 ]; do {programs}/{shell} -c 'j=0; while [ $j -lt 9000 ]; do j=$((j+1)); done'; " \
             "i=$((i+1)); done"
    whole = perf("host.data", "-a", "--all-cgroups", "--call-graph", "dwarf,16384", "--",
                 f"{programs}/{shell}", "-c", script)
    rig.end(chain)
    stacks, _ = converted(whole, "the whole host")
    judge(stacks, "chain", own)
    mine = [s for s in stacks if s.comm == shell and s.user]
    complete = rig.total(s for s in mine if s.complete())
    rig.check(complete >= 0.95 * rig.total(mine) > 20,
              f"{complete} of {rig.total(mine)} samples of short-lived shells reach their entry")
    kernel = [f for s in stacks for f in s.kernel]
    named = sum(not f.startswith("[") for f in kernel)
    rig.check(named >= 0.99 * len(kernel) > 0, f"{named} of {len(kernel)} kernel frames have names")
    nameless = rig.total(s for s in stacks if not s.comm)
    rig.check(nameless == 0, f"every process has a name (without: {nameless})")


def check_files(programs):
    """Only the very file that was recorded speaks for its addresses."""
    home = rig.path("home")
    os.mkdir(home)
    env = dict(os.environ, HOME=home)
    program = rig.path("chain")
    shutil.copy(f"{programs}/chain", program)
    source = perf("moved.data", "--call-graph", "dwarf,16384", "--", *timed(1, program))
    stacks, _ = converted(source, "before anything happens to the program", env=env)
    rig.check(any("chain_leaf" in s.user for s in stacks), "it has names")
    subprocess.run(["perf", "buildid-cache", "--add", program], env=env, check=True)
    shutil.copy(f"{programs}/recurse", program + ".new")
    os.rename(program + ".new", program)

    stacks, _ = converted(source, "with another program in its place, and the recorded in perf's cache",
                          env=env)
    rig.check(any("chain_leaf" in s.user for s in stacks), "it has its names from the cache")
    shutil.rmtree(os.path.join(home, ".debug"))
    stacks, r = converted(source, "with another program in its place", env=env)
    frames = {f for s in stacks for f in s.user}
    rig.check(any(f.startswith("[chain+0x") for f in frames) and "main" not in frames,
              "its frames carry addresses, and no name of the other program")
    rig.check("build id" in r.err, "and that is said")


def check_kallsyms(programs):
    """perf's copy of kallsyms speaks for the kernel that was recorded, if it is of the same boot."""
    env = dict(os.environ, HOME=rig.path("kernel-home"))
    os.mkdir(env["HOME"])
    source = rig.path("kernel.data")
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", RATE, "-g", "-o", source, "--", "dd",
                    "if=/dev/zero", "of=/dev/null", "bs=1", "count=600000"], env=env, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    directory = os.path.join(env["HOME"], ".debug", "[kernel.kallsyms]")
    if not os.path.isdir(directory):
        rig.leave_out("perf's copy of kallsyms: perf made none")
        return
    copy = os.path.join(directory, os.listdir(directory)[0], "kallsyms")
    with open(copy, encoding="utf-8") as f:
        text = f.read()

    def names(change):
        os.chmod(copy, 0o600)
        with open(copy, "w", encoding="utf-8") as f:
            f.write(change(text))
        stacks, _ = converted(source, "a file with frames of the kernel", env=env)
        return {f.split("_[k]")[0] for s in stacks for f in s.kernel}
    have = names(lambda t: t.replace(" do_syscall_64\n", " a_name_of_the_copy\n"))
    rig.check("a_name_of_the_copy" in have and "do_syscall_64" not in have, "its names are taken")
    have = names(lambda t: re.sub(r"^[0-9a-f]+( . _text)$", r"ffffffff12300000\1", t, flags=re.M).replace(
        " do_syscall_64\n", " a_name_of_the_copy\n"))
    rig.check("do_syscall_64" in have, "but not those of another boot")


def check_perf_map(programs):
    source = perf("jit.data", "--call-graph", "dwarf,16384", "--", *timed(1, f"{programs}/jit"))
    stacks, _ = converted(source, "compiled code of a process that is gone")
    named = rig.total(s for s in stacks if any(f.endswith("_[j]") and not f.startswith("[") for f in s.user))
    rig.check(named >= 0.5 * rig.total(stacks), f"{named} of {rig.total(stacks)} samples have names of its map")


def check_jitdump(programs):
    source = perf("unwound.data", "--call-graph", "dwarf,16384", "--", *timed(1, f"{programs}/unwound", rig.workdir()))
    stacks, _ = converted(source, "compiled code without frame pointers, of a process that is gone")
    whole = rig.total(s for s in stacks if rig.contains_path(s.user, ["main", "run_outer", "jitted_outer", "jitted_inner"]))
    rig.check(whole > 0.9 * rig.total(stacks), f"{whole} of {rig.total(stacks)} stacks pass it by what its jitdump file says")


def refused(source, *words):
    r, _ = convert(source)
    rig.check(r.status == 1 and all(w in r.err for w in (os.path.basename(source), *words)) and
              "killed" not in r.err, f"refused: {r.err.strip()[:150]}" + ("" if r.status == 1 else r.text()))
    rig.check(not os.path.exists(rig.path("out.folded")), "and no output is left behind")


def check_refusals(dwarf):
    with open(dwarf, "rb") as f:
        data = f.read()

    def variant(name, content):
        with open(rig.path(name), "wb") as f:
            f.write(content)
        return rig.path(name)

    os.unlink(rig.path("out.folded"))
    refused(variant("header.data", data[:90]), "ends within its header")
    refused(variant("swapped.data", data[7::-1] + data[8:]), "big-endian")
    refused(variant("attrs.data", data[:24] + b"\xff" * 8 + data[32:]), "header is damaged")
    os.mkfifo(rig.path("fifo.data"))
    refused(rig.path("fifo.data"), "not a regular file")
    refused(rig.path("not-there.data"), "No such file")

    _, whole = convert(dwarf)
    r, stacks = convert(variant("cut.data", data[:len(data) * 6 // 10]))
    rig.check(r.status == 0 and "is truncated" in r.err and rig.total(stacks) > 0.4 * rig.total(whole) > 0,
              f"a cut file gives what is there, {rig.total(stacks)} of {rig.total(whole)} samples, with a warning: "
              f"{r.err.strip()[-120:]}")

    rng = random.Random(7)
    for i in range(MUTANTS):
        bad = bytearray(data[:400000])
        for _ in range(rng.randrange(1, 60)):
            at = rng.randrange(rng.choice((104, 1000, len(bad))))
            bad[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        r, _ = convert(variant("mutant.data", bad))
        if r.status not in (0, 1) or "killed" in r.err or "left with" in r.err:
            rig.fail(f"mutant {i} ({rig.keep('mutant.data')}):{r.text()}")
    rig.say(f"ok: {MUTANTS} damaged files were converted or refused")

    r = rig.Record([rig.perfwalk(), "convert", dwarf, dwarf, "-o", rig.path("x.folded")])
    rig.check(r.status == 1 and "alone" in r.err, f"two at a time: {r.err.strip()}")


def check_devices(dwarf):
    """Mappings from devices that no kernel has: whatever they are, they are none of our own marks."""
    with open(dwarf, "rb") as f:
        data = bytearray(f.read())
    at, size = struct.unpack_from("<QQ", data, 40)
    end, n = at + size, 0
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        if kind == 10 and not misc & 1 << 14:  # PERF_RECORD_MMAP2 with an inode
            struct.pack_into("<IIQ", data, at + 40, 0xffffffff, 0, 1 << 40 | n)
            n += 1
        at += length
    with open(rig.path("devices.data"), "wb") as f:
        f.write(data)
    r, stacks = convert(rig.path("devices.data"))
    named = rig.total(s for s in stacks if "chain_leaf" in s.user)
    rig.check(n > 0 and r.status == 0 and "killed" not in r.err and named > 0.9 * rig.total(stacks),
              f"{n} files of an impossible device: {named} of {rig.total(stacks)} samples named by build ids"
              + ("" if r.status == 0 else r.text()))


def check_report(dwarf):
    r = rig.Record([rig.perfwalk(), "report", "--sort", "comm,symbol", dwarf])
    rig.check(r.status == 0 and any("chain_leaf" in line and "chain" in line for line in r.out.splitlines()),
              "a report of the file names the function" + ("" if r.status == 0 else r.text()))


def main():
    rig.need_root()
    rig.need_programs("perf", "timeout", "gcc")
    programs = rig.build_workloads("chain", "recurse", "jit", "unwound", "counted")
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer",
                    "-fno-optimize-sibling-calls", f"-I{rig.WORKLOADS}", "-o", f"{programs}/chain-fp",
                    os.path.join(rig.WORKLOADS, "chain.c")], check=True)
    dwarf = check_call_graphs(programs)
    check_events(programs)
    check_containers(programs)
    check_host(programs)
    check_files(programs)
    check_kallsyms(programs)
    check_perf_map(programs)
    check_jitdump(programs)
    check_devices(dwarf)
    check_report(dwarf)
    check_refusals(dwarf)


if __name__ == "__main__":
    rig.run(main)
