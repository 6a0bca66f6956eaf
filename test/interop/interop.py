#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A network of peer guests and ports of ours in one network namespace, for tests.

    with Net('name', mtu=4200) as net:
        guest = net.guest()                       # 192.0.2.2, boots in four seconds
        port = net.veth('rnic0')                  # for --vdev=net_af_packet0,iface=rnic0
        cap = net.capture(port)
        prog = net.spawn(['./testrnic', ...])     # runs in the namespace
        prog.wait_line(r'^ready')
        guest.run('peer-qp -c 192.0.2.254 send:64')
        cap.stop()
        cap.check(sources=[OUR_IP])               # raises if a frame of ours is wrong
        assert guest.bad_icrc() == 0

One bridge, br0, joins the guests' taps and the ports. It carries CONTROL_IP, so that
programs on the host side (in the namespace) can talk TCP to the guests. OUR_IP is on
no kernel device: whatever drives the port answers ARP for it. Needs root.
Library and command: see "interop.py -h".
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import icrc_check

HERE = pathlib.Path(__file__).resolve().parent
RUN_GUEST = HERE / 'peer' / 'run-guest'
BUILD_GUEST = HERE / 'peer' / 'build-guest'

# Documentation addresses (RFC 5737, RFC 3849).
OUR_IP, OUR_IP6 = '192.0.2.1', '2001:db8::1'
CONTROL_IP, CONTROL_IP6 = '192.0.2.254', '2001:db8::fe'
SKIP = 77   # what meson and automake take for "skipped"


class Fault(AssertionError):
    """Something on the wire or in a peer is not as it must be."""


def guest_ip(index):
    return f'192.0.2.{2 + index}'


def guest_ip6(index):
    return f'2001:db8::{2 + index}'


def sh(*args, check=True, timeout=60, **kw):
    """Runs a command, returns CompletedProcess with text; its output in the error."""
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                       timeout=timeout, errors='replace', **kw)
    if check and p.returncode:
        raise RuntimeError(f'{" ".join(map(str, args))}: status {p.returncode}\n'
                           f'{p.stdout}{p.stderr}')
    return p


def missing():
    """What this machine lacks for such a test, as text, or None."""
    if os.geteuid():
        return 'not root'
    if not os.path.exists('/dev/net/tun'):
        return 'no /dev/net/tun'
    for tool in ('qemu-system-x86_64', 'ip', 'tcpdump', 'flock', 'tshark'):
        if not shutil.which(tool):
            return f'no {tool}'
    if sh('ip', 'netns', 'add', f'rn-probe-{os.getpid()}', check=False).returncode:
        return 'no network namespaces'
    sh('ip', 'netns', 'del', f'rn-probe-{os.getpid()}')
    return None


def missing_guest():
    """As missing(); builds the guest's image, if it has to be, to find out."""
    why = missing()
    if not why and subprocess.run([str(BUILD_GUEST)], stdout=sys.stderr).returncode:
        why = 'the guest cannot be built (packages come by apt: has "apt-get update" been run?)'
    return why


def clean_up_on_term():
    """A test that is ended from outside leaves no namespace and no guest behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def main_of(test):
    """Runs a test program: its exit status is 77 where it cannot run, but CI has the tools."""
    clean_up_on_term()
    why = missing_guest()
    if why:
        print(f'SKIPPED, nothing was tested: {why}')
        sys.exit(1 if why.startswith('no tshark') and os.environ.get('CI') else SKIP)
    test(sys.argv[1:])


class Proc:
    """A program in the namespace; a thread collects its output."""

    def __init__(self, net, argv, **kw):
        self.argv = [str(a) for a in argv]
        self.text, self.ended = '', False
        self.changed = threading.Condition()
        self.popen = subprocess.Popen(['ip', 'netns', 'exec', net.name, *self.argv],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      stdin=kw.pop('stdin', subprocess.DEVNULL), text=True,
                                      errors='replace', **kw)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.popen.stdout:
            with self.changed:
                self.text += line
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def output(self):
        with self.changed:
            return self.text

    def wait_line(self, pattern, timeout=30):
        """Waits for output that matches (whole lines are seen); returns the match."""
        rx = re.compile(pattern, re.M)
        with self.changed:
            self.changed.wait_for(lambda: self.ended or rx.search(self.text), timeout)
            m = rx.search(self.text)
            if not m:
                raise Fault(f'{self.argv[0]}: {"ended" if self.ended else "no output"} before '
                            f'{pattern!r}\n{self.text}')
            return m

    def wait(self, timeout=60):
        """Waits for the end; returns the exit status."""
        rc = self.popen.wait(timeout)
        self.reader.join(timeout)
        return rc

    def stop(self, sig=signal.SIGTERM, timeout=10):
        """Ends it, by force after the timeout; returns the exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(sig)
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return self.wait()


