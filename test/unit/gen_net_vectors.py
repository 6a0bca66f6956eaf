#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write net_vectors.h: frames made by scapy, an encoder that is not ours.

usage: gen_net_vectors.py > net_vectors.h
"""
import sys

from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6DestUnreach, ICMPv6EchoReply,
                       ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA,
                       ICMPv6MLDMultAddrRec, ICMPv6MLDone, ICMPv6MLQuery, ICMPv6MLQuery2,
                       ICMPv6MLReport, ICMPv6MLReport2, ICMPv6NDOptDstLLAddr,
                       ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IP, IPOption, IPv6,
                       IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN, Padding, Raw, RouterAlert,
                       TCP, UDP)
from scapy.contrib.igmp import IGMP
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3gr, IGMPv3mq, IGMPv3mr

US, PEER, GW = "52:54:00:00:00:02", "52:54:00:00:00:03", "52:54:00:00:00:fe"
US4, PEER4, GW4 = "192.0.2.2", "192.0.2.3", "192.0.2.254"
US6, PEER6, GW6 = "2001:db8::2", "2001:db8::3", "2001:db8::fe"
SN_US, SN_PEER = "ff02::1:ff00:2", "ff02::1:ff00:3"
ALL = "ff02::1"
BCAST = "ff:ff:ff:ff:ff:ff"
MAC_SN_US, MAC_SN_PEER, MAC_ALL = "33:33:ff:00:00:02", "33:33:ff:00:00:03", "33:33:00:00:00:01"

IN = Ether(src=PEER, dst=US)
OUT = Ether(src=US, dst=PEER)
IP_IN = IP(src=PEER4, dst=US4, id=0x1234, flags="DF")
IP_OUT = IP(src=US4, dst=PEER4, id=0, flags="DF")
IP6_IN = IPv6(src=PEER6, dst=US6)
IP6_OUT = IPv6(src=US6, dst=PEER6)
BODY = bytes(range(16))
UDP_IN = UDP(sport=0xC123, dport=4791, chksum=0)
ODD = bytes(range(33))


def quoted(pkt, length):
    return Raw(bytes(pkt)[:length])


def nd(frame, ip, msg, *opts):
    pkt = frame / ip / msg
    for opt in opts:
        pkt = pkt / opt
    return pkt


def ns_in(src=PEER6, dst=SN_US, tgt=US6, lladdr=PEER, hlim=255, dmac=MAC_SN_US, smac=PEER):
    opts = [ICMPv6NDOptSrcLLAddr(lladdr=lladdr)] if lladdr else []
    return nd(Ether(src=smac, dst=dmac), IPv6(src=src, dst=dst, hlim=hlim),
              ICMPv6ND_NS(tgt=tgt), *opts)


def na_in(tgt=PEER6, lladdr=PEER, s=1, o=1, dst=US6, dmac=US, smac=PEER):
    opts = [ICMPv6NDOptDstLLAddr(lladdr=lladdr)] if lladdr else []
    return nd(Ether(src=smac, dst=dmac), IPv6(src=tgt, dst=dst, hlim=255),
              ICMPv6ND_NA(tgt=tgt, R=0, S=s, O=o), *opts)


GROUP4, MAC_GROUP4 = "239.129.2.3", "01:00:5e:01:02:03"
GROUP6, MAC_GROUP6 = "ff0e::8:9", "33:33:00:08:00:09"
LL_US, LL_GW = "fe80::5054:ff:fe00:2", "fe80::5054:ff:fe00:fe"
ALERT4 = IPOption(b"\x94\x04\x00\x00")
ALERT6 = IPv6ExtHdrHopByHop(options=[RouterAlert(), PadN(optdata=b"")])


def igmp_in(dst, msg, ttl=1, options=(ALERT4,), dmac="01:00:5e:00:00:01"):
    return Ether(src=GW, dst=dmac) / IP(src=GW4, dst=dst, ttl=ttl, tos=0xC0, id=0, proto=2,
                                        options=list(options)) / msg


def igmp_out(dst, dmac, msg, src=US4, tag=None):
    eth = Ether(src=US, dst=dmac)
    if tag:
        eth = eth / Dot1Q(vlan=tag)
    return eth / IP(src=src, dst=dst, ttl=1, tos=0xC0, id=0, flags="DF", options=[ALERT4]) / msg


def report4(rtype, *groups, **kw):
    msg = IGMPv3(type=0x22) / IGMPv3mr(records=[IGMPv3gr(rtype=rtype, maddr=g) for g in groups])
    return igmp_out("224.0.0.22", "01:00:5e:00:00:16", msg, **kw)


def mld_in(dst, msg, hlim=1, src=LL_GW, alert=ALERT6, dmac=MAC_ALL):
    return Ether(src=GW, dst=dmac) / IPv6(src=src, dst=dst, hlim=hlim) / alert / msg


def mld_out(dst, dmac, msg):
    return Ether(src=US, dst=dmac) / IPv6(src=LL_US, dst=dst, hlim=1) / ALERT6 / msg


def report6(rtype, *groups):
    recs = [ICMPv6MLDMultAddrRec(rtype=rtype, dst=g) for g in groups]
    return mld_out("ff02::16", "33:33:00:00:00:16", ICMPv6MLReport2(records=recs))


UDP_OUT = UDP(sport=0xE123, dport=4791, chksum=0) / BODY
ROCE_SENT = IP_OUT / UDP_OUT
ROCE_SENT6 = IPv6(src=US6, dst=PEER6) / UDP_OUT
TCP_SENT = IP_OUT / TCP(sport=7174, dport=49152, seq=0x01020304) / BODY

VECTORS = {
    # Received, sound.
    "udp4": IN / IP_IN / UDP_IN / BODY,
    "udp4_padded": IN / IP_IN / UDP_IN / b"ab" / Padding(b"\xee" * 16),
    "udp4_cksum": IN / IP_IN / UDP(sport=1, dport=2) / ODD,
    "udp4_tagged": IN / Dot1Q(vlan=5, prio=3) / IP(src=PEER4, dst=US4, tos=0x6B) / UDP_IN / BODY,
    "udp4_prio": IN / Dot1Q(vlan=0, prio=6) / IP_IN / UDP_IN / BODY,
    "udp6": IN / IP6_IN / UDP_IN / BODY,
    "udp6_padded": IN / IP6_IN / UDP_IN / b"ab" / Padding(b"\xee" * 16),
    "udp6_cksum": IN / IP6_IN / UDP(sport=1, dport=2) / ODD,
    "udp6_tagged": IN / Dot1Q(vlan=4094, prio=7) / IPv6(src=PEER6, dst=US6, tc=0x6B, fl=0xABCDE,
                                                     hlim=3) / UDP_IN / BODY,
    "tcp4": IN / IP_IN / TCP(sport=49152, dport=7174, flags="S", options=[("MSS", 1460)]) / ODD,
    "tcp6": IN / IP6_IN / TCP(sport=49152, dport=7174, flags="A") / ODD,
    # Received, for others or for nobody.
    "qinq": IN / Dot1Q(vlan=5) / Dot1Q(vlan=6) / IP_IN / UDP_IN / BODY,
    "vlan_4095": IN / Dot1Q(vlan=4095, prio=7) / IP_IN / UDP_IN / BODY,
    "mcast_smac": Ether(src="03:00:00:00:00:01", dst=US) / IP_IN / UDP_IN / BODY,
    "options4": IN / IP(src=PEER4, dst=US4,
                        options=[IPOption(b"\x94\x04\x00\x00")]) / UDP_IN / BODY,
    "igmp": IN / IP(src=PEER4, dst="224.0.0.1", proto=2,
                    options=[IPOption(b"\x94\x04\x00\x00")]) / Raw(b"\x11\x64\xee\x9b\0\0\0\0"),
    "frag4_first": IN / IP(src=PEER4, dst=US4, flags="MF") / UDP_IN / BODY,
    "frag4_last": IN / IP(src=PEER4, dst=US4, frag=2) / Raw(BODY),
    "frag6": IN / IP6_IN / IPv6ExtHdrFragment(m=1, id=7) / UDP_IN / BODY,
    "hopopt6": IN / IP6_IN / IPv6ExtHdrHopByHop() / UDP_IN / BODY,
    "version4": IN / IP(src=PEER4, dst=US4, version=6) / UDP_IN / BODY,
    "version6": IN / IPv6(src=PEER6, dst=US6, version=4) / UDP_IN / BODY,
    "ihl4": IN / IP(src=PEER4, dst=US4, ihl=4) / UDP_IN / BODY,
    "ip_cksum": IN / IP(src=PEER4, dst=US4, chksum=0x1234) / UDP_IN / BODY,
    "ip_len_long": IN / IP(src=PEER4, dst=US4, len=45) / UDP_IN / BODY,
    "ip_len_short": IN / IP(src=PEER4, dst=US4, len=19) / UDP_IN / BODY,
    "ip6_len_long": IN / IPv6(src=PEER6, dst=US6, plen=25) / UDP_IN / BODY,
    "udp_len_short": IN / IP_IN / UDP(sport=1, dport=4791, len=23, chksum=0) / BODY,
    "udp_len_long": IN / IP_IN / UDP(sport=1, dport=4791, len=25, chksum=0) / BODY,
    "udp6_len_short": IN / IP6_IN / UDP(sport=1, dport=4791, len=23, chksum=0) / BODY,
    "src4_mcast": IN / IP(src="224.0.0.1", dst=US4) / UDP_IN / BODY,
    "src4_loop": IN / IP(src="127.0.0.1", dst=US4) / UDP_IN / BODY,
    "src4_bcast": IN / IP(src="255.255.255.255", dst=US4) / UDP_IN / BODY,
    "src6_mcast": IN / IPv6(src="ff02::1", dst=US6) / UDP_IN / BODY,
    "src6_loop": IN / IPv6(src="::1", dst=US6) / UDP_IN / BODY,
    "src6_mapped": IN / IPv6(src="::ffff:192.0.2.3", dst=US6) / UDP_IN / BODY,
    "dst6_mapped": IN / IPv6(src=PEER6, dst="::ffff:192.0.2.2") / UDP_IN / BODY,
    # ARP.
    "arp_req_us": Ether(src=PEER, dst=BCAST) / ARP(op=1, hwsrc=PEER, psrc=PEER4, pdst=US4),
    "arp_req_us_tagged": Ether(src=PEER, dst=BCAST) / Dot1Q(vlan=5) /
                         ARP(op=1, hwsrc=PEER, psrc="198.51.100.3", pdst="198.51.100.2"),
    "arp_rep_us": OUT / ARP(op=2, hwsrc=US, psrc=US4, hwdst=PEER, pdst=PEER4),
    "arp_rep_us_tagged": OUT / Dot1Q(vlan=5) / ARP(op=2, hwsrc=US, psrc="198.51.100.2",
                                                  hwdst=PEER, pdst="198.51.100.3"),
    "arp_ask_peer": Ether(src=US, dst=BCAST) / ARP(op=1, hwsrc=US, psrc=US4, pdst=PEER4),
    "arp_ask_peer_unicast": OUT / ARP(op=1, hwsrc=US, psrc=US4, pdst=PEER4),
    "arp_peer_is": IN / ARP(op=2, hwsrc=PEER, psrc=PEER4, hwdst=US, pdst=US4),
    "arp_peer_moved": IN / ARP(op=2, hwsrc=GW, psrc=PEER4, hwdst=US, pdst=US4),
    "arp_gratuitous": Ether(src=GW, dst=BCAST) / ARP(op=1, hwsrc=GW, psrc=PEER4, pdst=PEER4),
    "arp_gratuitous_reply": Ether(src=GW, dst=BCAST) / ARP(op=2, hwsrc=GW, psrc=PEER4, hwdst=BCAST,
                                                           pdst=PEER4),
    "arp_conflict": Ether(src=GW, dst=BCAST) / ARP(op=1, hwsrc=GW, psrc=US4, pdst=PEER4),
    "arp_announce_us": Ether(src=US, dst=BCAST) / ARP(op=1, hwsrc=US, psrc=US4, pdst=US4),
    "arp_probe_us": Ether(src=PEER, dst=BCAST) / ARP(op=1, hwsrc=PEER, psrc="0.0.0.0", pdst=US4),
    "arp_rep_probe": OUT / ARP(op=2, hwsrc=US, psrc=US4, hwdst=PEER, pdst="0.0.0.0"),
    "arp_others": Ether(src=PEER, dst=BCAST) / ARP(op=1, hwsrc=PEER, psrc=PEER4, pdst=GW4),
    "arp_mcast_mac": IN / ARP(op=2, hwsrc="01:00:5e:00:00:01", psrc=PEER4, hwdst=US, pdst=US4),
    "arp_zero_mac": IN / ARP(op=2, hwsrc="00:00:00:00:00:00", psrc=PEER4, hwdst=US, pdst=US4),
    "arp_token_ring": IN / ARP(hwtype=6, op=2, hwsrc=PEER, psrc=PEER4, hwdst=US, pdst=US4),
    # ND.
    "ns_us": ns_in(),
    "na_us": nd(OUT, IPv6(src=US6, dst=PEER6, hlim=255), ICMPv6ND_NA(tgt=US6, R=0, S=1, O=1),
                ICMPv6NDOptDstLLAddr(lladdr=US)),
    "ns_dad_us": ns_in(src="::", lladdr=None),
    "na_all_us": nd(Ether(src=US, dst=MAC_ALL), IPv6(src=US6, dst=ALL, hlim=255),
                    ICMPv6ND_NA(tgt=US6, R=0, S=0, O=1), ICMPv6NDOptDstLLAddr(lladdr=US)),
    "ns_ask_peer": nd(Ether(src=US, dst=MAC_SN_PEER), IPv6(src=US6, dst=SN_PEER, hlim=255),
                      ICMPv6ND_NS(tgt=PEER6), ICMPv6NDOptSrcLLAddr(lladdr=US)),
    "ns_ask_peer_unicast": nd(OUT, IPv6(src=US6, dst=PEER6, hlim=255), ICMPv6ND_NS(tgt=PEER6),
                              ICMPv6NDOptSrcLLAddr(lladdr=US)),
    "na_peer_is": na_in(),
    "na_peer_moved_override": na_in(lladdr=GW, s=0, dst=ALL, dmac=MAC_ALL, smac=GW),
    "na_peer_moved_no_override": na_in(lladdr=GW, s=0, o=0, smac=GW),
    "na_peer_confirm": na_in(lladdr=None, s=1, o=0),
    "na_conflict": na_in(tgt=US6, lladdr=GW, s=0, dst=ALL, dmac=MAC_ALL, smac=GW),
    "ns_hop_limit": ns_in(hlim=254),
    "ns_mcast_target": ns_in(tgt="ff02::5"),
    "ns_dad_with_mac": ns_in(src="::"),
    "ns_dad_unicast": ns_in(src="::", lladdr=None, dst=US6),
    "ns_opt_zero": nd(IN, IPv6(src=PEER6, dst=SN_US, hlim=255), ICMPv6ND_NS(tgt=US6),
                      Raw(b"\x01\x00" + bytes(6))),
    "ns_opt_long": nd(IN, IPv6(src=PEER6, dst=SN_US, hlim=255), ICMPv6ND_NS(tgt=US6),
                      Raw(b"\x01\x02" + bytes(6))),
    "ns_opt_unknown": nd(IN, IPv6(src=PEER6, dst=SN_US, hlim=255), ICMPv6ND_NS(tgt=US6),
                         Raw(b"\x0e\x01" + bytes(6)), ICMPv6NDOptSrcLLAddr(lladdr=PEER)),
    "na_mcast_solicited": na_in(s=1, dst=ALL, dmac=MAC_ALL),
    "ra": nd(Ether(src=GW, dst=MAC_ALL), IPv6(src="fe80::fe", dst=ALL, hlim=255), ICMPv6ND_RA()),
    # ICMP.
    "echo4": IN / IP_IN / ICMP(type=8, id=0x77, seq=3) / ODD,
    "echo4_reply": OUT / IP(src=US4, dst=PEER4, id=0x1234, flags="DF") / ICMP(type=0, id=0x77,
                                                                              seq=3) / ODD,
    "echo4_tagged": IN / Dot1Q(vlan=5, prio=3) / IP_IN / ICMP(type=8, id=0x77, seq=3) / ODD,
    "echo4_reply_tagged": OUT / Dot1Q(vlan=5, prio=3) / IP(src=US4, dst=PEER4, id=0x1234,
                          flags="DF") / ICMP(type=0, id=0x77, seq=3) / ODD,
    "echo4_mcast": Ether(src=PEER, dst="01:00:5e:00:00:01") / IP(src=PEER4, dst="224.0.0.1") /
                   ICMP(type=8) / ODD,
    "echo4_from_zero": IN / IP(src="0.0.0.0", dst=US4) / ICMP(type=8) / ODD,
    "echo6": IN / IP6_IN / ICMPv6EchoRequest(id=0x77, seq=3, data=ODD),
    "echo6_reply": OUT / IPv6(src=US6, dst=PEER6, hlim=64) / ICMPv6EchoReply(id=0x77, seq=3,
                                                                           data=ODD),
    "frag_needed": IN / IP(src=GW4, dst=US4) / ICMP(type=3, code=4, nexthopmtu=1400) /
                   quoted(ROCE_SENT, 28),
    "frag_needed_old": IN / IP(src=GW4, dst=US4) / ICMP(type=3, code=4, nexthopmtu=0) /
                       quoted(IP(src=US4, dst=PEER4, len=1500, flags="DF") / UDP_OUT, 28),
    "frag_needed_tiny": IN / IP(src=GW4, dst=US4) / ICMP(type=3, code=4, nexthopmtu=67) /
                        quoted(ROCE_SENT, 28),
    "port_unreachable": IN / IP(src=PEER4, dst=US4) / ICMP(type=3, code=3) / quoted(TCP_SENT, 28),
    "icmp_quote_short": IN / IP(src=PEER4, dst=US4) / ICMP(type=3, code=3) / quoted(TCP_SENT, 27),
    "too_big": IN / IPv6(src=GW6, dst=US6) / ICMPv6PacketTooBig(mtu=1400) / quoted(ROCE_SENT6, 60),
    "too_big_tiny": IN / IPv6(src=GW6, dst=US6) / ICMPv6PacketTooBig(mtu=1279) /
                    quoted(ROCE_SENT6, 60),
    "unreachable6": IN / IPv6(src=GW6, dst=US6) / ICMPv6DestUnreach(code=4) /
                    quoted(ROCE_SENT6, 60),
    # Groups: queries of a router, and what others and we say.
    "igmp_query3": igmp_in("224.0.0.1", IGMPv3(type=0x11, mrcode=20) / IGMPv3mq(qrv=2, qqic=125)),
    "igmp_query3_slow": igmp_in("224.0.0.1", IGMPv3(type=0x11, mrcode=0x9A) /
                                IGMPv3mq(qrv=2, qqic=0x8A)),
    "igmp_query3_group": igmp_in(GROUP4, IGMPv3(type=0x11, mrcode=10) / IGMPv3mq(gaddr=GROUP4),
                                 dmac=MAC_GROUP4),
    "igmp_query3_sources": igmp_in(GROUP4, IGMPv3(type=0x11, mrcode=10) /
                                   IGMPv3mq(gaddr=GROUP4, srcaddrs=["192.0.2.7"]),
                                   dmac=MAC_GROUP4),
    "igmp_query2": igmp_in("224.0.0.1", IGMP(type=0x11, mrcode=100, gaddr="0.0.0.0")),
    "igmp_query1": igmp_in("224.0.0.1", IGMP(type=0x11, mrcode=0, gaddr="0.0.0.0"), options=()),
    "igmp_query_ttl": igmp_in("224.0.0.1", IGMPv3(type=0x11, mrcode=20) / IGMPv3mq(), ttl=2),
    "igmp_query_cksum": igmp_in("224.0.0.1", IGMP(type=0x11, mrcode=100, chksum=1)),
    "igmp_query_unicast": igmp_in(US4, IGMPv3(type=0x11, mrcode=20) / IGMPv3mq(), dmac=US),
    "igmp_query_10": igmp_in("224.0.0.1", Raw(b"\x11\x64\xee\x9b" + bytes(6))),
    "igmp_report_other": igmp_in(GROUP4, IGMP(type=0x16, mrcode=0, gaddr=GROUP4), dmac=MAC_GROUP4),
    "igmp_join": report4(4, GROUP4),
    "igmp_join_tagged": report4(4, GROUP4, src="198.51.100.2", tag=5),
    "igmp_leave": report4(3, GROUP4),
    "igmp_answer": report4(2, GROUP4),
    "igmp2_report": igmp_out(GROUP4, MAC_GROUP4, IGMP(type=0x16, mrcode=0, gaddr=GROUP4)),
    "igmp2_leave": igmp_out("224.0.0.2", "01:00:5e:00:00:02",
                            IGMP(type=0x17, mrcode=0, gaddr=GROUP4)),
    "igmp1_report": igmp_out(GROUP4, MAC_GROUP4, IGMP(type=0x12, mrcode=0, gaddr=GROUP4)),
    "mld_query2": mld_in(ALL, ICMPv6MLQuery2(mrd=2000, QRV=2, QQIC=125)),
    "mld_query2_slow": mld_in(ALL, ICMPv6MLQuery2(mrd=0x9ABC, QRV=2, QQIC=125)),
    "mld_query2_group": mld_in(GROUP6, ICMPv6MLQuery2(mrd=1000, mladdr=GROUP6), dmac=MAC_GROUP6),
    "mld_query1": mld_in(ALL, ICMPv6MLQuery(mrd=10000)),
    "mld_query_hlim": mld_in(ALL, ICMPv6MLQuery2(mrd=2000), hlim=2),
    "mld_query_global": mld_in(ALL, ICMPv6MLQuery2(mrd=2000), src=GW6),
    "mld_query_no_alert": mld_in(ALL, ICMPv6MLQuery2(mrd=2000),
                                 alert=IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])),
    "mld_query_cksum": mld_in(ALL, ICMPv6MLQuery2(mrd=2000, cksum=1)),
    "mld_report_other": mld_in(GROUP6, ICMPv6MLReport(mladdr=GROUP6), dmac=MAC_GROUP6),
    "mld_join": report6(4, GROUP6),
    "mld_leave": report6(3, GROUP6),
    "mld_answer": report6(2, GROUP6),
    "mld1_report": mld_out(GROUP6, MAC_GROUP6, ICMPv6MLReport(mladdr=GROUP6)),
    "mld1_leave": mld_out("ff02::2", "33:33:00:00:00:02", ICMPv6MLDone(mladdr=GROUP6)),
    # What paths emit.
    "out4": OUT / IP(src=US4, dst=PEER4, id=0, flags="DF", tos=0x68, ttl=9) / UDP_OUT,
    "out4_tagged": OUT / Dot1Q(vlan=5, prio=3) / IP_OUT / UDP_OUT,
    "out6": OUT / IPv6(src=US6, dst=PEER6, tc=0x6A, fl=0xABCDE, hlim=64) / UDP_OUT,
    "out6_tagged": OUT / Dot1Q(vlan=5, prio=3) / IP6_OUT / UDP_OUT,
    "out4_tcp_ect": OUT / IP(src=US4, dst=PEER4, id=0, flags="DF", tos=0x6A) /
                    TCP(sport=1, dport=2) / BODY,
    "out6_tcp_ect": OUT / Dot1Q(vlan=5, prio=3) / IPv6(src=US6, dst=PEER6, tc=0x6A) /
                    TCP(sport=1, dport=2) / BODY,
}


def main():
    out = sys.stdout
    out.write("/* SPDX-License-Identifier: BSD-3-Clause */\n"
              "/* Frames made by scapy: written by gen_net_vectors.py, not by hand. */\n"
              "#ifndef NET_VECTORS_H\n#define NET_VECTORS_H\n\n#include <stdint.h>\n")
    for name, pkt in VECTORS.items():
        data = bytes(pkt)
        out.write(f"\nstatic const uint8_t v_{name}[] = {{ /* {len(data)} bytes */\n")
        for i in range(0, len(data), 16):
            out.write("\t" + ",".join(f"{b:#x}" for b in data[i:i + 16]) + ",\n")
        out.write("};\n")
    out.write("\n/* All of them, for loops: X(name). */\n#define NET_VECTORS(X) \\\n")
    out.write(" \\\n".join(f"\tX({name})" for name in VECTORS))
    out.write("\n\n#endif /* NET_VECTORS_H */\n")


if __name__ == "__main__":
    main()
