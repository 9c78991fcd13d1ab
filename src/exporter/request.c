/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request at a time for each destination: how it is set up, and what is kept of the
 * answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/exporter/internal.h"
#include "src/exporter/schema.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define CONNECT_TIMEOUT_MS 3000L

/* base/ + path, or the complete URL; with gRPC, the method has its name in any case. */
static char *make_url(const struct export_destination *config)
{
	bool grpc = config->protocol == EXPORT_GRPC;
	const char *base = config->profiles_endpoint ? config->profiles_endpoint : config->endpoint;
	char *url = NULL;
	size_t n;

	if (config->profiles_endpoint && !grpc)
		return strdup(base);
	for (n = strlen(base); n > 0 && base[n - 1] == '/';)
		n--;
	return asprintf(&url, "%.*s/%s", (int)n, base, grpc ? SCHEMA_METHOD : SCHEMA_PATH) < 0
		       ? NULL
		       : url;
}

/* Checks what config.c would have refused too: a URL of ours is never one with a password in it. */
static int make_origin(struct destination *d, const char *url, char *error, size_t n_error)
{
	const char *host = strstr(url, "://");
	size_t n;

	if (!host ||
	    (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)) {
		(void)snprintf(error, n_error,
			       "export:%s: the endpoint is not an http:// or https:// URL",
			       d->name);
		return -EINVAL;
	}
	n = strcspn(host + 3, "/?#");
	if (n == 0 || memchr(host + 3, '@', n)) {
		(void)snprintf(error, n_error,
			       "export:%s: the endpoint needs a host, without user and password",
			       d->name);
		return -EINVAL;
	}
	d->origin = strndup(url, (size_t)(host + 3 - url) + n);
	return d->origin ? 0 : -ENOMEM;
}

static int add_header(struct destination *d, struct curl_slist **list, const char *line)
{
	struct curl_slist *l = d->exporter->curl.slist_append(*list, line);

	if (!l)
		return -ENOMEM;
	*list = l;
	return 0;
}

static int make_headers(struct destination *d, const struct export_destination *config,
			enum encoding encoding)
{
	/* No 100-continue ("Expect:"): it costs a round trip, and some servers a second. */
	static const char *const protobuf[] = {
		SCHEMA_CONTENT_TYPE,
		SCHEMA_HEADER,
		"Accept: application/x-protobuf",
		"Expect:",
	};
	static const char *const json[] = {
		SCHEMA_CONTENT_TYPE_JSON,
		SCHEMA_HEADER,
		"Accept: application/json",
		"Expect:",
	};
	static const char *const grpc[] = {
		"Content-Type: application/grpc+proto",
		SCHEMA_HEADER,
		"TE: trailers", /* else a proxy may drop them */
		"grpc-accept-encoding: identity",
		"Accept:",
		"Expect:",
	};
	const char *const *lines = d->grpc ? grpc : d->json ? json : protobuf;
	size_t n = d->grpc ? ARRAY_SIZE(grpc) : d->json ? ARRAY_SIZE(json) : ARRAY_SIZE(protobuf);
	struct curl_slist **list = &d->headers[encoding];
	char line[64];
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = add_header(d, list, lines[i]);
	if (r == 0 && encoding != ENCODING_IDENTITY) {
		(void)snprintf(line, sizeof(line), "%s: %s",
			       d->grpc ? "grpc-encoding" : "Content-Encoding",
			       encoding_name(encoding));
		r = add_header(d, list, line);
	}
	if (r == 0 && d->grpc) {
		(void)snprintf(line, sizeof(line), "grpc-timeout: %llum",
			       (unsigned long long)(d->timeout_ns / NSEC_PER_MSEC));
		r = add_header(d, list, line);
	}
	for (size_t i = 0; i < config->n_headers && r == 0; i++)
		r = add_header(d, list, config->headers[i]);
	return r;
}

/* --- what the server says ------------------------------------------------------------------ */

void response_reset(struct response *r)
{
	free(r->body);
	*r = (struct response){.body = NULL};
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct response *r = user;
	size_t kept;

	n *= size;
	if (n > RESPONSE_MAX_BYTES - r->n_received) {
		r->too_large = true;
		return 0;
	}
	r->n_received += n;
	kept = n < RESPONSE_KEPT_BYTES - r->n_body ? n : RESPONSE_KEPT_BYTES - r->n_body;
	if (r->n_body + kept > r->size_body) {
		size_t want = 2 * (r->n_body + kept);
		uint8_t *grown = realloc(r->body, want);

		if (!grown)
			return 0;
		r->body = grown;
		r->size_body = want;
	}
	if (kept)
		memcpy(r->body + r->n_body, data, kept);
	r->n_body += kept;
	return n;
}

