#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Applications under traffic killed by SIGKILL, and one stopped by SIGSTOP: the daemon runs, tables,
pools, memory and quotas are back at their start, the peer's QP is in error within its retry time,
and the victim's traffic is verified throughout and keeps 80 % of its rate.

Beside the victim always runs one pair: when one of it is killed, the next pair, connected before,
begins at that moment. So what the victim has to share with does not change, and windows before
the kill are what windows after it are compared with. Rates are WRITEs for each second in which
both the victim and the worker had a CPU. Still two cores for six threads make single windows
differ by a factor, so that over the kills the median is judged: of the window after a kill and of each
50 ms of it. It is too low if so many kills are below 80 % that chance does not explain it. And no
window is without a WRITE, and no pause long in which both had a CPU.

With --wire the killed ones are at another daemon, behind a cable; the victim is beside their peers.
"""
import contextlib
import math
import os
import signal
import statistics
import sys
import threading
import time

from hostile_lib import (SKIP, WAIT, Victim, Wire, arguments, daemon, fatal, go, joined,
                         per_second)

# victim.c: (retry_cnt 3 + 1) times the timeout at least and 4 times that at most (IBTA). Our own
# timers are exact: where nobody waited for a CPU it is the least, so the fastest of all may take
# twice that. A far worker that waits looks dead, so there the timeout is 268 ms, not 4.2.
ACK, ACK_WIRE = 10, 16
RETRIES = 3 + 1
SLICE_MS = 8  # that another thread may run
RETRY_EXCEEDED, FLUSHED = 12, 5
INTERVAL_MS, SLOTS = 50, 10
CHANCE = 1e-4  # that a daemon whose median is 80 % fails
PAUSE_MS = 100


class Place:
    """The daemon of victim and peers, that of the killed ones, and what is asked of them."""

    def __init__(self, a, here, there):
        self.a, self.here, self.there = a, here, there
        self.daemons = [here] if here is there else [here, there]
        self.watch = here.schedstat()
        self.ready = None
        self.ack = ACK_WIRE if a.wire else ACK
        self.retry_ms = RETRIES * 4.096e-3 * 2 ** self.ack

    def args(self):
        return ("--seconds", 1000000, "--interval", INTERVAL_MS, "--watch", self.watch,
                "--ack", self.ack)

    def prepare(self):
        """The next pair: the one to be killed and its peer, connected."""
        self.ready = joined(self.a.victim, (self.there.sock, self.here.sock), *self.args())

    def start(self):
        two, self.ready = self.ready, None
        go(two)
        return two

    def worker_ns(self):
        with open(self.watch, encoding="utf-8") as f:
            return int(f.read().split()[0])

    def alive(self):
        return all(d.alive() for d in self.daemons)

    def fatal(self, text):
        fatal(text, *self.daemons)


def peer_knew(place, peer, n, killed_at, killed_worker):
    """
    How long the peer's QP took to know after the kill and its last progress, ms, by the device's
    clock. The limit holds without the time in which the worker waited for a CPU.
    """
    line = peer.wait("error ")
    if not line or not line.startswith("error "):
        place.fatal(f"kill {n}: the peer got no error: {line}")
    status, since, at, now, worker = map(int, line.split()[1:])
    starved = max(0, (now - killed_at) - (worker - killed_worker)) / 1e6
    wall = (at - max(since, killed_at)) / 1e6
    if status not in (RETRY_EXCEEDED, FLUSHED) or wall - starved > 4 * place.retry_ms:
        place.fatal(f"kill {n}: the peer got status {status} after {wall:.1f} ms, the worker "
                    f"without a CPU for {starved:.1f} of them, limit {4 * place.retry_ms:.1f}")
    # less what a worker loses that loses its CPU after it has read its clock: with --wire no
    # more than half a timeout
    early = max(SLICE_MS, place.retry_ms / RETRIES / 2)
    if status == RETRY_EXCEEDED and (at - since) / 1e6 < place.retry_ms - early:
        place.fatal(f"kill {n}: the peer gave up {(at - since) / 1e6:.1f} ms after its last "
                    f"progress, {RETRIES} timeouts are {place.retry_ms:.1f}")
    peer.proc.wait(WAIT)
    return wall


class Kill:
    """One kill: intervals of the victim before and after."""

    def __init__(self, place, victim, pair, n):
        place.prepare()
        before = time.monotonic_ns()
        self.wait(place, victim, SLOTS + 1)
        killed, peer = pair
        at, worker = time.monotonic_ns(), place.worker_ns()
        os.kill(killed.proc.pid, signal.SIGKILL)
        self.pair = place.start()
        self.known = peer_knew(place, peer, n, at, worker)
        killed.end()
        self.wait(place, victim, SLOTS + 1)
        self.before = victim.between(before, at)
        self.after = victim.between(at, at + SLOTS * INTERVAL_MS * 1000000)
        self.seen = [r for r in victim.rates if r.begin >= before]
        self.at = at
        if not place.alive():
            place.fatal(f"kill {n}: the daemon is dead")

    @staticmethod
    def wait(place, victim, n):
        if not victim.wait_rates(n) or victim.lines:
            place.fatal(f"the victim suffered: {victim.lines}")

    def parts(self):
        """(slot, its rate as a part of the rate before the kill)."""
        base = per_second(self.before)
        for r in self.after if base else ():
            slot = (r.begin - self.at) // (INTERVAL_MS * 1000000)
            yield min(slot, SLOTS - 1), per_second([r]) / base

    def whole(self):
        """The window after as a part of the one before; None: they did not run enough."""
        base = per_second(self.before)
        return per_second(self.after) / base if base and self.after else None


def too_low(parts, least):
    """Whether the median is below `least`, and not by chance: the binomial tail of a half."""
    low, n = sum(p < least for p in parts), len(parts)
    return sum(math.comb(n, i) for i in range(low, n + 1)) / 2 ** n < CHANCE


def judge(kills, least):
    """What is wrong with the victim's rate after kills."""
    slots = [[] for _ in range(SLOTS)]
    for k in kills:
        for slot, part in k.parts():
            slots[slot].append(part)
    whole = [w for w in (k.whole() for k in kills) if w is not None]
    pause = max(r.pause for k in kills for r in k.seen)
    if len(whole) < max(1, len(kills) / 4):
        yield f"only {len(whole)} windows in which the victim and the worker ran"
        return
    print(f"the victim's rate after a kill as a part of that before it, medians: whole windows of "
          f"{SLOTS * INTERVAL_MS} ms {statistics.median(whole):.2f} ({min(whole):.2f} to "
          f"{max(whole):.2f}); each {INTERVAL_MS} ms "
          + " ".join(f"{statistics.median(s):.2f}" for s in slots if s)
          + f"; longest pause with a CPU {pause:.0f} ms")
    if 0 in whole:
        yield "the victim stood still for a whole window after a kill"
    if too_low(whole, least) or any(too_low(s, least) for s in slots):
        yield f"the victim's rate falls below {least:.0%} after kills"
    if pause > PAUSE_MS:
        yield f"the victim waited for {pause:.0f} ms"


