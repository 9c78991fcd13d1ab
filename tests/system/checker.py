# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The checker of OTLP payloads, checked itself: a good payload passes, and each rule is seen
failing on a payload that breaks it and nothing else. Needs neither root nor perfwalk."""
import copy
import struct

import otlp
import rig
from otlp_check import check as problems_of

STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "profile.frame.type", "thread.id",
           "thread.name", "main", "leaf", "/usr/bin/tool", "process.executable.build_id.gnu",
           "process.executable.build_id.htlhash"]
S = {text: i for i, text in enumerate(STRINGS)}
T0 = 1_700_000_000_000_000_000


def attribute(key, value):
    kind = "int_value" if isinstance(value, int) else "string_value"
    return {"key_strindex": S[key], "value": {kind: value}}


GOOD = {
    "resource_profiles": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"string_value": "tool"}},
            {"key": "process.pid", "value": {"int_value": 77}},
            {"key": "process.executable.name", "value": {"string_value": "tool"}},
            {"key": "process.executable.path", "value": {"string_value": "/usr/bin/tool"}},
            {"key": "container.id", "value": {"string_value": "ab" * 32}},
        ]},
        "scope_profiles": [{
            "scope": {"name": "perfwalk", "version": "1"},
            "profiles": [{
                "sample_type": {"type_strindex": S["samples"], "unit_strindex": S["count"]},
                "period_type": {"type_strindex": S["cpu"], "unit_strindex": S["nanoseconds"]},
                "period": 10_000_000,
                "time_unix_nano": T0,
                "duration_nano": 5_000_000_000,
                "profile_id": bytes(range(16)),
                "samples": [
                    {"stack_index": 1, "attribute_indices": [1, 2],
                     "timestamps_unix_nano": [T0, T0 + 5]},
                    {"stack_index": 2, "attribute_indices": [1, 2],
                     "timestamps_unix_nano": [T0 + 9]},
                ],
            }],
        }],
    }],
    "dictionary": {
        "mapping_table": [{}, {"memory_start": 0x1000, "memory_limit": 0x2000,
                               "file_offset": 0x1000, "filename_strindex": S["/usr/bin/tool"],
                               "attribute_indices": [4, 5]}],
        "location_table": [{}] + [
            {"mapping_index": 1, "address": a, "lines": [{"function_index": f}],
             "attribute_indices": [3]} for a, f in ((0x1100, 1), (0x1200, 2))],
        "function_table": [{}, {"name_strindex": S["main"]}, {"name_strindex": S["leaf"]}],
        "link_table": [{}],
        "string_table": STRINGS,
        "attribute_table": [{}, attribute("thread.id", 78), attribute("thread.name", "worker"),
                            attribute("profile.frame.type", "native"),
                            attribute("process.executable.build_id.gnu", "0123456789abcdef"),
                            attribute("process.executable.build_id.htlhash",
                                      "00112233445566778899aabbccddeeff")],
        "stack_table": [{}, {"location_indices": [1]}, {"location_indices": [2, 1]}],
    },
}
def put_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(kind, content):
    """A dictionary of field names to bytes; the fields' numbers from the reader's table."""
    out = bytearray()
    for number, (name, field, repeated) in otlp.SCHEMA[kind].items():
        if name not in content:
            continue
        for value in content[name] if repeated else [content[name]]:
            wire = otlp.WIRE.get(field, otlp.LEN)
            out += put_varint(number << 3 | wire)
            if field in otlp.SCHEMA:
                value = encode(field, value)
            elif field == "string" and isinstance(value, str):
                value = value.encode()
            if wire == otlp.LEN:
                out += put_varint(len(value)) + value
            elif wire == otlp.I64:
                out += struct.pack("<d" if field == "double" else "<Q", value)
            else:
                out += put_varint(value)
    return bytes(out)


def payload(content=None):
    return encode("ProfilesData", content or GOOD)


BREAKS = []  # (rule, what, function that breaks a copy of GOOD)


def breaks(rule, what):
    def add(function):
        BREAKS.append((rule, what, function))
        return function
    return add


def change(rule, what, where, value):
    """Sets one place, named like `dictionary.string_table.0`, to a value; None deletes it."""
    def function(message):
        *parts, last = [int(p) if p.lstrip("-").isdigit() else p for p in where.split(".")]
        for part in parts:
            message = message[part]
        if value is None:
            del message[last]
        elif isinstance(last, int) and last == len(message):
            message.append(value)
        else:
            message[last] = value
    BREAKS.append((rule, what, function))


RESOURCE = "resource_profiles.0.resource.attributes"
PROFILE = "resource_profiles.0.scope_profiles.0.profiles.0"
DICT = "dictionary"

for table in ("mapping", "location", "function", "link", "string", "attribute", "stack"):
    change("I1", f"no {table}_table", f"{DICT}.{table}_table", None)
change("I1", "no dictionary", DICT, None)
change("I1", "string_table[0] is not empty", f"{DICT}.string_table.0", "x")
change("I1", "mapping_table[0] is a mapping", f"{DICT}.mapping_table.0", {"memory_limit": 1})
change("I1", "location_table[0] has an address", f"{DICT}.location_table.0", {"address": 1})
change("I1", "function_table[0] has a name", f"{DICT}.function_table.0", {"name_strindex": 1})
change("I1", "attribute_table[0] has a value", f"{DICT}.attribute_table.0", {"value": {"int_value": 1}})
change("I1", "stack_table[0] has a location", f"{DICT}.stack_table.0", {"location_indices": [1]})
change("I2", "stack_index", f"{PROFILE}.samples.0.stack_index", 3)
change("I2", "negative stack_index", f"{PROFILE}.samples.0.stack_index", -1)
change("I2", "link_index", f"{PROFILE}.samples.0.link_index", 1)
change("I2", "sample attribute", f"{PROFILE}.samples.0.attribute_indices", [99])
change("I2", "location of a stack", f"{DICT}.stack_table.1.location_indices", [9])
change("I2", "location 0 in a stack", f"{DICT}.stack_table.1.location_indices", [0])
change("I2", "mapping of a location", f"{DICT}.location_table.1.mapping_index", 7)
change("I2", "function of a line", f"{DICT}.location_table.1.lines.0.function_index", 7)
change("I2", "line without function", f"{DICT}.location_table.1.lines.0.function_index", 0)
change("I2", "name of a function", f"{DICT}.function_table.1.name_strindex", 99)
change("I2", "filename of a mapping", f"{DICT}.mapping_table.1.filename_strindex", 99)
change("I2", "key of an attribute", f"{DICT}.attribute_table.1.key_strindex", 99)
change("I2", "sample type", f"{PROFILE}.sample_type.type_strindex", 99)
change("I3", "link 0 with zero bytes", f"{DICT}.link_table.0", {"trace_id": bytes(16), "span_id": bytes(8)})
change("I3", "short trace id", f"{DICT}.link_table.1", {"trace_id": b"1234", "span_id": b"12345678"})
change("I4", "string twice", f"{DICT}.string_table.{len(STRINGS)}", "main")
change("I4", "string unused", f"{DICT}.string_table.{len(STRINGS)}", "nobody")
change("I4", "function unused", f"{DICT}.function_table.3", {"name_strindex": 1})
change("I4", "stack unused", f"{DICT}.stack_table.3", {"location_indices": [2]})
change("I4", "empty stack", f"{DICT}.stack_table.2", {})
change("I5", "sample of nothing", f"{PROFILE}.samples.0.timestamps_unix_nano", None)
change("I5", "values and timestamps differ in number", f"{PROFILE}.samples.0.values", [1])
change("I8", "timestamp before the window", f"{PROFILE}.samples.0.timestamps_unix_nano", [T0 - 1])
change("I8", "timestamp at its end", f"{PROFILE}.samples.0.timestamps_unix_nano", [T0 + 5_000_000_000])
change("I9", "resource key twice", f"{RESOURCE}.5", {"key": "process.pid", "value": {"int_value": 1}})
change("I9", "resource attribute without value", f"{RESOURCE}.5", {"key": "k"})
change("I9", "resource attribute without key", f"{RESOURCE}.5", {"value": {"int_value": 1}})
change("I9", "resource attribute is a float", f"{RESOURCE}.5", {"key": "k", "value": {"double_value": 1.5}})
change("I9", "sample attribute twice", f"{PROFILE}.samples.0.attribute_indices", [1, 1])
change("I9", "attribute 0 in a list", f"{PROFILE}.samples.0.attribute_indices", [0])
change("I10", "address outside its mapping", f"{DICT}.location_table.1.address", 0x2000)
change("I10", "mapping ends where it starts", f"{DICT}.mapping_table.1.memory_start", 0x2000)
change("I11", "mapping without build id", f"{DICT}.mapping_table.1.attribute_indices", None)
change("I12", "htlhash in upper case", f"{DICT}.attribute_table.5.value.string_value", "AB" * 16)
change("I12", "htlhash too short", f"{DICT}.attribute_table.5.value.string_value", "ab" * 15)
change("C1", "float in the attribute table", f"{DICT}.attribute_table.1.value", {"double_value": 1.0})
change("C1", "resource key as an index", f"{RESOURCE}.0", {"key_strindex": 1, "value": {"string_value": "x"}})
change("C1", "resource value as an index", f"{RESOURCE}.0.value", {"string_value_strindex": 1})
change("C3", "no resource", "resource_profiles.0.resource", None)
change("C3", "no scope", "resource_profiles.0.scope_profiles.0.scope", None)
change("C3", "scope without a name", "resource_profiles.0.scope_profiles.0.scope.name", "")
change("C3", "no profiles", "resource_profiles.0.scope_profiles.0.profiles", [])
change("C3", "no scope_profiles", "resource_profiles.0.scope_profiles", [])
change("C3", "no resource_profiles", "resource_profiles", [])
change("C3", "no sample_type", f"{PROFILE}.sample_type", None)
change("C3", "no period_type", f"{PROFILE}.period_type", None)
change("C3", "no samples", f"{PROFILE}.samples", [])
change("C3", "profile_id of zeros", f"{PROFILE}.profile_id", bytes(16))
change("C3", "profile_id of 8 bytes", f"{PROFILE}.profile_id", bytes(range(8)))
change("C4", "period 0", f"{PROFILE}.period", 0)
change("C4", "another period than the rate's", f"{PROFILE}.period", 10_000_001)
change("C4", "period in another unit", f"{PROFILE}.period_type.unit_strindex", S["count"])
change("C6", "location without frame type", f"{DICT}.location_table.1.attribute_indices", None)
change("C6", "unknown frame type", f"{DICT}.attribute_table.3.value.string_value", "cobol")
change("C6", "file without htlhash", f"{DICT}.mapping_table.1.attribute_indices", [4])
change("C6", "GNU build id in upper case", f"{DICT}.attribute_table.4.value.string_value", "ABCD")
change("C6", "thread.id as text", f"{DICT}.attribute_table.1.value", {"string_value": "78"})
change("C7", "function without any name", f"{DICT}.function_table.1", {"start_line": 3})
change("C7", "negative line", f"{DICT}.location_table.1.lines.0.line", -1)
change("C7", "mapping half symbolized", f"{DICT}.location_table.1.lines", None)
change("C8", "no service.name", f"{RESOURCE}.0", None)
change("C8", "process.pid as text", f"{RESOURCE}.1.value", {"string_value": "77"})
change("C8", "executable name of another path", f"{RESOURCE}.2.value.string_value", "other")
change("C8", "container.id cut short", f"{RESOURCE}.4.value.string_value", "ab" * 6)


@breaks("I4", "two attributes are equal")
def _(m):
    m["dictionary"]["attribute_table"].append(copy.deepcopy(m["dictionary"]["attribute_table"][1]))
    m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"][0][
        "attribute_indices"] = [6, 2]


@breaks("I4", "two stacks are equal through equal locations")
def _(m):
    d = m["dictionary"]
    d["location_table"].append(copy.deepcopy(d["location_table"][1]))
    d["stack_table"].append({"location_indices": [3]})
    m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"].append(
        {"stack_index": 3, "timestamps_unix_nano": [T0]})


@breaks("I6", "two shapes in one profile")
def _(m):
    s = m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"][0]
    del s["timestamps_unix_nano"]
    s["values"] = [2]


@breaks("I6", "several values without timestamps")
def _(m):
    for s in m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"]:
        s.pop("timestamps_unix_nano")
        s["values"] = [1, 1]


@breaks("C4", "a value per timestamp")
def _(m):
    for s in m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"]:
        s["values"] = [1] * len(s["timestamps_unix_nano"])


@breaks("I7", "the same sample twice, attributes in another order")
def _(m):
    m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"].append(
        {"stack_index": 1, "attribute_indices": [2, 1], "timestamps_unix_nano": [T0]})


@breaks("C8", "the same resource twice")
def _(m):
    m["resource_profiles"].append(copy.deepcopy(m["resource_profiles"][0]))


@breaks("C9", "16001 samples in one profile")
def _(m):
    m["resource_profiles"][0]["scope_profiles"][0]["profiles"][0]["samples"] *= 8001


@breaks("C9", "4 MiB and more")
def _(m):
    m["dictionary"]["string_table"].append("x" * (4 << 20))


def wrap(data, *numbers):
    """A message's bytes inside the messages around it, innermost field number first."""
    for number in numbers:
        data = put_varint(number << 3 | otlp.LEN) + put_varint(len(data)) + data
    return data


