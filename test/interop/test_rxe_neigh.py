#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happens around a QP under traffic: neighbours, links and VLANs, rnicd against rxe.

usage: test_rxe_neigh.py RNICD RNICCTL RNIC_PINGPONG RNIC_OPS [CASE...]

These begin with WRITEs and READs from rnic_ops to the guest that are under way, and end when
as many again have succeeded on the same QP after the event:
  tap        the guest's link goes down until we retransmit, and up again
  port       the link of our port goes down until rnicd says so, and up again
  announced  the guest, now behind a router, is at another MAC address, which is announced
             (gratuitous ARP, unsolicited NA)
  silent     the same, but nothing is said: retransmissions that fail make us ask
And, each with QPs of its own:
  moved      the guest's interface gets another MAC address. rxe's old QPs cannot send after
             that (README.md); new ones find it
  vlan       a VLAN interface in the guest: operations of all kinds, and PCP from the SL
"""
import socket
import struct
import sys
import time

import icrc_check
import interop
from pair import LIMIT, PORT, Pair, Programs

VID, VLAN_OURS, VLAN_GUEST = 7, '198.51.100.1', '198.51.100.2'
SOME = 20               # requests before and after an event
ACK_TIMEOUT = 19        # 2.1 s, seven times: no event here takes that long to get over
OTHER_MAC = '52:54:00:00:02:{:02x}'     # of the router, then of the guest


def until(what, ready):
    """Asks again and again: each question takes a process and some milliseconds."""
    end = time.monotonic() + LIMIT
    while not ready():
        if time.monotonic() > end:
            raise interop.Fault(f'{what}: never')


class Traffic:
    """Endless WRITEs and READs, one at a time; every byte that comes back is compared."""

    def __init__(self, pair, family):
        self.pair = pair
        pair.guest.spawn(f'peer-qp -s -r 8 -M {pair.path_mtu} -g {pair.gid[family]}; '
                         'echo status $?', listen=PORT, tag='qp', timeout=LIMIT)
        self.proc = pair.start(pair.programs.ops, '-c', pair.guest.ip, '-b', '-n', 1 << 31,
                               '-M', pair.path_mtu, '-g', pair.our_gid(family), '-t', ACK_TIMEOUT,
                               'write:4099', 'read:4099')

    def goes_on(self):
        """Waits for some more successes."""
        want = self.successes() + SOME
        with self.proc.changed:
            self.proc.changed.wait_for(lambda: self.proc.ended or self.successes() >= want, LIMIT)
            if self.successes() < want:
                raise interop.Fault(f'no progress:\n{self.proc.text[-2000:]}\n'
                                    f'{self.pair.rnicd.show("counters")}\n'
                                    f'{self.pair.rnicd.show("neighbours")}\n'
                                    f'{self.pair.rnicd.proc.output()}')

    def successes(self):
        return self.proc.text.count(': success\n')

    def stop(self):
        self.proc.stop()
        text = self.proc.output()
        if 'WRONG' in text or 'lost' in text:
            raise interop.Fault(text[-2000:])
        log = self.pair.guest.wait('qp', timeout=LIMIT)
        if not log.rstrip().endswith('status 0'):
            raise interop.Fault(log)


def neighbour(pair, family):
    ip = {'v4': pair.guest.ip, 'v6': pair.guest.ip6}[family]
    known = {n['address']: n for n in pair.rnicd.show('neighbours')}
    return known.get(ip, {}).get('mac', '').lower()


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(':', ''))


def gratuitous_arp(ip, mac):
    """RFC 5227 section 3: a request for what is the sender's own."""
    ip, mac = socket.inet_aton(ip), mac_bytes(mac)
    return b'\xff' * 6 + mac + struct.pack('!3H2BH', 0x806, 1, 0x800, 6, 4, 1) + \
        mac + ip + bytes(6) + ip


def unsolicited_na(ip, mac):
    """RFC 4861 section 7.2.6: to all nodes, with the override flag."""
    ip, mac = socket.inet_pton(socket.AF_INET6, ip), mac_bytes(mac)
    to = socket.inet_pton(socket.AF_INET6, 'ff02::1')
    na = bytearray(struct.pack('!2BHI', 136, 0, 0, 1 << 29) + ip + b'\2\1' + mac)
    pseudo = ip + to + struct.pack('!2I', len(na), 58)
    na[2:4] = struct.pack('!H', icrc_check.ones_sum(pseudo + bytes(na)) ^ 0xffff)
    return bytes.fromhex('333300000001') + mac + b'\x86\xdd' + \
        struct.pack('!IH2B', 6 << 28, len(na), 58, 255) + ip + to + bytes(na)


def route_guest(pair):
    """Takes the guest off the bridge: the namespace routes for it and answers for it.

    br0 is its address on our side then, and can change without rxe's knowing.
    """
    net, guest = pair.net, pair.guest
    net.ip('link', 'set', guest.tap, 'nomaster')
    keys = ['net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1',
            f'net.ipv6.conf.{guest.tap}.disable_ipv6=0']
    for dev in ('br0', guest.tap):
        keys += [f'net.ipv4.conf.{dev}.proxy_arp=1', f'net.ipv6.conf.{dev}.proxy_ndp=1',
                 f'net.ipv4.neigh.{dev}.proxy_delay=0', f'net.ipv6.neigh.{dev}.proxy_delay=0']
    net.exec('sysctl', '-qw', *keys)
    net.ip('route', 'add', guest.ip, 'dev', guest.tap, 'src', interop.CONTROL_IP)
    net.ip('route', 'add', guest.ip6, 'dev', guest.tap)
    net.ip('neigh', 'add', 'proxy', guest.ip6, 'dev', 'br0')
    net.ip('neigh', 'add', 'proxy', interop.OUR_IP6, 'dev', guest.tap)
    # The tap does not answer for br0's address (arp_ignore).
    mac = net.exec('cat', f'/sys/class/net/{guest.tap}/address').stdout.strip()
    guest.run(f'ip neigh flush dev eth0; ip neigh replace {interop.CONTROL_IP} lladdr {mac} '
              'dev eth0')
    for ip in (interop.OUR_IP, interop.OUR_IP6):
        guest.run(f'ping -c 1 -W 30 {ip}')


