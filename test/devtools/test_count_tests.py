#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every result that meson knows is counted, and counted as what it is."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

COUNTER = os.path.abspath(sys.argv.pop(1))


class Count(unittest.TestCase):
    def count(self, results):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            for r in results:
                log.write(json.dumps({"name": "t", "stdout": '"result": "FAIL"', "result": r}))
                log.write("\n")
            log.flush()
            out = subprocess.run([sys.executable, COUNTER, log.name], check=True,
                                 capture_output=True, text=True).stdout
        return [int(n) for n in out.split()]

    def test_each(self):
        for r in ("OK", "EXPECTEDFAIL"):
            self.assertEqual(self.count([r]), [1, 0, 0], r)
        for r in ("FAIL", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS", "ERROR"):
            self.assertEqual(self.count([r]), [0, 1, 0], r)
        self.assertEqual(self.count(["SKIP"]), [0, 0, 1])

    def test_sum(self):
        self.assertEqual(self.count(["OK", "FAIL", "OK", "SKIP", "OK"]), [3, 1, 1])
        self.assertEqual(self.count([]), [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
