/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of the control messages (ring_ctrl.h): one element each of a request (`_req`), reply
 * (`_rep`) or push. A reply begins with the status of its element: 0 or -errno; if it is not 0
 * the other fields are zero. Unless a comment says otherwise the daemon validates every field
 * and answers -EINVAL; reserved fields are sent as zero and refused otherwise. Handles are the
 * daemon's numbers, valid in the context that made them. User handles come back untouched.
 */
#ifndef RING_CTRL_MSG_H
#define RING_CTRL_MSG_H

#include <assert.h>
#include <stdint.h>

#include "ring_verbs.h"

#define RING_NAME_LEN 32 /* of a device or network interface; NUL within */
#define RING_NO_HANDLE 0xffffffffu

/** A place in an arena: number in the top 16 bits, byte offset in the 48 below. */
typedef uint64_t ring_loc_t;
#define RING_NO_LOC UINT64_MAX
#define RING_LOC(arena, offset) ((uint64_t)(arena) << 48 | (uint64_t)(offset))
#define RING_LOC_ARENA(loc) ((uint32_t)((loc) >> 48))
#define RING_LOC_OFFSET(loc) ((loc) & ((1ull << 48) - 1))

#define RING_CTRL_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), "ABI"); \
	static_assert(_Alignof(struct type) <= 8, "ABI")

union ring_gid {
	uint8_t raw[16];
};

/** Request of the operations that name one object and say nothing else. */
struct ring_ctrl_handle_req {
	uint32_t handle; /* PD, MR (lkey), MW, channel, CQ, QP, SRQ, AH; LIST_DEVICE: index */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_handle_req, 8);

/** Reply of the operations with nothing else to tell. */
struct ring_ctrl_done_rep {
	int32_t status;
	/* DESTROY_*: asynchronous events sent for this object. None follows the reply, and
	 * the library's destroy returns when the application has acknowledged them all. */
	uint32_t events;
};
RING_CTRL_SIZE(ring_ctrl_done_rep, 8);

/** Reply of the operations that make an object. */
struct ring_ctrl_handle_rep {
	int32_t status;
	uint32_t handle;
};
RING_CTRL_SIZE(ring_ctrl_handle_rep, 8);

/* ---- session ---- */

/** The client's first request. pid, uid and gid are taken from SO_PEERCRED, not from here. */
struct ring_ctrl_hello_req {
	char device[RING_NAME_LEN]; /* as in LIST_DEVICE; empty: the daemon's first */
	uint64_t features;	    /* RING_FEATURE_* the client understands */
	int32_t pid;		    /* as the client sees it: for messages of the log only */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_hello_req, 48);

/* Feature bits: none so far. Unknown bits are ignored; the reply has those both sides know. */

/**
 * The daemon's answer, with `num_workers` eventfds, one a worker, in the order of workers, for
 * this context alone: the client writes 1 to wake a worker when need_kick says so (ring_kick.h).
 * Pushes ARENA and BELLS (chunk 0) come before it.
 */
struct ring_ctrl_hello_rep {
	int32_t status;
	uint32_t context; /* the context's number, for logs and rnicctl */
	char device[RING_NAME_LEN];
	uint64_t features;
	uint8_t boot_id[16]; /* random at each start of the daemon: another one, all is gone */
	uint32_t num_workers; /* 1 .. RING_MAX_WORKERS */
	uint32_t transport;   /* enum ring_transport */
	uint32_t num_ports;   /* ports are numbered from 1 */
	uint32_t num_comp_vectors;
	/* what the client's uid may have, over all its contexts; exceeding gives -EDQUOT */
	uint64_t quota_bytes; /* arenas and locked memory */
	uint32_t quota_qp;
	uint32_t quota_cq;
	uint32_t quota_mr; /* MRs and MWs */
	uint32_t quota_pd;
	uint32_t quota_srq;
	uint32_t quota_ah;
};
RING_CTRL_SIZE(ring_ctrl_hello_rep, 112);

