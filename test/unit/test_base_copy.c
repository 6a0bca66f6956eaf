/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_copy.h"
#include "unit.h"

START_TEST(compiles)
{
}
END_TEST

UNIT_MAIN("base_copy", compiles)
