# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker proto
"""Samples have the span of a real tracer: ddtrace (PyPI) publishes thread contexts (OTEP 4947) from a library that
Python loads, dd-trace (npm) those of continuations of Node.js, also its writer (@datadog/pprof) alone, dd-java-agent
(Maven) those of Java's threads. The program says which spans it was in, of threads and of tasks of an event loop; a
sample's own function says which kind it must be."""
import os
import shutil
import subprocess
import sys

import otlp
import rig

VERSION = "4.16.0"
AGENT_VERSION = "1.68.1"
NODE_TRACER_VERSION, NODE_VERSION = "6.21.0", "24.21.0"
LENGTH = float(os.environ.get("SPANS_LENGTH", "1"))  # of captures; make check-spans has longer ones
WANTED = 500 * LENGTH  # samples in spans; some 700 to 900 where no CPU is missing
# A busy host reads some too late; beginnings and ends of spans are samples of the tracer.
MIN_SHARE = 0.995 if LENGTH > 1 else 0.96  # a busy host reads some too late, and those have none
FUNCTIONS = ("in_outer", "in_inner", "in_task")


def samples_of(message, pid):
    """(thread, functions of ours, span, trace, attributes) of each sample."""
    view, found = otlp.View(message), []
    for rp in message.resource_profiles:
        if otlp.attributes(rp.resource, view.strings).get("process.pid") != pid:
            continue
        for s in (s for sp in rp.scope_profiles for profile in sp.profiles for s in profile.samples):
            link = view.dictionary.link_table[s.link_index]
            attributes = view.table_attributes(s.attribute_indices)
            names = [f.rpartition(".")[2] for f in view.frames(s.stack_index)]
            mine = [f for f in names if f.startswith("in_")]
            for t in s.timestamps_unix_nano:
                found.append((t, (attributes["thread.id"], mine[-1] if mine else None, link.span_id.hex() if s.link_index else "",
                                  link.trace_id.hex() if s.link_index else "", attributes)))
    return [s for _, s in sorted(found, key=lambda x: x[0])]


def start(language, command, **variables):
    """A program with its tracer, and the file to which it says its spans."""
    told = open(rig.path(f"told-{language}"), "w+", encoding="utf-8")
    environment = dict(os.environ, DD_TRACE_OTEL_CTX_ENABLED="true", DD_INSTRUMENTATION_TELEMETRY_ENABLED="false",
                       DD_REMOTE_CONFIGURATION_ENABLED="false", DD_SERVICE=f"{language}-{os.getpid()}", **variables)
    return rig.start(command, env=environment, stdout=told, stderr=subprocess.DEVNULL), told


def capture(language, program, told, seconds):
    """The samples of such a program, and the words of each line that it has said; the program ends."""
    out = rig.path(f"{language}.otlp")
    r = rig.record_cpu(seconds, [program.pid], "-F", "499", "-p", program.pid, "-o", out,
                       timeout=120 * LENGTH)
    rig.check(r.status == 0, f"a capture of {language}")
    rig.end(program)
    told.seek(0)
    with open(out, "rb") as f:
        return list(samples_of(otlp.decode(f.read()), program.pid)), [line.split() for line in told]


def check_python():
    program, told = start("python", [sys.executable, os.path.join(rig.WORKLOADS, "traced.py")],
                          PYTHONPATH=rig.python_package("ddtrace", VERSION), DD_ENV="test", DD_VERSION="1.2")
    rig.wait_for("spans", lambda: os.path.getsize(told.name) > 0, 60)
    out = rig.path("traced.otlp")
    r = rig.record_cpu(2.4 * LENGTH, [program.pid], "-F", "499", "-p", program.pid, "-o", out,
                       timeout=120 * LENGTH)
    rig.check(r.status == 0, "a capture")
    n = os.path.getsize(told.name)
    rig.wait_for("the last spans to end", lambda: os.path.getsize(told.name) > n + 1000, 60)
    rig.end(program)
    told.seek(0)
    spans = {line.split()[0]: line.split()[1:] for line in told if len(line.split()) == 4}
    with open(out, "rb") as f:
        check(list(samples_of(otlp.decode(f.read()), program.pid)), spans)


