#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our codec of CM messages judged by tshark: every message of the captures, and random ones.

usage: check_cm.py CM_CODEC CAPTURE_DIR

tshark 4.0 reads the fields of REQ, REP, RTU, REJ, DREQ and DREP; of REQ's word of flow label and
rate it prints another one's bytes, so that is left out. Exit status 77 (skip) without tshark.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

FIELDS = """infiniband.mad.attributeid infiniband.mad.transactionid
req req.serviceid req.localcaguid req.localqkey req.localqpn req.responderres req.localeecn
req.initdepth req.remoteeecn req.remoteresptout req.transpsvctype req.e2eflowctrl req.startpsn
req.localresptout req.retrcount req.pkey req.pppmtu req.rdcexist req.rnrretrcount req.maxcmretr
req.srq req.ext_transport req.prim_locallid req.prim_remotelid req.prim_tfcclass req.prim_hoplim
req.prim_sl req.prim_subnetlocal req.prim_localacktout req.alt_locallid req.alt_remotelid
req.alt_localgid req.alt_remotegid req.alt_tfcclass req.alt_hoplim req.alt_sl req.alt_subnetlocal
req.alt_localacktout rep rep.remotecommid rep.localqkey rep.localqpn rep.localeecn rep.startpsn
rep.respres rep.initdepth rep.tgtackdelay rep.failoveracc rep.e2eflowctrl rep.rnrretrcount rep.srq
rep.localcaguid rtu.localcommid rtu.remotecommid rej.localcommid rej.remotecommid rej.msgrej
rej.rejinfolen rej.reason dreq.localcommid dreq.remotecommid req.remoteqpneecn drsp.localcommid
drsp.remotecommid""".split()
NAMES = {"infiniband.mad.attributeid": "attr", "infiniband.mad.transactionid": "tid"}
GIDS = {"req.alt_localgid", "req.alt_remotegid"}


def ours(tool, path):
    out = subprocess.run([tool, "parse", path], check=True, capture_output=True, text=True)
    return {m["frame"]: m for m in map(json.loads, out.stdout.splitlines())}


def value(field, text):
    if field in GIDS:
        return text.replace(":", "")
    return int(text, 0) if text not in ("True", "False") else int(text == "True")


def tsharks(path):
    cmd = ["tshark", "-n", "-r", path, "-Y", "infiniband.bth.destqp==1", "-T", "fields",
           "-E", "separator=|", "-E", "occurrence=f", "-e", "frame.number"]
    for f in FIELDS:
        cmd += ["-e", f if f in NAMES else "infiniband.cm." + f]
    env = dict(os.environ, HOME=tempfile.gettempdir(), LC_ALL="C")
    out = subprocess.run(cmd, check=True, capture_output=True, text=True, env=env)
    frames = {}
    for line in out.stdout.splitlines():
        number, *values = line.split("|")
        frames[int(number)] = {NAMES.get(f, f): value(f, v)
                               for f, v in zip(FIELDS, values) if v != ""}
    return frames


def compare(path, mine, theirs):
    faults = 0
    if mine.keys() != theirs.keys():
        print(f"{path}: {len(mine)} messages, tshark sees {len(theirs)}")
        faults += 1
    for number, m in mine.items():
        t = theirs.get(number, {})
        for f in (NAMES.get(f, f) for f in FIELDS):
            # RDMA-CM's service ids tshark shows in parts
            if m.get(f) != t.get(f) and not (f == "req.serviceid" and f not in t):
                print(f"{path} #{number}: {f} is {m.get(f)}, tshark says {t.get(f)}")
                faults += 1
    return faults


def main():
    if shutil.which("tshark") is None:
        print("no tshark")
        return 77
    tool, captures = sys.argv[1:3]
    faults = messages = 0
    with tempfile.TemporaryDirectory() as tmp:
        paths = sorted(glob.glob(os.path.join(captures, "roce-*.pcap")))
        for seed in ("1", "2"):
            paths.append(os.path.join(tmp, seed + ".pcap"))
            subprocess.run([tool, "emit", paths[-1], seed], check=True)
        for path in paths:
            mine = ours(tool, os.path.abspath(path))
            messages += len(mine)
            if mine:
                faults += compare(path, mine, tsharks(path))
    print(f"{messages} messages, {faults} faults")
    return faults != 0 or messages < 156 + 400


if __name__ == "__main__":
    sys.exit(main())
