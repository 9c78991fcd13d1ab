#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py --version V --date SECONDS [--bundled] [--static NAME=FILE]... PROGRAM NAME=FILE...: what perfwalk is made
of, as SPDX 2.3 in JSON, on standard output: the program and its libraries. Where dpkg knows them, with version, source
and licences of their package. Equal files and packages make equal output. --bundled: they are in the archive."""
import argparse
import hashlib
import json
import os
import re
import subprocess
import time

ROOT = os.environ.get("SYSROOT", "")  # where the files are of a host of another processor

# Debian's short names that SPDX has under another; what is in neither stays in the comment.
SPDX = {"GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later",
        "LGPL-2": "LGPL-2.0-only", "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only",
        "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later",
        "Apache-2.0": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause", "ISC": "ISC",
        "Expat": "MIT", "Zlib": "Zlib", "zlib": "Zlib", "curl": "curl", "OpenLDAP-2.8": "OLDAP-2.8"}


def run(*argv):
    """What a command says; nothing, where there is no such command."""
    try:
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout
    except FileNotFoundError:
        return ""


def owners(paths):
    """The package of each file. Debian knows files by the names from before /lib and /usr/lib became one."""
    real = {p: os.path.realpath(p).removeprefix(ROOT) for p in paths}
    names = [n for p in real.values() for n in (p, p.removeprefix("/usr"))]
    found = {}
    for line in run("dpkg", "-S", *names).splitlines():
        packages, _, name = line.rpartition(": ")
        found[name] = packages.split(",")[0].split(":")[0]
    return {p: found.get(r) or found.get(r.removeprefix("/usr"), "") for p, r in real.items()}


def about(packages):
    """Of each package: version, source package and its version, architecture, maintainer."""
    fields = r"${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}\t${Maintainer}\n"
    names = sorted(set(packages) - {""})
    rows = [line.split("\t") for line in (run("dpkg-query", "-W", "-f", fields, *names) if names else "").splitlines()]
    native = run("dpkg", "--print-architecture").strip()
    return {row[0]: row[1:] for row in sorted(rows, key=lambda row: row[4] in (native, "all"))}


def licences(package):
    """The names in the package's copyright file, where it is in the form that can be read."""
    try:
        with open(f"{ROOT}/usr/share/doc/{package}/copyright", encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return []
    return sorted(set(re.findall(r"^License: *(\S.*?) *$", text, re.M)))


def declared(names):
    """An expression of all of them, or that nobody has stated one."""
    if names and all(n in SPDX for n in names):
        return " AND ".join(sorted({SPDX[n] for n in names}))
    return "NOASSERTION"


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def component(name, path, package, row):
    entry = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "packageFileName": name,
             "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
             "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "LIBRARY",
             "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(path)}]}
    if row:
        version, source, source_version, architecture, maintainer = row
        names = licences(package)
        entry |= {"versionInfo": version, "supplier": f"Organization: {re.sub(r' *<.*', '', maintainer)}",
                  "sourceInfo": f"Debian package {package} {version}, built from {source} {source_version}",
                  "licenseDeclared": declared(names),
                  "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                    "referenceLocator": f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}"
                                    f"?arch={architecture}"}]}
        if names:
            entry["licenseComments"] = "In the package's copyright file: " + ", ".join(names)
    return entry


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", type=int, required=True)
    parser.add_argument("--bundled", action="store_true")
    parser.add_argument("--static", action="append", default=[])
    parser.add_argument("program")
    parser.add_argument("libraries", nargs="*")
    args = parser.parse_args()
    me = {"SPDXID": "SPDXRef-perfwalk", "name": "perfwalk", "versionInfo": args.version, "packageFileName": "perfwalk",
          "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
          "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
          "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(args.program)}]}
    packages, relations = [me], [("SPDXRef-DOCUMENT", "DESCRIBES", me["SPDXID"])]
    pairs = sorted(set(args.static + args.libraries))
    packages_of = owners([pair.split("=", 1)[1] for pair in pairs])
    rows = about(packages_of.values())
    for pair in pairs:
        name, path = pair.split("=", 1)
        entry = component(name, path, packages_of[path], rows.get(packages_of[path]))
        packages.append(entry)
        relations.append((me["SPDXID"], "STATIC_LINK" if pair in args.static else "DYNAMIC_LINK", entry["SPDXID"]))
        if args.bundled and pair not in args.static:
            relations.append((me["SPDXID"], "CONTAINS", entry["SPDXID"]))
    what = f"perfwalk{'-bundle' if args.bundled else ''}-{args.version}"
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": what,
        "documentNamespace": f"urn:perfwalk:{what}:{hashlib.sha256(json.dumps(packages).encode()).hexdigest()}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(args.date)),
                         "creators": [f"Tool: perfwalk-sbom-{args.version}"]},
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations]}
    print(json.dumps(document, indent=1, sort_keys=True))


main()
