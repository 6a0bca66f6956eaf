/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control protocol on the daemon's unix SOCK_SEQPACKET socket: frames, operations, checks
 * and the passing of descriptors. Bodies are in ring_ctrl_msg.h.
 *
 * A message is a header and `count` elements of the operation's size, one for each object. A
 * reply has the request's op and id and as many elements, in the request's order, each with a
 * status of its own; a request refused as a whole is answered by a header alone with `status`.
 * Requests are pipelined. The daemon begins them in order, and a request sees the effect of
 * those before it, but replies may come in another order (a REG_MR may take long).
 *
 * The header is the same for all majors, so that each side can say why it refuses.
 */
#ifndef RING_CTRL_H
#define RING_CTRL_H

#include <stdbool.h>
#include <stddef.h>

#include "ring_abi.h"
#include "ring_ctrl_cm.h"
#include "ring_ctrl_msg.h"

#define RING_CTRL_MAX_LEN (128u * 1024) /* bytes of a message, header included */
#define RING_CTRL_MAX_BATCH 1024	/* elements of a message */
#define RING_CTRL_MAX_FDS RING_MAX_WORKERS

/** Operations. Numbers are never reused; unknown ones are answered with -EOPNOTSUPP. */
enum ring_ctrl_op {
	/* session; LIST_DEVICE and HELLO are the only ones before HELLO's reply */
	RING_CTRL_HELLO = 0x01,
	RING_CTRL_LIST_DEVICE = 0x02,
	RING_CTRL_ARENA = 0x03,	       /* push, with a descriptor */
	RING_CTRL_ARENA_MAPPED = 0x04, /* the client's answer to it: a notice */
	RING_CTRL_BELLS = 0x05,	       /* push */
	RING_CTRL_EVENT = 0x06,	       /* push */

	RING_CTRL_QUERY_DEVICE = 0x10,
	RING_CTRL_QUERY_PORT = 0x11,
	RING_CTRL_QUERY_GID = 0x12,
	RING_CTRL_RESOLVE = 0x13,

	RING_CTRL_ALLOC_PD = 0x20,
	RING_CTRL_DEALLOC_PD = 0x21,
	RING_CTRL_ALLOC_MEM = 0x22,
	RING_CTRL_FREE_MEM = 0x23,
	RING_CTRL_REG_MR = 0x24,
	RING_CTRL_REREG_MR = 0x25,
	RING_CTRL_DEREG_MR = 0x26,
	RING_CTRL_ALLOC_MW = 0x27,
	RING_CTRL_DEALLOC_MW = 0x28,
	RING_CTRL_EXPORT = 0x29,
	RING_CTRL_IMPORT = 0x2a,
	RING_CTRL_ALLOC_FAST_MR = 0x2b,

	RING_CTRL_CREATE_CHANNEL = 0x30,
	RING_CTRL_DESTROY_CHANNEL = 0x31,
	RING_CTRL_CREATE_CQ = 0x32,
	RING_CTRL_RESIZE_CQ = 0x33,
	RING_CTRL_DESTROY_CQ = 0x34,

	RING_CTRL_CREATE_QP = 0x40,
	RING_CTRL_MODIFY_QP = 0x41,
	RING_CTRL_QUERY_QP = 0x42,
	RING_CTRL_DESTROY_QP = 0x43,
	RING_CTRL_CREATE_SRQ = 0x44,
	RING_CTRL_MODIFY_SRQ = 0x45,
	RING_CTRL_QUERY_SRQ = 0x46,
	RING_CTRL_DESTROY_SRQ = 0x47,
	RING_CTRL_CREATE_AH = 0x48,
	RING_CTRL_DESTROY_AH = 0x49,
	RING_CTRL_ATTACH_MCAST = 0x4a,
	RING_CTRL_DETACH_MCAST = 0x4b,
	RING_CTRL_ALLOC_XRCD = 0x4c,
	RING_CTRL_DEALLOC_XRCD = 0x4d,
	RING_CTRL_OPEN_QP = 0x4e,