def change_router(pair, family, announce):
    """br0 becomes another; TCP to the guest does not go that way."""
    if 'proxy' not in pair.net.ip('neigh', 'show', 'proxy').stdout:
        route_guest(pair)
    pair.routers = getattr(pair, 'routers', 0) + 1
    mac = OTHER_MAC.format(pair.routers)
    pair.net.ip('link', 'set', 'br0', 'address', mac)
    if announce:
        pair.net.inject('br0', gratuitous_arp(pair.guest.ip, mac) if family == 'v4' else
                        unsolicited_na(pair.guest.ip6, mac))
    until('the new MAC address', lambda: neighbour(pair, family) == mac)


def announced(pair, family):
    change_router(pair, family, True)


def silent(pair, family):
    before = pair.rnicd.counter('roce_local_ack_timeout')
    change_router(pair, family, False)
    if pair.rnicd.counter('roce_local_ack_timeout') == before:
        raise interop.Fault('it was not silent')


def moved(pair, _):
    guest = pair.guest
    mac = OTHER_MAC.format(0xf0)
    for family in ('v4', 'v6'):
        pair.pingpong('client', family, 64)     # what is not known has no news
    guest.run('echo 1 >/proc/sys/net/ipv4/conf/eth0/arp_notify; '
              'echo 1 >/proc/sys/net/ipv6/conf/eth0/ndisc_notify; '
              f'ip link set eth0 address {mac}')
    for family in ('v4', 'v6'):
        until('the new MAC address', lambda: neighbour(pair, family) == mac)
        pair.pingpong('client', family, 5001)
        pair.pingpong('server', family, 5001)


def tap(pair, family):
    before = pair.rnicd.counter('roce_local_ack_timeout')
    pair.net.ip('link', 'set', pair.guest.tap, 'down')
    until('a retransmission', lambda: pair.rnicd.counter('roce_local_ack_timeout') > before)
    pair.net.ip('link', 'set', pair.guest.tap, 'up')


def port(pair, family):
    def link():
        return pair.rnicd.show('ports')[0]['link']

    pair.net.ip('link', 'set', f'{pair.dev}-br', 'down')
    until('link down', lambda: link() == 'down')
    pair.net.ip('link', 'set', f'{pair.dev}-br', 'up')
    until('link up', lambda: link() == 'up')


def vlan(pair, _):
    """rxe serves the VLAN devices above its own by their GIDs."""
    guest = pair.guest
    guest.run(f'ip link add link eth0 name vlan{VID} type vlan id {VID} && '
              f'ip addr add {VLAN_GUEST}/24 dev vlan{VID} && ip link set vlan{VID} up')
    guest.run(f'ping -c 1 -W 30 {VLAN_OURS}')
    pair.gid['vlan'], pair.ours['vlan'] = guest.gid(VLAN_GUEST), f'{VLAN_OURS}@{VID}'
    cap = pair.net.capture(guest.tap, f'vlan {VID} and udp port 4791')
    for role in ('server', 'client'):
        for size in (1, 5001, 65537):
            pair.pingpong(role, 'vlan', size, ours=('-l', 5))
    for role in ('initiator', 'responder'):
        pair.ops(role, 'client', 'vlan', 'write:65537 read:65537 cas fadd sendimm:61'.split())
    cap.stop()
    frames = cap.check(sources=[VLAN_OURS], tshark=False)
    seen = interop.sh('tshark', '-n', '-r', cap.path, '-Y', f'ip.src == {VLAN_OURS}', '-T', 'fields',
                      '-e', 'vlan.id', '-e', 'vlan.priority').stdout.split('\n')[:-1]
    if set(seen) != {f'{VID}\t0', f'{VID}\t5'}:
        raise interop.Fault(f'VLAN and priority: {set(seen)}')


UNDER_TRAFFIC = (tap, port, announced, silent)
# moved needs the guest on the bridge; announced and silent take it off.
CASES = {f.__name__: f for f in (vlan, moved, *UNDER_TRAFFIC)}


def under_traffic(pair, event):
    for family in ('v4', 'v6'):
        traffic = Traffic(pair, family)
        traffic.goes_on()
        event(pair, family)
        traffic.goes_on()
        traffic.stop()
        print(f'{event.__name__}, {family}: ok', flush=True)


def main(args):
    programs, names = Programs(*args[:4]), args[4:] or list(CASES)
    with interop.Net('neigh', mtu=1500) as net:
        pair = Pair(net, programs, ips=(f'{VLAN_OURS}/24@{VID}',))
        for name in names:
            if CASES[name] in UNDER_TRAFFIC:
                under_traffic(pair, CASES[name])
            else:
                CASES[name](pair, None)
                print(f'{name}: ok', flush=True)
        if pair.guest.bad_icrc():
            raise interop.Fault('bad ICRC')
        pair.rnicd.stop()


if __name__ == '__main__':
    interop.main_of(main)
