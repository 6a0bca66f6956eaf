/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librnic: RDMA through a SoftRNIC daemon. Names, numbers and meanings are those of verbs; what
 * differs is said here and in librnic(7).
 *
 * Every call returns 0 (or a count) or a negative errno, and hands objects out by its last
 * argument. -ENOTCONN: the daemon is gone, all else but destroying and rnic_reopen() is futile.
 * -EPERM: this is a forked child; the context belongs to the parent, every call but rnic_close()
 * is a no-op here.
 * All calls are thread-safe but for queues made with RNIC_THREAD_UNSAFE. Fields of objects are
 * for reading. This header needs C99 or C++11 with GNU extensions (gcc, clang), and little-endian.
 */
#ifndef RNIC_H
#define RNIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RNIC_VERSION_MAJOR 0
#define RNIC_VERSION_MINOR 1
#define RNIC_DEFAULT_PATH "/run/softrnic/rnic0.sock" /* or the environment's RNIC_SOCKET */
#define RNIC_NAME_LEN 32

struct rnic_context;
struct rnic_channel;
struct rnic_srq;
struct rnic_xrcd;

/* ---- numbers, as in verbs.h -------------------------------------------------------------- */

enum rnic_wc_status {
	RNIC_WC_SUCCESS = 0,
	RNIC_WC_LOC_LEN_ERR = 1,
	RNIC_WC_LOC_QP_OP_ERR = 2,
	RNIC_WC_LOC_EEC_OP_ERR = 3,
	RNIC_WC_LOC_PROT_ERR = 4,
	RNIC_WC_WR_FLUSH_ERR = 5,
	RNIC_WC_MW_BIND_ERR = 6,
	RNIC_WC_BAD_RESP_ERR = 7,
	RNIC_WC_LOC_ACCESS_ERR = 8,
	RNIC_WC_REM_INV_REQ_ERR = 9,
	RNIC_WC_REM_ACCESS_ERR = 10,
	RNIC_WC_REM_OP_ERR = 11,
	RNIC_WC_RETRY_EXC_ERR = 12,
	RNIC_WC_RNR_RETRY_EXC_ERR = 13,
	RNIC_WC_LOC_RDD_VIOL_ERR = 14,
	RNIC_WC_REM_INV_RD_REQ_ERR = 15,
	RNIC_WC_REM_ABORT_ERR = 16,
	RNIC_WC_INV_EECN_ERR = 17,
	RNIC_WC_INV_EEC_STATE_ERR = 18,
	RNIC_WC_FATAL_ERR = 19,
	RNIC_WC_RESP_TIMEOUT_ERR = 20,
	RNIC_WC_GENERAL_ERR = 21
};

enum rnic_wc_opcode {
	RNIC_WC_SEND = 0,
	RNIC_WC_RDMA_WRITE = 1,
	RNIC_WC_RDMA_READ = 2,
	RNIC_WC_COMP_SWAP = 3,
	RNIC_WC_FETCH_ADD = 4,
	RNIC_WC_BIND_MW = 5,
	RNIC_WC_LOCAL_INV = 6,
	RNIC_WC_FLUSH = 8,
	RNIC_WC_ATOMIC_WRITE = 9,
	RNIC_WC_FAST_REG = 10,
	RNIC_WC_RECV = 128,
	RNIC_WC_RECV_RDMA_WITH_IMM = 129
};

enum rnic_wc_flags {
	RNIC_WC_GRH = 1 << 0, /* 40 bytes of GRH precede the data in the buffer */
	RNIC_WC_WITH_IMM = 1 << 1,
	RNIC_WC_WITH_INV = 1 << 3
};

enum rnic_wr_opcode {
	RNIC_WR_RDMA_WRITE = 0,
	RNIC_WR_RDMA_WRITE_WITH_IMM = 1,
	RNIC_WR_SEND = 2,
	RNIC_WR_SEND_WITH_IMM = 3,
	RNIC_WR_RDMA_READ = 4,
	RNIC_WR_ATOMIC_CMP_AND_SWP = 5,
	RNIC_WR_ATOMIC_FETCH_AND_ADD = 6,
	RNIC_WR_LOCAL_INV = 7,
	RNIC_WR_BIND_MW = 8,
	RNIC_WR_SEND_WITH_INV = 9,
	RNIC_WR_FLUSH = 14,
	RNIC_WR_ATOMIC_WRITE = 15,
	RNIC_WR_FAST_REG = 32
};

enum rnic_send_flags {
	RNIC_SEND_FENCE = 1 << 0,
	RNIC_SEND_SIGNALED = 1 << 1,
	RNIC_SEND_SOLICITED = 1 << 2,
	RNIC_SEND_INLINE = 1 << 3
};

enum rnic_access_flags {
	RNIC_ACCESS_LOCAL_WRITE = 1 << 0,
	RNIC_ACCESS_REMOTE_WRITE = 1 << 1,
	RNIC_ACCESS_REMOTE_READ = 1 << 2,
	RNIC_ACCESS_REMOTE_ATOMIC = 1 << 3,
	RNIC_ACCESS_MW_BIND = 1 << 4,
	RNIC_ACCESS_ZERO_BASED = 1 << 5,
	RNIC_ACCESS_ON_DEMAND = 1 << 6,
	RNIC_ACCESS_HUGETLB = 1 << 7,
	RNIC_ACCESS_FLUSH_GLOBAL = 1 << 8,
	RNIC_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	RNIC_ACCESS_RELAXED_ORDERING = 1 << 20
};

