/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control protocol: the table of operations, the check of a message's form, and sending
 * and receiving with descriptors. It knows nothing of what operations mean.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ring_ctrl.h"

#define ROOM (RING_CTRL_MAX_LEN - sizeof(struct ring_ctrl_hdr))
#define FIT(size) ((size) * RING_CTRL_MAX_BATCH <= ROOM ? RING_CTRL_MAX_BATCH : ROOM / (size))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

/* A request with its reply, batched as far as both fit. */
#define CALL(op, label, req, rep) \
	[RING_CTRL_##op] = { \
		.name = label, \
		.request_size = sizeof(struct ring_ctrl_##req), \
		.reply_size = sizeof(struct ring_ctrl_##rep), \
		.max_count = FIT(MAX_OF(sizeof(struct ring_ctrl_##req), \
					sizeof(struct ring_ctrl_##rep))), \
	}
/* The same, one element a message, with up to `fds` descriptors in the reply. */
#define CALL_FDS(op, label, req, rep, fds) \
	[RING_CTRL_##op] = { \
		.name = label, \
		.request_size = sizeof(struct ring_ctrl_##req), \
		.reply_size = sizeof(struct ring_ctrl_##rep), \
		.max_count = 1, \
		.max_fds = fds, \
	}
#define PUSH(op, label, body, fds) \
	[RING_CTRL_##op] = { \
		.name = label, \
		.reply_size = sizeof(struct ring_ctrl_##body), \
		.max_count = 1, \
		.max_fds = fds, \
		.push = true, \
	}
#define NOTICE(op, label, body) \
	[RING_CTRL_##op] = { \
		.name = label, \
		.request_size = sizeof(struct ring_ctrl_##body), \
		.max_count = 1, \
		.notice = true, \
	}

static const struct ring_ctrl_info ops[RING_CTRL_OP_COUNT] = {
	CALL_FDS(HELLO, "HELLO", hello_req, hello_rep, RING_MAX_WORKERS),
	CALL(LIST_DEVICE, "LIST_DEVICE", handle_req, list_device_rep),
	PUSH(ARENA, "ARENA", arena, 1),
	NOTICE(ARENA_MAPPED, "ARENA_MAPPED", arena_mapped),
	PUSH(BELLS, "BELLS", bells, 0),
	PUSH(EVENT, "EVENT", event, 0),

	CALL(QUERY_DEVICE, "QUERY_DEVICE", empty_req, query_device_rep),
	CALL(QUERY_PORT, "QUERY_PORT", query_port_req, query_port_rep),
	CALL(QUERY_GID, "QUERY_GID", query_gid_req, query_gid_rep),
	CALL(RESOLVE, "RESOLVE", resolve_req, resolve_rep),

	CALL(ALLOC_PD, "ALLOC_PD", empty_req, handle_rep),
	CALL(DEALLOC_PD, "DEALLOC_PD", handle_req, done_rep),
	CALL(ALLOC_MEM, "ALLOC_MEM", alloc_mem_req, alloc_mem_rep),
	CALL(FREE_MEM, "FREE_MEM", free_mem_req, done_rep),
	CALL(REG_MR, "REG_MR", reg_mr_req, reg_mr_rep),
	CALL(REREG_MR, "REREG_MR", rereg_mr_req, reg_mr_rep),
	CALL(DEREG_MR, "DEREG_MR", handle_req, done_rep),
	CALL(ALLOC_MW, "ALLOC_MW", alloc_mw_req, alloc_mw_rep),
	CALL(DEALLOC_MW, "DEALLOC_MW", handle_req, done_rep),
	CALL(EXPORT, "EXPORT", export_req, export_rep),
	CALL(IMPORT, "IMPORT", import_req, import_rep),
	CALL(ALLOC_FAST_MR, "ALLOC_FAST_MR", alloc_fast_mr_req, reg_mr_rep),

	CALL_FDS(CREATE_CHANNEL, "CREATE_CHANNEL", empty_req, create_channel_rep, 1),
	CALL(DESTROY_CHANNEL, "DESTROY_CHANNEL", handle_req, done_rep),
	CALL(CREATE_CQ, "CREATE_CQ", create_cq_req, create_cq_rep),
	CALL(RESIZE_CQ, "RESIZE_CQ", resize_cq_req, resize_cq_rep),
	CALL(DESTROY_CQ, "DESTROY_CQ", handle_req, done_rep),

	CALL(CREATE_QP, "CREATE_QP", create_qp_req, create_qp_rep),
	CALL(MODIFY_QP, "MODIFY_QP", modify_qp_req, modify_qp_rep),
	CALL(QUERY_QP, "QUERY_QP", handle_req, query_qp_rep),
	CALL(DESTROY_QP, "DESTROY_QP", handle_req, done_rep),
	CALL(CREATE_SRQ, "CREATE_SRQ", create_srq_req, create_srq_rep),
	CALL(MODIFY_SRQ, "MODIFY_SRQ", modify_srq_req, modify_srq_rep),
	CALL(QUERY_SRQ, "QUERY_SRQ", handle_req, query_srq_rep),
	CALL(DESTROY_SRQ, "DESTROY_SRQ", handle_req, done_rep),
	CALL(CREATE_AH, "CREATE_AH", create_ah_req, handle_rep),
	CALL(DESTROY_AH, "DESTROY_AH", handle_req, done_rep),
	CALL(ATTACH_MCAST, "ATTACH_MCAST", mcast_req, done_rep),
	CALL(DETACH_MCAST, "DETACH_MCAST", mcast_req, done_rep),
	CALL(ALLOC_XRCD, "ALLOC_XRCD", alloc_xrcd_req, handle_rep),
	CALL(DEALLOC_XRCD, "DEALLOC_XRCD", handle_req, done_rep),
	CALL(OPEN_QP, "OPEN_QP", open_qp_req, done_rep),

	CALL(CM_LISTEN, "CM_LISTEN", cm_arg_req, done_rep),
	CALL(CM_CONNECT, "CM_CONNECT", cm_conn_req, done_rep),
	CALL(CM_ACCEPT, "CM_ACCEPT", cm_conn_req, done_rep),
	CALL(CM_REJECT, "CM_REJECT", cm_reject_req, done_rep),
	CALL(CM_ESTABLISH, "CM_ESTABLISH", handle_req, done_rep),
	CALL(CM_DISCONNECT, "CM_DISCONNECT", handle_req, done_rep),
	CALL(CM_GET_EVENT, "CM_GET_EVENT", cm_get_event_req, cm_event_rep),
	CALL_FDS(CM_CREATE_CHANNEL, "CM_CREATE_CHANNEL", empty_req, cm_create_channel_rep, 1),
	CALL(CM_DESTROY_CHANNEL, "CM_DESTROY_CHANNEL", handle_req, done_rep),
	CALL(CM_CREATE_ID, "CM_CREATE_ID", cm_create_id_req, handle_rep),
	CALL(CM_DESTROY_ID, "CM_DESTROY_ID", handle_req, cm_moved_rep),
	CALL(CM_MIGRATE, "CM_MIGRATE", cm_migrate_req, cm_moved_rep),
	CALL(CM_BIND, "CM_BIND", cm_addr_req, cm_addr_rep),
	CALL(CM_RESOLVE_ADDR, "CM_RESOLVE_ADDR", cm_addr_req, done_rep),
	CALL(CM_RESOLVE_ROUTE, "CM_RESOLVE_ROUTE", cm_arg_req, done_rep),
	CALL(CM_NOTIFY, "CM_NOTIFY", cm_notify_req, done_rep),
	CALL(CM_QP_ATTR, "CM_QP_ATTR", cm_qp_attr_req, cm_qp_attr_rep),
	CALL(CM_QUERY, "CM_QUERY", handle_req, cm_query_rep),
	CALL(CM_SET_OPTION, "CM_SET_OPTION", cm_option_req, done_rep),
	CALL(CM_JOIN_MCAST, "CM_JOIN_MCAST", cm_mcast_req, done_rep),
	CALL(CM_LEAVE_MCAST, "CM_LEAVE_MCAST", cm_mcast_req, done_rep),
};

const struct ring_ctrl_info *
ring_ctrl_info(unsigned int op)
{
	return op < RING_CTRL_OP_COUNT && ops[op].name ? &ops[op] : NULL;
}

const char *
ring_ctrl_name(unsigned int op)
{
	const struct ring_ctrl_info *info = ring_ctrl_info(op);

	if (info)
		return info->name;
	return op >= RING_CTRL_CM_FIRST && op <= RING_CTRL_CM_LAST ? "CM" : "UNKNOWN";
}

size_t
ring_ctrl_size(unsigned int op, unsigned int count, bool from_client)
{
	const struct ring_ctrl_info *info = ring_ctrl_info(op);
	size_t each = 0;

	if (info)
		each = from_client ? info->request_size : info->reply_size;
	return sizeof(struct ring_ctrl_hdr) + count * each;
}

void
ring_ctrl_hdr_init(struct ring_ctrl_hdr *h, unsigned int op, unsigned int flags, uint32_t id,
		   unsigned int count)
{
	*h = (struct ring_ctrl_hdr){
		.magic = RING_MAGIC,
		.major = RING_ABI_MAJOR,
		.minor = RING_ABI_MINOR,
		.op = (uint16_t)op,
		.flags = (uint16_t)flags,
		.id = id,
		.count = (uint16_t)count,
	};
}

/* The client sends requests; the daemon replies, or pushes what is pushed. */
static bool
direction_ok(const struct ring_ctrl_hdr *h, const struct ring_ctrl_info *info, bool from_client)
{
	if (from_client)
		return h->flags == 0 && h->status == 0 && h->num_fds == 0 && info->request_size;
	if (h->num_fds > info->max_fds)
		return false;
	if (info->push)
		return h->flags == RING_CTRL_PUSH && h->status == 0;
	return h->flags == RING_CTRL_REPLY && !info->notice && h->status <= 0;
}

int
ring_ctrl_check(const void *msg, size_t len, bool from_client)
{
	const struct ring_ctrl_info *info;
	struct ring_ctrl_hdr h;

	if (len < sizeof(h) || len > RING_CTRL_MAX_LEN)
		return -EBADMSG;
	memcpy(&h, msg, sizeof(h));
	if (h.magic != RING_MAGIC)
		return -EBADMSG;
	if (h.major != RING_ABI_MAJOR)
		return -EPROTONOSUPPORT;
	info = ring_ctrl_info(h.op);
	/* A refusal: a header alone, even for an operation that we do not know. */
	if (!from_client && h.flags == RING_CTRL_REPLY && h.status < 0)
		return len == sizeof(h) && !h.count && !h.num_fds ? 0 : -EBADMSG;
	if (!info)
		return -EOPNOTSUPP;
	if (!direction_ok(&h, info, from_client))
		return -EBADMSG;
	if (h.count == 0 || h.count > info->max_count)
		return -EBADMSG;
	return len == ring_ctrl_size(h.op, h.count, from_client) ? 0 : -EBADMSG;
}

int
ring_ctrl_send(int sock, const void *msg, size_t len, const int *fds)
{
	const struct ring_ctrl_hdr *h = msg;
	struct iovec iov = {.iov_len = len};
	union {
		char space[CMSG_SPACE(sizeof(int) * RING_CTRL_MAX_FDS)];
		struct cmsghdr align;
	} control;
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (len < sizeof(*h) || len > RING_CTRL_MAX_LEN || h->num_fds > RING_CTRL_MAX_FDS)
		return -EINVAL;
	memcpy(&iov.iov_base, &msg, sizeof(msg)); /* sendmsg() does not write to it */
	if (h->num_fds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * h->num_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * h->num_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * h->num_fds);
	}
	do
		n = sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return (size_t)n == len ? 0 : -EIO; /* a datagram goes whole or not at all */
}

/* Take the descriptors of a message: the first `max` into fds, the rest closed. Their number. */
static unsigned int
take_fds(struct msghdr *mh, int *fds, unsigned int max)
{
	unsigned int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t num;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		num = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < num; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < max)
				fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n;
}

ptrdiff_t
ring_ctrl_recv(int sock, void *buf, size_t size, int *fds, unsigned int max_fds)
{
	/* Room for the most that the kernel passes (SCM_MAX_FD, 253): none is lost unseen. */
	union {
		char space[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	unsigned int num_fds;
	struct ring_ctrl_hdr h;
	ssize_t n;

	/* Who wants none takes none: the kernel drops them (MSG_CTRUNC). To close one, as
	 * take_fds() does, can block for ever when it is a FUSE file that the sender serves. */
	if (max_fds) {
		mh.msg_control = control.space;
		mh.msg_controllen = sizeof(control.space);
	}
	do
		n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	num_fds = max_fds ? take_fds(&mh, fds, max_fds) : 0;
	if (n == 0 && num_fds == 0 && !(mh.msg_flags & MSG_CTRUNC))
		return 0;
	if ((size_t)n >= sizeof(h))
		memcpy(&h, buf, sizeof(h));
	if ((size_t)n < sizeof(h) || (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    num_fds > max_fds || num_fds != h.num_fds) {
		for (unsigned int i = 0; i < num_fds && i < max_fds; i++)
			close(fds[i]);
		return -EBADMSG;
	}
	return n;
}
