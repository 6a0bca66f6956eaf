#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rnicd and librnic programs against rdma_rxe in a guest, RC without a connection manager.

usage: test_rxe.py RNICD RNICCTL RNIC_PINGPONG RNIC_OPS [brief|matrix] [MTU...]

rnic_pingpong against ibv_rc_pingpong and rnic_ops against peer-qp, each side as server and as
client and as initiator and as responder, IPv4 and IPv6, path MTU 1024 and 4096. Every frame
of ours is checked (icrc_check, tshark) and rxe's kernel must not have seen a bad ICRC.
brief is what CI runs: 60 transfers. matrix is all of it.
"""
import sys
import time

import interop
from pair import FAILURES, LIMIT, PORT, Pair, Programs

MAX_BRIEF = 60
BIG = 8 << 20
ROLES = [(role, family) for role in ('server', 'client') for family in ('v4', 'v6')]


def brief_sizes(m):
    """Four sizes for each role and family; m is the path MTU."""
    return dict(zip(ROLES, ((1, m, 4099, BIG), (3, m + 1, 2 * m - 1, 65535),
                            (5, m - 1, 7 * m + 2, 1048577), (2, 63, 2 * m + 3, BIG - 1))))


def all_sizes(m):
    return (1, 2, 3, 4, 5, 63, m - 1, m, m + 1, 2 * m - 1, 2 * m, 2 * m + 3, 4099, 65535, 65537,
            262147, 1048577, 4194302, BIG - 1, BIG)


# role, side of the TCP connection, family, operations
BRIEF_OPS = (('initiator', 'client', 'v4', 'write:65537 cas writeimm:5003'),
             ('initiator', 'server', 'v6', 'read:65539 fadd sendimm:61'),
             ('responder', 'client', 'v6', 'write:65537 cas writeimm:5003'),
             ('responder', 'server', 'v4', 'read:65539 fadd sendimm:61'))
BRIEF_FAILURES = {1500: (('initiator', 'badkey-write'), ('responder', 'oob-write:4096')),
                  4200: (('initiator', 'rnrfail'), ('responder', 'toolong'))}

ALL_OPS = ('send:64 send:0 send:61 sendimm:32 sendimm:0 write:256 write:0 write:3 writeimm:100 '
           'writeimm:0 read:200 read:0 read:1 cas casmiss fadd send:2500 sendimm:5001 write:4096 '
           'write:4097 writeimm:3000 read:5000 read:65536 write:65536*8 send:64*32 read:1000*16 '
           'write:1*64 fadd*16 cas*8 mwwrite:3000 sendinv:64 mwwrite:64 sendinv:0 rnr:20 '
           'send:65535 write:1048577 read:1048577 writeimm:8388607 read:8388608').split()
# The responder binds the windows: the engine has no bind request yet.
OPS = {'initiator': ALL_OPS,
       'responder': [op for op in ALL_OPS if not op.startswith(('mwwrite', 'sendinv'))]}
LARGE = ('-l', 16 << 20)    # for the last of them


def echo_and_neighbours(pair):
    """The guest resolves our addresses and pings them; we learn the guest's."""
    guest, mtu = pair.guest, pair.net.mtu
    mac = pair.net.exec('cat', f'/sys/class/net/{pair.dev}/address').stdout.strip()
    for ours, theirs, head in ((interop.OUR_IP, guest.ip, 28), (interop.OUR_IP6, guest.ip6, 48)):
        guest.run(f'ip neigh flush to {ours} dev eth0')
        for size in (0, 1, 56, mtu - head - 1, mtu - head):
            guest.run(f'ping -c 1 -W 30 -s {size} {ours}')
        seen = guest.run(f'ip neigh show {ours} dev eth0').stdout
        if mac not in seen:
            raise interop.Fault(f'{ours}: {mac} should be in: {seen}')
        known = {n['address']: n for n in pair.rnicd.show('neighbours')}
        if known.get(theirs, {}).get('mac', '').lower() != guest.mac:
            raise interop.Fault(f'{theirs} should have {guest.mac}: {known}')
    print(f'mtu {mtu}: ARP, neighbour discovery, echo of IPv4 and IPv6: ok', flush=True)


