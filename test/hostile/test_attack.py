#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rnic-hostile beside a victim: no crash, no wait, nobody else's bytes, counts at their start."""
import subprocess
import sys

from hostile_lib import Victim, arguments, daemon, fatal


def main():
    a = arguments(__doc__)
    with daemon("--quota-qps", "4096") as d:
        start = d.counts()
        victim = Victim(a.victim, d.sock, "--seconds", 1000000)
        if not victim.wait_rates(3):
            fatal(f"the victim does not come up: {victim.lines}", d)
        cmd = [a.hostile, "--socket", d.sock, "--seed", str(a.seed), "--verbose"]
        cmd += ["--count", str(a.count)] if a.count else []
        cmd += ["--seconds", str(a.seconds)] if a.seconds else []
        cmd += ["--case", a.case] if a.case else []
        rc = subprocess.run(cmd, check=False).returncode
        if not d.alive():
            fatal("the daemon is dead", d)
        if rc:
            fatal(f"rnic-hostile: exit status {rc}", d)
        if not victim.wait_rates(3) or victim.lines:
            fatal(f"the victim suffered: {victim.lines}", d)
        rates = [n for _, n in victim.rates]
        print(f"victim: {len(rates)} intervals, {sum(rates)} verified WRITEs, "
              f"slowest {min(rates)}, {sum(n == 0 for n in rates)} without one")
        victim.end()
        differ = d.settle(start)
        if differ:
            fatal(f"not at their start (start, now): {differ}", d)
        if d.log.count("is cut off") > 64:
            fatal("a client can fill the log (B021)", d)
        status = d.stop()
        if status != 0:
            fatal(f"the daemon ended with {status}", d)
    return 0


if __name__ == "__main__":
    sys.exit(main())
