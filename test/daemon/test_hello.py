#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The program of README.md does what stands there: test_hello.py RNICD RNICCTL HELLO"""
import os
import subprocess
import sys

import daemon


def main():
    daemon.Daemon.rnicd, daemon.Daemon.rnicctl, hello = sys.argv[1:4]
    with daemon.Daemon("--port", "loop") as d:
        env = dict(os.environ, RNIC_SOCKET=d.sock)
        out = subprocess.check_output([hello], env=env, text=True, timeout=daemon.LIMIT)
        assert out == "success: hello, RDMA\n", out
    env["RNIC_SOCKET"] = d.sock + ".none"
    p = subprocess.run([hello], env=env, text=True, capture_output=True, timeout=daemon.LIMIT)
    assert p.returncode == 1 and p.stderr.startswith("hello_rnic: "), p


if __name__ == "__main__":
    main()
