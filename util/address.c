/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "util/address.h"
#include "util/cleanup.h"
#include "util/text.h"

#define UNIX_PREFIX "unix:"

static int parse_unix(const char *path, struct address *ret)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	if (path[0] != '/' || strlen(path) >= sizeof(un.sun_path))
		return -EINVAL;
	strcpy(un.sun_path, path);
	memcpy(&ret->sa, &un, sizeof(un));
	ret->n = sizeof(un);
	return 0;
}

static int parse_v6(const char *host, uint16_t port, struct address *ret)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
		return -EINVAL;
	memcpy(&ret->sa, &in6, sizeof(in6));
	ret->n = sizeof(in6);
	return 0;
}

static int parse_v4(const char *host, uint16_t port, struct address *ret)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &in.sin_addr) !=
	    1)
		return -EINVAL;
	memcpy(&ret->sa, &in, sizeof(in));
	ret->n = sizeof(in);
	return 0;
}

int address_parse(const char *text, struct address *ret)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t n;

	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return parse_unix(text + strlen(UNIX_PREFIX), ret);
	n = colon ? (size_t)(colon - text) : 0;
	if (n == 0 || n >= sizeof(host) || text_parse_u64(colon + 1, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	if (host[0] != '[')
		return parse_v4(host, (uint16_t)port, ret);
	if (host[n - 1] != ']')
		return -EINVAL;
	host[n - 1] = '\0';
	return parse_v6(host + 1, (uint16_t)port, ret);
}

bool address_is_local(const struct address *a)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (a->sa.ss_family) {
	case AF_INET:
		memcpy(&in, &a->sa, sizeof(in));
		return ntohl(in.sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		memcpy(&in6, &a->sa, sizeof(in6));
		return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
	default:
		return a->sa.ss_family == AF_UNIX;
	}
}

static enum address_reach reach_of_v4(uint32_t address)
{
	if (address >> 16 == 0xa9fe)
		return ADDRESS_LINK;
	/* 0.0.0.0 is this host as well. */
	return address >> 24 == 127 || address >> 24 == 0 ? ADDRESS_HOST : ADDRESS_NETWORK;
}

static enum address_reach reach_of_v6(const struct in6_addr *address)
{
	uint32_t v4;

	if (IN6_IS_ADDR_V4MAPPED(address)) {
		memcpy(&v4, &address->s6_addr[12], sizeof(v4));
		return reach_of_v4(ntohl(v4));
	}
	if (IN6_IS_ADDR_LINKLOCAL(address))
		return ADDRESS_LINK;
	return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address) ? ADDRESS_HOST
										 : ADDRESS_NETWORK;
}

enum address_reach address_reach(const struct sockaddr *sa)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&in, sa, sizeof(in));
		return reach_of_v4(ntohl(in.sin_addr.s_addr));
	case AF_INET6:
		memcpy(&in6, sa, sizeof(in6));
		return reach_of_v6(&in6.sin6_addr);
	default:
		return ADDRESS_HOST;
	}
}
