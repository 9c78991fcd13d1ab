# SPDX-License-Identifier: Apache-2.0
"""A reader of OTLP profiles written from the published field numbers alone: protobuf's wire format
and a table of the messages. It shares nothing with perfwalk's encoder or its .proto files, and it
accepts nothing the table does not know, so a renumbered or misplaced field cannot pass.
"""
import functools
import struct

# message: {field number: (name, type, repeated)}; a type that is a key of this table is a message.
SCHEMA = {
    "ProfilesData": {
        1: ("resource_profiles", "ResourceProfiles", True),
        2: ("dictionary", "ProfilesDictionary", False),
    },
    "ProfilesDictionary": {
        1: ("mapping_table", "Mapping", True),
        2: ("location_table", "Location", True),
        3: ("function_table", "Function", True),
        4: ("link_table", "Link", True),
        5: ("string_table", "string", True),
        6: ("attribute_table", "KeyValueAndUnit", True),
        7: ("stack_table", "Stack", True),
    },
    "ResourceProfiles": {
        1: ("resource", "Resource", False),
        2: ("scope_profiles", "ScopeProfiles", True),
        3: ("schema_url", "string", False),
    },
    "ScopeProfiles": {
        1: ("scope", "InstrumentationScope", False),
        2: ("profiles", "Profile", True),
        3: ("schema_url", "string", False),
    },
    "Profile": {
        1: ("sample_type", "ValueType", False),
        2: ("samples", "Sample", True),
        3: ("time_unix_nano", "fixed64", False),
        4: ("duration_nano", "uint64", False),
        5: ("period_type", "ValueType", False),
        6: ("period", "int64", False),
        7: ("profile_id", "bytes", False),
        8: ("dropped_attributes_count", "uint32", False),
        9: ("original_payload_format", "string", False),
        10: ("original_payload", "bytes", False),
        11: ("attribute_indices", "int32", True),
    },
    "Sample": {
        1: ("stack_index", "int32", False),
        2: ("attribute_indices", "int32", True),
        3: ("link_index", "int32", False),
        4: ("values", "int64", True),
        5: ("timestamps_unix_nano", "fixed64", True),
    },
    "Stack": {1: ("location_indices", "int32", True)},
    "Location": {
        1: ("mapping_index", "int32", False),
        2: ("address", "uint64", False),
        3: ("lines", "Line", True),
        4: ("attribute_indices", "int32", True),
    },
    "Line": {
        1: ("function_index", "int32", False),
        2: ("line", "int64", False),
        3: ("column", "int64", False),
    },
    "Function": {
        1: ("name_strindex", "int32", False),
        2: ("system_name_strindex", "int32", False),
        3: ("filename_strindex", "int32", False),
        4: ("start_line", "int64", False),
    },
    "Mapping": {
        1: ("memory_start", "uint64", False),
        2: ("memory_limit", "uint64", False),
        3: ("file_offset", "uint64", False),
        4: ("filename_strindex", "int32", False),
        5: ("attribute_indices", "int32", True),
    },
    "Link": {1: ("trace_id", "bytes", False), 2: ("span_id", "bytes", False)},
    "ValueType": {1: ("type_strindex", "int32", False), 2: ("unit_strindex", "int32", False)},
    "KeyValueAndUnit": {
        1: ("key_strindex", "int32", False),
        2: ("value", "AnyValue", False),
        3: ("unit_strindex", "int32", False),
    },
    "AnyValue": {
        1: ("string_value", "string", False),
        2: ("bool_value", "bool", False),
        3: ("int_value", "int64", False),
        4: ("double_value", "double", False),
        5: ("array_value", "ArrayValue", False),
        6: ("kvlist_value", "KeyValueList", False),
        7: ("bytes_value", "bytes", False),
        8: ("string_value_strindex", "int32", False),
    },
    "ArrayValue": {1: ("values", "AnyValue", True)},
    "KeyValueList": {1: ("values", "KeyValue", True)},
    "KeyValue": {
        1: ("key", "string", False),
        2: ("value", "AnyValue", False),
        3: ("key_strindex", "int32", False),
    },
    "InstrumentationScope": {
        1: ("name", "string", False),
        2: ("version", "string", False),
        3: ("attributes", "KeyValue", True),
        4: ("dropped_attributes_count", "uint32", False),
    },
    "Resource": {
        1: ("attributes", "KeyValue", True),
        2: ("dropped_attributes_count", "uint32", False),
        3: ("entity_refs", "EntityRef", True),
    },
    "EntityRef": {
        1: ("schema_url", "string", False),
        2: ("type", "string", False),
        3: ("id_keys", "string", True),
        4: ("description_keys", "string", True),
    },
}

