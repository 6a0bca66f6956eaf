/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the cases of rnic-hostile share. A case runs in a process of its own, with random numbers
 * that depend on the seed and the case's number alone, and may leave everything lying about: its
 * death is part of the attack. What a case can tell it says by FAULT; whether the daemon
 * lives and answers, and whether the second session kept its bytes, is asked after each.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdio.h>

#include "hx_rig.h"

struct hostile {
	const char *socket;
	const char *self; /* this program, for exec */
	const char *name; /* of the case */
	uint64_t seed;
	uint64_t number;
	uint64_t rng;
	int faults;
	bool verbose;
};

struct hostile_case {
	const char *name;
	void (*run)(struct hostile *t);
	const char *what;
	bool needs_root;
};

/* Each ends with a name of NULL. */
extern const struct hostile_case hostile_sock_cases[];
extern const struct hostile_case hostile_arena_cases[];
extern const struct hostile_case hostile_object_cases[];
extern const struct hostile_case hostile_ring_cases[];
extern const struct hostile_case hostile_srq_cases[];
extern const struct hostile_case hostile_ud_cases[];
extern const struct hostile_case hostile_wqe_cases[];
extern const struct hostile_case hostile_key_cases[];
extern const struct hostile_case hostile_mem_cases[];
extern const struct hostile_case hostile_block_cases[];
extern const struct hostile_case hostile_life_cases[];

uint64_t hostile_rand(struct hostile *t);
/** 0 .. n - 1. */
static inline uint32_t
hostile_below(struct hostile *t, uint32_t n)
{
	return (uint32_t)(hostile_rand(t) % n);
}
/** A value that has hurt somebody: limits, signs, powers of two, random ones. */
uint64_t hostile_value(struct hostile *t);
/** Make one field of a structure hostile: a byte, a half, a word or a double word, or a bit. */
void hostile_mutate(struct hostile *t, void *p, size_t len);

/** Something that must not be. */
#define FAULT(t, ...) hostile_fault(t, __func__, __LINE__, __VA_ARGS__)
#define MUST(t, cond, ...) ((cond) ? (void)0 : FAULT(t, __VA_ARGS__))
void hostile_fault(struct hostile *t, const char *func, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** An honest rig, or a fault and false. The daemon may be busy burying the last case. */
bool hostile_rig(struct hostile *t, struct hx_rig *r);
/** Post traffic of all kinds, and poll some, `n` times; stops when the session is gone. */
void hostile_traffic(struct hostile *t, struct hx_rig *r, int n);
/** Check that the session (or a new one, when it is gone) still gets answers in time. */
void hostile_alive(struct hostile *t, struct hx *h);

#endif /* HOSTILE_H */
