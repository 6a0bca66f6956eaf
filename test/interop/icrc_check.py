#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""icrc_check.py - is every RoCE v2 frame of a capture well formed?

usage: icrc_check.py [-q] [--src IP]... FILE.pcap...

Reads classic pcap files (either byte order, micro- or nanoseconds, Ethernet or
Linux cooked), takes the frames to UDP port 4791 and checks for each the IPv4
header checksum, the lengths, the UDP checksum (0 or right), the BTH (opcode,
version, reserved bits as sent, pad count), the extension headers' and payload's
length by opcode, zero pad bytes, and the ICRC with zlib's CRC-32 over the masked
headers. --src looks only at what this address sent. Prints one line a fault and
a summary; exit status 1 if there was a fault or no RoCE frame at all.

It shares no code with the product, on purpose: it is a second opinion.
"""
import argparse
import collections
import ipaddress
import struct
import sys
import zlib

ROCE_PORT = 4791

# Low five bits of the opcode, RC: name, extension headers, payload rule. Rules: 0 no
# payload, 'f' a full path MTU (so a multiple of 256), 'l' one byte or more up to the
# MTU, 'o' any from none.
RC = {
    0x00: ('SEND_FIRST', 0, 'f'), 0x01: ('SEND_MIDDLE', 0, 'f'), 0x02: ('SEND_LAST', 0, 'l'),
    0x03: ('SEND_LAST_IMM', 4, 'l'), 0x04: ('SEND_ONLY', 0, 'o'), 0x05: ('SEND_ONLY_IMM', 4, 'o'),
    0x06: ('WRITE_FIRST', 16, 'f'), 0x07: ('WRITE_MIDDLE', 0, 'f'), 0x08: ('WRITE_LAST', 0, 'l'),
    0x09: ('WRITE_LAST_IMM', 4, 'l'), 0x0a: ('WRITE_ONLY', 16, 'o'),
    0x0b: ('WRITE_ONLY_IMM', 20, 'o'), 0x0c: ('READ_REQUEST', 16, 0),
    0x0d: ('READ_RESP_FIRST', 4, 'f'), 0x0e: ('READ_RESP_MIDDLE', 0, 'f'),
    0x0f: ('READ_RESP_LAST', 4, 'l'), 0x10: ('READ_RESP_ONLY', 4, 'o'), 0x11: ('ACK', 4, 0),
    0x12: ('ATOMIC_ACK', 12, 0), 0x13: ('CMP_SWAP', 28, 0), 0x14: ('FETCH_ADD', 28, 0),
    0x16: ('SEND_LAST_INV', 4, 'l'), 0x17: ('SEND_ONLY_INV', 4, 'o'),
    0x1c: ('FLUSH', 20, 0), 0x1d: ('ATOMIC_WRITE', 16, 'l'),
}
UC = {k: RC[k] for k in range(0x0c)}
UD = {0x04: ('SEND_ONLY', 8, 'o'), 0x05: ('SEND_ONLY_IMM', 12, 'o')}
XRC = {k: (n, e + (4 if k < 0x0d or k in (0x13, 0x14, 0x16, 0x17) else 0), r)
       for k, (n, e, r) in RC.items()}
CLASSES = {0x00: ('RC', RC), 0x20: ('UC', UC), 0x60: ('UD', UD), 0xa0: ('XRC', XRC)}
CNP = 0x81
AETH = (0x0d, 0x0f, 0x10, 0x11, 0x12)


def pcap_frames(path):
    """Yields (number from 1, link type, captured bytes, length on the wire)."""
    with open(path, 'rb') as f:
        head = f.read(24)
        order = {b'\xd4\xc3\xb2\xa1': '<', b'\x4d\x3c\xb2\xa1': '<',
                 b'\xa1\xb2\xc3\xd4': '>', b'\xa1\xb2\x3c\x4d': '>'}.get(head[:4])
        if len(head) < 24 or order is None:
            raise ValueError(f'{path}: not a pcap file')
        link = struct.unpack(order + 'I', head[20:])[0] & 0x0fffffff
        number = 0
        while len(rec := f.read(16)) == 16:
            _, _, caplen, wirelen = struct.unpack(order + '4I', rec)
            data = f.read(caplen)
            if len(data) < caplen:
                return
            number += 1
            yield number, link, data, wirelen


def ones_sum(data):
    if len(data) & 1:
        data += b'\0'
    s = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s


def icrc(ip, udp_off, end):
    """The ICRC of ip[:end] (from the IP header on, the ICRC itself left out)."""
    b = bytearray(ip[:end])
    if b[0] >> 4 == 4:
        b[1] = 0xff                         # TOS
        b[8] = 0xff                         # TTL
        b[10:12] = b'\xff\xff'              # header checksum
    else:
        b[0] |= 0x0f                        # traffic class, flow label
        b[1:4] = b'\xff\xff\xff'
        b[7] = 0xff                         # hop limit
    b[udp_off + 6:udp_off + 8] = b'\xff\xff'    # UDP checksum
    b[udp_off + 12] = 0xff                  # FECN, BECN, reserved
    return zlib.crc32(bytes(b), zlib.crc32(b'\xff' * 8))


class Frame:
    """One frame, taken apart; faults in .faults, None for .opcode if it is not RoCE."""

    def __init__(self, link, data, wirelen):
        self.faults = []
        self.opcode = None
        self.icrc_ok = None
        off = {1: 12, 113: 14, 276: 0}.get(link)
        if off is None:
            return
        proto = struct.unpack_from('!H', data, off)[0] if len(data) >= off + 2 else 0
        off = 20 if link == 276 else off + 2
        while proto in (0x8100, 0x88a8) and len(data) >= off + 4:
            proto = struct.unpack_from('!H', data, off + 2)[0]
            off += 4
        self.cut = wirelen > len(data)
        if proto == 0x0800:
            self.ipv4(data[off:])
        elif proto == 0x86dd:
            self.ipv6(data[off:])

    def fault(self, text):
        self.faults.append(text)

    def ipv4(self, ip):
        if len(ip) < 20 or ip[0] >> 4 != 4 or ip[9] != 17:
            return
        ihl = (ip[0] & 15) * 4
        total, _, frag = struct.unpack_from('!3H', ip, 2)
        if frag & 0x1fff or len(ip) < ihl + 8 or \
                struct.unpack_from('!H', ip, ihl + 2)[0] != ROCE_PORT:
            return
        self.src, self.dst = (str(ipaddress.IPv4Address(ip[o:o + 4])) for o in (12, 16))
        if ihl != 20:
            self.fault(f'IPv4 header of {ihl} bytes')
        if frag & 0x2000:
            self.fault('IPv4 fragment')
        if ones_sum(ip[:ihl]) != 0xffff:
            self.fault('IPv4 header checksum')
        self.udp(ip, ihl, total, ip[12:20])

    def ipv6(self, ip):
        if len(ip) < 48 or ip[0] >> 4 != 6 or ip[6] != 17 or \
                struct.unpack_from('!H', ip, 42)[0] != ROCE_PORT:
            return
        self.src, self.dst = (str(ipaddress.IPv6Address(ip[o:o + 16])) for o in (8, 24))
        self.udp(ip, 40, 40 + struct.unpack_from('!H', ip, 4)[0], ip[8:40])

    def udp(self, ip, off, total, addresses):
        self.opcode = -1
        self.name = '?'
        length, csum = struct.unpack_from('!2H', ip, off + 4)
        if self.cut:
            return self.fault('cut short by the capture')
        if total > len(ip):
            return self.fault(f'IP length {total}, but {len(ip)} bytes')
        if off + length != total:
            return self.fault(f'UDP length {length}, IP payload {total - off}')
        if length < 8 + 12 + 4:
            return self.fault(f'UDP length {length} is too short for BTH and ICRC')
        if csum:
            pseudo = addresses + struct.pack('!2H', 17, length)
            if ones_sum(pseudo + ip[off:total]) != 0xffff:
                self.fault('UDP checksum')
        self.bth(ip[off + 8:total - 4])
        want = icrc(ip, off, total - 4)
        got = struct.unpack_from('<I', ip, total - 4)[0]
        self.icrc_ok = want == got
        if not self.icrc_ok:
            self.fault(f'ICRC {got:08x}, should be {want:08x}')

    def bth(self, b):
        self.opcode, flags, pkey, word, psn = struct.unpack_from('!2BH2I', b)
        pad = flags >> 4 & 3
        self.qpn, self.psn = word & 0xffffff, psn & 0xffffff
        if flags & 15:
            self.fault(f'transport header version {flags & 15}')
        if not pkey & 0x7fff:
            self.fault(f'P_Key {pkey:04x}')
        if word >> 24 & 0x3f or psn >> 24 & 0x7f:
            self.fault('reserved bits of the BTH set')
        if self.opcode == CNP:
            self.name = 'CNP'
            if len(b) != 28:
                self.fault(f'CNP of {len(b)} bytes')
            return
        cls, table = CLASSES.get(self.opcode & 0xe0, ('?', {}))
        entry = table.get(self.opcode & 0x1f)
        if entry is None:
            return self.fault(f'unknown opcode {self.opcode:02x}')
        self.name = f'{cls}_{entry[0]}'
        self.payload(b, entry[1], entry[2], pad)
        if cls in ('RC', 'XRC') and self.opcode & 0x1f in AETH and len(b) >= 16:
            self.aeth(b[12])

    def payload(self, b, ext, rule, pad):
        n = len(b) - 12 - ext - pad
        if n < 0:
            return self.fault(f'{len(b)} bytes, too short for {self.name}')
        if len(b) & 3:
            self.fault(f'length {len(b)} is not a multiple of 4')
        if pad and any(b[-pad:]):
            self.fault('pad bytes are not zero')
        if n > 4096 or (rule == 0 and n) or (rule == 'l' and not n) or \
                (rule == 'f' and n not in (256, 512, 1024, 2048, 4096)):
            self.fault(f'{self.name} with {n} bytes of payload')

    def aeth(self, syndrome):
        kind, value = syndrome >> 5, syndrome & 31
        if kind not in (0, 1, 3) or (kind == 3 and value > 4):
            self.fault(f'AETH syndrome {syndrome:02x}')


def check(path, sources, out):
    """Returns (RoCE frames seen, faults, bad ICRCs, Counter of names)."""
    seen = faults = bad = 0
    names = collections.Counter()
    for number, link, data, wirelen in pcap_frames(path):
        fr = Frame(link, data, wirelen)
        if fr.opcode is None or (sources and fr.src not in sources):
            continue
        seen += 1
        names[fr.name] += 1
        bad += fr.icrc_ok is False
        faults += len(fr.faults)
        for text in fr.faults:
            out(f'{path}: frame {number}: {fr.src} > {fr.dst} {fr.name}: {text}')
    return seen, faults, bad, names


def main():
    ap = argparse.ArgumentParser(description='check the RoCE v2 frames of a capture')
    ap.add_argument('-q', action='store_true', help='faults only')
    ap.add_argument('--src', action='append', default=[], help='only frames from this address')
    ap.add_argument('files', nargs='+')
    args = ap.parse_args()
    sources = {str(ipaddress.ip_address(s)) for s in args.src}
    rc = 0
    for path in args.files:
        seen, faults, bad, names = check(path, sources, print)
        if not seen:
            print(f'{path}: no RoCE frames')
        elif not args.q:
            kinds = ' '.join(f'{n}:{c}' for n, c in sorted(names.items()))
            print(f'{path}: {seen} RoCE frames, {faults} faults, {bad} bad ICRCs; {kinds}')
        rc |= faults > 0 or not seen
    return rc


if __name__ == '__main__':
    sys.exit(main())
