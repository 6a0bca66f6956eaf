/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the worker side: one worker's state. Everything belongs to its own thread but the
 * rings, the kick and the words that say so.
 */
#ifndef WORKER_PRIV_H
#define WORKER_PRIV_H

#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base_counters.h"
#include "net_parse.h"
#include "net_txbatch.h"
#include "roce.h"
#include "worker_shared_priv.h"

#define WORKER_BURST 32		 /* packets of a queue, a loop */
#define WORKER_QUANTUM (16 << 10) /* bytes a QP and turn */
#define WORKER_MAIL_BURST 16	 /* messages a loop */
#define WORKER_MAILBOX 8192
#define WORKER_HANDOVER 2048	 /* packets */
#define WORKER_BELL_BUDGET 256	 /* bells of a context, a loop */
#define WORKER_CTX_IDLE_NS UINT64_C(1000000) /* without a bell for so long: kicks, no polling */
#define WORKER_NOTIFY_CAP 8	 /* pipes written to, a loop */
#define WORKER_IOS 256		 /* foreign accesses under way */
#define WORKER_BLOCKS 1024	 /* long gather lists under way */
#define WORKER_SHADOWS 65536	 /* default */
#define WORKER_EVENTS 4096	 /* default */
#define WORKER_RX_CTL 256	 /* packets on their way to the control thread */
#define WORKER_GSI 2048		 /* MADs on their way to the control thread, or there */
#define WORKER_GSI_SOURCES 64	 /* a power of two: sources are told apart so far */
#define WORKER_NOTIFIES 64
#define WORKER_NOTIFY_BYTES 1024 /* of a channel, in one write */
/* Of a channel, that matter: a sub that is further ahead of its reader is one look at all. */
#define WORKER_NOTIFY_OWED (RING_CHANNEL_ENTRIES * (RING_MAX_WORKERS + 1))
#define WORKER_YIELD_LOOPS 64 /* empty loops in a row before the CPU is offered: some 5 us */
#define WORKER_YIELD_LOST_NS UINT64_C(200000)
#define WORKER_YIELD_HOLD 512 /* offers left out: as long as a slice */
#define WORKER_NAP_MIN_NS UINT64_C(10000)
#define WORKER_NAP_MAX_NS UINT64_C(1000000)

#define WORKER_COUNTERS(X)                                                                  \
	X(WORKER_C_LOOPS, "loops", "iterations of the loop")                                \
	X(WORKER_C_BUSY, "busy_loops", "iterations that found work")                        \
	X(WORKER_C_SLEEPS, "sleeps", "waits for a wake-up or a deadline")                   \
	X(WORKER_C_NAPS, "naps", "short waits, where a port has no receive interrupt")      \
	X(WORKER_C_WOKEN, "woken", "waits ended by a kick or an interrupt")                 \
	X(WORKER_C_RX, "rx_packets", "packets received")                                    \
	X(WORKER_C_RX_ROCE, "rx_roce", "packets given to the RoCE engine")                  \
	X(WORKER_C_RX_CTL, "rx_control", "packets given to the control thread")             \
	X(WORKER_C_RX_ECHO, "rx_echo", "echo requests answered")                            \
	X(WORKER_C_DROP_MAC, "drop_mac", "frames for another station")                      \
	X(WORKER_C_DROP_ADDRESS, "drop_address", "packets for an address that is not ours") \
	X(WORKER_C_DROP_UDP, "drop_udp_port", "UDP packets for a port without a service")   \
	X(WORKER_C_DROP_TCP, "drop_tcp", "TCP segments without a connection")               \
	X(WORKER_C_DROP_OTHER, "drop_other", "frames of protocols not spoken here")         \
	X(WORKER_C_DROP_CTL_FULL, "drop_control_full", "control thread behind with packets") \
	X(WORKER_C_RX_GSI, "rx_gsi", "management datagrams given to the control thread")    \
	X(WORKER_C_DROP_GSI_FULL, "drop_gsi_full", "control thread behind with management") \
	X(WORKER_C_DROP_GSI_SHARE, "drop_gsi_share", "management datagrams of a busy source") \
	X(WORKER_C_DROP_ECHO, "drop_echo", "echo requests not answered")                    \
	X(WORKER_C_TX_CTL, "tx_control", "packets of the control thread sent")              \
	X(WORKER_C_DROP_TX_CTL, "drop_tx_control", "packets of the control thread without room") \
	X(WORKER_C_HAIRPIN, "hairpin", "packets from own to own addresses")                 \
	X(WORKER_C_HAIRPIN_FULL, "hairpin_full", "times the hairpin's ring was full")       \
	X(WORKER_C_HANDOVER_RX, "handover_rx", "packets taken from the hand-over ring")     \
	X(WORKER_C_BELLS, "bells", "doorbells taken")                                       \
	X(WORKER_C_CTX_IDLE, "contexts_idled", "contexts that need a kick from then on")    \
	X(WORKER_C_CTX_KICKED, "contexts_kicked", "contexts polled again after a kick")     \
	X(WORKER_C_MAIL, "messages", "messages of the control thread and the copiers")      \
	X(WORKER_C_NOTIFY, "notifications", "channels woken")                               \
	X(WORKER_C_NOTIFY_DEFERRED, "notifications_deferred", "left to the control thread") \
	X(WORKER_C_NOTIFY_LATE, "notifications_late", "left to a later loop")               \
	X(WORKER_C_EVENTS, "events", "asynchronous events told")                            \
	X(WORKER_C_EVENTS_LATE, "events_late", "events for which no message was free at once") \
	X(WORKER_C_EVENTS_LOST, "events_lost", "events of objects that went before they were told")