	/* connection management, ring_ctrl_cm.h; since 1.1 */
	RING_CTRL_CM_FIRST = 0x80,
	RING_CTRL_CM_LISTEN = 0x80,
	RING_CTRL_CM_CONNECT = 0x82,
	RING_CTRL_CM_ACCEPT = 0x83,
	RING_CTRL_CM_REJECT = 0x84,
	RING_CTRL_CM_ESTABLISH = 0x85,
	RING_CTRL_CM_DISCONNECT = 0x86,
	RING_CTRL_CM_GET_EVENT = 0x88,
	RING_CTRL_CM_CREATE_CHANNEL = 0x89,
	RING_CTRL_CM_DESTROY_CHANNEL = 0x8a,
	RING_CTRL_CM_CREATE_ID = 0x8b,
	RING_CTRL_CM_DESTROY_ID = 0x8c,
	RING_CTRL_CM_MIGRATE = 0x8d,
	RING_CTRL_CM_BIND = 0x8e,
	RING_CTRL_CM_RESOLVE_ADDR = 0x8f,
	RING_CTRL_CM_RESOLVE_ROUTE = 0x90,
	RING_CTRL_CM_NOTIFY = 0x91,
	RING_CTRL_CM_QP_ATTR = 0x92,
	RING_CTRL_CM_QUERY = 0x93,
	RING_CTRL_CM_SET_OPTION = 0x94,
	RING_CTRL_CM_JOIN_MCAST = 0x95,
	RING_CTRL_CM_LEAVE_MCAST = 0x96,
	RING_CTRL_CM_LAST = 0xbf,

	RING_CTRL_OP_COUNT = 0xc0
};

enum ring_ctrl_flag {
	RING_CTRL_REPLY = 1, /* to the request with the same id */
	RING_CTRL_PUSH = 2,  /* daemon to client, unasked; id counts pushes */
};

/** Begins every message. */
struct ring_ctrl_hdr {
	uint32_t magic;	  /* RING_MAGIC */
	uint16_t major;	  /* RING_ABI_MAJOR of the sender */
	uint16_t minor;	  /* RING_ABI_MINOR of the sender */
	uint16_t op;	  /* enum ring_ctrl_op */
	uint16_t flags;	  /* enum ring_ctrl_flag; others zero */
	uint32_t id;	  /* chosen by the client, any value; it keeps them apart itself */
	int32_t status;	  /* replies: 0, or the -errno for the whole request; else 0 */
	uint16_t count;	  /* elements that follow; 0 only if status < 0 */
	uint16_t num_fds; /* descriptors that travel along */
};
static_assert(sizeof(struct ring_ctrl_hdr) == 24, "ABI");

/** What the protocol says about an operation; ring_ctrl.c holds the table. */
struct ring_ctrl_info {
	const char *name;
	uint16_t request_size; /* bytes of an element from the client; 0: it sends none */
	uint16_t reply_size;   /* bytes of an element from the daemon, reply or push; 0: none */
	uint16_t max_count;    /* elements */
	uint8_t max_fds;       /* descriptors with a reply or push; never with a request */
	bool push;	       /* the daemon sends it unasked */
	bool notice;	       /* from the client, and without reply */
};

/** NULL for an operation that this version does not have. */
const struct ring_ctrl_info *ring_ctrl_info(unsigned int op);

/** The operation's name without prefix; never NULL. */
const char *ring_ctrl_name(unsigned int op);

/** Bytes of a message with so many elements, from the client or from the daemon. */
size_t ring_ctrl_size(unsigned int op, unsigned int count, bool from_client);

/** Fill in a header, version and all. */
void ring_ctrl_hdr_init(struct ring_ctrl_hdr *h, unsigned int op, unsigned int flags, uint32_t id,
			unsigned int count);

/**
 * Whether a received message is well-formed: header, version, direction, count, exact length.
 * What the fields of a body may be is checked by whoever serves the operation.
 *  0                 well-formed; elements begin at ring_ctrl_body()
 *  -EPROTONOSUPPORT  the header is fine, the major is another: say so, then hang up
 *  -EOPNOTSUPP       the header is fine, the operation is not known: answer and go on
 *  -EBADMSG          no sense to be made of it: hang up
 * The message needs 8-byte alignment; so do all buffers that ring_ctrl_recv() fills.
 */
int ring_ctrl_check(const void *msg, size_t len, bool from_client);

/** The elements of a message that ring_ctrl_check() accepted. */
static inline void *
ring_ctrl_body(void *msg)
{
	return (uint8_t *)msg + sizeof(struct ring_ctrl_hdr);
}

/**
 * Send one message with hdr->num_fds descriptors; they stay the caller's. Never blocks, never
 * raises SIGPIPE. 0, -EAGAIN when the socket is full, or another -errno.
 */
int ring_ctrl_send(int sock, const void *msg, size_t len, const int *fds);

/**
 * Receive one message of up to RING_CTRL_MAX_LEN bytes into `buf`, never blocking. Received
 * descriptors are close-on-exec, at most `max_fds` of them, and the caller's in `fds`; with more
 * than that, with a truncated message or one whose num_fds is another, all are closed (B170).
 * With max_fds 0, which is the daemon's way, none is even installed: a close can block.
 * Length of the message; 0 at the end of the stream; -EAGAIN; -EBADMSG: hang up; other -errno.
 */
ptrdiff_t ring_ctrl_recv(int sock, void *buf, size_t size, int *fds, unsigned int max_fds);

#endif /* RING_CTRL_H */
