/* SPDX-License-Identifier: BSD-3-Clause */
/* What both sides know of a slot: hash, checksum. */
#include "kv.h"

static uint64_t
fnv(uint64_t h, const void *p, size_t len)
{
	for (const uint8_t *b = p, *end = b + len; b < end; b++)
		h = (h ^ *b) * 0x100000001b3ull;
	return h;
}

uint64_t
kv_hash(const void *key, size_t len)
{
	uint64_t h = fnv(0xcbf29ce484222325ull, key, len);

	return h ^ h >> 32;
}

uint32_t
kv_checksum(const struct kv_slot *s, uint64_t version)
{
	uint64_t h = fnv(0xcbf29ce484222325ull, &version, sizeof(version));

	h = fnv(h, &s->key_len, sizeof(s->key_len));
	h = fnv(h, &s->value_len, sizeof(s->value_len));
	h = fnv(h, s->key, sizeof(s->key) + sizeof(s->value));
	return (uint32_t)(h ^ h >> 32);
}

bool
kv_whole(const struct kv_slot *s)
{
	if (s->version == 0 && s->key_len == 0)
		return true;
	return s->key_len <= KV_KEY_MAX &&
	       (s->value_len <= KV_VALUE_MAX || s->value_len == KV_DELETED) &&
	       s->checksum == kv_checksum(s, s->version);
}
