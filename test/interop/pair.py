# SPDX-License-Identifier: BSD-3-Clause
"""rnicd on a port of the network, and one transfer at a time between its clients and a guest.

    with interop.Net('mine', mtu=4200) as net:
        pair = Pair(net, Programs(*sys.argv[1:5]))
        pair.pingpong('client', 'v6', 5001)
        pair.ops('initiator', 'server', 'v4', ['write:65537', 'fadd'])
        pair.fails('responder', 'toolong')

Roles are ours: 'client' made the TCP connection, 'initiator' has the operations. The time
limits end a test that hangs; they say nothing about the time that something may take.
"""
import collections
import json
import re
import signal

import interop

LIMIT = 300     # seconds; a guest without KVM on a busy host does some 4 MB/s
PORT = 18515
PATIENT = ('-t', '17')  # 8 times 0.5 s: a busy host's guest is paused for more than 8 times 67 ms

Programs = collections.namedtuple('Programs', 'rnicd rnicctl pingpong ops')

# The status an operation that must fail ends with: at our initiator against rxe's
# responder, and at rxe's against ours. Where they differ it is rxe that departs from the IBTA
# (docs/wire.md): a too long SEND is NAKed 0x63 by it, 0x61 by us; a SEND that invalidates a
# bad key is acknowledged by it, NAKed 0x62 by us.
ACCESS = ('remote access error',) * 2
FAILURES = {
    'badkey-write': ACCESS, 'badkey-read': ACCESS, 'badkey-fadd': ACCESS,
    'badvar-write': ACCESS, 'badvar-read': ACCESS,
    'oob-write:4096': ACCESS, 'oob-read:64': ACCESS,
    'noperm-write': ACCESS, 'noperm-read': ACCESS, 'noperm-fadd': ACCESS,
    'toolong': ('remote operation error', 'remote invalid request error'),
    'rnrfail': ('RNR retry counter exceeded',) * 2,
    'badinv': ('success', 'remote access error'),
    'unaligned': ('remote invalid request error', None),    # rxe lets nobody post it
    'mwwrite:64 sendinv:0 stale-write': ACCESS,
}


class Rnicd:
    """The daemon in the network's namespace, ready when the object is."""

    def __init__(self, net, programs, dev, ips, name='rnicd'):
        self.net, self.programs, self.port = net, programs, dev
        self.socket = net.work / f'{name}.sock'
        spec = interop.af_packet(dev, net.mtu).split(',', 2)[2]
        self.proc = net.spawn([programs.rnicd, '--no-huge', '--no-telemetry', '--socket',
                               self.socket, '--port', f'af_packet:{dev},mtu={net.mtu},{spec},' +
                               ','.join(f'ip={a}' for a in ips)])
        self.proc.wait_line('is ready', LIMIT)

    def ctl(self, *args):
        return self.net.exec(self.programs.rnicctl, '--json', '-s', self.socket, *args).stdout

    def show(self, kind):
        return json.loads(self.ctl('show', kind))

    def counter(self, name):
        return sum(w.get(name, 0) for w in self.show('counters'))

    def stop(self):
        """Ends it; Fault unless it goes in order."""
        rc = self.proc.stop(timeout=LIMIT)
        if rc:
            raise interop.Fault(f'rnicd: status {rc}\n{self.proc.output()}')


