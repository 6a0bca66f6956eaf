#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our RoCE codec judged by independent ones: tshark and scapy.

usage: check_codec.py tshark|scapy ROCE_CODEC CAPTURE_DIR

tshark: each field of each frame of the captures of rxe, and of a packet of each
opcode that we emit, is what roce_parse() says. scapy: reads the emitted packets
and makes the same ICRC. Exit status 77 (skip) where the judge is not installed.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FIELDS = """bth.opcode bth.se bth.m bth.padcnt bth.tver bth.p_key bth.destqp bth.a bth.psn
reth.va reth.r_key reth.dmalen aeth.syndrome aeth.msn atomiceth.swapdt atomiceth.cmpdt
atomicacketh.origremdt immdt ieth deth.q_key deth.srcqp""".split()
BYTES = {"immdt", "ieth"}

# Opcodes whose extension headers tshark 4.0 does not know: no FLUSH and ATOMIC
# WRITE, CNP as 0x80 alone, and of XRC the names only.
TSHARK_BTH_ONLY = {0x1C, 0x1D, 0x81} | set(range(0xA0, 0xB8))
TSHARK_NAMELESS = {0x1C, 0x1D, 0x81}
# scapy 2.5 has RC, UC, RD and UD up to 0x14 and the CNP.
SCAPY_NAMES = {
    "SEND_FIRST": "SEND_FIRST", "WRITE_FIRST": "RDMA_WRITE_FIRST", "ACK": "ACKNOWLEDGE",
    "READ_REQ": "RDMA_READ_REQUEST", "CMP_SWAP": "COMPARE_SWAP", "FETCH_ADD": "FETCH_ADD",
    "SEND_ONLY": "SEND_ONLY", "WRITE_LAST_IMM": "RDMA_WRITE_LAST_WITH_IMMEDIATE",
    "READ_RESP_MIDDLE": "RDMA_READ_RESPONSE_MIDDLE", "ATOMIC_ACK": "ATOMIC_ACKNOWLEDGE",
}


def ours(tool, path):
    out = subprocess.run([tool, "parse", path], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def number(field, text):
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 16 if field in BYTES else 0)


def tsharks(path):
    """tshark's view of each frame: {field: number} of the headers that it found."""
    cmd = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    for f in FIELDS:
        cmd += ["-e", "infiniband." + f]
    # No user's or machine's profile, and none of the payload's guesses.
    env = dict(os.environ, HOME=tempfile.gettempdir(), LC_ALL="C")
    out = subprocess.run(cmd, check=True, capture_output=True, text=True, env=env)
    return [{f: number(f, v) for f, v in zip(FIELDS, line.split("|")) if v != ""}
            for line in out.stdout.splitlines()]


def tshark_names(path):
    """{opcode: name} as tshark calls them, in our spelling."""
    out = subprocess.run(["tshark", "-n", "-r", path, "-V"], check=True, capture_output=True,
                         text=True).stdout
    names = {}
    for transport, op, code in re.findall(r"Opcode: .*\((\w+)\) - (.*) \((\d+)\)", out):
        op = op.replace("RDMA ", "").replace(" with Immediate", " imm")
        op = op.replace(" with Invalidate", " inv").replace("CmpSwap", "cmp swap")
        op = op.replace("FetchAdd", "fetch add").replace("Acknowledge", "ack")
        op = op.replace("response", "resp").replace("Request", "req")
        names[int(code)] = transport + "_" + op.upper().replace(" ", "_")
    return names


def compare_names(path, mine):
    theirs = tshark_names(path)
    faults = 0
    for code, name in {m["bth.opcode"]: m["name"] for m in mine}.items():
        if code not in TSHARK_NAMELESS and theirs.get(code) != name:
            print(f"{code:#x} is {name}, tshark says {theirs.get(code)}")
            faults += 1
    return faults


