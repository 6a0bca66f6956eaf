/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe - the least DPDK program that shows a port is wired to a guest: it answers
 * ARP requests and ICMP echoes for one IPv4 address, whatever their size.
 *
 * usage: probe EAL-ARGS... -- ADDRESS MTU
 *
 * Prints "ready MAC", then one line for each frame to its address, until SIGINT or
 * SIGTERM. It takes no part in the product.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_arp.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#define BURST 32

static volatile sig_atomic_t stop;
static struct rte_ether_addr mac;
static rte_be32_t own;

static void
on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* Turns the frame into its answer; false if it needs none. */
static bool
answer_arp(struct rte_arp_hdr *arp)
{
	rte_be32_t asker = arp->arp_data.arp_sip;

	if (arp->arp_opcode != htons(RTE_ARP_OP_REQUEST) || arp->arp_data.arp_tip != own)
		return false;
	arp->arp_opcode = htons(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_tha = arp->arp_data.arp_sha;
	arp->arp_data.arp_sha = mac;
	arp->arp_data.arp_tip = asker;
	arp->arp_data.arp_sip = own;
	return true;
}

static bool
answer_echo(struct rte_ipv4_hdr *ip)
{
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ip + 1);
	uint32_t sum;

	if (ip->next_proto_id != IPPROTO_ICMP || ip->dst_addr != own ||
	    icmp->icmp_type != RTE_IP_ICMP_ECHO_REQUEST)
		return false;
	ip->dst_addr = ip->src_addr;
	ip->src_addr = own;
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	/* RFC 1624: the type word went from 0x0800 to 0. */
	sum = ntohs(icmp->icmp_cksum) + 0x0800u;
	icmp->icmp_cksum = htons((sum & 0xffff) + (sum >> 16));
	return true;
}

static bool
answer(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	const char *what = NULL;

	if (rte_pktmbuf_data_len(m) < 42 || m->nb_segs > 1)
		return false;
	if (eth->ether_type == htons(RTE_ETHER_TYPE_ARP))
		what = answer_arp((struct rte_arp_hdr *)(eth + 1)) ? "arp" : NULL;
	else if (eth->ether_type == htons(RTE_ETHER_TYPE_IPV4))
		what = answer_echo((struct rte_ipv4_hdr *)(eth + 1)) ? "echo" : NULL;
	if (!what)
		return false;
	eth->dst_addr = eth->src_addr;
	eth->src_addr = mac;
	printf("%s %u\n", what, rte_pktmbuf_pkt_len(m));
	fflush(stdout);
	return true;
}

static void
loop(void)
{
	struct rte_mbuf *burst[BURST];
	uint16_t i, n;

	while (!stop) {
		n = rte_eth_rx_burst(0, 0, burst, BURST);
		for (i = 0; i < n; i++)
			if (!answer(burst[i]) || rte_eth_tx_burst(0, 0, &burst[i], 1) != 1)
				rte_pktmbuf_free(burst[i]);
		if (!n)
			sched_yield();
	}
}

static void
start_port(uint16_t mtu)
{
	/* The af_packet PMD copies a frame into one mbuf and does not look at its room. */
	struct rte_mempool *pool = rte_pktmbuf_pool_create("probe", 2047, 0, 0,
		RTE_PKTMBUF_HEADROOM + 8192, SOCKET_ID_ANY);
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;

	/*
	 * af_packet (22.11) claims 1518 bytes at most and refuses any MTU above 1500, but
	 * moves what framesz= and the netdev's own MTU allow.
	 */
	if (!rte_eth_dev_info_get(0, &info) && info.max_rx_pktlen >= mtu + 18u)
		conf.rxmode.mtu = mtu;
	if (!pool || rte_eth_dev_configure(0, 1, 1, &conf) ||
	    rte_eth_rx_queue_setup(0, 0, 256, SOCKET_ID_ANY, NULL, pool) ||
	    rte_eth_tx_queue_setup(0, 0, 256, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(0))
		rte_exit(EXIT_FAILURE, "port 0 does not start\n");
	rte_eth_promiscuous_enable(0);
	rte_eth_macaddr_get(0, &mac);
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);

	if (n < 0 || argc - n != 3 || inet_pton(AF_INET, argv[n + 1], &own) != 1 ||
	    !rte_eth_dev_is_valid_port(0))
		rte_exit(EXIT_FAILURE, "usage: probe EAL-ARGS... -- ADDRESS MTU\n");
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	start_port(atoi(argv[n + 2]));
	printf("ready " RTE_ETHER_ADDR_PRT_FMT "\n", RTE_ETHER_ADDR_BYTES(&mac));
	fflush(stdout);
	loop();
	rte_eth_dev_stop(0);
	rte_eth_dev_close(0);
	return rte_eal_cleanup() ? EXIT_FAILURE : 0;
}
