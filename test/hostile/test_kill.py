#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Applications under traffic killed by SIGKILL, and one stopped by SIGSTOP: the daemon runs, tables
and pools are back at their start, the peer's QP is in error within its retry time, and the
victim's traffic is verified throughout and keeps 80 % of its rate.
"""
import os
import signal
import sys
import threading
import time

from hostile_lib import WAIT, Victim, arguments, daemon, fatal, pair

# victim.c: (retry_cnt 3 + 1) times up to 4 times 4.2 ms; the rest is for a loaded machine
RETRY_MS = 4 * 4 * 4.2 + 400
RETRY_EXCEEDED, FLUSHED = 12, 5


def one_kill(a, d, n):
    """Kill one of a pair, and return how long the other one's QP took to know."""
    killed, peer = pair(a.victim, d.sock, "--seconds", 1000)
    for v in (killed, peer):
        if not v.wait_rates(1):
            fatal(f"kill {n}: a pair does not come up: {v.lines}", d)
    os.kill(killed.proc.pid, signal.SIGKILL)
    line = peer.wait("error ")
    killed.end()
    if not line or not line.startswith("error "):
        fatal(f"kill {n}: the peer got no error: {line}", d)
    status, ms = map(int, line.split()[1:])
    if status not in (RETRY_EXCEEDED, FLUSHED) or ms > RETRY_MS:
        fatal(f"kill {n}: the peer got status {status} after {ms} ms, limit {RETRY_MS:.0f}", d)
    peer.proc.wait(WAIT)
    return ms


def one_stop(a, d, seconds, victim):
    """Stop one of a pair; the daemon serves its memory and its QP meanwhile, it is no error."""
    stopped, peer = pair(a.victim, d.sock, "--seconds", 1000)
    if not stopped.wait_rates(2):
        fatal("a pair does not come up", d)
    os.kill(stopped.proc.pid, signal.SIGSTOP)
    began = time.monotonic()
    threading.Event().wait(seconds)
    ended = time.monotonic()
    if peer.lines:
        fatal(f"a stopped application's peer suffered: {peer.lines}", d)
    os.kill(stopped.proc.pid, signal.SIGCONT)
    if not stopped.wait_rates(2) or stopped.lines:
        fatal(f"after SIGCONT: {stopped.lines}", d)
    for v in (stopped, peer):
        v.end()
    return victim.rate(began, ended), peer.rate(began, ended)


def reference_rate(a, d, victim):
    """The victim's rate beside a pair that lives: what kills are compared with."""
    two = pair(a.victim, d.sock, "--seconds", 1000)
    two[0].wait_rates(1)
    began = time.monotonic()
    two[0].wait_rates(15)
    ended = time.monotonic()
    for v in two:
        v.end()
    return victim.rate(began, ended)


def main():
    a = arguments(__doc__)
    kills = a.count or 10
    with daemon() as d:
        start = d.counts()
        victim = Victim(a.victim, d.sock, "--seconds", 1000000)
        if not victim.wait_rates(3):
            fatal(f"the victim does not come up: {victim.lines}", d)
        reference = reference_rate(a, d, victim)
        slowest = 0
        began = time.monotonic()
        for n in range(kills):
            slowest = max(slowest, one_kill(a, d, n))
            if not d.alive():
                fatal(f"kill {n}: the daemon is dead", d)
        ended = time.monotonic()
        under_kills = victim.rate(began, ended)
        under_stop, peer_rate = one_stop(a, d, a.stop, victim)
        if victim.lines:
            fatal(f"the victim suffered: {victim.lines}", d)
        print(f"{kills} kills in {ended - began:.1f} s, the peer knew after {slowest} ms at most; "
              f"victim's WRITEs in 100 ms: {reference:.0f} beside a living pair, "
              f"{under_kills:.0f} under kills, {under_stop:.0f} beside a stopped one "
              f"(its peer {peer_rate:.0f})")
        for rate in (under_kills, under_stop):
            if rate < 0.8 * reference:
                fatal(f"the victim fell to {100 * rate / reference:.0f} % of its rate", d)
        victim.end()
        differ = d.settle(start)
        if differ:
            fatal(f"not at their start (start, now): {differ}", d)
        if d.stop() != 0:
            fatal("the daemon ended with an error", d)
    return 0


if __name__ == "__main__":
    sys.exit(main())
