# SPDX-License-Identifier: Apache-2.0
# Rooms: src/config src/cmd
"""Configuration errors: each names its file and line, says what was expected, and ends in exit
status 2 at once; all errors of a file are told, not only the first. A good file passes, what
--print-config shows is a good file again, secrets are not in it, and OTEL_* wins over the file."""
import os
import subprocess

import rig

# (what, file, line of the error, what the message must hold)
BAD = [
    ("a key with a typing error", "[profiler]\nsample_per_second = 19\n", 2, ["samples_per_second"]),
    ("a section with a typing error", "[profilr]\nsamples_per_second = 19\n", 1, ["profiler"]),
    ("a key in the wrong section", "[log]\nreporter_interval = 5s\n", 2, ["profiler"]),
    ("a word for a duration", "# first\n[profiler]\n\nreporter_interval = soon\n", 4, ["reporter_interval"]),
    ("a duration out of range", "[profiler]\nreporter_interval = 1ms\n", 2, ["reporter_interval"]),
    ("a rate out of range", "[profiler]\nsamples_per_second = 100000\n", 2, ["samples_per_second"]),
    ("a negative rate", "[profiler]\nsamples_per_second = -3\n", 2, ["samples_per_second"]),
    ("an odd stack size", "[profiler]\nstack_size = 1025\n", 2, ["stack_size"]),
    ("a size that overflows", "[limits]\nsymbols = 99999999999999999999G\n", 2, ["symbols"]),
    ("neither yes nor no", "[profiler]\nkernel_stacks = perhaps\n", 2, ["kernel_stacks"]),
    ("an unknown log level", "[log]\nlevel = loud\n", 2, ["level"]),
    ("metrics for everyone", "[metrics]\nlisten = 0.0.0.0:9464\n", 2, ["listen", "only this host can reach", "127.0.0.1"]),
    ("metrics at another host", "[metrics]\nlisten = 192.0.2.1:9464\n", 2, ["only this host can reach"]),
    ("metrics for all of IPv6", "[metrics]\nlisten = [::]:9464\n", 2, ["only this host can reach"]),
    ("metrics without a port", "[metrics]\nlisten = 127.0.0.1\n", 2, ["listen", "127.0.0.1:PORT"]),
    ("metrics at a relative path", "[metrics]\nlisten = unix:socket\n", 2, ["unix:/path"]),
    ("metrics at a long path", "[metrics]\nlisten = unix:/" + "a" * 108 + "\n", 2, ["108"]),
    ("a destination without a name", "[export]\nendpoint = http://localhost\n", 1, ["export:"]),
    ("an endpoint that is no URL", "[export:a]\nendpoint = localhost\n", 2, ["endpoint"]),
    ("another protocol", "[export:a]\nendpoint = ftp://localhost\n", 2, ["endpoint"]),
    ("an unknown compression", "[export:a]\nendpoint = http://localhost\ncompression = zip\n", 3, ["gzip"]),
    ("a destination without endpoint", "[export:a]\ntimeout = 5s\n", None, ["endpoint"]),
    ("a line that is no setting", "[profiler]\nsamples_per_second\n", 2, []),
    ("a key outside of sections", "samples_per_second = 19\n", 1, []),
    ("a section without its end", "[profiler\nsamples_per_second = 19\n", 1, []),
    ("the same key twice", "[profiler]\nsamples_per_second = 19\nsamples_per_second = 20\n", 3, []),
]

GOOD = """\
# the smallest that works, and then some
[profiler]
reporter_interval = 5s
samples_per_second = 23

[resource]
deployment.environment = testing

[export:one]
endpoint = http://127.0.0.1:4318
headers = authorization=Bearer%20canary-secret-1, x-scope = team
; a long value, longer than the 200 bytes that the parser takes by itself
[export:two]
profiles_endpoint = http://127.0.0.1:4040/""" + "a" * 400 + """
"""


def run(*args, env=None):
    p = subprocess.run([rig.perfwalk(), "run", *args], stdout=subprocess.PIPE, check=False,
                       stderr=subprocess.PIPE, text=True, timeout=120, stdin=subprocess.DEVNULL,
                       env={**os.environ, **(env or {})})
    return p


