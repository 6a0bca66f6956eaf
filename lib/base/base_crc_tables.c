/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of all CRC implementations, made from the polynomials at start. */
#include "base_crc_priv.h"

struct crc_tables crc32_tables;
struct crc_tables crc32c_tables;

/* Times x, modulo the polynomial. */
static uint32_t
times_x(uint32_t poly, uint32_t r)
{
	return (r >> 1) ^ (poly & -(r & 1));
}

static uint32_t
times_power(uint32_t poly, uint32_t r, unsigned int n)
{
	while (n-- != 0)
		r = times_x(poly, r);
	return r;
}

uint32_t
crc_power(uint32_t poly, unsigned int n)
{
	return times_power(poly, UINT32_C(1) << 31, n);
}

static void
slices_init(struct crc_tables *t, uint32_t poly)
{
	for (uint32_t b = 0; b < 256; b++)
		t->slice[0][b] = times_power(poly, b, 8);
	for (int k = 1; k < 8; k++) {
		for (uint32_t b = 0; b < 256; b++) {
			uint32_t r = t->slice[k - 1][b];

			t->slice[k][b] = t->slice[0][r & 0xFF] ^ (r >> 8);
		}
	}
}

/*
 * A factor is one power of x less than it says, since the product brings one; the
 * last block's high half wants x^-1, which is (P - 1) / x.
 */
static void
rows_init(struct crc_tables *t, uint32_t poly)
{
	uint32_t high = poly << 1 | 1;

	for (int i = CRC_ROWS - 1; i >= 0; i--) {
		uint32_t low = times_power(poly, high, 64);

		t->row[i].low = (uint64_t)low << 32;
		t->row[i].high = (uint64_t)high << 32;
		high = times_power(poly, low, 64);
	}
}

static void
reduction_init(struct crc_tables *t, uint32_t poly)
{
	uint32_t r = 1; /* x^31, what long division of x^95 starts with */

	t->x96 = (uint64_t)crc_power(poly, 96) << 1;
	t->poly = (uint64_t)poly << 1 | 1;
	t->quotient = 0;
	for (int i = 0; i < 64; i++) {
		t->quotient |= (uint64_t)(r & 1) << i;
		r = times_x(poly, r);
	}
}

void
crc_tables_init(void)
{
	static const uint32_t poly[] = {CRC32_POLY, CRC32C_POLY};
	struct crc_tables *tables[] = {&crc32_tables, &crc32c_tables};

	for (int i = 0; i < 2; i++) {
		slices_init(tables[i], poly[i]);
		rows_init(tables[i], poly[i]);
		reduction_init(tables[i], poly[i]);
	}
}
