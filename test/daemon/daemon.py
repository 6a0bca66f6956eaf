# SPDX-License-Identifier: BSD-3-Clause
"""Daemons for tests: each in a directory of its own, known to be ready, gone afterwards."""
import json
import os
import select
import signal
import socket
import subprocess
import tempfile

LIMIT = 60  # seconds until something that must happen is a failure


class Daemon:
    """rnicd with --socket DIR/NAME.sock. Use with `with`; what still runs is killed."""

    rnicd = None  # paths of the programs, set by the test
    rnicctl = None

    def __init__(self, *args, dir=None, name="t", prefix=(), preexec=None):
        self.own = tempfile.TemporaryDirectory(prefix="rnicd-") if dir is None else None
        self.dir = dir or self.own.name
        if self.own and os.geteuid() == 0:
            os.chmod(self.dir, 0o777)  # for daemons that are not root
        self.sock = f"{self.dir}/{name}.sock"
        self.admin = f"{self.dir}/{name}.admin"
        self.pidfile = f"{self.dir}/{name}.pid"
        self.log = ""
        self.args = list(prefix) + [self.rnicd, "--socket", self.sock] + list(args)
        if "--" not in args and "--huge" not in args:
            self.args.insert(len(prefix) + 1, "--no-huge")
        self.preexec = preexec
        self.proc = None

    def __enter__(self):
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path())
        path = self.notify_path()
        os.chmod(path, 0o777)
        env = dict(os.environ, NOTIFY_SOCKET=path)
        env.setdefault("XDG_RUNTIME_DIR", self.dir)
        self.proc = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, env=env,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     preexec_fn=self.preexec)
        self.wait_ready()
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        self.drain()
        self.notify.close()
        os.unlink(self.notify_path())
        if exc[0] is not None:
            print("--- log of", self.args, "\n" + self.log)
        if self.own:
            self.own.cleanup()

    def notify_path(self):
        return f"{self.dir}/notify-{os.getpid()}-{id(self)}"

    def read_some(self):
        """What the daemon has written. False at the end."""
        data = os.read(self.proc.stdout.fileno(), 65536)
        self.log += data.decode("utf-8", "replace")
        return bool(data)

    def drain(self):
        while not self.proc.stdout.closed and self.read_some():
            pass
        self.proc.stdout.close()

    def wait_ready(self):
        out = self.proc.stdout
        while True:
            ready, _, _ = select.select([self.notify, out], [], [], LIMIT)
            assert ready, "the daemon is not ready:\n" + self.log
            if self.notify in ready:
                assert self.notify.recv(100) == b"READY=1"
                return
            assert self.read_some(), "the daemon has ended:\n" + self.log

    def wait_log(self, text):
        while text not in self.log:
            ready, _, _ = select.select([self.proc.stdout], [], [], LIMIT)
            assert ready and self.read_some(), f"no '{text}' in the log:\n{self.log}"

    def stop(self, sig=signal.SIGTERM):
        """End it by a signal; its exit status."""
        self.proc.send_signal(sig)
        return self.wait()

    def wait(self):
        self.drain()
        return self.proc.wait(LIMIT)

    def ctl(self, *args, status=0):
        """rnicctl's output."""
        r = subprocess.run([self.rnicctl, "-s", self.sock] + list(args), timeout=LIMIT,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert r.returncode == status, f"{args}: status {r.returncode}\n{r.stdout}{r.stderr}"
        return r.stdout + r.stderr

    def show(self, kind):
        return json.loads(self.ctl("--json", "show", kind))

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LIMIT)
        s.connect(self.admin)
        return s

    def leftovers(self):
        return sorted(f for f in os.listdir(self.dir) if not f.startswith("notify-"))


def refused(*args, status, prefix=(), preexec=None):
    """rnicd must not start; what it says."""
    r = subprocess.run(list(prefix) + [Daemon.rnicd] + list(args), timeout=LIMIT,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       preexec_fn=preexec)
    text = r.stdout + r.stderr
    assert r.returncode == status, f"{args}: status {r.returncode}\n{text}"
    return text


def line(sock):
    """The next answer of an admin connection; None at its end."""
    data = b""
    while not data.endswith(b"\n"):
        more = sock.recv(65536)
        if not more:
            return None
        data += more
    return json.loads(data)