/** Devices by index from 0; -ENODEV past the last. Allowed before HELLO. */
struct ring_ctrl_list_device_rep {
	int32_t status;
	uint32_t transport; /* enum ring_transport */
	char device[RING_NAME_LEN];
	uint64_t node_guid; /* network order */
	uint32_t num_ports;
	uint32_t num_devices; /* in all */
};
RING_CTRL_SIZE(ring_ctrl_list_device_rep, 56);

enum ring_arena_kind {
	RING_ARENA_C = 1, /* the client writes */
	RING_ARENA_D = 2, /* the daemon writes; sealed already: map PROT_READ */
};

/**
 * Push with one memfd: a new arena. The client maps all of it (MAP_SHARED, MADV_DONTFORK),
 * closes the descriptor and sends ARENA_MAPPED. Only then does the daemon seal a C arena and
 * place objects in it, so a reply never names an arena that the client has not mapped.
 */
struct ring_ctrl_arena {
	uint32_t arena; /* its number, 0 .. 65535, never reused in this context */
	uint32_t kind;	/* enum ring_arena_kind */
	uint64_t size;	/* bytes; the client checks it against fstat */
	uint32_t page_size; /* bytes of its pages */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_arena, 24);

/** Notice of the client (no reply). A status but 0 ends what needed the arena with -ENOMEM. */
struct ring_ctrl_arena_mapped {
	uint32_t arena;
	int32_t status;
	uint64_t addr; /* where the client has it. REG_MR finds C-arena memory by it; a lie only
			* names other bytes of the client's own arena */
};
RING_CTRL_SIZE(ring_ctrl_arena_mapped, 16);

/** Push: where a chunk of bells lies, before the first QP with a slot in it is replied. */
struct ring_ctrl_bells {
	uint32_t chunk; /* 0 .. RING_BELL_CHUNKS - 1 */
	uint32_t num_workers;
	ring_loc_t chunk_loc[32];  /* by worker: struct ring_bell_chunk, C arena */
	ring_loc_t daemon_loc[32]; /* by worker: struct ring_bell_daemon, D arena; same each time */
};
RING_CTRL_SIZE(ring_ctrl_bells, 520);

/** What an event is about. */
enum ring_event_object {
	RING_EVENT_OF_DEVICE = 0,
	RING_EVENT_OF_PORT = 1,
	RING_EVENT_OF_QP = 2,
	RING_EVENT_OF_CQ = 3,
	RING_EVENT_OF_SRQ = 4,
};

/**
 * Push: an asynchronous event. A client that lets its socket fill up loses the context when
 * the daemon's queue for it (bounded, and at least one event of each kind an object) is full.
 */
struct ring_ctrl_event {
	uint32_t type;	 /* enum ring_event_type */
	uint32_t object; /* enum ring_event_object */
	uint32_t handle; /* QPN, CQN, SRQN; port number; 0 */
	int32_t cause;	 /* why, for people: enum wc_status, or -errno, or 0 */
	uint64_t user_handle;
};
RING_CTRL_SIZE(ring_ctrl_event, 24);

/* ---- device and ports ---- */

/** As struct ibv_device_attr_ex; no limit is 0 unless the thing is not offered (B160). */
struct ring_ctrl_query_device_rep {
	int32_t status;
	uint32_t transport;	 /* enum ring_transport */
	uint64_t node_guid;	 /* network order, EUI-64 of a port's MAC (B177) */
	uint64_t sys_image_guid; /* network order */
	uint64_t device_cap_flags; /* IBV_DEVICE_* */
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint64_t max_dm_size;
	uint64_t completion_timestamp_mask;
	uint64_t hca_core_clock; /* kHz */
	uint64_t max_msg_size;	 /* bytes; port attribute max_msg_sz (B174) */
	char fw_ver[64];
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t atomic_cap; /* enum ibv_atomic_cap */
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_inline; /* bytes */
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_qp_rd_atom;      /* as responder, a QP */
	uint32_t max_qp_init_rd_atom; /* as requester, a QP */
	uint32_t max_res_rd_atom;     /* as responder, all QPs */
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
	uint32_t local_ca_ack_delay; /* exponent of 4.096 us */
	uint32_t odp_general_caps;   /* enum ibv_odp_general_caps */
	uint32_t odp_rc_caps;	     /* enum ibv_odp_transport_cap_bits, as the next three */
	uint32_t odp_uc_caps;
	uint32_t odp_ud_caps;
	uint32_t odp_xrc_caps;
	uint32_t max_fast_reg; /* elements of a FAST_REG's list; 0 before 1.1 */
	uint32_t reserved[2];
};
RING_CTRL_SIZE(ring_ctrl_query_device_rep, 288);

