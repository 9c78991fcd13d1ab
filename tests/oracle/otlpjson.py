# SPDX-License-Identifier: Apache-2.0
"""OTLP in JSON, read: turned into the binary message it says, field by field, by the rules of protobuf's
JSON mapping (lowerCamelCase, numbers of 64 bits as text) and OTLP's own (bytes in hex)."""
import json
import struct

import otlp
from viewers import expect, unique
from wire import blob, number, varint

INT32, INT64, FIXED64, TEXT, HEX, BOOL, DOUBLE = "int32", "int64", "fixed64", "text", "hex", "bool", "double"
ANY = {"stringValue": (1, TEXT), "boolValue": (2, BOOL), "intValue": (3, INT64), "doubleValue": (4, DOUBLE)}
KEY_VALUE = {"key": (1, TEXT), "value": (2, ANY)}
VALUE_TYPE = {"typeStrindex": (1, INT32), "unitStrindex": (2, INT32)}
SAMPLE = {"stackIndex": (1, INT32), "attributeIndices": (2, [INT32]), "linkIndex": (3, INT32), "values": (4, [INT64]),
          "timestampsUnixNano": (5, [FIXED64])}
PROFILE = {"sampleType": (1, VALUE_TYPE), "samples": (2, [SAMPLE]), "timeUnixNano": (3, FIXED64),
           "durationNano": (4, INT64), "periodType": (5, VALUE_TYPE), "period": (6, INT64), "profileId": (7, HEX),
           "droppedAttributesCount": (8, INT32), "attributeIndices": (11, [INT32])}
SCOPE = {"name": (1, TEXT), "version": (2, TEXT), "attributes": (3, [KEY_VALUE])}
SCOPE_PROFILES = {"scope": (1, SCOPE), "profiles": (2, [PROFILE]), "schemaUrl": (3, TEXT)}
RESOURCE_PROFILES = {"resource": (1, {"attributes": (1, [KEY_VALUE])}), "scopeProfiles": (2, [SCOPE_PROFILES]),
                     "schemaUrl": (3, TEXT)}
MAPPING = {"memoryStart": (1, INT64), "memoryLimit": (2, INT64), "fileOffset": (3, INT64), "filenameStrindex": (4, INT32),
           "attributeIndices": (5, [INT32])}
LINE = {"functionIndex": (1, INT32), "line": (2, INT64), "column": (3, INT64)}
LOCATION = {"mappingIndex": (1, INT32), "address": (2, INT64), "lines": (3, [LINE]), "attributeIndices": (4, [INT32])}
FUNCTION = {"nameStrindex": (1, INT32), "systemNameStrindex": (2, INT32), "filenameStrindex": (3, INT32),
            "startLine": (4, INT64)}
DICTIONARY = {"mappingTable": (1, [MAPPING]), "locationTable": (2, [LOCATION]), "functionTable": (3, [FUNCTION]),
              "linkTable": (4, [{"traceId": (1, HEX), "spanId": (2, HEX)}]), "stringTable": (5, [TEXT]),
              "attributeTable": (6, [{"keyStrindex": (1, INT32), "value": (2, ANY), "unitStrindex": (3, INT32)}]),
              "stackTable": (7, [{"locationIndices": (1, [INT32])}])}
DATA = {"resourceProfiles": (1, [RESOURCE_PROFILES]), "dictionary": (2, DICTIONARY)}


def field(name, n, kind, value):
    if isinstance(kind, dict):
        return blob(n, message(kind, value))
    types = {INT32: int, INT64: str, FIXED64: str, TEXT: str, HEX: str, BOOL: bool, DOUBLE: (int, float)}
    expect(isinstance(value, types[kind]), f"OTLP/JSON: {name} is {value!r}")
    if kind == TEXT:
        return blob(n, value)
    if kind == HEX:
        return blob(n, bytes.fromhex(value))
    if kind == FIXED64:
        return varint(n << 3 | 1) + int(value).to_bytes(8, "little")
    if kind == DOUBLE:
        return varint(n << 3 | 1) + struct.pack("<d", value)
    return number(n, int(value), True)


def message(schema, value):
    expect(isinstance(value, dict), f"OTLP/JSON: {value!r} is no message")
    out = b""
    for name, content in value.items():
        expect(name in schema, f"OTLP/JSON: there is no field {name}")
        n, kind = schema[name]
        if isinstance(kind, list):
            expect(isinstance(content, list), f"OTLP/JSON: {name} is no list")
            out += b"".join(field(name, n, kind[0], x) for x in content)
        else:
            out += field(name, n, kind, content)
    return out


def decode(data):
    """As of the binary form."""
    return otlp.decode(message(DATA, json.loads(data, object_pairs_hook=unique)))
