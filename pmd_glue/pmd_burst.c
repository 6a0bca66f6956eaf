/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts and receive interrupts of a port's queue: what workers call. */
#include <errno.h>

#include <rte_mbuf.h>

#include "pmd_priv.h"

uint16_t
pmd_rx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	if (unlikely(p->loop != NULL))
		n = pmd_loop_rx(p, queue, m, n);
	else
		n = rte_eth_rx_burst(p->ethdev, queue, m, n);
	for (uint16_t i = 0; i < n; i++)
		m[i]->port = p->index;
	return n;
}

uint16_t
pmd_tx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	if (unlikely(p->loop != NULL))
		return pmd_loop_tx(p, queue, m, n);
	return rte_eth_tx_burst(p->ethdev, queue, m, n);
}

int
pmd_rx_intr_fd(struct pmd_port *p, uint16_t queue)
{
	int fd = p->rx_interrupts ? rte_eth_dev_rx_intr_ctl_q_get_fd(p->ethdev, queue) : -1;

	return fd >= 0 ? fd : -ENOTSUP;
}

/**
 * net_tap knows no switch: its queue's fd is readable whenever a packet waits. For all others
 * a driver that cannot switch has no interrupts.
 */
static int
intr_switched(struct pmd_port *p, int rc)
{
	struct rte_eth_dev_info info;

	if (rc != -ENOTSUP || rte_eth_dev_info_get(p->ethdev, &info) != 0)
		return rc;
	return strcmp(info.driver_name, "net_tap") == 0 ? 0 : rc;
}

int
pmd_rx_intr_enable(struct pmd_port *p, uint16_t queue)
{
	if (!p->rx_interrupts)
		return -ENOTSUP;
	return intr_switched(p, rte_eth_dev_rx_intr_enable(p->ethdev, queue));
}

int
pmd_rx_intr_disable(struct pmd_port *p, uint16_t queue)
{
	if (!p->rx_interrupts)
		return -ENOTSUP;
	return intr_switched(p, rte_eth_dev_rx_intr_disable(p->ethdev, queue));
}

bool
pmd_rx_maybe_ready(struct pmd_port *p, uint16_t queue)
{
	int n;

	if (p->loop != NULL)
		return pmd_loop_ready(p, queue);
	n = rte_eth_rx_queue_count(p->ethdev, queue);
	return n != 0; /* a driver that cannot count says so with a negative number */
}
