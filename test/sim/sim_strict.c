/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"
struct sim_strict *sim_strict_new(struct sim_ep *ep) { sim_fail(ep->s, "not yet"); }
void sim_strict_free(struct sim_strict *t) { (void)t; }
void sim_strict_connect(struct sim_strict *t) { (void)t; }
void sim_strict_reset(struct sim_strict *t) { (void)t; }
void sim_strict_input(struct sim_node *n, const uint8_t *f, uint32_t l)
{ (void)n; (void)f; (void)l; }
uint64_t sim_strict_run(struct sim_strict *t) { (void)t; return SIM_NEVER; }
