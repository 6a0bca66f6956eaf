#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/cases.md: every case of its tables is named by a test, and every case that a test names
stands in the tables.

usage: test_cases.py TOP
"""
import pathlib
import re
import sys

CASE = re.compile(r"\bB\d{3}\b")
CODE = {".c", ".h", ".py", ".sh", ".txt", ".build", ".pml"}


def in_tables(text):
    """The cases of each row's first column: those that have tests, and those that wait."""
    tested, waiting = set(), set()
    where = tested
    for line in text.splitlines():
        if line.startswith("## Not applicable"):
            where = waiting
        if line.startswith("| B"):
            ids = line.split("|")[1]
            where.update(CASE.findall(ids))
            for first, last in re.findall(r"B(\d{3}) - B(\d{3})", ids):
                where.update(f"B{n:03}" for n in range(int(first), int(last) + 1))
    return tested, waiting


def in_tests(top):
    named = {}
    for path in sorted((top / "test").rglob("*")):
        if path.suffix in CODE and path.name != "test_cases.py":
            # names of tests have an underscore behind the number, or before it
            for case in re.findall(r"(?<![A-Za-z0-9])B\d{3}(?![0-9A-Za-z])",
                                   path.read_text().replace("_", " ")):
                named.setdefault(case, path.relative_to(top))
    return named


def main(top):
    tested, waiting = in_tables((top / "docs/cases.md").read_text())
    named = in_tests(top)
    faults = [f"{case}: no test names it" for case in sorted(tested - named.keys())]
    faults += [f"{case}: waits, and has a test ({named[case]})"
               for case in sorted(waiting & named.keys())]
    faults += [f"{case}: stands in two tables" for case in sorted(tested & waiting)]
    faults += [f"{case} ({named[case]}): stands in no table"
               for case in sorted(named.keys() - tested - waiting)]
    if not tested:
        faults.append("no case was found")
    for fault in faults:
        print("docs/cases.md:", fault)
    print(f"{len(tested)} cases have tests, {len(waiting)} wait")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
