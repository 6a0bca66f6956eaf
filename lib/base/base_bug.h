/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeded bugs: faults of the kind that real engines had, each behind a constant condition.
 * In a normal build base_bug() is false at compile time and the fault is not in the program.
 * With -Dseeded_bugs=true the simulator picks one by number and must find it.
 */
#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stdbool.h>

/*
 * If you add one: its condition in the engine. The simulator must find it; one whose text begins
 * with "UC:" on that transport (test/sim/bugs.sh).
 */
#define BASE_BUGS(X)                                                                       \
	X(BUG_NONE, "none")                                                                \
	X(BUG_STALE_EPSN, "a NAK tells the PSN expected before the last packet")           \
	X(BUG_WRONG_RETH, "a READ is resumed with its first address")                      \
	X(BUG_LOST_REARM, "progress stops the response timer instead of restarting it")    \
	X(BUG_DOUBLE_COMPLETION, "a receive request is completed twice")                   \
	X(BUG_ACK_OVERTAKES, "an ACK leaves before a READ response that is due")           \
	X(BUG_DUP_ATOMIC, "a repeated atomic is executed again")                           \
	X(BUG_CREDIT_IGNORED, "SENDs go out without end-to-end credit")                    \
	X(BUG_KEY_AFTER_INV, "an invalidated key stays valid")                             \
	X(BUG_LAST_LEN, "the last packet's length is not held against the message's")      \
	X(BUG_PSN_WRAP, "PSNs are compared as plain numbers")                              \
	X(BUG_RNR_CUT, "a sequence NAK ends the wait after an RNR NAK")                    \
	X(BUG_RETRY_NOT_RESET, "progress does not give the retries back")                  \
	X(BUG_HELD_LOST, "a packet kept out of order is forgotten and counted as handled") \
	X(BUG_FENCE_IGNORED, "a fenced request does not wait for READs")                   \
	X(BUG_IMPLIED_ACK, "an ACK completes a READ whose response was lost")        \
	X(BUG_BELL_RACE, "a QP leaves the run list without another look at its tail") \
	X(BUG_FOREIGN_EARLY, "foreign memory counts as written when it is asked for") \
	X(BUG_SGE_SKIP, "elements that are skipped do not shorten the offset")       \
	X(BUG_HOLD_LEAK, "the hold of a copier's key is never dropped")              \
	X(BUG_FLUSH_RECV, "a failed QP's receives are not flushed")                  \
	X(BUG_BLOCK_LEAK, "a reset loses the blocks of long lists")                  \
	X(BUG_UC_GAP, "UC: a message goes on behind a hole")                         \
	X(BUG_UC_EARLY, "UC: a request is done before its payload has come")         \
	X(BUG_UC_RECV, "UC: the receive of a dropped message is lost")               \
	X(BUG_UC_SQE, "UC: back from SQE, what is posted anew is flushed")

enum base_bug {
#define X(id, what) id,
	BASE_BUGS(X)
#undef X
	BUG_COUNT
};

#ifdef SEEDED_BUGS
extern unsigned int base_bug_selected; /* enum base_bug; set before engines run */

static inline bool
base_bug(enum base_bug bug)
{
	return base_bug_selected == (unsigned int)bug;
}
#else
static inline bool
base_bug(enum base_bug bug)
{
	(void)bug;
	return false;
}
#endif

/** What the bug does wrong; never NULL. */
const char *base_bug_name(unsigned int bug);

#endif /* BASE_BUG_H */
