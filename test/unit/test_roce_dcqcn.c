/* SPDX-License-Identifier: BSD-3-Clause */
/* DCQCN's rate machine against the rules of the paper (section 5 and its figure 7). */
#include <errno.h>

#include "roce_dcqcn.h"
#include "unit.h"

#define LINE 25000000u /* kb/s */
#define US UINT64_C(1000)

static struct roce_cc_params prm;
static struct roce_dcqcn d;

static void
setup(void)
{
	prm = roce_cc_defaults;
	prm.line_mbps = LINE / 1000;
	dcqcn_init(&d, &prm, 1000 * US);
}

START_TEST(dcqcn__starts_at_line_rate)
{
	setup();
	ck_assert_uint_eq(d.rate, LINE);
	ck_assert(!dcqcn_limits(&d));
	prm.line_mbps = 0; /* a link whose speed nobody knows */
	dcqcn_init(&d, &prm, 0);
	ck_assert_uint_eq(d.rate, ROCE_CC_LINE_MBPS * 1000);
}
END_TEST

START_TEST(dcqcn__first_cut_halves)
{
	setup();
	ck_assert(dcqcn_cnp(&d, &prm, 1000 * US));
	ck_assert_uint_eq(d.rate, LINE / 2);
	ck_assert_uint_eq(d.target, LINE);
	ck_assert_uint_eq(d.alpha, DCQCN_ALPHA_ONE); /* (1 - g) + g */
	ck_assert(dcqcn_limits(&d));
}
END_TEST

START_TEST(dcqcn__one_cut_an_interval)
{
	setup();
	ck_assert(dcqcn_cnp(&d, &prm, 1000 * US));
	ck_assert(!dcqcn_cnp(&d, &prm, 1000 * US + 3999));
	ck_assert_uint_eq(d.rate, LINE / 2);
	ck_assert(dcqcn_cnp(&d, &prm, 1004 * US));
	ck_assert_uint_eq(d.rate, LINE / 4);
	ck_assert_uint_eq(d.target, LINE / 2); /* Rt = Rc */
}
END_TEST

START_TEST(dcqcn__alpha_falls_without_cnp)
{
	uint32_t a = DCQCN_ALPHA_ONE, rate;

	setup();
	dcqcn_cnp(&d, &prm, 1000 * US);
	dcqcn_expire(&d, &prm, 1054 * US);
	ck_assert_uint_eq(d.alpha, a);
	for (int i = 1; i <= 20; i++) {
		a -= a / 256;
		dcqcn_expire(&d, &prm, (1000 + 55 * (uint64_t)i) * US);
		ck_assert_uint_eq(d.alpha, a);
	}
	rate = d.rate;
	dcqcn_cnp(&d, &prm, 2100 * US);
	ck_assert_uint_eq(d.rate, rate - (uint32_t)((uint64_t)rate * a >> 31));
	ck_assert_uint_eq(d.alpha, a + (DCQCN_ALPHA_ONE - a) / 256); /* and rises at a CNP */
}
END_TEST

/* C-63: each of the first five events halves the gap; the target stays. */
START_TEST(ROCE_C_63__fast_recovery)
{
	uint32_t gap = LINE / 2;

	setup();
	dcqcn_cnp(&d, &prm, 1000 * US);
	for (uint64_t i = 1; i <= 5; i++) {
		gap /= 2;
		dcqcn_expire(&d, &prm, (1000 + 55 * i) * US);
		ck_assert_uint_ge(d.rate, LINE - gap - 1);
		ck_assert_uint_le(d.rate, LINE - gap + 1);
		ck_assert_uint_eq(d.target, LINE);
	}
}
END_TEST

/* From a low rate, where the bound of the line is far. */
static void
cut_low(void)
{
	setup();
	for (uint64_t i = 0; i < 4; i++)
		dcqcn_cnp(&d, &prm, (1000 + 10 * i) * US);
	ck_assert_uint_eq(d.rate, LINE / 16);
	ck_assert_uint_eq(d.target, LINE / 8);
}

START_TEST(dcqcn__additive_by_time)
{
	cut_low();
	dcqcn_expire(&d, &prm, (1030 + 5 * 55) * US);
	ck_assert_uint_eq(d.target, LINE / 8);
	dcqcn_expire(&d, &prm, (1030 + 6 * 55) * US);
	ck_assert_uint_eq(d.target, LINE / 8 + 5000);
	dcqcn_expire(&d, &prm, (1030 + 9 * 55) * US);
	ck_assert_uint_eq(d.target, LINE / 8 + 4 * 5000);
}
END_TEST

