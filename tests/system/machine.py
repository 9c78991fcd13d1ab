# SPDX-License-Identifier: Apache-2.0
"""A small machine that systemd has booted: this host's files, or other ones, under an overlay, in namespaces of its own;
the network is the host's. What it writes is gone with it. Needs root, overlayfs and cgroup2.

    machine = Machine({"etc/foo.conf": "text"}); machine.run("systemctl", "status")
"""
import atexit
import os
import shutil
import signal
import subprocess
import tempfile

import rig

# What a boot starts and a test has no use for, or what would reach out of the machine.
MASKED = """dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount
	sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount systemd-sysctl.service systemd-modules-load.service
	systemd-binfmt.service systemd-update-utmp.service systemd-tmpfiles-setup-dev.service systemd-tmpfiles-setup.service
	systemd-remount-fs.service systemd-random-seed.service systemd-udevd.service systemd-udev-trigger.service
	systemd-timesyncd.service systemd-networkd.service podman.socket dbus.socket network-online.target timers.target
	local-fs.target swap.target cryptsetup.target integritysetup.target veritysetup.target paths.target""".split()

# What is mounted, mkdir'ed and exec'ed on the way: $1 the directory, $2 its own control group, below cgroup2.
OUTER = """
set -e
mkdir "$1/groups"
mount -t cgroup2 none "$1/groups"
group=$1/groups$(sed -n 's/^0:://p' /proc/self/cgroup)/$2
mkdir "$group"
clean() {
	for _ in $(seq 100); do # its last processes may still be on their way out
		find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
		[ -d "$group" ] || exit 0
		sleep 0.1
	done
}
trap clean EXIT
sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" \\
	unshare --mount --pid --uts --ipc --cgroup --fork --kill-child sh -c "$INNER" sh "$1" &
wait $!
"""
INNER = """
set -e
mount -t tmpfs none "$1/written"
mkdir "$1/written/upper" "$1/written/work" "$1/written/root"
mount -t overlay none -o "lowerdir=$BASE,upperdir=$1/written/upper,workdir=$1/written/work" "$1/written/root"
cd "$1/written/root"
rm -rf $HIDDEN
cp -RP "$1/files/." .
mount -t proc none proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs none run
mount -t tmpfs -o mode=1777 none tmp
for name in $SHARED; do
	mkdir -p ".$name"
	mount --bind "$name" ".$name"
done
mount -t tracefs none sys/kernel/tracing || : # tests that need it say so
mount -t tmpfs -o mode=755 none dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
mount -t tmpfs -o mode=1777 none dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for node in null zero full random urandom tty; do
	touch dev/$node
	mount --bind /dev/$node dev/$node
done
mount --move . /
exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other /usr/lib/systemd/systemd --unit=booted.target \\
	--log-target=console --log-level=warning --show-status=0
"""


class Machine:
    def __init__(self, files, hidden=(), shared=(), base="/"):
        """files: names below / and what they hold: a text, or a list of the file to copy. base: the root of the files that
        are there, of this host or of another. hidden: what of them is not. shared: this host's directories that are there,
        wherever they are."""
        rig.need_root()
        rig.need_programs("systemctl", "unshare", "nsenter")
        if not rig.can_mount():
            rig.skip("nothing can be mounted here")
        self.directory = tempfile.mkdtemp(prefix="machine", dir=rig.workdir())
        for name in ("files", "written"):
            os.makedirs(os.path.join(self.directory, name))
        for unit in MASKED:
            self.put(f"etc/systemd/system/{unit}", None)
        self.put("etc/systemd/system/booted.target", "[Unit]\nRequires=basic.target\nAfter=basic.target\n")
        self.put("etc/machine-id", "0123456789abcdef0123456789abcdef\n")
        for name, text in files.items():
            self.put(name, text)
        self.log = self.directory + ".log"
        with open(self.log, "wb") as log:
            self.process = rig.start(["unshare", "--mount", "sh", "-c", OUTER, "sh", self.directory,
                                      f"perfwalk-test.{os.getpid()}"],
                                     env={**os.environ, "INNER": INNER, "HIDDEN": " ".join(hidden), "BASE": base,
                                          "SHARED": " ".join(shared)},
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = rig.wait_for("systemd runs", self.find, 60)
        atexit.register(self.halt)
        rig.wait_for("systemd has booted", lambda: self.try_run("systemctl", "is-active", "booted.target")[0] == 0, 90)

    def put(self, name, text):
        """Before the boot: None is a mask, a list a file to copy."""
        to = os.path.join(self.directory, "files", name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if text is None:
            os.symlink("/dev/null", to)
        elif isinstance(text, list):
            shutil.copy(text[0], to)
        else:
            with open(to, "w", encoding="utf-8") as f:
                f.write(text)

    def find(self):
        """Its process 1."""
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                rig.fail("no machine: " + f.read())
        below = [self.process.pid]
        for pid in below:
            if rig.comm_of(pid) == "systemd":
                return pid
            below += rig.children_of(pid)
        return 0

    def command(self, *argv):
        """Without our directory for temporary files, which the machine does not have."""
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "-i", "-C", "--", "env", "-u", "TMPDIR", *argv]

    def try_run(self, *argv, timeout=60, **options):
        """The exit status, and what it said."""
        p = subprocess.run(self.command(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, errors="replace", check=False, timeout=timeout, **options)
        return p.returncode, p.stdout

    def run(self, *argv, **options):
        status, said = self.try_run(*argv, **options)
        if status:
            rig.fail(f"{' '.join(argv)}: exit status {status}: {said}")
        return said

    def write(self, name, text):
        """While it runs."""
        self.run("mkdir", "-p", os.path.dirname(name))
        subprocess.run(self.command("tee", name), input=text, text=True, stdout=subprocess.DEVNULL, check=True)

    def host_pid(self, pid):
        """Of a process there, as this host numbers it."""
        for name in os.listdir("/proc"):
            if name.isdigit() and rig.status_of(int(name)).get("NSpid", "").split()[1:] == [str(pid)]:
                return int(name)
        return 0

    def halt(self):
        """Also at the end of a test that fails: its control groups go with it."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait(30)