enum rnic_qp_type {
	RNIC_QPT_RC = 2,
	RNIC_QPT_UC = 3,
	RNIC_QPT_UD = 4,
	RNIC_QPT_RAW_PACKET = 8,
	RNIC_QPT_XRC_SEND = 9,
	RNIC_QPT_XRC_RECV = 10
};

enum rnic_qp_state {
	RNIC_QPS_RESET = 0,
	RNIC_QPS_INIT = 1,
	RNIC_QPS_RTR = 2,
	RNIC_QPS_RTS = 3,
	RNIC_QPS_SQD = 4,
	RNIC_QPS_SQE = 5,
	RNIC_QPS_ERR = 6
};

enum rnic_qp_attr_mask {
	RNIC_QP_STATE = 1 << 0,
	RNIC_QP_CUR_STATE = 1 << 1,
	RNIC_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	RNIC_QP_ACCESS_FLAGS = 1 << 3,
	RNIC_QP_PKEY_INDEX = 1 << 4,
	RNIC_QP_PORT = 1 << 5,
	RNIC_QP_QKEY = 1 << 6,
	RNIC_QP_AV = 1 << 7,
	RNIC_QP_PATH_MTU = 1 << 8,
	RNIC_QP_TIMEOUT = 1 << 9,
	RNIC_QP_RETRY_CNT = 1 << 10,
	RNIC_QP_RNR_RETRY = 1 << 11,
	RNIC_QP_RQ_PSN = 1 << 12,
	RNIC_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	RNIC_QP_ALT_PATH = 1 << 14,
	RNIC_QP_MIN_RNR_TIMER = 1 << 15,
	RNIC_QP_SQ_PSN = 1 << 16,
	RNIC_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RNIC_QP_PATH_MIG_STATE = 1 << 18,
	RNIC_QP_CAP = 1 << 19,
	RNIC_QP_DEST_QPN = 1 << 20,
	RNIC_QP_RATE_LIMIT = 1 << 25
};

enum rnic_mtu {
	RNIC_MTU_256 = 1,
	RNIC_MTU_512 = 2,
	RNIC_MTU_1024 = 3,
	RNIC_MTU_2048 = 4,
	RNIC_MTU_4096 = 5
};

enum rnic_port_state { RNIC_PORT_DOWN = 1, RNIC_PORT_ACTIVE = 4 };

enum rnic_transport { RNIC_TRANSPORT_ROCE = 0, RNIC_TRANSPORT_IWARP = 1 };

/** Type 2 is 2B: good on the QP that bound it, and in its PD; 2A asks for the QP alone. */
enum rnic_mw_type { RNIC_MW_TYPE_1 = 1, RNIC_MW_TYPE_2 = 2, RNIC_MW_TYPE_2A = 3 };

enum rnic_rereg_flags {
	RNIC_REREG_TRANSLATION = 1 << 0,
	RNIC_REREG_PD = 1 << 1,
	RNIC_REREG_ACCESS = 1 << 2
};

enum rnic_srq_attr_mask { RNIC_SRQ_MAX_WR = 1 << 0, RNIC_SRQ_LIMIT = 1 << 1 };

enum rnic_event_type {
	RNIC_EVENT_CQ_ERR = 0,
	RNIC_EVENT_QP_FATAL = 1,
	RNIC_EVENT_QP_REQ_ERR = 2,
	RNIC_EVENT_QP_ACCESS_ERR = 3,
	RNIC_EVENT_COMM_EST = 4,
	RNIC_EVENT_SQ_DRAINED = 5,
	RNIC_EVENT_DEVICE_FATAL = 8,
	RNIC_EVENT_PORT_ACTIVE = 9,
	RNIC_EVENT_PORT_ERR = 10,
	RNIC_EVENT_SRQ_ERR = 14,
	RNIC_EVENT_SRQ_LIMIT_REACHED = 15,
	RNIC_EVENT_QP_LAST_WQE_REACHED = 16,
	RNIC_EVENT_GID_CHANGE = 18
};

/** Of contexts (all their queues), CQs, QPs and SRQs: the caller serialises, no lock is taken. */
#define RNIC_THREAD_UNSAFE 1u

union rnic_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix; /* network order, as the next */
		uint64_t interface_id;
	} global;
};

/* ---- contexts ---------------------------------------------------------------------------- */

/** How to open; NULL or all zero will do. */
struct rnic_open_attr {
	const char *device; /* a name of rnic_list_devices(); NULL: the daemon's first */
	uint32_t flags;	    /* RNIC_THREAD_UNSAFE */
	uint32_t reserved;
};

struct rnic_device_info {
	char name[RNIC_NAME_LEN];
	uint64_t node_guid; /* network order */
	uint32_t transport; /* enum rnic_transport */
	uint32_t num_ports;
};

/** Names of a daemon's devices. The number there are, of which up to `max` were filled in. */
int rnic_list_devices(const char *path, struct rnic_device_info *info, int max);

/**
 * Connect to the daemon whose socket is at `path` (NULL: $RNIC_SOCKET, else RNIC_DEFAULT_PATH).
 * -EPROTONOSUPPORT: it speaks another major version.
 */
int rnic_open(const char *path, const struct rnic_open_attr *attr, struct rnic_context **ctx);
/** The same on a connected SOCK_SEQPACKET socket, which becomes the context's if it succeeds. */
int rnic_open_fd(int fd, const struct rnic_open_attr *attr, struct rnic_context **ctx);
/**
 * After the daemon's restart: open a new context at the path, device and flags of an old one. The
 * old one stays as it is; its objects are gone in the daemon, and are to be destroyed here as ever.
 */
