/* SPDX-License-Identifier: BSD-3-Clause */
/* Chained, doubled when as many nodes as heads; keys are ours, not an adversary's choice. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "ctl_map.h"

#define FIRST 64

static struct ctl_map_node **
head_of(const struct ctl_map *m, uint64_t key)
{
	key *= UINT64_C(0x9E3779B97F4A7C15);
	return &m->heads[(key >> 32) & m->mask];
}

static int
grow(struct ctl_map *m)
{
	uint32_t size = m->heads == NULL ? FIRST : 2 * (m->mask + 1);
	struct ctl_map bigger = {.mask = size - 1, .count = m->count};

	bigger.heads = calloc(size, sizeof(*bigger.heads));
	if (bigger.heads == NULL)
		return m->heads == NULL ? -ENOMEM : 0; /* longer chains will do */
	for (uint32_t i = 0; m->heads != NULL && i <= m->mask; i++) {
		struct ctl_map_node *n, *next;

		for (n = m->heads[i]; n != NULL; n = next) {
			struct ctl_map_node **head = head_of(&bigger, n->key);

			next = n->next;
			n->next = *head;
			*head = n;
		}
	}
	free(m->heads);
	*m = bigger;
	return 0;
}

int
ctl_map_add(struct ctl_map *m, struct ctl_map_node *n, uint64_t key)
{
	struct ctl_map_node **head;

	if (ctl_map_find(m, key) != NULL)
		return -EEXIST;
	if ((m->heads == NULL || m->count > m->mask) && grow(m) < 0)
		return -ENOMEM;
	head = head_of(m, key);
	n->key = key;
	n->next = *head;
	*head = n;
	m->count++;
	return 0;
}

struct ctl_map_node *
ctl_map_find(const struct ctl_map *m, uint64_t key)
{
	struct ctl_map_node *n;

	if (m->heads == NULL)
		return NULL;
	for (n = *head_of(m, key); n != NULL && n->key != key; n = n->next)
		;
	return n;
}

void
ctl_map_del(struct ctl_map *m, struct ctl_map_node *n)
{
	struct ctl_map_node **at = head_of(m, n->key);

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	m->count--;
}

void
ctl_map_fini(struct ctl_map *m)
{
	free(m->heads);
	*m = (struct ctl_map){0};
}
