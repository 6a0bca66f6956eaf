/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_fixture.h"

static const struct net_ip v6 = { .b = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
static const struct net_ip link_local = { .b = { 0xfe, 0x80, [15] = 1 } };

static struct roce_cm_listener *
add(struct cm_fix *f, struct roce_cm_listen l, int want)
{
	struct roce_cm_listener *out = NULL;

	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &out), want);
	return out;
}

START_TEST(listener__the_most_specific)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_listener *any, *any_port, *v4, *addr, *addr_port;
	const struct net_ip us = cm_ip4(2), other = cm_ip4(7);

	any = add(f, l, 0);
	add(f, l, -EADDRINUSE);
	l.port = 1;
	any_port = add(f, l, 0);
	l.port = ROCE_CM_ANY_PORT;
	l.v4_only = true;
	v4 = add(f, l, 0);
	l.v4_only = false;
	l.addr = us;
	addr = add(f, l, 0);
	l.port = 1;
	addr_port = add(f, l, 0);
	add(f, l, -EADDRINUSE);
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &us, 1), addr_port);
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &us, 0), addr);
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &other, 1), any_port);
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &other, 0), v4);
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &v6, 0), any);
	for (unsigned int i = 1; i < 16 * CM_LISTENER_BUCKETS; i++) /* those of its bucket, too */
		ck_assert_ptr_null(cm_listener_find(f->cm, CM_SERVICE + i, &us, 0));
	roce_cm_listener_free(any);
	ck_assert_ptr_null(cm_listener_find(f->cm, CM_SERVICE, &v6, 0));
	roce_cm_listener_free(any_port);
	roce_cm_listener_free(v4);
	roce_cm_listener_free(addr);
	roce_cm_listener_free(addr_port);
	roce_cm_listener_free(NULL);
	cm_fix_end(f);
}
END_TEST

START_TEST(listener__of_one_family_or_none)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_listen l = cm_listen_default();
	const struct net_ip us = cm_ip4(2);

	l.v6_only = true;
	f->listener = add(f, l, 0);
	ck_assert_ptr_null(cm_listener_find(f->cm, CM_SERVICE, &us, 0));
	ck_assert_ptr_eq(cm_listener_find(f->cm, CM_SERVICE, &v6, 0), f->listener);
	l.v4_only = true;
	add(f, l, -EINVAL);
	l = cm_listen_default();
	l.rc = l.uc = false;
	add(f, l, -EINVAL);
	cm_fix_end(f);
}
END_TEST

/* Its half-open connections stay with who has been told of them. */
START_TEST(listener__goes_before_its_connections)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	const struct roce_cm_accept a = cm_accept_default();

	roce_cm_listener_free(f->listener);
	f->listener = NULL;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	cm_sent(f, ROCE_CM_REP);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* Ids are drawn, never 0, never one in use. */
static unsigned int draws;

static void
poor_random(void *ctx, void *buf, uint32_t len)
{
	static const uint32_t ids[] = { 5, 0, 5, 5, 6 };

	(void)ctx;
	memset(buf, 0, len);
	if (len == 4)
		memcpy(buf, &ids[draws++ % 5], 4);
}

START_TEST(local_id__unique_and_not_0)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c, *d;

	f->cm->cfg.random = poor_random;
	draws = 0;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	a.qpn++;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &d), 0);
	ck_assert_uint_eq(c->local_id, 5);
	ck_assert_uint_eq(d->local_id, 6);
	ck_assert_ptr_eq(cm_find_local_id(f->cm, 5), c);
	ck_assert_ptr_eq(cm_find_local_id(f->cm, 6), d);
	ck_assert_ptr_null(cm_find_local_id(f->cm, 7));
	roce_cm_conn_free(d, f->now);
	f->out_tail = f->out_head;
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(qpn__held_once)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c = cm_connecting(f), *d;

	ck_assert(roce_cm_qpn_held(f->cm, CM_US_QPN));
	ck_assert(!roce_cm_qpn_held(f->cm, CM_US_QPN + 1));
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &d), -EBUSY);
	cm_let_go(f, c);
	ck_assert(!roce_cm_qpn_held(f->cm, CM_US_QPN));
	cm_fix_end(f);
}
END_TEST