class Capture:
    """tcpdump on one device of the namespace, from when the object exists.

    The snapshot is a frame and no more: the kernel's ring has slots of that size, and with
    tcpdump's own 256 KiB only 500 of them, which is too few when tcpdump has to wait for a CPU.
    """

    def __init__(self, net, dev, path, expression='udp port 4791'):
        self.path = pathlib.Path(path)
        self.proc = Proc(net, ['tcpdump', '-Z', 'root', '-q', '-i', dev, '-s', net.mtu + 64,
                               '-B', '131072', '--immediate-mode', '-U', '-w', self.path,
                               expression])
        self.dropped = 0
        self.proc.wait_line('listening on')

    def stop(self):
        self.proc.stop(signal.SIGINT)
        m = re.search(r'(\d+) packets? dropped by kernel', self.proc.output())
        self.dropped = int(m.group(1)) if m else 0

    def names(self, sources=()):
        """How many RoCE frames of each opcode, a Counter by name."""
        return icrc_check.check(self.path, set(sources), lambda text: None)[3]

    def check(self, sources=(), tshark=True):
        """Raises Fault if a RoCE frame (of these sources) has a fault; returns how many."""
        lines = []
        seen, faults, _, _ = icrc_check.check(self.path, set(sources), lines.append)
        if faults:
            raise Fault('\n'.join(lines[:20]))
        if self.dropped > seen // 100:
            raise Fault(f'{self.dropped} frames are not in the capture, {seen} are')
        if tshark:
            lines = self.tshark_faults(sources)
            if lines:
                raise Fault('tshark: ' + '\n'.join(lines[:20]))
        return seen

    def tshark_faults(self, sources=()):
        """What Wireshark's dissector finds malformed up to the transport headers."""
        want = '_ws.malformed || _ws.expert.severity == "Error"'
        if sources:
            src = ' || '.join(f'{"ipv6" if ":" in s else "ip"}.src == {s}' for s in sources)
            want = f'({want}) && ({src})'
        p = sh('tshark', '-n', '-r', self.path, '-Y', want, '-T', 'fields', '-e', 'frame.number',
               '-e', 'infiniband.bth.opcode', '-e', '_ws.expert.message',
               '-o', 'udp.ignore_ipv6_zero_checksum:TRUE',    # RoCE's, RFC 6936
               *payload_guessers())
        return p.stdout.splitlines()


def payload_guessers():
    """Options that turn off tshark's guesses at payload, which is arbitrary in our tests."""
    out = sh('tshark', '-G', 'heuristic-decodes').stdout
    guesses = {f[1] for f in (line.split('\t') for line in out.splitlines())
               if f[0] == 'infiniband.payload'} - {'ethertype'}
    return [a for g in sorted(guesses) for a in ('--disable-protocol', g)] + \
        ['--disable-heuristic', 'eth_over_ib']


