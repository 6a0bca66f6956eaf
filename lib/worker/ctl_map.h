/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash map of 64-bit keys to nodes that stand in the objects themselves. */
#ifndef CTL_MAP_H
#define CTL_MAP_H

#include <stdint.h>

struct ctl_map_node {
	struct ctl_map_node *next;
	uint64_t key;
};

/** All zero at first. */
struct ctl_map {
	struct ctl_map_node **heads;
	uint32_t mask;
	uint32_t count;
};

/** 0, -EEXIST or -ENOMEM. */
int ctl_map_add(struct ctl_map *m, struct ctl_map_node *n, uint64_t key);
struct ctl_map_node *ctl_map_find(const struct ctl_map *m, uint64_t key);
void ctl_map_del(struct ctl_map *m, struct ctl_map_node *n);
/** Frees the heads; the map is empty, or its nodes are no longer of interest. */
void ctl_map_fini(struct ctl_map *m);

#endif /* CTL_MAP_H */
