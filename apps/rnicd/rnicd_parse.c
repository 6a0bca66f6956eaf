/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as text: numbers, sizes, addresses; and sentences about what is wrong with them. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pmd_glue.h>

#include "rnicd_conf.h"

int
rnicd_fail(struct rnicd_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
rnicd_fail_prefix(struct rnicd_error *err, const char *fmt, ...)
{
	struct rnicd_error old = *err;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, "%s", old.text);
	return -1;
}

int
rnicd_number_parse(uint64_t *v, const char *text, uint64_t min, uint64_t max,
		   struct rnicd_error *err)
{
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)text[0]) || *end != '\0')
		return rnicd_fail(err, "'%s' is not a number", text);
	if (errno != 0 || *v < min || *v > max)
		return rnicd_fail(err, "%s is out of range: %llu to %llu are allowed", text,
				  (unsigned long long)min, (unsigned long long)max);
	return 0;
}

int
rnicd_size_parse(uint64_t *v, const char *text, struct rnicd_error *err)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)text[0]) || errno != 0)
		return rnicd_fail(err, "'%s' is not a size; write as 512M or 4G", text);
	if (*end == '\0')
		return 0;
	unit = strchr(units, toupper((unsigned char)*end));
	if (unit == NULL || end[1] != '\0')
		return rnicd_fail(err, "'%s' is not a size; write as 512M or 4G", text);
	if (*v > UINT64_MAX >> (10 * (unit - units + 1)))
		return rnicd_fail(err, "'%s' is too large", text);
	*v <<= 10 * (unit - units + 1);
	return 0;
}

uint64_t
rnicd_offload_bit(const char *name, struct rnicd_error *err)
{
	char known[256] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < PMD_OFFLOAD_COUNT; i++) {
		const char *s = pmd_offload_name((enum pmd_offload)i);

		if (strcmp(s, name) == 0)
			return 1ULL << i;
		if (n < sizeof(known))
			n += (size_t)snprintf(known + n, sizeof(known) - n, " %s", s);
	}
	rnicd_fail(err, "no offload is called '%s'; there are:%s", name, known);
	return 0;
}

/* The address without its prefix length, and the length's limit; 0: not an address. */
static uint64_t
addr_bits(const char *text)
{
	struct in6_addr a;

	if (inet_pton(AF_INET, text, &a) == 1)
		return 32;
	return inet_pton(AF_INET6, text, &a) == 1 ? 128 : 0;
}

int
rnicd_addr_parse(struct rnicd_addr *a, const char *text, struct rnicd_error *err)
{
	char copy[sizeof(a->text) + 8];
	char *slash, *at;
	uint64_t v, bits;

	if (strlen(text) >= sizeof(copy))
		return rnicd_fail(err, "'%.80s' is too long for an address", text);
	strcpy(copy, text);
	a->vlan = 0;
	at = strchr(copy, '@');
	if (at != NULL) {
		*at++ = '\0';
		if (rnicd_number_parse(&v, at, 1, 4094, err) < 0)
			return rnicd_fail_prefix(err, "VLAN of '%s': ", text);
		a->vlan = (uint16_t)v;
	}
	if (strlen(copy) >= sizeof(a->text))
		return rnicd_fail(err, "'%s' is too long for an address", text);
	strcpy(a->text, copy);
	slash = strchr(copy, '/');
	if (slash == NULL)
		return rnicd_fail(err, "'%s' lacks a prefix length; write as 192.0.2.1/24", text);
	*slash++ = '\0';
	bits = addr_bits(copy);
	if (bits == 0)
		return rnicd_fail(err, "'%s' is no IPv4 or IPv6 address", copy);
	if (rnicd_number_parse(&v, slash, 1, bits, err) < 0)
		return rnicd_fail_prefix(err, "prefix length of '%s': ", text);
	return 0;
}
