# SPDX-License-Identifier: Apache-2.0
# Rooms: src/screen src/symbolizer src/cmd
"""The live view: tables in batch mode that add up, a screen at two sizes whose keys do what the help
says, and a terminal that is left as it was, however the view ends."""
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import cgroup_dirs
import rig

FAST = ["-d", "200ms", "--window", "2s"]
SPINNER = "spinner"  # a name that no other test's program has


# ---- Batch ----


def batch(*args):
    p = subprocess.run([rig.perfwalk(), "top", "--batch", *FAST, *args], text=True, timeout=120, check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rig.check(p.returncode == 0 and not p.stderr, f"top --batch {' '.join(args)} ends with 0 in peace {p.stderr}")
    return re.split(r"\n(?=perfwalk top )", p.stdout)


def rows_of(table):
    """Rows of a batch table as tuples of their numbers and the rest."""
    lines = table.split("\n\n", 1)[1].strip("\n").split("\n")[1:]
    found = [re.fullmatch(r" *([\d.]+) +([\d.]+) +(.*)", line) for line in lines]
    if not all(found):
        rig.fail(f"no table:\n{table}")
    return [(float(m[1]), float(m[2]), m[3].split()) for m in found]


def test_batch(spinner):
    tables = batch("-n", "3", "--window", "10s")  # however late a screen is
    rig.check(len(tables) == 3, "three tables for -n 3")
    samples = [int(re.search(r"all (\d+) samples", t)[1]) for t in tables]
    rig.check(0 < samples[0] < samples[1] < samples[2], f"the window fills: {samples} samples")
    rows = rows_of(tables[2])
    rig.check(any(r[2][:3] == [SPINNER, SPINNER, "chain_leaf"] and r[0] > 0 for r in rows),
              f"chain_leaf is there; how far up is up to what else the host does: {rows[0]}")
    own = sum(r[0] for r in rows)
    rig.check(abs(own - 100) < 0.02 * len(rows), f"the self shares of {len(rows)} functions add up to {own:.2f}%")
    rig.check(all(r[0] <= r[1] + 0.01 <= 100.02 for r in rows), "self is at most total, total at most 100%")
    rig.check([r[0] for r in rows] == sorted((r[0] for r in rows), reverse=True), "largest self first")
    rows = rows_of(batch("-n", "2", "--sort", "total", "-p", str(spinner.pid))[1])
    whole = {r[2][2] for r in rows if r[1] > 90}
    rig.check({"main", "chain_one", "chain_leaf"} <= whole, "with -p and --sort total, callers have nearly all of it")
    rig.check({r[2][0] for r in rows} == {SPINNER}, "and there is nothing of other processes")
    rows = rows_of(batch("-n", "2", "--view", "processes")[1])
    mine = [r for r in rows if r[2][0] == str(spinner.pid)]
    rig.check(len(mine) == 1 and mine[0][1] > 0, f"the process is there by its CPU time: {mine}")
    rig.check(abs(sum(r[0] for r in rows) - 100) < 0.02 * len(rows), "the shares of all processes add up to 100%")
    rows = rows_of(batch("-n", "2", "--view", "containers")[1])
    rig.check(abs(sum(r[0] for r in rows) - 100) < 0.1, "so do those of containers")


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_own_cost():
    """Its own CPU time, as the first table has it: of one second at least, since it is measured in the middle of two."""
    before = children_cpu()
    table, = batch("-n", "1", "-d", "2s")
    used = children_cpu() - before
    share = float(re.search(r"perfwalk ([\d.]+)% CPU", table)[1])
    rig.check(0 < share / 100 <= used, f"the first table has perfwalk's own cost: {share}% CPU of {used:.2f} s in all")


def test_batch_tree(spinner):
    table = batch("-n", "3", "--view", "tree", "-p", str(spinner.pid))[2]
    rig.check("tree by total  100% = all" in table, "--view tree says what it is")
    lines = table.split("\n\n", 1)[1].strip("\n").split("\n")[1:]
    names = [re.fullmatch(r" *[\d.]+ +[\d.]+ ( +)[-+ ] (\S+).*", line) for line in lines]
    rig.check(all(names) and names[0][2] == SPINNER, f"it begins with the process: {lines[0]}")
    first = [m[2] for m in names]
    calls = [c for c in first if c.startswith("chain_")][:6]
    rig.check(calls == ["chain_one", "chain_two", "chain_three", "chain_four", "chain_five", "chain_leaf"],
              f"callees stand below their callers: {calls}")
    depths = [len(m[1]) for m in names if m[2] in calls]
    rig.check(all(b == a + 1 for a, b in zip(depths, depths[1:6])), f"each a column further in: {depths}")


def test_recursion(directory):
    p = rig.start([os.path.join(directory, "recurse"), "20"], stdout=subprocess.DEVNULL)
    rows = rows_of(batch("-n", "3", "-p", str(p.pid))[2])
    rig.check(any(r[2][2].startswith("recurse") and 80 < r[1] <= 100 for r in rows),
              f"a function that calls itself counts once a stack: {max(r[1] for r in rows)}")
    rig.end(p)


def start_counted(directory):
    """150 page faults, then 40 ms of CPU time, and again."""
    p = rig.start([os.path.join(directory, "counted"), "both", "150", "40", "100000"], stdin=subprocess.PIPE,
                  stdout=subprocess.DEVNULL, text=True)
    p.stdin.write("\n")
    p.stdin.flush()
    return p


def test_events(directory):
    p = start_counted(directory)
    args = ["-p", str(p.pid), "-e", "page-faults", "-e", "cpu-clock/freq=499/"]
    tables = batch("-n", "12", *args)
    events = ("page-faults (each one) on ", "cpu-clock at 499 Hz on ") * 12
    rig.check(len(tables) == 24 and all(f"  {e}" in t for t, e in zip(tables, events)), "a table of each event, twelve times")
    for table, function in zip(tables[22:], ("counted_touch", "counted_burn")):
        first = rows_of(table)[0]
        rig.check(first[2][2] == function and first[0] > 80, f"most of it is in {function}: {first}")
    faults, clock = batch("-n", "12", "--view", "processes", *args)[22:]
    rig.check("PER S" in faults and "CPU%" not in faults and "CPU%" in clock, "columns say what they are")
    per_second, cpu = rows_of(faults)[0][1], rows_of(clock)[0][1]
    rig.check(0.5 < per_second / (cpu / 100) / (150 / 0.04) < 2,
              f"{per_second} faults a second at {cpu}% of a CPU, of 3750 at 100%")
    rig.end(p)


def test_off_cpu(directory):
    """Two threads that block again and again, and two that hang: so many are blocked on average, below their reason."""
    p = rig.start([os.path.join(directory, "pool"), "600000"], stdout=subprocess.DEVNULL)
    rig.wait_for("its threads", lambda: len(os.listdir(f"/proc/{p.pid}/task")) == 7)
    tables = batch("-p", str(p.pid), "--off-cpu", "-n", "2")
    of = [re.search(r" (off_cpu|cpu at 99 Hz) on ", t)[1] for t in tables]
    rig.check(of == ["off_cpu", "cpu at 99 Hz"] * 2, f"what was asked for comes first: {of}")
    # Who only waits for work shows in a second or more.
    args = ["-p", str(p.pid), "--off-cpu", "-n", "2", "--type", "off_cpu", "-d", "1500ms", "--window", "3s"]
    for view in ("functions", "processes", "tree"):
        tables = batch(*args, "--view", view)
        rig.check(len(tables) == 2 and all(" off_cpu on " in t for t in tables), "--type prints this one alone")
        whole, seconds = map(float, re.search(r"100% = ([\d.]+) s of threads in ([\d.]+) s", tables[1]).groups())
        rig.check(3.2 * seconds <= whole <= 4 * seconds + 0.4, f"{whole} s of four threads in {seconds} s")
        if view == "functions":
            rows = {r[2][2]: r[0] for r in rows_of(tables[1])}
            rig.check(abs(rows["clock_nanosleep"] - 25) <= 5, f"one sleeps, the leaf is who called the kernel: {rows}")
        elif view == "processes":
            row = rows_of(tables[1])[0]
            rig.check(abs(row[1] - whole / seconds) <= 0.1 * whole / seconds, f"as many threads on average: {row}")
        else:
            rig.check(re.search(r"- \[wait: condition\]\n(.*\n){1,4}.* busy_ticker ", tables[1]), "a reason is below its process")
    rig.end(p)


def test_event_key(t, directory):
    p = start_counted(directory)
    t.open(100, 30, "-p", str(p.pid), "-e", "page-faults,cpu-clock/freq=499/")
    screen = t.wait_for("page-faults .each one. on", r"[\d.]+ +[\d.]+ +counted +counted +counted_touch")
    rig.check(screen[-1].startswith("e event  "), "the last line names the key")
    t.keys("e")
    screen = t.wait_for("cpu-clock at 499 Hz on", r"[\d.]+ +[\d.]+ +counted +counted +counted_burn")
    rig.check(not any("counted_touch" in line for line in screen[3:5]), "e shows the next event")
    t.keys("2")
    t.wait_for("CPU%")
    t.keys("e")
    t.wait_for("page-faults .each one. on", "PER S", r"\d+  counted")
    rig.say("ok: and then the first again, in the same view")
    t.keys("q")
    t.check_restored("q", 0)
    t.close()
    rig.end(p)


def test_refusals():
    cases = ((["-F", "0"], "-F 0"), (["-d", "1ms"], "100ms"), (["--window", "1s"], "shorter"),
             (["-d", "100ms"], "63 intervals"), (["-n", "0"], "-n 0"), (["-p", "x"], "not a process or thread id"),
             (["-e", "page-fautls"], "top: -e page-fautls: unknown event (did you mean page-faults?)"),
             (["-e", "cycles"], "cycles/period=1000000/"), (["-F", "99", "-e", "faults"], "page-faults/period=10/"),
             (["-e", "cs,cs"], "twice"), (["--type", "off_cpu"], "no table of it"), (["--view", "x"], "containers or tree"), (["--sort", "x"], "self or total"), ([], "--batch"))
    for args, text in cases:
        p = subprocess.run([rig.perfwalk(), "top", *args], text=True, check=False, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        rig.check(p.returncode == 2 and text in p.stderr, f"top {' '.join(args)} is refused: {p.stderr.strip()}")


def test_closed_pipe():
    p = rig.start([rig.perfwalk(), "top", "--batch", *FAST], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.close()
    rig.wait_for("batch mode ends when nobody reads it", lambda: p.poll() is not None)
    rig.check(p.returncode == 0, "a closed pipe ends it with 0")


# ---- A terminal ----


class Terminal:
    """A tmux server of this test's own with one pane, in which a shell runs top and notes the terminal's
    settings before and after."""

    def __init__(self):
        self.socket = rig.path("tmux")
        env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        env.pop("TMUX", None)
        env.pop("NO_COLOR", None)
        rig.start(["tmux", "-D", "-S", self.socket, "-f", "/dev/null"], env=env, stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rig.wait_for("tmux is there", lambda: os.path.exists(self.socket))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *map(str, args)], text=True, check=True,
                              stdout=subprocess.PIPE, timeout=120).stdout

    def open(self, columns, rows, *args):
        for name in ("before", "after", "status"):
            if os.path.exists(rig.path(name)):
                os.unlink(rig.path(name))
        script = rig.write("pane.sh", f"""
cd {rig.workdir()}
trap : INT
stty -g >before
{rig.perfwalk()} top {' '.join([*FAST, *args])}
status=$?
echo $status >status
i=0
while [ $status -gt 128 ] && [ "$(stty -g)" != "$(cat before)" ] && [ $i -lt 600 ]; do
	sleep 0.1  # another process puts it back
	i=$((i + 1))
done
stty -g >after.new; mv after.new after
sleep 1000
""")
        self.tmux("new-session", "-d", "-s", "top", "-x", columns, "-y", rows, f"sh {script}")
        self.wait_for("(SELF|SHARE)%")

    def close(self):
        self.tmux("kill-session", "-t", "top")

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "top").rstrip("\n").split("\n")

    def text(self):
        return "\n".join(self.screen())

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "top", *keys)

    def wait_for(self, *patterns):
        def there():
            text = self.text()
            return all(re.search(p, text, re.M) for p in patterns)
        try:
            rig.wait_for(f"{patterns} on the screen", there)
        except rig.Failure:
            rig.say(self.text())
            raise
        return self.screen()

    def command(self):
        """The process id of perfwalk top."""
        shell = int(self.tmux("display-message", "-p", "-t", "top", "#{pane_pid}"))
        found = [p for p in rig.children_of(shell) if rig.comm_of(p) == "perfwalk"]
        return found[0] if found else 0

    def role(self, name):
        found = [p for p in rig.children_of(self.command()) if rig.comm_of(p) == f"pw-{name}"]
        return found[0] if found else 0

    def check_restored(self, how, status):
        rig.wait_for(f"the end after {how}", lambda: os.path.exists(rig.path("after")))
        before, after, left = (open(rig.path(n), encoding="utf-8").read().strip() for n in
                               ("before", "after", "status"))
        rig.check(left == str(status), f"{how} ends it with {left}")
        rig.check(before == after, f"after {how} the settings of the terminal are as before")
        rig.wait_for(f"the ordinary screen after {how}, with its cursor", lambda: self.tmux(
            "display-message", "-p", "-t", "top", "#{alternate_on} #{cursor_flag} #{keypad_flag}").strip() == "0 1 0")