COUNTERS_ENUM(worker_counter, WORKER_COUNTERS, WORKER_C_COUNT);
extern const struct counter_desc worker_counter_desc[WORKER_C_COUNT];

/** Messages of the worker's own, by what they are for: each has a share of the pool. */
enum worker_own {
	WORKER_OWN_EVENT,
	WORKER_OWN_RX_CTL,
	WORKER_OWN_GSI,
	WORKER_OWN_NOTIFY,
	WORKER_OWN_COUNT
};

struct worker_own_msg {
	struct worker_msg m; /* first */
	struct worker *w;
	uint8_t kind; /* enum worker_own */
};

struct worker_fifo {
	struct worker_msg *head, **tail;
};

struct worker_gsi; /* worker_gsi.c */

struct worker_tx_port {
	struct pmd_port *port;
	uint16_t queue;
};

struct worker {
	struct worker_shared *s;
	uint32_t id;
	uint32_t num_tx; /* ports and the hairpin */
	uint32_t rx_data_off; /* from an mbuf to its data, as a rule */
	struct roce *roce;
	struct verbs_worker verbs;
	uint64_t now;

	/* What other threads may have to be told at the end of the loop. */
	uint32_t handed;    /* bit a worker: its hand-over ring got something */
	bool told;	    /* the control thread's ring did */
	uint8_t notified;   /* pipes written to in this loop */
	bool napping;	    /* a port has no receive interrupt */
	uint32_t num_idle;

	struct worker_ctx *polled, *idle; /* contexts */
	struct worker_fifo outbox;	  /* to_ctl was full */
	TAILQ_HEAD(, worker_late) late;	  /* no message was free */
	TAILQ_HEAD(, worker_channel_at) due; /* more than a loop writes */
	struct worker_msg *unbinding;	  /* wait for roce_qp_idle() */
	struct worker_msg *leaving;	  /* contexts whose share is still in use */
	struct worker_msg *quiescing;	  /* answered after the quiescent point */

	struct worker_own_msg *own_memory;
	struct worker_msg *own_free;
	uint32_t own_left[WORKER_OWN_COUNT];
	struct rte_ring *own_back; /* done() by the control thread */
	struct worker_gsi *gsi;

	struct net_tx_batch *tx[PMD_MAX_PORTS + 1]; /* as the engines see them */
	struct net_tx_batch batch[PMD_MAX_PORTS + 1];
	struct worker_tx_port tx_port[PMD_MAX_PORTS];

