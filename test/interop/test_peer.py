#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer against itself: two guests, so that later faults are ours and not its.

usage: test_peer.py [MTU...]      (default 1500 and 4200)
"""
import struct
import sys

import icrc_check
import interop

GOOD = ('send:64 send:0 send:61 sendimm:32 write:256 write:0 write:3 writeimm:100 read:200 read:0 '
        'cas casmiss fadd send:2500 sendimm:5001 write:4096 writeimm:3000 read:5000 read:65536 '
        'write:65536*8 send:64*32 read:1000*16 write:1*64 fadd*16 cas*8 mwwrite:3000 sendinv:64 '
        'mwwrite:64 sendinv:0 rnr:20 send:65536').split()
BAD = ('badkey-write badkey-read badkey-fadd badvar-write badvar-read oob-write:4096 '
       'oob-read:64 noperm-write noperm-read noperm-fadd toolong rnrfail '
       'badinv').split()


def pair(server, client, server_ops, client_ops, opts=''):
    """One run of peer-qp; the side with ops initiates. Returns both outputs."""
    server.spawn(f'peer-qp -s {opts} {server_ops}; echo status $?', listen=18515)
    p = client.run(f'peer-qp -c {server.ip} {opts} {client_ops}', check=False)
    log = server.wait()
    if p.returncode or 'status 0' not in log:
        raise interop.Fault(f'peer-qp {server_ops} | {client_ops}: status {p.returncode}\n'
                            f'client: {p.stdout}{p.stderr}\nserver: {log}')
    return log, p.stdout


def check_oracle(net, guest):
    """A frame to QP1 with a wrong ICRC has to show in bad_icrc(), or that means nothing."""
    port = net.veth('rnic0')
    ib = struct.pack('!2BH4I', 0x64, 0, 0xffff, 1, 1, 0x80010000, 1) + bytes(256) + b'\1\2\3\4'
    udp = struct.pack('!4H', 49152, 4791, 8 + len(ib), 0) + ib
    ip = bytearray(struct.pack('!2B3H2BH8B', 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0,
                               *map(int, f'{interop.OUR_IP}.{guest.ip}'.split('.'))))
    ip[10:12] = struct.pack('!H', icrc_check.ones_sum(bytes(ip)) ^ 0xffff)
    mac = bytes.fromhex(guest.mac.replace(':', ''))
    net.inject(port, mac + bytes.fromhex('525400000001') + b'\x08\x00' + ip + udp)
    guest.run('n=0; until grep -q "bad=" /sys/kernel/tracing/trace; do n=$((n + 1)); '
              '[ $n -lt 100 ] || exit 1; usleep 50000; done')
    if guest.bad_icrc() != 1:
        raise interop.Fault(f'{guest.bad_icrc()} bad ICRCs counted, 1 sent')


LIAR = """
import socket, sys
s = socket.create_connection((sys.argv[1], 18515))
f = s.makefile('rwb', buffering=0)
gid = '00' * 10 + 'ffff' + socket.inet_aton('192.0.2.1').hex()
f.write(f'0000:000017:000000:{gid}'.encode() + bytes(1))
assert len(f.read(52)) == 52
f.write(b'done' + bytes(1) + b'0000000000001000:00000123:00100000\\n')
print(f.readline().decode().strip())
for line in (b'op write 64 1 1\\n', b'end 0\\n'):
    f.write(line)
    print(f.readline().decode().strip())
"""


def check_liar(net, guest):
    """An initiator that says it wrote and did not is found out."""
    guest.run(f'ip neigh replace {interop.OUR_IP} lladdr 52:54:00:00:00:01 dev eth0')
    guest.spawn('peer-qp -s', listen=18515)
    said = net.exec(sys.executable, '-c', LIAR, guest.ip).stdout.splitlines()
    if not said[1].startswith('go ') or said[2] != 'bad byte 0 is 00, not 1d':
        raise interop.Fault(f'responder said {said}')
    guest.wait()


def run(mtu):
    path_mtu = 4096 if mtu >= 4200 else 1024
    with interop.Net('peer', mtu=mtu) as net:
        a, b = net.guest(), net.guest()
        b.run(f'ping -c 1 {a.ip} && ping -c 1 {a.ip6}')
        cap = net.capture(a.tap)
        a.spawn('ibv_rc_pingpong -g 1 -n 20 -s 5000', listen=18515, tag='pp')
        b.run(f'ibv_rc_pingpong -g 1 -n 20 -s 5000 {a.ip}')
        a.wait('pp')
        print(f'mtu {mtu}: ibv_rc_pingpong: ok', flush=True)
        good = ' '.join(GOOD)
        pair(a, b, '', f'-n 2 {good}', f'-M {path_mtu}')
        pair(a, b, good, '', f'-M {path_mtu}')
        pair(a, b, '-r 16', '-b send:3000*8 write:5000 read:64 fadd', f'-M {path_mtu}')
        gid = a.gid(a.ip6)
        pair(a, b, '', good, f'-M {path_mtu} -g {gid}')
        print(f'mtu {mtu}: {len(GOOD)} operations, both roles, IPv4 and IPv6: ok', flush=True)
        for op in BAD + ['mwwrite sendinv stale-write']:
            pair(a, b, '', op)
        print(f'mtu {mtu}: {len(BAD) + 1} operations that must fail: ok', flush=True)
        cap.stop()
        print(f'mtu {mtu}: {cap.check()} frames without a fault; {cap.dropped} not captured')
        for g in (a, b):
            if g.bad_icrc():
                raise interop.Fault('bad ICRC')
        print(a.counters())
        check_oracle(net, a)
        check_liar(net, a)
        print(f'mtu {mtu}: a bad ICRC and a false claim are found out: ok', flush=True)


def main(args):
    for mtu in map(int, args or ('1500', '4200')):
        run(mtu)


if __name__ == '__main__':
    interop.main_of(main)