def compare(path, mine, theirs):
    faults = 0
    if len(mine) != len(theirs):
        print(f"{path}: {len(mine)} frames, tshark sees {len(theirs)}")
        faults += 1
    for m, t in zip(mine, theirs):
        bth_only = m.get("bth.opcode") in TSHARK_BTH_ONLY
        for f in FIELDS:
            if m.get(f) != t.get(f) and (f.startswith("bth.") or not bth_only):
                print(f"{path} #{m['frame']} {m.get('name')}: {f} is {m.get(f)}, "
                      f"tshark says {t.get(f)}")
                faults += 1
        if not m.get("icrc_ok"):
            print(f"{path} #{m['frame']}: ICRC wrong")
            faults += 1
    return faults


def check_tshark(tool, captures, emitted):
    paths = sorted(glob.glob(os.path.join(captures, "roce-*.pcap")))
    if not paths:
        print("no captures in " + captures)
        return 1
    faults = frames = 0
    for path in paths + [emitted]:
        mine = ours(tool, os.path.abspath(path))
        frames += len(mine)
        faults += compare(path, mine, tsharks(path))
    faults += compare_names(emitted, mine)
    print(f"{len(paths)} captures and ours, {frames} frames, {faults} faults")
    return faults


def scapy_view(p, roce):
    bth = p[roce.BTH]
    view = {"bth.opcode": bth.opcode, "bth.se": int(bth.solicited), "bth.m": int(bth.migreq),
            "bth.padcnt": bth.padcount, "bth.tver": bth.version, "bth.p_key": bth.pkey,
            "bth.destqp": bth.dqpn, "bth.a": int(bth.ackreq), "bth.psn": bth.psn}
    if p.haslayer(roce.AETH):
        view.update({"aeth.syndrome": p[roce.AETH].syndrome, "aeth.msn": p[roce.AETH].msn})
    return view


def check_scapy(tool, emitted):
    import scapy.contrib.roce as roce
    from scapy.all import Ether, IP, rdpcap
    names = roce._bth_opcodes
    faults = named = summed = 0
    mine = ours(tool, emitted)
    for m, frame in zip(mine, rdpcap(emitted)):
        wire = bytes(frame)
        p = Ether(wire)
        for f, v in scapy_view(p, roce).items():
            if m[f] != v:
                print(f"{m['name']}: {f} is {m[f]}, scapy says {v}")
                faults += 1
        transport, _, short = m["name"].partition("_")
        if short in SCAPY_NAMES and m["bth.opcode"] in names:
            named += 1
            if names[m["bth.opcode"]] != transport + "_" + SCAPY_NAMES[short]:
                print(f"{m['name']}: scapy calls it {names[m['bth.opcode']]}")
                faults += 1
        if not p.haslayer(IP):
            continue  # scapy 2.5 has no ICRC over IPv6
        summed += 1
        del p[roce.BTH].icrc  # scapy makes it anew
        if bytes(p) != wire:
            print(f"{m['name']}: scapy's ICRC is {bytes(p)[-4:].hex()}, ours {wire[-4:].hex()}")
            faults += 1
    print(f"{len(mine)} packets, {named} names and {summed} ICRCs compared, {faults} faults")
    return faults if named and summed else 1


def without(tool):
    """Skipped where a judge is missing, but a failure in CI, which has both."""
    strict = os.environ.get("CI")
    print(f"{'FAILED' if strict else 'SKIP'}: {tool} is not installed")
    return 1 if strict else 77


def main():
    judge, tool, captures = sys.argv[1:]
    if judge == "tshark" and shutil.which("tshark") is None:
        return without("tshark")
    if judge == "scapy":
        try:
            import scapy.contrib.roce  # noqa: F401
        except ImportError:
            return without("python3-scapy")
    with tempfile.TemporaryDirectory() as d:
        emitted = os.path.join(d, "emitted.pcap")
        subprocess.run([tool, "emit", emitted], check=True)
        faults = check_tshark(tool, captures, emitted) if judge == "tshark" else \
            check_scapy(tool, emitted)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
