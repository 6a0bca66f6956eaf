// SPDX-License-Identifier: BSD-3-Clause
// rnic.h in C++11, inline functions and all.
#include "rnic.h"

static_assert(sizeof(struct rnic_wqe) == RNIC_SLOT_SIZE, "slot");

int post(struct rnic_qp *qp, const struct rnic_ah *ah, const void *data);

int
post(struct rnic_qp *qp, const struct rnic_ah *ah, const void *data)
{
	struct rnic_sge result = {1, 8, 2};
	struct rnic_wqe *w = rnic_sq_get(qp, 1, rnic_slots_inline(100) + rnic_slots_sge(3));
	struct rnic_rwqe *r = rnic_rq_get(qp, 2, rnic_slots_recv(4));

	if (!w || !r)
		return -1;
	rnic_prep_send(w, RNIC_SEND_SIGNALED | RNIC_SEND_FENCE);
	rnic_prep_imm(w, 1);
	rnic_prep_ud(w, ah, 3, 4);
	rnic_prep_inline(qp, w, data, 100);
	rnic_prep_write(w, 1, 2, 0);
	rnic_prep_read(w, 1, 2, 0);
	rnic_prep_sge(qp, w, 1, 2, 3);
	rnic_prep_atomic(w, RNIC_WR_ATOMIC_FETCH_AND_ADD, 1, 2, 3, 4, &result, 0);
	rnic_prep_recv_sge(qp, r, 1, 2, 3);
	rnic_sq_submit(qp);
	rnic_rq_submit(qp);
	return 0;
}