def shares(screen, column):
    return [float(m[column]) for m in (re.match(r" *([\d.]+) +([\d.]+)  ", line) for line in screen[3:]) if m]


def test_keys(t, columns, rows):
    t.open(columns, rows)
    screen = t.wait_for(r"^functions by self  100% = all \d+ samples", "chain_leaf", "lost 0", r"perfwalk [1-9.]+% CPU")
    rig.check(len(screen) == rows and max(map(len, screen)) <= columns, f"it fills {columns}x{rows} and no more")
    rig.check(screen[0].startswith("perfwalk top  ") and "99 Hz" in screen[0] and "window 2s" in screen[0],
              f"the title says what this is: {screen[0]}")
    rig.check("q quit" in screen[-1], "the last line names the keys")
    t.keys("s")
    screen = t.wait_for("^functions by total", "_start")
    totals = shares(screen, 2)
    rig.check(len(totals) > 5 and totals == sorted(totals, reverse=True), "s sorts by total")
    t.keys("/", "chain_(one|two)", "Enter")
    screen = t.wait_for(r"/chain_\(one\|two\)/", "chain_one", "chain_two")
    rig.check(all(re.search("chain_(one|two)", line) for line in screen[3:] if re.match(r" +\d", line)),
              "the filter leaves what matches")
    t.keys("/", "(", "Enter")
    t.wait_for(r"^/chain_\(one\|two\)\(_ .*[Uu]nmatched")
    rig.say("ok: a bad expression is told, and still to be mended")
    t.keys("Escape")
    rig.wait_for("the first escape alone", lambda: not re.search("[Uu]nmatched", t.text()))  # or both are one key
    t.keys("Escape")
    t.wait_for("_start")
    t.keys(" ")
    first = t.wait_for("PAUSED")
    time.sleep(0.7)
    rig.check(t.screen()[1] == first[1], "space holds the numbers")
    t.keys(" ")
    rig.wait_for("space goes on", lambda: t.screen()[1] != first[1])
    t.keys("2")
    t.wait_for("^processes  100%", rf"\d+  {SPINNER} ")
    t.keys("/", f"^{SPINNER}$", "Enter")
    t.wait_for(rf"/\^{SPINNER}\$/")
    t.keys("Enter")
    screen = t.wait_for(r"^functions of process \d+ by total", "chain_leaf")
    rig.check(all(f" {SPINNER} " in line for line in screen[3:] if re.match(r" +\d", line)), "enter shows its functions only")
    t.keys("Escape")
    t.wait_for("^processes")
    t.keys("3")
    t.wait_for("^containers", "CONTAINER OR UNIT")
    t.keys("2", "/", f"^{SPINNER}$", "Enter")
    t.wait_for("^processes  /")
    t.keys("Enter", "4")
    screen = t.wait_for(r"^tree of process \d+ by total", rf"[+] {SPINNER} \(\d+\)")
    rig.check(len([line for line in screen[3:] if re.match(r" +\d", line)]) == 1, "4 is the tree of the same process")
    t.keys("Right")
    t.wait_for("- _start", "chain_leaf")
    t.keys("Down", "Down", "Left")
    screen = t.wait_for(r"[+] __libc_start")
    rig.check("chain_leaf" not in "\n".join(screen), "left closes what is selected")
    t.keys("Escape", "Escape", "3")
    t.wait_for("^containers", "CONTAINER OR UNIT")
    t.keys("?")
    t.wait_for("regular expression", "any key")
    t.keys("x")
    t.wait_for("CONTAINER OR UNIT")
    t.tmux("resize-window", "-t", "top", "-x", 60, "-y", 12)
    rig.wait_for("it follows the size of the terminal",
                 lambda: len(t.screen()) == 12 and t.screen()[11].startswith("1 functions") and
                 "lost 0" in t.screen()[10])
    t.keys("q")
    t.check_restored("q", 0)
    t.close()


