/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a load: what its files share. Ordered by who writes: nobody, sender, receiver. */
#ifndef TESTRNIC_LOAD_PRIV_H
#define TESTRNIC_LOAD_PRIV_H

#include <stdatomic.h>

#include "testrnic_load.h"

#define LOAD_BLOCK 4096u     /* a stamp stands at the end of each */
#define LOAD_COMPARE 100u    /* one message in so many is compared whole */
#define LOAD_BATCH 32
#define LOAD_PINGS (1u << 20) /* samples kept at most */

/** The queues of one side. */
struct load_queues {
	struct load_end *end;
	struct rnic_cq *cq;
	struct rnic_qp **qp;
};

struct load {
	struct load_spec spec;
	struct load_queues tx, rx;
	uint32_t slots; /* messages that fit a QP's share of the working set */

	/* sender */
	_Alignas(64) uint64_t warm, window, began, opened;
	uint64_t messages, cycles, completed, total;
	uint64_t *posted; /* by QP: since it was made; message n lies in slot n % slots */
	uint64_t *done;   /* by QP: completed */
	uint64_t *base;   /* by QP: posted before load_start() */
	uint32_t next;	  /* QP whose turn it is */
	uint32_t outstanding;
	bool measuring, closing;
	uint32_t status;
	int error;
	uint64_t tx_compared, tx_wrong;
	uint64_t sent_at; /* PING */
	uint32_t *pings;
	uint32_t num_pings;
	_Atomic uint64_t progress; /* completed since load_start(), for others to look at */
	_Atomic bool finished;

	/* receiver */
	_Alignas(64) uint64_t *seen; /* by QP: messages received and checked */
	uint64_t rx_compared, rx_wrong;
	uint32_t rx_status;
	int rx_error;
	uint32_t owed; /* PING: completions of our answers */
	/* by QP: copy of `seen` for the sender, who must not overwrite what is not checked */
	_Atomic uint64_t *checked;

	/* whoever commands */
	_Alignas(64) _Atomic bool asked_to_close;
};

static inline uint8_t *
load_slot(const struct load *l, const struct load_queues *q, uint32_t qp, uint64_t n)
{
	return q->end->buf + ((size_t)qp * l->slots + n % l->slots) * l->spec.size;
}

/* testrnic_check.c */
void load_stamp(const struct load *l, uint8_t *message, uint64_t stamp);
bool load_stamped(const struct load *l, const uint8_t *message, uint64_t stamp);
bool load_arrived(const struct load *l, const uint8_t *message, uint64_t stamp);
/** Stamps, and now and then all bytes. @return whether right; counts what was compared. */
bool load_check(const struct load *l, uint32_t qp, uint64_t n, uint64_t stamp,
		uint64_t *compared);
/** What lies in both sides' slots of the messages since load_start(), when none is under way. */
bool load_same(const struct load *l, uint64_t *compared);

/* testrnic_queues.c */
int load_queues_open(struct load *l);
void load_queues_close(struct load *l);
int load_post_recvs(struct load *l);
uint32_t load_recv_depth(const struct load *l);
/** Prepare the receive of message n of a QP; false: the queue is full. */
bool load_prep_recv(struct load *l, uint32_t qp, uint64_t n);

#endif /* TESTRNIC_LOAD_PRIV_H */
