/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of rnic_kv: every operation is one-sided. GET reads slots, PUT locks one by
 * compare-and-swap and writes it. The server's process takes no part.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

/** Memory of the client that the daemon reads and writes. */
struct kv_work {
	struct kv_slot in;  /* what was read */
	struct kv_slot out; /* what is written */
	uint64_t swapped;   /* what a compare-and-swap found */
	uint64_t unlock;
};

static struct kv_work *
work(const struct kv *kv)
{
	return kv->mr->addr;
}

/* ---- single steps ---------- */

static int
finish(struct kv *kv, int requests)
{
	struct rnic_wc wc;
	int rc = 0;

	while (requests > 0) {
		if (ex_wait(kv->cq, 1, &wc, -1) == 0)
			continue;
		requests--;
		if (wc.status != RNIC_WC_SUCCESS) {
			if (rc == 0)
				fprintf(stderr, "%s: %s\n", ex_program,
					rnic_wc_status_str(wc.status));
			rc = -EIO;
		}
	}
	return rc;
}

static struct rnic_wqe *
get_wqe(struct kv *kv)
{
	struct rnic_wqe *w = rnic_sq_get(kv->qp, 0, 1);

	if (!w)
		ex_fail("the daemon has gone");
	return w;
}

static uint64_t
remote(const struct kv *kv, uint64_t slot)
{
	return kv->table + slot * KV_SLOT;
}

static void
add_sge(struct kv *kv, struct rnic_wqe *w, void *p, size_t len)
{
	rnic_prep_sge(kv->qp, w, (uintptr_t)p, (uint32_t)len, kv->mr->lkey);
}

static int
read_slot(struct kv *kv, uint64_t slot)
{
	struct rnic_wqe *w = get_wqe(kv);

	rnic_prep_read(w, remote(kv, slot), kv->rkey, RNIC_SEND_SIGNALED);
	add_sge(kv, w, &work(kv)->in, KV_SLOT);
	rnic_sq_submit(kv->qp);
	return finish(kv, 1);
}

/** @return 1: swapped, 0: another version was there, or negative. */
static int
swap_version(struct kv *kv, uint64_t slot, uint64_t from, uint64_t to)
{
	struct rnic_sge sge = { (uintptr_t)&work(kv)->swapped, 8, kv->mr->lkey };
	int rc;

	rnic_prep_atomic(get_wqe(kv), RNIC_WR_ATOMIC_CMP_AND_SWP, remote(kv, slot), kv->rkey, from,
			 to, &sge, RNIC_SEND_SIGNALED);
	rnic_sq_submit(kv->qp);
	rc = finish(kv, 1);
	if (rc < 0)
		return rc;
	if (work(kv)->swapped == from)
		return 1;
	kv->raced++;
	return 0;
}

/** The body, then the version that makes it valid: two WRITEs, placed in order. */
static int
write_slot(struct kv *kv, uint64_t slot, uint64_t version)
{
	size_t head = offsetof(struct kv_slot, checksum);
	struct kv_work *m = work(kv);
	struct rnic_wqe *w;

	m->out.version = m->unlock = version;
	m->out.checksum = kv_checksum(&m->out, version);
	w = get_wqe(kv);
	rnic_prep_write(w, remote(kv, slot) + head, kv->rkey, RNIC_SEND_SIGNALED);
	add_sge(kv, w, (uint8_t *)&m->out + head, KV_SLOT - head);
	w = get_wqe(kv);
	rnic_prep_write(w, remote(kv, slot), kv->rkey, RNIC_SEND_SIGNALED);
	add_sge(kv, w, &m->unlock, sizeof(m->unlock));
	rnic_sq_submit(kv->qp);
	return finish(kv, 2);
}

/* ---- reading a slot that others write ---------- */

/** How long one slot has been in the same state that cannot be used. */
struct patience {
	uint64_t version, since;
};

static bool
exhausted(struct kv *kv, struct patience *p, uint64_t version)
{
	uint64_t now = ex_now_ns();

	if (p->since == 0 || p->version != version)
		*p = (struct patience){ version, now };
	return now - p->since > kv->patience_ns;
}

/** Whether a locked slot's body is one whole version: that before the lock, or the new one. */
static bool
body_whole(const struct kv_slot *s)
{
	uint64_t lock = s->version | 1;

	return s->key_len > 0 && s->key_len <= KV_KEY_MAX &&
	       (s->checksum == kv_checksum(s, lock - 1) || s->checksum == kv_checksum(s, lock + 1));
}

/**
 * Free a slot that a writer left locked when it died. A body that is no whole version is lost:
 * the slot becomes a deleted one. Should that writer go on after all, what it writes does not
 * match the version, and its slot is freed in the same way.
 */
static int
break_lock(struct kv *kv, uint64_t slot, uint64_t version)
{
	uint64_t lock = (version | 1) + 2;
	struct kv_slot *out = &work(kv)->out;
	int rc = swap_version(kv, slot, version, lock);

	if (rc <= 0)
		return rc;
	kv->broken++;
	memcpy(out, &work(kv)->in, KV_SLOT);
	if (!body_whole(out)) {
		if (out->key_len == 0 || out->key_len > KV_KEY_MAX)
			out->key_len = KV_KEY_MAX;
		out->value_len = KV_DELETED;
	}
	return write_slot(kv, slot, lock + 1);
}

/** Read until a whole version is there. */
static int
read_whole(struct kv *kv, uint64_t slot)
{
	struct patience p = { 0 };

	for (;;) {
		const struct kv_slot *s = &work(kv)->in;
		int rc = read_slot(kv, slot);

		if (rc < 0 || (!(s->version & 1) && kv_whole(s)))
			return rc;
		kv->torn++;
		if (exhausted(kv, &p, s->version)) {
			rc = break_lock(kv, slot, s->version);
			if (rc < 0)
				return rc;
			p.since = 0;
		}
	}
}

