# SPDX-License-Identifier: Apache-2.0
"""Checks OTLP profiles payloads against every rule a producer must hold.

    otlp_check.py [--framed] [--re-encoded] [--rate HZ] FILE...

--framed: each file holds messages with a length before each (the collector's file exporter).
--re-encoded: the collector wrote it: it rewrites literal resource keys as string indices, gives the
empty attribute an empty value and the empty link zero bytes, so those are not ours to answer for.

The rules carry short names (I1 to I12 after the numbers of the invariants, C for the contract with
the known consumers); each problem is printed with its rule. Exit status 1 when there is one.
"""
import re
import sys

import otlp

MAX_BYTES = 4 << 20
MAX_SAMPLES = 16000
BUILD_IDS = ("process.executable.build_id.gnu", "process.executable.build_id.go",
             "process.executable.build_id.htlhash")
FRAME_TYPES = {"beam", "cpython", "dotnet", "go", "jvm", "kernel", "luajit", "native", "perl", "php",
               "ruby", "rust", "v8js", "abort-marker"}
TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table",
          "attribute_table", "stack_table")
RESOURCE_TYPES = {"process.pid": int, "process.parent_pid": int, "service.name": str,
                  "process.executable.name": str, "process.executable.path": str,
                  "container.id": str, "process.creation.time": str}
SAMPLE_TYPES = {"thread.id": int, "thread.name": str, "cpu.logical_number": int}


