#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The connection manager against Linux's: rdmacm-utils in a guest with rdma_rxe.

usage: test_cm.py RNICD RNICCTL RNIC_PINGPONG RNIC_OPS RNIC_RPING [MTU...]

rnic_rping against rping, each as server and as client, IPv4 and IPv6, every byte compared by
the client; a port that nobody listens on, from either side; rping killed while it is connected.
Every frame of ours is checked (icrc_check, tshark).
"""
import sys

import interop
from pair import LIMIT, Pair, Programs
from test_rxe import Checked

PORT = 7174
PINGS = 10


def ours(pair, *args):
    return pair.net.spawn([RPING, '-u', pair.rnicd.socket, '-v', *args])


def done(pair, what, proc, log):
    status = proc.wait(LIMIT)
    if status or not log.rstrip().endswith('status 0'):
        raise interop.Fault(f'{what}: status {status}\nours: {proc.output()}\nguest: {log}\n'
                            f'{pair.rnicd.show("cm")}\n{pair.rnicd.show("connections")}\n'
                            f'{pair.rnicd.show("counters")}')
    pair.transfers += 1


def serve(pair, family, size):
    """rping is the client: it verifies."""
    address = pair.ours[family]
    proc = ours(pair, '-s', '-a', address, '-p', str(PORT))
    proc.wait_line('^listening', LIMIT)
    log = pair.guest.run(f'rping -c -a {address} -p {PORT} -C {PINGS} -S {size} -V; '
                         'echo status $?', timeout=LIMIT).stdout
    done(pair, f'server, {family}, {size} bytes', proc, log)


def ask(pair, family, size):
    """rping is the server."""
    address = {'v4': pair.guest.ip, 'v6': pair.guest.ip6}[family]
    pair.guest.spawn(f'rping -s -a {address} -p {PORT} -C {PINGS} -S {size}; echo status $?',
                     tag='rping', timeout=LIMIT)
    while True:     # it says nowhere that it listens now
        proc = ours(pair, '-c', '-a', address, '-p', str(PORT), '-C', str(PINGS), '-S', str(size),
                    '-V')
        if proc.wait(LIMIT) == 0 or 'REJECTED (8' not in proc.output():
            break
    done(pair, f'client, {family}, {size} bytes', proc, pair.guest.wait('rping', timeout=LIMIT))


def nobody(pair):
    """B108: told at once, on both sides."""
    proc = ours(pair, '-c', '-a', pair.guest.ip, '-p', '7999', '-C', '1')
    if proc.wait(LIMIT) != 1 or 'REJECTED (8' not in proc.output():
        raise interop.Fault(f'nobody listens at the guest: {proc.output()}')
    log = pair.guest.run(f'rping -c -a {pair.ours["v4"]} -p 7999 -C 1 2>&1; true',
                         timeout=LIMIT).stdout
    if 'REJECTED' not in log:
        raise interop.Fault(f'nobody listens here: {log}')


def all_of_it(pair):
    with Checked(pair, 'rping'):
        for family in ('v4', 'v6'):
            for size in (64, 3000):
                serve(pair, family, size)
                ask(pair, family, size)
        nobody(pair)
    pair.rnicd.stop()


def main(args):
    global RPING
    programs, RPING, mtus = Programs(*args[:4]), args[4], args[5:] or ['1500']
    for mtu in map(int, mtus):
        with interop.Net(f'cm{mtu}', mtu=mtu) as net:
            all_of_it(Pair(net, programs))


if __name__ == '__main__':
    interop.main_of(main)
