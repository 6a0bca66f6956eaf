/* SPDX-License-Identifier: BSD-3-Clause */
/* Device, QP states, completions and test data, as the examples use them. */
#include "ex.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SPINS 2000 /* looks at a CQ before sleeping */

const char *ex_program = "example";

const struct ex_path ex_default_path = {
	.mtu = RNIC_MTU_1024, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
	.min_rnr_timer = 12, .rd_atomic = 16,
};

void
ex_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", ex_program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

int
ex_check(int rc, const char *what)
{
	if (rc < 0)
		ex_fail("%s: %s", what, rnic_strerror(rc));
	return rc;
}

unsigned long
ex_size(const char *option, const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (end != text && (*end == 'k' || *end == 'K') && n <= max >> 10)
		n <<= 10, end++;
	else if (end != text && (*end == 'm' || *end == 'M') && n <= max >> 20)
		n <<= 20, end++;
	if (end == text || *end || errno || *text == '-' || n < min || n > max)
		ex_fail("%s wants a number from %lu to %lu, not '%s'", option, min, max, text);
	return n;
}

unsigned long
ex_number(const char *option, const char *text, unsigned long min, unsigned long max)
{
	return ex_size(option, text, min, max);
}

uint64_t
ex_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- device ---------- */

static bool
is_ipv4(const union rnic_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static void
choose_gid(struct ex_device *d)
{
	struct rnic_gid_entry g;
	bool found = false;

	for (unsigned int i = 0; i < d->port.gid_tbl_len && i < 256; i++) {
		if (rnic_query_gid(d->ctx, d->port_num, i, &g) != 0 ||
		    (found && !is_ipv4(&g.gid)))
			continue;
		found = true;
		d->gid = g.gid;
		d->gid_index = (uint8_t)i;
		if (is_ipv4(&g.gid))
			return;
	}
	if (!found)
		ex_fail("port %u has no address", d->port_num);
}

void
ex_open(struct ex_device *d, const char *socket, const char *device, unsigned int port,
	int gid_index)
{
	const struct rnic_open_attr attr = { .device = device };
	struct rnic_gid_entry g;
	int rc;

	*d = (struct ex_device){ .port_num = port };
	rc = rnic_open(socket, &attr, &d->ctx);
	if (rc < 0)
		ex_fail("cannot open the device at %s: %s (is rnicd running?)",
			socket ? socket : getenv("RNIC_SOCKET") ? getenv("RNIC_SOCKET")
								: RNIC_DEFAULT_PATH,
			rnic_strerror(rc));
	ex_check(rnic_query_port(d->ctx, port, &d->port), "query of the port");
	if (d->port.state != RNIC_PORT_ACTIVE)
		ex_fail("port %u is %s", port, rnic_port_state_str(d->port.state));
	if (gid_index < 0) {
		choose_gid(d);
	} else {
		ex_check(rnic_query_gid(d->ctx, port, (unsigned int)gid_index, &g), "GID index");
		d->gid = g.gid;
		d->gid_index = (uint8_t)gid_index;
	}
	ex_check(rnic_alloc_pd(d->ctx, &d->pd), "protection domain");
}

void
ex_close(struct ex_device *d)
{
	rnic_dealloc_pd(d->pd);
	rnic_close(d->ctx);
}

uint32_t
ex_mtu(const struct ex_device *d, unsigned int bytes)
{
	uint32_t code = RNIC_MTU_256;

	if (bytes == 0)
		return d->port.active_mtu;
	while (code < RNIC_MTU_4096 && 128u << code < bytes)
		code++;
	if (128u << code != bytes)
		ex_fail("a path MTU is 256, 512, 1024, 2048 or 4096 bytes, not %u", bytes);
	if (code > d->port.active_mtu)
		ex_fail("the port's path MTU is %u bytes at most", 128u << d->port.active_mtu);
	return code;
}

struct rnic_mr *
ex_memory(struct ex_device *d, size_t len, unsigned int access)
{
	struct rnic_mr *mr;
	void *p;

	if (!d->private_memory) {
		ex_check(rnic_alloc(d->ctx, len, 4096, &p), "memory");
	} else {
		p = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
		if (!p)
			ex_fail("no memory");
		memset(p, 0, len);
	}
	ex_check(rnic_reg_mr(d->pd, p, len, RNIC_ACCESS_LOCAL_WRITE | access, &mr),
		 "memory region");
	return mr;
}

void
ex_free(struct ex_device *d, struct rnic_mr *mr)
{
	void *p = mr->addr;

	rnic_dereg_mr(mr);
	if (d->private_memory)
		free(p);
	else
		rnic_free(d->ctx, p);
}

/* ---- connection ---------- */

void
ex_init_qp(struct ex_device *d, struct rnic_qp *qp, unsigned int access)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_INIT,
		.port_num = (uint8_t)d->port_num,
		.qp_access_flags = access,
		.qkey = EX_QKEY,
	};

	ex_check(rnic_modify_qp(qp, &a, RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
				(qp->qp_type == RNIC_QPT_UD ? RNIC_QP_QKEY
							    : RNIC_QP_ACCESS_FLAGS)),
		 "QP to INIT");
}

