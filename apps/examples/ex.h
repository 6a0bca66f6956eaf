/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples share: errors, the TCP conversation that joins two QPs (that of
 * ibv_rc_pingpong, so that either end may be another program), opening a device.
 */
#ifndef EX_H
#define EX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rnic.h"

#define EX_ADDRESS_LEN sizeof("0000:000000:000000:00000000000000000000000000000000")

/** The program's name, for messages. Set first. */
extern const char *ex_program;

void ex_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/** Ends the program unless rc is 0 or more: "what: reason". */
int ex_check(int rc, const char *what);
/** An option's number within limits, or the end. */
unsigned long ex_number(const char *option, const char *text, unsigned long min,
			unsigned long max);
/** "64", "4k", "1m". */
unsigned long ex_size(const char *option, const char *text, unsigned long min, unsigned long max);
uint64_t ex_now_ns(void);

/* ---- device ---------- */

struct ex_device {
	struct rnic_context *ctx;
	struct rnic_pd *pd;
	struct rnic_port_attr port;
	union rnic_gid gid;
	unsigned int port_num;
	uint8_t gid_index;
	bool private_memory; /* of ex_memory(); set after ex_open() */
};

/** gid_index < 0: the first IPv4 address, else the first of any. */
void ex_open(struct ex_device *d, const char *socket, const char *device, unsigned int port,
	     int gid_index);
void ex_close(struct ex_device *d);
/** enum rnic_mtu of bytes (0: what the port has). Ends the program when the port has less. */
uint32_t ex_mtu(const struct ex_device *d, unsigned int bytes);
/** Zeroed memory that the daemon reaches without a copy, or private, and a region over it. */
struct rnic_mr *ex_memory(struct ex_device *d, size_t len, unsigned int access);
void ex_free(struct ex_device *d, struct rnic_mr *mr);

/* ---- connection ---------- */

struct ex_address {
	unsigned int lid, qpn, psn;
	union rnic_gid gid;
};

/** What a QP's two ends agree on. */
struct ex_path {
	uint32_t mtu; /* enum rnic_mtu */
	uint8_t sl, timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic;
};
extern const struct ex_path ex_default_path; /* that of ibv_rc_pingpong */

#define EX_GRH_LEN 40u
#define EX_QKEY 0x11111111u /* that of ibv_ud_pingpong */

/** INIT with these rights; a UD QP with EX_QKEY. */
void ex_init_qp(struct ex_device *d, struct rnic_qp *qp, unsigned int access);
/** RC, UC or UD, as the QP is. */
void ex_connect_qp(struct ex_device *d, struct rnic_qp *qp, const struct ex_path *path,
		   const struct ex_address *own, const struct ex_address *peer);
/** The way to a UD QP's peer. */
struct rnic_ah *ex_ah(struct ex_device *d, const struct ex_path *path,
		      const struct ex_address *peer);
struct ex_address ex_own_address(struct ex_device *d, const struct rnic_qp *qp);

/** A connected TCP socket, and a stream to read from it. */
struct ex_conn {
	int fd;
	FILE *in;
};

int ex_listen(unsigned int port, unsigned int *bound);
void ex_accept(struct ex_conn *c, int listener);
void ex_dial(struct ex_conn *c, const char *host, unsigned int port);
void ex_hang_up(struct ex_conn *c);
void ex_put_address(struct ex_conn *c, const struct ex_address *a);
void ex_get_address(struct ex_conn *c, struct ex_address *a);
/** The four steps of ibv_rc_pingpong's exchange; *peer is filled, the QP is in RTS. */
void ex_join(struct ex_conn *c, bool server, struct ex_device *d, struct rnic_qp *qp,
	     const struct ex_path *path, struct ex_address *peer);
/** A line with its newline; one without (false: the peer has gone). */
void ex_say(struct ex_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool ex_hear(struct ex_conn *c, char *line, size_t size);
void ex_print_address(const char *whose, const struct ex_address *a);

/* ---- completions ---------- */

/** Look a while, then sleep until some come or timeout_ms is over. Ends the program on errors. */
int ex_wait(struct rnic_cq *cq, int n, struct rnic_wc *wc, int timeout_ms);
/** Ends the program unless the completion is a success. */
void ex_check_wc(const struct rnic_wc *wc);

/* ---- test data ---------- */

/** Bytes that follow from a seed: none is like its neighbours'. */
void ex_pattern(void *to, size_t len, uint64_t seed);
/** @return offset of the first wrong byte, or len. */
size_t ex_pattern_check(const void *p, size_t len, uint64_t seed);

#endif /* EX_H */
