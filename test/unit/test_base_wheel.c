/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_wheel.h"
#include "unit.h"

START_TEST(compiles)
{
}
END_TEST

UNIT_MAIN("base_wheel", compiles)