class Guest:
    """A guest machine with rxe and siw. Commands run with bash, as root."""

    def __init__(self, net, index, links='rxe', **opts):
        self.net, self.index, self.name = net, index, f'g{index}'
        self.ip, self.ip6 = guest_ip(index), guest_ip6(index)
        self.mac = f'52:54:00:00:00:{2 + index:02x}'
        self.tap = f'tap{index}'
        self.env = dict(os.environ, SOFTRNIC_PEER_STATE=str(net.work / 'state'))
        net.ip('tuntap', 'add', self.tap, 'mode', 'tap')
        net.enslave(self.tap)
        extra = [a for k, v in opts.items() for a in (f'--{k}', str(v))]
        sh(RUN_GUEST, 'start', self.name, '--tap', self.tap, '--netns', net.name, '--ip',
           f'{self.ip}/24', '--ip6', f'{self.ip6}/64', '--mac', self.mac, '--mtu', net.mtu,
           '--links', links, *extra, env=self.env, timeout=120)
        if links in ('rxe', 'both'):
            self.watch_icrc()

    def run(self, script, timeout=60, check=True):
        """Runs a script, returns CompletedProcess; raises Fault on failure if check."""
        p = sh(RUN_GUEST, 'exec', self.name, '-t', timeout, '--', script, check=False,
               env=self.env, timeout=timeout + 30)
        if check and p.returncode:
            raise Fault(f'{self.name}: {script}: status {p.returncode}\n{p.stdout}{p.stderr}')
        return p

    def spawn(self, script, listen=None, tag='bg', timeout=20):
        """Starts a script in the background; waits for it to listen on a TCP port."""
        start = f': >/tmp/{tag}.log; {{ {script}\n}} >>/tmp/{tag}.log 2>&1 & echo $! >/tmp/{tag}.pid'
        if listen is not None:
            start += (f'\nn=0; until grep -q "listening on {listen}" /tmp/{tag}.log || '
                      f'grep -qiE ":{listen:04x} [0-9a-f:]+ 0A" /proc/net/tcp /proc/net/tcp6; do '
                      f'n=$((n + 1)); [ $n -lt {timeout * 20} ] || exit 1; usleep 50000; done')
        self.run(start, timeout=timeout + 40)

    def wait(self, tag='bg', timeout=60):
        """Waits for a spawned script to end; returns its output."""
        return self.run(f'n=0; while kill -0 $(cat /tmp/{tag}.pid) 2>/dev/null; do n=$((n + 1)); '
                        f'[ $n -lt {timeout * 20} ] || exit 1; usleep 50000; done; '
                        f'cat /tmp/{tag}.log', timeout=timeout + 5).stdout

    def log(self, tag='bg'):
        return self.run(f'cat /tmp/{tag}.log').stdout

    def put(self, src, dst):
        sh(RUN_GUEST, 'put', self.name, src, dst, env=self.env, timeout=150)

    def counters(self):
        """rxe's hardware counters and the kernel's UDP ones, as a dict of ints."""
        out = self.run('cd /sys/class/infiniband/rxe0/ports/1/hw_counters && '
                       'for f in *; do echo $f $(cat $f); done; '
                       "awk '/^Udp:/ { print \"udp_in\", $2; print \"udp_errors\", $4 }' "
                       '/proc/net/snmp | tail -2').stdout
        return {k: int(v) for k, v in (line.split() for line in out.splitlines())}

    def dmesg(self, pattern):
        """Kernel log lines that match (extended regular expression)."""
        return self.run(f"dmesg | grep -E '{pattern}' || true").stdout.splitlines()

    def watch_icrc(self):
        """Starts to count frames with a bad ICRC, by a return probe on rxe's check.

        rxe drops them without a counter and (6.1.0-57) without a word in the log.
        """
        self.run("cd /sys/kernel/tracing || exit; [ -e kprobe_events ] || "
                 "mount -t tracefs tracefs . || exit; cd /sys/kernel/tracing; "
                 "echo 'r:icrc rxe_icrc_check bad=$retval:s32' >kprobe_events && "
                 "echo 'bad != 0' >events/kprobes/icrc/filter && echo 1 >events/kprobes/icrc/enable")

    def bad_icrc(self):
        """How many frames with a bad ICRC came since watch_icrc()."""
        return int(self.run('grep -c "icrc:.*bad=" /sys/kernel/tracing/trace || true').stdout)

    def gid(self, address):
        """Index in rxe0's GID table of this address (IPv4 or IPv6)."""
        out = self.run('cd /sys/class/infiniband/rxe0/ports/1/gids && grep . * 2>/dev/null').stdout
        for line in out.splitlines():
            index, gid = line.split(':', 1)
            if icrc_check.ipaddress.IPv6Address(gid) == gid_of(address):
                return int(index)
        raise Fault(f'{self.name}: no GID for {address}')

    def stop(self):
        sh(RUN_GUEST, 'stop', self.name, env=self.env, check=False)


def gid_of(address):
    """The GID of an address: itself, or ::ffff:a.b.c.d."""
    return icrc_check.ipaddress.IPv6Address(address if ':' in address else f'::ffff:{address}')


