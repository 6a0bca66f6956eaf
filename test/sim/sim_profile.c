/* SPDX-License-Identifier: BSD-3-Clause */
/* What runs are like: one table. Rates are per million; a seed draws the rest. */
#include <string.h>

#include "sim.h"

#define PCT 10000u

static const struct sim_profile profiles[] = {
	{.name = "clean", .what = "nothing is lost", .ops = 120, .nodes = 3, .pairs = 4,
	 .late_recv = 5 * PCT, .big = 2 * PCT},
	{.name = "loss1", .what = "1 % lost", .ops = 100, .nodes = 3, .pairs = 3,
	 .loss = 1 * PCT, .late_recv = 5 * PCT, .big = 1 * PCT},
	{.name = "loss10", .what = "10 % lost", .ops = 60, .nodes = 2, .pairs = 2,
	 .loss = 10 * PCT, .late_recv = 5 * PCT, .exhaust = true},
	{.name = "reorder", .what = "overtaking and doubled packets", .ops = 100, .nodes = 3,
	 .pairs = 3, .loss = PCT / 10, .reorder = 10 * PCT, .dup = 5 * PCT,
	 .late_recv = 5 * PCT},
	{.name = "corrupt", .what = "bits flip", .ops = 80, .nodes = 2, .pairs = 2,
	 .corrupt = 4 * PCT, .late_recv = 5 * PCT},
	{.name = "burst", .what = "losses in bursts", .ops = 80, .nodes = 2, .pairs = 2,
	 .burst = PCT / 2, .dup = PCT, .late_recv = 5 * PCT, .big = 1 * PCT, .exhaust = true},
	{.name = "pending", .what = "foreign memory, loss", .ops = 80, .nodes = 3, .pairs = 3,
	 .loss = 1 * PCT, .reorder = 2 * PCT, .foreign = 50 * PCT, .late_recv = 5 * PCT},
	{.name = "gbn", .what = "engines that go back N", .ops = 80, .nodes = 2, .pairs = 2,
	 .loss = 2 * PCT, .reorder = 1 * PCT, .dup = 1 * PCT, .late_recv = 5 * PCT,
	 .strict_responder = true, .go_back_n = true},
	{.name = "strict", .what = "whole engines, and peers that go back N", .ops = 80, .nodes = 3,
	 .pairs = 3, .loss = 2 * PCT, .reorder = 1 * PCT, .dup = 1 * PCT, .late_recv = 5 * PCT,
	 .big = PCT, .gbn_peer = true},
	{.name = "rnr", .what = "receives come late", .ops = 80, .nodes = 2, .pairs = 2,
	 .loss = 2 * PCT, .late_recv = 60 * PCT, .rnr_echo = true},
	{.name = "pool", .what = "pools run empty, ports take a part", .ops = 80, .nodes = 3,
	 .pairs = 4, .loss = PCT / 2, .foreign = 20 * PCT, .late_recv = 5 * PCT,
	 .squeeze = true, .exhaust = true},
	{.name = "errors", .what = "requests that must fail", .ops = 80, .nodes = 3, .pairs = 3,
	 .loss = PCT / 2, .bad = 4 * PCT, .late_recv = 5 * PCT},
	{.name = "inval", .what = "windows, invalidates, keys taken away", .ops = 80, .nodes = 2,
	 .pairs = 2, .loss = PCT, .foreign = 20 * PCT, .late_recv = 5 * PCT, .inval = 15 * PCT},
	{.name = "lifecycle", .what = "QPs fail, drain, are reset and destroyed", .ops = 120,
	 .nodes = 3, .pairs = 3, .loss = PCT, .foreign = 10 * PCT, .late_recv = 5 * PCT,
	 .life = 2 * PCT, .death = true},
	{.name = "mutate", .what = "last packets that are too short, with a right ICRC",
	 .ops = 80, .nodes = 2, .pairs = 2, .late_recv = 5 * PCT, .mutate = 1 * PCT},
	{.name = "overrun", .what = "completion queues overflow", .ops = 80, .nodes = 2,
	 .pairs = 2, .loss = PCT / 2, .late_recv = 5 * PCT, .overrun = true},
	{.name = "chaos", .what = "all of it", .ops = 80, .nodes = 4, .pairs = 5,
	 .loss = 3 * PCT, .burst = PCT / 10, .reorder = 3 * PCT, .dup = 2 * PCT,
	 .corrupt = PCT, .blackout = 100, .foreign = 25 * PCT, .io_fault = PCT / 10,
	 .bad = PCT / 2, .late_recv = 10 * PCT, .big = PCT / 2, .life = PCT / 2,
	 .inval = 5 * PCT, .death = true, .exhaust = true},
};

unsigned int
sim_profile_count(void)
{
	return sizeof(profiles) / sizeof(profiles[0]);
}

const struct sim_profile *
sim_profile_at(unsigned int i)
{
	return i < sim_profile_count() ? &profiles[i] : NULL;
}

const struct sim_profile *
sim_profile_find(const char *name)
{
	for (unsigned int i = 0; i < sim_profile_count(); i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}
