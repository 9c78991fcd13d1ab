# SPDX-License-Identifier: Apache-2.0
"""A test as a whole in a machine that systemd has booted (machine.py), where each of its daemons is a service with all
that the unit sets, and a drop-in for what is the test's alone: its program and config, its directory, its log.

    TEST_UNIT=perfwalk.service python3 tests/system/NAME.py     (or =rootless.conf, =old-kernel.conf, =paranoid.conf: with it)
"""
import os
import pwd
import signal
import subprocess
import sys
import time

import rig

CAP_SYS_RESOURCE = 1 << 24
NO_PRIORITY = "readers have no real-time priority: root has no CAP_SYS_RESOURCE here, so LimitRTPRIO=1 is not in force"
DIRECTORY = "usr/local/lib/systemd/system"
# systemd's own, or the host's: what a service gets anew.
NOT_PASSED_ON = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "OLDPWD", "_", "TMPDIR", "NOTIFY_SOCKET",
                 "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_FDS", "LISTEN_PID"}


def source(name):
    with open(os.path.join(rig.TOP, "etc", name), encoding="utf-8") as f:
        return f.read()


def unit():
    """As `make install` writes it for the prefix /usr/local."""
    text = source("perfwalk.service.in")
    for name, value in (("bindir", "/usr/local/bin"), ("localstatedir", "/var"), ("pkgdatadir", "/usr/local/share/perfwalk")):
        text = text.replace(f"@{name}@", value)
    return text


def wanted():
    """The drop-in that the daemons of this test are to run with, or "perfwalk.service": the unit alone; None: no unit."""
    return os.environ.get("TEST_UNIT")


def is_inside():
    return "TEST_INSIDE" in os.environ


def outside(status):
    """Samples of processes that a daemon in a machine cannot see; its status counts them as dropped."""
    return int(status["samples_dropped"]) if is_inside() else 0


def gives_priority():
    """Can systemd give a daemon the real-time priority of the unit? Without root the daemon needs LimitRTPRIO=1."""
    if not is_inside() or wanted() != "rootless.conf":
        return True
    with open("/proc/1/limits", encoding="ascii") as f:
        limit = next(line.split()[4] for line in f if line.startswith("Max realtime priority"))
    return limit != "0" or int(rig.status_of(1)["CapEff"], 16) & CAP_SYS_RESOURCE != 0


def enter():
    """Runs this test once more in a machine, and ends as it does."""
    from machine import Machine  # pylint: disable=import-outside-toplevel,cyclic-import
    units = ("perfwalk.service", "rootless.conf", "old-kernel.conf", "paranoid.conf")
    if wanted() not in units:
        rig.fail(f"TEST_UNIT={wanted()}: expected {' or '.join(units)}")
    machine = Machine({"usr/lib/sysusers.d/perfwalk.conf": source("perfwalk.sysusers")}, hidden=["etc/perfwalk"],
                      shared=[rig.TOP, os.path.dirname(rig.perfwalk())])
    environment = {**os.environ, "TEST_INSIDE": "yes", "PERFWALK": rig.perfwalk(), "TMPDIR": "/tmp"}
    p = rig.start(machine.command("systemd-run", "--scope", "--quiet", "--working-directory=" + rig.TOP, sys.executable,
                                  os.path.abspath(sys.argv[0]), *sys.argv[1:]), env=environment, stdin=subprocess.DEVNULL)
    status = p.wait()
    machine.halt()
    sys.exit(status if status >= 0 else 1)


class Service:
    """A daemon as a service, with what subprocess.Popen has."""

    def __init__(self, argv, log, env=None, cwd=None):
        if argv[0] != rig.perfwalk():
            rig.skip(f"a daemon behind {argv[0]} is no service")
        Service.n = getattr(Service, "n", 0) + 1
        self.args, self.name, self.returncode = argv, f"perfwalk-test{Service.n}.service", None
        self.ended = rig.path(f"{self.name}.ended")
        drop_ins = f"/run/systemd/system/{self.name}.d"
        os.makedirs(drop_ins)
        with open(f"/run/systemd/system/{self.name}", "w", encoding="utf-8") as f:
            f.write(unit())
        if wanted() != "perfwalk.service":
            with open(f"{drop_ins}/10-{wanted()}", "w", encoding="utf-8") as f:
                f.write(source(wanted()))
        if wanted() == "rootless.conf":
            subprocess.run(["chown", "-R", "perfwalk:perfwalk", rig.workdir()], check=True)  # what the test has made so far
        with open(f"{drop_ins}/20-test.conf", "w", encoding="utf-8") as f:
            f.write("\n".join(["[Service]", "Restart=no",
                               # systemd itself forgets a service that ended well.
                               f"ExecStopPost=/bin/sh -c 'echo $EXIT_CODE $EXIT_STATUS >{self.ended}'", f"ReadWritePaths={rig.workdir()}", f"WorkingDirectory={cwd or '/'}",
                               f"StandardOutput=append:{log}", f"StandardError=append:{log}",
                               f"EnvironmentFile={self.environment(os.environ if env is None else env)}", "ExecStart=",
                               "ExecStart=" + " ".join(self.quoted(x) for x in argv), ""]))
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        subprocess.run(["systemctl", "start", "--no-block", self.name], check=True)
        self.pid = rig.wait_for(f"{self.name} has begun", self.begun)

    def environment(self, variables):
        """A file of them."""
        return rig.write(f"{self.name}.environment", "".join(
            f"{name}='{value}'\n" for name, value in variables.items()
            if name not in NOT_PASSED_ON and not set(value) & set("'\n\\")))

    @staticmethod
    def quoted(word):
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'

    def show(self, name):
        return subprocess.run(["systemctl", "show", "-P", name, self.name], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()

    def begun(self):
        """Its process, once it is the daemon's own program, or has ended."""
        if self.show("Result") not in ("success", "exit-code", "signal"):
            rig.fail(f"{self.name} does not begin: " + subprocess.run(
                ["journalctl", "-u", self.name, "-o", "cat"], stdout=subprocess.PIPE, text=True, check=False).stdout)
        pid = int(self.show("ExecMainPID") or 0)
        return pid if pid and not rig.comm_of(pid).startswith("(") else 0

    def tell(self):
        """What systemd knows."""
        subprocess.run(["systemctl", "status", "--no-pager", self.name], check=False)
        subprocess.run(["journalctl", "-u", self.name, "-o", "cat"], check=False)

    def end(self):
        """How it ended: "exited" or "killed", and with what."""
        if not os.path.isdir(os.path.dirname(self.ended)):
            return "killed", "KILL"  # at the very end of the test
        try:
            with open(self.ended, encoding="ascii") as f:
                return f.read().split()
        except FileNotFoundError:
            return None

    def poll(self):
        if self.returncode is None and rig.status_of(self.pid).get("State", "Z")[0] in "ZX":
            # By then what was left of its processes is gone.
            try:
                code, status = rig.wait_for(f"systemd reports the end of {self.name}", self.end)
            except rig.Failure:
                self.tell()
                raise
            self.returncode = int(status) if code == "exited" else -signal.Signals["SIG" + status]
        return self.returncode

    def wait(self, timeout=None):
        deadline = time.monotonic() + (timeout or 1e9)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.05)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
