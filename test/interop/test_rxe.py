#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rnicd and librnic programs against rdma_rxe in a guest, RC without a connection manager.

usage: test_rxe.py RNICD RNICCTL RNIC_PINGPONG RNIC_OPS [brief|matrix] [--log FILE] [MTU...]

rnic_pingpong against ibv_rc_pingpong and rnic_ops against peer-qp, each side as server and as
client and as initiator and as responder, IPv4 and IPv6, path MTU 1024 and 4096. Every frame
of ours is checked (icrc_check, tshark) and rxe's kernel must not have seen a bad ICRC.
brief is what CI runs: 60 transfers. matrix is all of it, case by case; a case that fails does
not keep the others from running. With --log each case and transfer is noted in FILE, and a run
of the same programs that was ended, or in which a case failed, goes on with what is left.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import time

import interop
from pair import FAILURES, LIMIT, PORT, Pair, Programs

MAX_BRIEF = 60
BIG = 8 << 20
ROLES = [(role, family) for role in ('server', 'client') for family in ('v4', 'v6')]


def brief_sizes(m):
    """Three sizes for each role and family; m is the path MTU."""
    return dict(zip(ROLES, ((1, m, BIG), (3, m + 1, 65535), (5, m - 1, 1048577),
                            (2, 2 * m + 3, BIG - 1))))


def all_sizes(m):
    return (1, 2, 3, 4, 5, 63, m - 1, m, m + 1, 2 * m - 1, 2 * m, 2 * m + 3, 4099, 65535, 65537,
            262147, 1048577, 4194302, BIG - 1, BIG)


# role, side of the TCP connection, family, operations
BRIEF_OPS = (('initiator', 'client', 'v4', 'write:65537 cas writeimm:5003:solicited'),
             ('initiator', 'server', 'v6', 'copy:65539*2 fadd sendimm:61:inline:solicited'),
             ('responder', 'client', 'v6', 'write:65537 cas writeimm:5003:solicited'),
             ('responder', 'server', 'v4', 'copy:65539*2 fadd sendimm:61:inline:solicited'))
# Of one MTU, since no packet of theirs depends on it.
BRIEF_KEYS = {1500: (('initiator', 'client', 'v4', 'mwwrite:64 sendinv:5'),
                     ('responder', 'client', 'v6', 'mwwrite:64 sendinv:5')), 4200: ()}
BRIEF_UC = {1500: ('server', 'v6'), 4200: ('client', 'v4')}
BRIEF_FAILURES = {1500: (('initiator', 'badkey-write'), ('responder', 'oob-write:4096')),
                  4200: (('initiator', 'rnrfail'), ('responder', 'toolong'))}

ALL_OPS = ('send:64 send:0 send:61 sendimm:32 sendimm:0 write:256 write:0 write:3 writeimm:100 '
           'writeimm:0 read:200 read:0 read:1 cas casmiss fadd send:2500 sendimm:5001 write:4096 '
           'write:4097 writeimm:3000 read:5000 read:65536 write:65536*8 send:64*32 read:1000*16 '
           'write:1*64 fadd*16 cas*8 mwwrite:3000 sendinv:64 mwwrite:64 sendinv:0 rnr:20 '
           'write:1:inline write:256:inline send:61:inline*32 sendimm:0:inline '
           'writeimm:255:inline*8 copy:1 copy:3001*8 copy:65537*4 '
           'send:64:solicited send:64:unsolicited sendimm:5:inline:solicited '
           'writeimm:5003:solicited*8 sendimm:2503:unsolicited*8 send:0:solicited '
           'send:65535 write:1048577 read:1048577 writeimm:8388607 read:8388608').split()