struct ring_ctrl_query_port_req {
	uint32_t port; /* from 1 */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_query_port_req, 8);

/** LID, SM LID and LMC are 0 and the link layer is Ethernet, always (B181). */
struct ring_ctrl_query_port_rep {
	int32_t status;
	uint32_t state;	      /* enum ring_port_state */
	uint32_t max_mtu;     /* enum ring_mtu */
	uint32_t active_mtu;  /* enum ring_mtu: what fits the link's MTU (B194) */
	uint32_t link_mtu;    /* bytes of IP packets */
	uint32_t speed;	      /* Mb/s; 0: unknown */
	uint32_t gid_tbl_len; /* entries */
	uint32_t pkey_tbl_len;
	uint32_t port_cap_flags;
	uint32_t vlan;	      /* 0: untagged */
	uint64_t max_msg_size; /* bytes */
	uint8_t mac[6];
	uint8_t reserved[2];
	char netdev[RING_NAME_LEN]; /* kernel interface or name of the DPDK port */
};
RING_CTRL_SIZE(ring_ctrl_query_port_rep, 88);

struct ring_ctrl_query_gid_req {
	uint32_t port;
	uint32_t index; /* 0 .. gid_tbl_len - 1 */
};
RING_CTRL_SIZE(ring_ctrl_query_gid_req, 8);

struct ring_ctrl_query_gid_rep {
	int32_t status; /* -ENODATA: an empty entry */
	uint32_t type;	/* enum ibv_gid_type: 2, RoCE v2; iWARP: 0 */
	union ring_gid gid;
	uint32_t ndev_ifindex; /* 0: not a kernel interface */
	uint32_t vlan;
};
RING_CTRL_SIZE(ring_ctrl_query_gid_rep, 32);

/** An address vector. Fields of InfiniBand proper (dlid, path bits, rate) are not carried. */
struct ring_ctrl_av {
	union ring_gid dgid;
	uint32_t flow_label; /* 20 bits */
	uint8_t sgid_index;
	uint8_t hop_limit; /* 0 is taken as 64 */
	uint8_t traffic_class;
	uint8_t sl;	  /* 0 .. 15, PCP's low three bits by the port's map */
	uint8_t port;	  /* from 1 */
	uint8_t is_global; /* must be 1: RoCE has no other addresses */
	uint8_t static_rate; /* kept for queries, without effect, as the next two */
	uint8_t src_path_bits;
	uint16_t dlid;
	uint16_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_av, 32);

/** Whether packets could be sent there: route and neighbour, asked for if not known. */
struct ring_ctrl_resolve_req {
	struct ring_ctrl_av av;
	uint32_t timeout_ms; /* 0: the neighbour table's own */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_resolve_req, 40);

struct ring_ctrl_resolve_rep {
	/* -ENETUNREACH: no route; -EHOSTUNREACH: no answer (B185); -ETIMEDOUT: not yet */
	int32_t status;
	uint32_t path_mtu; /* enum ring_mtu */
	uint8_t dmac[6];
	uint8_t reserved[2];
};
RING_CTRL_SIZE(ring_ctrl_resolve_rep, 16);

/* ---- protection domains and memory ---- */

/** ALLOC_PD and CREATE_CHANNEL, which say nothing. */
struct ring_ctrl_empty_req {
	uint64_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_empty_req, 8);

/** Memory of a C arena for the application. */
struct ring_ctrl_alloc_mem_req {
	uint64_t size;	/* bytes, not 0; rounded up to `align` */
	uint64_t align; /* power of two, 64 .. 2 MiB */
};
RING_CTRL_SIZE(ring_ctrl_alloc_mem_req, 16);

