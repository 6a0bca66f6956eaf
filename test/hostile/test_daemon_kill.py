#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The daemon killed under traffic: a fatal event for each application, no hang, a new session."""
import os
import signal
import sys
import tempfile

from hostile_lib import Victim, arguments, daemon, fatal


def one_round(a, where, n):
    with daemon(dir=where) as d:
        two = [Victim(a.victim, d.sock, "--reopen", "--seconds", 3) for _ in range(2)]
        for v in two:
            if not v.wait_rates(2):
                fatal(f"round {n}: no traffic: {v.lines}", d)
        d.proc.send_signal(signal.SIGKILL)
        d.proc.wait()
        for v in two:
            line = v.wait("fatal", "hang", "failed", "wrong", "broken")
            if line != "fatal":
                fatal(f"round {n}: after the daemon's death: {line}", d)
    with daemon(dir=where) as d:
        for v in two:
            line = v.wait("reconnected", "hang", "failed", "wrong", "broken")
            if line != "reconnected":
                fatal(f"round {n}: with a new daemon: {line}", d)
        for v in two:
            if not v.wait_rates(3):
                fatal(f"round {n}: no traffic after reconnecting: {v.lines}, "
                      f"{len(v.rates)} intervals, exit status {v.proc.poll()}", d)
        for v in two:
            if v.proc.wait(60) != 0:
                fatal(f"round {n}: the application ended with {v.proc.returncode}", d)
        if d.stop() != 0:
            fatal("the daemon ended with an error", d)


def main():
    a = arguments(__doc__)
    with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
        os.chmod(where, 0o755)
        for n in range(a.count or 2):
            one_round(a, where, n)
    return 0


if __name__ == "__main__":
    sys.exit(main())