def look_into_container(t):
    t.open(100, 30, "--view", "containers")
    t.wait_for("podman aaaaaaaaaaaa$")
    t.keys("/", "podman a{12}", "Enter")
    t.wait_for("^containers  /podman a.12./")
    t.keys("Enter")
    screen = t.wait_for("^functions of podman aaaaaaaaaaaa by self", "chain_leaf")
    rig.check(all(f" {SPINNER} " in line for line in screen[3:] if re.match(r" +\d", line)),
              "enter on a container shows the functions in it")
    t.keys("Escape")
    t.wait_for("^containers")
    t.keys("q")
    t.check_restored("q", 0)
    t.close()


def test_container(t, spinner):
    top = cgroup_dirs.mount_point()
    with cgroup_dirs.Cgroups(top) as groups:
        group = groups.make(f"libpod-{cgroup_dirs.digits('a')}.scope")
        move(spinner.pid, group)
        try:
            look_into_container(t)
        finally:
            move(spinner.pid, top)


def move(pid, group):
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="utf-8") as f:
        f.write(str(pid))


def test_colors(t):
    t.open(80, 24)
    t.wait_for("chain_leaf")
    color = r"\x1b\[[0-9;]*3[13]m"
    rig.check(re.search(color, t.tmux("capture-pane", "-e", "-p", "-t", "top")), "large shares have a colour")
    t.keys("q")
    t.check_restored("q", 0)
    t.close()
    t.open(80, 24, "--no-color")
    t.wait_for("chain_leaf")
    rig.check(not re.search(color, t.tmux("capture-pane", "-e", "-p", "-t", "top")),
              "with --no-color none")
    t.keys("C-c")
    t.check_restored("Ctrl-C", 0)
    t.close()