class Net:
    """The namespace, its bridge and all that stands on it; a context manager."""

    def __init__(self, name='net', mtu=1500, keep=False):
        self.name = f'rn-interop-{name}-{os.getpid()}'
        self.mtu, self.keep = mtu, keep
        self.guests, self.procs, self.captures = [], [], []

    def __enter__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix='rn-interop-'))
        sh('ip', 'netns', 'add', self.name)
        try:
            self.setup()
        except BaseException:
            self.__exit__()
            raise
        return self

    def setup(self):
        # arp_ignore: a port of ours must not answer for br0's address. IPv6 is on
        # for br0 alone, so that ports send nothing of their own.
        self.exec('sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=1',
                  'net.ipv6.conf.default.disable_ipv6=1', 'net.ipv6.conf.default.accept_dad=0')
        self.ip('link', 'set', 'lo', 'up')
        # A fixed address: a bridge's own changes with its ports.
        self.ip('link', 'add', 'br0', 'address', '52:54:00:00:00:fe', 'type', 'bridge',
                'forward_delay', '0', 'mcast_snooping', '0')
        self.ip('link', 'set', 'br0', 'mtu', str(self.mtu), 'up')
        self.exec('sysctl', '-qw', 'net.ipv6.conf.br0.disable_ipv6=0')
        self.ip('addr', 'add', f'{CONTROL_IP}/24', 'dev', 'br0')
        self.ip('addr', 'add', f'{CONTROL_IP6}/64', 'dev', 'br0', 'nodad')

    def __exit__(self, *exc):
        with contextlib.ExitStack() as stack:   # all of it, whatever fails
            stack.callback(self.remove)
            for x in self.guests + self.captures + self.procs:
                stack.callback(x.stop)
        return False

    def remove(self):
        sh('ip', 'netns', 'del', self.name, check=False)
        if self.keep:
            print(f'kept: {self.work}', file=sys.stderr)
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def ip(self, *args, check=True):
        return sh('ip', '-n', self.name, *args, check=check)

    def exec(self, *args, **kw):
        """Runs a command in the namespace and waits for it."""
        return sh('ip', 'netns', 'exec', self.name, *args, **kw)

    def spawn(self, argv, **kw):
        """Starts a program in the namespace; a Proc, ended with the Net."""
        p = Proc(self, argv, **kw)
        self.procs.append(p)
        return p

    def enslave(self, dev):
        """Puts a device on the bridge, up and with the network's MTU."""
        self.ip('link', 'set', dev, 'mtu', str(self.mtu), 'master', 'br0', 'up')

    def veth(self, dev='rnic0'):
        """A port of ours: a veth whose other end is on the bridge. For af_packet, af_xdp."""
        far = f'{dev}-br'
        self.ip('link', 'add', dev, 'mtu', str(self.mtu), 'type', 'veth', 'peer', 'name', far)
        self.ip('link', 'set', dev, 'up')
        self.enslave(far)
        if shutil.which('ethtool'):
            for d in (dev, far):    # frames with checksums in them, and none over the MTU
                self.exec('ethtool', '-K', d, 'tx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off',
                          check=False)
        return dev

    def adopt(self, dev):
        """Puts a tap that a program has made (net_tap) on the bridge, its port started.

        The kernel device gets another address than the PMD has: what is sent to the
        address of a bridge's port ends in the bridge.
        """
        self.ip('link', 'set', dev, 'address', '52:54:00:00:01:01')
        self.enslave(dev)
        return dev

    def inject(self, dev, frame):
        """Sends one Ethernet frame, as it is, out of a device."""
        self.exec(sys.executable, '-c', 'import socket, sys\n'
                  's = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n'
                  's.bind((sys.argv[1], 0))\ns.send(bytes.fromhex(sys.argv[2]))',
                  dev, frame.hex())

    def guest(self, links='rxe', **opts):
        """Boots the next guest; opts are run-guest's long options."""
        g = Guest(self, len(self.guests), links, **opts)
        self.guests.append(g)
        return g

    def capture(self, dev, expression='udp port 4791'):
        c = Capture(self, dev, self.work / f'cap{len(self.captures)}.pcap', expression)
        self.captures.append(c)
        return c


def af_packet(dev, mtu=1500, index=0):
    """devargs of the af_packet PMD for a device and an MTU (see README.md)."""
    frame = 2048 if mtu <= 1500 else 8192
    return f'net_af_packet{index},iface={dev},framesz={frame},blocksz={max(4096, frame)},framecnt=512'


def tap(dev='dtap0', index=0, mac='52:54:00:00:00:01'):
    """devargs of the tap PMD, which makes the device: Net.adopt() it then. MTU 1500 only."""
    return f'net_tap{index},iface={dev},mac={mac}'


def hold(args):
    """The command: a network by hand, until interrupted."""
    with Net('hand', mtu=args.mtu) as net:
        for _ in range(args.guests):
            net.guest(links=args.links)
        if args.port:
            net.veth(args.port)
        print(f'namespace {net.name}: bridge br0 {CONTROL_IP} {CONTROL_IP6}, MTU {net.mtu}')
        for g in net.guests:
            print(f'guest {g.ip} {g.ip6} on {g.tap}; commands: SOFTRNIC_PEER_STATE='
                  f'{net.work}/state {RUN_GUEST} exec {g.name} COMMAND')
        if args.port:
            print(f'our port: --vdev={af_packet(args.port, net.mtu)}')
        print('Ctrl-C ends it', flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


def main():
    ap = argparse.ArgumentParser(description='hold a network of peer guests up, for work by hand')
    ap.add_argument('--mtu', type=int, default=1500, help='4200 for an IB path MTU of 4096')
    ap.add_argument('--guests', type=int, default=1)
    ap.add_argument('--links', default='rxe', choices=('rxe', 'siw', 'both', 'none'))
    ap.add_argument('--port', default='rnic0', help="our port's veth; '' for none")
    args = ap.parse_args()
    clean_up_on_term()
    why = missing_guest()
    if why:
        print(f'interop.py: {why}', file=sys.stderr)
        return SKIP
    hold(args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