def check_configmap(good):
    """As a kubelet gives it to a pod: a directory of mode 0777, read-only. Others may reach it by another mount."""
    os.chmod(good + ".d", 0o777)
    p = run("--check-config", "-c", good)
    rig.check(p.returncode == 2 and "can write this directory" in p.stderr, f"drop-ins that all can write: {p.stderr.strip()!r}")
    read_only = ["unshare", "-m", "sh", "-c", 'mount --bind "$2.d" "$2.d" && mount -o remount,bind,ro "$2.d" && '
                 'exec "$1" run --print-config -c "$2"', "sh", rig.perfwalk(), good]
    p = subprocess.run(read_only, capture_output=True, text=True, check=False)
    rig.check(p.returncode == 0 and "samples_per_second = 31" in p.stdout, f"read-only they apply: {p.stderr.strip()!r}")
    os.chown(rig.write("good.conf.d/25.conf", "[profiler]\nsamples_per_second = 37\n"), 65534, 65534)
    p = subprocess.run(read_only, capture_output=True, text=True, check=False)
    rig.check(p.returncode == 2 and "25.conf: user 65534 owns this file" in p.stderr, f"but not another user's: {p.stderr.strip()!r}")
    os.unlink(good + ".d/25.conf")
    os.chmod(good + ".d", 0o755)


def main():
    for i, (what, text, line, wanted) in enumerate(BAD):
        name = rig.write(f"bad{i}.conf", text)
        for args in (("--check-config", "-c", name), ("-c", name)):
            p = run(*args)
            place = f"{name}:{line}:" if line else name
            rig.check(p.returncode == 2 and place in p.stderr and all(w in p.stderr for w in wanted),
                      f"{what}: exit status {p.returncode}, {p.stderr.strip()!r}")

    several = rig.write("several.conf", "".join(t for _, t, _, _ in BAD[:3]))
    lines = [x for x in run("--check-config", "-c", several).stderr.splitlines() if several in x]
    rig.check(len(lines) == 3, f"three errors are told in {len(lines)} lines")

    p = run("--check-config", "-c", rig.path("nowhere.conf"))
    rig.check(p.returncode == 2 and "nowhere.conf" in p.stderr, f"no such file: {p.stderr.strip()!r}")

    good = rig.write("good.conf", GOOD)
    p = run("--check-config", "-c", good)
    rig.check(p.returncode == 0, f"a good file: {p.returncode} {p.stderr.strip()!r}")
    guessed = rig.write("guessed.conf", "[event:page-faults]\nsamples_per_second = 10\n")
    p = run("--check-config", "-c", guessed)
    rig.check(p.returncode == 0 and "[event:page-faults]" in p.stderr and "use period" in p.stderr,
              f"sums that the kernel guesses: {p.stderr.strip()!r}")

    os.mkdir(good + ".d")
    rig.write("good.conf.d/20.conf", "[profiler]\nsamples_per_second = 31\n")
    rig.write("good.conf.d/10.conf", "[profiler]\nsamples_per_second = 29\n")
    rig.write("good.conf.d/not-a-dropin", "nonsense\n")
    p = run("--print-config", "-c", good)
    rig.check(p.returncode == 0 and "samples_per_second = 31" in p.stdout,
              "drop-ins apply in the order of their names")
    rig.check("canary" not in p.stdout + p.stderr, "--print-config shows no header value")
    rig.check("a" * 400 in p.stdout.replace("\n", "").replace(" ", ""), "a value of 400 bytes is whole")
    again = rig.write("again.conf", p.stdout)
    p2 = run("--print-config", "-c", again)
    rig.check(p2.returncode == 0 and p2.stdout == p.stdout,
              "what --print-config shows is a good file that means the same")
    rig.write("good.conf.d/30.conf", "[profiler]\n\nnonsense = 1\n")
    p = run("--check-config", "-c", good)
    rig.check(p.returncode == 2 and "30.conf:3:" in p.stderr, f"an error in a drop-in: {p.stderr.strip()!r}")
    os.unlink(good + ".d/30.conf")
    if os.geteuid() == 0 and rig.can_mount():
        check_configmap(good)

    p = run("--print-config", "-c", good, env={"OTEL_SERVICE_NAME": "from-the-environment"})
    rig.check(p.returncode == 0 and "from-the-environment" in p.stdout, "OTEL_SERVICE_NAME applies")
    plain = rig.write("plain.conf", "[profiler]\nreporter_interval = 5s\n")
    p = run("--print-config", "-c", plain,
            env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:14318"})
    rig.check(p.returncode == 0 and "http://127.0.0.1:14318" in p.stdout,
              "OTEL_EXPORTER_OTLP_ENDPOINT makes a destination")


rig.run(main)
