/* SPDX-License-Identifier: BSD-3-Clause */
/* The seeded bugs' names, and in a build that has them, the choice. */
#include "base_bug.h"

#ifdef SEEDED_BUGS
unsigned int base_bug_selected;
#endif

static const char *const bug_name[BUG_COUNT] = {
#define X(id, what) [id] = what,
	BASE_BUGS(X)
#undef X
};

const char *
base_bug_name(unsigned int bug)
{
	return bug < BUG_COUNT ? bug_name[bug] : "?";
}
