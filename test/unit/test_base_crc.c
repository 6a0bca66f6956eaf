/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRCs against published vectors. */
#include "base_crc.h"
#include "unit.h"

START_TEST(crc__check_values)
{
	ck_assert_uint_eq(~crc32_update(CRC_INIT, "123456789", 9), 0xCBF43926);
	ck_assert_uint_eq(~crc32c_update(CRC_INIT, "123456789", 9), 0xE3069283);
	ck_assert_uint_eq(
		crc32_update(CRC_INIT, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), CRC_ICRC_INIT);
}
END_TEST

UNIT_MAIN("base_crc", crc__check_values)
