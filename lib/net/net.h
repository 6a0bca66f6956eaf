/* SPDX-License-Identifier: BSD-3-Clause */
/* All public headers of lib/net, for programs; libraries name what they use. */
#ifndef NET_H
#define NET_H

#include "net_addr.h"
#include "net_arp.h"
#include "net_cksum.h"
#include "net_group.h"
#include "net_icmp.h"
#include "net_iface.h"
#include "net_igmp.h"
#include "net_nd.h"
#include "net_neigh.h"
#include "net_parse.h"
#include "net_path.h"
#include "net_route.h"
#include "net_txbatch.h"

#endif /* NET_H */
