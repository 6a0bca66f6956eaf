#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the results in a testlog.json of meson: prints "passed failed skipped".

With --failed N instead the name, result and last N lines of each test that failed.
"""
import argparse
import json

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}


def index(test):
    """Where a test is counted."""
    result = test["result"]
    return 0 if result in PASSED else 2 if result in SKIPPED else 1


def show(test, lines):
    """What the test last said."""
    print(f"-- {test['name']}: {test['result']} after {test['duration']:.0f} s")
    said = [line for part in ("stdout", "stderr") for line in (test.get(part) or "").splitlines()]
    for line in said[-lines:]:
        print(f"   {line[:300]}")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--failed", type=int, metavar="N", help="show the tests that failed")
    ap.add_argument("log")
    args = ap.parse_args()
    with open(args.log, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    if args.failed is not None:
        for test in tests:
            if index(test) == 1:
                show(test, args.failed)
        return
    counts = [0, 0, 0]
    for test in tests:
        counts[index(test)] += 1
    print(*counts)


if __name__ == "__main__":
    main()