class Checker:
    """One payload's problems. Rules that hold say nothing."""

    def __init__(self, data, re_encoded=False, rate=None, file=False):
        self.problems = []
        self.re_encoded = re_encoded
        self.file = file  # not an export: modules without a build id have a name at least
        self.rate = rate
        self.used = {name: {0} for name in TABLES}
        if len(data) >= MAX_BYTES:
            self.bad("C9", f"{len(data)} bytes: not under {MAX_BYTES}")
        try:
            self.message = otlp.decode(data)
        except otlp.WireError as e:
            self.bad("wire", str(e))
            return
        self.d = self.message.dictionary
        if self.d is None:
            self.bad("I1", "no dictionary")
            return
        self.strings = self.d.string_table
        self.zero_entries()
        self.tables()
        self.resources()
        if not self.problems:  # needs indices in range
            self.duplicates()
            self.orphans()
            self.whole_mappings()

    def bad(self, rule, text):
        if len(self.problems) < 50:
            self.problems.append((rule, text))

    # ---- References ----

    def ref(self, table, index, what):
        """Notes a reference; None when it is out of range."""
        entries = getattr(self.d, table)
        if not 0 <= index < len(entries):
            self.bad("I2", f"{what}: index {index} is outside {table} of {len(entries)}")
            return None
        self.used[table].add(index)
        return entries[index]

    def text(self, index, what):
        return self.ref("string_table", index, what) or ""

    def table_attributes(self, indices, what):
        """Resolves attribute indices: a dictionary of key to value."""
        found = {}
        for i in indices:
            entry = self.ref("attribute_table", i, what)
            if entry is None:
                continue
            if i == 0:
                self.bad("I9", f"{what}: attribute index 0 means unset and stands in a list")
                continue
            key = self.text(entry.key_strindex, what)
            if key in found:
                self.bad("I9", f"{what}: attribute key {key!r} twice")
            found[key] = otlp.any_value(entry.value, self.strings)
        return found

    # ---- The dictionary ----

    def zero_entries(self):
        for name in TABLES:
            table = getattr(self.d, name)
            if not table:
                self.bad("I1", f"{name} is missing")
                continue
            zero = table[0]
            if name == "string_table":
                if zero != "":
                    self.bad("I1", f"string_table[0] is {zero!r}")
            elif name == "link_table":
                ids = zero.trace_id + zero.span_id
                if not zero.is_empty() and not (self.re_encoded and not any(ids)):
                    self.bad("I3", "link_table[0] is not an empty message")
            elif name == "attribute_table" and self.re_encoded:
                if zero.key_strindex or zero.unit_strindex or otlp.any_value(zero.value) is not None:
                    self.bad("I1", "attribute_table[0] is not empty")
            elif not zero.is_empty():
                self.bad("I1", f"{name}[0] is not the zero value")

    def tables(self):
        for i, f in enumerate(self.d.function_table[1:], 1):
            names = [self.text(x, f"function {i}")
                     for x in (f.name_strindex, f.system_name_strindex, f.filename_strindex)]
            if not any(names):
                self.bad("C7", f"function {i} has no name, system name or file")
            if f.start_line < 0:
                self.bad("C7", f"function {i}: negative line")
        for i, l in enumerate(self.d.location_table[1:], 1):
            self.location(i, l)
        for i, m in enumerate(self.d.mapping_table[1:], 1):
            self.mapping(i, m)
        for i, s in enumerate(self.d.stack_table[1:], 1):
            if not s.location_indices:
                self.bad("I4", f"stack {i} is empty, as stack 0 is")
            for x in s.location_indices:
                self.ref("location_table", x, f"stack {i}")
                if x == 0:
                    self.bad("I2", f"stack {i} holds location 0, which means unset")
        for i, l in enumerate(self.d.link_table[1:], 1):
            if len(l.trace_id) != 16 or len(l.span_id) != 8:
                self.bad("I3", f"link {i}: ids of {len(l.trace_id)} and {len(l.span_id)} bytes")
        for i, a in enumerate(self.d.attribute_table[1:], 1):
            key = self.text(a.key_strindex, f"attribute {i}")
            self.text(a.unit_strindex, f"attribute {i}")
            if not key:
                self.bad("I9", f"attribute {i} has no key")
            kinds = a.value.present if a.value else set()
            if kinds == {"string_value_strindex"}:
                self.text(a.value.string_value_strindex, f"attribute {i}")
                kinds = {"string_value"} if self.re_encoded else kinds
            if kinds not in ({"string_value"}, {"int_value"}):
                self.bad("C1", f"attribute {i} ({key}) is no string and no integer but {kinds}")

    def location(self, i, l):
        mapping = self.ref("mapping_table", l.mapping_index, f"location {i}")
        if mapping is not None and l.mapping_index and mapping.memory_limit:
            if not mapping.memory_start <= l.address < mapping.memory_limit:
                self.bad("I10", f"location {i}: {l.address:#x} outside its mapping "
                                f"{mapping.memory_start:#x}-{mapping.memory_limit:#x}")
        for line in l.lines:
            if self.ref("function_table", line.function_index, f"location {i}") is not None \
                    and line.function_index == 0:
                self.bad("I2", f"location {i} has a line without a function")
            if line.line < 0 or line.column < 0:
                self.bad("C7", f"location {i}: negative line or column")
        found = self.table_attributes(l.attribute_indices, f"location {i}")
        kind = found.get("profile.frame.type")
        if kind not in FRAME_TYPES:
            self.bad("C6", f"location {i}: profile.frame.type is {kind!r}")

    def mapping(self, i, m):
        name = self.text(m.filename_strindex, f"mapping {i}")
        found = self.table_attributes(m.attribute_indices, f"mapping {i}")
        if not (m.memory_start < m.memory_limit or m.memory_start == m.memory_limit == 0):
            self.bad("I10", f"mapping {i} ({name}): {m.memory_start:#x} is not below "
                            f"{m.memory_limit:#x}")
        if self.file and not any(found.get(key) for key in BUILD_IDS):
            return
        if not any(found.get(key) for key in BUILD_IDS):
            self.bad("I11", f"mapping {i} ({name}) has no build id")
        # Of what the test copies.py writes over while others look at the host, nobody has the bytes; what it
        # touches may look written over for a moment.
        if name.startswith("/") and not found.get(BUILD_IDS[2]) and not name.endswith(("/written-over", "/touched")):
            self.bad("C6", f"mapping {i} ({name}) is a file without htlhash")
        if BUILD_IDS[2] in found and not re.fullmatch("[0-9a-f]{32}", str(found[BUILD_IDS[2]])):
            self.bad("I12", f"mapping {i} ({name}): htlhash {found[BUILD_IDS[2]]!r}")
        if BUILD_IDS[0] in found and not re.fullmatch("([0-9a-f]{2})+", str(found[BUILD_IDS[0]])):
            self.bad("C6", f"mapping {i} ({name}): GNU build id {found[BUILD_IDS[0]]!r}")

    # ---- Resources, scopes, profiles ----

    def literal_attributes(self, owner, what):
        """A Resource's or scope's own attributes, checked; a dictionary."""
        found = {}
        for kv in owner.attributes:
            if self.re_encoded:
                key = kv.key or self.text(kv.key_strindex, what)
                value = otlp.any_value(kv.value, self.strings)
                if kv.value and "string_value_strindex" in kv.value.present:
                    self.text(kv.value.string_value_strindex, what)
            else:
                key, value = kv.key, None
                if "key_strindex" in kv.present:
                    self.bad("C1", f"{what}: attribute key as a string index")
                elif kv.value and "string_value_strindex" in kv.value.present:
                    self.bad("C1", f"{what}: {key} has its value as a string index")
                else:
                    value = otlp.any_value(kv.value)
            if not key:
                self.bad("I9", f"{what}: an attribute without a key")
            if key in found:
                self.bad("I9", f"{what}: attribute key {key!r} twice")
            if value is None or isinstance(value, float):
                self.bad("I9", f"{what}: {key} has the value {value!r}")
            found[key] = value
        return found

    def comm(self, rp, what):
        """Of files, where a process that renamed itself is two resources."""
        profiles = [p for sp in rp.scope_profiles for p in sp.profiles]
        found = self.table_attributes(profiles[0].attribute_indices, what) if profiles else {}
        return (found.get("perfwalk.comm"),)

    def resources(self):
        if not self.message.resource_profiles:
            self.bad("C3", "no resource_profiles")
        seen = set()
        for r, rp in enumerate(self.message.resource_profiles):
            what = f"resource {r}"
            if rp.resource is None:
                self.bad("C3", f"{what}: no Resource message")
                continue
            found = self.literal_attributes(rp.resource, what)
            self.resource_attributes(found, what)
            identity = tuple(sorted((k, repr(v)) for k, v in found.items())) + self.comm(rp, what)
            if identity in seen:
                self.bad("C8", f"{what}: the same resource twice in one message: {found}")
            seen.add(identity)
            if not rp.scope_profiles:
                self.bad("C3", f"{what}: no scope_profiles")
            for sp in rp.scope_profiles:
                if sp.scope is None:
                    self.bad("C3", f"{what}: no InstrumentationScope message")
                else:
                    self.literal_attributes(sp.scope, f"{what} scope")
                    if not sp.scope.name:
                        self.bad("C3", f"{what}: the scope has no name")
                if not sp.profiles:
                    self.bad("C3", f"{what}: a scope without profiles")
                for p in sp.profiles:
                    self.profile(p, what)

    def resource_attributes(self, found, what):
        for key in ("service.name",):
            if not found.get(key):
                self.bad("C8", f"{what}: no {key}")
        for key, kind in RESOURCE_TYPES.items():
            if key in found and type(found[key]) is not kind:
                self.bad("C8", f"{what}: {key} is {found[key]!r}, no {kind.__name__}")
        path, name = found.get("process.executable.path"), found.get("process.executable.name")
        if isinstance(path, str) and path and name != path.rpartition("/")[2]:
            self.bad("C8", f"{what}: process.executable.name {name!r} of {path!r}")
        named = found.get("container.runtime.name") in ("lxc", "systemd-nspawn")  # their containers have no other id
        if "container.id" in found and not re.fullmatch(
                "[^/]+" if named else "[0-9a-f]{64}|[0-9a-f]{32}-[0-9]+", str(found["container.id"])):
            self.bad("C8", f"{what}: container.id {found['container.id']!r}")

    def value_type(self, value, what):
        if value is None:
            self.bad("C3", f"{what} is missing")
            return None
        return (self.text(value.type_strindex, what), self.text(value.unit_strindex, what))

    def profile(self, p, what):
        kind = self.value_type(p.sample_type, f"{what}: sample_type")
        period = self.value_type(p.period_type, f"{what}: period_type")
        if kind == ("samples", "count"):
            of_event = period and period[0] not in ("", "cpu", "samples") and period[1] == "count"
            if not (of_event or period == ("cpu", "nanoseconds")) or p.period <= 0:
                self.bad("C4", f"{what}: samples/count with period {p.period} of {period}")
            elif not of_event and self.rate and p.period != round(1e9 / self.rate) and p.period != int(1e9 / self.rate):
                self.bad("C4", f"{what}: period {p.period} at {self.rate} Hz")
        elif kind is not None and not all(kind):
            self.bad("C4", f"{what}: sample_type {kind}")
        if p.profile_id and (len(p.profile_id) != 16 or not any(p.profile_id)):
            self.bad("C3", f"{what}: profile_id {p.profile_id.hex()}")
        if not p.samples:
            self.bad("C3", f"{what}: a profile without samples")
        if len(p.samples) > MAX_SAMPLES:
            self.bad("C9", f"{what}: {len(p.samples)} samples in one profile")
        if bool(p.original_payload_format) != bool(p.original_payload):
            self.bad("C3", f"{what}: original payload and format do not go together")
        self.table_attributes(p.attribute_indices, what)
        shapes, identities = set(), set()
        for s in p.samples:
            shapes.add(self.sample(p, s, what))
            identity = (s.stack_index, frozenset(s.attribute_indices), s.link_index)
            if identity in identities:
                self.bad("I7", f"{what}: two samples of stack {s.stack_index}, attributes "
                               f"{sorted(s.attribute_indices)} and link {s.link_index}")
            identities.add(identity)
        if len(shapes) > 1:
            self.bad("I6", f"{what}: samples of shapes {sorted(shapes)} in one profile")
        if kind == ("samples", "count") and "paired" in shapes:
            self.bad("C4", f"{what}: a value per timestamp")

    def sample(self, p, s, what):
        """Checks one sample; its shape."""
        self.ref("stack_table", s.stack_index, f"{what} sample")
        self.ref("link_table", s.link_index, f"{what} sample")
        found = self.table_attributes(s.attribute_indices, f"{what} sample")
        for key, kind in SAMPLE_TYPES.items():
            if key in found and type(found[key]) is not kind:
                self.bad("C6", f"{what}: {key} is {found[key]!r}, no {kind.__name__}")
        n_values, n_times = len(s.values), len(s.timestamps_unix_nano)
        if not n_values and not n_times:
            self.bad("I5", f"{what}: a sample without value and timestamp")
        if n_values and n_times and n_values != n_times:
            self.bad("I5", f"{what}: {n_values} values and {n_times} timestamps")
        if not n_times and n_values > 1:
            self.bad("I6", f"{what}: {n_values} values without timestamps")
        end = p.time_unix_nano + p.duration_nano
        for t in s.timestamps_unix_nano:
            if not p.time_unix_nano <= t < end:
                self.bad("I8", f"{what}: timestamp {t} outside [{p.time_unix_nano}, {end})")
        return "timestamps" if not n_values else "value" if not n_times else "paired"

    # ---- The dictionary as a whole ----

    def resolved(self):
        """Per table, each entry with its references followed down to text and numbers."""
        text = self.strings
        attributes = [(text[a.key_strindex], a.value.key() if a.value else None,
                       text[a.unit_strindex]) for a in self.d.attribute_table]

        def several(indices):
            return frozenset(attributes[i] for i in indices)
        mappings = [(m.memory_start, m.memory_limit, m.file_offset, text[m.filename_strindex],
                     several(m.attribute_indices)) for m in self.d.mapping_table]
        functions = [(text[f.name_strindex], text[f.system_name_strindex],
                      text[f.filename_strindex], f.start_line) for f in self.d.function_table]
        locations = [(mappings[l.mapping_index], l.address,
                      tuple((functions[x.function_index], x.line, x.column) for x in l.lines),
                      several(l.attribute_indices)) for l in self.d.location_table]
        numbers = {}  # a location's whole content by number, so that stacks stay small
        ids = [numbers.setdefault(l, len(numbers)) for l in locations]
        stacks = [tuple(ids[i] for i in s.location_indices) for s in self.d.stack_table]
        links = [(l.trace_id, l.span_id) for l in self.d.link_table]
        return {"string_table": text, "attribute_table": attributes, "mapping_table": mappings,
                "function_table": functions, "location_table": locations, "stack_table": stacks,
                "link_table": links}

    def duplicates(self):
        for name, entries in self.resolved().items():
            seen = {}
            for i, entry in enumerate(entries):
                if entry in seen:
                    self.bad("I4", f"{name}: entry {i} equals entry {seen[entry]}: {entry!r:.200}")
                seen.setdefault(entry, i)

    def orphans(self):
        for name in TABLES:
            unused = [i for i in range(len(getattr(self.d, name))) if i not in self.used[name]]
            if unused:
                first = getattr(self.d, name)[unused[0]]
                shown = first if isinstance(first, str) else first.key()
                self.bad("I4", f"{name}: {len(unused)} entries that nothing refers to, "
                               f"the first {unused[0]}: {shown!r:.200}")

    def whole_mappings(self):
        """A consumer takes a mapping as symbolized when all its locations have lines."""
        state = {}
        for l in self.d.location_table[1:]:
            if l.mapping_index:
                state.setdefault(l.mapping_index, set()).add(bool(l.lines))
        for index, kinds in state.items():
            if len(kinds) > 1:
                name = self.strings[self.d.mapping_table[index].filename_strindex]
                self.bad("C7", f"mapping {index} ({name}): some locations have lines, some not")


def check(data, **options):
    """The problems of one payload: (rule, text) each."""
    return Checker(data, **options).problems


def main(argv):
    options, names, framed = {}, [], False
    arguments = iter(argv)
    for a in arguments:
        if a == "--framed":
            framed = True
        elif a == "--re-encoded":
            options["re_encoded"] = True
        elif a == "--rate":
            options["rate"] = float(next(arguments))
        else:
            names.append(a)
    n_bad = n_messages = 0
    for name in names:
        with open(name, "rb") as f:
            data = f.read()
        for i, payload in enumerate(otlp.read_framed(data) if framed else [data]):
            n_messages += 1
            for rule, text in check(payload, **options):
                n_bad += 1
                print(f"{name}: message {i}: {rule}: {text}")
    print(f"{n_messages} messages, {n_bad} problems")
    return 1 if n_bad or not n_messages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