VARINT, I64, LEN, I32 = 0, 1, 2, 5
WIRE = {"int32": VARINT, "int64": VARINT, "uint32": VARINT, "uint64": VARINT, "bool": VARINT,
        "fixed64": I64, "double": I64, "string": LEN, "bytes": LEN}
EMPTY = {"string": "", "bytes": b"", "double": 0.0, "bool": False}


# Of each message what a field holds that is not there, and the fields that are lists.
NOTHING = {kind: {name: None if of in SCHEMA else EMPTY.get(of, 0) for name, of, repeated in fields.values() if not repeated}
           for kind, fields in SCHEMA.items()}
REPEATED = {kind: [name for name, _, repeated in fields.values() if repeated] for kind, fields in SCHEMA.items()}


class WireError(Exception):
    """The bytes are not such a message."""


class Message:
    """A decoded message: one attribute per field of the schema, and which fields were there."""

    def __init__(self, kind):
        self.__dict__.update(NOTHING[kind])
        self.kind = kind
        self.present = set()
        for name in REPEATED[kind]:
            setattr(self, name, [])

    def key(self):
        """Everything in it, comparable: equal keys are equal messages."""
        def plain(v):
            if isinstance(v, Message):
                return v.key()
            return tuple(plain(x) for x in v) if isinstance(v, list) else v
        return (self.kind, tuple(sorted(self.present)),
                tuple(plain(getattr(self, f[0])) for f in SCHEMA[self.kind].values()))

    def is_empty(self):
        return not self.present


