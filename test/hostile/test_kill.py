#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Applications under traffic killed by SIGKILL, and one stopped by SIGSTOP: the daemon runs, tables
and pools are back at their start, the peer's QP is in error within its retry time, and the
victim's traffic is verified throughout and keeps 80 % of its rate.
"""
import os
import signal
import statistics
import sys
import threading
import time

from hostile_lib import WAIT, Victim, arguments, daemon, fatal, pair

# victim.c: (retry_cnt 3 + 1) times up to 4 times 4.2 ms; the rest is for a
# machine on which everybody waits for a core; the median has to do without it
RETRY_MS = 4 * 4 * 4.2
SLACK_MS = 2000
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
    if status not in (RETRY_EXCEEDED, FLUSHED) or ms > RETRY_MS + SLACK_MS:
        fatal(f"kill {n}: the peer got status {status} after {ms} ms, limit {RETRY_MS + SLACK_MS:.0f}", d)
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


def one_end(a, d):
    """The same as one_kill() with an end that is none: what kills are compared with."""
    two = pair(a.victim, d.sock, "--seconds", 1000)
    for v in two:
        if not v.wait_rates(1):
            fatal(f"a pair does not come up: {v.lines}", d)
    for v in two:
        v.proc.terminate()
    for v in two:
        v.proc.wait(WAIT)


def reference_rate(a, d, victim):
    """The victim's rate beside pairs that come and go in peace."""
    began = time.monotonic()
    for _ in range(3):
        one_end(a, d)
    return victim.rate(began, time.monotonic())


def kill_all(a, d, kills, victim):
    """
    Windows of kills, each between two of reference, since the machine's speed drifts. The
    victim's rate in the kills' windows as parts of their neighbours', and how long each peer took to know.
    """
    parts, known, n = [], [], 0
    before = reference_rate(a, d, victim)
    while n < kills:
        began = time.monotonic()
        for _ in range(min(5, kills - n)):
            known.append(one_kill(a, d, n))
            n += 1
            if not d.alive():
                fatal(f"kill {n}: the daemon is dead", d)
        rate = victim.rate(began, time.monotonic())
        after = reference_rate(a, d, victim)
        parts.append(rate / max(1.0, (before + after) / 2))
        before = after
    if statistics.median(known) > RETRY_MS + 50:
        fatal(f"peers took {statistics.median(known)} ms to know, in the middle", d)
    return parts, known


def main():
    a = arguments(__doc__)
    kills = a.count or 10
    with daemon() as d:
        start = d.counts()
        victim = Victim(a.victim, d.sock, "--seconds", 1000000)
        if not victim.wait_rates(3):
            fatal(f"the victim does not come up: {victim.lines}", d)
        parts, known = kill_all(a, d, kills, victim)
        before = reference_rate(a, d, victim)
        under_stop, peer_rate = one_stop(a, d, a.stop, victim)
        parts.append(under_stop / max(1.0, (before + reference_rate(a, d, victim)) / 2))
        if victim.lines:
            fatal(f"the victim suffered: {victim.lines}", d)
        print(f"{kills} kills, the peer knew after {statistics.median(known):.0f} ms, "
              f"{max(known)} at most; the victim's rate, as parts of that beside pairs that end in peace: "
              + ", ".join(f"{p:.2f}" for p in parts[:-1]) + f" under kills, {parts[-1]:.2f} "
              f"beside a stopped application, whose peer made {peer_rate:.0f} WRITEs in 100 ms")
        if statistics.median(parts) < a.least or 0 in parts:
            fatal(f"the victim's rate fell below {a.least:.0%}", d)
        victim.end()
        differ = d.settle(start)
        if differ:
            fatal(f"not at their start (start, now): {differ}", d)
        if d.stop() != 0:
            fatal("the daemon ended with an error", d)
    return 0


if __name__ == "__main__":
    sys.exit(main())
