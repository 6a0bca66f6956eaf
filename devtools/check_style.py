#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Static rules of CONTRIBUTING.md that need no compiler.

usage: check_style.py [ROOT]

Faults go to stdout as path:line: text and make the exit status 1. Warnings
(length of files and functions) do not. Which library may include which is read
from the table in the root meson.build, so that there is one such table.
"""
import os
import re
import subprocess
import sys

# Programs and the face libraries they may use; libraries stand in meson.build.
PROGRAMS = {
    "compat": {"client"},
    "apps/examples": {"client"},
    "apps/rnicd": {"worker", "pmd_glue"},
    "apps/testrnic": {"worker", "pmd_glue", "client"},
}
NO_DPDK = {"ring", "client", "compat", "apps/examples"}
MAY_USE_ETHDEV = {"pmd_glue", "apps/rnicd", "apps/testrnic", "test", "dts"}
# Run on virtual time: `now` is an argument, EAL and clocks are somebody else's.
NO_CLOCK = {"net", "mr_table", "verbs", "tcp", "roce", "iwarp"}
# A program of the peer's machine: real time, and the style of its own neighbours there.
FOREIGN = "test/interop/peer/"

FILE_WARN = 900
FUNCTION_WARN = 80
WIDTH = 100

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
ETHDEV = re.compile(r"rte_(ethdev|flow|eth_|tm|mtr)(?!er)")
EAL = re.compile(r"rte_(eal|cycles|lcore|launch|time)\.h$")
CLOCK = re.compile(r"\b(clock_gettime|gettimeofday|time|rte_rdtsc\w*|rte_get_\w*cycles)\s*\(")
SLEEP = re.compile(r"\b(sleep|usleep|nanosleep|clock_nanosleep|rte_delay_\w+)\s*\(")
VOLATILE = re.compile(r"\bvolatile\b(?!\s+sig_atomic_t)")
ASM = re.compile(r"\b(__asm__|__asm|asm)\s+(__)?volatile(__)?\b")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NAME = re.compile(r"(?:\w[\w\s*]*[\s*])?(\w+)\s*\(")
LIBRARY = re.compile(r"^\t\['(\w+)', \[([^]]*)\]", re.M)


def listed(root):
    """Paths under version control; all of them outside git."""
    git = ["git", "-C", root, "-c", "safe.directory=" + os.path.abspath(root)]
    try:
        out = subprocess.run(git + ["ls-files", "-z"],
                             check=True, capture_output=True).stdout.decode()
        return sorted({p for p in out.split("\0") if p})
    except (OSError, subprocess.CalledProcessError):
        found = []
        for top, dirs, names in os.walk(root):
            dirs[:] = [d for d in dirs if d != ".git" and not d.startswith("build")]
            found += [os.path.relpath(os.path.join(top, n), root) for n in names]
        return sorted(found)


def layer(path):
    """The library or program that a path belongs to."""
    part = path.split("/")
    if part[0] == "lib" and len(part) > 2:
        return part[1]
    if part[0] == "apps" and len(part) > 2:
        return "/".join(part[:2])
    return part[0]


def blank(text):
    """C without comments and strings, line numbers kept."""
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def allowed_includes(root):
    """library -> the libraries it may include, from the root meson.build."""
    allowed = dict(PROGRAMS)
    try:
        with open(os.path.join(root, "meson.build"), encoding="utf-8") as f:
            meson = f.read()
    except FileNotFoundError:
        return allowed
    table = meson.partition("\nlibs = [\n")[2].partition("\n]\n")[0]
    for name, uses in LIBRARY.findall(table):
        allowed[name] = set(re.findall(r"'(\w+)'", uses))
    return allowed


class Checker:
    def __init__(self, root):
        self.root = root
        self.faults = []
        self.warnings = []
        self.functions = []
        self.allowed = allowed_includes(root)
        self.paths = listed(root)
        self.owner = {}  # name of a header of ours -> its layer
        for path in self.paths:
            if path.endswith(".h") and path.split("/")[0] in ("lib", "pmd_glue"):
                self.owner[os.path.basename(path)] = layer(path)

    def fault(self, path, line, text):
        self.faults.append(f"{path}:{line}: {text}")

    def run(self):
        for path in self.paths:
            full = os.path.join(self.root, path)
            if os.path.islink(full) or not os.path.isfile(full):
                continue
            with open(full, "rb") as f:
                data = f.read()
            if b"\0" in data or not data:
                continue
            text = data.decode("utf-8", "replace")
            self.check_text(path, text)
            if path.endswith((".c", ".h")):
                self.check_c(path, text)
            elif path.endswith(".py"):
                self.check_sleep(path, text)
        self.functions.sort(reverse=True)
        for length, where in self.functions[:10]:
            self.warnings.append(f"{where}: {length} lines")

    def check_text(self, path, text):
        lines = text.split("\n")
        source = path.endswith((".c", ".h", ".py", ".sh", ".build", ".map", ".pml", ".supp"))
        if source or text.startswith("#!") or path == "meson_options.txt":
            if not any("SPDX-License-Identifier:" in s for s in lines[:4]):
                self.fault(path, 1, "no SPDX-License-Identifier in the first lines")
        if path.startswith("docs/evidence/") or path.endswith((".patch", ".diff")):
            return
        for n, line in enumerate(lines, 1):
            if line.rstrip() != line:
                self.fault(path, n, "white space at the end of the line")
            if UNFINISHED.search(line):
                self.fault(path, n, "marks unfinished work: finish it or file it")
        if not text.endswith("\n"):
            self.fault(path, len(lines), "no newline at the end")

    def check_c(self, path, text):
        raw = text.split("\n")
        code = blank(text)
        for n, line in enumerate(raw, 1):
            if len(line.expandtabs(8)) > WIDTH and not path.startswith(FOREIGN):
                self.fault(path, n, f"wider than {WIDTH} columns")
            include = INCLUDE.match(line)
            if include:
                self.check_include(path, n, include.group(1))
        home = layer(path)
        in_lib = path.startswith(("lib/", "pmd_glue/"))
        for n, line in enumerate(code.split("\n"), 1):
            if in_lib and VOLATILE.search(ASM.sub("", line)):
                self.fault(path, n, "volatile: C11 atomics say what is meant")
            if home in NO_CLOCK and CLOCK.search(line):
                self.fault(path, n, f"{home} reads no clock: `now` is an argument")
        self.check_sleep(path, code)
        self.check_lengths(path, code.split("\n"))

    def check_include(self, path, n, target):
        home = layer(path)
        name = os.path.basename(target)
        if name.startswith("rte_"):
            if home in NO_DPDK:
                self.fault(path, n, f"{home} includes nothing of DPDK: {name}")
            elif ETHDEV.match(name) and home not in MAY_USE_ETHDEV:
                self.fault(path, n, f"only pmd_glue knows ethdev and flow: {name}")
            elif EAL.match(name) and home in NO_CLOCK:
                self.fault(path, n, f"{home} does without EAL and clocks: {name}")
            return
        to = self.owner.get(name)
        if to is None or to == home or home == "test":
            return
        if name.endswith("_priv.h"):
            self.fault(path, n, f"{name} is private to {to}")
        elif home in self.allowed and to not in self.allowed[home]:
            self.fault(path, n, f"{home} may not include {to} ({name})")

    def check_sleep(self, path, code):
        if path.startswith(FOREIGN) or not path.startswith(("lib/", "pmd_glue/", "test/")):
            return
        for n, line in enumerate(code.split("\n"), 1):
            if SLEEP.search(line):
                self.fault(path, n, "sleeps: wait for the event itself")

    def check_lengths(self, path, lines):
        if len(lines) > FILE_WARN:
            self.warnings.append(f"{path}: {len(lines)} lines in one file")
        start = None
        for n, line in enumerate(lines, 1):
            if line == "{":
                start = n
            elif line == "}" and start is not None:
                if n - start - 1 > FUNCTION_WARN:
                    head = start - 1  # the name is at the start of a line above
                    while head > 1 and not NAME.match(lines[head - 1]):
                        head -= 1
                    name = (NAME.match(lines[head - 1]) or [path, "?"])[1]
                    self.functions.append((n - start - 1, f"{path}:{start}: {name}"))
                start = None


def main():
    checker = Checker(sys.argv[1] if len(sys.argv) > 1 else ".")
    checker.run()
    for text in checker.warnings:
        print("warning:", text)
    for text in checker.faults:
        print(text)
    print(f"check_style: {len(checker.paths)} files, {len(checker.faults)} faults, "
          f"{len(checker.warnings)} warnings")
    return 1 if checker.faults else 0


if __name__ == "__main__":
    sys.exit(main())
