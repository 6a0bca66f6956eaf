/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of the interfaces that ports stand on: link, MTU and MAC, and routes over
 * them, which the ports follow. Own addresses come from the configuration; the kernel must not
 * have the same ones, since it would answer for us with resets and port-unreachables.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_nl.h"
#include "ctl_priv.h"

#define READS 64 /* datagrams a turn */
#define RCVBUF (1 << 20)

struct ctl_nl {
	struct ctl_source src; /* first */
	uint32_t seq;	       /* of the dump under way; 0: none */
	uint32_t port;	       /* that is dumped */
	bool v6;
	bool again; /* something has changed since the dump began */
	uint32_t num_found, num_known;
	struct net_route *found; /* by the dump */
	struct net_route *known; /* in the table, from the kernel */
};

static bool
same(const struct sockaddr *sa, const struct net_ip *ip)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
		struct net_ip v4 = net_ip_from_v4(in->sin_addr.s_addr);

		return net_ip_eq(&v4, ip);
	}
	if (sa->sa_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, ip->b, 16) == 0;
	return false;
}

int
ctl_nl_has_addr(const char *netdev, const struct net_ip *ip)
{
	struct ifaddrs *all, *i;
	int err = 0;

	if (netdev[0] == '\0' || getifaddrs(&all) < 0)
		return 0;
	for (i = all; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr != NULL && strcmp(i->ifa_name, netdev) == 0 &&
			same(i->ifa_addr, ip))
			err = -EADDRINUSE;
	}
	freeifaddrs(all);
	return err;
}

static int
port_of(const struct worker_device *d, uint32_t ifindex)
{
	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		if (ifindex != 0 && d->port[i].ifindex == ifindex)
			return (int)i;
	}
	return -1;
}

/* ---- asking ---------- */

struct nl_req {
	struct nlmsghdr h;
	union {
		struct ifinfomsg link;
		struct {
			struct rtmsg rt;
			struct rtattr oif;
			uint32_t ifindex;
		} route;
	};
};

static void
ask_link(struct ctl_nl *n, uint32_t ifindex)
{
	struct nl_req q = {
		.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.link)), .nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST},
		.link = {.ifi_index = (int)ifindex},
	};

	(void)!send(n->src.fd, &q, q.h.nlmsg_len, MSG_DONTWAIT);
}

/* The kernel gives those of one interface and table alone (NETLINK_GET_STRICT_CHK). */
static void
ask_routes(struct worker_device *d, struct ctl_nl *n)
{
	static _Atomic uint32_t seq;
	struct nl_req q = {
		.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.route)), .nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.route = {
			.rt = {.rtm_family = n->v6 ? AF_INET6 : AF_INET,
				.rtm_table = RT_TABLE_MAIN},
			.oif = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF},
			.ifindex = d->port[n->port].ifindex,
		},
	};

	q.h.nlmsg_seq = n->seq = ++seq != 0 ? seq : ++seq;
	if (send(n->src.fd, &q, q.h.nlmsg_len, MSG_DONTWAIT) < 0) {
		n->seq = 0;
		n->again = true;
	}
}

static bool
next_port(const struct worker_device *d, struct ctl_nl *n)
{
	while (n->port < d->sh.num_ports && d->port[n->port].ifindex == 0)
		n->port++;
	return n->port < d->sh.num_ports;
}

static void
dump_begin(struct worker_device *d, struct ctl_nl *n)
{
	if (n->seq != 0) {
		n->again = true;
		return;
	}
	n->again = false;
	n->num_found = 0;
	n->port = 0;
	n->v6 = false;
	if (next_port(d, n))
		ask_routes(d, n);
}

static void
dump_next(struct worker_device *d, struct ctl_nl *n)
{
	struct net_route *known = n->known;

	n->seq = 0;
	n->port += n->v6;
	n->v6 = !n->v6;
	if (next_port(d, n)) {
		ask_routes(d, n);
		return;
	}
	if (n->again) {
		dump_begin(d, n);
		return;
	}
	if (ctl_net_routes_follow(d, known, n->num_known, n->found, &n->num_found) < 0)
		return;
	n->known = n->found;
	n->num_known = n->num_found;
	n->found = known;
	n->num_found = 0;
}