	struct counter counter[WORKER_C_COUNT];
	struct counter kind[NET_KIND_COUNT];

	/* Written by others. */
	struct rte_ring *mailbox;  /* struct worker_msg * */
	struct rte_ring *handover; /* struct rte_mbuf * */
	struct ring_sleep sleep;
	_Alignas(RING_LINE) _Atomic bool kicked; /* some idle context was: look which */
	_Atomic bool stop;
	int kick_fd;  /* eventfd, watched edge-triggered, never read */
	int epoll_fd; /* kick_fd, idle contexts' kick_fds, receive interrupts */
};

static inline void
worker_count(struct worker *w, enum worker_counter c, uint64_t n)
{
	counter_add(&w->counter[c], n);
}

static inline void
worker_fifo_init(struct worker_fifo *f)
{
	f->head = NULL;
	f->tail = &f->head;
}

/* worker_rx.c: @return packets. */
unsigned int worker_rx_port(struct worker *w, uint32_t port);
unsigned int worker_rx_handover(struct worker *w);

/* worker_hairpin.c */
uint16_t worker_hairpin_burst(void *ctx, struct rte_mbuf **m, uint16_t n);
/** Into a worker's hand-over ring; the engines' roce_config.handoff. */
bool worker_hand_over(void *ctx, uint32_t to, struct rte_mbuf *m);

/* worker_gsi.c */
int worker_gsi_create(struct worker *w);
void worker_gsi_destroy(struct worker *w);
/** The engines' roce_config.mad. */
bool worker_gsi_rx(void *ctx, const struct net_pkt *np, const struct roce_pkt *p);
/** The control thread is done with it. */
void worker_gsi_back(struct worker *w, const struct roce_mad *mad);

/* worker_mbox.c */
int worker_mbox_create(struct worker *w);
void worker_mbox_destroy(struct worker *w);
/** A message to the control thread: never lost, in order. */
void worker_tell(struct worker *w, struct worker_msg *m);
/** A message of the worker's own, or NULL: the share of its kind is under way. */
struct worker_msg *worker_own_get(struct worker *w, enum worker_own kind);
/** It is not wanted after all. */
void worker_own_put(struct worker *w, struct worker_msg *m);
/** Take back those that the control thread is done with; worker_own_get() does when it must. */
void worker_own_reclaim(struct worker *w);
/** End of the loop: what waited in the outbox, and the kicks that are due. */
void worker_mbox_flush(struct worker *w);
/** Handle some messages. @return how many. */
unsigned int worker_mail(struct worker *w);
/** After the quiescent point. */
void worker_mail_quiesced(struct worker *w);

/* worker_ctx.c */
void worker_ctx_add(struct worker *w, struct worker_ctx *ctx);
void worker_ctx_del(struct worker *w, struct worker_ctx *ctx);
void worker_ctx_wake(struct worker *w, struct worker_ctx *ctx);
/** Take bells of all polled contexts, and see who is idle. @return bells. */
unsigned int worker_bells(struct worker *w);

/* worker_notify.c: struct verbs_host */
void worker_notify(void *ctx, struct verbs_cq *cq);
void worker_event(void *ctx, enum verbs_event event, void *obj);
void worker_io_submit(void *ctx, struct verbs_io *io);
/** End of the loop: tell and write what there was no room for, as far as there is now. */
void worker_late(struct worker *w);
static inline bool
worker_is_late(const struct worker *w)
{
	return !TAILQ_EMPTY(&w->late) || !TAILQ_EMPTY(&w->due);
}
/** Before an object goes. */
void worker_late_drop(struct worker *w, struct worker_late *l);
void worker_channel_settle(struct worker *w, struct worker_channel *ch);

/* worker_sleep.c */
void worker_write_eventfd(int fd);
int worker_sleep_create(struct worker *w);
void worker_sleep_destroy(struct worker *w);
/**
 * Nothing was to be done for idle_us: wait for something, at most until a deadline. @return
 * false: it did not wait, since a context is still polled or something was there after all.
 */
bool worker_sleep(struct worker *w, uint64_t *nap);

#endif /* WORKER_PRIV_H */
