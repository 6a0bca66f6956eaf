#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does a test fail when its rule is broken? For the long tier.

Applies each mutation of mutations*.txt in turn to a copy of the tree, builds the one test that
must notice, and runs it: it has to fail. A mutation that does not apply any more, or does not
compile, is a fault of the list. usage: mutate.py [--only TEXT] [--jobs N]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]


def read_list(path):
    """Blocks of: = rule | file | test, then the old text, a line of ->, and the new."""
    out = []
    for block in path.read_text().split("\n= ")[1:]:
        head, body = block.split("\n", 1)
        rule, name, test = (s.strip() for s in head.split("|"))
        old, new = (body.rstrip("\n") + "\n").split("\n->\n")
        new = new.rstrip("\n")
        out.append((rule, name, test, old, new))
    return out


def run(cmd, **kw):
    return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def where(test):
    """Of test/wire, unless it says so."""
    return test if "/" in test else "wire/" + test


def build(copy, test, jobs):
    return run(["ninja", "-C", str(copy / "build-mutate"), f"-j{jobs}", f"test/{where(test)}"])


def run_test(copy, test):
    env = dict(os.environ)
    if where(test).startswith("wire/"):
        env["CK_FORK"] = "no" # in one process: EAL starts once, not for each script
    try:
        return run([str(copy / "build-mutate/test" / where(test))], timeout=120,
                   env=env).returncode
    except subprocess.TimeoutExpired:
        return -1


def try_one(copy, mutation, jobs):
    _, name, test, old, new = mutation
    path = copy / name
    text = path.read_text()
    if text.count(old) != 1:
        return f"the text is there {text.count(old)} times"
    path.write_text(text.replace(old, new))
    try:
        res = build(copy, test, jobs)
        if res.returncode:
            return "does not build:\n" + res.stdout[-600:]
        return None if run_test(copy, test) else "NOT NOTICED"
    finally:
        path.write_text(text)


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--only", default="")
    arg.add_argument("--jobs", type=int, default=1)
    arg = arg.parse_args()
    todo = [m for path in sorted(HERE.glob("mutations*.txt")) for m in read_list(path)
            if arg.only in " ".join(m[:3])]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as tmp:
        copy = pathlib.Path(tmp) / "tree"
        shutil.copytree(TOP, copy, symlinks=True,
                        ignore=shutil.ignore_patterns("build*", ".git"))
        # no optimisation: it builds in half the time
        res = run(["meson", "setup", "-Doptimization=0", str(copy / "build-mutate"), str(copy)])
        if res.returncode:
            sys.exit(res.stdout)
        for test in sorted({m[2] for m in todo}):
            res = build(copy, test, arg.jobs)
            if res.returncode or run_test(copy, test):
                sys.exit(f"{test} fails without a mutation\n{res.stdout[-600:]}")
        for m in todo:
            fault = try_one(copy, m, arg.jobs)
            bad += fault is not None
            print(f"{m[0]:12} {m[1]:28} {m[2]:16} {fault or 'noticed'}", flush=True)
    print(f"{len(todo)} mutations, {bad} not as they should be")
    return 1 if bad or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
