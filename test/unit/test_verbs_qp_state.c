/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C-46, over every type, pair of states and single change of the mask. What is expected stands
 * here as text, row by row as IBTA table 91 and the verbs manual have it, and is parsed.
 */
#include <errno.h>
#include <string.h>

#include "unit.h"
#include "verbs.h"

static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const struct {
	const char *name;
	unsigned int bit;
} attrs[] = {
	{"CUR_STATE", 1}, {"EN_SQD", 2}, {"ACCESS", 3}, {"PKEY", 4}, {"PORT", 5}, {"QKEY", 6},
	{"AV", 7}, {"PATH_MTU", 8}, {"TIMEOUT", 9}, {"RETRY", 10}, {"RNR", 11}, {"RQ_PSN", 12},
	{"MAX_RD", 13}, {"ALT", 14}, {"MIN_RNR", 15}, {"SQ_PSN", 16}, {"MAX_DEST", 17},
	{"MIG", 18}, {"DEST_QPN", 20},
};

/* type: from to | required | optional */
struct row {
	const char *type, *from, *to, *required, *optional;
};
static const struct row rows[] = {
	{"RC UC XS XR", "RESET", "INIT", "PKEY PORT ACCESS", ""},
	{"UD", "RESET", "INIT", "PKEY PORT QKEY", ""},
	{"GSI", "RESET", "INIT", "PKEY QKEY", ""},
	{"RC UC XS XR", "INIT", "INIT", "", "PKEY PORT ACCESS"},
	{"UD", "INIT", "INIT", "", "PKEY PORT QKEY"},
	{"GSI", "INIT", "INIT", "", "PKEY QKEY"},
	{"RC XR", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST MIN_RNR", "ALT ACCESS PKEY"},
	{"UC XS", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT ACCESS PKEY"},
	{"UD GSI", "INIT", "RTR", "", "PKEY QKEY"},
	{"RC", "RTR", "RTS", "TIMEOUT RETRY RNR SQ_PSN MAX_RD", "CUR_STATE ALT ACCESS MIN_RNR MIG"},
	{"XS", "RTR", "RTS", "TIMEOUT RETRY RNR SQ_PSN MAX_RD", "CUR_STATE ALT ACCESS MIG"},
	{"XR", "RTR", "RTS", "TIMEOUT SQ_PSN", "CUR_STATE ALT ACCESS MIN_RNR MIG"},
	{"UC", "RTR", "RTS", "SQ_PSN", "CUR_STATE ALT ACCESS MIG"},
	{"UD GSI", "RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY"},
	{"RC XR", "RTS", "RTS", "", "CUR_STATE ACCESS ALT MIG MIN_RNR"},
	{"UC XS", "RTS", "RTS", "", "CUR_STATE ACCESS ALT MIG"},
	{"UD GSI", "RTS", "RTS", "", "CUR_STATE QKEY"},
	{"RC UC UD GSI XS XR", "RTS", "SQD", "", "EN_SQD"},
	{"RC XR", "SQD", "RTS", "", "CUR_STATE ALT ACCESS MIN_RNR MIG"},
	{"UC XS", "SQD", "RTS", "", "CUR_STATE ALT ACCESS MIG"},
	{"UD GSI", "SQD", "RTS", "", "CUR_STATE QKEY"},
	{"RC", "SQD", "SQD", "",
	 "PORT AV TIMEOUT RETRY RNR MAX_RD MAX_DEST ALT ACCESS PKEY MIN_RNR MIG"},
	{"XS", "SQD", "SQD", "", "PORT AV TIMEOUT RETRY RNR MAX_RD ALT ACCESS PKEY MIG"},
	{"XR", "SQD", "SQD", "", "PORT AV TIMEOUT MAX_DEST ALT ACCESS PKEY MIN_RNR MIG"},
	{"UC", "SQD", "SQD", "", "AV ALT ACCESS PKEY MIG"},
	{"UD GSI", "SQD", "SQD", "", "PKEY QKEY"},
	{"UC", "SQE", "RTS", "", "CUR_STATE ACCESS"},
	{"UD GSI", "SQE", "RTS", "", "CUR_STATE QKEY"},
};

static const struct {
	const char *name;
	enum verbs_qp_type type;
} types[] = {
	{"RC", VERBS_QPT_RC}, {"UC", VERBS_QPT_UC}, {"UD", VERBS_QPT_UD}, {"GSI", VERBS_QPT_GSI},
	{"XS", VERBS_QPT_XRC_SEND}, {"XR", VERBS_QPT_XRC_RECV},
};
#define NUM(a) (sizeof(a) / sizeof((a)[0]))

/** Whether a blank-separated list has this word. */
static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
			return true;
	return false;
}

static uint32_t
mask_of(const char *list)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < NUM(attrs); i++)
		if (has_word(list, attrs[i].name))
			mask |= 1u << attrs[i].bit;
	return mask;
}