def test_ends(t):
    for number in (signal.SIGTERM, signal.SIGHUP):
        t.open(80, 24)
        rig.kill(t.command(), number)
        t.check_restored(number.name, 0)
        t.close()
    t.open(80, 24)
    for name, number in (("screen", signal.SIGSEGV), ("symbolizer", signal.SIGKILL), ("profiler", signal.SIGKILL)):
        old = t.role(name)
        rig.kill(old, number)
        rig.wait_for(f"a new {name} after {number.name}", lambda: t.role(name) not in (0, old))
    before = t.wait_for("SELF%", "chain_leaf")[1]
    rig.wait_for("the view goes on", lambda: t.screen()[1] != before)
    t.keys("2")
    t.wait_for("^processes")
    t.keys("q")
    t.check_restored("the end of all its children, and q", 0)
    told = t.text()
    rig.check("screen (pid" in told and "symbolizer (pid" in told, "what happened is told at the end")
    t.close()
    t.open(80, 24)
    rig.kill(t.role("screen"), signal.SIGSTOP)
    rig.kill(t.command(), signal.SIGTERM)
    t.check_restored("SIGTERM with a screen that hangs", 1)
    t.close()
    t.open(80, 24)
    rig.kill(t.command(), signal.SIGKILL)
    t.check_restored("kill -9 of the command", 137)
    t.close()
    p = subprocess.run(["script", "-qec", f"{rig.perfwalk()} top", "/dev/null"], text=True, check=False, timeout=120,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, "TERM": "nonsense"})
    rig.check(p.returncode == 1 and 'type "nonsense"' in p.stdout and "--batch" in p.stdout,
              f"a terminal of no known type is refused: {p.stdout.strip()}")


def main():
    rig.need_root()
    rig.need_programs("tmux", "script")
    directory = rig.build_workloads("chain", "recurse", "counted", "pool")
    spinner = rig.start([shutil.copy(os.path.join(directory, "chain"), rig.path(SPINNER))], stdout=subprocess.DEVNULL)
    test_refusals()
    test_batch(spinner)
    test_own_cost()
    test_batch_tree(spinner)
    test_recursion(directory)
    test_events(directory)
    test_off_cpu(directory)
    test_closed_pipe()
    p = subprocess.run([rig.perfwalk(), "top"], capture_output=True, text=True, check=False)
    if "built without ncurses" in p.stderr:
        rig.skip("built without ncurses: batch mode is tested, the screen is not")
    terminal = Terminal()
    test_keys(terminal, 80, 24)
    test_keys(terminal, 120, 40)
    test_keys(terminal, 200, 55)
    test_event_key(terminal, directory)
    test_colors(terminal)
    test_ends(terminal)
    test_container(terminal, spinner)


rig.run(main)
