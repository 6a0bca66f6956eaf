#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the results in a testlog.json of meson: prints "passed failed skipped"."""
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}

counts = [0, 0, 0]
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        result = json.loads(line)["result"]
        counts[0 if result in PASSED else 2 if result in SKIPPED else 1] += 1
print(*counts)
