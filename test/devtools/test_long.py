#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of the long tier: what counts as a bug found, and what a log tells."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(sys.argv.pop(1)).resolve()

# A simulator that lists one bug and does what CASE says with it.
SIM = """#!/bin/bash
case $* in
*--list-bugs*) echo "1 a bug"; exit ;;
*--bug*) what=$CASE ;;
*) what=$CONTROL ;;
esac
[[ $* = *"--seeds 1..77"* ]] || what=usage
case $what in
clean) echo "77 seeds passed" ;;
found) echo "FAILED seed 5 profile clean at 3 ns: memory differs" >&2; exit 1 ;;
crash) echo "CRASHED seed 5 profile clean" >&2; kill -ABRT $$ ;;
slow) exec sleep 20 ;;
killed) kill -KILL $$ ;;
usage) echo "rnic-sim: no such option" >&2; exit 2 ;;
mute) exit 1 ;;
esac
"""


class Bugs(unittest.TestCase):
    def verdict(self, case, control="clean"):
        with tempfile.TemporaryDirectory() as where:
            sim = pathlib.Path(where) / "sim"
            sim.write_text(SIM)
            sim.chmod(0o755)
            p = subprocess.run([TOP / "test/sim/bugs.sh"], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL,
                               env=dict(os.environ, BUGS_SIM=str(sim), BUGS_SEEDS="77",
                                        BUGS_LIMIT="1", CASE=case, CONTROL=control), check=False)
        return p.returncode, p.stdout

    def test_found(self):
        for case in ("found", "crash"):
            rc, out = self.verdict(case)
            self.assertEqual(rc, 0, out)
            self.assertIn("1 bugs, 0 not found", out)

    def test_not_found(self):
        for case, text in (("clean", "NOT FOUND in seeds 1..77"), ("slow", "NOT FOUND in 1 s"),
                           ("killed", "NOT FOUND"), ("usage", "NO VERDICT, exit status 2"),
                           ("mute", "NO VERDICT, exit status 1")):
            rc, out = self.verdict(case)
            self.assertEqual(rc, 1, case)
            self.assertIn(text, out)
            self.assertIn("1 bugs, 1 not found", out)

    def test_control(self):
        """What fails without a bug makes every find worthless."""
        for control in ("found", "slow", "usage"):
            rc, out = self.verdict("found", control)
            self.assertEqual(rc, 2, out)
            self.assertNotIn("not found", out)


class Log(unittest.TestCase):
    def run_in_tree(self, *cmd):
        with tempfile.TemporaryDirectory() as where:
            tree = pathlib.Path(where) / "tree"
            (tree / "test").mkdir(parents=True)
            shutil.copy(TOP / "test/long.sh", tree / "test")
            rc = subprocess.run([tree / "test/long.sh", "a_name", *cmd], check=False,
                                stdout=subprocess.DEVNULL).returncode
            log, = (tree / "docs/evidence").iterdir()
            self.assertRegex(log.name, r"^a_name-\d{4}-\d\d-\d\d\.log$")
            self.assertNotIn(where, log.read_text())
            return rc, log.read_text()

    def test_result(self):
        for status, text in ((0, "passed"), (1, "failed, exit status 1"), (77, "skipped"),
                             (124, "failed, exit status 124")):
            rc, log = self.run_in_tree("sh", "-c", f"echo it says so; exit {status}")
            self.assertEqual(rc, status)
            self.assertRegex(log, rf"(?m)^result:  {text} after \d+ s$")
            self.assertIn("it says so\n", log)

    def test_head(self):
        _, log = self.run_in_tree("sh", "-c", "echo $PWD /tmp/x/y; uname -n; readlink -f $0", "$PWD")
        for what in ("commit:", "machine: Linux", "started:"):
            self.assertIn(what, log)
        self.assertNotIn("/tmp/", log)
        self.assertNotIn(f"\n{os.uname().nodename}\n", log)


if __name__ == "__main__":
    unittest.main()
