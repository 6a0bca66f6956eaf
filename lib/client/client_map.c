/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers to objects: a hash table that stays at most half full. */
#include <stdlib.h>

#include "client_priv.h"

static void
map_place(struct client_map *m, uint32_t key, void *value)
{
	uint32_t i = client_map_home(m, key);

	while (m->slots[i].value)
		i = (i + 1) & m->mask;
	m->slots[i].key = key;
	m->slots[i].value = value;
	m->used++;
}

static int
map_grow(struct client_map *m)
{
	struct client_map old = *m;
	uint32_t size = old.slots ? 2 * (old.mask + 1) : 16;

	m->slots = calloc(size, sizeof(*m->slots));
	if (!m->slots) {
		*m = old;
		return -ENOMEM;
	}
	m->mask = size - 1;
	m->used = 0;
	for (uint32_t i = 0; old.slots && i <= old.mask; i++) {
		if (old.slots[i].value)
			map_place(m, old.slots[i].key, old.slots[i].value);
	}
	free(old.slots);
	return 0;
}

int
client_map_put(struct client_map *m, uint32_t key, void *value)
{
	if (client_map_get(m, key))
		return -EEXIST;
	if (!m->slots || m->used > m->mask / 2) {
		int rc = map_grow(m);

		if (rc)
			return rc;
	}
	map_place(m, key, value);
	return 0;
}

/* Close the gap, so that no probe stops at it. */
void
client_map_del(struct client_map *m, uint32_t key)
{
	uint32_t i;

	if (!client_map_get(m, key))
		return;
	for (i = client_map_home(m, key); m->slots[i].key != key || !m->slots[i].value;)
		i = (i + 1) & m->mask;
	m->slots[i].value = NULL;
	m->used--;
	for (i = (i + 1) & m->mask; m->slots[i].value; i = (i + 1) & m->mask) {
		struct client_map_slot s = m->slots[i];

		m->slots[i].value = NULL;
		m->used--;
		map_place(m, s.key, s.value);
	}
}

void
client_map_fini(struct client_map *m)
{
	free(m->slots);
	*m = (struct client_map){0};
}
