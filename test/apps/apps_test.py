#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The example programs against a daemon on the built-in loop port.

usage: apps_test.py BUILD_ROOT CASE

CASE is one of the functions below that begin with case_. Everything lives in a directory of
its own; programs wait for each other's output, not for time.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

LIMIT = 90  # seconds for one program: a hang is a fault, not a wait


class Lab:
    """A daemon, and the programs that a case starts."""

    def __init__(self, root):
        self.root = root
        self.dir = tempfile.mkdtemp(prefix="rnic-apps-")
        self.procs = []
        self.socket = os.path.join(self.dir, "rnic.sock")
        self.daemon = None
        self.before = None  # what programs do before they begin

    def path(self, name):
        place = {"rnicd": "apps/rnicd", "testrnic": "apps/testrnic", "big_message": "test/apps",
                 "keys": "test/apps", "cm_storm": "test/apps"}
        return os.path.join(self.root, place.get(name, "apps/examples"), name)

    def start_daemon(self):
        self.daemon = self.spawn("rnicd", "--socket", self.socket, "--no-huge", "--memory", "256",
                                 "--port", "loop,ip=192.0.2.1/24", "--no-telemetry",
                                 "--workers", "1", "--quota-mr", "8G")
        fifo = subprocess.run([self.path("rnic_pingpong"), "--help"], check=True,
                              capture_output=True)
        assert b"usage" in fifo.stdout
        wait_line(self.daemon, r"ready|listen|clients")

    def spawn(self, name, *args, stdin=None):
        env = dict(os.environ, RNIC_SOCKET=self.socket)
        p = subprocess.Popen([self.path(name), *args], stdin=stdin, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env=env, bufsize=1,
                             preexec_fn=self.before)
        p.seen = ""
        self.procs.append(p)
        return p

    def server(self, name, *args):
        """A program that says where it listens; port 0 lets it choose."""
        p = self.spawn(name, "-p", "0", *args)
        found = wait_line(p, r"listening on (?:port )?(\d+)")
        return p, found.group(1)

    def run(self, name, *args, want=0, stdin=None, limit=LIMIT):
        p = self.spawn(name, *args, stdin=subprocess.PIPE if stdin else None)
        try:
            out, _ = p.communicate(stdin, timeout=limit)
        except subprocess.TimeoutExpired:
            p.kill()
            out, _ = p.communicate()
            sys.exit(f"{name} {' '.join(args)}: hangs\n{out}")
        print(out, end="")
        if p.returncode != want:
            sys.exit(f"{name} {' '.join(args)}: exit status {p.returncode}, not {want}")
        return out

    def finish(self, p, want=0):
        out, _ = p.communicate(timeout=LIMIT)
        print(p.seen + out, end="")
        assert p.returncode == want, f"exit status {p.returncode}, not {want}"
        return p.seen + out

    def close(self):
        for p in reversed(self.procs):
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.terminate()
                try:
                    p.wait(20)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
        shutil.rmtree(self.dir)


def wait_line(p, pattern):
    for line in p.stdout:
        p.seen += line
        found = re.search(pattern, line)
        if found:
            return found
    sys.exit(f"{p.args[0]} ended, status {p.wait()}:\n{p.seen}")


def case_pingpong(lab):
    for extra in ([], ["-e"], ["-s", "1", "-n", "100"], ["-s", "100000", "-m", "256", "-n", "50"],
                  ["-u"], ["-u", "-e", "-s", "3000", "-m", "256", "-n", "50"],
                  ["-U", "-s", "1024"], ["-U", "-s", "1", "-e"]):
        args = ["-c", "-n", "300", *extra]
        server, port = lab.server("rnic_pingpong", *args)
        out = lab.run("rnic_pingpong", "-p", port, *args, "127.0.0.1")
        assert "usec/iter" in out
        lab.finish(server)


def case_memlock(lab):
    """B072: it is the daemon that locks memory; a client's own limit does not count."""
    lab.before = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    case_pingpong(lab)


def case_pingpong_cm(lab):
    for extra in ([], ["-e", "-s", "100000", "-n", "50"]):
        args = ["-R", "-c", "-n", "300", *extra]
        server, port = lab.server("rnic_pingpong", *args)
        out = lab.run("rnic_pingpong", "-p", port, *args, "192.0.2.1")
        assert "usec/iter" in out
        lab.finish(server)
    out = lab.run("rnic_pingpong", "-R", "-p", "9", "192.0.2.1", want=1)
    assert "nobody listens" in out, out


