/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rnic.h>

static int
ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "hello_rnic: %s\n", rnic_strerror(rc));
		exit(1);
	}
	return rc;
}

/* What both ends do with the other's QP number, PSN and GID; this QP is its own peer. */
static struct rnic_qp *
connected_qp(struct rnic_pd *pd, struct rnic_cq *cq)
{
	struct rnic_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = RNIC_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1 } };
	struct rnic_qp_attr a = { .qp_state = RNIC_QPS_INIT, .port_num = 1,
		.qp_access_flags = RNIC_ACCESS_REMOTE_WRITE, .path_mtu = RNIC_MTU_1024,
		.rq_psn = 1234, .sq_psn = 1234, .min_rnr_timer = 12, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .hop_limit = 64 } };
	struct rnic_gid_entry own;
	struct rnic_qp *qp;

	ok(rnic_create_qp(pd, &init, &qp));
	ok(rnic_query_gid(pd->context, 1, 0, &own));
	a.ah_attr.dgid = own.gid;
	a.dest_qp_num = qp->qp_num;
	ok(rnic_modify_qp(qp, &a, RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
		RNIC_QP_ACCESS_FLAGS));
	a.qp_state = RNIC_QPS_RTR;
	ok(rnic_modify_qp(qp, &a, RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU | RNIC_QP_DEST_QPN |
		RNIC_QP_RQ_PSN | RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER));
	a.qp_state = RNIC_QPS_RTS;
	ok(rnic_modify_qp(qp, &a, RNIC_QP_STATE | RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
		RNIC_QP_RNR_RETRY | RNIC_QP_SQ_PSN | RNIC_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

int
main(void)
{
	struct rnic_context *ctx;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_mr *mr;
	struct rnic_wc wc;
	void *page;

	ok(rnic_open(NULL, NULL, &ctx)); /* the daemon of $RNIC_SOCKET, or the usual one */
	ok(rnic_alloc_pd(ctx, &pd));
	ok(rnic_create_cq(ctx, &(struct rnic_cq_attr){ .cqe = 8 }, &cq));
	qp = connected_qp(pd, cq);
	ok(rnic_alloc(ctx, 4096, 0, &page)); /* or any memory: the daemon then copies */
	ok(rnic_reg_mr(pd, page, 4096, RNIC_ACCESS_LOCAL_WRITE | RNIC_ACCESS_REMOTE_WRITE, &mr));
	strcpy(page, "hello, RDMA");
	ok(rnic_post_send(qp, &(struct rnic_send_wr){ .opcode = RNIC_WR_RDMA_WRITE, .num_sge = 1,
		.sg_list = &(struct rnic_sge){ .addr = mr->iova, .length = 2048, .lkey = mr->lkey },
		.wr.rdma = { .remote_addr = mr->iova + 2048, .rkey = mr->rkey },
		.send_flags = RNIC_SEND_SIGNALED }, NULL));
	while (ok(rnic_poll_cq(cq, 1, &wc)) == 0)
		;
	printf("%s: %s\n", rnic_wc_status_str(wc.status), (char *)page + 2048);
	rnic_close(ctx); /* and all that was made in it */
	return wc.status != RNIC_WC_SUCCESS;
}
