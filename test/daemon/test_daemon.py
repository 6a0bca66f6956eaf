#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rnicd and rnicctl as a user meets them: starting, looking, changing, stopping.

usage: test_daemon.py RNICD RNICCTL [CASE...]

Needs no huge pages. Cases that need root say so and are left out without it.
"""
import glob
import json
import os
import pwd
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import LIMIT, Daemon, line, refused  # noqa: E402

KINDS = ("devices ports contexts pds mrs cqs qps srqs counters memory neighbours routes "
         "workers cc cc-qps ids listeners connections cm").split()
ADDR = "loop,ip=192.0.2.1/24,ip=2001:db8::1/64"
root = unittest.skipUnless(os.geteuid() == 0, "needs root")


def nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def runtime_dirs(d):
    """DPDK's runtime directories of a daemon's socket."""
    base = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", d.dir)
    found = []
    for path in glob.glob(f"{base}/dpdk/softrnic-*"):
        if path.endswith(prefix_hash(d.sock)):
            found.append(path)
    return found


def prefix_hash(path):
    h = 2166136261
    for b in path.encode():
        h = (h ^ b) * 16777619 & 0xffffffff
    return f"-{h:08x}"


class Run(unittest.TestCase):
    def test_show(self):
        with Daemon("--port", ADDR, "--workers", "2") as d:
            for kind in KINDS:
                objects = d.show(kind)
                self.assertIsInstance(objects, list, kind)
                table = d.ctl("-a", "show", kind)
                if objects:
                    self.assertIn(next(iter(objects[0])), table, kind)
                else:
                    self.assertEqual(table, "none\n", kind)
            self.assertEqual(len(d.show("workers")), 2)
            device = d.show("devices")[0]
            self.assertEqual(device["name"], "rnic0")
            self.assertEqual(device["pid"], d.proc.pid)
            self.assertEqual(device["pages"], "ordinary")
            self.assertEqual(d.show("ports")[0]["path_mtu"], 4096)
            with d.connect() as s:
                s.sendall(b'{"cmd":"kinds"}\n')
                self.assertEqual(sorted(line(s)["kinds"]), sorted(KINDS))
            self.assertIn("no kind is called 'cheese'", d.ctl("show", "cheese", status=1))
            self.assertEqual(d.stop(), 0)

    def test_ping(self):
        with Daemon("--workers", "3") as d:
            answer = json.loads(d.ctl("-j", "ping"))
            self.assertEqual(sorted(w["worker"] for w in answer["workers"]), [0, 1, 2])
            self.assertTrue(all(w["latency_ns"] < 30e9 for w in answer["workers"]))
            self.assertIn("latency_ns", d.ctl("ping"))

    def test_open_files(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        soft = hard // 2

        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with Daemon(preexec=lower) as d:
            self.assertEqual(resource.prlimit(d.proc.pid, resource.RLIMIT_NOFILE), (hard, hard))

    def test_pages(self):
        with Daemon("--workers", "3") as d, d.connect() as s:
            seen = []
            more = True
            while more:
                s.sendall(json.dumps({"cmd": "show", "kind": "workers", "skip": len(seen),
                                      "max": 1}).encode() + b"\n")
                answer = line(s)
                self.assertLessEqual(len(answer["objects"]), 1)
                more = answer["more"]
                seen += [o["worker"] for o in answer["objects"]]
            self.assertEqual(seen, [0, 1, 2])
            for bad in ({"skip": -1}, {"max": 0}, {"skip": "x"}, {"kind": 7}):
                s.sendall(json.dumps({"cmd": "show", "kind": "workers", **bad}).encode() + b"\n")
                self.assertFalse(line(s)["ok"], bad)

    def test_two_daemons(self):
        """Each on a port of its own (B189)."""
        with Daemon() as a, Daemon("--name", "other") as b:
            a.ctl("ping")
            b.ctl("ping")
            self.assertEqual(b.show("devices")[0]["name"], "other")
            self.assertEqual(b.stop(), 0)
            a.ctl("ping")
            self.assertEqual(a.stop(), 0)

    def test_second_on_same_socket(self):
        with Daemon() as d:
            said = refused("--no-huge", "--socket", d.sock, status=1)
            self.assertIn(f"process {d.proc.pid}", said)
            self.assertIn("shutdown", said)
            said = refused("--no-huge", "--socket", d.sock, "--pidfile", d.dir + "/other.pid",
                           status=1)
            self.assertIn("somebody listens", said)
            d.ctl("ping")
            self.assertEqual(d.leftovers(), ["t.admin", "t.pid", "t.sock"])

    def test_term_leaves_nothing(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            with Daemon() as d:
                self.assertEqual(d.leftovers(), ["t.admin", "t.pid", "t.sock"])
                with open(d.pidfile, encoding="ascii") as f:
                    self.assertEqual(int(f.read()), d.proc.pid)
                self.assertEqual(len(runtime_dirs(d)), 1)
                self.assertEqual(d.stop(sig), 0)
                self.assertEqual(d.leftovers(), [])
                self.assertEqual(runtime_dirs(d), [])

    def test_kill_and_restart(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            with Daemon(dir=where) as d:
                self.assertEqual(d.stop(signal.SIGKILL), -signal.SIGKILL)
                self.assertEqual(d.leftovers(), ["t.admin", "t.pid", "t.sock"])
            with Daemon(dir=where) as d:
                d.ctl("ping")
                self.assertEqual(d.stop(), 0)
                self.assertEqual(d.leftovers(), [])

    def test_shutdown(self):
        with Daemon() as d:
            d.ctl("shutdown")
            self.assertEqual(d.wait(), 0)
            self.assertEqual(d.leftovers(), [])
            # B117: who finds no device is told why
            self.assertIn("is rnicd running?", d.ctl("ping", status=3))

    def test_shutdown_with_client(self):
        """A client that is connected and silent does not delay the end; it sees it."""
        with Daemon() as d, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(LIMIT)
            s.connect(d.sock)
            d.ctl("ping")
            self.assertEqual(d.stop(), 0)
            while True:
                try:
                    if not s.recv(65536):
                        break
                except ConnectionResetError:
                    break

    def test_daemonize(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            path = where + "/x.sock"
            refused("--no-huge", "--daemonize", "--socket", path, status=0)
            with open(where + "/x.pid", encoding="ascii") as f:
                pid = int(f.read())
            fd = os.pidfd_open(pid)
            try:
                said = refused("--no-huge", "--daemonize", "--socket", path, status=1)
                self.assertIn("running already", said)
                run = subprocess.run([Daemon.rnicctl, "-s", path, "shutdown"], timeout=LIMIT)
                self.assertEqual(run.returncode, 0)
                self.assertTrue(select.select([fd], [], [], LIMIT)[0], "it does not end")
            finally:
                try:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                os.close(fd)
            self.assertEqual(os.listdir(where), [])

    def test_daemonize_failure(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            said = refused("--no-huge", "--daemonize", "--socket", where + "/x.sock", "--port",
                           "ethdev:nothing", status=1)
            self.assertIn("no ethdev 'nothing'", said)
            self.assertEqual(os.listdir(where), [])

    def test_log(self):
        with Daemon() as d:
            d.ctl("log", "rnicd:debug")
            self.assertIn("no log level", d.ctl("log", "rnicd:loud", status=1))
            self.assertIn("version", d.ctl("version"))

    def test_eal_arguments_win(self):
        with Daemon("--port", "ethdev:net_ring0", "--", "--no-huge", "-m", "256", "--vdev",
                    "net_ring0", "--file-prefix", f"rnicd-test-{os.getpid()}") as d:
            self.assertEqual(len(d.show("ports")), 1)
            self.assertEqual(d.show("devices")[0]["ports"], "net_ring0")
            self.assertEqual(runtime_dirs(d), [])
            self.assertEqual(d.stop(), 0)

    def test_vdev(self):
        with Daemon("--port", "vdev:net_ring7,ip=192.0.2.9/24") as d:
            self.assertEqual(d.show("devices")[0]["ports"], "net_ring7")

    def test_telemetry(self):
        with Daemon("--workers", "2") as d, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(LIMIT)
            s.connect(runtime_dirs(d)[0] + "/dpdk_telemetry.v2")
            s.recv(16384)
            s.send(b"/softrnic/totals")
            totals = json.loads(s.recv(65536))["/softrnic/totals"]
            self.assertEqual(totals["workers"], 2)
            self.assertEqual(totals["qps"], 0)
            for cmd in ("counters", "workers", "memory", "ports"):
                s.send(b"/softrnic/" + cmd.encode())
                self.assertIsInstance(json.loads(s.recv(65536))["/softrnic/" + cmd], dict)
            self.assertEqual(d.stop(), 0)


def sleeps(pid):
    """How often the control thread has gone to sleep."""
    with open(f"/proc/{pid}/task/{pid}/status", encoding="ascii") as f:
        return next(int(text.split()[1]) for text in f
                    if text.startswith("voluntary_ctxt_switches"))


class Admin(unittest.TestCase):
    """Whatever is written to the admin socket, the daemon goes on."""

    def test_nonsense(self):
        with Daemon() as d, d.connect() as s:
            for bad in (b"", b"{", b"[]", b"null", b"\0\xff\xfe", b'{"cmd":7}', b'{"cmd":"x"}',
                        b'{"cmd":"show"}', b'{"cmd":"addr","op":"add"}', b'{"cmd":"route"}',
                        b'{"cmd":"log"}', b'{"cmd":"reload"}',
                        b'{"cmd":"addr","op":"mul","port":"loop","addr":"192.0.2.1/24"}',
                        b'{"cmd":"addr","op":"add","port":"no","addr":"192.0.2.1/24"}',
                        b'{"cmd":"addr","op":"add","port":"loop","addr":"192.0.2.1"}'):
                s.sendall(bad + b"\n")
                answer = line(s)
                self.assertFalse(answer["ok"], bad)
                self.assertTrue(answer["error"], bad)
            d.ctl("ping")

    def test_no_descriptors(self):
        """Who knocks while none is left keeps the daemon awake no more than others do."""
        with Daemon() as d:
            pid = d.proc.pid
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, before[1]))
            with d.connect() as s:
                enough = sleeps(pid) + 3
                end = time.monotonic() + LIMIT
                while sleeps(pid) < enough:
                    self.assertLess(time.monotonic(), end, "it does not sleep any more")
                    self.assertFalse(select.select([s], [], [], 0.1)[0])
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
                s.sendall(b'{"cmd":"ping"}\n')
                self.assertTrue(line(s)["ok"])

    def test_line_without_end(self):
        with Daemon() as d:
            with d.connect() as s:
                try:
                    s.sendall(b"x" * 100000)
                    self.assertIsNone(line(s))
                except (BrokenPipeError, ConnectionResetError):
                    pass
            d.ctl("ping")

    def test_pipelined(self):
        with Daemon() as d, d.connect() as s:
            s.sendall(b'{"cmd":"ping"}\n{"cmd":"version"}\n' * 20)
            s.shutdown(socket.SHUT_WR)
            data = b""
            while data.count(b"\n") < 40:
                data += s.recv(65536)
            for i, text in enumerate(data.splitlines()):
                answer = json.loads(text)
                self.assertTrue(answer["ok"])
                self.assertIn("version" if i % 2 else "workers", answer)

    def test_gone_before_the_answer(self):
        with Daemon() as d:
            for _ in range(20):
                with d.connect() as s:
                    s.sendall(b'{"cmd":"ping"}\n{"cmd":"pi')
            d.ctl("ping")
            self.assertEqual(d.stop(), 0)

    def test_too_many(self):
        with Daemon() as d:
            conns = [d.connect() for _ in range(17)]
            self.assertIn("too many", line(conns[16])["error"])
            for s in conns:
                s.close()
            d.ctl("ping")

    @root
    def test_other_users(self):
        with Daemon() as d:
            os.chmod(d.admin, 0o777)
            child = os.fork()
            if child == 0:
                nobody()
                with d.connect() as s:
                    os._exit(7 if "only root" in line(s)["error"] else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)


class Addresses(unittest.TestCase):
    FILE = "[device]\nname = f\n[port loop]\ndevice = loop\nip = {}\n"

    def test_add_and_delete(self):
        with Daemon("--port", "loop,ip=192.0.2.1/24") as d:
            d.ctl("addr", "add", "loop", "192.0.2.77/24")
            d.ctl("addr", "del", "loop", "192.0.2.77/24")
            d.ctl("addr", "del", "loop", "192.0.2.77/24", status=1)
            self.assertIn("no port is called", d.ctl("addr", "add", "x", "192.0.2.3/24",
                                                     status=1))
            d.ctl("route", "add", "loop", "198.51.100.0/24", "192.0.2.254")
            self.assertIn("198.51.100.0", d.ctl("show", "routes"))

    def test_congestion(self):
        with Daemon("--port", ADDR + ",cc-min-rate=200,cc=off") as d:
            before = d.show("cc")[0]
            self.assertEqual((before["cc"], before["cc-min-rate"]), (0, 200))
            self.assertEqual((before["cc-cnp-dscp"], before["cc-cnp-interval"]), (48, 50))
            d.ctl("cc", "loop", "cc=on", "cc-additive-rate=40")
            after = d.show("cc")[0]
            self.assertEqual((after["cc"], after["cc-additive-rate"]), (1, 40))
            # none of them is set when one is wrong
            for bad in ("cc-nothing=1", "cc-cnp-dscp=64", "cc=perhaps", "cc-min-rate=0"):
                self.assertIn("cc: ", d.ctl("cc", "loop", "cc-fast-steps=7", bad, status=1))
            self.assertEqual(d.show("cc")[0], after)
            self.assertIn("no port is called", d.ctl("cc", "x", "cc=on", status=1))
            d.ctl("cc", "loop", "cc", status=2)
            self.assertEqual(d.show("cc-qps"), [])
        self.assertIn("out of range", refused("--port", "loop,cc-cnp-dscp=64", status=2))

    def test_reload(self):
        for by_signal in (True, False):
            with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
                conf = where + "/rnicd.conf"
                with open(conf, "w", encoding="ascii") as f:
                    f.write(self.FILE.format("192.0.2.1/24 192.0.2.2/24"))
                with Daemon("--config", conf) as d:
                    self.assertEqual(d.show("devices")[0]["name"], "f")
                    with open(conf, "w", encoding="ascii") as f:
                        f.write(self.FILE.format("192.0.2.2/24 192.0.2.3/24"))
                    if by_signal:
                        d.proc.send_signal(signal.SIGHUP)
                        d.wait_log("read again")
                    else:
                        d.ctl("reload")
                    # the first has gone, the third is there
                    d.ctl("addr", "del", "loop", "192.0.2.1/24", status=1)
                    d.ctl("addr", "del", "loop", "192.0.2.2/24")
                    d.ctl("addr", "del", "loop", "192.0.2.3/24")

    def test_reload_of_a_broken_file(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            conf = where + "/rnicd.conf"
            with open(conf, "w", encoding="ascii") as f:
                f.write(self.FILE.format("192.0.2.1/24"))
            with Daemon("--config", conf) as d:
                with open(conf, "a", encoding="ascii") as f:
                    f.write("ip = cheese\n")
                self.assertIn(f"{conf}:6:", d.ctl("reload", status=1))
                d.ctl("addr", "del", "loop", "192.0.2.1/24")


class Wrong(unittest.TestCase):
    """Faults are told in a sentence that names them, with status 2."""

    def test_options(self):
        for args, said in (
                (["--cheese"], "'--cheese' is unknown"),
                (["--workers"], "'--workers' needs a value"),
                (["cheese"], "'cheese' is not an option"),
                (["--workers", "0"], "--workers: 0 is out of range"),
                (["--workers", "33"], "--workers: 33 is out of range"),
                (["--workers", "x"], "--workers: 'x' is not a number"),
                (["--workers", "-1"], "--workers: '-1' is not a number"),
                (["--port", "cheese:x"], "no kind of port"),
                (["--port", "tap:"], "names no device"),
                (["--port", "loop,ip=192.0.2.1"], "lacks a prefix length"),
                (["--port", "loop,ip=192.0.2.1/33"], "33 is out of range: 1 to 32"),
                (["--port", "loop,ip=::1/129"], "129 is out of range: 1 to 128"),
                (["--port", "loop,ip=cheese/3"], "'cheese' is no IPv4 or IPv6 address"),
                (["--port", "loop,ip=192.0.2.1/24@4095"], "4095 is out of range"),
                (["--port", "loop,ip=192.0.2.1/24,ip=192.0.2.1/24"], "stands there twice"),
                (["--port", "loop,mtu=70000"], "70000 is out of range"),
                (["--port", "loop,mtu"], "is not key=value"),
                (["--port", "loop,cheese=1"], "a port knows no 'cheese'"),
                (["--port", "loop,gw=x"], "gateway 'x'"),
                (["--port", "loop,route=default"], "needs a gateway"),
                (["--port", "loop", "--port", "loop"], "two ports are called 'loop'"),
                (["--no-offload", "x"], "there are: rx-ipv4-cksum"),
                (["--name", "a/b"], "is no path"),
                (["--socket", "/" + "x" * 120], "longer than"),
                (["--socket", "/tmp/x", "--admin", "/tmp/x"], "three paths"),
                (["--config", "/nonexistent"], "cannot read configuration file /nonexistent"),
                (["--port", "loop"] + ["--log-level", "x"] * 9, "more than 8 log levels")):
            text = refused(*args, status=2)
            self.assertIn(said, text, args)
            self.assertEqual(text.count("\n"), 1, text)

    def test_at_start(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            base = ["--no-huge", "--socket", where + "/x.sock"]
            for args, said in (
                    (["--lcores", "9-2"], "write a list of CPUs"),
                    (["--lcores", "127"], "CPU 127 is not there"),
                    (["--log-level", "loud"], "no log level"),
                    (["--port", "af_packet:no-such-if"], "no network interface 'no-such-if'"),
                    (["--port", "ethdev:x"], "no ethdev 'x'"),
                    (["--workers", "2", "--", "--lcores", "0"], "2 workers need 3 lcores")):
                self.assertIn(said, refused(*base, *args, status=1), args)
                self.assertEqual(os.listdir(where), [], args)
            with open(where + "/x.sock", "w", encoding="ascii"):
                pass
            self.assertIn("no socket", refused(*base, status=1))
            self.assertEqual(os.listdir(where), ["x.sock"])
            self.assertIn("cannot make directory", refused(
                "--no-huge", "--socket", where + "/x.sock/y/z.sock", status=1))

    def test_file(self):
        for text, at, said in (
                ("[device]\nworkers = 99\n", 2, "workers: 99 is out of range"),
                ("[device]\n\n# x\ncheese = 1\n", 4, "no option 'cheese'"),
                ("[device]\nworkers = 1\n[cheese]\na = 1\n", 3, "no section is called [cheese]"),
                ("workers = 1\n", 1, "before the first [section]"),
                ("[device]\nworkers\n", 2, "neither [section] nor key = value"),
                ("[device\nworkers = 1\n", 1, "neither [section] nor key = value"),
                ("[device]\nhuge-pages = maybe\n", 2, "none of auto, yes and no"),
                ("[device]\nname = \n", 2, "the value is empty"),
                ("[device]\nname = " + "x" * 40 + "\n", 2, "longer than"),
                ("[device]\nname = " + "x" * 300 + "\n", 2, "longer than 256"),
                ("[limits]\nquota-mr = 4Q\n", 2, "is not a size"),
                ("[limits]\nquota-mr = 999999999999T\n", 2, "is too large"),
                ("[port a]\nmtu = 1500\n", 1, "has no device"),
                ("[port a]\nip = 192.0.2.1/24\ndevice = cheese:1\n", 3, "no kind of port"),
                ("[port a]\ndevice = loop\nip = 192.0.2.1/24 x\n", 3, "lacks a prefix length"),
                ("[port a]\ndevice = loop\ncheese = 1\n", 3, "a port knows no 'cheese'")):
            with tempfile.NamedTemporaryFile("w", prefix="rnicd-", suffix=".conf") as f:
                f.write(text)
                f.flush()
                out = refused("--config", f.name, status=2)
                self.assertIn(f"{f.name}:{at}: ", out, text)
                self.assertIn(said, out, text)

    def test_rnicctl(self):
        def run(*args):
            r = subprocess.run([Daemon.rnicctl] + list(args), capture_output=True, text=True,
                               timeout=LIMIT, stdin=subprocess.DEVNULL)
            return r.returncode, r.stdout + r.stderr
        self.assertEqual(run()[0], 2)
        self.assertEqual(run("cheese")[0], 2)
        self.assertEqual(run("--cheese")[0], 2)
        self.assertEqual(run("-w", "0", "ping")[0], 2)
        self.assertEqual(run("--help")[0], 0)
        code, text = run("-s", "/nonexistent/x.sock", "ping")
        self.assertEqual(code, 3)
        self.assertIn("/nonexistent/x.admin", text)
        with Daemon() as d:
            self.assertEqual(run("-s", d.admin, "show")[0], 2)
            self.assertEqual(run("-s", d.admin, "addr", "add")[0], 2)
            self.assertEqual(run("-s", d.admin, "-w", "1", "shutdown")[0], 2)
            d.ctl("ping")

    def test_help(self):
        text = refused("--help", status=0)
        for word in ("--config", "--port", "--workers", "af_packet:", "rnicd(8)"):
            self.assertIn(word, text)
        self.assertIn("DPDK", refused("--version", status=0))

    def test_example_file(self):
        """What is installed is read, and shows no more than there is."""
        path = os.path.join(os.path.dirname(__file__), "..", "..", "config", "rnicd.conf")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        live = re.sub(r"^#(?=\[|[a-z-]+ = )", "", text, flags=re.M)
        live = re.sub(r"^(socket|admin|pidfile|user|lcores) .*\n", "", live, flags=re.M)
        with tempfile.NamedTemporaryFile("w", prefix="rnicd-", suffix=".conf") as f:
            f.write(live)
            f.flush()
            # all keys are known: what it stumbles over is the NIC that is not there
            self.assertIn("eth1", refused("--config", f.name, "--socket", f.name + ".sock",
                                          "--no-huge", status=1))


class Privileges(unittest.TestCase):
    ALLOWED = {1: "dac_override", 6: "setgid", 7: "setuid", 14: "ipc_lock", 19: "sys_ptrace",
               21: "sys_admin", 40: "checkpoint_restore"}

    def effective(self, d):
        caps = {}
        for task in glob.glob(f"/proc/{d.proc.pid}/task/*"):
            with open(task + "/status", encoding="ascii") as f:
                status = f.read()
            caps[int(os.path.basename(task))] = (
                int(re.search(r"CapEff:\s*(\w+)", status)[1], 16),
                int(re.search(r"Uid:\s*(\d+)", status)[1]),
                re.search(r"Name:\s*(\S+)", status)[1])
        return caps

    @root
    def test_dropped(self):
        allowed = sum(1 << c for c in self.ALLOWED)
        with Daemon("--workers", "2") as d:
            caps = self.effective(d)
            self.assertNotEqual(caps[d.proc.pid][0], 0)
            for tid, (eff, _, name) in caps.items():
                self.assertEqual(eff & ~allowed, 0, f"{tid} {name}")
                if re.match("rte-worker|eal-intr|rte_mp|telemetry", name):
                    self.assertEqual(eff, 0, name)
            self.assertIn("sys_ptrace", d.show("devices")[0]["capabilities"])

    @root
    def test_user(self):
        uid = pwd.getpwnam("nobody").pw_uid
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            os.chmod(where, 0o777)
            with Daemon("--user", "nobody", dir=where) as d:
                caps = self.effective(d)
                self.assertEqual({c[1] for c in caps.values()}, {uid})
                self.assertNotEqual(caps[d.proc.pid][0], 0)
                d.ctl("ping")
                self.assertEqual(d.stop(), 0)
                self.assertEqual(d.leftovers(), [])

    @root
    def test_without_privileges(self):
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            os.chmod(where, 0o777)
            os.environ["XDG_RUNTIME_DIR"] = where
            # the tree may stand where nobody else can look
            theirs = shutil.copy(Daemon.rnicd, where)
            os.chmod(theirs, 0o755)
            with mock.patch.object(Daemon, "rnicd", theirs):
                with Daemon(dir=where, name="n", preexec=nobody) as d:
                    d.wait_log("without cap_sys_ptrace")
                    d.ctl("ping")
                    self.assertEqual(d.stop(), 0)
                said = refused("--no-huge", "--socket", where + "/n.sock", "--port",
                               "tap:rnicdtest", status=1, preexec=nobody)
                self.assertIn("cap_net_admin", said)
                self.assertIn("setcap", said)
            del os.environ["XDG_RUNTIME_DIR"]


class Netdev(unittest.TestCase):
    """Ports on kernel interfaces, in a network name space of their own."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.ns = f"rnicd{os.getpid()}"
        if subprocess.run(["ip", "netns", "add", self.ns], capture_output=True).returncode:
            self.skipTest("no network name spaces")
        self.ip("link", "add", "rnd0", "type", "veth", "peer", "name", "rnd1")
        self.ip("link", "set", "rnd0", "up")
        self.ip("link", "set", "rnd1", "up")
        self.prefix = ["ip", "netns", "exec", self.ns]

    def tearDown(self):
        subprocess.run(["ip", "netns", "del", self.ns], check=True)

    def ip(self, *args):
        subprocess.run(["ip", "-n", self.ns] + list(args), check=True)

    def test_address_of_the_kernel(self):
        self.ip("addr", "add", "192.0.2.5/28", "dev", "rnd0")
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            said = refused("--no-huge", "--socket", where + "/x.sock", "--port",
                           "af_packet:rnd0,ip=192.0.2.5/24", status=1, prefix=self.prefix)
            self.assertIn("ip addr del 192.0.2.5/28 dev rnd0", said)
        with Daemon("--port", "af_packet:rnd0,ip=192.0.2.6/24", prefix=self.prefix) as d:
            self.assertIn("ip addr del 192.0.2.5/28 dev rnd0",
                          d.ctl("addr", "add", "rnd0", "192.0.2.5/24", status=1))

    def test_tun(self):
        """B188: an interface without MAC addresses is refused in words."""
        self.ip("tuntap", "add", "dev", "rntun0", "mode", "tun")
        self.ip("link", "set", "rntun0", "up")
        with tempfile.TemporaryDirectory(prefix="rnicd-") as where:
            said = refused("--no-huge", "--socket", where + "/x.sock", "--port",
                           "af_packet:rntun0,ip=192.0.2.6/24", status=1, prefix=self.prefix)
            self.assertIn("'rntun0' carries no Ethernet frames", said)
            self.assertEqual(os.listdir(where), [])

    def test_one_family(self):
        """B184: a machine without IPv6, or with nothing else, is as good."""
        for off, addr in ("6", "192.0.2.6/24"), ("", "2001:db8::6/64"):
            if off:
                subprocess.run([*self.prefix, "sh", "-c",
                                "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"], check=True)
            with Daemon("--port", f"af_packet:rnd0,ip={addr}", prefix=self.prefix) as d:
                d.ctl("ping")
                self.assertIn(addr.split("/")[0], json.dumps(d.show("ports")))
                self.assertEqual(d.stop(), 0)

    def test_name_spaces(self):
        """B189: a daemon in each of two network name spaces, joined by a cable."""
        other = self.ns + "b"
        subprocess.run(["ip", "netns", "add", other], check=True)
        try:
            self.ip("link", "set", "rnd1", "netns", other)
            subprocess.run(["ip", "-n", other, "link", "set", "rnd1", "up"], check=True)
            with Daemon("--port", "af_packet:rnd0,ip=192.0.2.6/24", prefix=self.prefix) as a, \
                    Daemon("--port", "af_packet:rnd1,ip=192.0.2.7/24",
                           prefix=["ip", "netns", "exec", other]) as b:
                for d in a, b:
                    d.ctl("ping")
                    self.assertEqual(d.show("ports")[0]["link"], "up")
                self.assertEqual(b.stop(), 0)
                a.ctl("ping")
                self.assertEqual(a.stop(), 0)
        finally:
            subprocess.run(["ip", "netns", "del", other], check=True)

    def test_af_packet(self):
        """The interface is free again at once (B190)."""
        self.ip("link", "set", "rnd0", "mtu", "4200")
        self.ip("link", "set", "rnd1", "mtu", "4200")
        with Daemon("--port", "af_packet:rnd0,ip=192.0.2.6/24,mtu=4200", "--port",
                    "af_packet:rnd1,ip=198.51.100.6/24", prefix=self.prefix) as d:
            self.assertEqual(len(d.show("ports")), 2)
            d.ctl("ping")
            self.assertEqual(d.stop(), 0)
        self.ip("link", "del", "rnd0")

    def test_carrier(self):
        """A link is down when the interface's is, whatever af_packet's driver says."""
        with Daemon("--port", "af_packet:rnd0,ip=192.0.2.6/24", prefix=self.prefix) as d:
            d.wait_log("port 1: link up")
            self.ip("link", "set", "rnd1", "down")
            d.wait_log("port 1: link down")
            self.assertEqual(d.show("ports")[0]["link"], "down")
            d.log = ""
            self.ip("link", "set", "rnd1", "up")
            d.wait_log("port 1: link up")

    def test_tap(self):
        with Daemon("--port", "tap:rntap0,ip=192.0.2.6/24", prefix=self.prefix) as d:
            d.ctl("ping")
            self.assertEqual(d.stop(), 0)
        left = subprocess.run(["ip", "-n", self.ns, "link", "show", "rntap0"],
                              capture_output=True)
        self.assertNotEqual(left.returncode, 0)


if __name__ == "__main__":
    Daemon.rnicd, Daemon.rnicctl = (os.path.abspath(p) for p in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