/* A link-local address on two ports, or in two VLANs, is two peers; another one is not. */
START_TEST(peer__link_local_by_its_link)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct net_ip us = cm_ip4(2);
	struct cm_peer *a, *b, *c;

	ck_assert_uint_eq(cm_scope(&v6, 1, 2), cm_scope(&v6, 3, 4));
	ck_assert_uint_eq(cm_scope(&us, 1, 2), 0);
	a = cm_peer_get(f->cm, &link_local, cm_scope(&link_local, 0, 0xffff));
	b = cm_peer_get(f->cm, &link_local, cm_scope(&link_local, 1, 0xffff));
	c = cm_peer_get(f->cm, &link_local, cm_scope(&link_local, 0, 5));
	ck_assert(a != b && b != c && a != c);
	ck_assert_ptr_eq(cm_peer_get(f->cm, &link_local, a->scope), a);
	ck_assert_uint_eq(a->conns, 2);
	cm_peer_put(f->cm, a);
	cm_peer_put(f->cm, a);
	cm_peer_put(f->cm, b);
	cm_peer_put(f->cm, c);
	ck_assert_ptr_null(cm_peer_find(f->cm, &link_local, cm_scope(&link_local, 0, 5)));
	cm_fix_end(f);
}
END_TEST

/* The tables do not degrade under ids that a peer picks one after the other. */
START_TEST(remote_id__spreads)
{
	const struct roce_cm_config cfg = { .max_conns = 1 << 16, .max_half_open_peer = 1 << 16 };
	struct cm_fix *f = cm_fix_new(&cfg);
	struct roce_cm_listen l = cm_listen_default();
	unsigned int longest = 0;

	l.backlog = 1 << 16;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	for (unsigned int i = 0; i < 1 << 14; i++) {
		struct roce_cm_msg m = cm_msg_req(f);

		m.local_id = i * 0x10000 + 1;
		m.req.qpn = 2 + i * 0x100;
		cm_in_mad(f, &m);
		f->told_tail = f->told_head;
	}
	for (unsigned int i = 0; i <= f->cm->mask; i++) {
		struct roce_cm_conn *c;
		unsigned int n = 0;

		LIST_FOREACH(c, &f->cm->remote_ids[i], by_remote_id)
			n++;
		longest = n > longest ? n : longest;
	}
	ck_assert_uint_eq(f->cm->sizes.conns, 1 << 14);
	ck_assert_uint_le(longest, 10);
	roce_cm_listener_free(f->listener);
	roce_cm_free(f->cm);
	free(f);
}
END_TEST

/* Nor under addresses of one /64, as anybody has, that differ where a multiplication loses it. */
START_TEST(peer__spreads)
{
	const struct roce_cm_config cfg = { .max_conns = 1 << 16 };
	struct cm_fix *f = cm_fix_new(&cfg);
	struct cm_peer *p[1024], *at;
	unsigned int longest = 0;
	struct net_ip ip = v6;

	for (uint64_t i = 0; i < 1024; i++) {
		const uint64_t low = i << 54 | i << 22;

		memcpy(ip.b + 8, &low, sizeof(low));
		p[i] = cm_peer_get(f->cm, &ip, 0);
	}
	for (unsigned int i = 0; i <= f->cm->mask; i++) {
		unsigned int n = 0;

		LIST_FOREACH(at, &f->cm->peers[i], hash)
			n++;
		longest = n > longest ? n : longest;
	}
	ck_assert_uint_le(longest, 6);
	for (unsigned int i = 0; i < 1024; i++)
		cm_peer_put(f->cm, p[i]);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_table",
	listener__the_most_specific,
	listener__of_one_family_or_none,
	listener__goes_before_its_connections,
	local_id__unique_and_not_0,
	qpn__held_once,
	peer__link_local_by_its_link,
	remote_id__spreads,
	peer__spreads)
