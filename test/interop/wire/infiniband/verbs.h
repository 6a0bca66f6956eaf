/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As much of libibverbs' interface as peer-qp uses, over an engine in the same process
 * (wire_verbs.c). Numbers are those of verbs, which are also the engine's.
 */
#ifndef WIRE_INFINIBAND_VERBS_H
#define WIRE_INFINIBAND_VERBS_H

#include <stdint.h>

enum ibv_access_flags {
	IBV_ACCESS_LOCAL_WRITE = 1,
	IBV_ACCESS_REMOTE_WRITE = 2,
	IBV_ACCESS_REMOTE_READ = 4,
	IBV_ACCESS_REMOTE_ATOMIC = 8,
	IBV_ACCESS_MW_BIND = 16,
};

enum ibv_mtu { IBV_MTU_256 = 1, IBV_MTU_4096 = 5 };
enum ibv_mw_type { IBV_MW_TYPE_2 = 2 };
enum ibv_qp_type { IBV_QPT_RC = 2 };
enum ibv_qp_state { IBV_QPS_INIT = 1, IBV_QPS_RTR = 2, IBV_QPS_RTS = 3 };
enum ibv_send_flags {
	IBV_SEND_FENCE = 1,
	IBV_SEND_SIGNALED = 2,
	IBV_SEND_SOLICITED = 4,
	IBV_SEND_INLINE = 8,
};
enum ibv_wc_flags { IBV_WC_WITH_IMM = 2, IBV_WC_WITH_INV = 8 };
enum ibv_wc_opcode { IBV_WC_RECV = 128, IBV_WC_RECV_RDMA_WITH_IMM = 129 };

enum ibv_qp_attr_mask {
	IBV_QP_STATE = 1 << 0,
	IBV_QP_ACCESS_FLAGS = 1 << 3,
	IBV_QP_PKEY_INDEX = 1 << 4,
	IBV_QP_PORT = 1 << 5,
	IBV_QP_AV = 1 << 7,
	IBV_QP_PATH_MTU = 1 << 8,
	IBV_QP_TIMEOUT = 1 << 9,
	IBV_QP_RETRY_CNT = 1 << 10,
	IBV_QP_RNR_RETRY = 1 << 11,
	IBV_QP_RQ_PSN = 1 << 12,
	IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IBV_QP_MIN_RNR_TIMER = 1 << 15,
	IBV_QP_SQ_PSN = 1 << 16,
	IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IBV_QP_DEST_QPN = 1 << 20,
};

enum ibv_wr_opcode {
	IBV_WR_RDMA_WRITE = 0,
	IBV_WR_RDMA_WRITE_WITH_IMM = 1,
	IBV_WR_SEND = 2,
	IBV_WR_SEND_WITH_IMM = 3,
	IBV_WR_RDMA_READ = 4,
	IBV_WR_ATOMIC_CMP_AND_SWP = 5,
	IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
	IBV_WR_BIND_MW = 8,
	IBV_WR_SEND_WITH_INV = 9,
};

enum ibv_wc_status {
	IBV_WC_SUCCESS = 0,
	IBV_WC_REM_INV_REQ_ERR = 9,
	IBV_WC_REM_ACCESS_ERR = 10,
	IBV_WC_REM_OP_ERR = 11,
	IBV_WC_RNR_RETRY_EXC_ERR = 13,
};

union ibv_gid {
	uint8_t raw[16];
};

struct ibv_device;
struct ibv_context;
struct ibv_pd;
struct ibv_cq;

struct ibv_comp_channel {
	int fd;
};

struct ibv_mr {
	uint32_t lkey, rkey;
};

struct ibv_mw {
	uint32_t rkey;
};

struct ibv_qp {
	uint32_t qp_num;
};

struct ibv_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

struct ibv_mw_bind_info {
	struct ibv_mr *mr;
	uint64_t addr, length;
	unsigned int mw_access_flags;
};

struct ibv_send_wr {
	uint64_t wr_id;
	struct ibv_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	unsigned int send_flags;
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr, compare_add, swap;
			uint32_t rkey;
		} atomic;
	} wr;
	struct {
		struct ibv_mw *mw;
		uint32_t rkey;
		struct ibv_mw_bind_info bind_info;
	} bind_mw;
};

struct ibv_recv_wr {
	uint64_t wr_id;
	struct ibv_recv_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
};

struct ibv_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidated_rkey;
	};
	unsigned int wc_flags;
};

struct ibv_qp_init_attr {
	struct ibv_cq *send_cq, *recv_cq;
	struct {
		uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	} cap;
	enum ibv_qp_type qp_type;
};

struct ibv_qp_attr {
	enum ibv_qp_state qp_state;
	enum ibv_mtu path_mtu;
	uint32_t rq_psn, sq_psn, dest_qp_num;
	unsigned int qp_access_flags;
	struct {
		int is_global;
		uint16_t dlid;
		uint8_t port_num;
		struct {
			union ibv_gid dgid;
			uint8_t sgid_index, hop_limit;
		} grh;
	} ah_attr;
	uint8_t max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
	uint8_t timeout, retry_cnt, rnr_retry;
};

struct ibv_device **ibv_get_device_list(int *num);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_get_device_name(struct ibv_device *dev);
struct ibv_context *ibv_open_device(struct ibv_device *dev);
int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, uint64_t len, int access);
struct ibv_mw *ibv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int ibv_dealloc_mw(struct ibv_mw *mw);
/* There are none: NULL. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user);
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n);
int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
			     struct ibv_comp_channel *channel, int vector);
int ibv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
const char *ibv_wc_status_str(enum ibv_wc_status status);

static inline uint32_t
ibv_inc_rkey(uint32_t rkey)
{
	return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

#endif /* WIRE_INFINIBAND_VERBS_H */