START_TEST(dcqcn__bytes_count_as_time)
{
	cut_low();
	for (int i = 0; i < 5; i++) {
		dcqcn_sent(&d, &prm, 9999999);
		ck_assert_uint_eq(d.by_bytes, i);
		dcqcn_sent(&d, &prm, 1);
		ck_assert_uint_eq(d.by_bytes, i + 1);
	}
	ck_assert_uint_eq(d.target, LINE / 8);
	dcqcn_sent(&d, &prm, 10000000);
	ck_assert_uint_eq(d.target, LINE / 8 + 5000);
}
END_TEST

START_TEST(dcqcn__hyper_when_both_are_past)
{
	uint32_t target;

	cut_low();
	for (int i = 0; i < 6; i++)
		dcqcn_sent(&d, &prm, 10000000);
	dcqcn_expire(&d, &prm, (1030 + 5 * 55) * US);
	target = d.target;
	dcqcn_expire(&d, &prm, (1030 + 6 * 55) * US); /* the sixth: both are at F */
	ck_assert_uint_eq(d.target, target + 50000);
	dcqcn_sent(&d, &prm, 10000000);
	ck_assert_uint_eq(d.target, target + 50000 + 2 * 50000); /* i grows */
}
END_TEST

START_TEST(dcqcn__bounds)
{
	setup();
	for (uint64_t i = 0; i < 64; i++)
		dcqcn_cnp(&d, &prm, (1000 + 10 * i) * US);
	ck_assert_uint_eq(d.rate, 100000);
	for (uint64_t i = 0; i < 20000; i++)
		dcqcn_expire(&d, &prm, (2000 + 55 * i) * US);
	ck_assert_uint_eq(d.rate, LINE);
	ck_assert_uint_eq(d.target, LINE);
	prm.line_mbps = 1000; /* the link is slower now */
	dcqcn_expire(&d, &prm, UINT64_C(2000000) * US);
	ck_assert_uint_eq(d.rate, 1000000);
}
END_TEST

/* A look after a second of silence is bounded work, and the timers go on from there. */
START_TEST(dcqcn__late_look)
{
	setup();
	dcqcn_cnp(&d, &prm, 1000 * US);
	dcqcn_expire(&d, &prm, 1001000 * US);
	ck_assert_uint_gt(d.alpha_at, 1001000 * US);
	ck_assert_uint_gt(d.increase_at, 1001000 * US);
	ck_assert_uint_le(d.increase_at, 1001055 * US);
}
END_TEST

START_TEST(dcqcn__cost_of_a_byte)
{
	setup();
	ck_assert_uint_eq(dcqcn_ns(&d, 3125), 999); /* 1 us at 25 Gb/s, rounded down */
	for (uint64_t i = 0; i < 64; i++)
		dcqcn_cnp(&d, &prm, (1000 + 10 * i) * US);
	ck_assert_uint_eq(dcqcn_ns(&d, 4160), 332800); /* 80 ns each at 100 Mb/s */
}
END_TEST

START_TEST(params__by_name)
{
	struct roce_cc_params p = roce_cc_defaults;

	for (unsigned int i = 0; i < ROCE_CC_NUM_PARAMS; i++) {
		const struct roce_cc_desc *desc = &roce_cc_desc[i];

		ck_assert_uint_ge(roce_cc_param(&p, i), desc->min);
		ck_assert_uint_le(roce_cc_param(&p, i), desc->max);
		ck_assert_int_eq(roce_cc_param_set(&p, desc->name, desc->max), 0);
		ck_assert_uint_eq(roce_cc_param(&p, i), desc->max);
		ck_assert_int_eq(roce_cc_param_set(&p, desc->name, desc->max + UINT64_C(1)),
				 -ERANGE);
		ck_assert_int_eq(roce_cc_param_set(&p, desc->name, UINT64_C(1) << 40), -ERANGE);
		if (desc->min)
			ck_assert_int_eq(roce_cc_param_set(&p, desc->name, 0), -ERANGE);
	}
	ck_assert_int_eq(roce_cc_param_set(&p, "cc-nothing", 1), -ENOENT);
}
END_TEST

UNIT_MAIN("roce_dcqcn", dcqcn__starts_at_line_rate, dcqcn__first_cut_halves,
	  dcqcn__one_cut_an_interval, dcqcn__alpha_falls_without_cnp, ROCE_C_63__fast_recovery,
	  dcqcn__additive_by_time, dcqcn__bytes_count_as_time, dcqcn__hyper_when_both_are_past,
	  dcqcn__bounds, dcqcn__late_look, dcqcn__cost_of_a_byte, params__by_name)