int rnic_reopen(const struct rnic_context *old, struct rnic_context **ctx);
/**
 * Ends the context and every object of it that is left. No other call may be under way. In a
 * forked child it closes the descriptors that the child inherited, and is no more: the context
 * stays the parent's, its memory here goes with the process.
 */
int rnic_close(struct rnic_context *ctx);

/** 0 while the daemon is there, -ENOTCONN, -EPERM in a forked child. */
int rnic_status(const struct rnic_context *ctx);
const char *rnic_device_name(const struct rnic_context *ctx);
/** Random at each start of the daemon: 16 bytes. */
const uint8_t *rnic_boot_id(const struct rnic_context *ctx);
unsigned int rnic_num_workers(const struct rnic_context *ctx);
unsigned int rnic_num_comp_vectors(const struct rnic_context *ctx);
/** Completions that had to be discarded: of destroyed QPs, or senseless. */
uint64_t rnic_stale_completions(const struct rnic_context *ctx);

struct rnic_device_attr {
	char name[RNIC_NAME_LEN];
	char fw_ver[64];
	uint64_t node_guid; /* network order, as the next */
	uint64_t sys_image_guid;
	uint64_t device_cap_flags; /* IBV_DEVICE_* */
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint64_t max_dm_size;
	uint64_t completion_timestamp_mask;
	uint64_t hca_core_clock; /* kHz */
	uint64_t max_msg_size;
	uint32_t transport; /* enum rnic_transport */
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t atomic_cap; /* enum ibv_atomic_cap */
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_inline;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_qp_rd_atom;
	uint32_t max_qp_init_rd_atom;
	uint32_t max_res_rd_atom;
	uint32_t max_mw;
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach;
	uint32_t max_total_mcast_qp_attach;
	uint32_t max_ah;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_pkeys;
	uint32_t num_ports;
	uint32_t num_comp_vectors;
	uint32_t local_ca_ack_delay;
	uint32_t odp_general_caps;
	uint32_t odp_rc_caps;
	uint32_t odp_uc_caps;
	uint32_t odp_ud_caps;
	uint32_t odp_xrc_caps;
	uint32_t max_fast_reg; /* elements of a FAST_REG's list */
};

struct rnic_port_attr {
	uint32_t state;	     /* enum rnic_port_state */
	uint32_t max_mtu;    /* enum rnic_mtu */
	uint32_t active_mtu; /* enum rnic_mtu */
	uint32_t link_mtu;   /* bytes of IP packets */
	uint32_t speed;	     /* Mb/s; 0: unknown */
	uint32_t gid_tbl_len;
	uint32_t pkey_tbl_len;
	uint32_t port_cap_flags;
	uint32_t vlan;
	uint64_t max_msg_size;
	uint8_t mac[6];
	char netdev[RNIC_NAME_LEN];
};

struct rnic_gid_entry {
	union rnic_gid gid;
	uint32_t type; /* enum ibv_gid_type: 2, RoCE v2; 0 on iWARP */
	uint32_t ndev_ifindex;
	uint32_t vlan;
};

int rnic_query_device(struct rnic_context *ctx, struct rnic_device_attr *attr);
/** Ports count from 1. */
int rnic_query_port(struct rnic_context *ctx, unsigned int port, struct rnic_port_attr *attr);
/** -ENODATA: an empty entry. */
int rnic_query_gid(struct rnic_context *ctx, unsigned int port, unsigned int index,
	struct rnic_gid_entry *entry);

/* ---- protection domains and memory ------------------------------------------------------- */

struct rnic_pd {
	struct rnic_context *context;
	uint32_t handle;
};

struct rnic_mr {
	struct rnic_context *context;
	struct rnic_pd *pd; /* NULL: imported */
	void *addr;
	uint64_t length;
	uint64_t iova; /* what remote work requests and SGEs call `addr` */
	uint32_t lkey; /* of rnic_alloc_fast_mr(): the caller's to change, as the next */
	uint32_t rkey;
};

struct rnic_mw {
	struct rnic_context *context;
	struct rnic_pd *pd;
	uint32_t rkey; /* of the last bind posted; the caller's to change for type 2 */
	uint32_t handle;
	uint32_t type; /* enum rnic_mw_type */
};

int rnic_alloc_pd(struct rnic_context *ctx, struct rnic_pd **pd);
int rnic_dealloc_pd(struct rnic_pd *pd);

/** Memory that the daemon reaches without copying, zeroed, aligned to `align` (0: 64). */
int rnic_alloc(struct rnic_context *ctx, size_t size, size_t align, void **addr);
/** -EBUSY while a region lies on it. */
int rnic_free(struct rnic_context *ctx, void *addr);

/** `access`: enum rnic_access_flags; with RNIC_ACCESS_ZERO_BASED addresses count from 0. */
int rnic_reg_mr(
	struct rnic_pd *pd, void *addr, size_t length, unsigned int access, struct rnic_mr **mr);
int rnic_reg_mr_iova(struct rnic_pd *pd, void *addr, size_t length, uint64_t iova,
	unsigned int access, struct rnic_mr **mr);
/** As rnic_reg_mr_iova(); whole private pages may be moved onto an arena (librnic(7)). */
int rnic_reg_mr_remap(struct rnic_pd *pd, void *addr, size_t length, uint64_t iova,
	unsigned int access, struct rnic_mr **mr);