static struct rnic_ah_attr
ah_attr(const struct ex_device *d, const struct ex_path *path, const struct ex_address *peer)
{
	return (struct rnic_ah_attr){
		.dgid = peer->gid, .sgid_index = d->gid_index, .hop_limit = 64, .sl = path->sl,
		.port_num = (uint8_t)d->port_num, .is_global = 1,
	};
}

struct rnic_ah *
ex_ah(struct ex_device *d, const struct ex_path *path, const struct ex_address *peer)
{
	struct rnic_ah_attr a = ah_attr(d, path, peer);
	struct rnic_ah *ah;

	ex_check(rnic_create_ah(d->pd, &a, &ah), "address handle (can the peer be reached?)");
	return ah;
}

/** Whether its attributes are those of a connection with acknowledgements. */
static bool
is_rc(const struct rnic_qp *qp)
{
	return qp->qp_type == RNIC_QPT_RC;
}

static void
to_rtr(struct ex_device *d, struct rnic_qp *qp, const struct ex_path *path,
       const struct ex_address *peer)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_RTR,
		.path_mtu = path->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = path->rd_atomic,
		.min_rnr_timer = path->min_rnr_timer,
		.ah_attr = ah_attr(d, path, peer),
	};

	unsigned int mask = RNIC_QP_STATE;

	if (qp->qp_type != RNIC_QPT_UD)
		mask |= RNIC_QP_AV | RNIC_QP_PATH_MTU | RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN;
	if (is_rc(qp))
		mask |= RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER;
	ex_check(rnic_modify_qp(qp, &a, mask), "QP to RTR (can the peer be reached?)");
}

void
ex_connect_qp(struct ex_device *d, struct rnic_qp *qp, const struct ex_path *path,
	      const struct ex_address *own, const struct ex_address *peer)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_RTS,
		.sq_psn = own->psn,
		.timeout = path->timeout,
		.retry_cnt = path->retry_cnt,
		.rnr_retry = path->rnr_retry,
		.max_rd_atomic = path->rd_atomic,
	};

	unsigned int mask = RNIC_QP_STATE | RNIC_QP_SQ_PSN;

	to_rtr(d, qp, path, peer);
	if (is_rc(qp))
		mask |= RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY |
			RNIC_QP_MAX_QP_RD_ATOMIC;
	ex_check(rnic_modify_qp(qp, &a, mask), "QP to RTS");
}

struct ex_address
ex_own_address(struct ex_device *d, const struct rnic_qp *qp)
{
	struct ex_address a = { .qpn = qp->qp_num, .gid = d->gid };

	if (getrandom(&a.psn, sizeof(a.psn), 0) != sizeof(a.psn))
		ex_fail("getrandom: %s", strerror(errno));
	a.psn &= 0xffffff;
	return a;
}

void
ex_print_address(const char *whose, const struct ex_address *a)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, a->gid.raw, gid, sizeof(gid));
	printf("  %s address: %*sLID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose,
	       (int)(6 - strlen(whose)), "", a->lid, a->qpn, a->psn, gid);
}

/* ---- completions ---------- */

int
ex_wait(struct rnic_cq *cq, int n, struct rnic_wc *wc, int timeout_ms)
{
	int got = 0;

	for (int i = 0; i < SPINS && got == 0; i++)
		got = rnic_poll_cq(cq, n, wc);
	if (got == 0 && cq->channel)
		got = rnic_wait_cq(cq, n, wc, timeout_ms);
	return ex_check(got, "completion queue");
}

void
ex_check_wc(const struct rnic_wc *wc)
{
	if (wc->status != RNIC_WC_SUCCESS)
		ex_fail("QP 0x%06x, request %llu: %s", wc->qp_num, (unsigned long long)wc->wr_id,
			rnic_wc_status_str(wc->status));
}

/* ---- test data ---------- */

static uint64_t
word_of(uint64_t seed, size_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 32;
}

void
ex_pattern(void *to, size_t len, uint64_t seed)
{
	uint8_t *p = to;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = word_of(seed, i / 8);

		memcpy(p + i, &w, len - i < 8 ? len - i : 8);
	}
}

size_t
ex_pattern_check(const void *p, size_t len, uint64_t seed)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = word_of(seed, i / 8), got = w;
		size_t n = len - i < 8 ? len - i : 8;

		memcpy(&got, b + i, n);
		if (got == w)
			continue;
		for (size_t j = 0; j < n; j++)
			if (((uint8_t *)&got)[j] != ((uint8_t *)&w)[j])
				return i + j;
	}
	return len;
}