static bool
holds(const struct kv_slot *s, const void *key, size_t len)
{
	return s->key_len == len && memcmp(s->key, key, len) == 0;
}

/**
 * The slot of a key into work->in, its number into *slot. -ENOENT: *slot is the empty one where
 * it would go. A deleted key keeps its slot: so all who insert a key go for the same one, and
 * the compare-and-swap decides between them.
 */
static int
find(struct kv *kv, const void *key, size_t len, uint64_t *slot)
{
	uint64_t h = kv_hash(key, len);

	for (uint32_t i = 0; i < KV_PROBES && i < kv->slots; i++) {
		const struct kv_slot *s = &work(kv)->in;
		int rc;

		*slot = (h + i) % kv->slots;
		rc = read_whole(kv, *slot);
		if (rc < 0)
			return rc;
		if (s->key_len == 0)
			return -ENOENT;
		if (holds(s, key, len))
			return 0;
	}
	return -ENOSPC;
}

/* ---- operations ---------- */

int
kv_get(struct kv *kv, const void *key, size_t key_len, void *value, size_t *value_len)
{
	const struct kv_slot *s = &work(kv)->in;
	int rc = find(kv, key, key_len, &kv->last_slot);

	if (rc == -ENOSPC || (rc == 0 && s->value_len == KV_DELETED))
		return -ENOENT;
	if (rc < 0)
		return rc;
	kv->last_version = s->version;
	memcpy(value, s->value, s->value_len);
	*value_len = s->value_len;
	return 0;
}

/** Write a slot whose version is known, if nobody was faster. @return as swap_version(). */
static int
replace(struct kv *kv, uint64_t slot, uint64_t version, const void *key, size_t key_len,
	const void *value, size_t value_len)
{
	struct kv_slot *out = &work(kv)->out;
	int rc = swap_version(kv, slot, version, version + 1);

	if (rc <= 0)
		return rc;
	memset(out, 0, sizeof(*out));
	out->key_len = (uint16_t)key_len;
	out->value_len = value ? (uint16_t)value_len : KV_DELETED;
	memcpy(out->key, key, key_len);
	if (value)
		memcpy(out->value, value, value_len);
	rc = write_slot(kv, slot, version + 2);
	return rc < 0 ? rc : 1;
}

/** A lost race starts again: the winner may have taken the slot for another key. */
static int
store(struct kv *kv, const void *key, size_t key_len, const void *value, size_t value_len)
{
	const struct kv_slot *s = &work(kv)->in;
	int rc;

	do {
		uint64_t slot;

		rc = find(kv, key, key_len, &slot);
		if (!value && (rc == -ENOSPC || (rc == 0 && s->value_len == KV_DELETED)))
			rc = -ENOENT;
		if (rc < 0 && (rc != -ENOENT || !value))
			return rc;
		rc = replace(kv, slot, s->version, key, key_len, value, value_len);
	} while (rc == 0);
	return rc < 0 ? rc : 0;
}

int
kv_put(struct kv *kv, const void *key, size_t key_len, const void *value, size_t value_len)
{
	if (key_len == 0 || key_len > KV_KEY_MAX || value_len > KV_VALUE_MAX)
		return -EINVAL;
	return store(kv, key, key_len, value, value_len);
}

int
kv_put_unchanged(struct kv *kv, const void *key, size_t key_len, const void *value,
		 size_t value_len)
{
	if (key_len == 0 || key_len > KV_KEY_MAX || value_len > KV_VALUE_MAX)
		return -EINVAL;
	return replace(kv, kv->last_slot, kv->last_version, key, key_len, value, value_len);
}

int
kv_delete(struct kv *kv, const void *key, size_t key_len)
{
	if (key_len == 0 || key_len > KV_KEY_MAX)
		return -EINVAL;
	return store(kv, key, key_len, NULL, 0);
}

/* ---- connection ---------- */

static void
make_qp(struct kv *kv)
{
	struct rnic_cq_attr ca = { .cqe = 8, .flags = RNIC_THREAD_UNSAFE };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
		.flags = RNIC_THREAD_UNSAFE,
	};

	ex_check(rnic_create_channel(kv->dev.ctx, &kv->channel), "completion channel");
	ca.channel = kv->channel;
	ex_check(rnic_create_cq(kv->dev.ctx, &ca, &kv->cq), "completion queue");
	qa.send_cq = qa.recv_cq = kv->cq;
	ex_check(rnic_create_qp(kv->dev.pd, &qa, &kv->qp), "queue pair");
	ex_init_qp(&kv->dev, kv->qp, 0);
}

void
kv_client_open(struct kv *kv, const char *host, unsigned int port)
{
	struct ex_path path = ex_default_path;
	struct ex_address peer;
	unsigned long long table;
	char line[80];

	kv->mr = ex_memory(&kv->dev, sizeof(struct kv_work), 0);
	make_qp(kv);
	ex_dial(&kv->conn, host, port);
	path.mtu = RNIC_MTU_1024;
	ex_join(&kv->conn, false, &kv->dev, kv->qp, &path, &peer);
	if (!ex_hear(&kv->conn, line, sizeof(line)) ||
	    sscanf(line, "table %llx:%x:%u", &table, &kv->rkey, &kv->slots) != 3 || !kv->slots)
		ex_fail("the server tells of no table");
	kv->table = table;
}

void
kv_client_close(struct kv *kv)
{
	ex_hang_up(&kv->conn);
	rnic_destroy_qp(kv->qp);
	rnic_destroy_cq(kv->cq);
	rnic_destroy_channel(kv->channel);
	ex_free(&kv->dev, kv->mr);
}