/** `flags`: enum rnic_rereg_flags, what is to change. After a failure the MR is as before. */
int rnic_rereg_mr(struct rnic_mr *mr, unsigned int flags, struct rnic_pd *pd, void *addr,
	size_t length, unsigned int access);
/** Returns when nobody uses the memory any more. -EBUSY: windows or fast registrations use it. */
int rnic_dereg_mr(struct rnic_mr *mr);

/**
 * A key for RNIC_WR_FAST_REG, of lists of up to `max_segments` elements (or runs of memory, if the
 * elements have more). It opens nothing before such a request has completed, and after LOCAL_INV or
 * an incoming SEND with invalidate. Each request names a variant of it, by rnic_key_variant().
 * Ended by rnic_dereg_mr(), whatever its state.
 */
int rnic_alloc_fast_mr(struct rnic_pd *pd, unsigned int max_segments, struct rnic_mr **mr);

/** The same key with another variant, its low byte: for binds of type 2, and fast registration. */
static inline uint32_t
rnic_key_variant(uint32_t key, uint8_t variant)
{
	return (key & ~0xffu) | variant;
}

int rnic_alloc_mw(struct rnic_pd *pd, enum rnic_mw_type type, struct rnic_mw **mw);
int rnic_dealloc_mw(struct rnic_mw *mw);

/**
 * Tokens by which another process of the same uid imports the object; to be kept secret, good
 * until the object ends, the same each time. An imported PD is one of the importer's own (and is
 * to be deallocated like any) in the same domain: its QPs use the keys of all MRs there, whoever
 * registered them. An imported MR is a name for one (addr is NULL): it stays its exporter's, whose
 * rnic_dereg_mr(), rnic_rereg_mr() or end make accesses fail; here rnic_dereg_mr() forgets it.
 * -ENOENT: no such token, or its object has ended; -EACCES: another uid.
 */
struct rnic_token {
	uint8_t bytes[16];
};
int rnic_export_pd(struct rnic_pd *pd, struct rnic_token *token);
int rnic_export_mr(struct rnic_mr *mr, struct rnic_token *token);
int rnic_import_pd(struct rnic_context *ctx, const struct rnic_token *token, struct rnic_pd **pd);
int rnic_import_mr(struct rnic_context *ctx, const struct rnic_token *token, struct rnic_mr **mr);

/* ---- completion queues ------------------------------------------------------------------- */

struct rnic_cq {
	struct rnic_context *context;
	struct rnic_channel *channel;
	void *user_context;
	uint32_t handle;
	uint32_t cqe; /* entries as granted */
};

struct rnic_cq_attr {
	uint32_t cqe;
	uint32_t comp_vector;
	struct rnic_channel *channel; /* or NULL */
	void *user_context;
	uint32_t flags; /* RNIC_THREAD_UNSAFE */
	uint32_t reserved;
};

/** A completion. */
struct rnic_wc {
	uint64_t wr_id;
	uint32_t status; /* enum rnic_wc_status; unless 0, only wr_id and qp_num are good */
	uint32_t opcode; /* enum rnic_wc_opcode */
	uint32_t byte_len;
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidated_rkey;
	};
	uint32_t qp_num;
	uint32_t src_qp;   /* UD */
	uint32_t wc_flags; /* enum rnic_wc_flags */
	uint32_t vendor_err;
	uint64_t timestamp; /* ns of the device's clock */
	struct rnic_qp *qp; /* NULL: of an XRC SRQ, the QP is perhaps another process's */
	struct rnic_srq *srq; /* of a receive from one */
};

int rnic_create_channel(struct rnic_context *ctx, struct rnic_channel **channel);
/** -EBUSY while CQs use it. */
int rnic_destroy_channel(struct rnic_channel *channel);
/** Readable when an event waits. Blocking unless O_NONBLOCK is set on it. Not to be read. */
int rnic_channel_fd(const struct rnic_channel *channel);
/** The next CQ that fired. -EAGAIN if non-blocking; -ENOTCONN when the daemon died. */
int rnic_get_cq_event(struct rnic_channel *channel, struct rnic_cq **cq);
/** rnic_destroy_cq() waits for all events of the CQ to be acknowledged. */
void rnic_ack_cq_events(struct rnic_cq *cq, unsigned int count);

int rnic_create_cq(struct rnic_context *ctx, const struct rnic_cq_attr *attr, struct rnic_cq **cq);
/** -EBUSY: an earlier resize is not consumed: poll the CQ. */
int rnic_resize_cq(struct rnic_cq *cq, uint32_t cqe);
int rnic_destroy_cq(struct rnic_cq *cq);
/** Ask for one event; poll the CQ again before waiting. */
int rnic_req_notify_cq(struct rnic_cq *cq, int solicited_only);
/**
 * Up to `n` completions, in order for each queue. Slots of unsignalled requests before them are
 * free again. -EOVERFLOW: the CQ overran, completions are lost; told after those that are left.
 * No system call but sched_yield(2) after 512 polls in a row that found nothing, for those who
 * share the CPU, and now and then a look whether the daemon is still there.
 */
int rnic_poll_cq(struct rnic_cq *cq, int n, struct rnic_wc *wc);
/** Poll; while there are none, wait for up to `timeout_ms` (-1: for ever). Needs a channel that
 * serves this CQ alone. 0: it timed out. */