def varint(data, at, end):
    value = shift = 0
    while True:
        if at >= end:
            raise WireError("a varint runs past the end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            raise WireError("a varint is longer than ten bytes")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def scalar(kind, raw):
    if kind in ("int32", "int64"):
        value = signed(raw)
        if kind == "int32" and not -(1 << 31) <= value < 1 << 31:
            raise WireError(f"{value} is no int32")
        return value
    if kind == "uint32" and raw >> 32:
        raise WireError(f"{raw} is no uint32")
    if kind == "bool":
        return raw != 0
    return raw


def length_delimited(kind, data, depth):
    if kind in SCHEMA:
        return decode(data, kind, depth + 1)
    if kind == "string":
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as e:
            raise WireError(f"a string is not UTF-8: {data!r}") from e
    return bytes(data)


def decode(data, kind="ProfilesData", depth=0):
    """Bytes to a Message; WireError names what is wrong and where."""
    if depth > 32:
        raise WireError("nested deeper than 32 messages")
    message = Message(kind)
    fields, found, present = SCHEMA[kind], message.__dict__, message.present
    at, end = 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number not in fields:
            raise WireError(f"{kind} has no field {number}")
        name, field_kind, repeated = fields[number]
        wanted = WIRE.get(field_kind, LEN)
        if wire == LEN:
            n, at = (data[at], at + 1) if at < end and data[at] < 0x80 else varint(data, at, end)
            if n > end - at:
                raise WireError(f"{kind}.{name} runs past the end")
            piece, at = data[at:at + n], at + n
            if wanted == LEN:
                values = (length_delimited(field_kind, piece, depth),)
            elif repeated:
                values = packed(piece, field_kind, f"{kind}.{name}")
            else:
                raise WireError(f"{kind}.{name} has wire type 2, not {wanted}")
        elif wire != wanted:
            raise WireError(f"{kind}.{name} has wire type {wire}, not {wanted}")
        elif wire == VARINT:
            raw, at = (data[at], at + 1) if at < end and data[at] < 0x80 else varint(data, at, end)
            values = (raw if raw < 0x80 and field_kind != "bool" else scalar(field_kind, raw),)
        else:
            if end - at < 8:
                raise WireError(f"{kind}.{name} runs past the end")
            values = struct.unpack_from("<d" if field_kind == "double" else "<Q", data, at)
            at += 8
        if repeated:
            found[name].extend(values)
        else:
            if name in present and field_kind in SCHEMA:
                raise WireError(f"{kind}.{name} is there twice")
            found[name] = values[-1]
        present.add(name)
    return message


def packed(data, kind, where):
    if WIRE[kind] == I64:
        if len(data) % 8:
            raise WireError(f"{where} is packed into odd bytes")
        return struct.unpack(f"<{len(data) // 8}Q", data)
    if kind != "bool" and data.isascii():  # each byte is a number
        return data
    values, at = [], 0
    while at < len(data):
        raw, at = varint(data, at, len(data))
        values.append(scalar(kind, raw))
    return values


def read_framed(data):
    """What the collector's file exporter writes with `format: proto`: a length (4 bytes, big
    endian) before each message. A message still being written at the end is left out."""
    at = 0
    while len(data) - at >= 4:
        n = struct.unpack_from(">I", data, at)[0]
        if len(data) - at - 4 < n:
            return
        yield data[at + 4:at + 4 + n]
        at += 4 + n


# ---- Views ----


def attributes(owner, strings=()):
    """A Resource's or scope's attributes as a dictionary, whichever way the keys are written."""
    found = {}
    for kv in owner.attributes if owner else ():
        key = kv.key or (strings[kv.key_strindex] if kv.key_strindex < len(strings) else "")
        found[key] = any_value(kv.value, strings)
    return found


def any_value(value, strings=()):
    if value is None or value.is_empty():
        return None
    name = next(iter(value.present))
    content = getattr(value, name)
    if name == "string_value_strindex":
        return strings[content]
    return [any_value(v, strings) for v in content.values] if name == "array_value" else content


class View:
    """A message with its indices resolved, for tests that ask what was seen."""

    def __init__(self, message):
        self.message = message
        self.dictionary = message.dictionary
        self.strings = message.dictionary.string_table

    def table_attributes(self, indices):
        d = self.dictionary
        return {self.strings[d.attribute_table[i].key_strindex]:
                any_value(d.attribute_table[i].value, self.strings) for i in indices}

    def location_names(self, index):
        """Names of one location, outermost of the inlined ones first; its address without any."""
        location = self.dictionary.location_table[index]
        names = [self.strings[self.dictionary.function_table[line.function_index].name_strindex]
                 for line in reversed(location.lines)]
        return names or [f"0x{location.address:x}"]

    def frames(self, stack_index):
        """Names root to leaf."""
        indices = self.dictionary.stack_table[stack_index].location_indices
        return [name for i in reversed(indices) for name in self.location_names(i)]

    def samples(self, begin=None, end=None):
        """(resource attributes, sample attributes, frames root to leaf, number of samples), with
        times (Unix, in seconds) only what was taken between them."""
        for rp in self.message.resource_profiles:
            resource = attributes(rp.resource, self.strings)
            for sp in rp.scope_profiles:
                for profile in sp.profiles:
                    for s in profile.samples:
                        n = sum(s.values) if s.values else len(s.timestamps_unix_nano)
                        if begin is not None:
                            n = sum(begin <= t / 1e9 < end for t in s.timestamps_unix_nano)
                        if not n:
                            continue
                        yield (resource, self.table_attributes(s.attribute_indices),
                               self.frames(s.stack_index), n)


@functools.lru_cache(maxsize=None)
def view_of(body):
    """The view of a payload. Tests ask for it again and again while they wait, and decoding takes long."""
    return View(decode(body))