OPS = {'initiator': ALL_OPS, 'responder': ALL_OPS}
LARGE = ('-l', 16 << 20)    # for the last of them
MEMORY = {'mapped': ('-F',), 'private': ('-P',), 'arena': ()}


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
        return self

    def __exit__(self, kind, *_):
        self.cap.stop()
        if kind:
            return
        if self.cap.dropped:
            raise interop.Fault(f'{self.what}: {self.cap.dropped} frames were not captured')
        frames = self.cap.check(sources=[interop.OUR_IP, interop.OUR_IP6])
        bad = self.pair.guest.bad_icrc()
        if bad:
            raise interop.Fault(f'{self.what}: the guest saw {bad} frames with a bad ICRC')
        self.cap.path.unlink()
        self.verdict = (f'{self.pair.transfers - self.count} transfers, {frames} frames of ours '
                        f'without a fault, {time.monotonic() - self.started:.0f} s')
        print(f'mtu {self.pair.net.mtu}: {self.what}: {self.verdict}', flush=True)


def brief(pair):
    echo_and_neighbours(pair)
    with Checked(pair, 'pingpong'):
        for (role, family), sizes in brief_sizes(pair.path_mtu).items():
            for size in sizes:
                pair.pingpong(role, family, size)
        pair.pingpong(*BRIEF_UC[pair.net.mtu], pair.path_mtu + 1, transport='uc')
    with Checked(pair, 'operations'):
        for role, tcp, family, ops in BRIEF_OPS + BRIEF_KEYS[pair.net.mtu]:
            pair.ops(role, tcp, family, ops.split())
        for role, op in BRIEF_FAILURES[pair.net.mtu]:
            pair.fails(role, op)


def can(role, op):
    """rxe lets nobody post an unaligned atomic."""
    return FAILURES[op][role != 'initiator'] is not None


def pingpongs(pair, role, family):
    for size in all_sizes(pair.path_mtu):
        pair.pingpong(role, family, size)


def uc_pingpongs(pair, role, family):
    """Nothing is sent again: sizes that no queue on the way is too short for."""
    for size in (1, pair.path_mtu, pair.path_mtu + 1, 3 * pair.path_mtu, 16000):
        pair.pingpong(role, family, size, transport='uc')


def sleeping_pingpongs(pair, role):
    """Both sides sleep on completion events."""
    for family, size in (('v4', 1), ('v6', pair.path_mtu + 1), ('v4', 65537), ('v6', 1048577)):
        pair.pingpong(role, family, size, ours=('-e',), theirs='-e')


def operations(pair, role, tcp, family, memory):
    pair.ops(role, tcp, family, OPS[role], ours=(*LARGE, *MEMORY[memory]),
             theirs=' '.join(map(str, LARGE)))


def failures(pair, role, family):
    for op in filter(lambda o: can(role, o), FAILURES):
        pair.fails(role, op, family=family)


def cases():
    """The matrix of one MTU: name and what to do with a pair."""
    yield 'ARP, neighbour discovery, echo of IPv4 and IPv6', echo_and_neighbours
    for role, family in ROLES:
        yield (f'pingpong, ours the {role}, {family}',
               lambda p, r=role, f=family: pingpongs(p, r, f))
    for role, family in ROLES:
        yield (f'UC pingpong, ours the {role}, {family}',
               lambda p, r=role, f=family: uc_pingpongs(p, r, f))
    for role in ('server', 'client'):
        yield f'pingpong by events, ours the {role}', lambda p, r=role: sleeping_pingpongs(p, r)
    for role in ('initiator', 'responder'):
        for memory in MEMORY:
            for tcp, family in ROLES:
                if memory != 'arena' or tcp == 'server':
                    yield (f'operations, ours the {role}, TCP {tcp}, {family}, {memory} memory',
                           lambda p, a=(role, tcp, family, memory): operations(p, *a))
        for family in ('v4', 'v6'):
            yield (f'operations that must fail, ours the {role}, {family}',
                   lambda p, r=role, f=family: failures(p, r, f))
    yield 'the peer dies', dead_guest
    yield 'our client dies', dead_client


