/* SPDX-License-Identifier: BSD-3-Clause */
/* UD and GSI: datagrams received. No QP of these types can be made yet, and none comes here. */
#include "roce_priv.h"

enum roce_rx_result
roce_ud_packet(struct roce *r, struct roce_rx *rx)
{
	(void)rx;
	roce_count(r, ROCE_C_DROP_QP_TYPE);
	return ROCE_RX_FREE;
}

enum roce_rx_result
roce_ud_placed(struct roce *r, struct roce_rx *rx, int status)
{
	(void)r;
	(void)rx;
	(void)status;
	return ROCE_RX_FREE;
}