struct ring_ctrl_alloc_mem_rep {
	int32_t status; /* -ENOMEM, -EDQUOT */
	uint32_t reserved;
	ring_loc_t loc;
	uint64_t size; /* as granted */
};
RING_CTRL_SIZE(ring_ctrl_alloc_mem_rep, 24);

/** -EBUSY while an MR lies on it. */
struct ring_ctrl_free_mem_req {
	ring_loc_t loc; /* as ALLOC_MEM gave it */
};
RING_CTRL_SIZE(ring_ctrl_free_mem_req, 8);

enum ring_mr_flag {
	RING_MR_REMAP = 1, /* may remap private memory in place (docs/design.md, 2.3) */
};

struct ring_ctrl_reg_mr_req {
	uint64_t addr;	 /* in the client's address space */
	uint64_t length; /* bytes, 1 .. max_mr_size; 0 with ON_DEMAND: implicit, all memory */
	uint64_t iova;	 /* address in work requests; with ZERO_BASED 0 */
	uint32_t access; /* enum ring_access */
	uint32_t pd;
	uint32_t flags; /* enum ring_mr_flag */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_reg_mr_req, 40);

struct ring_ctrl_reg_mr_rep {
	/* -EFAULT: not mapped or no such right; -ENOMEM; -EDQUOT; -EOPNOTSUPP: not persistent */
	int32_t status;
	uint32_t lkey;	/* the MR's handle too */
	uint32_t rkey;	/* equals lkey when there is remote access; else it works nowhere */
	uint32_t how;	/* enum ring_mr_how, for people and tests */
};
RING_CTRL_SIZE(ring_ctrl_reg_mr_rep, 16);

/** How the daemon reaches the memory: the worst of its segments. */
enum ring_mr_how {
	RING_MR_ARENA = 1,
	RING_MR_MAPPED = 2,
	RING_MR_COPIED = 3,
};

/**
 * -EBUSY with memory windows bound to it, or fast registrations; after a failure the MR is as
 * before. Answered when nobody goes by the old key any more.
 */
struct ring_ctrl_rereg_mr_req {
	uint32_t lkey;
	uint32_t what; /* enum ring_rereg: which of the following are meant */
	uint64_t addr;
	uint64_t length;
	uint64_t iova;
	uint32_t access;
	uint32_t pd;
	uint32_t flags; /* enum ring_mr_flag */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_rereg_mr_req, 48);

struct ring_ctrl_alloc_mw_req {
	uint32_t pd;
	uint32_t type; /* enum ring_mw_type */
};
RING_CTRL_SIZE(ring_ctrl_alloc_mw_req, 8);

struct ring_ctrl_alloc_mw_rep {
	int32_t status;
	uint32_t handle; /* for DEALLOC_MW; the key changes with each bind, this does not */
	uint32_t rkey;
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_alloc_mw_rep, 16);

#define RING_MAX_FAST_REG 256 /* elements of a FAST_REG's list */

/** A key for FAST_REG requests; FREE until one succeeds. DEREG_MR ends it. Reply: reg_mr_rep. */
struct ring_ctrl_alloc_fast_mr_req {
	uint32_t pd;
	uint32_t max_segs; /* 1 .. RING_MAX_FAST_REG: elements, or runs of memory if more */
};
RING_CTRL_SIZE(ring_ctrl_alloc_fast_mr_req, 8);

enum ring_export_kind {
	RING_EXPORT_PD = 1,
	RING_EXPORT_MR = 2,
	RING_EXPORT_XRCD = 3, /* as a PD */
};

/** Make a token by which another process of the same uid can import the object. */
struct ring_ctrl_export_req {
	uint32_t kind;	 /* enum ring_export_kind */
	uint32_t handle; /* PD, lkey or XRCD */
};
RING_CTRL_SIZE(ring_ctrl_export_req, 8);

struct ring_ctrl_export_rep {
	int32_t status;
	uint32_t reserved;
	uint8_t token[16]; /* random; void when the object or the daemon ends */
};
RING_CTRL_SIZE(ring_ctrl_export_rep, 24);

