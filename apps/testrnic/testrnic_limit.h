/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two cores can do at best with no protocol at all: the limits beside which SoftRNIC's
 * own rates are stated, measured on the same lcores in the same run.
 */
#ifndef TESTRNIC_LIMIT_H
#define TESTRNIC_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pmd_port;

/** A row of the touch loop. */
struct limit_row {
	size_t size;	    /* payload bytes a packet */
	size_t working_set; /* bytes that the payload buffer of each side cycles through */
	bool crc;	    /* CRC-32 made on one side and again on the other */
	size_t lines;	    /* random cache lines that each side touches a packet, 16 at most */
	size_t table;	    /* bytes of the table that these lie in */
};

/** @return 0 or -errno. */
int limit_init(void);
void limit_fini(void);

/**
 * Two lcores, one rte_ring: alloc, copy in, CRC / CRC, copy out, free.
 * @return packets a second, median of `samples` samples of 50 ms; negative: no memory.
 */
double limit_touch(unsigned int tx_lcore, unsigned int rx_lcore, const struct limit_row *row,
		   unsigned int samples);

/**
 * One mbuf thrown to and fro between two ports that are each other's peer.
 * Ends early after a second, on a machine that is not quiet.
 * @return nanoseconds of one way (half a round trip), median; negative: no memory.
 */
double limit_ping(unsigned int a_lcore, unsigned int b_lcore, struct pmd_port *a,
		  struct pmd_port *b, unsigned int rounds);

#endif /* TESTRNIC_LIMIT_H */
