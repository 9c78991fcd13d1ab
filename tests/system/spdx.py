# SPDX-License-Identifier: Apache-2.0
"""What SPDX 2.3 demands of a document in JSON (clauses 6, 7 and 11), as far as lists of parts use it."""
import re

ID = r"SPDXRef-[A-Za-z0-9.-]+"
DIGESTS = {"SHA1": 40, "SHA256": 64, "SHA512": 128}
PURPOSES = {"APPLICATION", "FRAMEWORK", "LIBRARY", "CONTAINER", "OPERATING-SYSTEM", "DEVICE", "FIRMWARE", "SOURCE", "ARCHIVE",
            "FILE", "INSTALL", "OTHER"}
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "STATIC_LINK", "DYNAMIC_LINK"}
LICENCE = r"[A-Za-z0-9.+-]+"
DOCUMENT = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r".+",
            "documentNamespace": r"[a-z][a-z0-9+.-]*:[^#\s]+"}
PACKAGE = {"SPDXID": ID, "name": r".+", "downloadLocation": r"NOASSERTION|NONE|[a-z+]+:.+", "copyrightText": r"(?s).+",
           "licenseConcluded": rf"{LICENCE}( (AND|OR) {LICENCE})*", "licenseDeclared": rf"{LICENCE}( (AND|OR) {LICENCE})*"}


def fields(what, entry, wanted):
    for name, pattern in wanted.items():
        if not isinstance(entry.get(name), str) or not re.fullmatch(pattern, entry[name]):
            yield f"{what}: {name}: {entry.get(name)!r}"


def package(entry):
    what = entry.get("name")
    yield from fields(what, entry, PACKAGE)
    if entry.get("filesAnalyzed") is not False:
        yield f"{what}: filesAnalyzed without a verification code"
    if entry.get("primaryPackagePurpose", "OTHER") not in PURPOSES:
        yield f"{what}: primaryPackagePurpose {entry['primaryPackagePurpose']}"
    if not re.fullmatch(r"(Person|Organization): .+|NOASSERTION", entry.get("supplier", "NOASSERTION")):
        yield f"{what}: supplier {entry['supplier']}"
    for sum_ in entry.get("checksums", []):
        if not re.fullmatch(rf"[0-9a-f]{{{DIGESTS.get(sum_.get('algorithm'), 0)}}}", sum_.get("checksumValue", "")):
            yield f"{what}: checksum {sum_}"
    for reference in entry.get("externalRefs", []):
        if reference.get("referenceType") != "purl" or reference.get("referenceCategory") != "PACKAGE-MANAGER" or \
                not re.fullmatch(r"pkg:[a-z]+/[^@\s]+@[^?\s]+(\?\S+)?", reference.get("referenceLocator", "")):
            yield f"{what}: reference {reference}"


def problems(document):
    """What is wrong with it, a line each."""
    found = list(fields("document", document, DOCUMENT))
    creation = document.get("creationInfo", {})
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", creation.get("created", "")):
        found.append(f"created: {creation.get('created')}")
    if not creation.get("creators") or not all(re.match(r"(Person|Organization|Tool): ", c) for c in creation["creators"]):
        found.append(f"creators: {creation.get('creators')}")
    ids = [document.get("SPDXID")] + [p.get("SPDXID") for p in document.get("packages", [])]
    found += [f"{i}: is there twice" for i in set(ids) if ids.count(i) > 1]
    for entry in document.get("packages", []):
        found += package(entry)
    relations = [(r.get("spdxElementId"), r.get("relationshipType"), r.get("relatedSpdxElement"))
                 for r in document.get("relationships", [])]
    found += [f"relationship {r}" for r in relations if r[0] not in ids or r[2] not in ids or r[1] not in RELATIONSHIPS]
    if not any(r[:2] == ("SPDXRef-DOCUMENT", "DESCRIBES") for r in relations):
        found.append("the document describes nothing")
    related = {r[0] for r in relations} | {r[2] for r in relations}
    return found + [f"{i}: nothing relates to it" for i in ids if i not in related]