class Pair:
    """A guest with rxe, rnicd, and the addresses of both."""

    def __init__(self, net, programs, ips=()):
        self.net, self.programs = net, programs
        self.path_mtu = 4096 if net.mtu >= 4200 else 1024
        self.dev = net.veth('rnic0')
        self.rnicd = Rnicd(net, programs, self.dev,
                           (f'{interop.OUR_IP}/24', f'{interop.OUR_IP6}/64', *ips))
        self.guest = net.guest()
        self.gid = {'v4': self.guest.gid(self.guest.ip), 'v6': self.guest.gid(self.guest.ip6)}
        self.ours = {'v4': interop.OUR_IP, 'v6': interop.OUR_IP6}
        self.transfers = 0
        self.note = lambda text: None   # told of each transfer that was right

    def our_gid(self, family):
        """Index of our GID, an option of the programs."""
        port = self.rnicd.show('ports')[0]
        return next(k[3:] for k, v in port.items()
                    if k.startswith('gid') and v == self.ours[family])

    def start(self, program, *args):
        return self.net.spawn([program, '-S', self.rnicd.socket, *args])

    def judge(self, what, ours, guest_log):
        """Both programs have ended; guest_log has its exit status in the last line."""
        mine = ours.wait(LIMIT)
        if mine or not guest_log.rstrip().endswith('status 0'):
            raise interop.Fault(f'mtu {self.net.mtu}, {what}: status {mine}\n'
                                f'ours: {ours.output()}\nguest: {guest_log}\n'
                                f'rnicd: {self.rnicd.proc.output()}\n'
                                f'{self.rnicd.show("counters")}\n{self.guest.counters()}')

    def joined(self, ours, guest_script, server, tag='pp'):
        """Runs our program and the guest's; returns ours and the guest's output."""
        script = f'{guest_script}; echo status $?'
        if server:
            p = self.start(*ours)
            p.wait_line('^listening', LIMIT)
            return p, self.guest.run(script.replace('PEER', interop.CONTROL_IP),
                                     timeout=LIMIT).stdout
        self.guest.spawn(script.replace('PEER', ''), listen=PORT, tag=tag, timeout=LIMIT)
        p = self.start(*ours)
        if p.wait(LIMIT):   # the guest's may wait for ever
            return p, self.guest.log(tag)
        return p, self.guest.wait(tag, timeout=LIMIT)

    def pingpong(self, role, family, size, iters=None, ours=(), theirs='', transport='rc'):
        """rnic_pingpong against ibv_rc_pingpong or ibv_uc_pingpong."""
        iters = iters or (1 if size > 1 << 20 else 3)
        server = role == 'server'
        common = f'-n {iters} -s {size} -m {self.path_mtu}'
        mine = [self.programs.pingpong, '-c', *common.split(), *PATIENT,
                '-g', self.our_gid(family), *ours, *(['-u'] if transport == 'uc' else [])]
        guest = f'ibv_{transport}_pingpong -g {self.gid[family]} {common} {theirs} PEER'
        p, log = self.joined(mine + ([] if server else [self.guest.ip]), guest, server)
        self.judge(f'{transport} pingpong as {role}, {family}, {size} bytes', p, log)
        self.transfers += 1
        self.note(f'pingpong of {size} bytes, {iters} times')

    def ops(self, role, tcp, family, ops, ours=(), theirs=''):
        """rnic_ops against peer-qp. Every byte is compared on both sides."""
        server, initiator = tcp == 'server', role == 'initiator'
        common = f'-M {self.path_mtu} {" ".join(PATIENT)}'
        mine = [self.programs.ops, *common.split(), '-g', self.our_gid(family), *ours]
        mine += ['-s'] if server else ['-c', self.guest.ip]
        guest = f'peer-qp {common} -g {self.gid[family]} {theirs} '
        guest += '-c PEER ' if server else '-s '
        if initiator:
            mine += ops
        else:
            guest += ' '.join(ops)
        p, log = self.joined(mine, guest, server, tag='qp')
        self.judge(f'{" ".join(ops)} as {role} and TCP {tcp}, {family}', p, log)
        self.transfers += len(ops)
        for op in ops:
            self.note(op)
        return p.output() if initiator else log

    def fails(self, role, op, tcp='client', family='v4'):
        """An operation that must fail (the last of several), and with which status."""
        text = self.ops(role, tcp, family, op.split())
        want = FAILURES[op][role != 'initiator']
        m = re.search(rf'^op {re.escape(op.split()[-1])}: (.*)$', text, re.M)
        if not m or m.group(1) != want:
            raise interop.Fault(f'{op} as {role}: wanted "{want}"\n{text}')