int rnic_wait_cq(struct rnic_cq *cq, int n, struct rnic_wc *wc, int timeout_ms);

/* ---- queue pairs ------------------------------------------------------------------------- */

/** For inline functions only, down to struct rnic_qp: what a slot's request was. */
struct rnic_wq_entry {
	uint64_t wr_id;
	uint32_t index; /* of its first slot, running free */
	uint32_t end;	/* the slot behind its last */
};

/** For inline functions only: the client's end of a send or receive queue. */
struct rnic_wq {
	uint8_t *slots;
	struct rnic_wq_entry *entries;
	uint32_t *shared_tail;
	const uint32_t *gate; /* 1, or else the context is of no use: forked, or dead */
	uint32_t mask;
	uint32_t tail;	   /* published and prepared; the poster's */
	uint32_t capacity; /* slots; 0: no such queue */
	uint16_t max_inline;
	uint8_t max_sge;
	uint8_t head_apart[9];
	uint32_t head __attribute__((aligned(64))); /* freed by completions; the poller's */
};

struct rnic_qp {
	struct rnic_context *context;
	void *user_context;
	struct rnic_pd *pd;
	struct rnic_cq *send_cq;
	struct rnic_cq *recv_cq;
	struct rnic_srq *srq;
	uint32_t qp_num;
	uint32_t qp_type;	/* enum rnic_qp_type */
	const uint32_t *active; /* for inline functions only, as the next two */
	struct rnic_wq sq __attribute__((aligned(64)));
	struct rnic_wq rq __attribute__((aligned(64)));
};

struct rnic_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct rnic_qp_init_attr {
	void *user_context;
	struct rnic_cq *send_cq;
	struct rnic_cq *recv_cq;
	struct rnic_srq *srq;	/* or NULL */
	struct rnic_qp_cap cap; /* out: as granted, never less */
	uint32_t qp_type;	/* enum rnic_qp_type */
	uint32_t sq_sig_all;
	uint32_t flags; /* RNIC_THREAD_UNSAFE */
	uint32_t reserved;
	struct rnic_xrcd *xrcd; /* RNIC_QPT_XRC_RECV, which needs nothing else but a type */
};

struct rnic_ah_attr {
	union rnic_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t port_num;
	uint8_t is_global; /* must be 1 */
	uint8_t static_rate;
	uint8_t src_path_bits;
	uint16_t dlid;
	uint16_t reserved;
};

struct rnic_qp_attr {
	uint32_t qp_state;     /* enum rnic_qp_state */
	uint32_t cur_qp_state; /* enum rnic_qp_state */
	uint32_t path_mtu;     /* enum rnic_mtu */
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags;
	uint32_t rate_limit;	/* kb/s */
	struct rnic_qp_cap cap; /* queries */
	struct rnic_ah_attr ah_attr;
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining; /* queries */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t reserved;
};

/** attr->cap becomes what was granted. */
int rnic_create_qp(struct rnic_pd *pd, struct rnic_qp_init_attr *attr, struct rnic_qp **qp);
/** `n` at once, few messages for all: the number made, or -errno if there is none. */
int
rnic_create_qps(struct rnic_pd *pd, struct rnic_qp_init_attr *attr, struct rnic_qp **qps, int n);
/** `mask`: enum rnic_qp_attr_mask. */
int rnic_modify_qp(struct rnic_qp *qp, const struct rnic_qp_attr *attr, unsigned int mask);
/** `n` at once; status[i] (if not NULL) is each one's result. 0 or the first failure. */
int rnic_modify_qps(struct rnic_qp *const *qps, const struct rnic_qp_attr *attrs, unsigned int mask,
	int *status, int n);
/** Both may be NULL. */
int rnic_query_qp(struct rnic_qp *qp, struct rnic_qp_attr *attr, struct rnic_qp_init_attr *init);
/** Completions that were not polled are discarded. Waits for its events to be acknowledged. */
int rnic_destroy_qp(struct rnic_qp *qp);
int rnic_attach_mcast(struct rnic_qp *qp, const union rnic_gid *gid);
int rnic_detach_mcast(struct rnic_qp *qp, const union rnic_gid *gid);

/* ---- addresses --------------------------------------------------------------------------- */

struct rnic_ah {
	struct rnic_context *context;
	struct rnic_pd *pd;
	uint32_t handle;
};

/** Returns when the neighbour is resolved, or -ENETUNREACH, -EHOSTUNREACH. */
int rnic_create_ah(struct rnic_pd *pd, const struct rnic_ah_attr *attr, struct rnic_ah **ah);
int rnic_destroy_ah(struct rnic_ah *ah);
/**
 * Whether packets could be sent there; as rnic_create_ah(), or -ETIMEDOUT after `timeout_ms` (0:
 * until the neighbour table gives up). `path_mtu` (enum rnic_mtu) and `dmac` may be NULL.
 */
int rnic_resolve(struct rnic_context *ctx, const struct rnic_ah_attr *attr, unsigned int timeout_ms,
	uint32_t *path_mtu, uint8_t dmac[6]);

/* ---- shared receive queues --------------------------------------------------------------- */

struct rnic_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct rnic_srq_init_attr {
	void *user_context;
	struct rnic_srq_attr attr; /* out: as granted */
	uint32_t flags;		   /* RNIC_THREAD_UNSAFE */
	uint32_t reserved;
	struct rnic_xrcd *xrcd; /* an XRC SRQ, as the next; or both NULL */
	struct rnic_cq *cq;
};