def check(samples, spans):
    first = next(i for i, s in enumerate(samples) if s[2])
    inside = [s for s in samples[first:] if s[1] in FUNCTIONS]
    linked = [s for s in inside if s[2]]
    wrong = [s[:4] for s in linked if s[2] in spans and spans[s[2]] != [s[3], str(s[0]), s[1]]]
    rig.check(len(linked) >= WANTED and all(f in {s[1] for s in linked} for f in FUNCTIONS), f"{len(linked)} samples in spans")
    rig.check(sum(s[2] in spans for s in linked) >= 0.99 * len(linked), "of which the program told")
    rig.check(not wrong, f"none has another's span, trace or thread: {wrong[:3]}")
    rig.check(len(linked) >= MIN_SHARE * len(inside), f"{len(linked)} of {len(inside)} have their own")
    none = [s for s in samples[first:] if s[1] == "in_none"]
    rig.check(none and not any(s[2] for s in none), f"none of {len(none)} outside of spans has one")
    rig.check(all("datadog.local_root_span_id" in s[4] for s in linked), "attributes of the context are the sample's")


def fetch_node():
    """The directory of Node.js and of Datadog's tracer for it; None: there is none."""
    directory = os.path.expanduser(f"~/.cache/perfwalk-tests/dd-trace-{NODE_TRACER_VERSION}-node-{NODE_VERSION}")
    if not os.path.isdir(directory):
        os.makedirs(directory + ".new", exist_ok=True)
        p = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", directory + ".new",
                            f"dd-trace@{NODE_TRACER_VERSION}", f"node@{NODE_VERSION}"], check=False, capture_output=True,
                           text=True)
        if p.returncode != 0:
            rig.leave_out(f"dd-trace {NODE_TRACER_VERSION} cannot be installed: {p.stderr[-200:]}")
            return None
        os.rename(directory + ".new", directory)
    return os.path.join(directory, "node_modules")


def judge(what, samples, is_right, functions=("in_outer", "in_inner")):
    """The samples that have a span; is_right: whether a sample has the one that the program was in."""
    first = next((i for i, s in enumerate(samples) if s[2]), len(samples))
    inside = [s for s in samples[first:] if s[1] in functions]
    linked = [s for s in inside if s[2]]
    wrong = [s[:4] for s in linked if not is_right(s)]
    rig.check(len(linked) >= WANTED, f"{what}: {len(linked)} samples in spans")
    rig.check(not wrong, f"{what}: none has another's span: {wrong[:3]}")
    rig.check(len(linked) >= MIN_SHARE * len(inside), f"{what}: {len(linked)} of {len(inside)} have their own")
    none = [s for s in samples[first:] if s[1] == "in_none"]
    rig.check(none and not any(s[2] for s in none), f"{what}: none of {len(none)} outside of spans has one")
    return linked


def check_node(modules):
    """Asynchronous functions of one thread, by the record that V8's map of the current continuation leads to."""
    program, told = start("node", [os.path.join(modules, "node", "bin", "node"), os.path.join(rig.WORKLOADS, "traced.js"),
                                   os.path.join(modules, "dd-trace")], DD_PROFILING_ENABLED="true")
    rig.wait_for("spans", lambda: os.path.getsize(told.name) > 0, 60)
    samples, lines = capture("node", program, told, 2 * LENGTH)
    spans = {w[0]: w[1:] for w in lines if len(w) == 3}
    linked = judge("Node.js", samples, lambda s: spans.get(s[2]) == [s[3], s[1]])
    roots = {s[4].get("datadog.local_root_span_id"): s[3] for s in linked}
    rig.check(all(spans.get(root) == [trace, "in_outer"] for root, trace in roots.items()),
              "Node.js: attributes are the context's")


