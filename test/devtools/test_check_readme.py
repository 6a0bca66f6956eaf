#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""devtools/check_readme.py against trees of a README and a file."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
CODE = "/* SPDX-License-Identifier: X */\nint\nmain(void)\n{\n}\n"
README = "Text.\n<!-- file: apps/a.c -->\n```c\n{}```\nSee [it]({}).\n"


class CheckReadme(unittest.TestCase):
    def check(self, code, link="apps/a.c", *args):
        with tempfile.TemporaryDirectory() as d:
            root = pathlib.Path(d)
            (root / "apps").mkdir()
            (root / "apps/a.c").write_text(CODE)
            (root / "README.md").write_text(README.format(code, link))
            p = subprocess.run([sys.executable, SCRIPT, *args, d], capture_output=True, text=True)
            return p.returncode, p.stdout, (root / "README.md").read_text()

    def test_equal(self):
        self.assertEqual(self.check("int\nmain(void)\n{\n}\n")[:2], (0, ""))

    def test_differs(self):
        rc, out, _ = self.check("int\nmain(int argc)\n{\n}\n")
        self.assertEqual(rc, 1)
        self.assertIn("apps/a.c: differs", out)

    def test_update(self):
        rc, _, text = self.check("", "apps/a.c", "--update")
        self.assertEqual(rc, 0)
        self.assertIn("```c\nint\nmain(void)\n{\n}\n```\n", text)

    def test_dead_link(self):
        rc, out, _ = self.check("int\nmain(void)\n{\n}\n", "docs/none.md#part")
        self.assertEqual(rc, 1)
        self.assertIn("names docs/none.md", out)

    def test_no_block(self):
        with tempfile.TemporaryDirectory() as d:
            (pathlib.Path(d) / "README.md").write_text("Text.\n")
            p = subprocess.run([sys.executable, SCRIPT, d], capture_output=True)
            self.assertEqual(p.returncode, 1)


if __name__ == "__main__":
    unittest.main()