int rnic_create_srq(struct rnic_pd *pd, struct rnic_srq_init_attr *attr, struct rnic_srq **srq);
int rnic_modify_srq(struct rnic_srq *srq, const struct rnic_srq_attr *attr, unsigned int mask);
int rnic_query_srq(struct rnic_srq *srq, struct rnic_srq_attr *attr);
int rnic_destroy_srq(struct rnic_srq *srq);
uint32_t rnic_srq_num(const struct rnic_srq *srq);
void *rnic_srq_user_context(const struct rnic_srq *srq);

/* ---- XRC ------------------------------------------------------------------------------------ */

/**
 * A domain, by which the SRQs that requests name and the QPs that take the requests find each
 * other. `fd`: a file, whose domain is one for all processes of the uid; -1: a new one. `oflags`:
 * O_CREAT and O_EXCL as of open(2); without O_CREAT the file must have one (-ENOENT).
 */
int rnic_open_xrcd(struct rnic_context *ctx, int fd, int oflags, struct rnic_xrcd **xrcd);
/** -EBUSY while SRQs or QPs of this context are in it. The last one ends the domain's QPs. */
int rnic_close_xrcd(struct rnic_xrcd *xrcd);
/** As of PDs. */
int rnic_export_xrcd(struct rnic_xrcd *xrcd, struct rnic_token *token);
int rnic_import_xrcd(
	struct rnic_context *ctx, const struct rnic_token *token, struct rnic_xrcd **xrcd);
/**
 * A RNIC_QPT_XRC_RECV QP of the domain, whoever made it. rnic_destroy_qp() closes it, and ends it
 * when nobody else has it open; a process that ends without that leaves it to the domain.
 */
int rnic_open_qp(
	struct rnic_xrcd *xrcd, uint32_t qp_num, void *user_context, struct rnic_qp **qp);

/* ---- work requests ----------------------------------------------------------------------- */

struct rnic_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

struct rnic_send_wr {
	uint64_t wr_id;
	struct rnic_send_wr *next;
	const struct rnic_sge *sg_list;
	int num_sge;
	uint32_t opcode;     /* enum rnic_wr_opcode */
	uint32_t send_flags; /* enum rnic_send_flags */
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma; /* ATOMIC_WRITE too: one SGE of 8 bytes, or inline */
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
			uint32_t length;
			uint32_t type;	/* placement: 1 global, 2 persistent */
			uint32_t level; /* 0 range, 1 whole region */
		} flush;
		struct {
			struct rnic_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
		struct {
			struct rnic_mw *mw;
			struct rnic_mr *mr; /* unused with length 0: an unbind, of type 1 */
			uint64_t addr;	    /* as the MR's iova counts */
			uint64_t length;
			uint32_t access; /* remote rights; RNIC_ACCESS_ZERO_BASED with type 2 */
			uint32_t rkey; /* type 2: the new one; type 1: ignored, see mw->rkey */
		} bind_mw;
		struct {
			uint64_t iova;
			uint64_t length;    /* the elements' sum */
			uint64_t list_addr; /* of struct rnic_sge, in memory of list_lkey that
					     * the daemon maps: rnic_alloc(), or shared */
			uint32_t list_len;  /* elements: memory of MRs with ACCESS_MW_BIND */
			uint32_t list_lkey;
			uint32_t rkey; /* of rnic_alloc_fast_mr(), with a new variant */
			uint32_t access;
		} fast_reg;
	} wr;
	uint32_t srqn; /* XRC: the remote SRQ */
};

struct rnic_recv_wr {
	uint64_t wr_id;
	struct rnic_recv_wr *next;
	const struct rnic_sge *sg_list;
	int num_sge;
};

/**
 * Post a list. On failure *bad is the first request that was not posted, those before it are.
 * -ENOMEM: the queue is full; -EINVAL: state, opcode, flags, number of SGEs or inline length;
 * -EOPNOTSUPP: the device has not got the operation (device_cap_flags).
 */
int
rnic_post_send(struct rnic_qp *qp, const struct rnic_send_wr *wr, const struct rnic_send_wr **bad);
int
rnic_post_recv(struct rnic_qp *qp, const struct rnic_recv_wr *wr, const struct rnic_recv_wr **bad);
int rnic_post_srq_recv(
	struct rnic_srq *srq, const struct rnic_recv_wr *wr, const struct rnic_recv_wr **bad);
/**
 * Bind a type 1 window anew, or with length 0 to nothing: posts the request, and mw->rkey is the
 * new key. One bind of a window at a time: on another QP only when the one before has completed.
 */
int rnic_bind_mw(struct rnic_qp *qp, struct rnic_mw *mw, const struct rnic_send_wr *bind);

/* ---- asynchronous events ----------------------------------------------------------------- */

struct rnic_async_event {
	uint32_t event_type; /* enum rnic_event_type */
	int32_t cause;	     /* for people: enum rnic_wc_status, -errno, or 0 */
	union {
		struct rnic_cq *cq;
		struct rnic_qp *qp;
		struct rnic_srq *srq;
		uint32_t port_num;
	} element;
	uint32_t reserved;
	uint32_t kind; /* which of the union; the library's */
};

/** Readable when an event may wait. Blocking unless O_NONBLOCK is set on it. Not to be read. */
int rnic_async_fd(const struct rnic_context *ctx);
/** -EAGAIN if non-blocking; -ENOTCONN after RNIC_EVENT_DEVICE_FATAL has been told. */
int rnic_get_async_event(struct rnic_context *ctx, struct rnic_async_event *event);
/** Destroying the object waits for it. */
void rnic_ack_async_event(struct rnic_context *ctx, const struct rnic_async_event *event);

