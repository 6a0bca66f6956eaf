#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wiring: does a DPDK port see the guest, and the guest it?

usage: test_plumbing.py [af_packet|tap]...      (default both)

Runs probe.c on a port of each kind and pings it from the guest with the largest
packet that the MTU allows, and one byte less (odd).
"""
import os
import shlex
import subprocess

import interop


def build_probe(net):
    """Compiles probe.c; the one program here that is not Python or in the guest."""
    exe = net.work / 'probe'
    flags = shlex.split(subprocess.check_output(
        ['pkg-config', '--cflags', '--libs', 'libdpdk'], text=True))
    interop.sh(os.environ.get('CC', 'cc'), '-O1', '-Wall', '-Wextra', '-o', exe,
               interop.HERE / 'probe.c', *flags)
    return exe


def run(kind, mtu):
    with interop.Net('plumb', mtu=mtu) as net:
        exe = build_probe(net)
        guest = net.guest(links='none')
        if kind == 'af_packet':
            vdev = interop.af_packet(net.veth('rnic0'), mtu)
        else:
            vdev = interop.tap('dtap0')
        probe = net.spawn([exe, '--no-pci', '--no-huge', '-m', '128', '-l', '0', '--no-telemetry',
                           '--file-prefix', net.name, f'--vdev={vdev}', '--', interop.OUR_IP, mtu])
        mac = probe.wait_line(r'^ready (\S+)').group(1).lower()
        if kind == 'tap':
            net.adopt('dtap0')
        for size in (56, mtu - 28, mtu - 29):
            guest.run(f'ping -c 3 -s {size} {interop.OUR_IP}')
            probe.wait_line(rf'^echo {size + 42}$')
        probe.wait_line(r'^arp ')
        seen = guest.run(f'ip neigh show {interop.OUR_IP}').stdout
        if mac not in seen:
            raise interop.Fault(f'{mac} should be in: {seen}')
        # The control address is reached too, and is br0's alone.
        guest.run(f'ping -c 1 {interop.CONTROL_IP} && ping -c 1 {interop.CONTROL_IP6}')
        seen = guest.run(f'ip neigh show {interop.CONTROL_IP}').stdout
        if '52:54:00:00:00:fe' not in seen:
            raise interop.Fault(f'not br0: {seen}')
        if probe.stop():
            raise interop.Fault(f'probe: {probe.output()}')
        print(f'{kind} mtu {mtu}: ok, {vdev}', flush=True)


def main(args):
    for kind in args or ('af_packet', 'tap'):
        # The tap PMD of DPDK 22.11 sends no frame above an MTU of 1504.
        for mtu in (1500, 4200) if kind == 'af_packet' else (1500,):
            run(kind, mtu)


if __name__ == '__main__':
    interop.main_of(main)