/** What the rows say; false: no such transition. */
static bool
expected(const char *type, unsigned int from, unsigned int to, uint32_t *required, uint32_t *also)
{
	*required = *also = 0;
	if (to == 0 || (to == 6 && from != 0))
		return true;
	for (size_t i = 0; i < NUM(rows); i++) {
		if (!has_word(rows[i].type, type) || strcmp(rows[i].from, states[from]) != 0 ||
		    strcmp(rows[i].to, states[to]) != 0)
			continue;
		*required = mask_of(rows[i].required);
		*also = mask_of(rows[i].optional);
		return true;
	}
	return false;
}

static void
check_mask(unsigned int t, unsigned int from, unsigned int to, uint32_t mask)
{
	uint32_t required, also;
	bool ok = expected(types[t].name, from, to, &required, &also) &&
		  (mask & required) == required && (mask & ~(required | also)) == 0;
	int want = ok ? 0 : -EINVAL;

	ck_assert_msg(verbs_qp_modify_check(types[t].type, from, to, mask) == want &&
			      verbs_qp_modify_check(types[t].type, from, to, mask | 1) == want,
		      "%s %s -> %s mask %#x: want %d", types[t].name, states[from], states[to],
		      mask, want);
}

/** A mask, and all that differ from it in one bit. */
static void
check_around(unsigned int t, unsigned int from, unsigned int to, uint32_t mask)
{
	check_mask(t, from, to, mask);
	for (unsigned int bit = 1; bit < 32; bit++)
		check_mask(t, from, to, mask ^ (1u << bit));
}

START_TEST(modify_check__exhaustive)
{
	uint32_t required, also;

	for (unsigned int t = 0; t < NUM(types); t++)
		for (unsigned int from = 0; from < 7; from++)
			for (unsigned int to = 0; to < 7; to++) {
				expected(types[t].name, from, to, &required, &also);
				check_around(t, from, to, 0);
				check_around(t, from, to, required);
				check_around(t, from, to, required | also);
				/* and what any row of any type would take */
				for (size_t i = 0; i < NUM(rows); i++)
					check_around(t, from, to, mask_of(rows[i].required) |
							mask_of(rows[i].optional));
			}
}
END_TEST

START_TEST(modify_check__nonsense)
{
	ck_assert_int_eq(verbs_qp_modify_check((enum verbs_qp_type)0, 0, 0, 0), -EINVAL);
	ck_assert_int_eq(verbs_qp_modify_check((enum verbs_qp_type)8, 0, 0, 0), -EINVAL);
	ck_assert_int_eq(verbs_qp_modify_check(VERBS_QPT_RC, 7, 0, 0), -EINVAL);
	ck_assert_int_eq(verbs_qp_modify_check(VERBS_QPT_RC, 0, 7, 0), -EINVAL);
	ck_assert_int_eq(verbs_qp_modify_check(VERBS_QPT_RC, ~0u, ~0u, ~0u), -EINVAL);
}
END_TEST

START_TEST(states__names_and_receive)
{
	for (unsigned int s = 0; s < 7; s++) {
		ck_assert_str_eq(verbs_qp_state_name(s), states[s]);
		ck_assert_int_eq(verbs_qp_may_receive(s), s >= 2 && s <= 5);
	}
	ck_assert_str_eq(verbs_qp_state_name(7), "?");
	ck_assert(!verbs_qp_may_receive(7));
}
END_TEST

UNIT_MAIN("verbs_qp_state", modify_check__exhaustive, modify_check__nonsense,
	  states__names_and_receive)
