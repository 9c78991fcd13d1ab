# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/cmd symbolize
"""Functions and markers (USDT) as events: each pass is counted, in threads and in what a process forks, and
each stack begins there. The truth is the workload's own count. The kernel keeps nothing of it afterwards.
Needs root."""
import os
import re
import shutil
import signal
import subprocess

import rig


def capture(*args, status=0, program=None, **options):
    p = subprocess.run([program or rig.perfwalk(), "record", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=120, check=False, **options)
    if p.returncode != status:
        rig.fail(f"record {' '.join(args)}: {p.returncode}, not {status}\n{p.stdout}{p.stderr}")
    return p.stdout, p.stderr


def counted(text, event=None):
    """Samples of an event of several, or of the only one, with those that the summary says are lost."""
    if event:
        m = re.search(rf"^  {re.escape(event)} +([\d,]+)(?: +([\d,]+) lost)?", text, re.M)
    else:
        m = re.search(r"^Samples +([\d,]+)$(?:.*?)^  lost +([\d,]+)", text, re.M | re.S)
    return sum(int(n.replace(",", "")) for n in m.groups(default="0")) if m else 0


def truth(text):
    m = re.search(r"^work (\d+) marker (\d+) watched (\d+)$", text, re.M)
    if not m:
        rig.fail(f"the workload said nothing of itself: {text}")
    return tuple(map(int, m.groups()))


def left():
    """What the kernel has of ours, but for those of other perfwalks that run now."""
    with open("/sys/kernel/tracing/uprobe_events", encoding="ascii") as f:
        return [x for x in f if (m := re.match(r"p:perfwalk_(\d+)_", x)) and not os.path.exists(f"/proc/{m[1]}")]


def check_command(program):
    name = rig.path("command.perf.txt")
    out, _ = capture("-e", f"uprobe:{program}:work", "-e", f"usdt:{program}:marked:pass/name=pass/",
                     "-o", name, "--", program)
    work, marker, watched = truth(out)
    rig.check(counted(out, "marked:work") == work, f"each of {work} calls of a function is a sample: "
              f"{counted(out, 'marked:work')}")
    rig.check(watched == marker, f"its counter tells the program that the marker is watched: {watched}")
    rig.check(counted(out, "pass") == marker + watched, f"each of {marker + watched} passes of a marker in two places: "
              f"{counted(out, 'pass')}")
    with open(name, encoding="utf-8") as f:
        leaves = {entry.splitlines()[1].split()[1].split("+")[0]
                  for entry in f.read().split("\n\n") if len(entry.splitlines()) > 1 and not entry.startswith("#")}
    rig.check(leaves == {"work"}, f"each stack begins at the probe: {leaves}")
    rig.check(not left(), "the kernel keeps no probe")
    out, _ = capture("-e", f"uprobe:{program}:work", "--", "true")
    rig.check("No samples: this event did not happen" in out, "a command that ran, but not by there")
    # The kernel swaps the events of threads of one origin.
    out, _ = capture("-e", f"uprobe:{program}:work", "--", "sh", "-c", '"$0"; true', program)
    rig.check(counted(out) == work, f"each call in a process that a command starts: {counted(out)}")


def check_period(program):
    out, _ = capture("-e", f"uprobe:{program}:work/period=10,name=tenth/", "-e", f"uprobe:{program}:work+0/name=all/",
                     "--", program)
    work, _, _ = truth(out)
    # On each CPU and in each thread the count begins anew.
    parts = 8 * os.cpu_count()
    rig.check(work / 10 - parts <= counted(out, "tenth") <= work / 10, f"every tenth: {counted(out, 'tenth')} of {work}")
    rig.check(counted(out, "all") == work, "another event at the same place")


def check_process(source):
    """A process with a root of its own, by the path that it sees."""
    root = rig.path("root")
    os.mkdir(root)
    subprocess.run(["gcc", "-O1", "-static", "-pthread", "-o", f"{root}/inside", source], check=True)
    p = rig.start(["chroot", root, "/inside", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rig.wait_for("it runs", lambda: rig.comm_of(p.pid) == "inside")
    said = []

    def go():
        said.append(p.communicate("\n", timeout=60)[0])
        return True

    r = rig.record("-e", "uprobe:/inside:work", "-p", str(p.pid), until=go)
    work, _, _ = truth(said[0])
    rig.check(counted(r.out) == work, f"of a process, by its own path: {counted(r.out)}")


def check_stale(program):
    """One that is killed leaves its probes, and the next one removes them."""
    p = rig.start([rig.perfwalk(), "record", "-a", "-e", f"uprobe:{program}:work", "-o", rig.path("x.folded")],
                  stderr=subprocess.PIPE, text=True)
    rig.wait_until_it_records(p)
    rig.end(p, signal.SIGKILL)
    rig.wait_for("its children are gone", lambda: not left() or capture(
        "-e", f"uprobe:{program}:work", "--", program) and not left())
    rig.check(not left(), "the probes of one that was killed are removed by the next")


def check_refused(program):
    for event, why in ((f"uprobe:{program}:wrok", "did you mean work?"),
                       (f"uprobe:{program}:fork", "another file has"),
                       (f"uprobe:{program}-not:work", "no such file"),
                       (f"uprobe:{program}:work+99999999", "no code at"),
                       (f"usdt:{program}:marked:past", "did you mean marked:pass?"),
                       ("uprobe:relative:work", "uprobe:/PATH:FUNCTION"),
                       (f"uprobe:{program}:work/filter=a==1/", "only tracepoints have fields"),
                       ("uprobe:/etc/passwd:work", "no ELF program")):
        _, err = capture("-e", event, "-d", "1", status=2)
        rig.check(why in err, f"{event}: {err.strip()}")
    _, err = capture("-e", f"uprobe:{program}:work", "--all-kernel", "-d", "1", status=2)
    rig.check("in user code" in err, f"--all-kernel: {err.strip()}")


def check_twins():
    """Two functions of one name: by the address of each."""
    name = rig.path("twins")
    for i in range(2):
        rig.write(f"twin{i}.c", "__attribute__((noinline)) static void twin(void) { __asm__ volatile(\"\"); }\n"
                  f"void call{i}(void); void call{i}(void) {{ for (int i = 0; i < {3 + i}; i++) twin(); }}\n")
    rig.write("twins.c", "void call0(void); void call1(void); int main(void) { call0(); call1(); }\n")
    subprocess.run(["gcc", "-O1", "-o", name, *(rig.path(f"{x}.c") for x in ("twins", "twin0", "twin1"))], check=True)
    _, err = capture("-e", f"uprobe:{name}:twin", "--", name, status=2)
    addresses = re.findall(r"0x[0-9a-f]+", err.split("by its address,")[-1])
    rig.check(len(addresses) == 2, f"two functions are told apart: {err.strip()}")
    counts = [counted(capture("-e", f"uprobe:{name}:{a}", "--", name)[0]) for a in addresses]
    rig.check(sorted(counts) == [3, 4], f"each by its address: {counts}")


def check_of_others(program):
    """A number that is no process here may be one in another container: what that has set stays, in use or not."""
    p = subprocess.Popen(["true"])
    p.wait()
    ours = os.stat("/proc/self/ns/pid").st_ino
    for namespace in (ours ^ 1, ours):
        name = f"perfwalk_{p.pid}_{namespace:x}_0000abcd/p0_0"

        def command(text):
            fd = os.open("/sys/kernel/tracing/uprobe_events", os.O_WRONLY | os.O_APPEND)
            os.write(fd, text.encode())
            os.close(fd)
        command(f"p:{name} {program}:0x1000")
        capture("-e", f"uprobe:{program}:work", "--", "true")
        with open("/sys/kernel/tracing/uprobe_events", encoding="ascii") as f:
            stays = name in f.read()
        if stays:
            command(f"-:{name}")
        rig.check(stays == (namespace != ours), f"a probe of process {p.pid} of {'this' if namespace == ours else 'another'} "
                  f"pid namespace, which is none here: it stays: {stays}")


def main():
    rig.need_root()
    rig.need_programs("gcc")
    rig.need_tracefs()
    if not os.path.exists("/sys/kernel/tracing/uprobe_events"):
        rig.skip("this kernel has no uprobes")
    source = os.path.join(rig.WORKLOADS, "marked.c")
    program = os.path.join(rig.build_workloads("marked"), "marked")
    check_command(program)
    check_period(program)
    check_process(source)
    check_twins()
    check_refused(program)
    check_stale(program)
    check_of_others(program)


rig.run(main)
