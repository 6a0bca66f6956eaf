#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rnic-hostile beside a victim: no crash, no wait, nobody else's bytes, counts at their start."""
import subprocess
import sys

from hostile_lib import SKIP, Victim, arguments, daemon, fatal

PAUSE_MS = 250


def main():
    a = arguments(__doc__)
    with daemon("--quota-qps", "4096", workers=a.workers) as d:
        start = d.counts()
        victim = Victim(a.victim, d.sock, "--seconds", 1000000, "--watch", d.schedstat())
        if not victim.wait_rates(3):
            fatal(f"the victim does not come up: {victim.lines}", d)
        cmd = [a.hostile, "--socket", d.sock, "--seed", str(a.seed), "--verbose"]
        cmd += ["--count", str(a.count)] if a.count else []
        cmd += ["--seconds", str(a.seconds)] if a.seconds else []
        cmd += ["--case", a.case] if a.case else []
        rc = subprocess.run(cmd, check=False).returncode
        if not d.alive():
            fatal("the daemon is dead", d)
        if rc not in (0, SKIP):
            fatal(f"rnic-hostile: exit status {rc}", d)
        if not victim.wait_rates(3) or victim.lines:
            fatal(f"the victim suffered: {victim.lines}", d)
        rates = [r.writes for r in victim.rates]
        pause = max(r.pause for r in victim.rates)
        print(f"victim: {len(rates)} intervals, {sum(rates)} verified WRITEs, "
              f"slowest {min(rates)}, {sum(n == 0 for n in rates)} without one, longest pause "
              f"while it and the worker had a CPU {pause:.0f} ms")
        if pause > (a.pause or PAUSE_MS):
            fatal(f"the victim waited for {pause:.0f} ms", d)
        victim.end()
        differ = d.settle(start)
        if differ:
            fatal(f"not at their start (start, now): {differ}", d)
        if d.log.count("is cut off") > 64:
            fatal("a client can fill the log (B021)", d)
        status = d.stop()
        if status != 0:
            fatal(f"the daemon ended with {status}", d)
    return rc


if __name__ == "__main__":
    sys.exit(main())