def one_stop(place, victim, pair, seconds):
    """
    Stop one of a pair; the daemon serves its memory and its QP meanwhile, it is no error. Where
    others have the CPUs it stays stopped for longer, until there is something to judge.
    """
    stopped, peer = pair
    before = time.monotonic_ns()
    Kill.wait(place, victim, 2 * SLOTS)
    victim.wait_ran(before, SLOTS)
    os.kill(stopped.proc.pid, signal.SIGSTOP)
    began = time.monotonic_ns()
    threading.Event().wait(seconds)
    victim.wait_ran(began, SLOTS)
    ended = time.monotonic_ns()
    if peer.lines:
        place.fatal(f"a stopped application's peer suffered: {peer.lines}")
    os.kill(stopped.proc.pid, signal.SIGCONT)
    if not stopped.wait_rates(2) or stopped.lines:
        place.fatal(f"after SIGCONT: {stopped.lines}")
    Kill.wait(place, victim, 2 * SLOTS)
    victim.wait_ran(ended, SLOTS)
    done = time.monotonic_ns()
    for v in pair:
        v.end()
    rates = [[per_second([r]) for r in victim.between(*span)] for span in (
        (before, began), (began, ended), (ended, done))]
    if not all(rates):
        return "the victim and the worker did not run"
    beside = max(1, min(statistics.median(rates[0]), statistics.median(rates[2])))
    parts = [r / beside for r in rates[1]]
    served = sum(r.writes for r in peer.rates if began <= r.begin and r.end <= ended)
    print(f"beside an application stopped for {(ended - began) / 1e9:.1f} s: "
          f"{statistics.median(parts):.2f} of the victim's rate in the middle; its peer made "
          f"{served} WRITEs to its memory")
    if not served:
        return "a stopped application's memory is not served"
    return f"the victim's rate fell below {place.a.least:.0%}" \
        if too_low(parts, place.a.least) else None


def run(a, here, there):
    place = Place(a, here, there)
    start = [d.counts() for d in place.daemons]
    victim = Victim(a.victim, here.sock, *place.args())
    Kill.wait(place, victim, 3)
    beside = [d.counts(idle=False) for d in place.daemons]
    place.prepare()
    pair, kills = place.start(), []
    for n in range(a.count or 10):
        kills.append(Kill(place, victim, pair, n))
        pair = kills[-1].pair
    known = [k.known for k in kills]
    print(f"{len(kills)} kills; the peer's QP was in error after {min(known):.1f} ms "
          f"at least, {statistics.median(known):.1f} in the middle, {max(known):.1f} at most")
    faults = list(judge(kills, a.least))
    if min(known) > 2 * place.retry_ms:
        faults.append(f"peers know too late, {place.retry_ms:.1f} ms is right")
    faults.append(one_stop(place, victim, pair, a.stop))
    for d, counts in zip(place.daemons, beside):
        differ = d.settle(counts, idle=False)
        if differ:
            faults.append(f"beside the victim not as before (before, now): {differ}")
    if victim.lines:
        faults.append(f"the victim suffered: {victim.lines}")
    victim.end()
    for d, counts in zip(place.daemons, start):
        differ = d.settle(counts)
        if differ:
            faults.append(f"not at their start (start, now): {differ}")
    faults = [f for f in faults if f]
    if faults:
        place.fatal("; ".join(faults))
    for d in place.daemons:
        if d.stop() != 0:
            place.fatal("the daemon ended with an error")


def main():
    a = arguments(__doc__)
    with contextlib.ExitStack() as stack:
        if a.wire:
            why = Wire.missing()
            if why:
                print("skipped:", why)
                return SKIP
            wire = stack.enter_context(Wire())
            here, there = (stack.enter_context(wire.daemon(i)) for i in range(2))
        else:
            here = there = stack.enter_context(daemon(workers=a.workers))
        run(a, here, there)
    return 0


if __name__ == "__main__":
    sys.exit(main())
