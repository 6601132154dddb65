#!/usr/bin/env python3
"""Posts which Debian packages changed in a release since the last run.

usage: Deploy/examples/packages.py STATE RELEASE=INDEX...

INDEX is a file Packages of an archive, such as apt keeps. STATE is the file in which the program
remembers, from run to run, the versions and what is not posted yet.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import timeline


def versions(indices):
    """The version of each package, by release."""
    found = {}
    for release, _, index in (argument.partition("=") for argument in indices):
        # apt reads its lists in whichever way they are compressed.
        text = subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", index], check=True, stdout=subprocess.PIPE,
            text=True)
        found.setdefault(release, {}).update(
            re.findall(r"^Package: (.+)\n(?:.+\n)*?Version: (.+)$", text.stdout, re.MULTILINE))
    return found


def changes(before, after):
    for release, packages in after.items():
        if release not in before:
            # A change without an id concerns all packages of the release. Widgets that count them
            # depend on inserts and deletes only.
            yield {"entity": "Package", "operation": "insert", "attributes": {"release": release}}
            continue
        old = before[release]
        for name in sorted(old.keys() | packages.keys()):
            if old.get(name) != packages.get(name):
                operation = "update" if name in old and name in packages else (
                    "insert" if name in packages else "delete")
                yield {"entity": "Package", "id": name, "operation": operation,
                       "properties": ["version"], "attributes": {"release": release}}


def save(state, file):
    """Replaces the file as a whole, on disk: a crash leaves the old state or the new one."""
    new = file.with_suffix(".new")
    with open(new, "w", encoding="utf-8") as output:
        json.dump(state, output)
        output.flush()
        os.fsync(output.fileno())
    new.replace(file)


def main():
    if len(sys.argv) < 3 or not all("=" in argument for argument in sys.argv[2:]):
        sys.exit(__doc__)
    file = pathlib.Path(sys.argv[1])
    state = json.loads(file.read_text()) if file.exists() else {"versions": {}, "pending": []}
    seen = versions(sys.argv[2:])
    # What is pending is saved with its ids before it is posted. However this program ends, the next
    # run posts the same events, and the gateway counts those that it has as duplicates.
    state["pending"] += timeline.events("/packages", changes(state["versions"], seen))
    state["versions"].update(seen)
    save(state, file)
    timeline.put_catalog(__file__)
    while batch := state["pending"][:timeline.EVENTS_PER_POST]:
        answer = timeline.post(batch)
        del state["pending"][:len(batch)]
        save(state, file)
        print(f"posted {len(batch)} changes: {answer['accepted']} accepted, "
              f"{answer['duplicates']} duplicates")
    print(", ".join(f"{release}: {len(packages)} packages" for release, packages in seen.items()))


main()