/* ---- names, never NULL ------------------------------------------------------------------- */

const char *rnic_wc_status_str(uint32_t status);
const char *rnic_wc_opcode_str(uint32_t opcode);
const char *rnic_event_type_str(uint32_t type);
const char *rnic_qp_state_str(uint32_t state);
const char *rnic_port_state_str(uint32_t state);
const char *rnic_transport_str(uint32_t transport);
/** Of a negative errno returned here: what it means in this library. */
const char *rnic_strerror(int err);

/* ---- the fast face -----------------------------------------------------------------------
 * get a request (NULL: full), prepare it in place, submit what was prepared, poll with
 * rnic_poll_cq(). No lock: one thread a queue at a time, not beside rnic_post_send() of others.
 * Nothing is checked: the caller keeps to the QP's limits and posts in RTS, else the daemon
 * puts the QP into the error state. Layouts of this part may change with the major version.
 */

#define RNIC_SLOT_SIZE 64
#define RNIC_SLOT_INLINE 32 /* inline bytes in the first slot */

/** The first slot of a send request; SGEs and inline data go on in the slots that follow. */
struct rnic_wqe {
	uint8_t opcode;
	uint8_t flags;
	uint8_t num_slots;
	uint8_t num_sge;
	uint32_t imm; /* or the key to invalidate */
	uint32_t key; /* rkey, or qkey */
	uint32_t len; /* inline */
	union {
		uint64_t remote_addr;
		struct {
			uint32_t ah;
			uint32_t remote_qpn;
		} ud;
	} u;
	uint32_t srqn;
	uint32_t flush;
	union {
		struct rnic_sge sge[2];
		uint8_t data[RNIC_SLOT_INLINE];
		struct {
			uint64_t compare_add;
			uint64_t swap;
			struct rnic_sge sge;
		} atomic;
	} d;
};

struct rnic_rwqe {
	uint8_t num_slots;
	uint8_t num_sge;
	uint8_t reserved[14];
	struct rnic_sge sge[3];
};

/** Slots of a send request with so many SGEs, or inline bytes; of a receive. */
static inline uint32_t
rnic_slots_sge(uint32_t num_sge)
{
	return num_sge <= 2 ? 1 : 1 + (num_sge + 1) / 4;
}

static inline uint32_t
rnic_slots_inline(uint32_t len)
{
	return len <= RNIC_SLOT_INLINE ? 1 : (len + 95) / 64;
}

static inline uint32_t
rnic_slots_recv(uint32_t num_sge)
{
	return num_sge <= 3 ? 1 : 1 + num_sge / 4;
}

/** For inline functions only: take `n` slots. NULL: not so many are free, or -EPERM, -ENOTCONN. */
static inline void *
rnic_wq_get(struct rnic_wq *q, uint64_t wr_id, uint32_t n)
{
	uint32_t index = q->tail;
	struct rnic_wq_entry *e;

	if (__atomic_load_n(q->gate, __ATOMIC_RELAXED) != 1 ||
		index + n - __atomic_load_n(&q->head, __ATOMIC_ACQUIRE) > q->capacity)
		return NULL;
	e = &q->entries[index & q->mask];
	/* The order comes from the daemon, which completes what it was given; but a wrong one may
	 * complete this now, so the poller's look at it must be no race. */
	__atomic_store_n(&e->wr_id, wr_id, __ATOMIC_RELAXED);
	__atomic_store_n(&e->index, index, __ATOMIC_RELAXED);
	__atomic_store_n(&e->end, index + n, __ATOMIC_RELAXED);
	q->tail = index + n;
	return q->slots + (size_t)(index & q->mask) * RNIC_SLOT_SIZE;
}

/** For inline functions only: where byte `off` behind a request's first slot lies in the ring. */
static inline uint8_t *
rnic_wq_at(struct rnic_wq *q, const void *first, size_t off)
{
	size_t at = (size_t)((const uint8_t *)first - q->slots) + off;

	return q->slots + (at & ((size_t)q->mask * RNIC_SLOT_SIZE + RNIC_SLOT_SIZE - 1));
}

/** A send request of so many slots, which rnic_prep_*() fills in. */
static inline struct rnic_wqe *
rnic_sq_get(struct rnic_qp *qp, uint64_t wr_id, uint32_t num_slots)
{
	struct rnic_wqe *w = (struct rnic_wqe *)rnic_wq_get(&qp->sq, wr_id, num_slots);

	if (w) {
		memset(w, 0, 32);
		w->num_slots = (uint8_t)num_slots;
	}
	return w;
}

static inline void
rnic_prep_send(struct rnic_wqe *w, uint32_t flags)
{
	w->opcode = RNIC_WR_SEND;
	w->flags = (uint8_t)flags;
}

static inline void
rnic_prep_write(struct rnic_wqe *w, uint64_t remote_addr, uint32_t rkey, uint32_t flags)
{
	w->opcode = RNIC_WR_RDMA_WRITE;
	w->flags = (uint8_t)flags;
	w->u.remote_addr = remote_addr;
	w->key = rkey;
}

static inline void
rnic_prep_read(struct rnic_wqe *w, uint64_t remote_addr, uint32_t rkey, uint32_t flags)
{
	rnic_prep_write(w, remote_addr, rkey, flags);
	w->opcode = RNIC_WR_RDMA_READ;
}