/**
 * -EACCES: another uid; -ENOENT: no such token. An imported PD is the importer's own, in the same
 * domain, which lasts until the last PD of it ends. An imported MR is its exporter's, who ends it;
 * nothing of the import is kept, and there is nothing to deregister.
 */
struct ring_ctrl_import_req {
	uint32_t kind; /* enum ring_export_kind */
	uint32_t reserved;
	uint8_t token[16];
};
RING_CTRL_SIZE(ring_ctrl_import_req, 24);

struct ring_ctrl_import_rep {
	int32_t status;
	uint32_t handle; /* PD or XRCD of this context, for DEALLOC_*; or lkey */
	uint32_t rkey;	 /* MR */
	uint32_t access; /* MR */
	uint64_t length; /* MR */
	uint64_t iova;	 /* MR */
};
RING_CTRL_SIZE(ring_ctrl_import_rep, 32);

/* ---- channels and CQs ---- */

/** With the read end of a pipe, non-blocking: a byte for each notification (design 3.4). */
struct ring_ctrl_create_channel_rep {
	int32_t status;
	uint32_t handle;
	uint32_t num_subs; /* num_workers + 1, the last is the control thread's */
	uint32_t reserved;
	ring_loc_t subs; /* struct ring_channel_sub[num_subs], D arena */
};
RING_CTRL_SIZE(ring_ctrl_create_channel_rep, 24);

struct ring_ctrl_create_cq_req {
	uint32_t entries; /* 1 .. max_cqe, rounded up to a power of two */
	uint32_t channel; /* or RING_NO_HANDLE */
	uint32_t comp_vector; /* below num_comp_vectors: preferred worker of its QPs */
	uint32_t flags;	      /* reserved */
	uint64_t user_handle; /* in events */
};
RING_CTRL_SIZE(ring_ctrl_create_cq_req, 24);

struct ring_ctrl_create_cq_rep {
	int32_t status;
	uint32_t cqn;
	uint32_t entries; /* as granted, power of two */
	uint32_t reserved;
	ring_loc_t client; /* struct ring_cq_client, C arena */
	ring_loc_t daemon; /* struct ring_cq_daemon, D arena */
};
RING_CTRL_SIZE(ring_ctrl_create_cq_rep, 32);

/** -EBUSY while an earlier resize is not consumed; -EINVAL below what is in use. */
struct ring_ctrl_resize_cq_req {
	uint32_t cqn;
	uint32_t entries;
};
RING_CTRL_SIZE(ring_ctrl_resize_cq_req, 8);

struct ring_ctrl_resize_cq_rep {
	int32_t status;
	uint32_t entries; /* as granted */
};
RING_CTRL_SIZE(ring_ctrl_resize_cq_rep, 8);

/* ---- queue pairs ---- */

enum ring_qp_flag {
	RING_QP_SIG_ALL = 1, /* every send request makes a completion */
};

/**
 * Limits are requests; the reply has what is granted, never less (B178). An XRC_SEND QP has no
 * recv_cq; an XRC_RECV QP has neither PD nor CQs nor queues, but a domain, and no place in memory.
 */
struct ring_ctrl_create_qp_req {
	uint8_t type; /* enum ring_qp_type */
	uint8_t flags; /* enum ring_qp_flag */
	uint16_t max_inline; /* bytes, 0 .. max_inline of the device */
	uint32_t pd;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srqn; /* or RING_NO_HANDLE */
	uint32_t xrcd; /* or RING_NO_HANDLE */
	uint32_t max_send_wr; /* 0 .. max_qp_wr, as the next */
	uint32_t max_recv_wr; /* ignored with an SRQ */
	uint16_t max_send_sge; /* 0 .. max_sge, as the next */
	uint16_t max_recv_sge;
	uint32_t reserved;
	uint64_t user_handle; /* in events */
};
RING_CTRL_SIZE(ring_ctrl_create_qp_req, 48);

