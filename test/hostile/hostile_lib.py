# SPDX-License-Identifier: BSD-3-Clause
"""What the hostile tests share: a daemon whose log is read, its counts, honest victims."""
import argparse
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "daemon"))
from daemon import Daemon  # noqa: E402

OBJECTS = ("contexts", "pds", "mrs", "cqs", "qps")
POOLS = ("run_list", "shadows_used", "blocks_used", "ios_used", "rx_held")
WAIT = 60  # seconds for what must happen in the end


def arguments(doc):
    p = argparse.ArgumentParser(description=doc)
    for name in ("rnicd", "rnicctl", "hostile", "victim"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--count", type=int, default=0, help="cases, kills or rounds")
    p.add_argument("--seconds", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", default="", help="only these cases")
    p.add_argument("--stop", type=float, default=5, help="seconds of a SIGSTOP")
    p.add_argument("--least", type=float, default=0.8, help="part of its rate a victim keeps")
    a = p.parse_args()
    Daemon.rnicd, Daemon.rnicctl = a.rnicd, a.rnicctl
    return a


def daemon(*more, **kw):
    return Logged("--port", "loop,ip=192.0.2.1/24", *more, **kw)


class Logged(Daemon):
    """A daemon whose output somebody always reads: it must not wait for that."""

    def __enter__(self):
        super().__enter__()
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()
        return self

    def follow(self):
        while self.read_some():
            self.log = self.log[-200000:]

    def drain(self):
        self.reader.join(WAIT)
        self.proc.stdout.close()

    def counts(self):
        """Every number that must be at its start when no client is there."""
        c = {k: len(self.show(k)) for k in OBJECTS}
        for w in self.show("workers"):
            for k in POOLS:
                if k in w:
                    c[f"worker{w['worker']}.{k}"] = w[k]
        pid = self.proc.pid
        c["fds"] = len(os.listdir(f"/proc/{pid}/fd"))
        c["threads"] = len(os.listdir(f"/proc/{pid}/task"))
        return c

    def settle(self, start):
        """Wait until the counts are `start` again; what differs after WAIT seconds."""
        end = time.monotonic() + WAIT
        while True:
            now = self.counts()
            differ = {k: (start.get(k), v) for k, v in now.items() if start.get(k) != v}
            if not differ or time.monotonic() > end:
                return differ
            threading.Event().wait(0.05)

    def alive(self):
        return self.proc.poll() is None


class Victim:
    """A victim whose lines are read as they come."""

    def __init__(self, path, sock, *args):
        self.proc = subprocess.Popen([path, "--socket", sock, *map(str, args)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.rates = []  # (when, WRITEs of the interval)
        self.cond = threading.Condition()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.proc.stdout:
            with self.cond:
                if line.startswith("rate "):
                    self.rates.append((time.monotonic(), int(line.split()[1])))
                else:
                    self.lines.append(line.strip())
                self.cond.notify_all()
        with self.cond:
            self.lines.append("END")
            self.cond.notify_all()

    def wait(self, *starts, timeout=WAIT):
        """The next line that begins so, END included; None: none came."""
        def find():
            for i, line in enumerate(self.lines):
                if line.startswith(starts + ("END",)):
                    if line != "END":
                        del self.lines[:i + 1]
                    return line
            return None
        with self.cond:
            self.cond.wait_for(lambda: find_peek(self.lines, starts), timeout)
            return find()

    def wait_rates(self, n, timeout=WAIT):
        """Let n more intervals go by."""
        with self.cond:
            goal = len(self.rates) + n
            return self.cond.wait_for(lambda: len(self.rates) >= goal or "END" in self.lines,
                                      timeout) and len(self.rates) >= goal

    def rate(self, since, until):
        """Mean WRITEs an interval between two moments."""
        r = [n for when, n in self.rates if since <= when <= until]
        return sum(r) / len(r) if r else 0.0

    def say(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


def find_peek(lines, starts):
    return any(line.startswith(starts + ("END",)) for line in lines)


def pair(path, sock, *args):
    """Two victims that are each other's peer."""
    two = [Victim(path, sock, "--peer", *args) for _ in range(2)]
    told = [v.wait("me ") for v in two]
    for line in told:
        assert line and line.startswith("me "), f"a peer does not come up: {told}"
    for i in range(2):
        two[i].say(told[1 - i][3:])
    for v in two:
        assert v.wait("joined") == "joined", "a peer does not connect"
    for v in two:
        v.say("go")
    return two


def fatal(text, d=None):
    print("FAULT:", text)
    if d is not None:
        print(d.log[-8000:])
    sys.exit(1)