/* ---- what it says ---------- */

static const void *
attr(struct rtattr *a, size_t len, unsigned short type, size_t size)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == type)
			return (size_t)RTA_PAYLOAD(a) >= size ? RTA_DATA(a) : NULL;
	}
	return NULL;
}

static void
link_msg(struct worker_device *d, struct nlmsghdr *h)
{
	struct ifinfomsg *i = NLMSG_DATA(h);
	struct rtattr *a = IFLA_RTA(i);
	size_t len = IFLA_PAYLOAD(h);
	const uint32_t *mtu = attr(a, len, IFLA_MTU, sizeof(*mtu));
	const uint8_t *mac = attr(a, len, IFLA_ADDRESS, RTE_ETHER_ADDR_LEN);
	bool up = h->nlmsg_type == RTM_NEWLINK && (i->ifi_flags & IFF_UP) &&
		(i->ifi_flags & IFF_RUNNING);
	int port = port_of(d, (uint32_t)i->ifi_index);

	/* A bridge's messages about its ports are of another family. */
	if (port >= 0 && i->ifi_family == AF_UNSPEC)
		ctl_net_link_follow(d, (uint32_t)port, up, mtu != NULL ? *mtu : 0, mac);
}

static struct net_ip
ip_of(int family, const void *p)
{
	uint32_t v4;

	if (p == NULL)
		return (struct net_ip){0};
	if (family == AF_INET6)
		return net_ip_from_bytes(p);
	memcpy(&v4, p, sizeof(v4));
	return net_ip_from_v4(v4);
}

static size_t
ip_size(int family)
{
	return family == AF_INET6 ? 16 : 4;
}

static void
addr_msg(struct worker_device *d, struct nlmsghdr *h)
{
	struct ifaddrmsg *i = NLMSG_DATA(h);
	int port = port_of(d, i->ifa_index);
	const void *p = attr(IFA_RTA(i), IFA_PAYLOAD(h), IFA_LOCAL, ip_size(i->ifa_family));
	struct net_ip ip;

	if (p == NULL)
		p = attr(IFA_RTA(i), IFA_PAYLOAD(h), IFA_ADDRESS, ip_size(i->ifa_family));
	if (port < 0 || p == NULL)
		return;
	ip = ip_of(i->ifa_family, p);
	ctl_net_addr_taken(d, (uint32_t)port, &ip, i->ifa_prefixlen);
}

static void
found_add(struct ctl_nl *n, const struct net_route *r)
{
	struct net_route *more;

	if (n->num_found == NET_ROUTES_MAX)
		return;
	/* Both lists are of this size once there is one. */
	if (n->found == NULL) {
		more = calloc(NET_ROUTES_MAX, sizeof(*more));
		if (more == NULL)
			return;
		n->found = more;
	}
	n->found[n->num_found++] = *r;
}