struct ring_ctrl_create_qp_rep {
	int32_t status;
	uint32_t qpn;  /* 24 bits */
	uint32_t bell; /* chunk * RING_BELL_SLOTS + slot, in every worker's bells */
	uint32_t max_send_wr; /* as granted; a request of max_send_sge fits always */
	uint32_t max_recv_wr;
	uint16_t max_inline;
	uint8_t max_send_sge;
	uint8_t max_recv_sge;
	uint8_t log_sq_slots; /* log2 of the rings' 64-byte slots */
	uint8_t log_rq_slots; /* meaningless without an RQ */
	uint8_t reserved[6];
	ring_loc_t sq;	   /* slots, C arena */
	ring_loc_t rq;	   /* slots, C arena; RING_NO_LOC with an SRQ */
	ring_loc_t client; /* struct ring_qp_client, C arena */
	ring_loc_t daemon; /* struct ring_qp_daemon, D arena */
};
RING_CTRL_SIZE(ring_ctrl_create_qp_rep, 64);

/** Attributes as in struct ibv_qp_attr, in MODIFY_QP and QUERY_QP. */
struct ring_ctrl_qp_attr {
	struct ring_ctrl_av av;
	uint32_t access; /* enum ring_access: the REMOTE_ and LOCAL_WRITE bits */
	uint32_t dest_qpn; /* 24 bits */
	uint32_t rq_psn;   /* 24 bits */
	uint32_t sq_psn;   /* 24 bits */
	uint32_t qkey;
	uint32_t rate_limit; /* kb/s; 0: none */
	uint16_t pkey_index; /* 0 */
	uint8_t state;	     /* enum ring_qp_state */
	uint8_t cur_state;   /* enum ring_qp_state */
	uint8_t path_mtu;    /* enum ring_mtu */
	uint8_t path_mig_state; /* 0, MIGRATED */
	uint8_t en_sqd_async_notify; /* 0, 1 */
	uint8_t port;		     /* from 1 */
	uint8_t timeout;	     /* 0 .. 31: 4.096 us << timeout; 0: for ever */
	uint8_t retry_cnt;	     /* 0 .. 7 */
	uint8_t rnr_retry;	     /* 0 .. 7; 7: for ever */
	uint8_t min_rnr_timer;	     /* 0 .. 31, coded as in the IBTA's table 45 */
	uint8_t max_rd_atomic;	     /* requester's depth */
	uint8_t max_dest_rd_atomic;  /* responder's depth */
	uint8_t sq_draining;	     /* queries: 0, 1 */
	uint8_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_qp_attr, 72);

struct ring_ctrl_modify_qp_req {
	uint32_t qpn;
	uint32_t mask; /* enum ring_qp_attr_mask; fields outside it are ignored */
	struct ring_ctrl_qp_attr attr;
};
RING_CTRL_SIZE(ring_ctrl_modify_qp_req, 80);

/** The library learns the new state here and in ring_qp_daemon, whichever it looks at first. */
struct ring_ctrl_modify_qp_rep {
	int32_t status; /* -EINVAL, -ENETUNREACH, -EHOSTUNREACH, -ENOMEM; state is unchanged */
	uint32_t state; /* enum ring_qp_state: the present one, whatever the status */
};
RING_CTRL_SIZE(ring_ctrl_modify_qp_rep, 8);

/** All attributes, whether set yet or not: those never set are zero (B098). */
struct ring_ctrl_query_qp_rep {
	int32_t status;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint16_t max_inline;
	uint8_t max_send_sge;
	uint8_t max_recv_sge;
	uint8_t type;
	uint8_t flags;
	uint8_t reserved[2];
	uint32_t worker; /* RING_NO_HANDLE while unbound */
	struct ring_ctrl_qp_attr attr;
};
RING_CTRL_SIZE(ring_ctrl_query_qp_rep, 96);

/* ---- shared receive queues ---- */

struct ring_ctrl_create_srq_req {
	uint32_t pd;
	uint32_t max_wr; /* 1 .. max_srq_wr */
	uint32_t max_sge; /* 0 .. max_srq_sge */
	uint32_t limit;	  /* 0 .. max_wr */
	uint32_t xrcd;	  /* or RING_NO_HANDLE */
	uint32_t cqn;	  /* XRC: its CQ; or RING_NO_HANDLE */
	uint64_t user_handle;
};
RING_CTRL_SIZE(ring_ctrl_create_srq_req, 32);

