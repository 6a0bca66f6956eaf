#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds README.md against the tree: code that is a file's is that file's, links lead somewhere.

A code block behind a line `<!-- file: PATH -->` is PATH without its licence line.
--update writes the blocks anew.
"""
import argparse
import pathlib
import re
import sys

BLOCK = re.compile(r"(<!-- file: (\S+) -->\n```\w*\n)(.*?)(```\n)", re.S)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"(?<![\w./-])((?:apps|devtools|docs|lib|test)/[\w./-]*\w)")


def listing(root, path):
    lines = (root / path).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if "SPDX-License-Identifier" not in line)


def faults(root, text):
    """What is wrong, a line each."""
    out = []
    blocks = BLOCK.findall(text)
    if not blocks:
        out.append("no block of a file's code")
    for _, path, code, _ in blocks:
        if not (root / path).is_file():
            out.append(f"{path}: no such file")
        elif code != listing(root, path):
            out.append(f"{path}: differs from its block; see --update")
    for path in sorted(set(LINK.findall(text) + NAMED.findall(BLOCK.sub("", text)))):
        if not (root / path).exists():
            out.append(f"names {path}, which is not there")
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--update", action="store_true", help="write the files' code into README.md")
    ap.add_argument("root", nargs="?", type=pathlib.Path,
                    default=pathlib.Path(__file__).resolve().parent.parent)
    args = ap.parse_args()
    readme = args.root / "README.md"
    text = readme.read_text()
    if args.update:
        text = BLOCK.sub(lambda m: m[1] + listing(args.root, m[2]) + m[4], text)
        readme.write_text(text)
    wrong = faults(args.root, text)
    for w in wrong:
        print(f"README.md: {w}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
