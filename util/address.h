/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a server listens, as configs write it. */
#include <stdbool.h>
#include <sys/socket.h>

struct address {
	struct sockaddr_storage sa;
	socklen_t n;
};

/* "127.0.0.1:9464", "[::1]:9464", "localhost:9464" (127.0.0.1), "unix:/path/of/socket": an address
 * and no other name is looked up. 0 or -EINVAL. */
int address_parse(const char *text, struct address *ret);
/* Nobody on another host can get there: loopback, or a path. */
bool address_is_local(const struct address *a);

/* How far an address leads from here. */
enum address_reach {
	ADDRESS_NETWORK,
	ADDRESS_HOST, /* this one, also a path */
	ADDRESS_LINK, /* its neighbours, and a cloud's own services: 169.254.0.0/16, fe80::/10 */
};
enum address_reach address_reach(const struct sockaddr *sa);
