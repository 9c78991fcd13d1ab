/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Addresses of servers, as configs write them. */
#include <stdbool.h>
#include <sys/socket.h>

struct address {
	struct sockaddr_storage sa;
	socklen_t n;
};

/* Reads "127.0.0.1:9464", "[::1]:9464", "localhost:9464" (127.0.0.1) or "unix:/path/of/socket". It
 * looks up no name. 0 or -EINVAL. */
int address_parse(const char *text, struct address *ret);
/* Is it out of reach for other hosts: loopback, or a path? */
bool address_is_local(const struct address *a);

/* How far away an address is. */
enum address_reach {
	ADDRESS_NETWORK,
	ADDRESS_HOST, /* this host, or a path */
	ADDRESS_LINK, /* link-local, also a cloud's own services: 169.254.0.0/16, fe80::/10 */
};
enum address_reach address_reach(const struct sockaddr *sa);
