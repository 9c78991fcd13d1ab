# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler symbolize
"""A program that is expensive to look at for what the profiler wants of it besides stacks: it has a process context, and
a thousand mappings of its code in which the variable of its threads may be. Looks have a share of the time, and the
rings do not wait for them."""
import os
import subprocess
import time

import rig
from sink import Sink

RATE = 99
SHARE, SAVED = 0.05, 0.5  # of the time; seconds: what was saved up, and one look too many
OTHER_WORK = 0.04  # of the time: what else the profiler does at that rate
DRAIN_CPU_MS = 250
PREFIX = f"l{os.getpid()}"  # of its name: the daemon samples no other

CROWD = r"""
#include <fcntl.h>
#include <stdio.h>
#include "../unit/context-publisher.h"
static const char payload[] = "\x12\x2e"
			      "\x0a\x1athreadlocal.schema_version"
			      "\x12\x10\x0a\x0etlsdesc_v1_dev";
int main(int argc, char **argv)
{
	struct published_header *h = published_map(1);
	int fd = open("/proc/self/exe", O_RDONLY);

	if (!h)
		return 77;
	published_set(h, payload, sizeof(payload) - 1, 1);
	for (int i = 0; i < 1000; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			return 1;
	puts("mapped");
	fflush(stdout);
	for (volatile long i = 0;; i++)
		;
}
"""


def config(sink):
    return f"""[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[filter]
include_comm = {PREFIX}*
[export:sink]
endpoint = {sink.endpoint}
"""


class Meter:
    """The profiler's CPU time since then, and the clock's."""

    def __init__(self, daemon):
        self.pid = daemon.role("profiler")
        self.cpu, self.clock = -rig.cpu_seconds(self.pid), -time.monotonic()

    def check(self, what):
        cpu, clock = self.cpu + rig.cpu_seconds(self.pid), self.clock + time.monotonic()
        most = (SHARE + OTHER_WORK) * clock + SAVED
        rig.check(cpu < most, f"{what}: the profiler takes {cpu:.2f} s of CPU in {clock:.1f} s (limit {most:.2f} s)")


def many_mappings(daemon):
    source = rig.write("crowd.c", CROWD)
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", f"-I{os.path.join(rig.TOP, 'tests/workloads')}", "-o", rig.path(PREFIX + "crowd"), source],
                   check=True)
    p = rig.start([rig.path(PREFIX + "crowd")], stdout=subprocess.PIPE, text=True)
    rig.check(p.stdout.readline() == "mapped\n", "a program with a context has mapped its code a thousand times")
    meter = Meter(daemon)
    # It is looked at at once, after 0.5 s and after 1.5 s.
    rig.wait_for("it was looked at some times", lambda: rig.cpu_seconds(p.pid) >= 2)
    meter.check("a thousand mappings")
    rig.end(p)


def check_drain(daemon):
    waited = int(daemon.status()["drain_cpu_max_ms"])
    rig.check(waited <= DRAIN_CPU_MS, f"the rings wait for {waited} ms of the profiler's work at most (limit {DRAIN_CPU_MS})")


def main():
    rig.need_root()
    rig.need_programs("gcc")
    with Sink() as sink:
        daemon = rig.Daemon(config(sink))
        daemon.wait_up()
        roles = daemon.roles()
        many_mappings(daemon)
        check_drain(daemon)
        rig.check(daemon.roles() == roles and "set aside" not in daemon.log(), "no process died, and no file is set aside")
        daemon.stop()


rig.run(main)
