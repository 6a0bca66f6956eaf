#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our engine, in a process of its own, against rdma_rxe in a guest: RC without a connection
manager, both roles, each byte compared, each frame checked.

usage: test_wire.py RNIC-WIRE [KIND:MTU]...      (default af_packet:1500 af_packet:4200 tap:1500)
"""
import sys

import interop

# rxe's responder binds the windows; ours cannot yet.
OURS = ('send:64 send:0 send:61 sendimm:32 write:256 write:0 write:3 writeimm:100 read:200 read:0 '
        'cas casmiss fadd send:2500 sendimm:5001 write:4096 writeimm:3000 read:5000 read:65536 '
        'write:65536*8 send:64*32 read:1000*16 write:1*64 fadd*16 cas*8 mwwrite:3000 sendinv:64 '
        'rnr:20 send:0:inline write:32:inline sendimm:5:inline*8 copy:3001*8 send:65536').split()
THEIRS = [op for op in OURS if not op.startswith(('mwwrite', 'sendinv'))]
BAD = ('badkey-write badkey-read badkey-fadd badvar-write badvar-read oob-write:4096 '
       'oob-read:64 noperm-write noperm-read noperm-fadd toolong rnrfail').split()


LOSSY = 'write:65536*8 read:65536*4 send:3000*16 fadd*16 cas*4 writeimm:3000 read:200 send:65536'.split()
NETEM = 'loss 2% duplicate 1% delay 500us reorder 3%'


class Wire:
    """rnic-wire on a port of the network."""

    def __init__(self, net, exe, kind):
        self.net, self.exe, self.kind, self.n = net, exe, kind, 0
        if kind == 'af_packet':
            self.dev = net.veth('rnic0')
            self.vdev = interop.af_packet(self.dev, net.mtu)
        else:
            self.dev, self.vdev = 'dtap0', interop.tap('dtap0')

    def start(self, *args):
        self.n += 1
        p = self.net.spawn([self.exe, '--no-pci', '--no-huge', '-m', '512', '-l', '0',
                            '--no-telemetry', '--file-prefix', f'{self.net.name}-{self.n}',
                            f'--vdev={self.vdev}', '--', f'{interop.OUR_IP}/24,{interop.OUR_IP6}/64',
                            self.net.mtu, *args])
        p.wait_line('^ready ')
        if self.kind == 'tap':
            self.net.adopt(self.dev)
        return p

    def initiator(self, guest, ops, opts=(), gid=1, peer_opts=''):
        """Ours begins; the guest serves."""
        guest.spawn(f'peer-qp -s {peer_opts}; echo status $?', listen=18515)
        p = self.start('-c', guest.ip, *opts, '-g', gid, *ops)
        self.judge(p, guest.wait(timeout=120), ops)

    def responder(self, guest, ops, opts=(), peer_opts=''):
        p = self.start('-s', *opts)
        p.wait_line('^listening')
        log = guest.run(f'peer-qp -c {interop.CONTROL_IP} {peer_opts} {" ".join(ops)}; '
                        'echo status $?', check=False, timeout=120).stdout
        self.judge(p, log, ops)

    def judge(self, p, log, ops):
        rc = p.wait(120)
        if rc or 'status 0' not in log:
            raise interop.Fault(f'{" ".join(ops)}: status {rc}\nours: {p.output()}\nguest: {log}')


def lossy(net, guest, wire, opts):
    """What the guest sends is lost, doubled and mixed up: requests, answers, both roles."""
    guest.run(f'tc qdisc add dev eth0 root netem {NETEM}')
    before = guest.counters()
    # An emulated guest on a busy host pauses for longer than the usual timeout.
    wire.initiator(guest, LOSSY, (*opts, '-t', 16), peer_opts=' '.join(map(str, opts)))
    wire.responder(guest, LOSSY, opts, peer_opts=' '.join(map(str, (*opts, '-t', 16))))
    guest.run('tc qdisc del dev eth0 root')
    after = guest.counters()
    print(f'{wire.kind} mtu {net.mtu}: with loss: ok; rxe\'s counters:',
          {k: v - before[k] for k, v in after.items() if v != before[k]}, flush=True)


def run(exe, kind, mtu):
    path_mtu = 4096 if mtu >= 4200 else 1024
    m = ('-M', path_mtu)
    with interop.Net('wire', mtu=mtu) as net:
        guest = net.guest()
        wire = Wire(net, exe, kind)
        cap = net.capture(guest.tap)
        wire.initiator(guest, OURS, m, peer_opts=f'-M {path_mtu}')
        wire.responder(guest, THEIRS, m, peer_opts=f'-M {path_mtu}')
        gid6 = guest.gid(guest.ip6)
        wire.initiator(guest, OURS, m, gid=2, peer_opts=f'-M {path_mtu} -g {gid6}')
        print(f'{kind} mtu {mtu}: {len(OURS)} operations, both roles, IPv6: ok', flush=True)
        for op in BAD:
            wire.initiator(guest, [op])
            wire.responder(guest, [op])
        print(f'{kind} mtu {mtu}: {len(BAD)} operations that must fail, both roles: ok', flush=True)
        lossy(net, guest, wire, m)
        cap.stop()
        frames = cap.check(sources=[interop.OUR_IP, interop.OUR_IP6])
        if guest.bad_icrc():
            raise interop.Fault(f'{guest.bad_icrc()} frames with a bad ICRC')
        print(f'{kind} mtu {mtu}: {frames} frames of ours without a fault', flush=True)


def main(args):
    for case in args[1:] or ('af_packet:1500', 'af_packet:4200', 'tap:1500'):
        kind, mtu = case.split(':')
        run(args[0], kind, int(mtu))


if __name__ == '__main__':
    interop.main_of(main)