/* The value of a header line of that name into to. False when it is another, or too long. */
static bool take_value(const char *line, size_t n, const char *name, char *to, size_t size)
{
	size_t at = strlen(name), end;

	if (n < at || strncasecmp(line, name, at) != 0)
		return false;
	for (end = n; end > at && strchr(" \t\r\n", line[end - 1]);)
		end--;
	while (at < end && (line[at] == ' ' || line[at] == '\t'))
		at++;
	if (end - at >= size || memchr(line + at, '\0', end - at))
		return false;
	memcpy(to, line + at, end - at);
	to[end - at] = '\0';
	return true;
}

static size_t on_header(char *data, size_t size, size_t n, void *user)
{
	struct response *r = user;

	n *= size;
	r->n_header += n;
	if (r->n_header > RESPONSE_HEADER_MAX_BYTES) {
		r->too_large = true;
		return 0;
	}
	grpc_take_header(&r->grpc, data, n);
	if (!take_value(data, n, "retry-after:", r->retry_after, sizeof(r->retry_after)))
		(void)take_value(data, n, "content-type:", r->type, sizeof(r->type));
	return n;
}

/* --- the handle ---------------------------------------------------------------------------- */

#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (r == CURLE_OK)                                                                 \
			r = set(d->easy, (option), (value));                                       \
	} while (0)

static CURLcode set_tls(struct destination *d, const struct export_destination *config)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	CURLcode r = CURLE_OK;

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, config->insecure_skip_verify ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, config->insecure_skip_verify ? 0L : 2L);
	if (config->certificate)
		SET(CURLOPT_CAINFO, config->certificate);
	else if (r == CURLE_OK)
		r = curl_api_set_authorities(&d->exporter->curl, d->easy);
	if (config->client_certificate)
		SET(CURLOPT_SSLCERT, config->client_certificate);
	if (config->client_key)
		SET(CURLOPT_SSLKEY, config->client_key);
	return r;
}

/* A server gets to answer, and nothing else: no redirects, no other protocol, no endless reply. */
static CURLcode set_limits(struct destination *d)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	long timeout_ms = (long)(d->timeout_ns / NSEC_PER_MSEC);
	CURLcode r = curl_api_set_protocols(&d->exporter->curl, d->easy, "");

#if LIBCURL_VERSION_NUM >= 0x075700
	/* A name server that does not answer holds up no shutdown; unknown to older libraries. */
	(void)set(d->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TIMEOUT_MS, timeout_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS,
	    timeout_ms < CONNECT_TIMEOUT_MS ? timeout_ms : CONNECT_TIMEOUT_MS);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	return r;
}

/* --- gRPC ---------------------------------------------------------------------------------- */

static CURLcode set_grpc(struct destination *d, const char *url)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	const curl_version_info_data *v = d->exporter->curl.version_info(CURLVERSION_NOW);
	bool tls = strncasecmp(url, "https:", 6) == 0;
	CURLcode r = CURLE_OK;

	if (!(v->features & CURL_VERSION_HTTP2))
		return CURLE_UNSUPPORTED_PROTOCOL;
	SET(CURLOPT_HTTP_VERSION,
	    (long)(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
	/*
	 * A connection for each: libcurl would take one to the same port that speaks HTTP/1.1 for
	 * another destination, and 7.88, Debian 12's, fails every second request on one of its own.
	 */
	if (!tls) {
		SET(CURLOPT_FORBID_REUSE, 1L);
		SET(CURLOPT_FRESH_CONNECT, 1L);
	}
	return r;
}

int request_init(struct destination *d, const struct export_destination *config,
		 const char *version, char *error, size_t n_error)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	_cleanup_free_ char *url = make_url(config);
	char agent[128];
	CURLcode r;
	int code;

	if (!url)
		return -ENOMEM;
	code = make_origin(d, url, error, n_error);
	for (enum encoding i = 0; i < N_ENCODINGS && code == 0; i++)
		code = make_headers(d, config, i);
	if (code < 0)
		return code;
	d->easy = d->exporter->curl.easy_init();
	if (!d->easy)
		return -ENOMEM;
	code = route_init(d, config, &url, error, n_error);
	if (code < 0)
		return code;

	(void)snprintf(agent, sizeof(agent), "perfwalk/%s OTel-OTLP-Exporter-C/%s", version,
		       version);
	r = set_limits(d);
	if (r == CURLE_OK)
		r = set_tls(d, config);
	SET(CURLOPT_URL, url);
	if (!d->grpc && strncasecmp(url, "http:", 5) == 0)
		SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, agent);
	if (!d->grpc)
		SET(CURLOPT_ACCEPT_ENCODING, "gzip");
	SET(CURLOPT_ERRORBUFFER, d->curl_error);
	SET(CURLOPT_PRIVATE, d);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, &d->response);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, &d->response);
	if (r == CURLE_OK && d->grpc)
		r = set_grpc(d, url);
	if (r == CURLE_UNSUPPORTED_PROTOCOL) {
		(void)snprintf(error, n_error,
			       "export:%s: the libcurl of this system has no HTTP/2, which "
			       "protocol = grpc needs; set protocol = http/protobuf and the port "
			       "to the server's for OTLP/HTTP (4318 by convention)",
			       d->name);
		return -EINVAL;
	}
	if (r != CURLE_OK) {
		(void)snprintf(error, n_error, "export:%s: %s", d->name,
			       d->exporter->curl.easy_strerror(r));
		return -EINVAL;
	}
	return 0;
}