/** After rnic_prep_send() or rnic_prep_write(): with immediate (network order). */
static inline void
rnic_prep_imm(struct rnic_wqe *w, uint32_t imm)
{
	w->opcode++;
	w->imm = imm;
}

/** After rnic_prep_send(): the key of the peer's that it is to end. */
static inline void
rnic_prep_inv(struct rnic_wqe *w, uint32_t rkey)
{
	w->opcode = RNIC_WR_SEND_WITH_INV;
	w->imm = rkey;
}

static inline void
rnic_prep_local_inv(struct rnic_wqe *w, uint32_t key, uint32_t flags)
{
	w->opcode = RNIC_WR_LOCAL_INV;
	w->flags = (uint8_t)flags;
	w->imm = key;
}

/** Eight bytes, by one SGE or inline: the peer's memory gets them at once, or not yet. */
static inline void
rnic_prep_atomic_write(struct rnic_wqe *w, uint64_t remote_addr, uint32_t rkey, uint32_t flags)
{
	rnic_prep_write(w, remote_addr, rkey, flags);
	w->opcode = RNIC_WR_ATOMIC_WRITE;
}

/** `type` and `level` as in struct rnic_send_wr. */
static inline void
rnic_prep_flush(struct rnic_wqe *w, uint64_t remote_addr, uint32_t len, uint32_t rkey,
	uint32_t type, uint32_t level, uint32_t flags)
{
	rnic_prep_write(w, remote_addr, rkey, flags);
	w->opcode = RNIC_WR_FLUSH;
	w->len = len;
	w->flush = (type & 15) | (level & 3) << 4;
}

/** After rnic_prep_*() on a RNIC_QPT_XRC_SEND QP: for which SRQ. */
static inline void
rnic_prep_xrc(struct rnic_wqe *w, uint32_t srqn)
{
	w->srqn = srqn;
}

/** After rnic_prep_send() on a UD QP: whereto. */
static inline void
rnic_prep_ud(struct rnic_wqe *w, const struct rnic_ah *ah, uint32_t qpn, uint32_t qkey)
{
	w->u.ud.ah = ah->handle;
	w->u.ud.remote_qpn = qpn;
	w->key = qkey;
}

static inline void
rnic_prep_atomic(struct rnic_wqe *w, uint32_t opcode, uint64_t remote_addr, uint32_t rkey,
	uint64_t compare_add, uint64_t swap, const struct rnic_sge *result, uint32_t flags)
{
	rnic_prep_write(w, remote_addr, rkey, flags);
	w->opcode = (uint8_t)opcode;
	w->num_sge = 1;
	w->d.atomic.compare_add = compare_add;
	w->d.atomic.swap = swap;
	w->d.atomic.sge = *result;
}

/** Add an SGE. Empty ones may be left out. */
static inline void
rnic_prep_sge(struct rnic_qp *qp, struct rnic_wqe *w, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct rnic_sge *s = (struct rnic_sge *)(void *)rnic_wq_at(
		&qp->sq, w, 32 + w->num_sge++ * sizeof(struct rnic_sge));

	s->addr = addr;
	s->length = len;
	s->lkey = lkey;
}

/** The payload itself, in place of SGEs: the memory is free when this returns. */
static inline void
rnic_prep_inline(struct rnic_qp *qp, struct rnic_wqe *w, const void *data, uint32_t len)
{
	uint8_t *to = w->d.data;
	size_t room = (size_t)(qp->sq.slots + ((size_t)qp->sq.mask + 1) * RNIC_SLOT_SIZE - to);
	size_t n = len < room ? len : room;

	w->flags |= RNIC_SEND_INLINE;
	w->len = len;
	memcpy(to, data, n);
	memcpy(qp->sq.slots, (const uint8_t *)data + n, len - n);
}

/** For rnic_sq_submit() and rnic_rq_submit() only: wake the worker. */
void rnic_qp_ring(struct rnic_qp *qp);

/** Hand all that was prepared to the daemon. The order of the two is the doorbell's protocol. */
static inline void
rnic_sq_submit(struct rnic_qp *qp)
{
	if (__atomic_load_n(qp->sq.gate, __ATOMIC_RELAXED) != 1)
		return; /* a forked child has none of the memory below */
	__atomic_exchange_n(qp->sq.shared_tail, qp->sq.tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(qp->active, __ATOMIC_SEQ_CST) == 0)
		rnic_qp_ring(qp);
}

static inline struct rnic_rwqe *
rnic_rq_get(struct rnic_qp *qp, uint64_t wr_id, uint32_t num_slots)
{
	struct rnic_rwqe *w = (struct rnic_rwqe *)rnic_wq_get(&qp->rq, wr_id, num_slots);

	if (w) {
		memset(w, 0, 16);
		w->num_slots = (uint8_t)num_slots;
	}
	return w;
}

static inline void
rnic_prep_recv_sge(
	struct rnic_qp *qp, struct rnic_rwqe *w, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct rnic_sge *s = (struct rnic_sge *)(void *)rnic_wq_at(
		&qp->rq, w, 16 + w->num_sge++ * sizeof(struct rnic_sge));

	s->addr = addr;
	s->length = len;
	s->lkey = lkey;
}

/** Hand all receives that were prepared to the daemon. */
void rnic_rq_submit(struct rnic_qp *qp);

#ifdef __cplusplus
}
#endif

#endif /* RNIC_H */
