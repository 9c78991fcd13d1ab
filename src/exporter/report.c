/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log for the operator: one line when a destination stops answering and one when it is back, in
 * words that say what to check. Texts of the server are cleaned and cut; URLs are shown up to the
 * host, headers never.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/otlp-response.h"
#include "src/exporter/internal.h"
#include "util/clock.h"
#include "util/text.h"

#define REPEAT_SECONDS	60
#define FOREIGN_SECONDS 3600
#define SPLIT_SECONDS	3600
#define TEXT_BYTES	257 /* of the server's own words, with the 0 */

/* TLS libraries tell what is wrong with a certificate by words alone. */
static const char *certificate_cause(const struct destination *d)
{
	static const struct {
		const char *word, *cause;
	} causes[] = {
		{"expired", "its certificate has expired; renew it, or set the clock of this host"},
		{"not yet valid",
		 "its certificate is not valid yet; check the clocks of both hosts"},
		{"match", "its certificate is for another name; set the endpoint to that name, or "
			  "set server_name_override"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		if (strcasestr(d->curl_error, causes[i].word))
			return causes[i].cause;
	}
	return "its certificate does not verify; set certificate to the authority's PEM file";
}

static const char *no_connection_cause(const struct destination *d, const struct outcome *o)
{
	if (d->proxied)
		return "no connection to its proxy; check proxy, and that the proxy runs";
	switch (o->os_errno) {
	case ECONNREFUSED:
		return "connection refused; does an OTLP/HTTP server listen on that port (4318 by "
		       "convention; 4317 is gRPC)?";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "no route to that host; check the network";
	default:
		return "no connection; check the endpoint, the network and firewalls";
	}
}

/* Cause and remedy for a connection that came to nothing. */
static const char *connection_cause(const struct destination *d, const struct outcome *o)
{
	if (o->proxy_status >= 300)
		return o->proxy_status == 407
			       ? "the proxy wants credentials (407); put them into the URL of "
				 "https_proxy, in the environment"
			       : "the proxy does not let it through; check the proxy's own rules, "
				 "or "
				 "set proxy = none";
	switch (o->code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "the proxy's host name is unknown; check proxy, and https_proxy and the "
		       "like in the environment";
#if LIBCURL_VERSION_NUM >= 0x074900
	case CURLE_PROXY:
		return "the proxy does not answer like a proxy; check proxy, and https_proxy and "
		       "the like in the environment";
#endif
	case CURLE_COULDNT_RESOLVE_HOST:
		return "its host name is unknown; check the endpoint and the name service";
	case CURLE_COULDNT_CONNECT:
		return no_connection_cause(d, o);
	case CURLE_OPERATION_TIMEDOUT:
		return "no answer in time; check the network and the server's load, or raise "
		       "timeout";
	case CURLE_PEER_FAILED_VERIFICATION:
		return certificate_cause(d);
	case CURLE_SSL_CACERT_BADFILE:
		return "the file of certificate cannot be used; check that perfwalk's user can "
		       "read it";
	case CURLE_SSL_CERTPROBLEM:
		return "client_certificate or client_key cannot be used; check that perfwalk's "
		       "user can "
		       "read them";
	case CURLE_SSL_CONNECT_ERROR:
		return "no TLS connection; does the server speak TLS 1.2 or newer on that port?";
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return "it closed the connection without a complete answer";
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return d->grpc ? "it aborted the HTTP/2 exchange; is this an OTLP/gRPC port (4317 "
				 "by convention)?"
			       : d->exporter->curl.easy_strerror(o->code);
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		if (d->grpc)
			return "it does not speak HTTP/2; is this the OTLP/gRPC port (4317 by "
			       "convention)?";
		return "it does not speak HTTP; is this the OTLP/HTTP port?";
	default:
		return d->exporter->curl.easy_strerror(o->code);
	}
}

static const char *status_cause(long status)
{
	switch (status) {
	case 429:
		return "it accepts no more for now (429); are its limits too low for this host?";
	case 502:
	case 504:
		return "a proxy in front of it gets no answer";
	default:
		return "it is not ready (503); look at the server's own log";
	}
}

/* The TLS library's own words: its alerts say what the server did not like. */
static const char *tls_detail(const struct destination *d, const struct outcome *o,
			      char text[TEXT_BYTES])
{
	char clean[TEXT_BYTES - 3];

	switch (o->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		break;
	default:
		return "";
	}
	if (text_clean(clean, sizeof(clean), d->curl_error, strlen(d->curl_error)) == 0)
		return "";
	(void)snprintf(text, TEXT_BYTES, " (%s)", clean);
	return text;
}

void report_unreachable(const struct destination *d, const struct outcome *o)
{
	const struct grpc_status *g = &d->response.grpc;
	char detail[TEXT_BYTES];

	if (d->grpc && o->status)
		log_warning("export:%s: %s cannot take profiles: gRPC status %d (%s)%s%s; they are "
			    "kept and retried",
			    d->name, d->origin, g->code, grpc_code_name(g->code),
			    *g->message ? ": " : "", g->message);
	else
		log_warning("export:%s: %s cannot take profiles: %s%s; they are kept and retried",
			    d->name, d->origin,
			    o->status >= 400 ? status_cause(o->status) : connection_cause(d, o),
			    tls_detail(d, o, detail));
}

void report_back(const struct destination *d, uint64_t now)
{
	char took[32];
	uint64_t ns = now - d->down_since_ns;

	/* Whole seconds; a blip keeps its milliseconds. */
	ns -= ns % (ns >= NSEC_PER_SEC ? NSEC_PER_SEC : NSEC_PER_MSEC);
	log_info("export:%s: %s answers again after %s; %" PRIu64 " payload(s) waited", d->name,
		 d->origin, text_format_duration(took, sizeof(took), ns), d->stats.queue_payloads);
}

#define TOO_LARGE_HINT "; raise the server's limit on its size, or shorten reporter_interval"

#define ZSTD_HINT "; if it does not accept zstd, set compression = gzip"

static const char *grpc_hint(const struct destination *d, int code)
{
	switch (code) {
	case 7: /* PERMISSION_DENIED */
	case 16:
		return "; check headers and headers_file";
	case 12:
		if (d->encoding == ENCODING_ZSTD)
			return ZSTD_HINT;
		return "; does the server accept OTLP profiles of development version 1?";
	default:
		return "";
	}
}

static const char *refusal_hint(const struct destination *d, long status)
{
	if ((status == 400 || status == 415) && d->encoding == ENCODING_ZSTD)
		return ZSTD_HINT;
	if ((status == 400 || status == 415) && d->json)
		return "; if it does not accept JSON, set protocol = http/protobuf";
	switch (status) {
	case 400:
		return "; does the server accept OTLP profiles of development version 1?";
	case 401:
	case 403:
		return "; check headers and headers_file";
	case 404:
	case 405:
		return "; is the endpoint an OTLP/HTTP server that accepts profiles?";
	default:
		return status >= 300 && status < 400
			       ? "; redirects are not followed: set the endpoint to where it points"
			       : "";
	}
}

/* The message of a google.rpc.Status, or else what there is of plain text. */
static void response_text(const struct destination *d, char text[TEXT_BYTES])
{
	const struct response *r = &d->response;
	int32_t code;

	if (otlp_status_parse(r->body, r->n_body, &code, text, TEXT_BYTES) < 0)
		(void)text_clean(text, TEXT_BYTES, (const char *)r->body, r->n_body);
}

void report_refused(struct destination *d, const struct outcome *o)
{
	char text[TEXT_BYTES] = "", held[48] = "";

	if (!log_ratelimit(&d->refused, REPEAT_SECONDS))
		return;
	if (d->refused.reported)
		(void)snprintf(held, sizeof(held), " (and %" PRIu32 " before)",
			       d->refused.reported);
	if (d->response.too_large) {
		log_warning(
			"export:%s: %s sent an answer beyond the limit (4 MiB, 64 KiB of headers); "
			"the payload%s counts as refused",
			d->name, d->origin, held);
		return;
	}
	if (o->status < 300 && !d->grpc) {
		log_warning("export:%s: %s sent an answer that does not decompress; the payload%s "
			    "counts "
			    "as refused",
			    d->name, d->origin, held);
		return;
	}
	if (d->grpc) {
		const struct grpc_status *g = &d->response.grpc;

		log_warning("export:%s: %s refused a payload%s with gRPC status %d (%s)%s%s; it is "
			    "dropped%s",
			    d->name, d->origin, held, g->code, grpc_code_name(g->code),
			    *g->message ? ": " : "", g->message,
			    o->verdict == VERDICT_TOO_LARGE ? TOO_LARGE_HINT
							    : grpc_hint(d, g->code));
		return;
	}
	response_text(d, text);
	log_warning("export:%s: %s refused a payload%s with status %ld%s%s; it is dropped%s",
		    d->name, d->origin, held, o->status, *text ? ": " : "", text,
		    o->verdict == VERDICT_TOO_LARGE ? TOO_LARGE_HINT : refusal_hint(d, o->status));
}

void report_beyond(struct destination *d)
{
	if (log_ratelimit(&d->refused, REPEAT_SECONDS))
		log_warning(
			"export:%s: a single stack is larger than max_request_size; it is dropped",
			d->name);
}

void report_split(struct destination *d, const struct outcome *o)
{
	char status[16];

	if (!log_ratelimit(&d->split, SPLIT_SECONDS))
		return;
	(void)snprintf(status, sizeof(status), "status %ld", o->status);
	log_warning("export:%s: a payload is too large for %s (%s) and is split in halves; raise "
		    "the server's limit on %s, or shorten reporter_interval",
		    d->name, d->origin,
		    d->grpc && o->status == 200 ? grpc_code_name(d->response.grpc.code) : status,
		    d->grpc ? "messages" : "request bodies");
}

void report_sent(struct destination *d, int64_t n_rejected, const char *message)
{
	if ((n_rejected <= 0 && !*message) || !log_ratelimit(&d->partial, REPEAT_SECONDS))
		return;
	log_warning("export:%s: %s %s%" PRId64 "%s%s%s", d->name, d->origin,
		    n_rejected > 0 ? "accepted a payload except " : "accepted a payload, with ",
		    n_rejected > 0 ? n_rejected : INT64_C(0),
		    n_rejected > 0 ? " of its profiles" : " refused and a warning",
		    *message ? ": " : "", message);
}

void report_foreign(struct destination *d)
{
	char type[sizeof(d->response.type)];

	if (!log_ratelimit(&d->foreign, FOREIGN_SECONDS))
		return;
	(void)text_clean(type, sizeof(type), d->response.type, strlen(d->response.type));
	log_warning("export:%s: %s accepted a payload, but answered with %s; is the endpoint an "
		    "OTLP/HTTP server that accepts profiles?",
		    d->name, d->origin, type);
}

void report_queue_full(struct destination *d)
{
	if (!log_ratelimit(&d->full, REPEAT_SECONDS))
		return;
	log_warning(
		"export:%s: the queue is full (max_queue_size); the oldest profiles are dropped: "
		"%" PRIu64 " payloads so far",
		d->name, d->stats.payloads_dropped_queue_full);
}

void report_expired(struct destination *d, uint64_t n_payloads)
{
	if (!log_ratelimit(&d->expired, REPEAT_SECONDS))
		return;
	log_warning("export:%s: %" PRIu64
		    " payload(s) could not be delivered to %s in time and are "
		    "dropped: %" PRIu64 " so far",
		    d->name, n_payloads, d->origin, d->stats.payloads_dropped_expired);
}

void report_lost(const struct destination *d)
{
	const struct export_stats *s = &d->stats;
	uint64_t n = s->payloads_dropped_queue_full + s->payloads_dropped_refused +
		     s->payloads_dropped_expired + s->payloads_dropped_spool_full +
		     s->payloads_dropped_corrupt + s->payloads_dropped_too_large;

	if (n > 0)
		log_warning("export:%s: %" PRIu64 " payload(s) with %" PRIu64
			    " samples were dropped in all and are not at %s",
			    d->name, n, s->samples_dropped, d->origin);
}

void report_spooling(const struct destination *d)
{
	log_info("export:%s: %s does not accept profiles for now; they are kept in %s", d->name,
		 d->origin, spool_path(d->exporter->spool));
}

void report_drained(const struct destination *d)
{
	log_info("export:%s: the spool is empty again: %" PRIu64 " payload(s) of it were sent",
		 d->name, d->n_from_backlog);
}

void report_spool_full(struct destination *d)
{
	if (!log_ratelimit(&d->spool_full, REPEAT_SECONDS))
		return;
	log_warning("export:%s: the spool is full ([spool] max_bytes); the oldest profiles are "
		    "dropped: %" PRIu64 " payloads so far",
		    d->name, d->stats.payloads_dropped_spool_full);
}
