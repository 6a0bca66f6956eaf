/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses as control messages have them, and back. */
#include <string.h>

#include "client_cm_priv.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

int
client_cm_addr_to_ctrl(struct ring_cm_addr *to, const struct sockaddr *from)
{
	struct sockaddr_in a4;
	struct sockaddr_in6 a6;

	*to = (struct ring_cm_addr){0};
	if (!from)
		return 0;
	switch (from->sa_family) {
	case AF_INET:
		memcpy(&a4, from, sizeof(a4));
		memcpy(to->ip.raw, mapped, sizeof(mapped));
		memcpy(to->ip.raw + 12, &a4.sin_addr, 4);
		to->port = ntohs(a4.sin_port);
		to->version = 4;
		return 0;
	case AF_INET6:
		memcpy(&a6, from, sizeof(a6));
		memcpy(to->ip.raw, &a6.sin6_addr, 16);
		to->port = ntohs(a6.sin6_port);
		to->scope = a6.sin6_scope_id;
		to->version = 6;
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

void
client_cm_addr_from_ctrl(struct sockaddr_storage *to, const struct ring_cm_addr *from)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(from->port)};
	struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(from->port),
		.sin6_scope_id = from->scope,
	};

	memset(to, 0, sizeof(*to));
	if (from->version == 4) {
		memcpy(&a4.sin_addr, from->ip.raw + 12, 4);
		memcpy(to, &a4, sizeof(a4));
	} else if (from->version == 6) {
		memcpy(&a6.sin6_addr, from->ip.raw, 16);
		memcpy(to, &a6, sizeof(a6));
	}
}