class Log:
    """What has been run, in a file that a later run goes on with. Without one: nothing is kept."""

    def __init__(self, path, programs):
        self.path, self.done, self.failed = path and pathlib.Path(path), set(), []
        ident = hashlib.sha256(b''.join(pathlib.Path(p).read_bytes() for p in programs)).hexdigest()
        if self.path and self.path.exists():
            lines = self.path.read_text().splitlines()
            if f'programs: {ident}' in lines and 'end: 0 failed' not in lines:
                self.done = {x[3:].rsplit(': ', 1)[0] for x in lines if x.startswith('ok ')}
                self.add(f'resumed: {len(self.done)} cases are done; tests of {commit()}')
                return
            self.path.unlink()
        self.add('SPDX-License-Identifier: BSD-3-Clause\n'
                 "rnicd and librnic's programs against rdma_rxe: test_rxe.py matrix")
        self.add(f'commit: {commit()}\nmachine: {machine()}\nprograms: {ident}')

    def add(self, text):
        if self.path:
            with self.path.open('a') as f:
                f.write(text + '\n')

    def failure(self, case, why):
        self.failed.append(case)
        self.add(f'FAILED {case}')
        print(f'FAILED {case}: {why}', flush=True)


def commit():
    p = subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(interop.HERE), 'describe',
                        '--always', '--dirty', '--abbrev=40'], capture_output=True, text=True,
                       check=False)
    return p.stdout.strip() or 'unknown'


def machine():
    """In general words: what a reader needs to judge the times."""
    version = interop.sh('qemu-system-x86_64', '--version').stdout.split('\n')[0]
    return (f'{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}, Linux '
            f'{".".join(os.uname().release.split(".")[:2])}, {version} without KVM')


def one(pair, case, do, log):
    """One case under a capture; each transfer is noted."""
    pair.note = lambda text: log.add(f'   {text}')
    with Checked(pair, case.split(': ', 1)[1]) as checked:
        do(pair)
    log.add(f'ok {case}: {checked.verdict}')


def matrix(programs, mtus, log):
    """All cases. After one that failed the network is made anew."""
    left = [(f'MTU {mtu}: {name}', mtu, do) for mtu in mtus for name, do in cases()]
    left = [x for x in left if x[0] not in log.done]
    while left:
        mtu = left[0][1]
        with interop.Net('rxe', mtu=mtu) as net:
            pair = Pair(net, programs)
            while left and left[0][1] == mtu:
                case, _, do = left.pop(0)
                try:
                    one(pair, case, do, log)
                except (interop.Fault, RuntimeError, subprocess.TimeoutExpired) as why:
                    log.failure(case, why)
                    break
            else:
                log.add(f"   rxe's counters: {pair.guest.counters()}")
                pair.rnicd.stop()
    log.add(f'end: {len(log.failed)} failed')
    if log.failed:
        raise interop.Fault(f'{len(log.failed)} cases failed: {log.failed}')


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


def in_brief(programs, mtus):
    total = 0
    for mtu in mtus:
        with interop.Net('rxe', mtu=mtu) as net:
            pair = Pair(net, programs)
            brief(pair)
            print(f'mtu {mtu}: rxe\'s counters: {pair.guest.counters()}', flush=True)
            pair.rnicd.stop()
            total += pair.transfers
    print(f'{total} transfers: ok')
    if total > MAX_BRIEF:
        raise interop.Fault(f'CI has time for {MAX_BRIEF} transfers, not {total}')


def main(args):
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('programs', nargs=4)
    ap.add_argument('what', nargs='?', choices=('brief', 'matrix'), default='brief')
    ap.add_argument('mtu', nargs='*', type=int, default=[1500, 4200])
    ap.add_argument('--log')
    opts = ap.parse_intermixed_args(args)
    programs = Programs(*opts.programs)
    if opts.what == 'brief':
        in_brief(programs, opts.mtu)
    else:
        matrix(programs, opts.mtu, Log(opts.log, programs))


if __name__ == '__main__':
    interop.main_of(main)
