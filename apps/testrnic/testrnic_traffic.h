/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic between two engines by command: interactive, from a file, or once (--auto). */
#ifndef TESTRNIC_TRAFFIC_H
#define TESTRNIC_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "testrnic_load.h"

struct traffic_config {
	unsigned int lcore[2];
	uint16_t ethdev[2];	/* alike: one engine alone, which talks to itself */
	const char *address[2];
	const char *listen;	/* path where other programs open engine a's device, or NULL */
	uint16_t mtu;		/* of the ports; 0: as they are */
	bool huge;
	uint64_t seed;
	struct load_spec load;
	double seconds;		/* of --auto; 0: until Ctrl-C */
	FILE *commands;		/* NULL: --auto */
	bool prompt;
};

/** @return exit status: 0 when all that flowed was right. */
int traffic_run(const struct traffic_config *cfg);
void traffic_interrupt(void); /* Ctrl-C: signal-safe */

#endif /* TESTRNIC_TRAFFIC_H */
