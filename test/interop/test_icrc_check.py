#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""icrc_check.py against known frames: vectors, every masked and unmasked byte, captures."""
import pathlib
import struct
import sys
import unittest

import icrc_check

ETH4, ETH6 = bytes(12) + b'\x08\x00', bytes(12) + b'\x86\xdd'
A4 = bytes.fromhex(
    '450000300000400040 1126bb0a0000010a000002c00012b7001c00000410ffff0000001280000100'
    '61626300f9daccb0')
B6 = bytes.fromhex(
    '60000000001c1140 fd000000000000000000000000000001 fd000000000000000000000000000002'
    'c00012b7001c0000 0410ffff0000001280000100 61626300 ce1fa717')
ACK = bytes.fromhex(
    '450000300000400040 1126bb0a0000020a000001c00012b7001c0000 1100ffff0000003400000100'
    '1f000001e1c581a3')
CNP = bytes.fromhex(    # sent by a ConnectX-4 Lx
    '45c2003c718c400040 1191610a0011010a001201000012b700280000 8100ffff4000011800000000'
    + 32 * '0' + '82fd002a')
VECTORS = ((ETH4, A4), (ETH6, B6), (ETH4, ACK), (ETH4, CNP))
UDP = {ETH4: 20, ETH6: 40}
CAPTURES = pathlib.Path(__file__).resolve().parent.parent / 'captures'


def frame(eth, ip):
    return icrc_check.Frame(1, eth + ip, len(eth + ip))


def mend(ip):
    """With the IPv4 header checksum and the ICRC made right again."""
    b = bytearray(ip)
    off = 40
    if b[0] >> 4 == 4:
        off = 20
        b[10:12] = bytes(2)
        b[10:12] = struct.pack('!H', icrc_check.ones_sum(bytes(b[:20])) ^ 0xffff)
    b[-4:] = struct.pack('<I', icrc_check.icrc(bytes(b), off, len(b) - 4))
    return bytes(b)


class Icrc(unittest.TestCase):
    def test_vectors(self):
        for eth, ip in VECTORS:
            f = frame(eth, ip)
            self.assertEqual((f.faults, f.icrc_ok), ([], True))

    def test_vlan(self):
        f = frame(bytes(12) + b'\x81\x00\x00\x05\x08\x00', A4)
        self.assertEqual((f.faults, f.icrc_ok), ([], True))

    def test_each_byte(self):
        """A change of a masked byte leaves the ICRC right, of any other one makes it wrong."""
        for eth, ip in VECTORS:
            u = UDP[eth]
            masked = {u + 6, u + 7, u + 12} | ({1, 8, 10, 11} if u == 20 else {1, 2, 3, 7})
            # Fields without which it is no RoCE frame or its end is elsewhere.
            shape = ({0, 2, 3, 6, 7, 9} if u == 20 else {0, 4, 5, 6}) | {u + 2, u + 3, u + 4, u + 5}
            for i in set(range(len(ip))) - shape:
                b = bytearray(ip)
                b[i] ^= 0x01
                self.assertEqual(frame(eth, bytes(b)).icrc_ok, i in masked, f'byte {i}')

    def fault(self, ip, edits, want):
        b = bytearray(ip)
        for i, v in edits.items():
            b[i] = v
        faults = frame(ETH4, mend(b)).faults
        self.assertTrue(any(want in f for f in faults), f'{want}: {faults}')

    def test_faults(self):
        self.assertEqual(frame(ETH4, mend(A4)).faults, [])
        self.fault(A4, {29: 0x11}, 'version')
        self.fault(A4, {43: 1}, 'pad')
        self.fault(A4, {28: 0x1f}, 'unknown opcode')
        self.fault(A4, {28: 0x00}, 'payload')       # FIRST that is not a full MTU
        self.fault(A4, {28: 0x0a}, 'too short')     # WRITE without a RETH
        self.fault(A4, {32: 0x01}, 'reserved')
        self.fault(A4, {36: 0x81}, 'reserved')
        self.fault(A4, {30: 0x00, 31: 0x00}, 'P_Key')
        self.fault(A4, {26: 0x12}, 'UDP checksum')
        self.fault(A4, {25: 0x1d}, 'UDP length')
        self.fault(ACK, {40: 0x7f}, 'syndrome')

    def test_cut_and_short(self):
        self.assertEqual(icrc_check.Frame(1, ETH4 + A4[:40], len(ETH4 + A4)).faults,
                         ['cut short by the capture'])
        for n in range(len(A4)):    # no exception, whatever is missing
            frame(ETH4, A4[:n])
            frame(ETH6, B6[:n])

    def test_captures(self):
        """What two Linux kernels said to each other has no fault."""
        files = sorted(CAPTURES.glob('roce-*.pcap'))
        self.assertTrue(files)
        for path in files:
            seen, faults, bad, _ = icrc_check.check(path, set(), print)
            self.assertGreater(seen, 0, path)
            self.assertEqual((faults, bad), (0, 0), path)


if __name__ == '__main__':
    sys.exit(unittest.main())
