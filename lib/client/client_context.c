/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: connecting to the daemon and the greeting, and their end. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client_priv.h"

/*
 * Where Yama lets processes be reached by their parents alone, the daemon is named here: it
 * reads and writes what is registered of our private memory.
 */
static void
allow_daemon(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0)
		prctl(PR_SET_PTRACER, (unsigned long)peer.pid, 0, 0, 0); /* EINVAL: no Yama */
}

static int
socket_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (!path)
		path = getenv("RNIC_SOCKET");
	if (!path)
		path = RNIC_DEFAULT_PATH;
	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		if (errno != EINTR) {
			int rc = -errno;

			close(fd);
			return rc;
		}
	}
	allow_daemon(fd);
	return fd;
}

/* A word that reads zero in a forked child, without a system call. */
static int
gate_make(struct rnic_context *ctx)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	ctx->gate = p;
	*ctx->gate = CLIENT_GATE_OPEN;
	return madvise(p, size, MADV_WIPEONFORK) ? -errno : 0;
}

static int
fds_make(struct rnic_context *ctx)
{
	struct epoll_event ev = {.events = EPOLLIN};

	ctx->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->event_fd < 0)
		return -errno;
	ctx->async_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ctx->async_fd < 0)
		return -errno;
	if (epoll_ctl(ctx->async_fd, EPOLL_CTL_ADD, ctx->event_fd, &ev) ||
		epoll_ctl(ctx->async_fd, EPOLL_CTL_ADD, ctx->sock, &ev))
		return -errno;
	return 0;
}

static void
close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* All but the socket, which the caller may want back. */
static void
context_free(struct rnic_context *ctx)
{
	while (ctx->objects) {
		struct client_obj *obj = ctx->objects;

		ctx->objects = obj->next;
		obj->release(obj);
	}
	while (ctx->events) {
		struct client_event *e = ctx->events;

		ctx->events = e->next;
		free(e);
	}
	for (uint32_t i = 0; i < RING_MAX_WORKERS; i++)
		close_if(ctx->kick_fds[i]);
	close_if(ctx->event_fd);
	close_if(ctx->async_fd);
	client_arenas_unmap(ctx);
	client_map_fini(&ctx->qps);
	client_map_fini(&ctx->cqs);
	client_map_fini(&ctx->srqs);
	client_map_fini(&ctx->cm_ids);
	if (ctx->gate)
		munmap(ctx->gate, (size_t)sysconf(_SC_PAGESIZE));
	pthread_cond_destroy(&ctx->cond);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->rx);
	free(ctx->path);
	free(ctx);
}

static struct rnic_context *
context_new(int fd)
{
	struct rnic_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->rx = malloc(RING_CTRL_MAX_LEN);
	if (!ctx->rx) {
		free(ctx);
		return NULL;
	}
	ctx->sock = fd;
	ctx->event_fd = -1;
	ctx->async_fd = -1;
	for (uint32_t i = 0; i < RING_MAX_WORKERS; i++)
		ctx->kick_fds[i] = -1;
	ctx->events_end = &ctx->events;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->cond, NULL);
	return ctx;
}

/* Pushes that come before the reply have been taken in: the bells of each worker are known. */
static int
hello_check(struct rnic_context *ctx, const struct ring_ctrl_hello_rep *rep, unsigned int num_fds)
{
	if (rep->num_workers < 1 || rep->num_workers > RING_MAX_WORKERS ||
		rep->num_workers != num_fds)
		return -EPROTO;
	for (uint32_t w = 0; w < rep->num_workers; w++) {
		if (!ctx->chunks[0][w])
			return -EPROTO;
	}
	return 0;
}

static int
hello(struct rnic_context *ctx)
{
	struct ring_ctrl_hello_req req = {.pid = getpid()};
	struct ring_ctrl_hello_rep rep;
	unsigned int num_fds;
	int rc;

	memcpy(req.device, ctx->asked, sizeof(req.device));
	rc = client_call_fds(
		ctx, RING_CTRL_HELLO, &req, &rep, ctx->kick_fds, RING_MAX_WORKERS, &num_fds);
	if (rc) {
		for (uint32_t i = 0; i < RING_MAX_WORKERS; i++)
			ctx->kick_fds[i] = -1; /* closed already, if there were any */
		return rc;
	}
	rc = hello_check(ctx, &rep, num_fds);
	if (rc)
		return rc;
	ctx->num_workers = rep.num_workers;
	ctx->num_comp_vectors = rep.num_comp_vectors;
	memcpy(ctx->boot_id, rep.boot_id, sizeof(ctx->boot_id));
	memcpy(ctx->device, rep.device, sizeof(ctx->device));
	ctx->device[sizeof(ctx->device) - 1] = 0;
	return 0;
}

/* Before the first QP, so that posting can refuse what the device would fail the QP for. */
static int
learn_opcodes(struct rnic_context *ctx)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_query_device_rep rep;
	int rc = client_call1(ctx, RING_CTRL_QUERY_DEVICE, &req, &rep);

	if (rc == 0)
		ctx->opcodes_lacking = client_opcodes_lacking(rep.device_cap_flags);
	return rc;
}