def check_writer(modules):
    """Contexts that @datadog/pprof writes for a program without a tracer, on two threads: also one that grew, and one
    that ended before its continuation did."""
    program, told = start("writer", [os.path.join(modules, "node", "bin", "node"), os.path.join(rig.WORKLOADS, "contexts.js"), modules])
    rig.wait_for("spans of both threads", lambda: any(line.startswith("0000000001") for line in open(told.name, encoding="ascii")), 60)
    samples, lines = capture("writer", program, told, 3 * LENGTH)  # of two threads at once
    spans = {}
    for span, trace, function in (w for w in lines if len(w) == 3):
        spans.setdefault(span, (trace, set()))[1].add(function)
    functions = ("in_outer", "in_inner", "in_later")
    linked = judge("@datadog/pprof", samples, lambda s: s[2] in spans and s[3] == spans[s[2]][0] and s[1] in spans[s[2]][1], functions)
    rig.check({s[1] for s in linked} == set(functions), "@datadog/pprof: in each function")
    threads = {}
    for s in linked:
        threads.setdefault(s[0], set()).add(s[3])
    rig.check(sorted(map(len, threads.values())) == [2, 2], f"@datadog/pprof: two threads with two traces each: {threads}")
    wrong = [s for s in linked if (s[4].get("datadog.local_root_span_id"), s[4].get("http.route"), s[4].get("step")) !=
             (s[2], "/cart", "x" * 100 if s[1] == "in_later" else None)]
    rig.check(not wrong, f"@datadog/pprof: attributes are the context's: {wrong[:2]}")
    ended = [s for s in samples if s[1] == "in_ended"]
    rig.check(ended and not any(s[2] for s in ended), f"@datadog/pprof: none of {len(ended)} in spans that had ended has one")


def fetch_agent():
    """Datadog's agent for Java, from the cache or the registry; None: it cannot be had."""
    directory = os.path.expanduser(f"~/.cache/perfwalk-tests/dd-java-agent-{AGENT_VERSION}")
    if not os.path.isdir(directory):
        p = subprocess.run(["mvn", "-q", "dependency:copy", f"-Dartifact=com.datadoghq:dd-java-agent:{AGENT_VERSION}",
                            f"-DoutputDirectory={directory}.new"], check=False, capture_output=True, text=True)
        if p.returncode != 0:
            rig.say(f"dd-java-agent {AGENT_VERSION} cannot be fetched: {p.stdout[-200:]}")
            return None
        os.rename(directory + ".new", directory)
    return os.path.join(directory, f"dd-java-agent-{AGENT_VERSION}.jar")


def has_contexts(pid):
    services = subprocess.run([rig.perfwalk(), "list", "services"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return any(f"[{pid}]" in line and "tlsdesc" in line for line in services.splitlines())


def check_java():
    """Threads, by the library that the agent loads for its profiler."""
    agent = shutil.which("javac") and shutil.which("mvn") and fetch_agent()
    if not agent:
        rig.leave_out("without javac and mvn there is no tracer for Java")
        return
    classes = rig.path("classes")
    subprocess.run(["javac", "-d", classes, os.path.join(rig.WORKLOADS, "Traced.java")], check=True)
    program, told = start("java", ["java", f"-javaagent:{agent}", "-Ddd.trace.methods=Traced[outer,inner]",
                                   "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Traced::*", "-cp", classes,
                                   "Traced"],
                          DD_PROFILING_ENABLED="true", DD_PROFILING_START_FORCE_FIRST="true")
    rig.wait_for("contexts of Java", lambda: has_contexts(program.pid), 180)
    rig.wait_for("spans of Java", lambda: os.path.getsize(told.name) > 0, 60)
    samples, lines = capture("java", program, told, 3 * LENGTH)
    spans = {f"{int(w[0]):016x}": w[1:] for w in lines if len(w) == 3}
    judge("Java", samples, lambda s: spans.get(s[2]) == [s[4].get("thread.name"), s[1]])


def main():
    rig.need_root()
    check_python()
    modules = shutil.which("npm") and fetch_node()
    if modules:
        check_node(modules)
        check_writer(modules)
    else:
        rig.leave_out("without npm there is no tracer for Node.js")
    check_java()


if __name__ == "__main__":
    rig.run(main)
