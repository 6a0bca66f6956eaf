#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of check_style.py finds its fault, and a clean tree has none."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECKER = os.path.abspath(sys.argv.pop(1))

SLEEP = "sle" "ep"  # the checker reads this file too
SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
CLEAN = {
    "meson.build": "# SPDX-License-Identifier: BSD-3-Clause\nlibs = [\n"
                   "\t['base', [], [dpdk]],\n\t['ring', [], []],\n"
                   "\t['verbs', ['base',\n\t\t'ring'], [dpdk]],\n"
                   "\t['roce', ['verbs'], [dpdk]],\n\t['client', ['ring'], []],\n]\n",
    "lib/base/base.h": SPDX + "int base;\n",
    "lib/ring/ring_wq.h": SPDX + f"/* no volatile, no {SLEEP}(1) */\n",
    "lib/ring/ring_priv.h": SPDX,
    "lib/verbs/verbs.h": SPDX + '#include "base.h"\n#include "ring_wq.h"\n',
    "lib/roce/roce_req.c": SPDX + '#include <rte_mbuf.h>\n#include <rte_ether.h>\n'
                                  f'#include "verbs.h"\nint x = sizeof("u{SLEEP}(1)");\n',
    "lib/client/client.c": SPDX + '#include "ring_wq.h"\nstatic volatile sig_atomic_t s;\n'
                                  'void f(void) { __asm__ volatile("" : : ); }\n',
    "apps/rnicd/main.c": SPDX + "#include <rte_ethdev.h>\n",
    "test/unit/test_ring.c": SPDX + '#include "ring_priv.h"\n',
    "notes.md": "mkstemp wants XXXX" "XX at the end.\n",
}


class Style(unittest.TestCase):
    def check(self, files, git=False):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **files}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            if git:
                subprocess.run(["git", "init", "-q", root], check=True)
                subprocess.run(["git", "-C", root, "add", "."], check=True)
                with open(os.path.join(root, "scratch.c"), "w", encoding="utf-8") as f:
                    f.write("not under version control ")
            return subprocess.run([sys.executable, CHECKER, root], check=False,
                                  capture_output=True, text=True)

    def faulty(self, path, text, line, expected):
        run = self.check({path: text})
        self.assertEqual(run.returncode, 1, run.stdout)
        faults = [f for f in run.stdout.splitlines() if not f.startswith(("warning", "check_style"))]
        self.assertEqual(len(faults), 1, run.stdout)
        self.assertTrue(faults[0].startswith(f"{path}:{line}: "), run.stdout)
        self.assertIn(expected, faults[0])

    def test_clean(self):
        for git in (False, True):
            run = self.check({}, git)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(f"{len(CLEAN)} files, 0 faults", run.stdout)

    def test_licence(self):
        self.faulty("lib/base/base.c", "int x;\n", 1, "SPDX")
        self.faulty("run", "#!/bin/sh\n", 1, "SPDX")
        self.faulty("lib/x.py", "x = 1\n", 1, "SPDX")

    def test_text(self):
        self.faulty("a.md", "a\nb \n", 2, "white space")
        self.faulty("a.md", "a\n\tb\t\n", 2, "white space")
        self.faulty("a.md", "a", 1, "newline")
        for word in ("TO" "DO", "FIX" "ME", "XX" "X"):
            self.faulty("a.md", f"see {word}: this\n", 1, "unfinished")

    def test_width(self):
        self.faulty("lib/base/base.c", SPDX + "\t" * 12 + "int a;\n", 2, "wider")
        self.assertEqual(self.check({"a.c": SPDX + "\t" * 12 + "int;\n"}).returncode, 0)

    def test_arrows(self):
        self.faulty("lib/base/base.c", SPDX + '#include "ring_wq.h"\n', 2, "base may not")
        self.faulty("lib/roce/roce.c", SPDX + '#include <base.h>\n', 2, "roce may not")
        self.faulty("lib/client/c.c", SPDX + '#include "verbs.h"\n', 2, "client may not")
        self.faulty("apps/rnicd/a.c", SPDX + '# include "verbs.h"\n', 2, "rnicd may not")
        self.faulty("compat/a.c", SPDX + '#include "ring_wq.h"\n', 2, "compat may not")
        self.faulty("lib/verbs/v.c", SPDX + '#include "../ring/ring_priv.h"\n', 2, "private")

    def test_dpdk(self):
        for path in ("lib/ring/a.h", "lib/client/a.c", "compat/a.c", "apps/examples/a.c"):
            self.faulty(path, SPDX + "#include <rte_common.h>\n", 2, "nothing of DPDK")
        self.faulty("lib/worker/a.c", SPDX + "#include <rte_ethdev.h>\n", 2, "only pmd_glue")
        self.faulty("lib/roce/a.c", SPDX + "#include <rte_flow.h>\n", 2, "only pmd_glue")
        self.faulty("apps/rnicctl/a.c", SPDX + "#include <rte_eth_ring.h>\n", 2, "only pmd_glue")

    def test_time(self):
        self.faulty("lib/roce/a.c", SPDX + "#include <rte_cycles.h>\n", 2, "EAL")
        self.faulty("lib/tcp/a.c", SPDX + "x = time(NULL);\n", 2, "clock")
        self.faulty("lib/verbs/a.c", SPDX + "x = rte_get_tsc_cycles();\n", 2, "clock")
        self.faulty("lib/ring/a.c", SPDX + f"nano{SLEEP}(&t, 0);\n", 2, "sleeps")
        self.faulty("test/sim/a.c", SPDX + f"u{SLEEP}(1);\n", 2, "sleeps")
        self.faulty("test/a.py", f"# SPDX-License-Identifier: x\ntime.{SLEEP}(1)\n", 2, "sleeps")

    def test_volatile(self):
        self.faulty("lib/ring/a.c", SPDX + "\n/* x */ volatile int a;\n", 3, "volatile")
        self.faulty("pmd_glue/a.c", SPDX + "int volatile a;\n", 2, "volatile")

    def test_lengths_warn(self):
        body = SPDX + "static int\nlong_one(int a,\n\tint b)\n{\n" + "\ta++;\n" * 81 + "}\n"
        run = self.check({"lib/base/a.c": body, "lib/base/b.c": SPDX + "\n" * 900})
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("warning: lib/base/a.c:5: long_one: 81 lines", run.stdout)
        self.assertIn("warning: lib/base/b.c: 902 lines", run.stdout)


if __name__ == "__main__":
    unittest.main()