static int
open_fd(int fd, const char *path, const struct rnic_open_attr *attr, struct rnic_context **out)
{
	struct rnic_context *ctx;
	int rc = -ENOMEM;

	if (attr && attr->device && strlen(attr->device) >= sizeof(ctx->asked))
		return -ENODEV;
	ctx = context_new(fd);
	if (!ctx)
		return -ENOMEM;
	if (attr) {
		ctx->flags = attr->flags;
		if (attr->device)
			memcpy(ctx->asked, attr->device, strlen(attr->device));
	}
	if (path) {
		ctx->path = strdup(path);
		if (!ctx->path)
			goto fail;
	}
	rc = gate_make(ctx);
	if (rc == 0)
		rc = fds_make(ctx);
	if (rc == 0)
		rc = hello(ctx);
	if (rc == 0)
		rc = learn_opcodes(ctx);
	if (rc)
		goto fail;
	*out = ctx;
	return 0;
fail:
	context_free(ctx);
	return rc;
}

int
rnic_open_fd(int fd, const struct rnic_open_attr *attr, struct rnic_context **ctx)
{
	return open_fd(fd, NULL, attr, ctx);
}

int
rnic_open(const char *path, const struct rnic_open_attr *attr, struct rnic_context **ctx)
{
	int fd = socket_connect(path);
	int rc;

	if (fd < 0)
		return fd;
	rc = open_fd(fd, path, attr, ctx);
	if (rc)
		close(fd);
	return rc;
}

int
rnic_reopen(const struct rnic_context *old, struct rnic_context **ctx)
{
	struct rnic_open_attr attr = {.device = old->asked, .flags = old->flags};

	return rnic_open(old->path, &attr, ctx);
}

static void
close_once(int *fd)
{
	close_if(*fd);
	*fd = -1;
}

/*
 * In a forked child, so that the daemon and the parent see the end of the parent's descriptors.
 * The list of channels is whole at any instruction of the parent's threads.
 */
static void
child_close(struct rnic_context *ctx)
{
	close_once(&ctx->sock);
	close_once(&ctx->event_fd);
	close_once(&ctx->async_fd);
	for (uint32_t i = 0; i < RING_MAX_WORKERS; i++)
		close_once(&ctx->kick_fds[i]);
	for (struct rnic_channel *ch = ctx->channels; ch; ch = ch->next) {
		close_once(&ch->pipe);
		close_once(&ch->event_fd);
		close_once(&ch->fd);
	}
	client_cm_child_close(ctx);
}

int
rnic_close(struct rnic_context *ctx)
{
	int sock;

	if (client_is_child(ctx)) {
		child_close(ctx);
		return 0;
	}
	sock = ctx->sock;
	context_free(ctx);
	close(sock);
	return 0;
}

int
rnic_status(const struct rnic_context *ctx)
{
	return client_gate(ctx);
}

const char *
rnic_device_name(const struct rnic_context *ctx)
{
	return ctx->device;
}

const uint8_t *
rnic_boot_id(const struct rnic_context *ctx)
{
	return ctx->boot_id;
}

unsigned int
rnic_num_workers(const struct rnic_context *ctx)
{
	return ctx->num_workers;
}

unsigned int
rnic_num_comp_vectors(const struct rnic_context *ctx)
{
	return ctx->num_comp_vectors;
}

uint64_t
rnic_stale_completions(const struct rnic_context *ctx)
{
	return atomic_load_explicit(&ctx->stale, memory_order_relaxed);
}

static void
device_info(struct rnic_device_info *info, const struct ring_ctrl_list_device_rep *rep)
{
	memcpy(info->name, rep->device, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = 0;
	info->node_guid = rep->node_guid;
	info->transport = rep->transport;
	info->num_ports = rep->num_ports;
}

/* Before any HELLO: a context that is only a socket. */
int
rnic_list_devices(const char *path, struct rnic_device_info *info, int max)
{
	int fd = socket_connect(path);
	struct rnic_context *ctx;
	int num = 1;
	int rc;

	if (fd < 0)
		return fd;
	ctx = context_new(fd);
	rc = ctx ? gate_make(ctx) : -ENOMEM;
	for (int i = 0; rc == 0 && i < num && (i < max || i == 0); i++) {
		struct ring_ctrl_handle_req req = {.handle = (uint32_t)i};
		struct ring_ctrl_list_device_rep rep;

		rc = client_call1(ctx, RING_CTRL_LIST_DEVICE, &req, &rep);
		if (rc)
			break;
		num = rep.num_devices > 4096 ? 4096 : (int)rep.num_devices;
		if (i < max)
			device_info(&info[i], &rep);
	}
	if (ctx)
		context_free(ctx);
	close(fd);
	return rc == -ENODEV ? 0 : rc ? rc : num;
}