def older_numbering():
    """A sample of the schema before its renumbering: values were field 2, attributes field 3."""
    sample = b"\x08\x02" + b"\x10\x01" + b"\x1a\x02\x01\x02" + b"\x29" + struct.pack("<Q", T0)
    return wrap(sample, 2, 2, 2, 1)  # samples, profiles, scope_profiles, resource_profiles


WIRE_BREAKS = {
    "a string that is not UTF-8": lambda: encode("ProfilesData", {"dictionary": {
        **GOOD["dictionary"], "string_table": STRINGS + [b"\xff\xfe"]}}),
    "the samples of an older numbering": older_numbering,
    "a field nobody knows": lambda: payload() + put_varint(15 << 3 | 2) + b"\x00",
    "the end missing": lambda: payload()[:-1],
    "a wire type that does not fit": lambda: payload() + b"\x08\x01",
    "a varint without end": lambda: payload() + b"\xff" * 11,
}


def main():
    rig.check(problems_of(payload(), rate=100) == [],
              f"a good payload passes {problems_of(payload(), rate=100) or ''}")
    for rule, what, function in BREAKS:
        broken = copy.deepcopy(GOOD)
        function(broken)
        found = {r for r, _ in problems_of(payload(broken), rate=100)}
        rig.check(rule in found, f"{rule}: {what}: {' '.join(sorted(found)) or 'not noticed'}")
    for what, function in WIRE_BREAKS.items():
        found = {r for r, _ in problems_of(function())}
        rig.check("wire" in found, f"wire: {what}")
    framed = b"".join(struct.pack(">I", len(p)) + p for p in (payload(), payload())) + b"\0\0\1"
    rig.check(list(otlp.read_framed(framed)) == [payload()] * 2, "framed messages come apart again")
    view = otlp.View(otlp.decode(payload()))
    seen = [(r["process.pid"], a["thread.name"], f, n) for r, a, f, n in view.samples()]
    rig.check(seen == [(77, "worker", ["main"], 2), (77, "worker", ["main", "leaf"], 1)],
              "the view of a payload says what it holds")


if __name__ == "__main__":
    rig.run(main)