def case_rping(lab):
    for extra in ([], ["-S", "64k"], ["-S", "24", "-v"]):
        server, port = lab.server("rnic_rping", "-s")
        out = lab.run("rnic_rping", "-c", "-a", "192.0.2.1", "-p", port, "-C", "100", "-V", *extra)
        assert "100 pings" in out and "all right" in out
        lab.finish(server)
    server, port = lab.server("rnic_rping", "-s", "-P", "-a", "192.0.2.1")
    clients = [lab.spawn("rnic_rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "200", "-V")
               for _ in range(8)]
    for c in clients:
        lab.finish(c)
    # who dies is not in the way of the others
    victim = lab.spawn("rnic_rping", "-c", "-a", "192.0.2.1", "-p", port, "-v")
    wait_line(victim, "ping data")
    victim.kill()
    lab.run("rnic_rping", "-c", "-a", "192.0.2.1", "-p", port, "-C", "10", "-V")
    server.terminate()
    server.communicate(timeout=LIMIT)


def case_bw_cm(lab):
    server, port = lab.server("rnic_bw", "-1")
    out = lab.run("rnic_bw", "-p", port, "-R", "-c", "-q", "40", "-t", "4", "-l", "1", "-D", "0.2",
                  "-o", "write,read,send,lat-send", "-s", "64,4k", "127.0.0.1")
    assert "WRONG" not in out
    lab.finish(server)


def case_cm_storm(lab):
    out = lab.run("cm_storm", lab.socket, lab.socket, "192.0.2.1", "10000", "500")
    assert "10000 connections" in out
    lab.run("cm_storm", lab.socket, lab.socket, "192.0.2.1", "200", "1")


def case_ops(lab):
    good = ["send:1000*8", "sendimm:3000", "write:65536", "write:17*16", "writeimm:5000",
            "read:65536*3", "cas*4", "casmiss", "fadd*8", "rnr:5", "send:0", "write:0",
            "write:1:inline", "send:0:inline", "writeimm:33:inline", "send:256:inline*64",
            "copy:5000*32", "copy:1", "copy:100001*4", "send:64:solicited", "send:64:unsolicited",
            "writeimm:5000:solicited*16", "sendimm:32:inline:solicited", "sendimm:3:unsolicited*8",
            "send:0:solicited", "send:5000"]
    bad = ["badkey-write", "badkey-read", "badkey-fadd", "badvar-write", "badvar-read",
           "oob-write:4000", "oob-read:4000", "noperm-write", "noperm-read", "noperm-fadd",
           "toolong", "unaligned", "badinv"]
    for where in ([], ["-P"], ["-F"]):
        for ops in [good, *([b] for b in bad)]:
            if where and ops is not good:
                continue
            server, port = lab.server("rnic_ops", "-s", *where)
            out = lab.run("rnic_ops", "-c", "127.0.0.1", "-p", port, *where, *ops)
            assert "WRONG" not in out
            lab.finish(server)


def case_ops_large(lab):
    """Longer than 8 MiB, through the daemon and back, with an odd end."""
    ops = ["write:67108877", "read:67108877", "writeimm:67108863", "read:67108865"]
    for where in ([], ["-F"], ["-P"]):
        server, port = lab.server("rnic_ops", "-s", "-l", "65m", *where)
        out = lab.run("rnic_ops", "-c", "127.0.0.1", "-p", port, "-l", "65m", *where, *ops)
        assert out.count(": success") == len(ops), out
        lab.finish(server)


def case_keys(lab):
    lab.run("keys")


def case_big_message(lab):
    with open("/proc/meminfo", encoding="utf-8") as f:
        free = int(re.search(r"MemAvailable: *(\d+) kB", f.read()).group(1)) >> 10
    if free < 3500:
        print(f"skipped: 3.5 GiB are needed, {free} MiB are free")
        sys.exit(77)
    for mtu in ([], ["256"]):
        lab.run("big_message", *mtu, limit=1500)


def case_bw(lab):
    _, port = lab.server("rnic_bw")
    report = os.path.join(lab.dir, "bw.json")
    lab.run("rnic_bw", "-p", port, "--verify", "-D", "0.2", "-n", "200", "-q", "4", "-t", "16",
            "-j", report, "127.0.0.1")
    with open(report, encoding="utf-8") as f:
        rows = json.load(f)
    assert len(rows) == 9, rows
    for row in rows:
        assert row["messages"] > 0 and row["wrong"] == 0 and row["verified"], row
    lab.run("rnic_bw", "-p", port, "-o", "write", "-s", "1m", "-t", "4096", "127.0.0.1", want=1)
    lab.run("rnic_bw", "-p", port, "-P", "--verify", "-o", "write,read,send", "-s", "64,64k",
            "-D", "0.1", "127.0.0.1")
    lab.run("rnic_bw", "-p", port, "-o", "send,read", "-s", "8,4097", "-D", "0.1", "127.0.0.1")


def case_share(lab):
    """Workers move an owner's memory by imported keys, until it ends the region."""
    out = lab.run("rnic_share", "-n", "3")
    assert "3 parts of 65536 bytes, all right" in out and "ended, for all" in out
    assert len(re.findall(r"worker \d: .* success", out, re.I)) == 3, out


def case_kv(lab):
    """One-sided: the server's process is stopped and everything goes on."""
    server, port = lab.server("rnic_kv", "-n", "512", "serve")
    # two clients that are joined before the server stops
    client = [lab.spawn("rnic_kv", "-p", port, "127.0.0.1", stdin=subprocess.PIPE)
              for _ in range(2)]
    for c in client:
        wait_line(c, "remote address")
        c.stdin.write("put seed 1\nget seed\n")
        c.stdin.flush()
        wait_line(c, "^1$")
    server.send_signal(signal.SIGSTOP)
    client[0].stdin.write("put n 0\nput colour green\nget colour\n")
    client[0].stdin.flush()
    wait_line(client[0], "green")
    for c in client:  # both at once: no addition may be lost
        c.stdin.write("count n 300\nbench 50 0.3\n")
        c.stdin.flush()
    for c in client:
        wait_line(c, "gets and .* 0 wrong")
    client[1].stdin.write("get n\ndel colour\nget colour\nstats\n")
    client[1].stdin.close()
    out = client[1].stdout.read()
    print(out)
    assert re.search("^600$", out, re.M) and "(none)" in out
    assert client[1].wait() == 1  # get of a key that is not there
    client[0].stdin.close()
    print(client[0].stdout.read())
    assert client[0].wait() == 0
    assert open(f"/proc/{server.pid}/stat", encoding="utf-8").read().split()[2] == "T"
    server.send_signal(signal.SIGCONT)
    lab.run("rnic_kv", "-p", port, "127.0.0.1", "get", "seed")


def case_kv_dead_writer(lab):
    """A client that dies at any moment leaves no slot locked for ever."""
    _, port = lab.server("rnic_kv", "-n", "64", "serve")
    for _ in range(3):
        victim = lab.spawn("rnic_kv", "-p", port, "127.0.0.1", "bench", "8", "100")
        wait_line(victim, "remote address")
        lab.run("rnic_kv", "-p", port, "127.0.0.1", "bench", "8", "0.1")
        victim.kill()
        victim.wait()
    out = lab.run("rnic_kv", "-p", port, "-w", "20", "127.0.0.1", "bench", "8", "0.3")
    assert " 0 wrong" in out


def case_daemon_death(lab):
    """Clients of a daemon that is killed end, with a message."""
    server, _ = lab.server("rnic_kv", "serve")
    pair, port = lab.server("rnic_pingpong", "-n", "100000000")
    client = lab.spawn("rnic_pingpong", "-p", port, "-n", "100000000", "127.0.0.1")
    wait_line(client, "remote address")
    lab.daemon.kill()
    for p in (client, pair):
        out, _ = p.communicate(timeout=LIMIT)
        assert p.returncode == 1, (p.args, p.returncode, out)
    server.terminate()


def case_testrnic(lab):
    """Traffic by command between two engines over rings, and in one alone."""
    script = os.path.join(lab.dir, "commands")
    with open(script, "w", encoding="utf-8") as f:
        for op in ("write", "read", "send", "ping"):
            f.write(f"set op {op}\nset size 4096\nset depth 16\nrun 0.2\n")
        f.write("show port\nshow stats\nshow qps\nset op send\nset qps 8\nset list 4\nrun 0.2\n")
    eal = ["--no-huge", "-m", "512"]
    for extra in ([], ["--loop"]):
        out = lab.run("testrnic", *eal, "--", *extra, "--commands", script)
        assert len(re.findall("wrong 0", out)) == 5, out
    lab.run("testrnic", *eal, "--", "--bench", "3", want=2)
    lab.run("testrnic", "--", "--help")


def case_bench(lab):
    """The bench runs, finds no wrong data, and writes what docs/performance.md describes."""
    report = os.path.join(lab.dir, "bench.json")
    p = lab.spawn("testrnic", "--no-huge", "-m", "1024", "--", "--bench", "all", "--runs", "1",
                  "--window", "0.05", "--json", report)
    out, _ = p.communicate(timeout=3 * LIMIT)
    print(out)
    assert p.returncode in (0, 1), p.returncode  # budgets are not this test's business
    with open(report, encoding="utf-8") as f:
        figures = json.load(f)["figures"]
    assert [f["row"] for f in figures] == [1] * 8 + [2] * 3 + [4, 5]
    for f in figures:
        assert "fault" not in f and f["wrong"] == 0 and f["value"] > 0 and f["limit"] > 0, f
        # a ping is seen by its stamp alone
        assert f["row"] == 4 or f["compared"] > 0, f


def main():
    root, name = sys.argv[1:3]
    lab = Lab(root)
    try:
        if name not in ("testrnic", "bench"):
            lab.start_daemon()
        globals()["case_" + name](lab)
    finally:
        lab.close()


if __name__ == "__main__":
    main()