struct ring_ctrl_create_srq_rep {
	int32_t status;
	uint32_t srqn;
	uint32_t max_wr; /* as granted */
	uint16_t max_sge;
	uint8_t log_index;	/* log2 of the index ring's entries */
	uint8_t slots_per_wr;	/* 64-byte slots of each request */
	ring_loc_t index;	/* uint32_t[1 << log_index], C arena */
	ring_loc_t slots;	/* max_wr * slots_per_wr slots, C arena */
	ring_loc_t client;	/* struct ring_srq_client */
	ring_loc_t daemon;	/* struct ring_srq_daemon */
};
RING_CTRL_SIZE(ring_ctrl_create_srq_rep, 48);

/**
 * After a failure the SRQ is as before (B157). -EBUSY while it is resized by another request;
 * -EINVAL when more are posted than there may be then. The limit is one of the size after it; when
 * fewer are posted its event comes at once. Nothing may be posted while the size changes: what is
 * posted before the request is moved, with the entries' numbers and the indices that they have.
 */
struct ring_ctrl_modify_srq_req {
	uint32_t srqn;
	uint32_t mask; /* enum ring_srq_attr_mask */
	uint32_t max_wr; /* 1 .. max_srq_wr */
	uint32_t limit;
};
RING_CTRL_SIZE(ring_ctrl_modify_srq_req, 16);

/** Where it is from now on; client and daemon words stay where they are. */
struct ring_ctrl_modify_srq_rep {
	int32_t status;
	uint32_t max_wr; /* as granted */
	uint32_t entries; /* there are, so many or more: a smaller size moves nothing */
	uint8_t log_index;
	uint8_t reserved[3];
	ring_loc_t index; /* as in CREATE_SRQ, as the next */
	ring_loc_t slots;
};
RING_CTRL_SIZE(ring_ctrl_modify_srq_rep, 32);

struct ring_ctrl_query_srq_rep {
	int32_t status;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit; /* 0 once it was reached */
};
RING_CTRL_SIZE(ring_ctrl_query_srq_rep, 16);

/* ---- XRC ---- */

enum ring_xrcd_flag {
	RING_XRCD_FILE = 1,   /* the one domain of this file, for all processes of the uid */
	RING_XRCD_CREATE = 2, /* make it if there is none; needed without FILE */
	RING_XRCD_EXCL = 4,   /* -EEXIST if there is one; only with CREATE */
};

/** -ENOENT: the file has no domain. Which file it is is the client's word. */
struct ring_ctrl_alloc_xrcd_req {
	uint32_t flags; /* enum ring_xrcd_flag */
	uint32_t reserved;
	uint64_t dev, ino; /* with FILE, as stat() tells them; else 0 */
};
RING_CTRL_SIZE(ring_ctrl_alloc_xrcd_req, 24);

/**
 * An XRC_RECV QP of somebody's in the domain: named by its QPN in this context, too, until
 * DESTROY_QP closes it, which ends it if nobody else has it open. -EBUSY: it is open here.
 */
struct ring_ctrl_open_qp_req {
	uint32_t xrcd;
	uint32_t qpn;
	uint64_t user_handle;
};
RING_CTRL_SIZE(ring_ctrl_open_qp_req, 16);

/* ---- addresses of datagrams ---- */

/** Replied when the neighbour is resolved, or with -ENETUNREACH or -EHOSTUNREACH. */
struct ring_ctrl_create_ah_req {
	struct ring_ctrl_av av;
	uint32_t pd;
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_create_ah_req, 40);

/** ATTACH_MCAST and DETACH_MCAST of a UD QP. */
struct ring_ctrl_mcast_req {
	union ring_gid gid;
	uint32_t qpn;
	uint32_t flags; /* reserved */
};
RING_CTRL_SIZE(ring_ctrl_mcast_req, 24);

#endif /* RING_CTRL_MSG_H */
