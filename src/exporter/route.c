/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a server that needs more than its URL: through a proxy, or under another name than the
 * one to connect to.
 *
 * TLS asks for and verifies the name in the URL, and HTTP puts it into Host or :authority. So an
 * override goes into the URL, and curl gets the order to connect to the endpoint's address instead.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/exporter/internal.h"
#include "util/cleanup.h"

/* The parts of a URL that request.c has looked at: scheme://host[:port]rest. */
struct route_place {
	const char *host, *port, *rest;
	int n_host, n_port;
	bool tls;
};

static struct route_place place_of(const char *url)
{
	struct route_place p = {.host = strstr(url, "://") + 3,
				.tls = strncasecmp(url, "https:", 6) == 0};
	size_t n = strcspn(p.host, "/?#");
	const char *bracket = *p.host == '[' ? memchr(p.host, ']', n) : NULL;
	const char *from = bracket ? bracket : p.host;
	const char *colon = memchr(from, ':', n - (size_t)(from - p.host));

	p.rest = p.host + n;
	p.n_host = (int)((colon ? colon : p.rest) - p.host);
	p.port = colon ? colon + 1 : "443";
	p.n_port = colon ? (int)(p.rest - p.port) : 3;
	return p;
}

static int override_name(struct destination *d, const char *name, char **url, char *error,
			 size_t n_error)
{
	struct route_place p = place_of(*url);
	_cleanup_free_ char *to = NULL;
	char *renamed;

	if (!p.tls) {
		(void)snprintf(error, n_error,
			       "export:%s: server_name_override is for TLS: the endpoint has to "
			       "begin with https://",
			       d->name);
		return -EINVAL;
	}
	/* Whatever curl wants to connect to, this is it. */
	if (asprintf(&to, "::%.*s:%.*s", p.n_host, p.host, p.n_port, p.port) < 0) {
		to = NULL;
		return -ENOMEM;
	}
	d->connect_to = d->exporter->curl.slist_append(NULL, to);
	if (!d->connect_to ||
	    asprintf(&renamed, "https://%s:%.*s%s", name, p.n_port, p.port, p.rest) < 0)
		return -ENOMEM;
	free(*url);
	*url = renamed;
	return 0;
}

int route_init(struct destination *d, const struct export_destination *config, char **url,
	       char *error, size_t n_error)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	const char *proxy =
		config->proxy && strcmp(config->proxy, "none") == 0 ? "" : config->proxy;
	CURLcode r = CURLE_OK;
	int code;

	d->proxied = proxy && *proxy;
	if (config->server_name_override) {
		code = override_name(d, config->server_name_override, url, error, n_error);
		if (code < 0)
			return code;
		r = set(d->easy, CURLOPT_CONNECT_TO, d->connect_to);
	}
	/* Without one, http_proxy, HTTPS_PROXY, ALL_PROXY and NO_PROXY say. */
	if (r == CURLE_OK && proxy)
		r = set(d->easy, CURLOPT_PROXY, proxy);
	if (r == CURLE_OK && proxy)
		r = set(d->easy, CURLOPT_NOPROXY, "");
	/* Few proxies forward HTTP/2, and none its trailers from HTTP/1.1. */
	if (r == CURLE_OK && d->grpc)
		r = set(d->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	/* What the proxy says of its own is none of the server's answer. */
	if (r == CURLE_OK)
		r = set(d->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	/* Credentials are the server's, whatever an older library takes for the default. */
	if (r == CURLE_OK)
		r = set(d->easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	return r == CURLE_OK ? 0 : -ENOMEM;
}
