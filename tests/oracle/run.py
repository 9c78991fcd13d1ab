#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generated files against an independent model: run.py [--seconds N] [--seed SEED] [--law NAME]...
[--case LAW:SEED:NUMBER] [--keep DIRECTORY] [--all] [--real] PROGRAM

Prints the seed first. A case that fails is made smaller, and printed with the command that repeats
it. --all goes on and counts the failures of each law; else the first failure ends the run."""
import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases  # noqa: E402
import real  # noqa: E402


def make(name, seed):
    return cases.LAWS[name][0].make(random.Random(f"{seed}:{name}"))


def attempt(case, tool):
    """None, or why it fails."""
    try:
        cases.LAWS[case.law][0].check(case, tool)
    except cases.Mismatch as e:
        return str(e)
    except Exception as e:  # an output that cannot be decoded is a failure as well
        return f"{type(e).__name__}: {e}"
    return None


def smaller(case):
    """Cases with less in them."""
    for i in range(len(case.inputs)):
        if len(case.inputs) > 1:
            yield case.replaced(case.inputs[:i] + case.inputs[i + 1:])
    for i, x in enumerate(case.inputs):
        for other in x.smaller():
            yield case.replaced(case.inputs[:i] + [other] + case.inputs[i + 1:])


def minimise(case, why, tool, seconds=8):
    end = time.monotonic() + seconds
    found = True
    while found and time.monotonic() < end:
        found = False
        for other in smaller(case):
            if time.monotonic() > end:
                break
            reason = attempt(other, tool)
            # The same failure, by its first words.
            if reason and reason.split(":")[0] == why.split(":")[0]:
                case, why, found = other, reason, True
                break
    return case, why


def describe(case):
    lines = [f"  options: {case.options}"] if any(v is not None for v in case.options.values()) else []
    for i, x in enumerate(case.inputs):
        lines += [f"  input {i}: " * (n == 0) + "    " * (n > 0) + line for n, line in enumerate(x.describe())]
    return "\n".join(lines)


class Run:
    def __init__(self, options):
        self.options = options
        self.work = options.keep or tempfile.mkdtemp(prefix="perfwalk-oracle.")
        os.makedirs(self.work, exist_ok=True)
        self.n_cases = self.n_runs = self.n_outputs = 0
        self.failed, self.passed, self.missing = {}, {}, []

    def tool(self, name):
        directory = os.path.join(self.work, name)
        os.makedirs(directory, exist_ok=True)
        return cases.Tool(self.options.program, directory)

    def one(self, name, seed, slot):
        tool = self.tool(f"slot{slot}")
        case = make(name, seed)
        why = attempt(case, tool)
        return name, seed, case, why, tool

    def names(self):
        laws = [n.lower() for n in self.options.law] or list(cases.LAWS)
        return [n for n in laws for _ in range(cases.LAWS[n][1])]

    def plan(self):
        """(law, seed) for ever: the laws by turns, the heavier more often."""
        names = self.names()
        number = 0
        while True:
            order = list(names)
            random.Random(f"{self.options.seed}:{number}").shuffle(order)
            for name in order:
                yield name, f"{self.options.seed}:{number}"
                number += 1

    def take(self, result):
        name, seed, case, why, tool = result
        self.n_cases += 1
        self.n_runs += tool.n_runs
        self.n_outputs += tool.n_outputs
        self.passed[name] = self.passed.get(name, 0) + (not why)
        if not why:
            return True
        self.failed.setdefault(name, []).append(seed)
        if len(self.failed[name]) <= self.options.show:
            self.explain(name, seed, case, why)
        return False

    def explain(self, name, seed, case, why):
        tool = self.tool(f"failed-{name}-{seed.replace(':', '-')}")
        case, why = minimise(case, why, tool)
        tool.commands.clear()
        shutil.rmtree(tool.directory)
        os.makedirs(tool.directory)
        why = attempt(case, tool) or why
        print(f"FAILED {name} {seed}: {cases.LAWS[name][0].__doc__}\n{describe(case)}\n  {why}")
        for args in tool.commands:
            print(f"  $ cd {tool.directory}; {self.options.program} " + " ".join(args))
        print(f"  again: python3 {sys.argv[0]} --case {name}:{seed} {self.options.program}", flush=True)

    def loop(self):
        end = time.monotonic() + self.options.seconds
        plan = self.plan()
        n = max(2, os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            waiting, free = set(), list(range(n))
            slots = {}
            going = True
            while waiting or going:
                while going and free and time.monotonic() < end:
                    slot = free.pop()
                    job = pool.submit(self.one, *next(plan), slot)
                    slots[job] = slot
                    waiting.add(job)
                going = going and time.monotonic() < end
                done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED) \
                    if waiting else (set(), set())
                for job in done:
                    if not self.take(job.result()) and not self.options.all:
                        going = False
                    free.append(slots.pop(job))

    def real_tools(self):
        """The tools of others, some rounds each; what is not here is said."""
        self.missing = []
        for name, (check, n) in real.CHECKS.items():
            for number in range(n):
                if self.failed and not self.options.all:
                    return
                tool = self.tool(f"real-{name}")
                try:
                    check(random.Random(f"{self.options.seed}:{name}:{number}"), tool)
                    self.passed[name] = self.passed.get(name, 0) + 1
                except real.Missing as e:
                    self.missing.append(f"{name}: {e}")
                    break
                except Exception as e:  # as of the others
                    kind = "" if isinstance(e, cases.Mismatch) else f"{type(e).__name__}: "
                    self.failed.setdefault(name, []).append(str(number))
                    print(f"FAILED {name} {self.options.seed}:{number}: {check.__doc__}\n  {kind}{e}")
                    for args in tool.commands:
                        print(f"  $ cd {tool.directory}; {self.options.program} " + " ".join(args))
                self.n_runs += tool.n_runs
                self.n_outputs += tool.n_outputs

    def main(self):
        o = self.options
        if o.case:
            name, seed = o.case.split(":", 1)
            self.take(self.one(name, seed, 0))
        else:
            print(f"seed {o.seed}, {o.seconds:g} s; again: python3 {sys.argv[0]} --seed {o.seed} {o.program}", flush=True)
            self.loop()
        if o.real:
            self.real_tools()
        for reason in self.missing:
            print(f"left out: {reason}")
        print(f"{self.n_cases} cases, {self.n_runs} runs of the program, {self.n_outputs} files decoded")
        for name in (*cases.LAWS, *real.CHECKS):
            if name in self.passed or name in self.failed:
                n = len(self.failed.get(name, []))
                print(f"  {name}: {self.passed.get(name, 0)} right" + (f", {n} WRONG" if n else ""))
        if not o.keep and not self.failed:
            shutil.rmtree(self.work)
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    parser.add_argument("--law", action="append", default=[])
    parser.add_argument("--case")
    parser.add_argument("--keep")
    parser.add_argument("--show", type=int, default=1, help="failures of a law that are printed in full")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--real", action="store_true", help="the tools of others too, where they are")
    parser.add_argument("program")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    return Run(options).main()


if __name__ == "__main__":
    sys.exit(main())
