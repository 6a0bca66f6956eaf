/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that speaks the socket's protocol and the shared memory itself, without librnic:
 * what a hostile program has in its hands. It maps what the daemon pushes and does honest calls;
 * whoever uses it does the rest. Waits end by themselves: a daemon that does not answer in time
 * gives -ETIMEDOUT, one that hung up -ENOTCONN.
 */
#ifndef HX_H
#define HX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_bell.h"
#include "ring_cq.h"
#include "ring_ctrl.h"
#include "ring_wq.h"

#define HX_ARENAS 256
#define HX_WAIT_MS 20000 /* an answer under sanitizers, on two cores that others use */

struct hx_arena {
	uint8_t *base; /* NULL: none, or not mapped */
	uint64_t size;
	uint32_t kind; /* enum ring_arena_kind */
};

struct hx {
	int sock;
	uint32_t next_id;
	uint32_t num_workers;
	uint32_t num_ports;
	uint32_t num_kicks;
	int kick[RING_MAX_WORKERS];
	int last_fd; /* of the last reply with a descriptor; -1 */
	bool keep_fds; /* arenas' descriptors go to arena_fd[] in place of being closed */
	int arena_fd[HX_ARENAS];
	struct hx_arena arena[HX_ARENAS];
	struct ring_bell_chunk *bell[RING_MAX_WORKERS];
	const struct ring_bell_daemon *bell_daemon[RING_MAX_WORKERS];
	uint32_t num_events;
	struct ring_ctrl_event last_event;
	/* In place of the honest answer to an arena, when set. */
	void (*arena_hook)(struct hx *h, const struct ring_ctrl_arena *a, int fd, void *arg);
	void *hook_arg;
	_Alignas(8) uint8_t buf[RING_CTRL_MAX_LEN];
};

/** Connect, and no more. 0 or -errno. */
int hx_connect(struct hx *h, const char *path);
/** Connect and say HELLO. */
int hx_open(struct hx *h, const char *path);
/** Close the socket, unmap and close everything. */
void hx_close(struct hx *h);

/** Send any bytes as one message, with descriptors. 0 or -errno. */
int hx_send_raw(struct hx *h, const void *msg, size_t len, const int *fds, unsigned int num_fds);
/** Send a well-formed request; its id in *id unless NULL. */
int hx_request(struct hx *h, unsigned int op, unsigned int count, const void *body, uint32_t *id);
/**
 * Receive one message; pushes are served. 0: *hdr is a reply's header, its elements are at
 * h->buf + sizeof(*hdr); 1: a push; -EAGAIN: nothing for so long; -ENOTCONN; -EBADMSG.
 */
int hx_receive(struct hx *h, struct ring_ctrl_hdr *hdr, int timeout_ms);
/** Wait for the reply to a request; the others are dropped. Its status, elements copied. */
int hx_wait(struct hx *h, uint32_t id, void *rep, size_t size);
/** A request of one element and its reply: the status of either, whichever is not 0. */
int hx_call(struct hx *h, unsigned int op, const void *req, void *rep, size_t rep_size);
/** hx_call() of the operations that name an object and say nothing else. */
int hx_handle_call(struct hx *h, unsigned int op, uint32_t handle);
/** Answer an arena. */
int hx_arena_mapped(struct hx *h, uint32_t arena, int status, const void *addr);

/** Where a place lies, NULL when no such bytes are mapped. */
void *hx_at(struct hx *h, ring_loc_t loc, uint64_t size);

/** Milliseconds on a clock that only goes forward. */
uint64_t hx_now_ms(void);
/** Let milliseconds pass; returns early when the socket has something (h may be NULL). */
void hx_pass(struct hx *h, int ms);

#endif /* HX_H */
