/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of rnic_kv as it lies in the server's memory, and a client's view of it.
 *
 * A slot's version is even when the slot is at rest and odd while somebody writes it. A writer
 * takes it by compare-and-swap from v to v + 1, writes the body, then the version v + 2: one
 * QP, so in this order. The checksum covers the version that the body belongs to: a body under
 * another version, or one half old and half new, does not match, and the reader reads again.
 */
#ifndef KV_H
#define KV_H

#include <assert.h>

#include "ex.h"

#define KV_SLOT 256u /* bytes */
#define KV_KEY_MAX 64u
#define KV_VALUE_MAX 176u
#define KV_PROBES 16u	 /* slots that a key may lie in, from its hash on */
#define KV_DELETED 0xffff /* length of a value that was taken away */

struct kv_slot {
	uint64_t version;
	uint32_t checksum; /* FNV-1a over version, lengths, key, value */
	uint16_t key_len;  /* 0: never used */
	uint16_t value_len;
	uint8_t key[KV_KEY_MAX];
	uint8_t value[KV_VALUE_MAX];
};
static_assert(sizeof(struct kv_slot) == KV_SLOT, "layout that both sides have");

uint64_t kv_hash(const void *key, size_t len);
uint32_t kv_checksum(const struct kv_slot *s, uint64_t version);
/** Whether a copy of a slot that is at rest is one whole version. An empty one is. */
bool kv_whole(const struct kv_slot *s);

/** A client: one QP, one key at a time. */
struct kv {
	struct ex_device dev;
	struct ex_conn conn;
	struct rnic_channel *channel;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_mr *mr; /* struct kv_work */
	uint64_t table;	    /* remote address */
	uint32_t rkey, slots;
	uint64_t patience_ns; /* a slot locked for longer was left so by a dead writer */
	uint64_t last_slot, last_version; /* of the last kv_get() */
	uint64_t torn, raced, broken; /* reads repeated, swaps lost, locks broken */
};

/** @return 0, -ENOENT, -ENOSPC (no slot among those probed), -EIO (QP failed). */
int kv_get(struct kv *kv, const void *key, size_t key_len, void *value, size_t *value_len);
int kv_put(struct kv *kv, const void *key, size_t key_len, const void *value, size_t value_len);
/** Only if nobody has written the key since the last kv_get() of it: 1, else 0, or negative. */
int kv_put_unchanged(struct kv *kv, const void *key, size_t key_len, const void *value,
		     size_t value_len);
int kv_delete(struct kv *kv, const void *key, size_t key_len);

void kv_client_open(struct kv *kv, const char *host, unsigned int port);
void kv_client_close(struct kv *kv);
void kv_serve(struct ex_device *dev, int listener, uint32_t slots, bool once);

#endif /* KV_H */