class Checked:
    """A capture around transfers: when they are over, every frame of ours is right."""

    def __init__(self, pair, what):
        self.pair, self.what = pair, what

    def __enter__(self):
        self.started, self.count = time.monotonic(), self.pair.transfers
        self.cap = self.pair.net.capture(self.pair.guest.tap)

    def __exit__(self, kind, *_):
        self.cap.stop()
        if kind:
            return
        frames = self.cap.check(sources=[interop.OUR_IP, interop.OUR_IP6])
        bad = self.pair.guest.bad_icrc()
        if bad:
            raise interop.Fault(f'{self.what}: the guest saw {bad} frames with a bad ICRC')
        self.cap.path.unlink()
        print(f'mtu {self.pair.net.mtu}: {self.what}: {self.pair.transfers - self.count} transfers, '
              f'{frames} frames of ours without a fault, {self.cap.dropped} not captured, '
              f'{time.monotonic() - self.started:.0f} s', flush=True)


def brief(pair):
    echo_and_neighbours(pair)
    with Checked(pair, 'pingpong'):
        for (role, family), sizes in brief_sizes(pair.path_mtu).items():
            for size in sizes:
                pair.pingpong(role, family, size)
    with Checked(pair, 'operations'):
        for role, tcp, family, ops in BRIEF_OPS:
            pair.ops(role, tcp, family, ops.split())
        for role, op in BRIEF_FAILURES[pair.net.mtu]:
            pair.fails(role, op)


def can(role, op):
    """rxe lets nobody post an unaligned atomic."""
    return FAILURES[op][role != 'initiator'] is not None


def matrix(pair):
    echo_and_neighbours(pair)
    for role, family in ROLES:
        with Checked(pair, f'pingpong, ours the {role}, {family}'):
            for size in all_sizes(pair.path_mtu):
                pair.pingpong(role, family, size)
    for role in ('initiator', 'responder'):
        for tcp, family in ROLES:
            with Checked(pair, f'operations, ours the {role}, TCP {tcp}, {family}'):
                large = ' '.join(map(str, LARGE))
                pair.ops(role, tcp, family, OPS[role], ours=LARGE, theirs=large)
        with Checked(pair, f'operations in private memory, ours the {role}'):
            pair.ops(role, 'client', 'v4', OPS[role][:-4], ours=('-P',))
        for family in ('v4', 'v6'):
            with Checked(pair, f'operations that must fail, ours the {role}, {family}'):
                for op in filter(lambda o: can(role, o), FAILURES):
                    pair.fails(role, op, family=family)
    with Checked(pair, 'peers that die'):
        dead_guest(pair)
        dead_client(pair)


def dead_guest(pair):
    """The guest's program is killed under traffic: our retries run out."""
    pair.guest.spawn(f'exec peer-qp -s -r 8 -M {pair.path_mtu}', listen=PORT, tag='qp')
    p = pair.start(pair.programs.ops, '-c', pair.guest.ip, '-b', '-n', 1000000, '-M',
                   pair.path_mtu, 'write:4096')
    p.wait_line('^op write:4096: success')
    pair.guest.run('kill -9 $(cat /tmp/qp.pid)')
    rc = p.wait(LIMIT)
    if rc != 1 or 'op write:4096: transport retry counter exceeded' not in p.output():
        raise interop.Fault(f'dead guest: status {rc}\n{p.output()[-2000:]}')
    pair.transfers += 1


def dead_client(pair):
    """Our program is killed under traffic: rxe's retries run out, the daemon lives.

    rxe takes a retry_cnt of 7 for endless.
    """
    p = pair.start(pair.programs.ops, '-s', '-r', 8, '-M', pair.path_mtu)
    p.wait_line('^listening')
    pair.guest.spawn(f'exec peer-qp -c {interop.CONTROL_IP} -b -n 1000000 -y 3 '
                     f'-M {pair.path_mtu} write:4096', tag='qp')
    pair.guest.run('until grep -q "op write:4096: success" /tmp/qp.log; do usleep 50000; done')
    p.popen.kill()
    log = pair.guest.wait('qp')
    if 'op write:4096: transport retry counter exceeded' not in log:
        raise interop.Fault(f'dead client: {log[-2000:]}')
    pair.rnicd.ctl('ping')
    pair.transfers += 1


def main(args):
    programs, args = Programs(*args[:4]), args[4:]
    what = args.pop(0) if args and args[0] in ('brief', 'matrix') else 'brief'
    total = 0
    for mtu in map(int, args or ('1500', '4200')):
        with interop.Net('rxe', mtu=mtu) as net:
            pair = Pair(net, programs)
            {'brief': brief, 'matrix': matrix}[what](pair)
            print(f'mtu {mtu}: rxe\'s counters: {pair.guest.counters()}', flush=True)
            pair.rnicd.stop()
            total += pair.transfers
    print(f'{total} transfers: ok')
    if what == 'brief' and total > MAX_BRIEF:
        raise interop.Fault(f'CI has time for {MAX_BRIEF} transfers, not {total}')


if __name__ == '__main__':
    interop.main_of(main)