static bool
route_parse(const struct worker_device *d, struct nlmsghdr *h, struct net_route *r)
{
	struct rtmsg *m = NLMSG_DATA(h);
	struct rtattr *a = RTM_RTA(m);
	size_t len = RTM_PAYLOAD(h), size = ip_size(m->rtm_family);
	const uint32_t *oif = attr(a, len, RTA_OIF, 4), *metric = attr(a, len, RTA_PRIORITY, 4);
	int port = oif != NULL ? port_of(d, *oif) : -1;

	if (port < 0 || m->rtm_table != RT_TABLE_MAIN || m->rtm_type != RTN_UNICAST ||
		(m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return false;
	*r = (struct net_route){
		.prefix = ip_of(m->rtm_family, attr(a, len, RTA_DST, size)),
		.gateway = ip_of(m->rtm_family, attr(a, len, RTA_GATEWAY, size)),
		.metric = metric != NULL ? *metric : 0,
		.port = (uint16_t)port,
		.plen = m->rtm_dst_len,
	};
	if (m->rtm_family == AF_INET) {
		if (m->rtm_dst_len == 0)
			r->prefix = net_ip_from_v4(0);
		r->plen = (uint8_t)(r->plen + NET_PREFIX_V4);
	}
	return true;
}

static void
route_msg(struct worker_device *d, struct ctl_nl *n, struct nlmsghdr *h)
{
	struct net_route r;

	if (!route_parse(d, h, &r))
		return;
	if (n->seq != 0 && h->nlmsg_seq == n->seq)
		found_add(n, &r);
	else
		dump_begin(d, n); /* all of them: another metric may stand behind this one */
}

static size_t
least(uint16_t type)
{
	switch (type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return sizeof(struct ifinfomsg);
	case RTM_NEWADDR:
		return sizeof(struct ifaddrmsg);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return sizeof(struct rtmsg);
	default:
		return 0;
	}
}

static void
take(struct worker_device *d, struct ctl_nl *n, struct nlmsghdr *h)
{
	bool ours = n->seq != 0 && h->nlmsg_seq == n->seq;

	if (h->nlmsg_len < NLMSG_LENGTH(least(h->nlmsg_type)))
		return;
	if (ours && (h->nlmsg_flags & NLM_F_DUMP_INTR))
		n->again = true;
	switch (h->nlmsg_type) {
	case NLMSG_DONE:
	case NLMSG_ERROR:
		if (ours)
			dump_next(d, n);
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_msg(d, h);
		break;
	case RTM_NEWADDR:
		addr_msg(d, h);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		route_msg(d, n, h);
		break;
	}
}

/* Messages are lost: everything anew. */
static void
resync(struct worker_device *d, struct ctl_nl *n)
{
	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		if (d->port[i].ifindex != 0)
			ask_link(n, d->port[i].ifindex);
	}
	n->seq = 0;
	dump_begin(d, n);
}

static void
nl_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct ctl_nl *n = (struct ctl_nl *)s;
	_Alignas(8) char buf[32768];

	(void)events;
	for (int i = 0; i < READS; i++) {
		struct sockaddr_nl from = {.nl_pid = 1};
		socklen_t len = sizeof(from);
		ssize_t got = recvfrom(n->src.fd, buf, sizeof(buf), MSG_DONTWAIT,
			(struct sockaddr *)&from, &len);
		struct nlmsghdr *h = (struct nlmsghdr *)buf;

		if (got < 0 && errno == ENOBUFS)
			resync(d, n);
		if (got < 0)
			return;
		if (from.nl_pid != 0)
			continue; /* not the kernel */
		for (; NLMSG_OK(h, (size_t)got); h = NLMSG_NEXT(h, got))
			take(d, n, h);
	}
}

/* ---- beginning and end ---------- */

static int
nl_open(struct worker_device *d)
{
	struct sockaddr_nl sa = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
			RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
	};
	struct ctl_nl *n = calloc(1, sizeof(*n));
	int one = 1, size = RCVBUF;

	if (n == NULL)
		return -ENOMEM;
	d->nl = n;
	n->src.ready = nl_ready;
	n->src.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (n->src.fd < 0)
		return -errno;
	setsockopt(n->src.fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	setsockopt(n->src.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(n->src.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return ctl_source_add(d, &n->src, EPOLLIN);
}

void
ctl_nl_follow(struct worker_device *d, uint32_t port, const char *netdev)
{
	uint32_t ifindex = netdev[0] != '\0' ? if_nametoindex(netdev) : 0;
	int err = ifindex != 0 && d->nl == NULL ? nl_open(d) : 0;

	if (err < 0) {
		LOG(ctl_log, WARNING, "port %u: changes of %s are not followed: %s", port + 1,
			netdev, strerror(-err));
		ctl_nl_end(d);
		return;
	}
	if (ifindex == 0)
		return;
	d->port[port].ifindex = ifindex;
	strcpy(d->port[port].netdev, netdev);
	ask_link(d->nl, ifindex);
	dump_begin(d, d->nl);
}

void
ctl_nl_end(struct worker_device *d)
{
	struct ctl_nl *n = d->nl;

	if (n == NULL)
		return;
	if (n->src.fd >= 0)
		close(n->src.fd);
	free(n->found);
	free(n->known);
	free(n);
	d->nl = NULL;
}