void request_deinit(struct destination *d)
{
	if (!d->exporter)
		return;
	if (d->easy)
		d->exporter->curl.easy_cleanup(d->easy);
	for (int i = 0; i < N_ENCODINGS; i++)
		d->exporter->curl.slist_free_all(d->headers[i]);
	d->exporter->curl.slist_free_all(d->connect_to);
	response_reset(&d->response);
	free(d->made);
	free(d->origin);
}

/* gRPC: one message behind its prefix, in one for curl. */
static int put_prefix(struct destination *d, const struct body *body)
{
	uint8_t *call = malloc(GRPC_PREFIX_BYTES + body->n);

	if (!call)
		return -ENOMEM;
	grpc_prefix(call, body->encoding != ENCODING_IDENTITY, body->n);
	memcpy(call + GRPC_PREFIX_BYTES, body->bytes, body->n);
	free(d->made);
	d->made = call;
	return 0;
}

int request_start(struct destination *d, const struct body *body)
{
	__typeof__(d->exporter->curl.easy_setopt) set = d->exporter->curl.easy_setopt;
	const uint8_t *bytes = body->bytes;
	CURLcode r = CURLE_OK;
	size_t n = body->n;

	response_reset(&d->response);
	d->curl_error[0] = '\0';
	/* By the body: what was spooled under another configuration may be of another kind. */
	SET(CURLOPT_HTTPHEADER, d->headers[body->encoding]);
	if (d->grpc) {
		if (put_prefix(d, body) < 0)
			return -ENOMEM;
		bytes = d->made;
		n += GRPC_PREFIX_BYTES;
	}
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	SET(CURLOPT_POSTFIELDS, bytes);
	if (r != CURLE_OK ||
	    d->exporter->curl.multi_add_handle(d->exporter->multi, d->easy) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

void request_cancel(struct destination *d)
{
	(void)d->exporter->curl.multi_remove_handle(d->exporter->multi, d->easy);
	response_reset(&d->response);
}

/* The OpenTelemetry Collector says 400, and why in words. */
static bool says_too_large(const struct response *r)
{
	static const char words[] = "request body too large";

	return r->body && memmem(r->body, r->n_body, words, strlen(words));
}

struct outcome request_end(struct destination *d, CURLcode code)
{
	const struct curl_api *curl = &d->exporter->curl;
	struct outcome o = {.code = code};
	long n_sent = 0;

	(void)curl->easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &o.status);
	(void)curl->easy_getinfo(d->easy, CURLINFO_OS_ERRNO, &o.os_errno);
	(void)curl->easy_getinfo(d->easy, CURLINFO_REQUEST_SIZE, &n_sent);
	(void)curl->easy_getinfo(d->easy, CURLINFO_HTTP_CONNECTCODE, &o.proxy_status);
	o.unseen = n_sent == 0;
	(void)curl->multi_remove_handle(d->exporter->multi, d->easy);
	free(d->made);
	d->made = NULL;
	o.verdict = retry_verdict(code, o.status, d->response.too_large);
	if (o.verdict == VERDICT_DROP && o.status == 400 && says_too_large(&d->response))
		o.verdict = VERDICT_TOO_LARGE;
	if (d->grpc && o.status && !d->response.too_large) {
		static const enum verdict verdicts[] = {[GRPC_SENT] = VERDICT_SENT,
							[GRPC_RETRY] = VERDICT_RETRY,
							[GRPC_TOO_LARGE] = VERDICT_TOO_LARGE,
							[GRPC_DROP] = VERDICT_DROP};

		o.verdict = verdicts[grpc_decide(&d->response.grpc, code == CURLE_OK, o.status)];
	}
	return o;
}
