# SPDX-License-Identifier: BSD-3-Clause
"""What the hostile tests share: a daemon whose log is read, its counts, honest victims."""
import argparse
import os
import subprocess
import sys
import threading
import time
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "daemon"))
from daemon import Daemon  # noqa: E402

OBJECTS = ("contexts", "pds", "mrs", "cqs", "qps", "srqs")
POOLS = ("run_list", "shadows_used", "blocks_used", "ios_used", "rx_held", "tx_mbufs_used",
         "rx_mbufs_used")
WAIT = 60  # seconds for what must happen in the end
SKIP = 77
# What a victim and the worker must both have run in an interval, as a part of it, for its rate
# to mean something.
RAN = 0.05


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
    p.add_argument("--pause", type=float, default=0, help="ms of a victim's longest pause")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--wire", action="store_true", help="two daemons joined by a veth pair")
    a = p.parse_args()
    Daemon.rnicd, Daemon.rnicctl = a.rnicd, a.rnicctl
    return a


def daemon(*more, workers=1, **kw):
    return Logged("--port", "loop,ip=192.0.2.1/24", "--workers", str(workers), *more, **kw)


class Wire:
    """A network namespace with two devices that are one cable; `daemon(i)` is at its end i."""

    def __init__(self):
        self.name = f"rn-kill-{os.getpid()}"

    def __enter__(self):
        for cmd in (["netns", "add", self.name],
                    ["-n", self.name, "link", "add", "rk0", "mtu", "1500", "type", "veth",
                     "peer", "name", "rk1"],
                    ["-n", self.name, "link", "set", "rk0", "up"],
                    ["-n", self.name, "link", "set", "rk1", "up"]):
            subprocess.run(["ip"] + cmd, check=True)
        return self

    def __exit__(self, *exc):
        subprocess.run(["ip", "netns", "del", self.name], check=False)

    def daemon(self, end):
        return Logged("--port", f"af_packet:rk{end},framesz=2048,blocksz=4096,framecnt=512,"
                      f"ip=192.0.2.{end + 1}/24", name=f"t{end}",
                      prefix=("ip", "netns", "exec", self.name))

    @staticmethod
    def missing():
        """Why this machine cannot, or None."""
        if os.geteuid():
            return "not root"
        name = f"rn-probe-{os.getpid()}"
        try:
            ok = subprocess.run(["ip", "netns", "add", name], capture_output=True,
                                check=False).returncode == 0
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        except FileNotFoundError:
            return "no program 'ip'"
        return None if ok else "no network namespaces"


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

    def counts(self, idle=True):
        """
        Every number that must be at its start when no client is there, or, unless idle, when
        the same clients are there that were.
        """
        c = {k: len(self.show(k)) for k in OBJECTS}
        for w in self.show("workers") if idle else ():
            for k in POOLS:
                c[f"worker{w['worker']}.{k}"] = w.get(k)
        for u in self.show("memory"):  # what each user has taken of its quotas
            for k, n in u.items():
                c[f"uid{u['uid']}.{k}"] = n
        c["neighbour users"] = sum(n["users"] for n in self.show("neighbours"))
        pid = self.proc.pid
        c["fds"] = len(os.listdir(f"/proc/{pid}/fd"))
        c["threads"] = len(os.listdir(f"/proc/{pid}/task"))
        c["arena bytes mapped"] = self.mapped("/memfd:rnic-arena")
        c["client bytes mapped"] = self.mapped("/dev/shm/", "/memfd:victim")
        return c

    def mapped(self, *names):
        """Bytes of the daemon's mappings of files that are called so."""
        with open(f"/proc/{self.proc.pid}/maps", encoding="utf-8") as f:
            spans = [line.split()[0].split("-") for line in f if any(n in line for n in names)]
        return sum(int(end, 16) - int(begin, 16) for begin, end in spans)

    def schedstat(self, worker=0):
        """Path of the file whose first number is a worker's CPU time in ns."""
        task = f"/proc/{self.proc.pid}/task"
        names = {}
        for tid in os.listdir(task):
            with open(f"{task}/{tid}/comm", encoding="utf-8") as f:
                names[f.read().strip()] = tid
        # the EAL's name of its lcore threads; lcore 0 is the control thread
        workers = sorted((n for n in names if n.startswith(("rte-worker-", "lcore-worker-"))),
                         key=lambda n: int(n.rsplit("-", 1)[1]))
        return f"{task}/{names[workers[worker]]}/schedstat"

    def settle(self, start, idle=True):
        """Wait until the counts are `start` again; what differs after WAIT seconds."""
        end = time.monotonic() + WAIT
        while True:
            now = self.counts(idle)
            differ = {k: (start.get(k), now.get(k)) for k in start.keys() | now.keys()
                      if start.get(k) != now.get(k)}
            if not differ or time.monotonic() > end:
                return differ
            threading.Event().wait(0.05)

    def alive(self):
        return self.proc.poll() is None


class Interval(typing.NamedTuple):
    """What a victim did in one of its intervals; times in ns of the monotonic clock."""
    begin: int
    end: int
    writes: int
    both: int  # the less of the CPU times of the victim and the worker
    pause: float  # ms, the longest


class Victim:
    """A victim whose lines are read as they come."""

    def __init__(self, path, sock, *args):
        self.proc = subprocess.Popen([path, "--socket", sock, *map(str, args)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.rates = []  # Interval
        self.before = None
        self.cond = threading.Condition()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.proc.stdout:
            with self.cond:
                if line.startswith("rate "):
                    self.add_rate(*map(int, line.split()[1:]))
                else:
                    self.lines.append(line.strip())
                self.cond.notify_all()
        with self.cond:
            self.lines.append("END")
            self.cond.notify_all()

    def add_rate(self, writes, now, cpu, worker, pause_us):
        if self.before:
            was, was_cpu, was_worker = self.before
            self.rates.append(Interval(was, now, writes, min(cpu - was_cpu, worker - was_worker),
                                       pause_us / 1000))
        self.before = (now, cpu, worker)

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

    def wait_ran(self, since, n, timeout=WAIT):
        """Until there are n intervals since that moment (ns) in which both ran."""
        with self.cond:
            self.cond.wait_for(lambda: len(self.between(since, sys.maxsize)) >= n or
                               "END" in self.lines, timeout)

    def between(self, since, until):
        """The intervals between two moments (ns) in which the victim and the worker ran."""
        return [r for r in self.rates if since <= r.begin and r.end <= until and
                r.both >= RAN * (r.end - r.begin)]

    def say(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


def find_peek(lines, starts):
    return any(line.startswith(starts + ("END",)) for line in lines)


def per_second(intervals):
    """WRITEs for each second in which both the victim and the worker had a CPU."""
    both = sum(r.both for r in intervals)
    return sum(r.writes for r in intervals) * 1e9 / both if both else 0.0


def joined(path, socks, *args):
    """Two victims that are each other's peer, at these daemons, connected and waiting."""
    two = [Victim(path, sock, "--peer", *args) for sock in socks]
    told = [v.wait("me ") for v in two]
    for line in told:
        assert line and line.startswith("me "), f"a peer does not come up: {told}"
    for i in range(2):
        two[i].say(told[1 - i][3:])
    for v in two:
        assert v.wait("joined") == "joined", "a peer does not connect"
    return two


def go(two):
    for v in two:
        v.say("go")


def fatal(text, *daemons):
    print("FAULT:", text)
    for d in daemons:
        print(d.log[-8000:])
    sys.exit(1)
